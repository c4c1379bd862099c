/* cli/output_files.c: opens files for writing. See cli/output_files.h. */
#include "cli/output_files.h"
#include "base/interrupt.h"
#include "cli/signals.h"
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static bool is_at(const struct stat *file, const char *path)
{
    struct stat st;
    return stat(path, &st) == 0 && st.st_dev == file->st_dev && st.st_ino == file->st_ino;
}

static bool is_model(const struct stat *file, const struct gguf_file *model)
{
    for (int i = 0; model && i < gguf_part_count(model); i++) {
        const struct gguf_part_facts part = gguf_part_facts(model, i);
        if (part.device == (uint64_t)file->st_dev && part.inode == file->st_ino) return true;
    }
    return false;
}

/* Returns the option by which the command also reads the file ("-": standard input), or NULL. */
static const char *use_of(const struct stat *file, const struct cli_values *values,
                          const struct gguf_file *model)
{
    struct stat input;
    if (is_model(file, model)) return "model";
    for (size_t i = 0; i < cli_option_count; i++) {
        const struct cli_option *o = &cli_option_table[i];
        if (!cli_option_takes_file(o) || o->writes) continue;
        const void *at = (const char *)values + o->at;
        const char *path = o->kind == CLI_TEXT ? *(const char *const *)at : NULL;
        if (path && is_at(file, path)) return o->name;
        const struct base_texts *list = o->kind == CLI_LIST ? at : NULL;
        for (size_t k = 0; list && k < list->count; k++)
            if (is_at(file, list->item[k])) return o->name;
    }
    const bool is_input = fstat(STDIN_FILENO, &input) == 0 && input.st_dev == file->st_dev &&
                          input.st_ino == file->st_ino;
    return is_input ? "-" : NULL;
}

bool cli_output_check(const char *path, const struct cli_values *values,
                      const struct gguf_file *model, struct base_error *err)
{
    struct stat st;
    const bool is_stdout = strcmp(path, "-") == 0;
    const bool is_there = is_stdout ? fstat(STDOUT_FILENO, &st) == 0 : stat(path, &st) == 0;
    const char *use = is_there && S_ISREG(st.st_mode) ? use_of(&st, values, model) : NULL;
    if (use && strcmp(use, "-") == 0)
        base_fail(err, BASE_USAGE, "is standard input too: choose another name for the output");
    else if (use)
        base_fail(err, BASE_USAGE, "is the input too (the %s): choose another name for the output",
                  use);
    if (use) base_error_set_file(err, is_stdout ? "standard output" : path);
    return !use;
}

static bool guard(struct base_output *o, struct base_error *err)
{
    return cli_signals_guard(o) || base_fail(err, BASE_FAILED, "too many files are being written");
}

bool cli_output_claim(struct base_output *o, const char *path, const struct cli_values *values,
                      const struct gguf_file *model, struct base_error *err)
{
    base_output_init(o);
    return cli_output_check(path, values, model, err) && guard(o, err) &&
           base_output_try(o, path, err);
}

bool cli_output_claim_model(struct gguf_writer *w, const char *path,
                            const struct cli_values *values, const struct gguf_file *model,
                            struct base_error *err)
{
    const int count = gguf_writer_part_count(w);
    struct base_output *o = gguf_writer_output(w);
    if (count == 0) return cli_output_claim(o, path, values, model, err);
    if (!guard(o, err)) return false;
    for (int i = 0; i < count; i++) {
        char *part = gguf_part_path((struct gguf_str){path, strlen(path)}, i, count, err);
        const bool ok = part && base_goes_on(err) && cli_output_check(part, values, model, err) &&
                        base_output_try(o, part, err);
        free(part);
        if (!ok) return false;
    }
    return true;
}

bool cli_output_open(struct base_output *o, const char *path, const struct cli_values *values,
                     const struct gguf_file *model, struct base_error *err)
{
    base_output_init(o);
    return cli_output_check(path, values, model, err) && guard(o, err) &&
           base_output_open(o, path, err);
}

bool cli_output_close(struct base_output *o, bool ok, struct base_error *err)
{
    ok = base_output_close(o, ok, err);
    cli_signals_release(o);
    return ok;
}

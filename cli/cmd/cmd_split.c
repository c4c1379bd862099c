/* cli/cmd/cmd_split.c: `infer split` and `infer merge`: split a model into several files, or merge
 * them.
 *
 * gguf/ implements the form of a split model; this file applies the limit of a part: a number of
 * tensors, or of their bytes with padding. */
#include "base/size.h"
#include "cli/model_copy.h"
#include "cli/model_path.h"
#include "cli/options.h"
#include "cli/output_files.h"
#include "cli/sandbox.h"
#include "cli/system.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

struct split {
    const struct cli_values *values;
    struct gguf_file *in;
    struct gguf_writer *writer;
    struct base_buffer prefix;
    struct base_buffer plan; /* one line per part: --dry-run */
    uint64_t max_bytes;      /* limit of a part in bytes; 0: the limit is a number of tensors */
    uint64_t part_tensors, part_bytes;
};

static void end_part(struct split *s)
{
    base_buffer_add_format(&s->plan, "part %d: %llu tensors, %llu bytes\n",
                           gguf_writer_part_count(s->writer), (unsigned long long)s->part_tensors,
                           (unsigned long long)s->part_bytes);
    s->part_tensors = s->part_bytes = 0;
}

/* Returns whether a tensor of `size` bytes begins a new part. */
static bool is_full(const struct split *s, uint64_t size)
{
    if (s->part_tensors == 0) return false;
    return s->max_bytes ? s->part_bytes + size > s->max_bytes
                        : s->part_tensors >= (uint64_t)s->values->max_tensors;
}

static bool begin_part(struct split *s, struct base_error *err)
{
    const bool by_size = s->max_bytes > 0;
    if (gguf_writer_part_count(s->writer) == GGUF_MAX_PARTS)
        return base_fail_at(err, BASE_USAGE, by_size ? "--max-size" : "--max-tensors", -1,
                            "needs more than %d parts; give a larger limit", GGUF_MAX_PARTS);
    gguf_writer_part(s->writer);
    return true;
}

/* Declares metadata and tensors, part by part. */
static bool declare(struct split *s, struct base_error *err)
{
    const uint64_t alignment = gguf_alignment(s->in);
    gguf_writer_copy_metadata(s->writer, s->in);
    bool ok = begin_part(s, err);
    if (ok && s->values->no_tensor_first) {
        end_part(s);
        ok = begin_part(s, err);
    }
    for (uint64_t i = 0; ok && i < gguf_tensor_count(s->in); i++) {
        const struct gguf_tensor *t = gguf_tensor_at(s->in, i);
        uint64_t size = t->size;
        base_align_up(size, alignment, &size); /* the reader bounds sizes by INT64_MAX */
        if (is_full(s, size)) {
            end_part(s);
            ok = begin_part(s, err);
        }
        gguf_writer_tensor(s->writer, t->name, t->type, t->n_dims, t->ne);
        s->part_tensors++;
        s->part_bytes += size;
    }
    end_part(s);
    return ok;
}

static bool write_parts(struct split *s, struct base_error *err)
{
    const struct cli_values *v = s->values;
    if (!cli_split_prefix(&s->prefix, v->argument[1], err) ||
        !cli_output_claim_model(s->writer, s->prefix.data, v, s->in, err) ||
        !gguf_writer_begin(s->writer, s->prefix.data, err))
        return false;
    if (!v->no_sandbox) cli_sandbox_close(CLI_SANDBOX_FILES);
    return cli_model_copy(s->writer, s->in, -1, err) && gguf_writer_end(s->writer, err);
}

static bool cmd_split(struct cli_values *values, struct base_error *err)
{
    struct split s = {.values = values};
    if (values->max_size && !cli_size_parse(values->max_size, "--max-size", &s.max_bytes, err))
        return false;
    if (values->n_arguments < 2 && !values->dry_run)
        return base_fail(err, BASE_USAGE, "split: missing argument. Usage: %s",
                         cli_command_split.usage);
    if (!values->no_sandbox) cli_sandbox_limit(values->dry_run ? NULL : values->argument[1]);
    s.in = cli_model_open_path(values->argument[0], err);
    bool ok = s.in != NULL;
    if (ok && values->dry_run && !values->no_sandbox) cli_sandbox_close(0);
    s.writer = ok ? gguf_writer_new(err) : NULL;
    ok = s.writer && declare(&s, err);
    ok = ok && (values->dry_run ? cli_write_buffer(&s.plan, err) : write_parts(&s, err));
    if (s.writer) ok = cli_output_close(gguf_writer_output(s.writer), ok, err);
    gguf_writer_free(s.writer);
    base_buffer_free(&s.prefix);
    base_buffer_free(&s.plan);
    gguf_close(s.in);
    return ok;
}

/* Fails if a named file is not a part of the model: parts are found by the name of the first. */
static bool check_named(const struct gguf_file *in, const struct cli_values *values, size_t n,
                        struct base_error *err)
{
    const int n_parts = gguf_part_count(in);
    bool *named = calloc((size_t)n_parts, sizeof *named), ok = true;
    if (!named) return base_fail(err, BASE_NO_MEMORY, "not enough memory for a list of parts");
    for (size_t i = 0; ok && i < n; i++) {
        const char *name = values->arguments[i];
        struct stat st;
        int k = 0;
        if (stat(name, &st) != 0) {
            if (i == 0) continue; /* a name of `infer models` */
            ok = base_fail(err, BASE_MODEL, "cannot open: %s", strerror(errno));
        }
        for (; ok && k < n_parts; k++) {
            const struct gguf_part_facts part = gguf_part_facts(in, k);
            if (part.device == (uint64_t)st.st_dev && part.inode == st.st_ino) break;
        }
        if (ok && k == n_parts)
            ok = base_fail(err, BASE_USAGE, "is not a part of the model of %s",
                           values->arguments[0]);
        if (ok && named[k]) ok = base_fail(err, BASE_USAGE, "is given twice");
        if (ok)
            named[k] = true;
        else
            base_error_set_file(err, name);
    }
    free(named);
    return ok;
}

/* --dry-run: prints the parts and the sum. */
static bool print_merge(const struct gguf_file *in, struct base_error *err)
{
    BASE_LOCAL_BUFFER out = BASE_BUFFER_INIT;
    const uint64_t count = gguf_tensor_count(in), alignment = gguf_alignment(in);
    uint64_t all = 0;
    for (uint64_t i = 0, part = 0; part < (uint64_t)gguf_part_count(in); part++) {
        uint64_t bytes = 0, first = i, size;
        for (; i < count && (uint64_t)gguf_tensor_at(in, i)->part == part; i++) {
            size = gguf_tensor_at(in, i)->size;
            base_align_up(size, alignment, &size); /* the reader bounds sizes by INT64_MAX */
            bytes += size;
        }
        all += bytes;
        base_buffer_add_format(&out, "part %llu: %llu tensors, %llu bytes\n",
                               (unsigned long long)part + 1, (unsigned long long)(i - first),
                               (unsigned long long)bytes);
    }
    base_buffer_add_format(&out, "together: %llu tensors, %llu bytes\n", (unsigned long long)count,
                           (unsigned long long)all);
    return cli_write_buffer(&out, err);
}

static bool check_merge(const struct gguf_file *in, const struct cli_values *values, size_t n,
                        struct base_error *err)
{
    if (gguf_kv_find(in, "split.count"))
        return check_named(in, values, n, err) && gguf_check_parts(in, err);
    return base_fail_file(err, BASE_USAGE, values->argument[0],
                          "is not a part of a split model: there is nothing to merge");
}

static bool merge(struct gguf_writer *w, const struct gguf_file *in,
                  const struct cli_values *values, const char *out, struct base_error *err)
{
    if (!cli_output_claim(gguf_writer_output(w), out, values, in, err)) return false;
    gguf_writer_copy_metadata(w, in);
    for (uint64_t i = 0; i < gguf_tensor_count(in); i++) {
        const struct gguf_tensor *t = gguf_tensor_at(in, i);
        gguf_writer_tensor(w, t->name, t->type, t->n_dims, t->ne);
    }
    if (!gguf_writer_begin(w, out, err)) return false;
    if (!values->no_sandbox) cli_sandbox_close(CLI_SANDBOX_FILES);
    return cli_model_copy(w, in, -1, err) && gguf_writer_end(w, err);
}

static bool cmd_merge(struct cli_values *values, struct base_error *err)
{
    const size_t last = values->n_arguments - 1;
    const char *out = values->dry_run ? NULL : values->arguments[last];
    if (last == 0 && !values->dry_run)
        return base_fail(err, BASE_USAGE, "merge: missing argument. Usage: %s",
                         cli_command_merge.usage);
    if (!values->no_sandbox) cli_sandbox_limit(out);
    struct gguf_file *in = cli_model_open_path(values->argument[0], err);
    bool ok = in && check_merge(in, values, values->dry_run ? 1 : last, err);
    struct gguf_writer *w = ok && out ? gguf_writer_new(err) : NULL;
    if (ok && !out) {
        if (!values->no_sandbox) cli_sandbox_close(0);
        ok = print_merge(in, err);
    } else if (ok) {
        ok = w && merge(w, in, values, out, err);
    }
    if (w) ok = cli_output_close(gguf_writer_output(w), ok, err);
    gguf_writer_free(w);
    gguf_close(in);
    return ok;
}

const struct cli_command cli_command_split = {
    .name = "split",
    .usage = "infer split IN.gguf PREFIX [options]",
    .effect = "cut a model file into parts",
    .about = "Writes PREFIX-00001-of-0000N.gguf and so on, of at most --max-size or\n"
             "--max-tensors each; a larger tensor has a part of its own. All metadata is in\n"
             "the first part. Any part's name opens the model, also as IN.gguf.",
    .min_arguments = 1,
    .max_arguments = 2,
    .takes = {"FILE", "FILE"},
    .run = cmd_split,
};

const struct cli_command cli_command_merge = {
    .name = "merge",
    .usage = "infer merge PART.gguf.. OUT.gguf [options]",
    .effect = "join the parts of a model into one file",
    .about = "Writes the model of which PART.gguf is a part as one file; one part is enough.\n"
             "Parts that are missing or not of one model are an error.",
    .min_arguments = 1,
    .max_arguments = 65536,
    .takes = {"FILE", "FILE"},
    .run = cmd_merge,
};

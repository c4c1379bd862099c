/* cli/cmd/cmd_cache.c: `infer cache`: lists or clears the prefix cache. */
#include "cli/cache/cache_entry.h"
#include "cli/cache/cache_folder.h"
#include "cli/options.h"
#include "cli/sandbox.h"
#include "cli/system.h"
#include "cli/terminal.h"
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { SECONDS_OF_DAY = 24 * 60 * 60 };

/* A file of the folder, as `infer cache` lists it. */
struct file_row {
    struct cli_cache_file *file;
    struct cli_cache_head head;
    struct base_error error; /* why the file cannot be used */
    int64_t age;             /* seconds since its last use */
};

static bool read_row(const struct cli_cache_folder *folder, struct cli_cache_file *file,
                     struct file_row *row)
{
    const int fd = cli_cache_file_open(folder, file);
    *row = (struct file_row){.file = file, .error = BASE_ERROR_INIT};
    row->age = (int64_t)time(NULL) - file->used_ns / 1000000000;
    if (row->age < 0) row->age = 0;
    if (fd < 0) return base_fail(&row->error, BASE_FAILED, "others can write to it");
    const bool ok = cli_cache_head_read(fd, &row->head, &row->error);
    close(fd);
    return ok;
}

static bool is_meant(const struct cli_values *v, const struct file_row *r)
{
    const char *name = v->n_arguments ? v->argument[0] : "";
    const size_t n = strlen(name);
    if (r->age < v->older * SECONDS_OF_DAY) return false;
    if (n == 0) return true;
    return r->head.name && memmem(r->head.name, r->head.n_name, name, n);
}

static void add_age(struct base_buffer *out, int64_t seconds)
{
    static const struct {
        int64_t seconds;
        const char *name;
    } units[] = {{SECONDS_OF_DAY, "d"}, {3600, "h"}, {60, "min"}, {1, "s"}};
    size_t i = 0;
    while (i < 3 && seconds < units[i].seconds) i++;
    base_buffer_add_format(out, "%5lld %-4s", (long long)(seconds / units[i].seconds),
                           units[i].name);
}

static void add_text(const struct file_row *r, struct base_buffer *out)
{
    base_buffer_add_format(out, "%9.1f MB ", (double)r->file->size / 1e6);
    add_age(out, r->age);
    if (r->error.code)
        base_buffer_add_format(out, " unusable: %s", r->error.text);
    else
        base_buffer_add_format(out, " %7llu tokens  ", (unsigned long long)r->head.n_ids);
    if (!r->error.code) cli_show(out, r->head.name, r->head.n_name, false);
    base_buffer_add_text(out, "\n");
}

static void add_json(const struct file_row *r, bool first, struct base_buffer *out)
{
    const bool bad = r->error.code != BASE_OK;
    base_buffer_add_format(out, "%s{\"bytes\":%llu,\"age_seconds\":%lld,", first ? "" : ",\n",
                           (unsigned long long)r->file->size, (long long)r->age);
    base_buffer_add_member(out, "error", bad ? r->error.text : NULL, strlen(r->error.text));
    if (!bad) {
        base_buffer_add_format(out, ",\"tokens\":%llu,", (unsigned long long)r->head.n_ids);
        base_buffer_add_member(out, "model", r->head.name, r->head.n_name);
    }
    base_buffer_add_text(out, "}");
}

struct file_total {
    size_t n;
    uint64_t bytes;
};

static struct file_total handle_rows(const struct cli_values *v, struct cli_cache_folder *folder,
                                     struct base_buffer *out, struct base_error *err)
{
    struct file_total t = {0};
    if (v->json && !v->clear) base_buffer_add_text(out, "[");
    for (size_t i = 0; i < folder->count; i++) {
        struct file_row r;
        read_row(folder, &folder->file[i], &r);
        if (r.error.code == BASE_NO_MEMORY) { /* no error of the entry */
            *err = r.error;
            break;
        }
        if (is_meant(v, &r)) {
            if (!v->clear && v->json)
                add_json(&r, t.n == 0, out);
            else if (!v->clear)
                add_text(&r, out);
            const uint64_t size = r.file->size;
            const bool counts = !v->clear || cli_cache_file_remove(folder, r.file);
            t.n += counts;
            t.bytes += counts ? size : 0;
        }
        cli_cache_head_free(&r.head);
    }
    if (v->json && !v->clear) base_buffer_add_text(out, "]\n");
    return t;
}

static bool cmd_cache(struct cli_values *values, struct base_error *err)
{
    struct cli_cache_folder folder;
    BASE_LOCAL_BUFFER out = BASE_BUFFER_INIT, inside = BASE_BUFFER_INIT;
    struct base_error failed = BASE_ERROR_INIT;
    struct file_total t = {0};
    bool missing, ok = true;
    if (cli_cache_folder_open(&folder, values->cache ? values->cache : "auto", false, &missing,
                              &failed)) {
        base_buffer_add_format(&inside, "%s/prefix", folder.path.data);
        if (!inside.failed) cli_sandbox_limit(inside.data);
        t = handle_rows(values, &folder, &out, err);
    } else if (missing) {
        base_buffer_add_text(&out, values->json && !values->clear ? "[]\n" : "");
    } else {
        *err = failed;
        ok = false;
    }
    ok = ok && err->code == BASE_OK && cli_write_buffer(&out, err);
    if (ok && (values->clear || !values->json))
        cli_note("%s: %zu %s, %.1f MB%s", folder.path.data, t.n, t.n == 1 ? "entry" : "entries",
                 (double)t.bytes / 1e6, values->clear ? " removed" : "");
    cli_cache_folder_close(&folder);
    return ok;
}

const struct cli_command cli_command_cache = {
    .name = "cache",
    .usage = "infer cache [NAME] [--clear] [options]",
    .effect = "list or clear the prefix cache on disk",
    .about = "Lists what --cache has stored, used last first: size, tokens, when it was used,\n"
             "model. With NAME only of models whose name contains it. With --clear removes\n"
             "what it would list.",
    .max_arguments = 1,
    .run = cmd_cache,
};

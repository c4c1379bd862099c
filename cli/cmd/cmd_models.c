/* cli/cmd/cmd_models.c: `infer models`: lists the model files of a folder, of which it reads only
 * the headers; and removes a model of the user's folder.
 *
 * Damaged files are listed with their error, and only the first file of a split model. */
#include "base/list.h"
#include "cli/cmd/quantize_plan.h"
#include "cli/hub_name.h"
#include "cli/load.h"
#include "cli/model_path.h"
#include "cli/options.h"
#include "cli/out/gguf_text.h"
#include "cli/out/model_table.h"
#include "cli/pull/partial.h"
#include "cli/system.h"
#include "cli/terminal.h"
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

struct model_list {
    struct cli_model_row *item;
    size_t count, room;
};

static void rows_free(struct model_list *r)
{
    for (size_t i = 0; i < r->count; i++) {
        base_buffer_free(&r->item[i].path);
        base_buffer_free(&r->item[i].name);
        base_buffer_free(&r->item[i].arch);
    }
    free(r->item);
}

/* ---- One file ---- */

static const char *main_type(const struct cli_gguf_sums *s)
{
    uint32_t most = 0;
    for (uint32_t id = 1; id < QUANT_ID_COUNT; id++)
        if (s->bytes_of[id] > s->bytes_of[most]) most = id;
    return s->bytes_of[most] ? quant_type_by_id(most)->name : NULL;
}

static void read_text(const struct gguf_file *file, const char *key, struct base_buffer *out)
{
    struct gguf_str text = {NULL, 0};
    struct base_error ignored = BASE_ERROR_INIT; /* a value of another kind counts as absent */
    if (gguf_get_str(file, key, &text, &ignored) && text.size > 0)
        base_buffer_add(out, text.data, text.size);
}

static void read_header(struct cli_model_row *row)
{
    struct stat st;
    if (stat(row->path.data, &st) == 0) {
        row->bytes = (uint64_t)st.st_size;
        row->time = st.st_mtime;
    }
    struct gguf_file *file = gguf_open(row->path.data, &row->error);
    if (!file || !cli_model_check(file, &row->error)) {
        gguf_close(file);
        return;
    }
    BASE_LOCAL_BUFFER key = BASE_BUFFER_INIT;
    struct base_error ignored = BASE_ERROR_INIT;
    read_text(file, "general.name", &row->name);
    read_text(file, "general.architecture", &row->arch);
    row->bytes = gguf_size(file);
    row->type = cli_quantize_name(file);
    const struct cli_gguf_sums sums = cli_gguf_sum(file);
    if (!row->type) row->type = main_type(&sums);
    row->n_params = sums.elements;
    base_buffer_add_format(&key, "%s.context_length", row->arch.size ? row->arch.data : "");
    if (key.failed || row->name.failed || row->arch.failed)
        base_fail(&row->error, BASE_NO_MEMORY, "not enough memory to list it");
    else
        gguf_get_u32(file, key.data, &row->n_ctx, &ignored);
    gguf_close(file);
}

/* ---- Folders ---- */

static bool add_file(struct model_list *rows, const char *folder, const char *name,
                     const char *chosen, struct base_error *err)
{
    if (!BASE_LIST_ROOM(rows->item, rows->count, rows->room))
        return base_fail(err, BASE_NO_MEMORY, "not enough memory for a list");
    struct cli_model_row *row = &rows->item[rows->count++];
    *row = (struct cli_model_row){.error = BASE_ERROR_INIT};
    base_buffer_add_format(&row->path, "%s/%s", folder, name);
    if (!cli_buffer_check(&row->path, err)) return false;
    row->is_chosen = strcmp(row->path.data, chosen) == 0;
    read_header(row);
    /* Lack of memory and an interrupt are not errors of the file. */
    if (row->error.code != BASE_NO_MEMORY && row->error.code != BASE_INTERRUPTED) return true;
    *err = row->error;
    return false;
}

/* Adds the models of a folder. A missing folder counts as empty if it is the default one, and is an
 * error if the user named it. */
static bool add_folder(struct model_list *rows, const char *folder, const char *chosen, bool named,
                       struct base_error *err)
{
    struct dirent **entry;
    const int n = scandir(folder, &entry, NULL, alphasort);
    const enum base_code code = n < 0 && errno == ENOMEM ? BASE_NO_MEMORY : BASE_USAGE;
    bool ok = n >= 0 || (!named && code == BASE_USAGE);
    if (!ok) {
        base_fail(err, code, "cannot list: %s", strerror(errno));
        base_error_set_file(err, folder);
    }
    for (int i = 0; i < n; i++) {
        ok = ok && (!cli_model_is_listed(entry[i]->d_name) ||
                    add_file(rows, folder, entry[i]->d_name, chosen, err));
        free(entry[i]);
    }
    if (n >= 0) free(entry);
    return ok;
}

/* ---- Output ---- */

static int terminal_width(void)
{
    struct winsize size;
    return ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 ? size.ws_col : 0;
}

static void print_json(const struct model_list *rows, struct base_buffer *out)
{
    base_buffer_add_text(out, "[");
    for (size_t i = 0; i < rows->count; i++) {
        const struct cli_model_row *r = &rows->item[i];
        char why[600];
        const char *error =
            r->error.code ? base_error_format_here(&r->error, why, sizeof why) : NULL;
        base_buffer_add_format(out, "%s{\"default\":%s", i ? ",\n" : "",
                               r->is_chosen ? "true" : "false");
        base_buffer_add_member(out, "path", r->path.data, r->path.size);
        base_buffer_add_string(out, "error", error);
        if (!error) {
            base_buffer_add_member(out, "name", r->name.data, r->name.size);
            base_buffer_add_member(out, "architecture", r->arch.data, r->arch.size);
            base_buffer_add_string(out, "type", r->type);
            base_buffer_add_format(out, ",\"bytes\":%llu,\"parameters\":%llu,\"context\":%u",
                                   (unsigned long long)r->bytes, (unsigned long long)r->n_params,
                                   r->n_ctx);
            base_buffer_add_format(out, ",\"modified\":%lld", (long long)r->time);
        }
        base_buffer_add_text(out, "}");
    }
    base_buffer_add_text(out, "]\n");
}

/* ---- Removing ---- */

static bool begins_with(const char *folder, const char *name, const char *ending, const char *text)
{
    BASE_LOCAL_BUFFER path = BASE_BUFFER_INIT;
    char begin[32];
    const size_t size = strlen(text);
    base_buffer_add_format(&path, "%s/%s%s", folder, name, ending);
    const int fd =
        path.failed ? -1 : open(path.data, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    const bool ok = fd >= 0 && size <= sizeof begin && read(fd, begin, size) == (ssize_t)size &&
                    memcmp(begin, text, size) == 0;
    if (fd >= 0) close(fd);
    return ok;
}

/* Returns whether a file beside a model, by its ending, was written by this program. */
static bool is_ours(const char *folder, const char *name, const char *ending)
{
    if (strcmp(ending, ".part") == 0) return begins_with(folder, name, ".state", CLI_PARTIAL_BEGIN);
    if (strcmp(ending, ".part.state") == 0) return begins_with(folder, name, "", CLI_PARTIAL_BEGIN);
    return !*ending || begins_with(folder, name, "", CLI_ORIGIN_BEGIN);
}

/* Removes folder/name if it exists. */
static bool remove_file(const char *folder, const char *name, struct base_buffer *removed,
                        struct base_error *err)
{
    BASE_LOCAL_BUFFER path = BASE_BUFFER_INIT;
    base_buffer_add_format(&path, "%s/%s", folder, name);
    bool ok = cli_buffer_check(&path, err);
    if (ok && unlink(path.data) == 0) {
        cli_show(removed, path.data, path.size, false);
        base_buffer_add_text(removed, "\n");
    } else if (ok && errno != ENOENT) {
        ok = base_fail(err, BASE_FAILED, "cannot remove: %s", strerror(errno));
        base_error_set_file(err, path.data);
    }
    return ok;
}

/* Removes a model's file, or all its parts, partial files of an interrupted `infer pull`, and its
 * record, as far as they exist. Not `listed`: only partial files. */
static bool remove_files(const char *folder, const char *name, bool listed,
                         struct base_buffer *removed, struct base_error *err)
{
    static const char *const endings[] = {"", ".part", ".part.state", ".origin"};
    BASE_LOCAL_BUFFER file = BASE_BUFFER_INIT;
    const char *tail = strstr(name, "-00001-of-");
    const int count = tail && strlen(tail) == 20 ? atoi(tail + 10) : 1;
    bool ok = true;
    for (int i = 1; i <= count; i++)
        for (size_t k = listed || count > 1 ? 0 : 1; ok && k < sizeof endings / sizeof *endings;
             k++) {
            base_buffer_clear(&file);
            if (count > 1)
                base_buffer_add_format(&file, "%.*s-%05d%s%s", (int)(tail - name), name, i,
                                       tail + 6, endings[k]);
            else
                base_buffer_add_format(&file, "%s%s", name, endings[k]);
            ok = cli_buffer_check(&file, err) && (!is_ours(folder, file.data, endings[k]) ||
                                                  remove_file(folder, file.data, removed, err));
        }
    return ok;
}

static bool remove_model(const struct cli_values *values, struct base_error *err)
{
    BASE_LOCAL_BUFFER folder = BASE_BUFFER_INIT, path = BASE_BUFFER_INIT, out = BASE_BUFFER_INIT;
    struct base_error none = BASE_ERROR_INIT;
    const char *name = values->remove;
    if (!*name || *name == '.' || strchr(name, '/'))
        return base_fail_at(
            err, BASE_USAGE, "--remove", -1,
            "'%s' is not the name of a model in the folder that `infer models` lists", name);
    if (values->n_arguments > 0)
        return base_fail_at(err, BASE_USAGE, "--remove", -1,
                            "removes only from the folder of models: name no other folder");
    bool ok = cli_model_folder(&folder) ||
              base_fail(err, BASE_USAGE, "neither HOME nor XDG_DATA_HOME is set");
    base_buffer_add(&path, folder.data, folder.size);
    ok = ok && cli_buffer_check(&folder, err) && cli_buffer_check(&path, err);
    /* Without a model of that name, `name` may be that of an incomplete one, with or without the
     * suffix. */
    const bool found = ok && cli_model_find(name, &path, &none);
    if (ok && !found) {
        const size_t n = strlen(name);
        const bool whole = n > 5 && strcasecmp(name + n - 5, ".gguf") == 0;
        base_buffer_add_format(&path, "/%s%s", name, whole ? "" : ".gguf");
    }
    ok = ok && cli_buffer_check(&path, err) &&
         remove_files(folder.data, path.data + folder.size + 1, found, &out, err);
    if (ok && !found && !out.size) {
        *err = none;
        ok = false;
    }
    /* Reports removed files even if others could not be removed. */
    return cli_write_buffer(&out, ok ? err : NULL) && ok;
}

/* ---- The command ---- */

static bool cmd_models(struct cli_values *values, struct base_error *err)
{
    struct model_list rows = {0};
    BASE_LOCAL_BUFFER chosen = BASE_BUFFER_INIT, folder = BASE_BUFFER_INIT, out = {0};
    struct base_error ignored = BASE_ERROR_INIT; /* without a default model no row is marked */
    bool ok = true, is_default = values->n_arguments == 0;
    if (values->remove) return remove_model(values, err);
    const bool exists = cli_model_path(values, &chosen, &ignored);
    const bool has_folder = cli_model_folder(&folder);
    ok = cli_buffer_check(&chosen, err) && cli_buffer_check(&folder, err);
    if (!ok) goto done;
    for (size_t i = 0; ok && i < (is_default ? has_folder : values->n_arguments); i++) {
        const char *path = is_default ? folder.data : values->argument[i];
        const size_t first = rows.count;
        ok = add_folder(&rows, path, chosen.data, !is_default, err);
        if (ok && !values->json && rows.count > first)
            cli_model_table_add(rows.item + first, rows.count - first, path, terminal_width(),
                                &out);
    }
    if (!ok) goto done;
    if (values->json) print_json(&rows, &out);
    ok = cli_write_buffer(&out, err);
    if (ok && values->model && !exists)
        cli_note("%s: %s", ignored.item[0] ? ignored.item : values->model, ignored.text);
    if (ok && rows.count == 0 && !values->json && is_default)
        cli_note("%s%s", has_folder ? folder.data : "no folder to look in: name one, or set HOME",
                 has_folder ? ": no model files; `infer pull USER/REPO:Q4_K_M` (in a checkout "
                              "`make run`) fetches "
                              "one"
                            : "");
done:
    rows_free(&rows);
    return ok;
}

const struct cli_command cli_command_models = {
    .name = "models",
    .usage = "infer models [FOLDER].. [options]",
    .effect = "list the model files, or remove one",
    .about = "Lists the model files of the folders, or of the folder of the default model:\n"
             "names for -m, architecture, type, size, weights, trained context, date. Reads\n"
             "headers only. * marks the model that is used without -m. --remove NAME removes\n"
             "a model of that folder (of a split one all parts) and prints the files' names.",
    .max_arguments = 3,
    .takes = {"FOLDER", "FOLDER", "FOLDER"},
    .run = cmd_models,
};

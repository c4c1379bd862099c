/* cli/model_path.c: finds a model's file by name. See cli/model_path.h. */
#include "cli/model_path.h"
#include "cli/hub_name.h"
#include "cli/system.h"
#include "cli/user_folder.h"
#include <dirent.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <unistd.h>

#define DEFAULT_MODEL "/SmolLM2-135M-Instruct.Q4_1.gguf"

bool cli_model_folder(struct base_buffer *path)
{
    return cli_user_path("XDG_DATA_HOME", ".local/share", "models", path);
}

/* ---- Names in the user's folder ---- */

/* Returns how a name matches a file: 3: exactly; 2: without the suffix and the number of a part, or
 * ignoring case; 1: as a
 * prefix; 0: not at all. */
static int match(const char *file, const char *name)
{
    const size_t n = strlen(name);
    if (!cli_model_is_listed(file) || strncasecmp(file, name, n) != 0) return 0;
    if (strcmp(file, name) == 0) return 3;
    return file[n] == '\0' || n == cli_model_name_size(file) ? 2 : 1;
}

bool cli_model_find(const char *name, struct base_buffer *path, struct base_error *err)
{
    BASE_LOCAL_BUFFER found = BASE_BUFFER_INIT; /* names of the best matches */
    int best = 1;
    size_t n_found = 0;
    struct dirent **entry;
    const int n = scandir(path->data, &entry, NULL, alphasort);
    for (int i = 0; i < n; i++) {
        const char *file = entry[i]->d_name;
        const int how = match(file, name);
        if (how > best) {
            best = how;
            n_found = 0;
            base_buffer_clear(&found);
        }
        if (how == best) base_buffer_add_format(&found, "%s%s", n_found++ ? ", " : "", file);
        free(entry[i]);
    }
    if (n >= 0) free(entry);
    if (n_found == 1)
        base_buffer_add_format(path, "/%s", found.data);
    else if (n_found > 1)
        base_fail_at(err, BASE_MODEL, name, -1, "begins the names of %zu models: %s", n_found,
                     found.data);
    else
        base_fail_at(err, BASE_MODEL, name, -1,
                     "%s, and no model of that name in %s; `infer models` lists what is there",
                     access(name, F_OK) == 0 ? "this is a directory" : "there is no such file",
                     path->data);
    path->failed |= found.failed;
    return n_found == 1;
}

static bool is_file(const char *path)
{
    struct stat st;
    return stat(path, &st) == 0 && !S_ISDIR(st.st_mode);
}

/* Appends the path of a model that was pulled by this name or address; false if the text is
 * neither. Fails with BASE_MODEL if it is not in the folder. */
static bool find_pulled(const char *text, struct base_buffer *path, struct base_error *err)
{
    BASE_LOCAL_BUFFER folder = BASE_BUFFER_INIT, name = BASE_BUFFER_INIT;
    struct base_error none = BASE_ERROR_INIT;
    struct cli_hub_name hub = {.quant = BASE_BUFFER_INIT};
    const bool has_folder = cli_model_folder(&folder) && !folder.failed;
    const bool is_address = has_folder && strstr(text, "://");
    bool found = is_address && cli_hub_name_from_url(&hub, text, err) &&
                 cli_origin_find(&hub, folder.data, NULL, false, path, err);
    cli_hub_name_free(&hub);
    const bool is_name = !found && has_folder && cli_hub_name_read(&hub, text, NULL, &none);
    if (is_name && !err->code) {
        found = cli_origin_find(&hub, folder.data, NULL, false, path, err);
        cli_hub_name_show(&hub, &name);
    }
    /* DIR/FILE.gguf is a path, although it may be a name too. */
    if (!found && !err->code &&
        (is_address || (is_name && !cli_model_is_listed(hub.repository.data))))
        base_fail_at(err, BASE_MODEL, text, -1,
                     "there is no such file, and no model of that name has been pulled: `infer "
                     "pull %s`",
                     name.size ? name.data : text);
    cli_hub_name_free(&hub);
    return found;
}

/* Appends the only model of the folder if there is no default one. */
static bool find_only(struct base_buffer *path, struct base_error *err)
{
    BASE_LOCAL_BUFFER names = BASE_BUFFER_INIT;
    struct dirent **entry;
    size_t count = 0;
    const int n = scandir(path->data, &entry, NULL, alphasort);
    for (int i = 0; i < n; i++) {
        if (cli_model_is_listed(entry[i]->d_name))
            base_buffer_add_format(&names, "%s%s", count++ ? ", " : "", entry[i]->d_name);
        free(entry[i]);
    }
    if (n >= 0) free(entry);
    if (count == 1)
        base_buffer_add_format(path, "/%s", names.data);
    else if (count > 1)
        base_fail(err, BASE_MODEL, "no model: give -m NAME or set INFER_MODEL; there are: %s",
                  names.failed ? "" : names.data);
    path->failed |= names.failed;
    return count == 1;
}

bool cli_model_path_of(const char *given, struct base_buffer *path, struct base_error *err)
{
    const bool is_path = given && (strchr(given, '/') || is_file(given));
    if (given && !*given)
        return base_fail(err, BASE_MODEL,
                         "the name of the model is empty: a variable is not set, or the command "
                         "that was to print it failed");
    if (given && strpbrk(given, "*?[") && access(given, F_OK) != 0)
        return base_fail_at(
            err, BASE_MODEL, given, -1,
            "a pattern of names: without quotes the shell replaces it, if such files "
            "exist");
    if (is_path && !is_file(given) && find_pulled(given, path, err))
        return cli_buffer_check(path, err);
    if (err->code) return false;
    if (is_path || (!cli_model_folder(path) && given)) {
        base_buffer_add_text(path, given);
        return cli_buffer_check(path, err);
    }
    if (!path->size && !path->failed)
        return base_fail(err, BASE_MODEL,
                         "no model: give -m FILE or set INFER_MODEL; the default one cannot be "
                         "looked for, because neither HOME nor XDG_DATA_HOME is set");
    if (!cli_buffer_check(path, err)) return false;
    if (given) return cli_model_find(given, path, err) && cli_buffer_check(path, err);
    const size_t size = path->size;
    base_buffer_add_text(path, DEFAULT_MODEL);
    if (!cli_buffer_check(path, err)) return false;
    if (access(path->data, F_OK) == 0) return true;
    path->size = size;
    path->data[size] = '\0';
    if (find_only(path, err)) return cli_buffer_check(path, err);
    if (err->code) return false;
    base_buffer_add_text(path, DEFAULT_MODEL);
    if (!cli_buffer_check(path, err)) return false;
    return base_fail_file(
        err, BASE_MODEL, path->data,
        "no model: give -m FILE or set INFER_MODEL, or fetch one with `infer pull "
        "USER/REPO:Q4_K_M` (in a checkout `make run` or scripts/fetch-model)");
}

struct gguf_file *cli_model_open_path(const char *given, struct base_error *err)
{
    BASE_LOCAL_BUFFER path = BASE_BUFFER_INIT;
    struct gguf_file *file = NULL;
    if (cli_model_path_of(given, &path, err)) {
        file = gguf_open(path.data, err);
        if (!file) base_error_set_file(err, path.data);
    }
    return file;
}

bool cli_model_path(const struct cli_values *values, struct base_buffer *path,
                    struct base_error *err)
{
    return cli_model_path_of(values->model, path, err);
}

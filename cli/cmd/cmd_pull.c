/* cli/cmd/cmd_pull.c: `infer pull`: fetches a model into the user's folder and prints its path. */
#include "cli/commands.h"
#include "cli/model_path.h"
#include "cli/pull/pull.h"
#include "cli/sandbox.h"
#include "cli/system.h"
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

/* Appends the folder and creates it if it is missing. */
static bool make_folder(struct base_buffer *folder, struct base_error *err)
{
    if (!cli_model_folder(folder))
        return base_fail(err, BASE_USAGE,
                         "no folder for models: neither HOME nor XDG_DATA_HOME is set");
    if (!cli_buffer_check(folder, err)) return false;
    int failed = 0;
    for (char *c = folder->data + 1; !failed; c++) {
        const char was = *c;
        if (was != '/' && was != '\0') continue;
        *c = '\0';
        if (mkdir(folder->data, 0777) != 0 && errno != EEXIST) failed = errno;
        *c = was;
        if (was == '\0') break;
    }
    if (!failed) return true;
    base_fail(err, BASE_FAILED, "cannot make the folder: %s", strerror(failed));
    base_error_set_file(err, folder->data);
    return false;
}

/* Reads the token from the environment, by the names that other programs for the hub use. It is
 * never printed. */
static bool read_token(const char **token, struct base_error *err)
{
    const char *text = getenv("HF_TOKEN");
    *token = text && *text ? text : NULL;
    for (const char *c = text; c && *c; c++)
        if (*c <= ' ' || *c >= 0x7f)
            return base_fail_at(err, BASE_USAGE, "HF_TOKEN", -1, "is no token");
    return true;
}

static bool is_digest(const char *text)
{
    return strspn(text, "0123456789abcdefABCDEF") == strlen(text) &&
           strlen(text) == BASE_SHA256_HEX - 1;
}

static bool find_files(struct cli_http *h, const struct cli_values *v, struct cli_hub_files *files,
                       struct base_error *err)
{
    const char *what = v->argument[0];
    if (strstr(what, "://")) return cli_hub_from_url(what, v->as, v->sha256, files, err);
    if (v->sha256)
        return base_fail_at(err, BASE_USAGE, "--sha256", -1,
                            "is for addresses: the hub names the sums of its files");
    return cli_hub_find(h, v->hub, what, files, err) &&
           (!v->as || cli_hub_rename(files, v->as, err));
}

bool cli_cmd_pull(const struct cli_values *values, struct base_error *err)
{
    struct base_buffer folder = BASE_BUFFER_INIT;
    struct cli_hub_files files = {0};
    struct cli_http *http = NULL;
    struct cli_http_options options = {.hub = values->hub,
                                       .insecure = values->insecure,
                                       .retries = (int)values->retries,
                                       .timeout = values->timeout};
    if (values->sha256 && !is_digest(values->sha256))
        return base_fail_at(err, BASE_USAGE, "--sha256", -1, "is no sum: 64 hexadecimal digits");
    bool ok = read_token(&options.token, err) && make_folder(&folder, err);
    if (ok && !values->no_sandbox) cli_sandbox_limit_to(folder.data);
    /* A closed connection is an error of its call. */
    void (*const on_pipe)(int) = signal(SIGPIPE, SIG_IGN);
    if (ok) http = cli_http_new(&options, err);
    const struct cli_pull_options pull = {.folder = folder.data,
                                          .connections = (int)values->connections,
                                          .retries = (int)values->retries};
    ok = http && find_files(http, values, &files, err) && cli_pull(http, &files, &pull, err);
    cli_http_free(http);
    signal(SIGPIPE, on_pipe);
    if (ok) {
        base_buffer_add_format(&folder, "/%s\n", files.file[0].name.data);
        ok = cli_write_buffer(&folder, err);
    }
    cli_hub_free(&files);
    base_buffer_free(&folder);
    return ok;
}

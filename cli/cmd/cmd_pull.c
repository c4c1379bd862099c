/* cli/cmd/cmd_pull.c: `infer pull`: fetches a model into the user's folder and prints its path. */
#include "cli/model_path.h"
#include "cli/options.h"
#include "cli/pull/pull.h"
#include "cli/sandbox.h"
#include "cli/system.h"
#include "cli/user_folder.h"
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

enum { TOKEN_MAX = 4096 };

static bool make_folder(struct base_buffer *folder, struct base_error *err)
{
    if (cli_user_make_folder(folder->data, 0777)) return true;
    return base_fail_file(err, BASE_FAILED, folder->data, "cannot make the folder: %s",
                          strerror(errno));
}

/* ---- The hub and its token ---- */

static const char *variable(const char *name)
{
    const char *text = getenv(name);
    return text && *text ? text : NULL;
}

struct hub {
    const char *address, *usual; /* usual: without any setting */
    bool is_named;               /* by --hub or its variable */
};

/* HF_ENDPOINT is the variable of the hub's own tools. */
static struct hub find_hub(const struct cli_values *v)
{
    const char *other = variable("HF_ENDPOINT");
    size_t i = 0;
    while (cli_option_table[i].at != offsetof(struct cli_values, hub)) i++;
    return (struct hub){v->source[i].given || !other ? v->hub : other, cli_option_table[i].standard,
                        v->source[i].given};
}

/* Appends the path of the file in which the hub's own tools keep the token. */
static bool find_token_file(struct base_buffer *path)
{
    const char *file = variable("HF_TOKEN_PATH"), *own = variable("HF_HOME"),
               *cache = variable("XDG_CACHE_HOME"), *home = variable("HOME");
    if (file)
        base_buffer_add_text(path, file);
    else if (own)
        base_buffer_add_format(path, "%s/token", own);
    else if (cache)
        base_buffer_add_format(path, "%s/huggingface/token", cache);
    else if (home)
        base_buffer_add_format(path, "%s/.cache/huggingface/token", home);
    return path->size > 0 && !path->failed;
}

/* Reads the token from HF_TOKEN, or from the file if the hub is not another one by option. It is
 * never printed. */
static bool read_token(const struct hub *hub, struct base_buffer *token, struct base_error *err)
{
    BASE_LOCAL_BUFFER path = BASE_BUFFER_INIT;
    const char *text = variable("HF_TOKEN");
    bool ok = true;
    if (text)
        base_buffer_add_text(token, text);
    else if (!hub->is_named && find_token_file(&path) && access(path.data, F_OK) == 0)
        ok = cli_source_read(path.data, token, err);
    while (!text && token->size > 0 && strchr(" \r\n", token->data[token->size - 1]))
        token->data[--token->size] = '\0';
    ok = ok && cli_buffer_check(token, err) && cli_buffer_check(&path, err);
    bool is_token = token->size <= TOKEN_MAX;
    for (size_t i = 0; ok && i < token->size; i++)
        is_token &= token->data[i] > ' ' && token->data[i] < 0x7f;
    if (ok && !is_token)
        ok = base_fail_at(err, BASE_USAGE, text ? "HF_TOKEN" : path.data, -1, "is no token");
    return ok;
}

/* ---- What is fetched ---- */

/* Returns whether an address is that of a file, and not of a page about it. */
static bool is_file_address(const char *url)
{
    static const char suffix[] = ".gguf";
    const size_t size = strcspn(url, "?#"), end = sizeof suffix - 1;
    return !memmem(url, size, "/blob/", 6) && size > end &&
           strncasecmp(url + size - end, suffix, end) == 0;
}

/* Reads the argument; *is_address: it is no name of the hub. */
static bool read_name(const struct cli_values *v, const struct hub *hub, struct cli_hub_name *name,
                      bool *is_address, struct base_error *err)
{
    const char *const hubs[] = {hub->address, hub->usual, NULL};
    const char *what = v->argument[0];
    struct base_error wrong = BASE_ERROR_INIT;
    *is_address = strstr(what, "://") != NULL;
    if (*is_address && is_file_address(what)) return cli_hub_name_from_url(name, what, err);
    if (cli_hub_name_read(name, what, hubs, &wrong)) {
        *is_address = false;
        return !v->sha256 || base_fail_at(err, BASE_USAGE, "--sha256", -1,
                                          "is for addresses: the hub names the sums of its files");
    }
    /* The address of a file with another name. */
    cli_hub_name_free(name);
    if (*is_address && v->as) return cli_hub_name_from_url(name, what, err);
    *err = wrong;
    return false;
}

static bool fetch(const struct cli_values *v, const struct hub *hub,
                  const struct cli_hub_name *name, bool is_address, const char *folder,
                  struct base_buffer *path, struct base_error *err)
{
    struct cli_hub_files files = {0};
    BASE_LOCAL_BUFFER token = BASE_BUFFER_INIT;
    struct cli_http_options options = {
        .hub = hub->address, .insecure = v->insecure, .timeout = v->timeout};
    const struct cli_pull_options pull = {
        .folder = folder, .connections = (int)v->connections, .retries = (int)v->retries};
    bool ok = read_token(hub, &token, err);
    if (token.size > 0) options.token = token.data;
    if (ok && !v->no_sandbox) cli_sandbox_limit_to(folder);
    /* A closed connection is an error of its call. */
    void (*const on_pipe)(int) = signal(SIGPIPE, SIG_IGN);
    struct cli_http *http = ok ? cli_http_new(&options, err) : NULL;
    if (is_address)
        ok = http && cli_hub_from_url(v->argument[0], v->as, v->sha256, &files, err);
    else
        ok = http && cli_hub_find(http, hub->address, name, pull.retries, &files, err) &&
             (!v->as || cli_hub_rename(&files, v->as, err));
    ok = ok && cli_pull(http, name, &files, &pull, err);
    cli_http_free(http);
    signal(SIGPIPE, on_pipe);
    if (ok) base_buffer_add_format(path, "%s/%s", folder, files.file[0].name.data);
    cli_hub_free(&files);
    return ok && cli_buffer_check(path, err);
}

/* Sets v->as to NAME of --as with the suffix of model files, which may be left out. */
static bool complete_name(struct cli_values *v, struct base_buffer *name, struct base_error *err)
{
    const size_t n = v->as ? strlen(v->as) : 0;
    if (!v->as || (n >= 5 && strcasecmp(v->as + n - 5, ".gguf") == 0)) return true;
    base_buffer_add_format(name, "%s.gguf", v->as);
    v->as = name->data;
    return cli_buffer_check(name, err);
}

static bool cmd_pull(struct cli_values *values, struct base_error *err)
{
    BASE_LOCAL_BUFFER as = BASE_BUFFER_INIT;
    BASE_LOCAL_BUFFER folder = BASE_BUFFER_INIT, path = BASE_BUFFER_INIT;
    struct cli_hub_name name = {.quant = BASE_BUFFER_INIT};
    const struct hub hub = find_hub(values);
    bool is_address;
    if (values->sha256 && !base_sha256_is_hex(values->sha256))
        return base_fail_at(err, BASE_USAGE, "--sha256", -1, "is no sum: 64 hexadecimal digits");
    bool ok =
        cli_model_folder(&folder) ||
        base_fail(err, BASE_USAGE, "no folder for models: neither HOME nor XDG_DATA_HOME is set");
    ok = ok && complete_name(values, &as, err) && cli_buffer_check(&folder, err) &&
         read_name(values, &hub, &name, &is_address, err);
    const bool is_here =
        ok && !values->sha256 && cli_origin_find(&name, folder.data, values->as, true, &path, err);
    ok = ok && !err->code &&
         (is_here || (make_folder(&folder, err) &&
                      fetch(values, &hub, &name, is_address, folder.data, &path, err)));
    if (ok) {
        base_buffer_add_text(&path, "\n");
        ok = cli_write_buffer(&path, err);
    }
    cli_hub_name_free(&name);
    return ok;
}

const struct cli_command cli_command_pull = {
    .name = "pull",
    .usage = "infer pull USER/REPO[@REVISION][:QUANT] | URL [options]",
    .effect = "fetch a model from the hub, or from an address",
    .about = "Fetches a GGUF file (of a split model all parts) into the folder that `infer\n"
             "models` lists, verifies its checksum, and prints its path. QUANT is a part of\n"
             "the file name, such as Q4_K_M, or all of it; the default is Q4_K_M, Q8_0 or the\n"
             "first file. A file that is there needs no network. An interrupted download\n"
             "continues at the next call. A token is read from HF_TOKEN, or from the file of\n"
             "the hub's own tools, and sent only to the hub.",
    .min_arguments = 1,
    .max_arguments = 1,
    .run = cmd_pull,
};

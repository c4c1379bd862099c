/* cli/pull/hub.c: names and file lists of the hub. See cli/pull/hub.h. */
#include "cli/pull/hub.h"
#include "base/interrupt.h"
#include "base/list.h"
#include "cli/system.h"
#include "text/json/json_load.h"
#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

enum {
    LIST_MAX = 16 << 20, /* largest list in bytes, all pages together */
    PAGES_MAX = 100,
    TEXT_MAX = 1024, /* largest text in it in bytes */
    PARTS_MAX = 999,
    SPLIT_SIZE = 20 /* "-00001-of-00003.gguf" */
};
static const char suffix[] = ".gguf";

/* ---- Names ---- */

static const char *last_part(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

static bool is_gguf(const char *name)
{
    const size_t n = strlen(name), end = sizeof suffix - 1;
    return n > end && strcasecmp(name + n - end, suffix) == 0;
}

/* Parses NAME-0000I-of-0000N.gguf: sets I and N and returns the length of NAME; otherwise I and N
 * are 1. */
static size_t split_of(const char *name, int *index, int *count)
{
    const size_t n = strlen(name);
    const char *part = n > SPLIT_SIZE ? name + n - SPLIT_SIZE : "";
    int end = 0;
    *index = *count = 1;
    if (part[0] == '-' && strspn(part + 1, "0123456789") == 5 &&
        strncmp(part + 6, "-of-", 4) == 0 && strspn(part + 10, "0123456789") == 5 &&
        sscanf(part, "-%5d-of-%5d%n", index, count, &end) == 2 && end == SPLIT_SIZE - 5)
        return n - SPLIT_SIZE;
    *index = *count = 1;
    return n - (sizeof suffix - 1);
}

static void set_digest(char out[BASE_SHA256_HEX], const char *text)
{
    for (int i = 0; i < BASE_SHA256_HEX; i++) out[i] = (char)tolower((unsigned char)text[i]);
}

/* ---- Lists ---- */

static struct cli_hub_file *add_file(struct cli_hub_files *files, struct base_error *err)
{
    if (!BASE_LIST_ROOM(files->file, files->count, files->room))
        return base_null(base_fail(err, BASE_NO_MEMORY, "not enough memory for a list of files"));
    struct cli_hub_file *f = &files->file[files->count++];
    *f = (struct cli_hub_file){.version.size = -1};
    return f;
}

static void free_file(struct cli_hub_file *f)
{
    base_buffer_free(&f->url);
    base_buffer_free(&f->name);
}

void cli_hub_free(struct cli_hub_files *files)
{
    for (size_t i = 0; i < files->count; i++) free_file(&files->file[i]);
    free(files->file);
    base_buffer_free(&files->path);
    *files = (struct cli_hub_files){0};
}

static bool check_file(const struct cli_hub_file *f, struct base_error *err)
{
    return cli_buffer_check(&f->url, err) && cli_buffer_check(&f->name, err);
}

/* Returns the text of a member; "" if there is none, it contains a zero character, or it is too
 * long. */
static const char *text_of(const json_t *object, const char *name)
{
    const json_t *text = json_object_get(object, name);
    const size_t size = json_string_length(text);
    return size && size < TEXT_MAX && strlen(json_string_value(text)) == size
               ? json_string_value(text)
               : "";
}

/* Adds an entry of a list if it may be a model file. */
static bool read_entry(const json_t *entry, struct cli_hub_files *all, struct base_error *err)
{
    static const char *const others[] = {"mmproj", "imatrix"}; /* words in their paths */
    const char *path = text_of(entry, "path"), *name = last_part(path);
    if (strcmp(text_of(entry, "type"), "file") != 0 || !is_gguf(name) || !cli_hub_is_path(path))
        return true;
    for (size_t k = 0; k < sizeof others / sizeof *others; k++)
        if (strcasestr(name, others[k])) return true;
    struct cli_hub_file *f = add_file(all, err);
    if (!f) return false;
    base_buffer_add_text(&f->url, path);
    base_buffer_add_text(&f->name, name);
    const json_t *lfs = json_object_get(entry, "lfs");
    const json_t *size = json_object_get(lfs ? lfs : entry, "size");
    if (json_is_integer(size) && json_integer_value(size) >= 0)
        f->version.size = json_integer_value(size);
    const char *oid = text_of(lfs, "oid");
    if (base_sha256_is_hex(oid)) set_digest(f->version.sha256, oid);
    return check_file(f, err);
}

/* Adds the files of a page of the list that may be models, with their paths as `url`. */
static bool read_page(const char *text, size_t size, struct cli_hub_files *all,
                      struct base_error *err)
{
    json_error_t wrong;
    json_t *list = text_json_load(text, size, JSON_DECODE_ANY | JSON_ALLOW_NUL, &wrong), *entry;
    size_t i;
    if (!list && errno == ENOMEM)
        return base_fail(err, BASE_NO_MEMORY, "not enough memory for the hub's list of files");
    if (!list)
        return base_fail(err, BASE_FAILED,
                         "the hub's list of files is not JSON: line %d, column %d: %s", wrong.line,
                         wrong.column, wrong.text);
    bool ok = json_is_array(list) ||
              base_fail(err, BASE_FAILED, "the hub's answer is not a list of files");
    json_array_foreach(list, i, entry) ok = ok && base_goes_on(err) && read_entry(entry, all, err);
    json_decref(list);
    return ok;
}

/* ---- Choice of a model ---- */

/* Returns the only model that fits. NULL with an error that lists them if several fit; NULL if none
 * does. Only first parts count. */
static const struct cli_hub_file *find_fitting(const struct cli_hub_files *all, const char *quant,
                                               struct base_error *err)
{
    BASE_LOCAL_BUFFER names = BASE_BUFFER_INIT;
    const struct cli_hub_file *found = NULL;
    size_t n = 0;
    for (size_t i = 0; i < all->count; i++) {
        int index, count;
        const struct cli_hub_file *f = &all->file[i];
        if (!base_goes_on(err)) break;
        split_of(f->name.data, &index, &count);
        if (index == 1 && quant && strcmp(f->url.data, quant) == 0) { /* the whole path */
            found = f;
            n = 1;
            break;
        }
        if (index != 1 || (quant && !cli_hub_fits(f->url.data, quant))) continue;
        if (n++ == 0 || strcmp(f->url.data, found->url.data) < 0) found = f;
        base_buffer_add_format(&names, "%s%s", names.size ? ", " : "", f->url.data);
    }
    if (n > 1 && quant)
        base_fail(err, BASE_USAGE, "%s fits several files; give one by its name: %s", quant,
                  names.failed ? "" : names.data);
    return (n > 1 && quant) || err->code ? NULL : found;
}

static bool fail_none(const struct cli_hub_files *all, const char *quant, struct base_error *err)
{
    BASE_LOCAL_BUFFER names = BASE_BUFFER_INIT;
    for (size_t i = 0; i < all->count; i++) {
        int index, count;
        split_of(all->file[i].name.data, &index, &count);
        if (index == 1)
            base_buffer_add_format(&names, "%s%s", names.size ? ", " : "", all->file[i].url.data);
    }
    if (!names.size)
        base_fail(err, BASE_MODEL, "the repository has no GGUF file");
    else
        base_fail(err, BASE_MODEL, "no file is %s; there are: %s", quant, names.data);
    return false;
}

static const struct cli_hub_file *choose(const struct cli_hub_files *all, const char *quant,
                                         struct base_error *err)
{
    static const char *const usual[] = {CLI_HUB_USUAL, "Q8_0", NULL};
    const struct cli_hub_file *found = NULL;
    if (*quant) {
        found = find_fitting(all, quant, err);
    } else {
        for (size_t i = 0; !found && !err->code && i < sizeof usual / sizeof *usual; i++)
            found = find_fitting(all, usual[i], err);
    }
    if (!found && !err->code) fail_none(all, quant, err);
    return found;
}

/* Finds the parts of the model that begins with `first`, count > 1 of them; NULL: not in the list.
 */
static bool find_parts(const struct cli_hub_files *all, const struct cli_hub_file *first, int count,
                       const struct cli_hub_file **part, struct base_error *err)
{
    int index, n;
    const size_t stem = split_of(first->url.data, &index, &n);
    for (size_t k = 0; k < all->count; k++) {
        const struct cli_hub_file *f = &all->file[k];
        const size_t size = split_of(f->url.data, &index, &n);
        if (!base_goes_on(err)) return false;
        if (n == count && index >= 1 && index <= count && size == stem && !part[index - 1] &&
            memcmp(f->url.data, first->url.data, stem) == 0)
            part[index - 1] = f;
    }
    return true;
}

/* Adds the files of a model: its address at the hub, name and version. */
static bool add_parts(const struct cli_hub_file **part, int count, const char *hub,
                      const struct cli_hub_name *name, struct cli_hub_files *files,
                      struct base_error *err)
{
    for (int i = 0; i < count; i++) {
        if (!part[i])
            return base_fail(err, BASE_MODEL, "%s: part %d of %d is not in the repository",
                             part[0]->name.data, i + 1, count);
        struct cli_hub_file *f = add_file(files, err);
        if (!f) return false;
        base_buffer_add_format(&f->url, "%s/%s/resolve/", hub, name->repository.data);
        cli_hub_add_encoded(&f->url, name->revision.data, "");
        base_buffer_add_text(&f->url, "/");
        cli_hub_add_encoded(&f->url, part[i]->url.data, "/");
        base_buffer_add_text(&f->name, part[i]->name.data);
        f->version = part[i]->version;
        if (!check_file(f, err)) return false;
    }
    base_buffer_add_text(&files->path, part[0]->url.data);
    return cli_buffer_check(&files->path, err);
}

/* Adds all parts of the model that begins with `first`. */
static bool take_parts(const struct cli_hub_files *all, const struct cli_hub_file *first,
                       const char *hub, const struct cli_hub_name *name,
                       struct cli_hub_files *files, struct base_error *err)
{
    int index, count;
    split_of(first->name.data, &index, &count);
    if (count < 1 || count > PARTS_MAX)
        return base_fail(err, BASE_MODEL, "%s: not a number of parts", first->name.data);
    const struct cli_hub_file **part = calloc((size_t)count, sizeof *part);
    if (!part) return base_fail(err, BASE_NO_MEMORY, "not enough memory for a list of files");
    part[0] = first;
    const bool ok = (count == 1 || find_parts(all, first, count, part, err)) &&
                    add_parts(part, count, hub, name, files, err);
    free(part);
    return ok;
}

/* ---- The hub ---- */

static bool begin_list(struct cli_http_request *r)
{
    base_buffer_clear(r->user);
    return true;
}

static bool check_size(size_t size, struct base_error *err)
{
    return size <= LIST_MAX ||
           base_fail(err, BASE_FAILED, "the hub's list of files is longer than %d MiB",
                     LIST_MAX >> 20);
}

static bool take_list(struct cli_http_request *r, const char *bytes, size_t size)
{
    struct base_buffer *text = r->user;
    if (!check_size(text->size + size, &r->error)) return false;
    base_buffer_add(text, bytes, size);
    return cli_buffer_check(text, &r->error);
}

bool cli_hub_refusal(const struct cli_http_request *r, struct base_error *err)
{
    const struct cli_http_answer *a = &r->answer;
    switch (a->status) {
    case 401:
    case 403:
        return base_fail_at(err, BASE_MODEL, r->host, -1,
                            "no access (status %d): it does not exist, or needs a token (HF_TOKEN)",
                            a->status);
    case 404:
    case 410:
        return base_fail_at(err, BASE_MODEL, r->host, -1, "not found (status %d)", a->status);
    case 429:
    case 503:
        if (a->wait >= 0)
            return base_fail_at(err, BASE_FAILED, r->host, -1,
                                "too many requests, or too busy (status %d): try again in %lld "
                                "seconds",
                                a->status, (long long)a->wait);
        break;
    default:
        break;
    }
    return base_fail_at(err, BASE_FAILED, r->host, -1, "answered with status %d", a->status);
}

/* Reads a page of the list; sets `url` to the address of the next page, or empty. */
static bool fetch_page(struct cli_http *h, const char *hub, int retries, struct base_buffer *url,
                       struct base_buffer *text, struct base_error *err)
{
    const size_t n = strlen(hub);
    struct cli_http_request r = {
        .url = url->data, .begin = begin_list, .take = take_list, .user = text};
    if (!cli_http_get(h, &r, retries, err)) return false;
    if (r.answer.status != 200) return cli_hub_refusal(&r, err);
    const char *next = r.answer.next;
    if (*next && (strncmp(next, hub, n) != 0 || next[n] != '/'))
        return base_fail_at(err, BASE_FAILED, r.host, -1, "its list of files goes on elsewhere");
    base_buffer_clear(url);
    base_buffer_add_text(url, next);
    return cli_buffer_check(url, err);
}

static bool fetch_list(struct cli_http *h, const char *hub, const struct cli_hub_name *name,
                       int retries, struct cli_hub_files *all, struct base_error *err)
{
    BASE_LOCAL_BUFFER url = BASE_BUFFER_INIT, text = BASE_BUFFER_INIT;
    base_buffer_add_format(&url, "%s/api/models/%s/tree/", hub, name->repository.data);
    cli_hub_add_encoded(&url, name->revision.data, "");
    base_buffer_add_text(&url, "?recursive=1");
    bool ok = cli_buffer_check(&url, err);
    size_t total = 0;
    for (int page = 0; ok && url.size > 0; page++) {
        ok = page < PAGES_MAX ? fetch_page(h, hub, retries, &url, &text, err)
                              : base_fail(err, BASE_FAILED,
                                          "the hub's list of files has more than %d pages", page);
        total += text.size;
        ok = ok && check_size(total, err) &&
             read_page(text.size ? text.data : "", text.size, all, err);
    }
    return ok;
}

bool cli_hub_find(struct cli_http *h, const char *hub, const struct cli_hub_name *name, int retries,
                  struct cli_hub_files *files, struct base_error *err)
{
    BASE_LOCAL_BUFFER base = BASE_BUFFER_INIT;
    struct cli_hub_files all = {0};
    size_t n = strlen(hub);
    while (n > 0 && hub[n - 1] == '/') n--;
    base_buffer_add(&base, hub, n);
    const struct cli_hub_file *first = NULL;
    if (cli_buffer_check(&base, err) && fetch_list(h, base.data, name, retries, &all, err))
        first = choose(&all, name->quant.size ? name->quant.data : "", err);
    const bool ok = first && take_parts(&all, first, base.data, name, files, err);
    if (!ok) base_error_set_file(err, name->repository.data);
    cli_hub_free(&all);
    return ok;
}

/* ---- Addresses ---- */

static bool check_name(const struct base_buffer *name, struct base_error *err)
{
    const char *text = name->size ? name->data : "";
    return (cli_hub_is_name(text, name->size) && is_gguf(text)) ||
           base_fail_at(err, BASE_USAGE, text, -1,
                        "is not the name of a model file: give one that ends in .gguf (--as NAME)");
}

bool cli_hub_from_url(const char *url, const char *as, const char *sha256,
                      struct cli_hub_files *files, struct base_error *err)
{
    BASE_LOCAL_BUFFER name = BASE_BUFFER_INIT;
    const char *path = strstr(url, "://") + 3;
    const size_t end = strcspn(path, "?#");
    size_t start = end;
    while (start > 0 && path[start - 1] != '/') start--;
    if (as)
        base_buffer_add_text(&name, as);
    else if (start > 0)
        cli_hub_add_decoded(&name, path + start, end - start);
    bool ok = cli_buffer_check(&name, err) && check_name(&name, err);
    int index = 1, count = 1;
    const size_t stem = ok && !as ? split_of(name.data, &index, &count) : 0;
    /* The parts of a split model differ only in digits, which are never percent-encoded. */
    const bool is_split =
        count > 1 && index == 1 && count <= PARTS_MAX && end - start >= SPLIT_SIZE;
    if (ok && is_split && sha256)
        ok = base_fail(err, BASE_USAGE, "--sha256 is of one file, and this model has %d", count);
    for (int i = 1; ok && i <= (is_split ? count : 1); i++) {
        struct cli_hub_file *f = add_file(files, err);
        if (!f) {
            ok = false;
            break;
        }
        if (is_split) {
            const size_t before = (size_t)(path - url) + end - SPLIT_SIZE;
            base_buffer_add(&f->url, url, before);
            base_buffer_add_format(&f->url, "-%05d-of-%05d.gguf%s", i, count, path + end);
            base_buffer_add(&f->name, name.data, stem);
            base_buffer_add_format(&f->name, "-%05d-of-%05d.gguf", i, count);
        } else {
            base_buffer_add_text(&f->url, url);
            base_buffer_add(&f->name, name.data, name.size);
        }
        if (sha256) set_digest(f->version.sha256, sha256);
        ok = check_file(f, err);
    }
    return ok;
}

bool cli_hub_rename(struct cli_hub_files *files, const char *as, struct base_error *err)
{
    if (files->count != 1)
        return base_fail_at(err, BASE_USAGE, "--as", -1, "is for one file, and this model has %zu",
                            files->count);
    struct base_buffer *name = &files->file[0].name;
    base_buffer_clear(name);
    base_buffer_add_text(name, as);
    return cli_buffer_check(name, err) && check_name(name, err);
}

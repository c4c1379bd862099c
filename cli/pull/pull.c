/* cli/pull/pull.c: fetches files. See cli/pull/pull.h. */
#include "cli/pull/pull.h"
#include "base/clock.h"
#include "base/interrupt.h"
#include "cli/progress.h"
#include "cli/system.h"
#include "cli/terminal.h"
#include "gguf/gguf.h"
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

enum {
    RANGE_MIN = 1 << 20, /* bytes; a small file uses fewer connections */
    RANGE_MAX = 64 << 20,
    PROGRESS = 1 << 20, /* bytes after which the number of failures is reset */
    STEP_MS = 100,
    RANGE_TEXT = 48
};

struct download;

struct file_range {
    struct cli_http_request request;
    struct download *d;
    uint64_t at, to; /* bytes [at, to) are missing; to UINT64_MAX: up to the end */
    bool used, running;
    int failures;      /* number of failures without progress that is kept */
    uint64_t progress; /* `at` when counting began */
    double start_at;   /* earliest time of the next attempt */
    char bytes[RANGE_TEXT];
};

struct download {
    struct cli_http *http;
    const struct cli_pull_options *options;
    const struct cli_hub_file *file;
    struct cli_partial partial;
    bool has_ranges;
    bool changed;  /* the version of the file has changed */
    uint64_t next; /* bytes from here on have no range; with an unknown size 0 or UINT64_MAX */
    struct file_range range[CLI_HTTP_REQUESTS];
};

static void begin_progress(const struct download *d, const char *what, int64_t total, uint64_t done)
{
    BASE_LOCAL_BUFFER name = BASE_BUFFER_INIT;
    cli_progress_begin(what, "bytes", total > 0 ? (uint64_t)total : 0);
    cli_progress_skip(done);
    cli_show(&name, d->file->name.data, d->file->name.size, false);
    cli_progress_note("%.*s", 24, name.size ? name.data : "");
}

/* ---- Ranges ---- */

static bool fail_here(struct file_range *p, bool again, const char *text)
{
    p->request.again = again;
    return base_fail_at(&p->request.error, BASE_FAILED, p->request.host, -1, "%s", text);
}

/* Handles the header of a response with status 200 or 206. */
static bool begin_range(struct cli_http_request *r)
{
    struct file_range *p = r->user;
    struct download *d = p->d;
    const struct cli_http_answer *a = &r->answer;
    const struct cli_version *v = &d->partial.version;
    if (r->range && (a->status != 206 || strcmp(a->validator, v->validator) != 0)) {
        d->changed = true;
        return fail_here(p, true, "the file changed while it was fetched");
    }
    const bool fits = r->range
                          ? a->first == (int64_t)p->at && (a->total < 0 || a->total == v->size) &&
                                (a->size < 0 || a->size == (int64_t)(p->to - p->at))
                          : a->size < 0 || v->size < 0 || a->size == v->size;
    return fits || fail_here(p, false, "it sends another part of the file than it was asked for");
}

static bool take_range(struct cli_http_request *r, const char *bytes, size_t size)
{
    struct file_range *p = r->user;
    if (size > p->to - p->at) return fail_here(p, false, "it sends more bytes than the file has");
    if (!cli_partial_write(&p->d->partial, p->at, bytes, size, &r->error)) return false;
    p->at += size;
    /* Without ranges a file that breaks off begins again: nothing of it counts. */
    if (p->d->has_ranges && p->at - p->progress >= PROGRESS) {
        p->progress = p->at;
        p->failures = 0;
    }
    return true;
}

static void start_range(struct file_range *p)
{
    struct download *d = p->d;
    const struct cli_version *v = &d->partial.version;
    p->request = (struct cli_http_request){
        .url = d->file->url.data, .begin = begin_range, .take = take_range, .user = p};
    if (d->has_ranges) {
        snprintf(p->bytes, sizeof p->bytes, "%" PRIu64 "-%" PRIu64, p->at, p->to - 1);
        p->request.range = p->bytes;
        if (v->validator[0]) p->request.if_range = v->validator;
    }
    p->running = cli_http_start(d->http, &p->request);
}

/* Starts pieces on free connections. */
static void start_ranges(struct download *d)
{
    const int64_t size = d->partial.version.size;
    const int most = d->has_ranges ? d->options->connections : 1;
    const uint64_t end = size >= 0 ? (uint64_t)size : UINT64_MAX;
    uint64_t length = end / (unsigned)most + 1;
    if (length < RANGE_MIN) length = RANGE_MIN;
    if (length > RANGE_MAX) length = RANGE_MAX;
    for (int i = 0; i < most; i++) {
        struct file_range *p = &d->range[i];
        if (!p->used && d->next < end) {
            const uint64_t to = d->has_ranges && end - d->next > length ? d->next + length : end;
            *p = (struct file_range){.d = d, .used = true, .at = d->next, .to = to};
            p->progress = p->at;
            d->next = to;
        }
        if (p->used && !p->running && base_seconds() >= p->start_at) start_range(p);
    }
}

/* Returns the number of complete bytes from the beginning. */
static uint64_t done_of(const struct download *d)
{
    uint64_t done = d->next;
    for (int i = 0; i < CLI_HTTP_REQUESTS; i++)
        if (d->range[i].used && d->range[i].at < done) done = d->range[i].at;
    return done;
}

/* Handles a response with a status other than 200 and 206. */
static void check_status(struct file_range *p)
{
    const int status = p->request.answer.status;
    if (status == 200 || status == 206) return;
    if (status == 416 || status == 412) p->d->changed = true;
    p->request.again |= p->d->changed;
    cli_hub_refusal(&p->request, &p->request.error);
}

/* Schedules the next attempt of a range that failed; false if it has failed too often. */
static bool delay(struct file_range *p)
{
    if (!p->request.again || p->failures >= p->d->options->retries) return false;
    p->start_at = base_seconds() + cli_http_pause(&p->request, p->failures++);
    return true;
}

static bool end_range(struct download *d, struct file_range *p, struct base_error *err)
{
    p->running = false;
    if (!p->request.error.code) check_status(p);
    if (!p->request.error.code && p->to == UINT64_MAX) {
        p->to = p->at; /* the size is now known */
        d->next = p->at;
        d->partial.version.size = (int64_t)p->at;
    }
    if (!p->request.error.code && p->at < p->to) fail_here(p, true, "it broke off");
    if (!p->request.error.code) {
        p->used = false;
        return true;
    }
    if (!d->changed && delay(p)) {
        if (d->has_ranges) return true;
        p->at = p->progress = 0;
        return cli_partial_clear(&d->partial, err);
    }
    if (err && !err->code) *err = p->request.error;
    return false;
}

/* ---- A file ---- */

/* Checks the first bytes as soon as there are four bytes. */
static bool check_magic(const struct download *d, struct base_error *err)
{
    char magic[4] = "";
    if (d->partial.done < 4) return true;
    if (pread(d->partial.fd, magic, 4, 0) == 4 && gguf_is_magic(magic)) return true;
    return base_fail_file(err, BASE_MODEL, d->file->name.data,
                          "not a GGUF file: it begins with \"%.4s\"", magic);
}

static bool transfer(struct download *d, struct base_error *err)
{
    const struct cli_partial *p = &d->partial;
    bool is_checked = false;
    d->next = p->done;
    for (int i = 0; i < CLI_HTTP_REQUESTS; i++) d->range[i].used = false;
    for (;;) {
        start_ranges(d);
        struct cli_http_request *r = cli_http_wait(d->http, STEP_MS);
        const bool ok = !r || end_range(d, r->user, err);
        const uint64_t done = done_of(d);
        d->partial.done = done; /* kept even if the rest fails */
        if (!ok) return false;
        if (!base_goes_on(err) || !cli_partial_advance(&d->partial, done, err)) return false;
        if (!is_checked && !check_magic(d, err)) {
            cli_partial_clear(&d->partial, err);
            return false;
        }
        is_checked = done >= 4;
        cli_progress_set(done);
        if (p->version.size >= 0 && done == (uint64_t)p->version.size) return true;
    }
}

static bool stop_at_head(struct cli_http_request *r)
{
    (void)r;
    return false;
}

/* Requests the first byte: finds the version of the file, and whether the server supports ranges.
 */
static bool probe(struct download *d, struct cli_version *version, struct base_error *err)
{
    struct file_range p = {.d = d, .request = {.range = "0-0", .begin = stop_at_head}};
    const struct cli_http_answer *a = &p.request.answer;
    const char *host = p.request.host;
    p.request.url = d->file->url.data;
    if (!cli_http_get(d->http, &p.request, d->options->retries, err)) return false;
    check_status(&p);
    if (p.request.error.code) {
        *err = p.request.error;
        return false;
    }
    d->has_ranges = a->status == 206 && a->first == 0 && a->total >= 0;
    *version = d->file->version;
    const int64_t size = d->has_ranges ? a->total : a->status == 200 ? a->size : -1;
    strcpy(version->validator, a->validator);
    if (!version->sha256[0]) strcpy(version->sha256, a->sha256);
    if (version->size < 0) version->size = a->linked >= 0 ? a->linked : size;
    const int64_t other = size >= 0 && size != version->size ? size : a->linked;
    if (other >= 0 && other != version->size)
        return base_fail_at(err, BASE_FAILED, host, -1,
                            "it says that the file has %lld bytes, and the list %lld",
                            (long long)other, (long long)version->size);
    if (a->sha256[0] && strcmp(a->sha256, version->sha256) != 0)
        return base_fail_at(err, BASE_MODEL, host, -1, "it names the sha256 %s, not %s", a->sha256,
                            version->sha256);
    return true;
}

/* Checks the free space on the disk before anything is written. */
static bool check_room(const struct download *d, struct base_error *err)
{
    struct statvfs fs;
    const struct cli_partial *p = &d->partial;
    if (p->version.size < 0 || fstatvfs(p->fd, &fs) != 0) return true;
    const double need = (double)p->version.size - (double)p->done;
    const double free_bytes = (double)fs.f_bavail * (double)fs.f_frsize;
    if (need <= free_bytes) return true;
    return base_fail_file(err, BASE_FAILED, d->options->folder,
                          "%.1f MB more are needed, and the disk has %.1f MB", need / 1e6,
                          free_bytes / 1e6);
}

/* Hashes the bytes that were not hashed during the transfer. */
static bool hash_rest(struct download *d, struct base_error *err)
{
    begin_progress(d, "checking", (int64_t)d->partial.done, d->partial.hashed);
    for (bool over = false; !over;) {
        if (!cli_partial_hash(&d->partial, &over, err)) return false;
        cli_progress_set(d->partial.hashed);
    }
    return true;
}

/* Makes one attempt, from the header to the checksum. */
static bool fetch_once(struct download *d, struct base_error *err)
{
    struct cli_version version;
    d->changed = false;
    if (!probe(d, &version, err)) return false;
    if (d->partial.fd < 0 &&
        !cli_partial_open(&d->partial, d->options->folder, d->file->name.data, err))
        return false;
    if (!cli_partial_begin(&d->partial, &version, err)) return false;
    if (!d->has_ranges && d->partial.done > 0 && d->partial.done != (uint64_t)version.size &&
        !cli_partial_clear(&d->partial, err))
        return false;
    if (!check_room(d, err) || !hash_rest(d, err)) return false;
    begin_progress(d, "fetching", version.size, d->partial.done);
    const bool ok = transfer(d, err);
    cli_http_stop(d->http);
    return ok && hash_rest(d, err) && cli_partial_check(&d->partial, err);
}

/* Checks that a single file contains a model; the parts of a split one refer to each other by
 * name. */
static bool check_header(struct download *d, const char *path, bool removes, struct base_error *err)
{
    struct base_error wrong = BASE_ERROR_INIT;
    struct gguf_file *file = gguf_open(path, &wrong);
    gguf_close(file);
    if (file) return true;
    if (removes && wrong.code == BASE_MODEL) cli_partial_clear(&d->partial, err);
    base_error_set_file(&wrong, path);
    if (err && !err->code) *err = wrong;
    return false;
}

static bool fetch_file(struct download *d, bool is_only, struct base_error *err)
{
    struct base_error failed = BASE_ERROR_INIT;
    bool ok = fetch_once(d, &failed);
    for (int i = 0; !ok && d->changed && i < d->options->retries; i++) {
        failed = (struct base_error)BASE_ERROR_INIT;
        ok = cli_partial_clear(&d->partial, &failed) && fetch_once(d, &failed);
    }
    if (!ok && err && !err->code) *err = failed;
    ok = ok && (!is_only || check_header(d, d->partial.part.data, true, err)) &&
         cli_partial_rename(&d->partial, err);
    cli_progress_end();
    cli_partial_close(&d->partial);
    return ok;
}

/* ---- Existing files ---- */

/* Returns in *there whether a file of the name exists; fails if it has another checksum. */
static bool is_there(struct download *d, const char *path, bool *there, struct base_error *err)
{
    const struct cli_version *v = &d->file->version;
    struct stat st;
    *there = stat(path, &st) == 0;
    if (!*there) return true;
    struct cli_partial whole = {.fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK),
                                .state_fd = -1};
    char sum[BASE_SHA256_HEX] = "";
    bool over = whole.fd < 0 || !S_ISREG(st.st_mode) || !v->sha256[0] ||
                (v->size >= 0 && v->size != st.st_size);
    const bool may_be_same = !over;
    whole.done = (uint64_t)st.st_size;
    begin_progress(d, "checking", st.st_size, 0);
    base_buffer_add_text(&whole.part, path);
    base_sha256_init(&whole.hash);
    bool ok = cli_buffer_check(&whole.part, err);
    while (ok && !over) {
        ok = cli_partial_hash(&whole, &over, err);
        cli_progress_set(whole.hashed);
    }
    cli_progress_end();
    base_sha256_hex(&whole.hash, sum);
    if (whole.fd >= 0) close(whole.fd);
    base_buffer_free(&whole.part);
    if (!ok || (may_be_same && strcmp(sum, v->sha256) == 0)) return ok;
    return base_fail_file(
        err, BASE_FAILED, path,
        "is there already%s: remove it (infer models --remove), or give another name (--as)",
        v->sha256[0] ? ", and is another file" : "");
}

/* Records where the files came from. Without memory they are only found by their names. */
static void record(const struct cli_hub_name *name, const struct cli_hub_files *files,
                   const char *folder)
{
    const char **names = calloc(files->count, sizeof *names);
    for (size_t i = 0; names && i < files->count; i++) names[i] = files->file[i].name.data;
    if (names)
        cli_origin_write(name, files->path.size ? files->path.data : "", folder, names,
                         files->count);
    free(names);
}

bool cli_pull(struct cli_http *h, const struct cli_hub_name *name,
              const struct cli_hub_files *files, const struct cli_pull_options *o,
              struct base_error *err)
{
    BASE_LOCAL_BUFFER path = BASE_BUFFER_INIT;
    bool ok = true, fetched = false;
    /* The first part comes last: a model is found by its name (cli_model_is_listed). */
    for (size_t i = 1; ok && i <= files->count; i++) {
        const struct cli_hub_file *file = &files->file[i % files->count];
        struct download d = {.http = h, .options = o, .file = file};
        bool there = false;
        d.partial.fd = d.partial.state_fd = -1;
        base_buffer_clear(&path);
        base_buffer_add_format(&path, "%s/%s", o->folder, file->name.data);
        ok = cli_buffer_check(&path, err) && is_there(&d, path.data, &there, err) &&
             (there || fetch_file(&d, files->count == 1, err));
        fetched |= !there;
    }
    if (ok && fetched && files->count > 1) {
        base_buffer_clear(&path);
        base_buffer_add_format(&path, "%s/%s", o->folder, files->file[0].name.data);
        ok = cli_buffer_check(&path, err) && check_header(NULL, path.data, false, err);
    }
    if (ok) record(name, files, o->folder);
    return ok;
}

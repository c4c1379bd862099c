/* cli/pull/partial.c: partial files. See cli/pull/partial.h. */
#include "cli/pull/partial.h"
#include "base/interrupt.h"
#include "cli/system.h"
#include "cli/user_folder.h"
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
    STATE_SIZE = 1024,
    SAVE_EACH = 4 << 20, /* bytes */
    HASH_STEP = 1 << 16,
    HASH_EACH = 16 << 20 /* bytes hashed per call, so that connections are served in between */
};

static const char state_begin[] = CLI_PARTIAL_BEGIN;

static bool fail(const struct cli_partial *p, const char *what, struct base_error *err)
{
    if (errno == EINTR) base_goes_on(err);
    return base_fail_file(err, errno == ENOMEM ? BASE_NO_MEMORY : BASE_FAILED, p->part.data,
                          "cannot %s: %s", what, strerror(errno));
}

/* Returns whether the open file still has that name: another process may have renamed it. */
static bool is_current(int fd, const char *path)
{
    struct stat own, named;
    return fstat(fd, &own) == 0 && stat(path, &named) == 0 && own.st_dev == named.st_dev &&
           own.st_ino == named.st_ino;
}

/* Opens a file of the user. Fails if it may have been prepared by someone else. */
static int open_own(const struct cli_partial *p, const char *path, struct base_error *err)
{
    struct stat st;
    const int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, 0644);
    if (fd < 0 || fstat(fd, &st) != 0) {
        fail(p, "write", err);
    } else if (!S_ISREG(st.st_mode)) {
        base_fail(err, BASE_FAILED, "is not a regular file");
    } else if (!cli_user_owns(&st) || st.st_nlink != 1) {
        base_fail(
            err, BASE_FAILED,
            "belongs to another user, has another name, or others can write to it: remove it");
    } else {
        return fd;
    }
    base_error_set_file(err, path);
    if (fd >= 0) close(fd);
    return -1;
}

/* Bytes without a state of this program belong to another one: they are not overwritten. */
static bool check_origin(const struct cli_partial *p, struct base_error *err)
{
    char begin[sizeof state_begin - 1];
    struct stat st;
    const ssize_t n = pread(p->state_fd, begin, sizeof begin, 0);
    if (fstat(p->fd, &st) != 0 || n < 0) return fail(p, "read", err);
    if (n == sizeof begin && memcmp(begin, state_begin, sizeof begin) == 0) return true;
    if (n == 0 && st.st_size == 0) return true;
    if (n == 0) unlink(p->state.data);
    return base_fail_file(
        err, BASE_FAILED, n == 0 ? p->part.data : p->state.data,
        "was not written by `infer pull`: remove it, or give another name (--as)");
}

bool cli_partial_open(struct cli_partial *p, const char *folder, const char *name,
                      struct base_error *err)
{
    *p = (struct cli_partial){.fd = -1, .state_fd = -1};
    base_buffer_add_format(&p->target, "%s/%s", folder, name);
    base_buffer_add_format(&p->part, "%s/%s.part", folder, name);
    base_buffer_add_format(&p->state, "%s/%s.part.state", folder, name);
    if (!cli_buffer_check(&p->target, err) || !cli_buffer_check(&p->part, err) ||
        !cli_buffer_check(&p->state, err))
        return false;
    p->fd = open_own(p, p->part.data, err);
    if (p->fd < 0) return false;
    if (flock(p->fd, LOCK_EX | LOCK_NB) != 0 || !is_current(p->fd, p->part.data)) {
        close(p->fd);
        p->fd = -1;
        return base_fail_file(err, BASE_FAILED, p->part.data, "another process fetches it");
    }
    p->state_fd = open_own(p, p->state.data, err);
    return p->state_fd >= 0 && check_origin(p, err);
}

/* ---- The state ---- */

/* Writes the state as text. Its length is fixed for a version, so that progress is recorded in
 * place. */
static int print_state(const struct cli_partial *p, uint64_t done, char out[STATE_SIZE])
{
    return snprintf(out, STATE_SIZE,
                    CLI_PARTIAL_BEGIN "1\n%020" PRIu64 "\n%" PRId64 "\n%s\n%s\nend\n", done,
                    p->version.size, p->version.sha256, p->version.validator);
}

static bool save(struct cli_partial *p, struct base_error *err)
{
    char text[STATE_SIZE];
    const int size = print_state(p, p->done, text);
    if (pwrite(p->state_fd, text, (size_t)size, 0) != size || ftruncate(p->state_fd, size) != 0)
        return fail(p, "write its state", err);
    p->saved = p->done;
    return true;
}

/* Returns the number of existing bytes of the same version, according to the saved state. */
static uint64_t kept(const struct cli_partial *p)
{
    char text[STATE_SIZE], same[STATE_SIZE];
    struct stat st;
    uint64_t done = 0;
    const ssize_t size = pread(p->state_fd, text, sizeof text - 1, 0);
    if (size <= 0 || fstat(p->fd, &st) != 0) return 0;
    text[size] = '\0';
    if (sscanf(text, CLI_PARTIAL_BEGIN "1\n%20" SCNu64 "\n", &done) != 1) return 0;
    print_state(p, done, same);
    const bool is_known = p->version.validator[0] || p->version.sha256[0];
    const bool fits =
        done <= (uint64_t)st.st_size && (p->version.size < 0 || done <= (uint64_t)p->version.size);
    return is_known && fits && strcmp(text, same) == 0 ? done : 0;
}

bool cli_partial_clear(struct cli_partial *p, struct base_error *err)
{
    if (p->fd < 0) return true;
    p->done = p->hashed = 0;
    base_sha256_init(&p->hash);
    return (ftruncate(p->fd, 0) == 0 || fail(p, "write", err)) && save(p, err);
}

bool cli_partial_begin(struct cli_partial *p, const struct cli_version *version,
                       struct base_error *err)
{
    p->version = *version;
    p->begun = true;
    const uint64_t done = kept(p);
    if (done == 0) return cli_partial_clear(p, err);
    base_sha256_init(&p->hash);
    p->hashed = 0;
    p->done = p->saved = done;
    return true;
}

/* ---- Bytes ---- */

bool cli_partial_write(struct cli_partial *p, uint64_t at, const char *bytes, size_t size,
                       struct base_error *err)
{
    while (size > 0) {
        const ssize_t n = pwrite(p->fd, bytes, size, (off_t)at);
        if (n < 0 && errno == EINTR && base_goes_on(err)) continue;
        if (n < 0) return fail(p, "write", err);
        at += (uint64_t)n;
        bytes += n;
        size -= (size_t)n;
    }
    return true;
}

bool cli_partial_hash(struct cli_partial *p, bool *over, struct base_error *err)
{
    char piece[HASH_STEP];
    for (uint64_t n = 0; n < HASH_EACH && p->hashed < p->done;) {
        const uint64_t left = p->done - p->hashed;
        const ssize_t got =
            pread(p->fd, piece, left < sizeof piece ? left : sizeof piece, (off_t)p->hashed);
        if (got < 0 && errno != EINTR) return fail(p, "read", err);
        if (got == 0)
            return base_fail_file(err, BASE_FAILED, p->part.data,
                                  "became shorter while it was fetched");
        if (!base_goes_on(err)) return false;
        if (got < 0) continue;
        base_sha256_add(&p->hash, piece, (size_t)got);
        p->hashed += (uint64_t)got;
        n += (uint64_t)got;
    }
    *over = p->hashed == p->done;
    return true;
}

bool cli_partial_advance(struct cli_partial *p, uint64_t done, struct base_error *err)
{
    bool over;
    p->done = done;
    return cli_partial_hash(p, &over, err) && (done - p->saved < SAVE_EACH || save(p, err));
}

bool cli_partial_check(struct cli_partial *p, struct base_error *err)
{
    char sum[BASE_SHA256_HEX];
    struct base_sha256 copy = p->hash;
    struct base_error wrong = BASE_ERROR_INIT;
    base_sha256_hex(&copy, sum);
    if (p->version.size >= 0 && p->done != (uint64_t)p->version.size)
        base_fail(&wrong, BASE_MODEL, "%llu bytes came, not %lld: they were removed",
                  (unsigned long long)p->done, (long long)p->version.size);
    else if (p->version.sha256[0] && strcmp(sum, p->version.sha256) != 0)
        base_fail(&wrong, BASE_MODEL, "its sha256 is %s, not %s: it was removed", sum,
                  p->version.sha256);
    if (!wrong.code) return true;
    base_error_set_file(&wrong, p->part.data);
    cli_partial_clear(p, &wrong);
    if (err && !err->code) *err = wrong;
    return false;
}

bool cli_partial_rename(struct cli_partial *p, struct base_error *err)
{
    if (ftruncate(p->fd, (off_t)p->done) != 0 || rename(p->part.data, p->target.data) != 0)
        return fail(p, "give it its name", err);
    unlink(p->state.data);
    close(p->state_fd);
    close(p->fd);
    p->fd = p->state_fd = -1;
    return true;
}

void cli_partial_close(struct cli_partial *p)
{
    const bool is_empty = p->begun && p->done == 0;
    if (p->state_fd >= 0) {
        if (is_empty)
            unlink(p->state.data);
        else if (p->begun)
            save(p, NULL);
        close(p->state_fd);
    }
    if (p->fd >= 0) {
        if (is_empty) unlink(p->part.data);
        close(p->fd);
    }
    p->fd = p->state_fd = -1;
    base_buffer_free(&p->target);
    base_buffer_free(&p->part);
    base_buffer_free(&p->state);
}

/* base/output.c: outputs. See base/output.h. */
#include "base/output.h"
#include "base/interrupt.h"
#include "base/os.h"
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

_Static_assert((int)BASE_PATH_SIZE >= (int)PATH_MAX, "realpath writes up to PATH_MAX bytes");

enum {
    LINKS_MAX = 40,  /* the number of links that Linux follows in one path */
    NAME_KEPT = 200, /* bytes of the name in its temporary name; file systems allow 255 */
    TRIES = 10       /* random names that exist already */
};

/* A complete file that still has its temporary name. */
struct base_output_file {
    struct base_output_file *next;
    bool unnamed;                                     /* `temporary` exists and must be removed */
    enum { UNNAMED, SWAPPED, ADDED, REPLACED } state; /* SWAPPED: `temporary` is the old file */
    const char *temporary;
    char path[]; /* the temporary name follows in memory */
};

bool base_write_all(int fd, const void *bytes, size_t size)
{
    const char *from = bytes;
    const bool was = base_interrupted(); /* a flag that was set before does not stop the write */
    while (size > 0) {
        ssize_t n = write(fd, from, size);
        struct pollfd room = {.fd = fd, .events = POLLOUT};
        if (n < 0 && errno == EAGAIN) n = poll(&room, 1, -1) < 0 ? -1 : 0;
        if (n < 0 && errno != EINTR) return false;
        if (n > 0) from += n;
        if (n > 0) size -= (size_t)n;
        errno = EINTR;
        if (size > 0 && !was && base_interrupted()) return false;
    }
    return true;
}

static bool fail(const struct base_output *o, struct base_error *err)
{
    if (errno == EINTR)
        base_goes_on(err);
    else
        base_fail(err, errno == ENOMEM ? BASE_NO_MEMORY : BASE_FAILED, "cannot write: %s",
                  strerror(errno));
    base_error_set_file(err, o->path);
    return false;
}

bool base_path_follow(const char *path, char out[BASE_PATH_SIZE])
{
    char link[BASE_PATH_SIZE];
    if (realpath(path, out)) return true;
    if (errno != ENOENT) return false;
    if (snprintf(out, BASE_PATH_SIZE, "%s", path) >= BASE_PATH_SIZE) {
        errno = ENAMETOOLONG;
        return false;
    }
    for (int i = 0; i < LINKS_MAX; i++) {
        const ssize_t n = readlink(out, link, sizeof link - 1);
        if (n < 0) return true;
        link[n] = '\0';
        char *slash = strrchr(out, '/');
        const size_t at = link[0] == '/' || !slash ? 0 : (size_t)(slash - out) + 1;
        if (at + (size_t)n >= BASE_PATH_SIZE) break;
        memcpy(out + at, link, (size_t)n + 1);
    }
    errno = ELOOP;
    return false;
}

/* Opens the folder of a file that will be replaced, for fsync after the rename; -1 if it cannot be
 * opened. */
static int open_folder(const char *path)
{
    char folder[BASE_PATH_SIZE];
    const char *slash = strrchr(path, '/');
    const size_t n = slash ? (size_t)(slash - path) + 1 : 0;
    memcpy(folder, n ? path : ".", n ? n : 1);
    folder[n ? n : 1] = '\0';
    return open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
}

/* Other processes cannot predict the number, also those that have the same process id in another
 * container. */
static uint64_t random_number(void)
{
    uint64_t number;
    struct timespec now;
    if (base_os_random(&number, sizeof number, false)) return number;
    clock_gettime(CLOCK_REALTIME, &now); /* the system has collected too little chance yet */
    return (uint64_t)now.tv_nsec << 32 ^ (uint64_t)now.tv_sec ^ (uint64_t)getpid() << 20;
}

/* Creates a file of a random name with these permissions in the folder of o->path. */
static bool open_beside(struct base_output *o, mode_t mode)
{
    const char *slash = strrchr(o->path, '/');
    const size_t start = slash ? (size_t)(slash - o->path) + 1 : 0;
    size_t keep = strlen(o->path) - start;
    if (keep > NAME_KEPT) keep = NAME_KEPT;
    for (int i = 0; i < TRIES; i++) {
        if (snprintf(o->temporary, sizeof o->temporary, "%.*s.%016" PRIx64 ".part",
                     (int)(start + keep), o->path, random_number()) >= (int)sizeof o->temporary) {
            errno = ENAMETOOLONG;
            return false;
        }
        __atomic_store_n(&o->unfinished, true, __ATOMIC_SEQ_CST); /* before the file exists */
        o->fd = open(o->temporary, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, mode);
        if (o->fd >= 0) return true;
        __atomic_store_n(&o->unfinished, false, __ATOMIC_SEQ_CST);
        if (errno != EEXIST) return false;
    }
    return false;
}

/* Opens a temporary file that will replace `old`, with its permissions, and with its owner if this
 * process may set it. Permissions come from the mask and not from fchmod, which the sandbox
 * forbids. */
static bool open_for(struct base_output *o, const struct stat *old)
{
    const mode_t mask = umask(0);
    const bool ok = open_beside(o, old->st_mode & 0777);
    const int error = errno;
    umask(mask);
    errno = error;
    if (ok) (void)!fchown(o->fd, old->st_uid, old->st_gid);
    o->replaces = ok;
    if (ok && o->folder < 0) o->folder = open_folder(o->path);
    return ok;
}

void base_output_init(struct base_output *o)
{
    o->fd = o->folder = -1;
    o->unfinished = o->replaces = false;
    o->path[0] = o->temporary[0] = '\0';
    o->done = o->last = NULL;
}

static bool is_same(const struct stat *a, const struct stat *b)
{
    return a->st_dev == b->st_dev && a->st_ino == b->st_ino;
}

static bool open_at(struct base_output *o, const char *path, struct base_error *err)
{
    struct stat st, out;
    const bool is_there = strcmp(path, "-") != 0 && stat(path, &st) == 0;
    if (strcmp(path, "-") == 0 ||
        (is_there && fstat(STDOUT_FILENO, &out) == 0 && is_same(&st, &out))) {
        strcpy(o->path, "standard output");
        o->fd = STDOUT_FILENO;
        return true;
    }
    /* The link of a pipe in /dev/fd leads to no path. */
    const bool is_stream = is_there && !S_ISREG(st.st_mode);
    const bool follows = is_stream || base_path_follow(path, o->path);
    if (is_stream || !follows) snprintf(o->path, sizeof o->path, "%s", path);
    if (!follows) return fail(o, err);
    /* Opening it checks the permission to write, which a rename ignores. */
    o->fd = open(o->path, O_WRONLY | O_NOCTTY | O_CLOEXEC);
    if (o->fd < 0 && errno != ENOENT) return fail(o, err);
    const bool is_new = o->fd < 0;
    if (!is_new && fstat(o->fd, &st) != 0) return fail(o, err);
    if (!is_new && !S_ISREG(st.st_mode)) return true;
    if (!is_new) close(o->fd);
    return (is_new ? open_beside(o, 0666) : open_for(o, &st)) || fail(o, err);
}

bool base_output_open(struct base_output *o, const char *path, struct base_error *err)
{
    base_output_init(o);
    return open_at(o, path, err);
}

bool base_output_create(struct base_output *o, const char *path, unsigned mode,
                        struct base_error *err)
{
    base_output_init(o);
    const bool fits = snprintf(o->path, sizeof o->path, "%s", path) < (int)sizeof o->path;
    if (!fits) errno = ENAMETOOLONG;
    return (fits && open_beside(o, mode)) || fail(o, err);
}

bool base_output_try(struct base_output *o, const char *path, struct base_error *err)
{
    struct stat st;
    if (strcmp(path, "-") == 0 ||
        (stat(path, &st) == 0 && !S_ISREG(st.st_mode) && !S_ISDIR(st.st_mode)))
        return true; /* opening a pipe would wait for its reader */
    const bool ok = base_output_open(o, path, err);
    base_output_close(o, false, NULL);
    base_output_init(o);
    return ok;
}

/* Writes a file's data to the disk. File systems without the call have nothing to write. */
static bool sync_file(int fd)
{
    return fsync(fd) == 0 || errno == EINVAL || errno == ENOSYS || errno == EROFS;
}

/* Closes the file unless it is a standard stream. On a network file system close reports a full
 * disk. */
static bool close_file(struct base_output *o)
{
    const int fd = o->fd;
    o->fd = -1;
    return fd <= STDERR_FILENO || close(fd) == 0;
}

/* Adds the open file, which is complete, to the list of complete files. */
static bool keep_file(struct base_output *o, struct base_error *err)
{
    const size_t size = strlen(o->path) + 1, room = size + strlen(o->temporary) + 1;
    struct base_output_file *file = malloc(sizeof *file + room);
    if (!file) return base_fail(err, BASE_NO_MEMORY, "no memory for the name of a file");
    *file = (struct base_output_file){.unnamed = true, .temporary = file->path + size};
    memcpy(file->path, o->path, size);
    memcpy(file->path + size, o->temporary, room - size);
    /* Before the flag is cleared, so that base_output_remove finds the file at any time. */
    __atomic_store_n(o->last ? &o->last->next : &o->done, file, __ATOMIC_SEQ_CST);
    o->last = file;
    __atomic_store_n(&o->unfinished, false, __ATOMIC_SEQ_CST);
    return true;
}

bool base_output_next(struct base_output *o, const char *path, struct base_error *err)
{
    if ((o->replaces && !sync_file(o->fd)) || !close_file(o)) return fail(o, err);
    return (!o->unfinished || keep_file(o, err)) && open_at(o, path, err);
}

bool base_output_patch(struct base_output *o, uint64_t n, uint64_t offset, const void *bytes,
                       size_t size, struct base_error *err)
{
    const struct base_output_file *f = o->done;
    while (f && n-- > 0) f = f->next;
    const int fd = f ? open(f->temporary, O_WRONLY | O_CLOEXEC) : dup(o->fd);
    bool ok = fd >= 0 && pwrite(fd, bytes, size, (off_t)offset) == (ssize_t)size &&
              (!f || !o->replaces || sync_file(fd));
    if (!ok) fail(o, err);
    if (fd >= 0 && close(fd) != 0 && ok) ok = fail(o, err);
    return ok;
}

bool base_output_write(struct base_output *o, const void *bytes, size_t size,
                       struct base_error *err)
{
    return base_write_all(o->fd, bytes, size) || fail(o, err);
}

/* ---- Names ---- */

/* Gives a file its final name. A file that has this name gets the temporary one if the file system
 * can swap names; otherwise it is replaced. */
static bool name_file(struct base_output_file *f)
{
    if (base_os_swap_files(f->temporary, f->path)) {
        f->state = SWAPPED;
        return true;
    }
    const bool is_new = errno == ENOENT;
    if (rename(f->temporary, f->path) != 0) return false;
    f->state = is_new ? ADDED : REPLACED;
    return true;
}

/* Undoes name_file, except for a file that was replaced. */
static void restore_file(struct base_output_file *f)
{
    if (f->state == ADDED) unlink(f->path);
    if (f->state == SWAPPED) base_os_swap_files(f->temporary, f->path);
}

/* Names all complete files, or none: after a failure the files named before get their old content
 * back. Signals that end the process wait, except SIGKILL. */
static bool name_files(struct base_output *o, struct base_error *err)
{
    sigset_t all, old;
    struct base_output_file *f = o->done;
    sigfillset(&all);
    pthread_sigmask(SIG_BLOCK, &all, &old);
    while (f && name_file(f)) f = f->next;
    const bool ok = f == NULL;
    if (!ok) {
        base_fail(err, BASE_FAILED, "cannot write: %s", strerror(errno));
        base_error_set_file(err, f->path);
    }
    for (f = o->done; f; f = f->next) {
        if (!ok) restore_file(f);
        unlink(f->temporary);
        __atomic_store_n(&f->unnamed, false, __ATOMIC_SEQ_CST);
    }
    pthread_sigmask(SIG_SETMASK, &old, NULL);
    return ok;
}

bool base_output_close(struct base_output *o, bool ok, struct base_error *err)
{
    const bool several = o->done != NULL;
    if (o->fd >= 0 && o->unfinished && o->replaces && ok && !sync_file(o->fd)) ok = fail(o, err);
    if (!close_file(o) && ok) ok = fail(o, err);
    if (several && o->unfinished && ok) ok = keep_file(o, err);
    if (several && ok) ok = name_files(o, err);
    if (o->unfinished && ok && rename(o->temporary, o->path) != 0) ok = fail(o, err);
    if (ok && o->folder >= 0) (void)!fsync(o->folder);
    if (!ok) base_output_remove(o);
    __atomic_store_n(&o->unfinished, false, __ATOMIC_SEQ_CST);
    if (o->folder >= 0) close(o->folder);
    o->folder = -1;
    o->last = NULL;
    for (struct base_output_file *f = __atomic_exchange_n(&o->done, NULL, __ATOMIC_SEQ_CST), *next;
         f; f = next) {
        next = f->next;
        free(f);
    }
    return ok;
}

void base_output_remove(const struct base_output *o)
{
    if (__atomic_load_n(&o->unfinished, __ATOMIC_SEQ_CST)) unlink(o->temporary);
    for (const struct base_output_file *f = __atomic_load_n(&o->done, __ATOMIC_SEQ_CST); f;
         f = f->next)
        if (__atomic_load_n(&f->unnamed, __ATOMIC_SEQ_CST)) unlink(f->temporary);
}

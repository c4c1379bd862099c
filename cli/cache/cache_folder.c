/* cli/cache/cache_folder.c: the folder of the prefix cache. See cli/cache/cache_folder.h. */
#include "cli/cache/cache_folder.h"
#include "base/os.h"
#include "cli/cache/cache_entry.h"
#include "cli/user_folder.h"
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum { OLD_SECONDS = 60 /* age of an incomplete file that may be removed */ };

/* ---- The folder ---- */

static bool open_path(struct cli_cache_folder *f, const char *given, bool make, bool *missing,
                      struct base_error *err)
{
    struct stat st;
    const bool is_own = strcmp(given, "auto") == 0;
    if (!is_own)
        base_buffer_add_text(&f->path, given);
    else if (!cli_user_path("XDG_CACHE_HOME", ".cache", "prefix", &f->path))
        return base_fail(err, BASE_FAILED, "there is no folder for it: set HOME, or name one");
    if (f->path.failed) return base_fail(err, BASE_NO_MEMORY, "not enough memory");
    int why = 0; /* the folder is not made */
    if (make && f->path.size &&
        (is_own ? !cli_user_make_folder(f->path.data, 0700) : mkdir(f->path.data, 0700) != 0))
        why = errno;
    f->fd = open(f->path.size ? f->path.data : "", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    *missing = f->fd < 0 && errno == ENOENT;
    if (f->fd < 0 || fstat(f->fd, &st) != 0)
        return base_fail(err, BASE_FAILED, "%s", strerror(*missing && why ? why : errno));
    return cli_user_owns(&st) ||
           base_fail(err, BASE_FAILED, "others can write to it, or it is theirs");
}

/* ---- The list ---- */

static bool is_entry(const char *name)
{
    static const char shape[] = "xxxxxxxxxxxxxxxx-xxxxxxxxxxxxxxxx-xxxxxxxxxxxxxxxx.prefix";
    _Static_assert(sizeof shape <= CLI_CACHE_FILE_NAME, "fits");
    if (strlen(name) != sizeof shape - 1) return false;
    for (size_t i = 0; shape[i]; i++)
        if (shape[i] == 'x' && i < 50 ? !memchr("0123456789abcdef", name[i], 16)
                                      : name[i] != shape[i])
            return false;
    return true;
}

/* Removes an incomplete entry unless a process has locked it. */
static void remove_left_over(int folder, const char *name)
{
    const size_t n = strlen(name);
    struct stat st;
    if (n < 5 || strcmp(name + n - 5, ".part") != 0) return;
    const int fd = openat(folder, name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0) return;
    if (fstat(fd, &st) == 0 && S_ISREG(st.st_mode) && cli_user_owns(&st) &&
        st.st_mtime < time(NULL) - OLD_SECONDS && cli_cache_is_marked(fd) &&
        flock(fd, LOCK_EX | LOCK_NB) == 0)
        unlinkat(folder, name, 0);
    close(fd);
}

static int by_use(const void *a, const void *b)
{
    const struct cli_cache_file *x = a, *y = b;
    if (x->used_ns != y->used_ns) return x->used_ns < y->used_ns ? 1 : -1;
    return strcmp(x->name, y->name);
}

static void add_file(struct cli_cache_folder *f, const char *name)
{
    struct stat st;
    if (!is_entry(name)) {
        remove_left_over(f->fd, name);
        return;
    }
    if (fstatat(f->fd, name, &st, AT_SYMLINK_NOFOLLOW) != 0 || !S_ISREG(st.st_mode)) return;
    struct cli_cache_file *file = &f->file[f->count++];
    memcpy(file->name, name, strlen(name) + 1);
    file->size = st.st_size > 0 ? (uint64_t)st.st_size : 0;
    file->used_ns = base_os_written_ns(&st);
    f->n_left++;
    f->bytes += file->size;
}

static bool list(struct cli_cache_folder *f, struct base_error *err)
{
    f->file = calloc(CLI_CACHE_FILES_MAX, sizeof *f->file);
    const int copy = f->file ? fcntl(f->fd, F_DUPFD_CLOEXEC, 0) : -1;
    DIR *d = copy >= 0 ? fdopendir(copy) : NULL;
    if (!d && copy >= 0) close(copy);
    if (!d) return base_fail(err, BASE_NO_MEMORY, "not enough memory to list it");
    for (const struct dirent *e; f->count < CLI_CACHE_FILES_MAX && (e = readdir(d)) != NULL;)
        add_file(f, e->d_name);
    closedir(d);
    qsort(f->file, f->count, sizeof *f->file, by_use);
    return true;
}

bool cli_cache_folder_open(struct cli_cache_folder *f, const char *given, bool make, bool *missing,
                           struct base_error *err)
{
    *f = (struct cli_cache_folder){.fd = -1};
    *missing = false;
    if (open_path(f, given, make, missing, err) && list(f, err)) return true;
    base_error_set_file(err, f->path.size ? f->path.data : given);
    return false;
}

void cli_cache_folder_close(struct cli_cache_folder *f)
{
    if (f->fd >= 0) close(f->fd);
    base_buffer_free(&f->path);
    free(f->file);
    *f = (struct cli_cache_folder){.fd = -1};
}

/* ---- Files ---- */

int cli_cache_file_open(const struct cli_cache_folder *f, const struct cli_cache_file *file)
{
    struct stat st;
    if (!*file->name) return -1;
    const int flags = O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK;
    int fd = openat(f->fd, file->name, O_RDWR | flags); /* for the time of its use */
    if (fd < 0) fd = openat(f->fd, file->name, O_RDONLY | flags);
    if (fd < 0 || (fstat(fd, &st) == 0 && S_ISREG(st.st_mode) && cli_user_owns(&st))) return fd;
    close(fd);
    return -1;
}

bool cli_cache_file_remove(struct cli_cache_folder *f, struct cli_cache_file *file)
{
    const int fd = cli_cache_file_open(f, file);
    const bool is_entry = fd >= 0 && cli_cache_is_marked(fd);
    if (!*file->name) return false;
    if (is_entry) unlinkat(f->fd, file->name, 0); /* another process may have removed it already */
    if (fd >= 0) close(fd);
    f->n_left--;
    f->bytes -= file->size;
    file->name[0] = '\0';
    return is_entry;
}

void cli_cache_folder_make_room(struct cli_cache_folder *f, uint64_t size, uint64_t limit)
{
    for (size_t i = f->count; i-- > 0;) {
        const bool fits = size <= limit && f->bytes <= limit - size;
        if (fits && f->n_left <= CLI_CACHE_FILES_KEPT) return;
        cli_cache_file_remove(f, &f->file[i]);
    }
}

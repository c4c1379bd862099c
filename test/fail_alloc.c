/* test/fail_alloc.c: a library to preload into the program (test/cli/t_memory.sh, t_split.sh):
 * makes one of its allocations fail, including those of its libraries, one start of a thread, or
 * one rename.
 *
 *   FAIL_ALLOC_AT=N      the N-th allocation fails, counted from 1
 *   FAIL_THREAD_AT=N     the N-th thread does not start
 *   FAIL_RENAME_TO=END   renames to a path with this end fail with EACCES; with FAIL_RENAME_BY=S the
 *                        process gets signal S before them instead
 *   FAIL_SWAP=1          the file system cannot swap names
 *   FAIL_SYNC=1          fsync fails with EIO
 *   FAIL_ALLOC_COUNT=F   at exit, writes the number of allocations to the file F
 *
 * Calls glibc's allocator by its internal names, because dlsym would allocate. */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

void *__libc_malloc(size_t size);
void *__libc_calloc(size_t count, size_t size);
void *__libc_realloc(void *p, size_t size);
void *__libc_memalign(size_t alignment, size_t size);

static atomic_long allocations, threads;

static long number_of(const char *variable)
{
    const char *text = getenv(variable);
    return text ? strtol(text, NULL, 10) : 0;
}

static bool fails_now(void)
{
    static atomic_long at = -1;
    if (at < 0) at = number_of("FAIL_ALLOC_AT");
    if (++allocations != at) return false;
    errno = ENOMEM;
    return true;
}

void *malloc(size_t size)
{
    return fails_now() ? NULL : __libc_malloc(size);
}

void *calloc(size_t count, size_t size)
{
    return fails_now() ? NULL : __libc_calloc(count, size);
}

void *realloc(void *p, size_t size)
{
    return fails_now() ? NULL : __libc_realloc(p, size);
}

void *reallocarray(void *p, size_t count, size_t size)
{
    size_t bytes;
    if (!__builtin_mul_overflow(count, size, &bytes)) return realloc(p, bytes);
    errno = ENOMEM;
    return NULL;
}

void *aligned_alloc(size_t alignment, size_t size)
{
    return fails_now() ? NULL : __libc_memalign(alignment, size);
}

int posix_memalign(void **p, size_t alignment, size_t size)
{
    *p = fails_now() ? NULL : __libc_memalign(alignment, size);
    return *p ? 0 : ENOMEM;
}

int pthread_create(pthread_t *restrict thread, const pthread_attr_t *restrict attributes,
                   void *(*start)(void *), void *restrict argument)
{
    int (*real)(pthread_t *, const pthread_attr_t *, void *(*)(void *), void *);
    if (++threads == number_of("FAIL_THREAD_AT")) return EAGAIN;
    *(void **)&real = dlsym(RTLD_NEXT, "pthread_create");
    return real(thread, attributes, start, argument);
}

/* Returns whether a rename to this path fails. */
static bool rename_fails(const char *to)
{
    const char *end = getenv("FAIL_RENAME_TO");
    const size_t size = strlen(to), n = end ? strlen(end) : 0;
    if (!end || size < n || strcmp(to + size - n, end) != 0) return false;
    errno = EACCES;
    return number_of("FAIL_RENAME_BY") == 0 || kill(getpid(), (int)number_of("FAIL_RENAME_BY")) < 0;
}

int rename(const char *from, const char *to)
{
    return rename_fails(to) ? -1 : (int)syscall(SYS_renameat2, AT_FDCWD, from, AT_FDCWD, to, 0);
}

int renameat2(int from_folder, const char *from, int to_folder, const char *to, unsigned flags)
{
    if (number_of("FAIL_SWAP")) {
        errno = EINVAL;
        return -1;
    }
    return rename_fails(to) ? -1
                            : (int)syscall(SYS_renameat2, from_folder, from, to_folder, to, flags);
}

int fsync(int fd)
{
    if (!number_of("FAIL_SYNC")) return (int)syscall(SYS_fsync, fd);
    errno = EIO;
    return -1;
}

/* The file is opened before the program enters its sandbox. */
static int count_file = -1;

__attribute__((constructor)) static void begin(void)
{
    const char *path = getenv("FAIL_ALLOC_COUNT");
    if (path) count_file = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
}

__attribute__((destructor)) static void tell(void)
{
    if (count_file >= 0) dprintf(count_file, "%ld\n", (long)allocations);
}

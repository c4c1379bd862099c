/* test/fail_alloc.c: a library to preload into the program (test/cli/t_memory.sh): makes one of its
 * allocations fail, including those of its libraries, or one start of a thread.
 *
 *   FAIL_ALLOC_AT=N      the N-th allocation fails, counted from 1
 *   FAIL_THREAD_AT=N     the N-th thread does not start
 *   FAIL_ALLOC_COUNT=F   at exit, writes the number of allocations to the file F
 *
 * Calls glibc's allocator by its internal names, because dlsym would allocate. */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
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

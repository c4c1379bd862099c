/* base/linux/os_linux.c: Linux, with glibc or musl. See base/os.h. */
#include "base/os.h"
#include <elf.h>
#include <fcntl.h>
#include <limits.h>
#include <link.h>
#include <linux/futex.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#ifndef sigev_notify_thread_id /* not declared by older C libraries */
#define sigev_notify_thread_id _sigev_un._tid
#endif

/* ---- Threads and processors ---- */

void base_os_wait(_Atomic uint32_t *word, uint32_t old)
{
    syscall(SYS_futex, word, FUTEX_WAIT_PRIVATE, old, NULL, NULL, 0);
}

void base_os_wake_all(_Atomic uint32_t *word)
{
    syscall(SYS_futex, word, FUTEX_WAKE_PRIVATE, INT_MAX, NULL, NULL, 0);
}

bool base_os_cpus_get(uint64_t *words, size_t size)
{
    return sched_getaffinity(0, size, (cpu_set_t *)words) == 0;
}

bool base_os_cpus_bind(pthread_t thread, const uint64_t *words, size_t size)
{
    return pthread_setaffinity_np(thread, size, (const cpu_set_t *)words) == 0;
}

void base_os_stack_size(size_t size)
{
    pthread_attr_t attributes;
    if (pthread_attr_init(&attributes) != 0) return;
    if (pthread_attr_setstacksize(&attributes, size) == 0) pthread_setattr_default_np(&attributes);
    pthread_attr_destroy(&attributes);
}

void base_os_arm_features(uint32_t *hwcap, uint32_t *hwcap2)
{
    *hwcap = (uint32_t)getauxval(AT_HWCAP);
    *hwcap2 = (uint32_t)getauxval(AT_HWCAP2);
}

/* Linux saves tile registers only for processes that have requested it (arch_prctl,
 * ARCH_REQ_XCOMP_PERM, feature 18), because they enlarge the frame of a signal by 8 KB. */
bool base_os_allow_tiles(void)
{
#ifdef SYS_arch_prctl
    enum { REQUEST_PERMISSION = 0x1023, TILE_DATA = 18 };
    return syscall(SYS_arch_prctl, REQUEST_PERMISSION, TILE_DATA) == 0;
#else
    return false;
#endif
}

/* Reads processor 0; the others have the same lines. */
bool base_os_cpu_text(char *name, size_t name_size, char *features, size_t features_size)
{
    FILE *file = fopen("/proc/cpuinfo", "re");
    char line[8192];
    *name = *features = '\0';
    while (file && fgets(line, sizeof line, file) && line[0] != '\n') {
        line[strcspn(line, "\n")] = '\0';
        const char *value = strchr(line, ':');
        if (!value || value[1] == '\0') continue;
        if (strncmp(line, "model name", 10) == 0)
            snprintf(name, name_size, "%.*s", (int)name_size - 1, value + 2);
        if (strncmp(line, "flags", 5) != 0 && strncmp(line, "Features", 8) != 0) continue;
        snprintf(features, features_size, "%.*s", (int)features_size - 1, value + 2);
        break;
    }
    if (!file) return false;
    fclose(file);
    return true;
}

/* ---- Memory ---- */

bool base_os_memory(const char *root, uint64_t *total, uint64_t *available)
{
    char path[PATH_MAX], line[512];
    unsigned long long kib;
    bool has_total = false, has_available = false;
    if (snprintf(path, sizeof path, "%s/proc/meminfo", root) >= (int)sizeof path) return false;
    FILE *file = fopen(path, "re");
    while (file && fgets(line, sizeof line, file)) {
        if (sscanf(line, "MemTotal: %llu", &kib) == 1) {
            *total = kib << 10;
            has_total = true;
        }
        if (sscanf(line, "MemAvailable: %llu", &kib) == 1) {
            *available = kib << 10;
            has_available = true;
        }
    }
    if (file) fclose(file);
    return has_total && has_available;
}

int base_os_resident_open(void)
{
    return open("/proc/self/statm", O_RDONLY | O_CLOEXEC);
}

uint64_t base_os_resident(int fd)
{
    unsigned long long size, resident, shared, text;
    char line[128];
    const ssize_t n = fd >= 0 ? pread(fd, line, sizeof line - 1, 0) : -1;
    line[n > 0 ? n : 0] = '\0';
    if (sscanf(line, "%llu %llu %llu %llu", &size, &resident, &shared, &text) != 4) return 0;
    return (resident - shared + text) * (uint64_t)sysconf(_SC_PAGESIZE);
}

void base_os_huge_pages(void *at, size_t size)
{
    (void)madvise(at, size, MADV_HUGEPAGE);
}

void base_os_map_random(void *at, size_t size, bool on)
{
    (void)madvise(at, size, on ? MADV_NOHUGEPAGE : MADV_HUGEPAGE);
    (void)madvise(at, size, on ? MADV_RANDOM : MADV_NORMAL);
}

void base_os_map_keep(void *at, size_t size)
{
    (void)mlock2(at, size, MLOCK_ONFAULT);
}

bool base_os_map_move(void *from, size_t size, void *to)
{
    return mremap(from, size, size, MREMAP_MAYMOVE | MREMAP_FIXED, to) != MAP_FAILED;
}

/* ---- Files ---- */

static int64_t nanoseconds(const struct timespec *t)
{
    return (int64_t)t->tv_sec * 1000000000 + t->tv_nsec;
}

int64_t base_os_written_ns(const struct stat *st)
{
    return nanoseconds(&st->st_mtim);
}

int64_t base_os_changed_ns(const struct stat *st)
{
    return nanoseconds(&st->st_ctim);
}

int base_os_open_direct(const char *path)
{
    return open(path, O_RDONLY | O_CLOEXEC | O_DIRECT);
}

/* Older versions of musl have neither a function nor a name for this. */
bool base_os_swap_files(const char *a, const char *b)
{
    enum { EXCHANGE = 2 };
#ifdef __GLIBC__
    return renameat2(AT_FDCWD, a, AT_FDCWD, b, EXCHANGE) == 0;
#else
    return syscall(SYS_renameat2, AT_FDCWD, a, AT_FDCWD, b, EXCHANGE) == 0;
#endif
}

ssize_t base_os_copy_shared(int from, off_t *at, int to, size_t size)
{
    return copy_file_range(from, at, to, NULL, size, 0);
}

/* ---- Other ---- */

bool base_os_random(void *out, size_t size, bool wait)
{
    return getrandom(out, size, wait ? 0 : GRND_NONBLOCK) == (ssize_t)size;
}

void base_os_sort(void *items, size_t count, size_t size,
                  int (*compare)(const void *, const void *, void *), void *context)
{
    qsort_r(items, count, size, compare, context);
}

bool base_os_timer_start(struct base_os_timer *t, void (*handler)(int, siginfo_t *, void *),
                         int first_ms, int each_ms)
{
    const struct itimerspec times = {.it_value = {first_ms / 1000, first_ms % 1000 * 1000000L},
                                     .it_interval = {each_ms / 1000, each_ms % 1000 * 1000000L}};
    struct sigaction action = {.sa_sigaction = handler, .sa_flags = SA_SIGINFO | SA_RESTART};
    struct sigevent event = {.sigev_notify = SIGEV_THREAD_ID, .sigev_signo = SIGRTMIN};
    timer_t id;
    event.sigev_notify_thread_id = gettid();
    sigemptyset(&action.sa_mask);
    sigaction(SIGRTMIN, &action, &t->before);
    if (timer_create(CLOCK_MONOTONIC, &event, &id) != 0) return false;
    t->id = id;
    timer_settime(id, 0, &times, NULL);
    return true;
}

/* The handler stays: a signal may be on its way. */
void base_os_timer_stop(struct base_os_timer *t)
{
    timer_delete(t->id);
}

bool base_os_timer_sent(const siginfo_t *info)
{
    return info->si_code == SI_TIMER;
}

/* Appends the build id of the program, which is the first object in the list. */
static int find_build_id(struct dl_phdr_info *object, size_t size, void *user)
{
    struct base_buffer *out = user;
    (void)size;
    for (int i = 0; i < object->dlpi_phnum; i++) {
        const ElfW(Phdr) *segment = &object->dlpi_phdr[i];
        if (segment->p_type != PT_NOTE) continue;
        const char *at = (const char *)(uintptr_t)(object->dlpi_addr + segment->p_vaddr);
        const char *end = at + segment->p_memsz;
        while (at < end && (size_t)(end - at) > sizeof(ElfW(Nhdr))) {
            const ElfW(Nhdr) *note = (const ElfW(Nhdr) *)(const void *)at;
            const char *name = at + sizeof *note, *id = name + (note->n_namesz + 3) / 4 * 4;
            if (note->n_type == NT_GNU_BUILD_ID && note->n_namesz == 4 &&
                memcmp(name, "GNU", 4) == 0)
                base_buffer_add(out, id, note->n_descsz);
            at = id + (note->n_descsz + 3) / 4 * 4;
        }
    }
    return 1;
}

/* Of glibc only: musl is part of the program where it is used, and so of its build id. */
const char *gnu_get_libc_version(void) __attribute__((weak));

bool base_os_program_id(struct base_buffer *out)
{
    const size_t before = out->size;
    dl_iterate_phdr(find_build_id, out);
    const bool found = out->size > before;
    base_buffer_add_format(out, "\n%s\n", gnu_get_libc_version ? gnu_get_libc_version() : "musl");
    return found;
}

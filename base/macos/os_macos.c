/* base/macos/os_macos.c: macOS 14.4 and later. See base/os.h. Compiled and linked by
 * scripts/check-systems, never run (docs/security.md). */
#include "base/os.h"
#include <errno.h>
#include <fcntl.h>
#include <mach-o/ldsyms.h>
#include <mach-o/loader.h>
#include <mach/mach.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/sysctl.h>
#include <sys/time.h>
#include <unistd.h>

/* <os/os_sync_wait_on_address.h>, <mach/mach_vm.h>: not in every set of headers. */
int os_sync_wait_on_address(void *address, uint64_t value, size_t size, uint32_t flags);
int os_sync_wake_by_address_all(void *address, size_t size, uint32_t flags);
kern_return_t mach_vm_remap(vm_map_t target, mach_vm_address_t *to, mach_vm_size_t size,
                            mach_vm_offset_t mask, int flags, vm_map_t source,
                            mach_vm_address_t from, boolean_t copy, vm_prot_t *protection,
                            vm_prot_t *most, vm_inherit_t inheritance);

/* ---- Threads and processors ---- */

void base_os_wait(_Atomic uint32_t *word, uint32_t old)
{
    os_sync_wait_on_address((void *)word, old, sizeof *word, 0);
}

void base_os_wake_all(_Atomic uint32_t *word)
{
    os_sync_wake_by_address_all((void *)word, sizeof *word, 0);
}

static uint64_t number_of(const char *name)
{
    uint64_t value = 0;
    size_t size = sizeof value;
    return sysctlbyname(name, &value, &size, NULL, 0) == 0 ? value : 0;
}

/* The fast cores, of one thread each; of Intel's processors the physical ones. A thread cannot be
 * bound to a core, so their numbers mean nothing. */
bool base_os_cpus_get(uint64_t *words, size_t size)
{
    uint64_t n = number_of("hw.perflevel0.physicalcpu");
    if (n == 0) n = number_of("hw.physicalcpu");
    if (n > 8 * size) n = 8 * size;
    for (uint64_t i = 0; i < n; i++) words[i / 64] |= UINT64_C(1) << i % 64;
    return n > 0;
}

bool base_os_cpus_bind(pthread_t thread, const uint64_t *words, size_t size)
{
    (void)thread, (void)words, (void)size;
    return false;
}

/* Threads have 512 KB whatever the limit of the process is. */
void base_os_stack_size(size_t size)
{
    (void)size;
}

void base_os_arm_features(uint32_t *hwcap, uint32_t *hwcap2)
{
    const uint32_t asimd = 1u << 1, dotprod = 1u << 20, i8mm = 1u << 13;
    *hwcap = asimd | (number_of("hw.optional.arm.FEAT_DotProd") ? dotprod : 0);
    *hwcap2 = number_of("hw.optional.arm.FEAT_I8MM") ? i8mm : 0;
}

bool base_os_allow_tiles(void)
{
    return false;
}

bool base_os_cpu_text(char *name, size_t name_size, char *features, size_t features_size)
{
    *features = '\0';
    if (sysctlbyname("machdep.cpu.brand_string", name, &name_size, NULL, 0) != 0) *name = '\0';
    if (!number_of("hw.optional.arm64")) return false;
    snprintf(features, features_size, "asimd%s%s",
             number_of("hw.optional.arm.FEAT_DotProd") ? " asimddp" : "",
             number_of("hw.optional.arm.FEAT_I8MM") ? " i8mm" : "");
    return true;
}

/* ---- Memory ---- */

/* Pages of files count as available, as on Linux. */
bool base_os_memory(const char *root, uint64_t *total, uint64_t *available)
{
    vm_statistics64_data_t pages;
    mach_msg_type_number_t n = HOST_VM_INFO64_COUNT;
    if (*root || host_statistics64(mach_host_self(), HOST_VM_INFO64, (host_info64_t)&pages, &n) !=
                     KERN_SUCCESS)
        return false;
    *total = number_of("hw.memsize");
    *available =
        ((uint64_t)pages.free_count + pages.external_page_count) * (uint64_t)sysconf(_SC_PAGESIZE);
    return *total > 0;
}

int base_os_resident_open(void)
{
    return -1;
}

uint64_t base_os_resident(int fd)
{
    mach_task_basic_info_data_t info;
    mach_msg_type_number_t n = MACH_TASK_BASIC_INFO_COUNT;
    (void)fd;
    const bool known =
        task_info(mach_task_self(), MACH_TASK_BASIC_INFO, (task_info_t)&info, &n) == KERN_SUCCESS;
    return known ? info.resident_size : 0;
}

/* The system decides alone. */
void base_os_huge_pages(void *at, size_t size)
{
    (void)at, (void)size;
}

void base_os_map_random(void *at, size_t size, bool on)
{
    (void)madvise(at, size, on ? MADV_RANDOM : MADV_NORMAL);
}

void base_os_map_keep(void *at, size_t size)
{
    (void)at, (void)size;
}

bool base_os_map_move(void *from, size_t size, void *to)
{
    mach_vm_address_t at = (mach_vm_address_t)(uintptr_t)to;
    vm_prot_t protection, most;
    if (mach_vm_remap(mach_task_self(), &at, size, 0, VM_FLAGS_FIXED | VM_FLAGS_OVERWRITE,
                      mach_task_self(), (mach_vm_address_t)(uintptr_t)from, false, &protection,
                      &most, VM_INHERIT_SHARE) != KERN_SUCCESS)
        return false;
    munmap(from, size);
    return true;
}

/* ---- Files ---- */

static int64_t nanoseconds(const struct timespec *t)
{
    return (int64_t)t->tv_sec * 1000000000 + t->tv_nsec;
}

int64_t base_os_written_ns(const struct stat *st)
{
    return nanoseconds(&st->st_mtimespec);
}

int64_t base_os_changed_ns(const struct stat *st)
{
    return nanoseconds(&st->st_ctimespec);
}

int base_os_open_direct(const char *path)
{
    const int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd >= 0) (void)fcntl(fd, F_NOCACHE, 1);
    return fd;
}

bool base_os_swap_files(const char *a, const char *b)
{
    return renamex_np(a, b, RENAME_SWAP) == 0;
}

ssize_t base_os_copy_shared(int from, off_t *at, int to, size_t size)
{
    (void)from, (void)at, (void)to, (void)size;
    return 0;
}

/* ---- Other ---- */

bool base_os_random(void *out, size_t size, bool wait)
{
    (void)wait; /* there is always enough */
    return getentropy(out, size) == 0;
}

struct order {
    int (*compare)(const void *, const void *, void *);
    void *context;
};

static int by_order(void *order, const void *a, const void *b)
{
    const struct order *o = order;
    return o->compare(a, b, o->context);
}

void base_os_sort(void *items, size_t count, size_t size,
                  int (*compare)(const void *, const void *, void *), void *context)
{
    struct order o = {compare, context};
    qsort_r(items, count, size, &o, by_order);
}

/* The signal goes to the main thread: all others block signals. */
bool base_os_timer_start(struct base_os_timer *t, void (*handler)(int, siginfo_t *, void *),
                         int first_ms, int each_ms)
{
    const struct itimerval times = {.it_value = {first_ms / 1000, first_ms % 1000 * 1000},
                                    .it_interval = {each_ms / 1000, each_ms % 1000 * 1000}};
    struct sigaction action = {.sa_sigaction = handler, .sa_flags = SA_SIGINFO | SA_RESTART};
    sigemptyset(&action.sa_mask);
    sigaction(SIGALRM, &action, &t->before);
    return setitimer(ITIMER_REAL, &times, NULL) == 0;
}

void base_os_timer_stop(struct base_os_timer *t)
{
    const struct itimerval none = {0};
    setitimer(ITIMER_REAL, &none, NULL);
    sigaction(SIGALRM, &t->before, NULL);
}

bool base_os_timer_sent(const siginfo_t *info)
{
    return info->si_signo == SIGALRM;
}

/* The linker's UUID of the program, and the build of the system, which has the C library. */
bool base_os_program_id(struct base_buffer *out)
{
    const struct mach_header_64 *head = &_mh_execute_header;
    const char *at = (const char *)(head + 1);
    const size_t before = out->size;
    for (uint32_t i = 0; i < head->ncmds; i++) {
        const struct load_command *c = (const void *)at;
        if (c->cmd == LC_UUID)
            base_buffer_add(out, ((const struct uuid_command *)(const void *)at)->uuid, 16);
        at += c->cmdsize;
    }
    char build[64] = "";
    size_t size = sizeof build;
    sysctlbyname("kern.osversion", build, &size, NULL, 0);
    const bool found = out->size > before && *build;
    base_buffer_add_format(out, "\n%s\n", build);
    return found;
}

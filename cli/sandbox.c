/* cli/sandbox.c: Landlock and seccomp, by direct system calls. See cli/sandbox.h. */
#include "cli/sandbox.h"
#include "base/output.h"
#include <asm/ioctls.h>
#include <asm/termbits.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/prctl.h>
#include <linux/sched.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#if defined(__x86_64__)
#define ARCH AUDIT_ARCH_X86_64
#elif defined(__aarch64__)
#define ARCH AUDIT_ARCH_AARCH64
#elif defined(__riscv) && __riscv_xlen == 64
#define ARCH AUDIT_ARCH_RISCV64
#endif

/* A sanitizer reads files when it reports an error, and searches for leaks from a second
 * process. */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#undef ARCH
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer) ||                         \
    __has_feature(memory_sanitizer)
#undef ARCH
#endif
#endif

#ifdef ARCH

/* ---- Landlock ---- */

/* The kernel's interface (<linux/landlock.h>), for builds with older headers. */
enum { LANDLOCK_CREATE = 444, LANDLOCK_ADD_RULE = 445, LANDLOCK_RESTRICT = 446 };
enum { GET_VERSION = 1, RULE_PATH_BENEATH = 1 };
enum { /* rights of files */
       EXECUTE = 1 << 0,
       WRITE_FILE = 1 << 1,
       REMOVE_DIR = 1 << 4,
       REMOVE_FILE = 1 << 5,
       MAKE_ANY = 0x7f << 6, /* device, folder, file, socket, pipe, block device, link */
       MAKE_FILE = 1 << 8,
       REFER = 1 << 13,    /* version 2 */
       TRUNCATE = 1 << 14, /* version 3 */
};

struct ruleset {
    uint64_t files;
    uint64_t tcp;    /* version 4: bind 1, connect 2 */
    uint64_t scoped; /* version 6: abstract sockets 1 */
};

struct rule {
    uint64_t allowed;
    int32_t folder;
} __attribute__((packed));

static int landlock_version(void)
{
    const long version = syscall(LANDLOCK_CREATE, NULL, 0, GET_VERSION);
    return version > 0 ? (int)version : 0;
}

static void allow_folder(int rules, const char *folder, uint64_t allowed)
{
    const struct rule rule = {allowed, open(folder, O_PATH | O_CLOEXEC)};
    if (rule.folder < 0) return;
    syscall(LANDLOCK_ADD_RULE, rules, RULE_PATH_BENEATH, &rule, 0);
    close(rule.folder);
}

/* Allows access to the folder of a file that need not exist; symbolic links are followed. */
static void allow_folder_of(int rules, const char *file, uint64_t allowed)
{
    char path[BASE_PATH_SIZE];
    if (!base_path_follow(file, path)) return;
    char *slash = strrchr(path, '/');
    if (slash) slash[slash == path] = '\0';
    allow_folder(rules, slash ? path : ".", allowed);
}

/* Restricts writing to the folder of `file`, or to `folder`; NULL: none. */
static void limit(const char *file, const char *folder, bool has_network)
{
    const int version = cli_sandbox_facts().landlock;
    if (version == 0) return;
    const struct ruleset set = {
        .files = EXECUTE | WRITE_FILE | REMOVE_DIR | REMOVE_FILE | MAKE_ANY |
                 (version >= 2 ? REFER : 0) | (version >= 3 ? TRUNCATE : 0),
        .tcp = 3,
        .scoped = 1,
    };
    const size_t size = has_network || version < 4 ? offsetof(struct ruleset, tcp)
                        : version < 6              ? offsetof(struct ruleset, scoped)
                                                   : sizeof set;
    const int rules = (int)syscall(LANDLOCK_CREATE, &set, size, 0);
    if (rules < 0) return;
    const uint64_t allowed = set.files & (WRITE_FILE | REMOVE_FILE | MAKE_FILE | TRUNCATE);
    if (file && strcmp(file, "-") != 0) allow_folder_of(rules, file, allowed);
    if (folder) allow_folder(rules, folder, allowed);
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0) syscall(LANDLOCK_RESTRICT, rules, 0);
    close(rules);
}

void cli_sandbox_limit(const char *file)
{
    limit(file, NULL, false);
}

void cli_sandbox_limit_to(const char *folder)
{
    limit(NULL, folder, true);
}

/* ---- seccomp ---- */

/* Calls that are allowed with any arguments. A processor without one of them omits it. */
static const int always[] = {
    /* read and write open files; for paths only stat */
    SYS_read,
    SYS_write,
    SYS_readv,
    SYS_writev,
    SYS_pread64,
    SYS_pwrite64,
    SYS_lseek,
    SYS_copy_file_range,
    SYS_close,
    SYS_fstat,
    SYS_newfstatat,
    SYS_statx,
    SYS_fcntl,
    SYS_dup,
    SYS_ftruncate,
    SYS_fsync,
    SYS_fdatasync,
    SYS_ppoll,
    SYS_pselect6,
    /* memory */
    SYS_mmap,
    SYS_munmap,
    SYS_mprotect,
    SYS_mremap,
    SYS_madvise,
    SYS_brk,
    SYS_membarrier,
    /* threads and signals of the process */
    SYS_futex,
    SYS_set_robust_list,
    SYS_get_robust_list,
    SYS_rseq,
    SYS_sched_yield,
    SYS_sched_getaffinity,
    SYS_sched_setaffinity,
    SYS_getcpu,
    SYS_rt_sigaction,
    SYS_rt_sigprocmask,
    SYS_rt_sigreturn,
    SYS_sigaltstack,
    SYS_timer_create,
    SYS_timer_settime,
    SYS_timer_delete,
    SYS_restart_syscall,
    SYS_exit,
    SYS_exit_group,
    /* time and system information */
    SYS_clock_gettime,
    SYS_clock_getres,
    SYS_clock_nanosleep,
    SYS_nanosleep,
    SYS_gettimeofday,
    SYS_times,
    SYS_getrandom,
    SYS_getpid,
    SYS_gettid,
    SYS_getppid,
    SYS_getuid,
    SYS_geteuid,
    SYS_getgid,
    SYS_getegid,
    SYS_getrusage,
    SYS_sysinfo,
    SYS_uname,
#ifdef __x86_64__
    SYS_poll,
    SYS_select,
    SYS_pause,
    SYS_time,
    SYS_getrlimit,
#endif
};

static const int renaming[] = {
    SYS_renameat2, SYS_unlinkat,
#ifdef SYS_renameat
    SYS_renameat,
#endif
#ifdef __x86_64__
    SYS_rename,    SYS_unlink,
#endif
};

static const int files[] = {
    SYS_openat, SYS_readlinkat, SYS_faccessat, SYS_getcwd, SYS_mkdirat, SYS_fchmod, SYS_fchown,
#ifdef __x86_64__
    SYS_open,   SYS_readlink,   SYS_access,    SYS_mkdir,  SYS_stat,    SYS_lstat,
#endif
};

/* Calls that are allowed for some values of the low half of one argument. Others could insert input
 * into the terminal (ioctl) or change the rights of the process (prctl). */
struct argument {
    int call, index;
    uint32_t value;
};

static const struct argument some[] = {
    {SYS_ioctl, 1, TCGETS},
    {SYS_ioctl, 1, TCSETS},
    {SYS_ioctl, 1, TCSETSW},
    {SYS_ioctl, 1, TCSETSF},
    {SYS_ioctl, 1, TCGETS2},
    {SYS_ioctl, 1, TCSETS2},
    {SYS_ioctl, 1, TCSETSW2},
    {SYS_ioctl, 1, TCSETSF2},
    {SYS_ioctl, 1, TIOCGWINSZ},
    {SYS_ioctl, 1, FIONREAD},
    {SYS_prctl, 0, PR_SET_NAME},
    {SYS_prctl, 0, 0x53564d41}, /* PR_SET_VMA: names for memory regions */
    {SYS_prlimit64, 0, 0},      /* the limits of the process itself */
    {SYS_kill, 0, 0},           /* the process group itself, for Ctrl-Z */
};

enum { FILTER_MAX = 512, FIRST_NEW = 424 }; /* from here on equal on all architectures */

struct filter {
    struct sock_filter line[FILTER_MAX];
    unsigned short n;
};

static void add(struct filter *f, unsigned short code, uint32_t k, uint8_t yes, uint8_t no)
{
    if (f->n < FILTER_MAX) f->line[f->n++] = (struct sock_filter){code, yes, no, k};
}

static void load(struct filter *f, size_t at)
{
    add(f, BPF_LD | BPF_W | BPF_ABS, (uint32_t)at, 0, 0);
}

static void end(struct filter *f, uint32_t action)
{
    add(f, BPF_RET | BPF_K, action, 0, 0);
}

static void allow(struct filter *f, const int *call, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        add(f, BPF_JMP | BPF_JEQ | BPF_K, (uint32_t)call[i], 0, 1);
        end(f, SECCOMP_RET_ALLOW);
    }
}

/* Allows a call if one argument matches. The accumulator contains the number of the call before and
 * after. `test`: BPF_JEQ, or BPF_JSET for any of the bits. */
static void allow_if(struct filter *f, struct argument a, unsigned short test)
{
    add(f, BPF_JMP | BPF_JEQ | BPF_K, (uint32_t)a.call, 0, 4);
    load(f, offsetof(struct seccomp_data, args[a.index])); /* little-endian: the low half */
    add(f, BPF_JMP | test | BPF_K, a.value, 0, 1);
    end(f, SECCOMP_RET_ALLOW);
    load(f, offsetof(struct seccomp_data, nr));
}

/* Allows setting the times of an open file, without a path: both halves of the second argument are
 * 0. */
static void allow_times(struct filter *f)
{
    const size_t path = offsetof(struct seccomp_data, args[1]);
    add(f, BPF_JMP | BPF_JEQ | BPF_K, SYS_utimensat, 0, 6);
    load(f, path);
    add(f, BPF_JMP | BPF_JEQ | BPF_K, 0, 0, 3);
    load(f, path + sizeof(uint32_t));
    add(f, BPF_JMP | BPF_JEQ | BPF_K, 0, 0, 1);
    end(f, SECCOMP_RET_ALLOW);
    load(f, offsetof(struct seccomp_data, nr));
}

static void build(struct filter *f, unsigned allowed)
{
    const uint32_t pid = (uint32_t)getpid();
    f->n = 0;
    load(f, offsetof(struct seccomp_data, arch));
    add(f, BPF_JMP | BPF_JEQ | BPF_K, ARCH, 1, 0);
    end(f, SECCOMP_RET_ERRNO | EPERM);
    load(f, offsetof(struct seccomp_data, nr));
    allow(f, always, sizeof always / sizeof *always);
    if (allowed & CLI_SANDBOX_RENAME) allow(f, renaming, sizeof renaming / sizeof *renaming);
    if (allowed == CLI_SANDBOX_FILES) allow(f, files, sizeof files / sizeof *files);
    for (size_t i = 0; i < sizeof some / sizeof *some; i++) allow_if(f, some[i], BPF_JEQ);
    if (allowed & CLI_SANDBOX_RENAME) allow_times(f);
    allow_if(f, (struct argument){SYS_kill, 0, pid}, BPF_JEQ);
    allow_if(f, (struct argument){SYS_tgkill, 0, pid}, BPF_JEQ);
    allow_if(f, (struct argument){SYS_clone, 0, CLONE_THREAD}, BPF_JSET);
    /* With ENOSYS a library falls back from a new call to an older one: clone3, openat2. */
    add(f, BPF_JMP | BPF_JGE | BPF_K, FIRST_NEW, 0, 1);
    end(f, SECCOMP_RET_ERRNO | ENOSYS);
    end(f, SECCOMP_RET_ERRNO | EPERM);
}

void cli_sandbox_close(unsigned allowed)
{
    struct filter f;
    build(&f, allowed);
    const struct sock_fprog program = {f.n, f.line};
    tzset(); /* reads a file, for templates with the time */
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0)
        syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER,
                SECCOMP_FILTER_FLAG_TSYNC | SECCOMP_FILTER_FLAG_SPEC_ALLOW, &program);
}

struct cli_sandbox_facts cli_sandbox_facts(void)
{
    const uint32_t action = SECCOMP_RET_ERRNO;
    return (struct cli_sandbox_facts){
        landlock_version(), syscall(SYS_seccomp, SECCOMP_GET_ACTION_AVAIL, 0, &action) == 0};
}

#else

void cli_sandbox_limit(const char *file)
{
    (void)file;
}

void cli_sandbox_limit_to(const char *folder)
{
    (void)folder;
}

void cli_sandbox_close(unsigned allowed)
{
    (void)allowed;
}

struct cli_sandbox_facts cli_sandbox_facts(void)
{
    return (struct cli_sandbox_facts){0};
}

#endif

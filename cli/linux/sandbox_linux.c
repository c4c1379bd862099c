/* cli/linux/sandbox_linux.c: Landlock and seccomp, by direct system calls. See cli/sandbox.h. */
#include "base/memory.h"
#include "base/output.h"
#include "cli/sandbox.h"
#include <asm/ioctls.h>
#include <asm/termbits.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/sched.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
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

/* ---- Open files ---- */

enum { DESCRIPTORS = 4096 /* those that are tried without /proc */ };

static void close_if_inherited(int fd)
{
    const int flags = fd > STDERR_FILENO ? fcntl(fd, F_GETFD) : -1;
    if (flags >= 0 && !(flags & FD_CLOEXEC)) close(fd);
}

/* Closes the descriptors, except for the standard streams, that the process had at its start: they
 * are those without close-on-exec, which everything that the program opens has. */
static void close_inherited(void)
{
    DIR *own = opendir("/proc/self/fd");
    for (const struct dirent *e; own && (e = readdir(own)) != NULL;)
        close_if_inherited(atoi(e->d_name));
    for (int fd = 0; !own && fd < DESCRIPTORS; fd++) close_if_inherited(fd);
    if (own) closedir(own);
}

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
       WRITING = WRITE_FILE | REMOVE_DIR | REMOVE_FILE | MAKE_ANY | REFER | TRUNCATE
};

struct ruleset {
    uint64_t files;
    uint64_t tcp;    /* version 4: bind 1, connect 2 */
    uint64_t scoped; /* version 6: abstract sockets 1, signals 2 */
};
enum { ABSTRACT_SOCKETS = 1, SIGNALS = 2 };
enum { TCP_BIND = 1, TCP_CONNECT = 2 };

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

/* Restricts writing to the folder of `file`, or to `folder`, as far as `set` names rights. */
static void limit(const char *file, const char *folder, struct ruleset set)
{
    const int version = cli_sandbox_facts().landlock;
    if (version == 0) return;
    if (version < 2) set.files &= ~(uint64_t)REFER;
    if (version < 3) set.files &= ~(uint64_t)TRUNCATE;
    const size_t size = version < 4                    ? offsetof(struct ruleset, tcp)
                        : version < CLI_SANDBOX_SCOPED ? offsetof(struct ruleset, scoped)
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
    limit(file, NULL,
          (struct ruleset){EXECUTE | WRITING, TCP_BIND | TCP_CONNECT, ABSTRACT_SOCKETS | SIGNALS});
}

void cli_sandbox_limit_to(const char *folder)
{
    close_inherited();
    limit(NULL, folder, (struct ruleset){EXECUTE | WRITING, 0, ABSTRACT_SOCKETS | SIGNALS});
}

void cli_sandbox_limit_programs(void)
{
    limit(NULL, NULL, (struct ruleset){EXECUTE, TCP_BIND | TCP_CONNECT, ABSTRACT_SOCKETS});
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
    SYS_rseq,
    SYS_sched_yield,
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
    SYS_openat, SYS_readlinkat, SYS_faccessat, SYS_getcwd, SYS_mkdirat, SYS_umask,
#ifdef __x86_64__
    SYS_open,   SYS_readlink,   SYS_access,    SYS_mkdir,  SYS_stat,    SYS_lstat,
#endif
};

/* Calls that are allowed for some values of arguments, of which the kernel uses the low half only.
 * Other values would insert input into the terminal (ioctl), change the rights of the process
 * (prctl), let the kernel send signals to other processes (fcntl), or act on these (the others). */
enum {
    NAMESPACES = CLONE_NEWNS | CLONE_NEWCGROUP | CLONE_NEWUTS | CLONE_NEWIPC | CLONE_NEWUSER |
                 CLONE_NEWPID | CLONE_NEWNET
};
struct condition {
    int index;
    uint32_t mask, value; /* (argument & mask) == value */
};
struct call_rule {
    int call;
    struct condition condition[2]; /* mask 0: always true */
};
#define IS(index, value)                                                                           \
    {                                                                                              \
        index, ~UINT32_C(0), value                                                                 \
    }
#define HAS(index, bits)                                                                           \
    {                                                                                              \
        index, bits, bits                                                                          \
    }
#define HAS_NOT(index, bits)                                                                       \
    {                                                                                              \
        index, bits, 0                                                                             \
    }

static const struct call_rule some[] = {
    {SYS_ioctl, {IS(1, TCGETS)}},
    {SYS_ioctl, {IS(1, TCSETS)}},
    {SYS_ioctl, {IS(1, TCSETSW)}},
    {SYS_ioctl, {IS(1, TCSETSF)}},
    {SYS_ioctl, {IS(1, TCGETS2)}},
    {SYS_ioctl, {IS(1, TCSETS2)}},
    {SYS_ioctl, {IS(1, TCSETSW2)}},
    {SYS_ioctl, {IS(1, TCSETSF2)}},
    {SYS_ioctl, {IS(1, TIOCGWINSZ)}},
    {SYS_ioctl, {IS(1, FIONREAD)}},
    {SYS_fcntl, {IS(1, F_GETFD)}},
    {SYS_fcntl, {IS(1, F_SETFD)}},
    {SYS_fcntl, {IS(1, F_GETFL)}},
    {SYS_fcntl, {IS(1, F_SETFL), HAS_NOT(2, O_ASYNC)}},
    {SYS_fcntl, {IS(1, F_DUPFD_CLOEXEC)}},
    {SYS_prctl, {IS(0, PR_SET_NAME)}},
    {SYS_prctl, {IS(0, 0x53564d41)}}, /* PR_SET_VMA: names for memory regions */
    {SYS_prlimit64, {IS(0, 0)}},      /* the limits of the process itself */
    {SYS_sched_setaffinity, {IS(0, 0)}},
    {SYS_sched_getaffinity, {IS(0, 0)}},
    {SYS_clone, {HAS(0, CLONE_THREAD), HAS_NOT(0, NAMESPACES)}},
};

/* The driver's calls to its devices: /dev/nvidia* have the letter F as the type, /dev/nvidia-uvm
 * numbers without a type. Terminals have T. */
static const struct call_rule gpu[] = {
    {SYS_ioctl, {{1, 0xff00, 'F' << 8}}},
    {SYS_ioctl, {{1, 0xff00, 0}}},
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

/* The accumulator contains the number of the call before and after. */
static void allow_if(struct filter *f, struct call_rule r)
{
    enum { N = sizeof r.condition / sizeof *r.condition, LINES = 3 /* of a condition */ };
    add(f, BPF_JMP | BPF_JEQ | BPF_K, (uint32_t)r.call, 0, LINES * N + 2);
    for (int i = 0; i < N; i++) {
        const struct condition c = r.condition[i];
        load(f, offsetof(struct seccomp_data, args[c.index])); /* little-endian: the low half */
        add(f, BPF_ALU | BPF_AND | BPF_K, c.mask, 0, 0);
        add(f, BPF_JMP | BPF_JEQ | BPF_K, c.value, 0, (uint8_t)(LINES * (N - 1 - i) + 1));
    }
    end(f, SECCOMP_RET_ALLOW);
    load(f, offsetof(struct seccomp_data, nr));
}

static void build(struct filter *f, unsigned allowed)
{
    const uint32_t pid = (uint32_t)getpid();
    const bool has_files = (allowed & CLI_SANDBOX_FILES) == CLI_SANDBOX_FILES;
    f->n = 0;
    load(f, offsetof(struct seccomp_data, arch));
    add(f, BPF_JMP | BPF_JEQ | BPF_K, ARCH, 1, 0);
    end(f, SECCOMP_RET_ERRNO | EPERM);
    load(f, offsetof(struct seccomp_data, nr));
    allow(f, always, sizeof always / sizeof *always);
    if (allowed & CLI_SANDBOX_RENAME) allow(f, renaming, sizeof renaming / sizeof *renaming);
    if (has_files) allow(f, files, sizeof files / sizeof *files);
    for (size_t i = 0; i < sizeof some / sizeof *some; i++) allow_if(f, some[i]);
    for (size_t i = 0; (allowed & CLI_SANDBOX_GPU) && i < sizeof gpu / sizeof *gpu; i++)
        allow_if(f, gpu[i]);
    allow_if(f, (struct call_rule){SYS_kill, {IS(0, pid)}});
    allow_if(f, (struct call_rule){SYS_tgkill, {IS(0, pid)}});
    /* Ctrl-Z while a line is edited stops the job. */
    if (has_files) allow_if(f, (struct call_rule){SYS_kill, {IS(0, 0), IS(1, SIGTSTP)}});
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
    close_inherited();
    tzset(); /* reads a file, for templates with the time */
    base_memory_keep();
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
#include "cli/sandbox_none.h"
#endif

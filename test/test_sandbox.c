/* test/test_sandbox.c: what the sandbox forbids and allows (cli/sandbox.h), tested in separate
 * processes, by the thread that enters it and by a thread that was started before. */
#include "test/support.h"

#include "base/memory.h"
#include "base/output.h"
#include "cli/sandbox.h"
#include "test/support_folder.h"
#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <netinet/in.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

struct place {
    char inside[128];  /* a writable folder */
    char outside[128]; /* a folder that is not writable */
    int terminal;
    int input;     /* a file of this user, opened for reading */
    int inherited; /* a descriptor of the parent, of a pipe */
};

static char *path_of(const char *folder, const char *name)
{
    static _Thread_local char path[2][256];
    static _Thread_local int next;
    snprintf(path[next], sizeof path[0], "%s/%s", folder, name);
    char *out = path[next];
    next = !next;
    return out;
}

/* ---- Operations; each returns -1 and errno if it is forbidden ---- */

static long open_to_read(const struct place *p)
{
    return open(path_of(p->outside, "old"), O_RDONLY);
}
static long open_to_read_by_openat2(const struct place *p)
{
    const uint64_t how[3] = {O_RDONLY};
    return syscall(437 /* openat2 */, AT_FDCWD, path_of(p->outside, "old"), how, sizeof how);
}
static long open_to_write(const struct place *p)
{
    return open(path_of(p->inside, "old"), O_WRONLY);
}
static long make_a_file(const struct place *p)
{
    return open(path_of(p->inside, "new"), O_WRONLY | O_CREAT, 0600);
}
static long make_a_folder(const struct place *p)
{
    return mkdir(path_of(p->inside, "folder"), 0700);
}
static long make_a_link(const struct place *p)
{
    return symlink("old", path_of(p->inside, "link"));
}
static long make_another_name(const struct place *p)
{
    return link(path_of(p->inside, "old"), path_of(p->inside, "again"));
}
static long list_a_folder(const struct place *p)
{
    return open(p->inside, O_RDONLY | O_DIRECTORY);
}
static long change_rights(const struct place *p)
{
    return chmod(path_of(p->inside, "old"), 04755);
}
static long start_a_program(const struct place *p)
{
    char *const none[] = {NULL};
    (void)p;
    return execve("/bin/true", none, none);
}
static long start_a_program_from_memory(const struct place *p)
{
    (void)p;
    return (int)syscall(SYS_memfd_create, "x", 0u);
}
static long make_a_process(const struct place *p)
{
    (void)p;
    const long child = syscall(SYS_clone, SIGCHLD, NULL, NULL, NULL, NULL);
    if (child == 0) _exit(0);
    return child;
}
static long use_the_network(const struct place *p)
{
    (void)p;
    return socket(AF_INET, SOCK_STREAM, 0);
}
static long use_a_local_socket(const struct place *p)
{
    (void)p;
    return socket(AF_UNIX, SOCK_STREAM, 0);
}
static long look_into_a_process(const struct place *p)
{
    (void)p;
    return ptrace(PTRACE_ATTACH, getppid(), NULL, NULL);
}
static long kill_a_process(const struct place *p)
{
    (void)p;
    return kill(getppid(), SIGUSR1);
}
static long type_at_the_terminal(const struct place *p)
{
    return ioctl(p->terminal, TIOCSTI, "x");
}
static long queue_io(const struct place *p)
{
    char parameters[256] = {0};
    (void)p;
    return syscall(425 /* io_uring_setup */, 1, parameters);
}
static long load_a_filter_of_the_kernel(const struct place *p)
{
    (void)p;
    return syscall(SYS_bpf, 0, NULL, 0);
}
static long become_dumpable(const struct place *p)
{
    (void)p;
    return prctl(PR_SET_DUMPABLE, 1);
}
static long limit_another_process(const struct place *p)
{
    struct rlimit l;
    (void)p;
    return prlimit(getppid(), RLIMIT_CORE, NULL, &l);
}
static long rename_outside(const struct place *p)
{
    return rename(path_of(p->outside, "old"), path_of(p->outside, "moved"));
}
static long rename_out(const struct place *p)
{
    return rename(path_of(p->inside, "old"), path_of(p->outside, "moved"));
}
static long remove_outside(const struct place *p)
{
    return unlink(path_of(p->outside, "old"));
}
static long set_times(const struct place *p)
{
    return utimensat(AT_FDCWD, path_of(p->outside, "old"), NULL, 0);
}
/* A path whose address ends in 32 zero bits. */
static long set_times_by_a_round_address(const struct place *p)
{
    char *path = mmap((void *)(UINT64_C(1) << 32), 4096, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
    if (path != (char *)(UINT64_C(1) << 32))
        path = path_of(p->outside, "old");
    else
        strcpy(path, path_of(p->outside, "old"));
    const long got = utimensat(AT_FDCWD, path, NULL, 0);
    const int was = errno;
    munmap((void *)(UINT64_C(1) << 32), 4096);
    errno = was;
    return got;
}
static long rename_inside(const struct place *p)
{
    return rename(path_of(p->inside, "old"), path_of(p->inside, "moved"));
}

/* ---- Calls on open files and on other processes ---- */

static long own_signals(const struct place *p)
{
    return fcntl(p->input, F_SETOWN, getppid());
}
static long own_signals_by_ex(const struct place *p)
{
    const int owner[2] = {1 /* F_OWNER_PID */, getppid()};
    return fcntl(p->input, 15 /* F_SETOWN_EX */, owner);
}
static long choose_the_signal(const struct place *p)
{
    return fcntl(p->input, 10 /* F_SETSIG */, SIGKILL);
}
static long send_signals_for_input(const struct place *p)
{
    return fcntl(p->terminal, F_SETFL, O_ASYNC | O_NONBLOCK);
}
static long send_signals_by_ioctl(const struct place *p)
{
    int on = 1;
    return ioctl(p->terminal, FIOASYNC, &on);
}
static long lease_a_file(const struct place *p)
{
    return fcntl(p->input, 1024 /* F_SETLEASE */, F_RDLCK);
}
static long change_rights_of_an_input(const struct place *p)
{
    return fchmod(p->input, 04755);
}
static long change_owner_of_an_input(const struct place *p)
{
    return fchown(p->input, getuid(), getgid());
}
static long change_times_of_an_input(const struct place *p)
{
    const struct timespec times[2] = {{1, 0}, {1, 0}};
    return futimens(p->input, times);
}
static long touch_an_input(const struct place *p)
{
    return futimens(p->input, NULL);
}
static long add_an_attribute(const struct place *p)
{
    return syscall(SYS_fsetxattr, p->input, "user.x", "x", 1, 0);
}
static long write_to_an_inherited_file(const struct place *p)
{
    const long got = write(p->inherited, "x", 1);
    if (got < 0 && errno == EBADF) errno = EPERM; /* it is closed */
    return got;
}
static long pin_another_process(const struct place *p)
{
    char cpus[128];
    (void)p;
    memset(cpus, 255, sizeof cpus);
    return syscall(SYS_sched_setaffinity, getppid(), sizeof cpus, cpus);
}
static long slow_another_process(const struct place *p)
{
    (void)p;
    return setpriority(PRIO_PROCESS, (id_t)getppid(), 19);
}
static long read_another_process(const struct place *p)
{
    char byte;
    const struct iovec to = {&byte, 1}, from = {&byte, 1};
    (void)p;
    return syscall(SYS_process_vm_readv, getppid(), &to, 1L, &from, 1L, 0L);
}
static long kill_by_a_handle(const struct place *p)
{
    (void)p;
    return syscall(434 /* pidfd_open */, getppid(), 0);
}
static long kill_all(const struct place *p)
{
    (void)p;
    return kill(-1, SIGUSR1);
}
static long kill_the_group(const struct place *p)
{
    (void)p;
    return kill(0, SIGUSR1);
}
static long enter_a_namespace(const struct place *p)
{
    (void)p;
    return unshare(CLONE_NEWUSER);
}
/* Only Landlock prevents it where files can be opened. */
static long open_memory_of_another_process(const struct place *p)
{
    char path[64];
    (void)p;
    snprintf(path, sizeof path, "/proc/%d/mem", getppid());
    return open(path, O_RDWR);
}

struct trial {
    const char *name;
    long (*run)(const struct place *p);
};
#define TRIAL(f)                                                                                   \
    {                                                                                              \
#f, f                                                                                      \
    }

static const struct trial never[] = {
    TRIAL(start_a_program),
    TRIAL(start_a_program_from_memory),
    TRIAL(make_a_process),
    TRIAL(use_the_network),
    TRIAL(use_a_local_socket),
    TRIAL(look_into_a_process),
    TRIAL(kill_a_process),
    TRIAL(type_at_the_terminal),
    TRIAL(queue_io),
    TRIAL(load_a_filter_of_the_kernel),
    TRIAL(become_dumpable),
    TRIAL(limit_another_process),
    TRIAL(open_to_read_by_openat2),
    TRIAL(change_rights),
    TRIAL(make_a_link),
    TRIAL(make_another_name),
    TRIAL(set_times),
    TRIAL(set_times_by_a_round_address),
    TRIAL(own_signals),
    TRIAL(own_signals_by_ex),
    TRIAL(choose_the_signal),
    TRIAL(send_signals_for_input),
    TRIAL(send_signals_by_ioctl),
    TRIAL(lease_a_file),
    TRIAL(change_rights_of_an_input),
    TRIAL(change_owner_of_an_input),
    TRIAL(change_times_of_an_input),
    TRIAL(touch_an_input),
    TRIAL(add_an_attribute),
    TRIAL(write_to_an_inherited_file),
    TRIAL(pin_another_process),
    TRIAL(slow_another_process),
    TRIAL(read_another_process),
    TRIAL(kill_by_a_handle),
    TRIAL(kill_all),
    TRIAL(kill_the_group),
    TRIAL(enter_a_namespace),
};
static const struct trial no_file[] = {
    TRIAL(open_to_read),  TRIAL(open_to_write), TRIAL(make_a_file),
    TRIAL(make_a_folder), TRIAL(list_a_folder),
};
static const struct trial no_other_name[] = {
    TRIAL(rename_outside),
    TRIAL(rename_out),
    TRIAL(remove_outside),
};
static const struct trial no_name[] = {TRIAL(rename_inside)};
static const struct trial no_memory[] = {TRIAL(open_memory_of_another_process)};
#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

/* ---- One process ---- */

struct job {
    struct place place;
    const char *writes;
    unsigned allowed;
    bool hides_landlock;
    pthread_barrier_t closed;
};

static void try_all(const struct job *j, const struct trial *list, size_t n, const char *thread)
{
    for (size_t i = 0; i < n; i++) {
        errno = 0;
        const long got = list[i].run(&j->place);
        if (got < 0 && (errno == EPERM || errno == EACCES || errno == ENOSYS)) continue;
        dprintf(STDERR_FILENO, "%s, %s: returned %ld, errno %d\n", list[i].name, thread, got,
                errno);
        _exit(1);
    }
}

static void refuses(const struct job *j, const char *thread)
{
    try_all(j, never, COUNT(never), thread);
    if (j->allowed != CLI_SANDBOX_FILES) try_all(j, no_file, COUNT(no_file), thread);
    if (j->allowed == 0) try_all(j, no_name, COUNT(no_name), thread);
    if (j->allowed == 0 || (j->writes && cli_sandbox_facts().landlock))
        try_all(j, no_other_name, COUNT(no_other_name), thread);
    if (cli_sandbox_facts().landlock) try_all(j, no_memory, COUNT(no_memory), thread);
}

static void *worker(void *user)
{
    struct job *j = user;
    pthread_barrier_wait(&j->closed);
    refuses(j, "a thread");
    return NULL;
}

static void *nothing(void *user)
{
    return user;
}

/* Memory, threads, time, signals and open files remain usable. */
static void works(const struct job *j, int log)
{
    struct stat st;
    pthread_t t;
    void *p = malloc(64 << 20);
    if (!p) _exit(2);
    memset(p, 1, 64 << 20);
    free(p);
    if (pthread_create(&t, NULL, nothing, NULL) != 0 || pthread_join(t, NULL) != 0) _exit(3);
    if (nanosleep(&(struct timespec){0, 1000}, NULL) != 0 || !time(NULL)) _exit(4);
    if (fstat(log, &st) != 0 || write(log, "x", 1) != 1) _exit(5);
    if (isatty(log) || errno != ENOTTY) _exit(6);
    signal(SIGUSR2, SIG_IGN);
    if (raise(SIGUSR2) != 0 || kill(getpid(), SIGUSR2) != 0) _exit(7);
    if (j->place.terminal >= 0 && !isatty(j->place.terminal)) _exit(8);
    /* An entry of the cache gets the time of its use. */
    if (ftruncate(log, st.st_size + 1) != 0) _exit(12);
    if (fcntl(log, F_SETFL, O_NONBLOCK) != 0 || fcntl(log, F_GETFD) != FD_CLOEXEC) _exit(13);
    /* Requests of a GPU's driver reach its devices, or are forbidden. */
    const int why = j->allowed & CLI_SANDBOX_GPU ? ENOTTY : EPERM;
    if (ioctl(log, _IOWR('F', 42, int[8]), &st) == 0 || errno != why) _exit(15);
    if (ioctl(log, 27, &st) == 0 || errno != why) _exit(16);
}

/* From here on the kernel behaves as one without Landlock. */
static void hide_landlock(void)
{
    struct sock_filter line[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, 444 /* landlock_create_ruleset */, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | ENOSYS),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    const struct sock_fprog program = {COUNT(line), line};
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 ||
        prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) != 0 ||
        cli_sandbox_facts().landlock != 0)
        _exit(14);
}

static void child(struct job *j)
{
    struct base_output out;
    struct base_error err = BASE_ERROR_INIT;
    const bool writes = j->writes != NULL;
    pthread_t t;
    const int log = open(path_of(j->place.inside, "log"), O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    if (j->hides_landlock) hide_landlock();
    /* The output is opened after the first step, as commands do. */
    if (j->allowed != CLI_SANDBOX_FILES)
        cli_sandbox_limit(j->writes);
    else
        cli_sandbox_limit_programs();
    if (pthread_create(&t, NULL, worker, j) != 0) _exit(9);
    if (writes && !base_output_open(&out, j->writes, &err)) _exit(10);
    cli_sandbox_close(j->allowed);
    pthread_barrier_wait(&j->closed);
    pthread_join(t, NULL);
    refuses(j, "the main thread");
    works(j, log);
    if (writes &&
        (!base_output_write(&out, "new", 3, &err) || !base_output_close(&out, true, &err)))
        _exit(11);
    _exit(0);
}

static void in_a_sandbox_of(unsigned allowed, const char *output, bool hides_landlock)
{
    struct job j = {.allowed = allowed, .place.terminal = -1, .hides_landlock = hides_landlock};
    int ends[2];
    char file[256];
    if (!cli_sandbox_facts().seccomp) skip();
    const char *const folders[] = {support_folder_path("inside", j.place.inside),
                                   support_folder_path("outside", j.place.outside)};
    for (int i = 0; i < 2; i++) {
        assert_true(mkdir(folders[i], 0700) == 0 || errno == EEXIST);
        support_write_file(path_of(folders[i], "old"), "old", 3);
    }
    snprintf(file, sizeof file, "%s/%s", j.place.inside, output ? output : "");
    if (output) j.writes = file;
    j.place.terminal = posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC);
    j.place.input = open(path_of(j.place.outside, "old"), O_RDONLY | O_CLOEXEC);
    assert_int_equal(pipe(ends), 0);
    j.place.inherited = ends[1];
    pthread_barrier_init(&j.closed, NULL, 2);
    signal(SIGUSR1, SIG_IGN);
    const pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) child(&j);
    int status;
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFEXITED(status)); /* not by a signal */
    assert_int_equal(WEXITSTATUS(status), 0);
    if (output) {
        char got[4] = "";
        const int fd = open(file, O_RDONLY);
        assert_int_equal(read(fd, got, 3), 3);
        assert_string_equal(got, "new");
        close(fd);
    }
    if (j.place.terminal >= 0) close(j.place.terminal);
    close(j.place.input);
    close(ends[0]);
    close(ends[1]);
}

static void in_a_sandbox(unsigned allowed, const char *output)
{
    in_a_sandbox_of(allowed, output, false);
    in_a_sandbox_of(allowed, output, true);
}

static void no_file_program_or_network_is_accessible(void **state)
{
    (void)state;
    in_a_sandbox(0, NULL);
}

static void an_output_gets_its_name_and_no_other_file_is_touched(void **state)
{
    (void)state;
    in_a_sandbox(CLI_SANDBOX_RENAME, "output");
}

static void a_gpu_has_its_devices_and_nothing_else(void **state)
{
    (void)state;
    in_a_sandbox(CLI_SANDBOX_GPU, NULL);
}

/* A chat whose user names files. */
static void a_command_that_opens_files_starts_no_program(void **state)
{
    (void)state;
    in_a_sandbox(CLI_SANDBOX_FILES, NULL);
}

/* The operations that a command that fetches files may use; returns the line of the first wrong
 * result. */
static int below_one_folder(const struct place *p, const struct sockaddr_in *here)
{
    char *const none[] = {NULL};
    if (write(p->inherited, "x", 1) >= 0 || errno != EBADF) return 12;
    const int s = socket(AF_INET, SOCK_STREAM, 0);
    if (connect(s, (const struct sockaddr *)here, sizeof *here) != 0) return 1;
    if (open(path_of(p->inside, "new"), O_WRONLY | O_CREAT, 0600) < 0) return 2;
    if (rename(path_of(p->inside, "new"), path_of(p->inside, "named")) != 0) return 3;
    if (unlink(path_of(p->inside, "named")) != 0) return 4;
    if (open(path_of(p->outside, "old"), O_RDONLY) < 0) return 5;
    if (open(path_of(p->outside, "old"), O_WRONLY) >= 0 || errno != EACCES) return 6;
    if (open(path_of(p->outside, "new"), O_WRONLY | O_CREAT, 0600) >= 0 || errno != EACCES)
        return 7;
    if (unlink(path_of(p->outside, "old")) == 0 || errno != EACCES) return 8;
    if (mkdir(path_of(p->inside, "folder"), 0700) == 0 || errno != EACCES) return 9;
    if (symlink("old", path_of(p->inside, "link")) == 0 || errno != EACCES) return 10;
    if (execve("/bin/true", none, none) == 0 || errno != EACCES) return 11;
    if (cli_sandbox_facts().landlock < CLI_SANDBOX_SCOPED) return 0;
    if (kill(getppid(), SIGUSR1) == 0 || errno != EPERM) return 13;
    return 0;
}

static void a_fetching_command_writes_below_its_folder(void **state)
{
    struct place p = {.terminal = -1};
    struct sockaddr_in here = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t size = sizeof here;
    (void)state;
    if (!cli_sandbox_facts().landlock) skip();
    const char *const folders[] = {support_folder_path("inside", p.inside),
                                   support_folder_path("outside", p.outside)};
    for (int i = 0; i < 2; i++) {
        assert_true(mkdir(folders[i], 0700) == 0 || errno == EEXIST);
        support_write_file(path_of(folders[i], "old"), "old", 3);
    }
    int ends[2];
    assert_int_equal(pipe(ends), 0);
    p.inherited = ends[1];
    signal(SIGUSR1, SIG_IGN);
    const int s = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal(bind(s, (struct sockaddr *)&here, size), 0);
    assert_int_equal(listen(s, 1), 0);
    assert_int_equal(getsockname(s, (struct sockaddr *)&here, &size), 0);
    const pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        cli_sandbox_limit_to(p.inside);
        _exit(below_one_folder(&p, &here));
    }
    int status;
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_int_equal(status, 0);
    close(s);
    close(ends[0]);
    close(ends[1]);
}

static double seconds(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static void entering_takes_less_than_a_millisecond(void **state)
{
    (void)state;
    double *best = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    assert_true(best != MAP_FAILED);
    *best = 1;
    for (int i = 0; i < 50; i++) {
        const pid_t pid = fork();
        assert_true(pid >= 0);
        if (pid == 0) {
            const double start = seconds();
            cli_sandbox_limit("/tmp/output");
            cli_sandbox_close(CLI_SANDBOX_RENAME);
            const double took = seconds() - start;
            if (took < *best) *best = took;
            _exit(0);
        }
        waitpid(pid, NULL, 0);
    }
    printf("the sandbox is entered in %.3f ms\n", *best * 1e3);
    assert_true(*best < 1e-3);
    munmap(best, 4096);
}

/* Sizes that depend on memory, such as that of the buffer of `bench`, are also chosen afterwards.
 */
static void the_memory_that_there_is_remains_known(void **state)
{
    struct base_memory before, after;
    int status;
    (void)state;
    if (!cli_sandbox_facts().seccomp) skip();
    base_memory_read("", &before);
    const pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        cli_sandbox_close(0);
        base_memory_read("", &after);
        _exit(after.known != before.known || after.total != before.total ||
              after.limit != before.limit ||
              (after.left == UINT64_MAX) != (before.left == UINT64_MAX));
    }
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_int_equal(status, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(no_file_program_or_network_is_accessible),
        cmocka_unit_test(an_output_gets_its_name_and_no_other_file_is_touched),
        cmocka_unit_test(a_gpu_has_its_devices_and_nothing_else),
        cmocka_unit_test(a_command_that_opens_files_starts_no_program),
        cmocka_unit_test(a_fetching_command_writes_below_its_folder),
        cmocka_unit_test(entering_takes_less_than_a_millisecond),
        cmocka_unit_test(the_memory_that_there_is_remains_known),
    };
    return cmocka_run_group_tests(tests, support_folder_make, support_folder_remove);
}

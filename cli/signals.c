/* cli/signals.c: signal handlers. See cli/signals.h. The functions of the first section run in a
 * handler and call only async-signal-safe functions. */
#include "cli/signals.h"
#include "base/utf8.h"
#include "cli/terminal.h"
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stddef.h>
#include <string.h>
#include <termios.h>
#include <unistd.h>

enum { GUARDED_MAX = 4, LINE_SIZE = 512 };

/* Global: a signal handler has no argument that could point to it. */
static struct {
    volatile sig_atomic_t patient; /* Ctrl-C does not end the process */
    int ending;                    /* a thread has begun to end the process */
    int maps;                      /* /proc/self/maps, which a sandbox forbids to open; -1: none */
    struct base_output *guarded[GUARDED_MAX];
    const struct termios *terminal; /* modes to restore; NULL: none */
} signal_state;

/* ---- Handlers ---- */

static void remove_guarded(void)
{
    for (int i = 0; i < GUARDED_MAX; i++) {
        const struct base_output *o = __atomic_load_n(&signal_state.guarded[i], __ATOMIC_SEQ_CST);
        if (o) base_output_remove(o);
    }
}

/* Ends the process with the signal's own status. For process 1 of a container the kernel ignores
 * the default action: it ends with the status that a shell shows for the signal. */
static void on_end(int number)
{
    sigset_t own;
    const struct termios *modes = __atomic_load_n(&signal_state.terminal, __ATOMIC_SEQ_CST);
    if (modes) tcsetattr(STDIN_FILENO, TCSANOW, modes);
    remove_guarded();
    signal(number, SIG_DFL);
    sigemptyset(&own);
    sigaddset(&own, number); /* blocked while its handler runs */
    pthread_sigmask(SIG_UNBLOCK, &own, NULL);
    raise(number);
    _exit(128 + number);
}

static void on_interrupt(int number)
{
    if (base_interrupted() && !signal_state.patient) on_end(number);
    base_interrupt();
}

static size_t hexadecimal(const char *text, uintptr_t *out)
{
    size_t n = 0;
    for (*out = 0; n < 2 * sizeof *out; n++) {
        const int digit = base_hex_digit(text[n]);
        if (digit < 0) break;
        *out = *out << 4 | (uintptr_t)digit;
    }
    return n;
}

/* Returns the path in a line "start-end r--s offset device inode /path" of /proc/self/maps, if the
 * address is in its range. Only model files are mapped shared. */
static const char *path_at(const char *line, uintptr_t address)
{
    uintptr_t start, end;
    size_t n = hexadecimal(line, &start);
    if (line[n++] != '-') return NULL;
    n += hexadecimal(line + n, &end);
    if (address < start || address >= end || strlen(line + n) < 5 || line[n + 4] != 's')
        return NULL;
    return strchr(line + n, '/');
}

/* Finds the name of the model file that is mapped at the address; false if there is none. */
static bool find_model(uintptr_t address, char name[LINE_SIZE])
{
    char piece[LINE_SIZE];
    size_t used = 0;
    ssize_t n;
    while (signal_state.maps >= 0 && (n = read(signal_state.maps, piece, sizeof piece)) > 0) {
        for (ssize_t i = 0; i < n; i++) {
            if (piece[i] != '\n') {
                if (used < LINE_SIZE - 1) name[used++] = piece[i];
                continue;
            }
            name[used] = '\0';
            used = 0;
            const char *path = path_at(name, address);
            if (!path) continue;
            memmove(name, path, strlen(path) + 1);
            return true;
        }
    }
    return false;
}

/* Handles an access to a page of a mapped file that was truncated, or that the disk cannot read. */
static void on_bus_error(int number, siginfo_t *info, void *context)
{
    static const char begin[] = "infer: ",
                      end[] = ": cannot be read any further: it was cut short or changed while it "
                              "was in use, or the disk failed\n";
    char line[LINE_SIZE * CLI_SHOWN_MAX + sizeof begin + sizeof end], name[LINE_SIZE];
    (void)context;
    /* Several threads may be here at once: only the first one prints. */
    while (__atomic_exchange_n(&signal_state.ending, 1, __ATOMIC_SEQ_CST)) pause();
    if (!find_model((uintptr_t)info->si_addr, name)) on_end(number);
    remove_guarded();
    size_t size = sizeof begin - 1;
    memcpy(line, begin, size);
    const size_t length = strlen(name);
    for (size_t i = 0, n; i < length; size += n)
        i += cli_show_character(name + i, length - i, false, line + size, &n);
    memcpy(line + size, end, sizeof end - 1);
    base_write_all(STDERR_FILENO, line, size + sizeof end - 1);
    _exit(BASE_MODEL);
}

/* ---- Setting up ---- */

static void install(int number, void (*handler)(int))
{
    /* Without SA_RESTART, so that a signal also ends a read from a pipe without data. */
    struct sigaction action = {.sa_handler = handler}, old;
    sigemptyset(&action.sa_mask);
    sigaction(number, NULL, &old);
    if (old.sa_handler != SIG_IGN) sigaction(number, &action, NULL); /* `nohup`, `&` in scripts */
}

void cli_signals_init(void)
{
    static const int ends[] = {SIGHUP,  SIGQUIT, SIGTERM,   SIGPIPE, SIGALRM, SIGUSR1,
                               SIGUSR2, SIGXCPU, SIGVTALRM, SIGPROF, SIGIO};
    struct sigaction bus = {.sa_sigaction = on_bus_error, .sa_flags = SA_SIGINFO};
    sigemptyset(&bus.sa_mask);
    signal_state.maps = open("/proc/self/maps", O_RDONLY | O_CLOEXEC);
    signal(SIGPIPE, SIG_DFL); /* shells expect this, even if the process inherited another action */
    signal(SIGXFSZ, SIG_IGN);
    for (size_t i = 0; i < sizeof ends / sizeof *ends; i++) install(ends[i], on_end);
    install(SIGINT, on_interrupt);
    sigaction(SIGBUS, &bus, NULL);
}

void cli_interrupt_reset(void)
{
    base_interrupt_clear();
    signal_state.patient = 1;
}

void cli_signals_terminal(const struct termios *modes)
{
    __atomic_store_n(&signal_state.terminal, modes, __ATOMIC_SEQ_CST);
}

bool cli_signals_guard(struct base_output *o)
{
    base_output_init(o);
    for (int i = 0; i < GUARDED_MAX; i++) {
        if (signal_state.guarded[i]) continue;
        __atomic_store_n(&signal_state.guarded[i], o, __ATOMIC_SEQ_CST);
        return true;
    }
    return false;
}

void cli_signals_release(const struct base_output *o)
{
    for (int i = 0; i < GUARDED_MAX; i++)
        if (signal_state.guarded[i] == o)
            __atomic_store_n(&signal_state.guarded[i], NULL, __ATOMIC_SEQ_CST);
}

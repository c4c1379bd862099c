/* cli/system.c: standard streams, files, the clock. See cli/system.h. */
#include "cli/system.h"
#include "base/clock.h"
#include "base/interrupt.h"
#include "base/os.h"
#include "cli/progress.h"
#include "cli/terminal.h"
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

/* Stacks: the least with which all commands were tried, and that of most systems. */
enum { STACK_MIN = 512 << 10, STACK_USUAL = 8 << 20 };

/* The kernel compares with the limit when the stack grows; new threads have the limit that was set
 * when the program began, unless it is set for them. */
static bool raise_stack(struct base_error *err)
{
    struct rlimit limit;
    if (getrlimit(RLIMIT_STACK, &limit) != 0 || limit.rlim_cur >= STACK_MIN) return true;
    const unsigned long long was = limit.rlim_cur >> 10;
    limit.rlim_cur = STACK_USUAL;
    if (limit.rlim_max < limit.rlim_cur) limit.rlim_cur = limit.rlim_max;
    if (limit.rlim_max < STACK_MIN) limit.rlim_cur = limit.rlim_max = STACK_USUAL; /* root may */
    if (setrlimit(RLIMIT_STACK, &limit) != 0)
        return base_fail(err, BASE_NO_MEMORY,
                         "the stack is limited to %llu kB (ulimit -s): %d kB are needed", was,
                         STACK_MIN >> 10);
    base_os_stack_size(limit.rlim_cur);
    return true;
}

bool cli_system_init(struct base_error *err)
{
    for (int fd = 0; fd <= 2; fd++) {
        if (fcntl(fd, F_GETFD) >= 0 || errno != EBADF) continue;
        /* Opened for the opposite direction: reading standard input or writing to standard output
         * fails, as on the closed descriptor. */
        (void)!open("/dev/null", fd == 0 ? O_WRONLY : O_RDONLY);
    }
    cli_signals_init();
    return raise_stack(err);
}

/* ---- Writing ---- */

static bool write_bytes(const void *bytes, size_t size, struct base_error *err)
{
    if (base_write_all(STDOUT_FILENO, bytes, size)) return true;
    if (errno == EINTR) return base_goes_on(err);
    return base_fail(err, BASE_FAILED, "standard output: cannot write: %s", strerror(errno));
}

bool cli_write(const void *bytes, size_t size, struct base_error *err)
{
    BASE_LOCAL_BUFFER shown = BASE_BUFFER_INIT;
    if (!cli_stdout_is_terminal()) return write_bytes(bytes, size, err);
    cli_show(&shown, bytes, size, true);
    cli_progress_hide();
    const bool ok = cli_buffer_check(&shown, err) && write_bytes(shown.data, shown.size, err);
    cli_progress_show();
    return ok;
}

bool cli_write_control(const char *sequence, struct base_error *err)
{
    return write_bytes(sequence, strlen(sequence), err);
}

bool cli_buffer_check(const struct base_buffer *b, struct base_error *err)
{
    return !b->failed || base_fail(err, BASE_NO_MEMORY, "not enough memory");
}

bool cli_write_buffer(struct base_buffer *b, struct base_error *err)
{
    if (!cli_buffer_check(b, err)) return false;
    bool ok = cli_write(b->data, b->size, err);
    base_buffer_clear(b);
    return ok;
}

bool cli_stdout_is_terminal(void)
{
    return isatty(STDOUT_FILENO);
}

size_t cli_stdout_width(void)
{
    struct winsize size;
    const bool known = ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0;
    return known ? size.ws_col : 80;
}

bool cli_stderr_is_terminal(void)
{
    return isatty(STDERR_FILENO);
}

/* Allocates nothing, so that a lack of memory can be reported too. Truncates text that does not
 * fit. */
static size_t show_in(char *out, size_t room, const char *text, bool lines)
{
    const size_t size = strlen(text);
    size_t written = 0;
    for (size_t i = 0, n; i < size && written + CLI_SHOWN_MAX <= room; written += n)
        i += cli_show_character(text + i, size - i, lines, out + written, &n);
    return written;
}

void cli_note(const char *format, ...)
{
    char text[1024] = "infer: ", line[4 * sizeof text]; /* "\\xff" for a byte */
    const size_t start = strlen(text);
    va_list args;
    va_start(args, format);
    vsnprintf(text + start, sizeof text - start, format, args);
    va_end(args);
    size_t size = show_in(line, sizeof line - 1, text, false);
    line[size++] = '\n';
    cli_progress_hide();
    base_write_all(STDERR_FILENO, line, size);
    cli_progress_show();
}

void cli_report(const struct base_error *err)
{
    char text[900];
    cli_note("%s", base_error_format(err, text, sizeof text));
}

void cli_tell(const char *text)
{
    BASE_LOCAL_BUFFER shown = BASE_BUFFER_INIT;
    cli_show(&shown, text, strlen(text), true);
    cli_progress_hide();
    base_write_all(STDERR_FILENO, shown.data, shown.size);
    cli_progress_show();
}

/* ---- Reading ---- */

enum { PATIENCE_MS = 2000 };
enum { TEXT_MAX = INT_MAX / 4 /* that of text_encode */, SOURCE_MAX = 64 << 20, STEP = 16384 };

/* Reads up to STEP bytes and returns their number; -1 with an error. Waits if the descriptor is
 * non-blocking. */
static ssize_t read_some(int fd, char *piece, struct base_error *err)
{
    for (;;) {
        struct pollfd ready = {.fd = fd, .events = POLLIN};
        ssize_t n = read(fd, piece, STEP);
        if (n < 0 && errno == EAGAIN) n = poll(&ready, 1, -1) < 0 ? -1 : -2;
        if (n >= 0) return n;
        if (n == -1 && errno == EINTR && !base_goes_on(err)) return -1;
        if (n == -1 && errno != EINTR) {
            /* A wrong name is BASE_USAGE, an error while reading BASE_FAILED. */
            base_fail(err, errno == EISDIR ? BASE_USAGE : BASE_FAILED, "cannot read: %s",
                      strerror(errno));
            return -1;
        }
    }
}

size_t cli_mark_size(const char *bytes, size_t size)
{
    static const char mark[] = "\xef\xbb\xbf";
    return size >= sizeof mark - 1 && memcmp(bytes, mark, sizeof mark - 1) == 0 ? sizeof mark - 1
                                                                                : 0;
}

bool cli_is_utf16(const char *bytes, size_t size)
{
    return size > 1 && (memcmp(bytes, "\xff\xfe", 2) == 0 || memcmp(bytes, "\xfe\xff", 2) == 0);
}

/* Checks limits while reading, because /dev/zero has no end. */
static bool read_all(int fd, bool is_source, struct base_buffer *out, struct base_error *err)
{
    char piece[STEP];
    for (size_t total = 0;;) {
        if (!base_goes_on(err)) return false;
        const ssize_t n = read_some(fd, piece, err);
        if (n <= 0 || !base_goes_on(err)) return n == 0;
        if (is_source && total == 0 && cli_is_utf16(piece, (size_t)n))
            return base_fail(err, BASE_USAGE, CLI_UTF16_ADVICE);
        if (is_source && memchr(piece, '\0', (size_t)n))
            return base_fail(err, BASE_USAGE, "contains a NUL byte: it is not a text");
        total += (size_t)n;
        if (is_source && total > SOURCE_MAX)
            return base_fail(err, BASE_USAGE, "is larger than %d MiB", SOURCE_MAX >> 20);
        if (total > TEXT_MAX)
            return base_fail(err, BASE_TOO_LONG, "a text is longer than %d bytes", TEXT_MAX);
        base_buffer_add(out, piece, (size_t)n);
        if (out->failed) return base_fail(err, BASE_NO_MEMORY, "not enough memory to read it");
    }
}

static bool read_file(const char *path, bool is_source, struct base_buffer *out,
                      struct base_error *err)
{
    const bool is_stdin = strcmp(path, "-") == 0;
    const int fd = is_stdin ? STDIN_FILENO : open(path, O_RDONLY | O_CLOEXEC);
    if (is_stdin) cli_stdin_announce();
    const bool ok = fd >= 0 ? read_all(fd, is_source, out, err)
                            : base_goes_on(err) &&
                                  base_fail(err, BASE_USAGE, "cannot read: %s", strerror(errno));
    if (!ok && err) base_error_set_file(err, is_stdin ? "standard input" : path);
    if (fd >= 0 && !is_stdin) close(fd);
    return ok;
}

bool cli_file_read(const char *path, struct base_buffer *out, struct base_error *err)
{
    return read_file(path, false, out, err);
}

bool cli_source_read(const char *path, struct base_buffer *out, struct base_error *err)
{
    const size_t start = out->size;
    if (!read_file(path, true, out, err)) return false;
    const size_t size = out->size - start, mark = size ? cli_mark_size(out->data + start, size) : 0;
    if (mark) {
        out->size -= mark;
        memmove(out->data + start, out->data + start + mark, size - mark + 1);
    }
    return true;
}

bool cli_stdin_is_piped(void)
{
    struct stat st;
    if (fstat(STDIN_FILENO, &st) != 0) return false;
    if (S_ISREG(st.st_mode)) return lseek(STDIN_FILENO, 0, SEEK_CUR) == 0;
    return S_ISFIFO(st.st_mode) || S_ISSOCK(st.st_mode);
}

void cli_stdin_announce(void)
{
    struct pollfd ready = {.fd = STDIN_FILENO, .events = POLLIN};
    if (!cli_stderr_is_terminal() || cli_stdin_is_terminal()) return;
    const double end = base_seconds() + PATIENCE_MS * 1e-3;
    int there = -1;
    for (double left; there < 0 && (left = end - base_seconds()) > 0;) {
        there = poll(&ready, 1, (int)(left * 1e3) + 1); /* the timer of progress interrupts it */
        if (base_interrupted()) return;
    }
    if (there <= 0) cli_note("waiting for standard input; </dev/null if there is none");
}

bool cli_stdin_is_terminal(void)
{
    return isatty(STDIN_FILENO);
}

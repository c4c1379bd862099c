/* cli/system.c: standard streams, files, the clock. See cli/system.h. */
#include "cli/system.h"
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

void cli_system_init(void)
{
    for (int fd = 0; fd <= 2; fd++) {
        if (fcntl(fd, F_GETFD) >= 0 || errno != EBADF) continue;
        /* Open the wrong way round: reading standard input gives nothing to read but an error,
         * writing to standard output fails, as it would have on the closed descriptor. */
        (void)!open("/dev/null", fd == 0 ? O_WRONLY : O_RDONLY);
    }
    cli_signals_init();
}

/* ---- Writing ---- */

bool cli_write(const void *bytes, size_t size, struct base_error *err)
{
    if (base_write_all(STDOUT_FILENO, bytes, size)) return true;
    return base_fail(err, BASE_FAILED, "standard output: cannot write: %s", strerror(errno));
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

void cli_note(const char *format, ...)
{
    char line[1024] = "infer: ";
    const size_t start = strlen(line);
    va_list args;
    va_start(args, format);
    vsnprintf(line + start, sizeof line - start - 1, format, args);
    va_end(args);
    size_t size = strlen(line);
    line[size++] = '\n';
    base_write_all(STDERR_FILENO, line, size);
}

void cli_report(const struct base_error *err)
{
    char text[900];
    cli_note("%s", base_error_format(err, text, sizeof text));
}

void cli_tell(const char *text)
{
    base_write_all(STDERR_FILENO, text, strlen(text));
}

/* ---- Reading ---- */

bool cli_file_read(const char *path, struct base_buffer *out, struct base_error *err)
{
    const bool is_stdin = strcmp(path, "-") == 0;
    int fd = is_stdin ? STDIN_FILENO : open(path, O_RDONLY | O_CLOEXEC);
    bool ok = false;
    char piece[16384];
    if (fd < 0) goto fail;
    for (;;) {
        ssize_t n = read(fd, piece, sizeof piece);
        if (n < 0 && errno == EINTR && *cli_interrupt_flag()) {
            base_fail(err, BASE_INTERRUPTED, "interrupted");
            goto done;
        }
        if (n < 0 && errno == EINTR) continue;
        if (n < 0) goto fail;
        if (n == 0) break;
        base_buffer_add(out, piece, (size_t)n);
        if (out->failed) {
            base_fail(err, BASE_NO_MEMORY, "not enough memory to read it");
            goto done;
        }
    }
    ok = true;
    goto done;

fail:
    /* A wrong name is the caller's mistake; a disk that fails while it is read is nobody's. */
    base_fail(err, fd < 0 || errno == EISDIR ? BASE_USAGE : BASE_FAILED, "cannot read: %s",
              strerror(errno));
done:
    if (!ok && err) base_error_set_file(err, is_stdin ? "standard input" : path);
    if (fd >= 0 && !is_stdin) close(fd);
    return ok;
}

bool cli_stdin_is_piped(void)
{
    struct stat st;
    return fstat(STDIN_FILENO, &st) == 0 &&
           (S_ISFIFO(st.st_mode) || S_ISREG(st.st_mode) || S_ISSOCK(st.st_mode));
}

bool cli_stdin_is_terminal(void)
{
    return isatty(STDIN_FILENO);
}

double cli_seconds(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* cli/system.h: the edge to the operating system: standard streams, files, signals, the clock.
 *
 * Results go to standard output through cli_write only, so that every failure of it is seen. */
#ifndef CLI_SYSTEM_H
#define CLI_SYSTEM_H

#include "base/buffer.h"
#include "base/error.h"
#include <stddef.h>

/* Makes descriptors 0 to 2 valid (a closed one must not become the model file), lets SIGPIPE end
 * the process as shells expect, and makes Ctrl-C set the interrupt flag; a second Ctrl-C kills. */
void cli_system_init(void);

/* Non-zero once Ctrl-C was pressed. */
const volatile int *cli_interrupt_flag(void);
/* Takes note of a Ctrl-C: the flag is down again, and from now on none of them kills. */
void cli_interrupt_reset(void);

/* Everything or BASE_FAILED, at once and unbuffered. */
bool cli_write(const void *bytes, size_t size, struct base_error *err);
/* Writes the buffer (BASE_NO_MEMORY if it is cut) and clears it. */
bool cli_write_buffer(struct base_buffer *b, struct base_error *err);
bool cli_stdout_is_terminal(void);

/* One line to standard error, by one write: "infer: " and the text. */
void cli_note(const char *format, ...) __attribute__((format(printf, 1, 2)));
void cli_report(const struct base_error *err);
void cli_tell(const char *text); /* to standard error, as it is */

/* Appends a whole file; "-" is standard input. BASE_USAGE when there is no such file to read,
 * BASE_FAILED when reading it fails. */
bool cli_file_read(const char *path, struct base_buffer *out, struct base_error *err);
/* Whether standard input is a pipe, a file or a socket (and not a terminal or /dev/null). */
bool cli_stdin_is_piped(void);
bool cli_stdin_is_terminal(void);

/* A file that is being written; "-" is standard output. */
struct cli_file {
    const char *path;
    int fd; /* -1: not open */
};
bool cli_file_create(struct cli_file *f, const char *path, struct base_error *err);
bool cli_file_write(struct cli_file *f, const void *bytes, size_t size, struct base_error *err);
/* Closes; with !ok, or when closing fails, removes a regular file rather than leave a part of it.
 */
bool cli_file_close(struct cli_file *f, bool ok, struct base_error *err);

double cli_seconds(void); /* a clock that only goes forward */

#endif

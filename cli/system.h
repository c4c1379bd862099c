/* cli/system.h: the edge to the operating system: standard streams, files, the clock.
 *
 * Results go to standard output through cli_write only, so that every failure is noticed. */
#ifndef CLI_SYSTEM_H
#define CLI_SYSTEM_H

#include "base/buffer.h"
#include "base/error.h"
#include "cli/signals.h"
#include <stddef.h>

/* Opens closed descriptors among 0 to 2 (one must not become the model file) and sets up
 * signals. */
void cli_system_init(void);

/* Writes everything, immediately and unbuffered, or BASE_FAILED. On a terminal text is shown as by
 * cli/terminal.h, because results contain text of files and models. */
bool cli_write(const void *bytes, size_t size, struct base_error *err);
/* A control sequence of the program's own, to a terminal. */
bool cli_write_control(const char *sequence, struct base_error *err);
/* Writes the buffer (BASE_NO_MEMORY if it is cut) and clears it. */
bool cli_write_buffer(struct base_buffer *b, struct base_error *err);
/* BASE_NO_MEMORY if the buffer is cut. */
bool cli_buffer_check(const struct base_buffer *b, struct base_error *err);
bool cli_stdout_is_terminal(void);

/* One line to standard error, by one write: "infer: " and the text, without control characters. */
void cli_note(const char *format, ...) __attribute__((format(printf, 1, 2)));
void cli_report(const struct base_error *err);
void cli_tell(const char *text); /* lines to standard error, as cli/terminal.h shows text */

/* Appends a whole file of any bytes; "-" is standard input. BASE_USAGE when the file cannot be
 * opened, BASE_FAILED when reading it fails, BASE_TOO_LONG above the limit of a text. */
bool cli_file_read(const char *path, struct base_buffer *out, struct base_error *err);
/* The same of a source: JSON, a grammar, a template. UTF-8 without its byte-order mark; BASE_USAGE
 * also for UTF-16, a NUL byte or more than 64 MiB. */
bool cli_source_read(const char *path, struct base_buffer *out, struct base_error *err);
/* The bytes of UTF-8's byte-order mark at the beginning: 0 or 3. */
size_t cli_mark_size(const char *bytes, size_t size);
/* Whether the bytes begin with a byte-order mark of UTF-16, and what its user should do then. */
bool cli_is_utf16(const char *bytes, size_t size);
#define CLI_UTF16_ADVICE "is UTF-16: convert it (iconv -f UTF-16 -t UTF-8)"
/* Whether standard input is a pipe, a file or a socket (and not a terminal or /dev/null). */
bool cli_stdin_is_piped(void);
bool cli_stdin_is_terminal(void);

#endif

/* cli/system.h: access to the operating system: standard streams, files, the clock.
 *
 * Results go to standard output only through cli_write, which reports every failure. */
#ifndef CLI_SYSTEM_H
#define CLI_SYSTEM_H

#include "base/buffer.h"
#include "base/error.h"
#include "cli/signals.h"
#include <stddef.h>

/* Opens those of the descriptors 0 to 2 that are closed (the model file must not get one of them)
 * and sets up signals. */
void cli_system_init(void);

/* Writes everything, unbuffered, or BASE_FAILED. On a terminal text is shown as by cli/terminal.h,
 * because results contain text of files and models. */
bool cli_write(const void *bytes, size_t size, struct base_error *err);
/* Writes a control sequence of the program to a terminal. */
bool cli_write_control(const char *sequence, struct base_error *err);
/* Writes the buffer (BASE_NO_MEMORY if it is incomplete) and clears it. */
bool cli_write_buffer(struct base_buffer *b, struct base_error *err);
/* BASE_NO_MEMORY if the buffer is incomplete. */
bool cli_buffer_check(const struct base_buffer *b, struct base_error *err);
bool cli_stdout_is_terminal(void);

/* Writes one line to standard error with one write: "infer: " and the text, without control
 * characters. */
void cli_note(const char *format, ...) __attribute__((format(printf, 1, 2)));
void cli_report(const struct base_error *err);
void cli_tell(const char *text); /* writes lines to standard error, as cli/terminal.h shows text */

/* Appends a file of any bytes; "-" is standard input. BASE_USAGE if the file cannot be opened,
 * BASE_FAILED if reading it fails, BASE_TOO_LONG above the limit of a text. */
bool cli_file_read(const char *path, struct base_buffer *out, struct base_error *err);
/* As above for a source (JSON, a grammar, a template), which must be UTF-8; omits a byte-order
 * mark. BASE_USAGE also for UTF-16, a NUL byte or more than 64 MiB. */
bool cli_source_read(const char *path, struct base_buffer *out, struct base_error *err);
/* The size of a UTF-8 byte-order mark at the beginning: 0 or 3. */
size_t cli_mark_size(const char *bytes, size_t size);
/* Whether the bytes begin with a UTF-16 byte-order mark; and the advice for the user in that
 * case. */
bool cli_is_utf16(const char *bytes, size_t size);
#define CLI_UTF16_ADVICE "is UTF-16: convert it (iconv -f UTF-16 -t UTF-8)"
/* Whether standard input is a pipe, a file or a socket (and not a terminal or /dev/null). */
bool cli_stdin_is_piped(void);
bool cli_stdin_is_terminal(void);

#endif

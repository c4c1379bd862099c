/* cli/system.h: access to the operating system: standard streams, files, the clock.
 *
 * Results are written to standard output only through cli_write, which reports every failure. */
#pragma once

#include "base/buffer.h"
#include "base/error.h"
#include "cli/signals.h"
#include <stddef.h>

/* Opens those of the descriptors 0 to 2 that are closed, so that the model file does not get one of
 * them, sets up signals, and raises a limit of the stack that is too low. Fails with BASE_NO_MEMORY
 * if that is not allowed. */
bool cli_system_init(struct base_error *err);

/* Writes all bytes, unbuffered; BASE_FAILED if that fails. A terminal gets text in the form of
 * cli/terminal.h, because results contain text of files and models. */
bool cli_write(const void *bytes, size_t size, struct base_error *err);
/* Writes a control sequence of the program to standard output, if that is a terminal. */
bool cli_write_control(const char *sequence, struct base_error *err);
/* Writes the buffer and clears it; BASE_NO_MEMORY if it is incomplete. */
bool cli_write_buffer(struct base_buffer *b, struct base_error *err);
/* Returns BASE_NO_MEMORY if the buffer is incomplete. */
bool cli_buffer_check(const struct base_buffer *b, struct base_error *err);
bool cli_stdout_is_terminal(void);
bool cli_stderr_is_terminal(void);
/* Returns the columns of the terminal that standard output is; 80 if it is none. */
size_t cli_stdout_width(void);

/* Writes one line to standard error with one write: "infer: " and the text, without control
 * characters. */
void cli_note(const char *format, ...) __attribute__((format(printf, 1, 2)));
void cli_report(const struct base_error *err);
void cli_tell(const char *text); /* writes lines to standard error, in the form of cli/terminal.h */

/* Appends a file of any bytes; "-" is standard input. Fails with BASE_USAGE if the file cannot be
 * opened, BASE_FAILED if reading it fails, BASE_TOO_LONG above the limit of a text. */
bool cli_file_read(const char *path, struct base_buffer *out, struct base_error *err);
/* Appends a source (JSON, a grammar, a template), which must be UTF-8, without its byte-order mark.
 * Fails as cli_file_read, and with BASE_USAGE for UTF-16, a zero byte or more than 64 MiB. */
bool cli_source_read(const char *path, struct base_buffer *out, struct base_error *err);
/* Returns the size of a UTF-8 byte-order mark at the beginning: 0 or 3. */
size_t cli_mark_size(const char *bytes, size_t size);
/* Returns whether the bytes begin with a UTF-16 byte-order mark; then messages contain the
 * advice. */
bool cli_is_utf16(const char *bytes, size_t size);
#define CLI_UTF16_ADVICE "is UTF-16: convert it (iconv -f UTF-16 -t UTF-8)"
/* Returns whether standard input is a pipe, a socket, or a file at its beginning (and not a
 * terminal or /dev/null). A file of which a part was read belongs to the process that read it, as
 * in a loop of `while read`. */
bool cli_stdin_is_piped(void);
/* Call it before the first read: waits up to two seconds for input, then prints on a terminal
 * what the program waits for. */
void cli_stdin_announce(void);
bool cli_stdin_is_terminal(void);

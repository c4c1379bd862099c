/* cli/chat/chat_line.h: messages from standard input, typed or piped.
 *
 * On a terminal it edits lines and has a history (libedit), otherwise it reads plain lines; a
 * message may have several lines. It does not interpret them. */
#pragma once

#include "base/buffer.h"
#include "base/error.h"

struct cli_lines; /* opaque */

/* Opens the input. `edit`: standard input is a terminal. With `keep`, the history is read from and
 * written to a file of the user; a failure of that is not an error. Returns NULL without memory. */
struct cli_lines *cli_lines_open(bool edit, bool colour, bool keep, struct base_error *err);
void cli_lines_close(struct cli_lines *l); /* accepts NULL */

/* While an answer is written: what is typed is not shown, and becomes the beginning of the next
 * line. */
void cli_lines_hide_typing(struct cli_lines *l, bool hide);

enum cli_line_result { CLI_LINE_READ, CLI_LINE_END, CLI_LINE_INTERRUPTED, CLI_LINE_FAILED };

/* Replaces `out` by the next message: one line without its end (LF or CR LF), or several: a line
 * that ends with a backslash continues; the lines between """ and """, or between longer fences of
 * the same length, are one message, and so are pasted lines. *is_text: the text was between fences,
 * or was pasted with line ends, and is never a command. */
enum cli_line_result cli_lines_next(struct cli_lines *l, struct base_buffer *out, bool *is_text,
                                    struct base_error *err);

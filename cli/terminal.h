/* cli/terminal.h: text of others on a terminal: model names, prompts, what a model writes.
 *
 * What a terminal would act on (ESC and the other control characters, C1 with them) and marks that
 * change the order of what is read (bidirectional controls) are shown as \u001b and their like, the
 * form that JSON knows; bytes that are no UTF-8 as \xff. Everything else is shown as it is. */
#ifndef CLI_TERMINAL_H
#define CLI_TERMINAL_H

#include "base/buffer.h"

enum { CLI_SHOWN_MAX = 8 };

/* The first character of bytes[0..size), size > 0, as it is shown: *n bytes of out. `lines`: LF and
 * TAB stay. Returns how many bytes it took. Async-signal-safe. */
size_t cli_show_character(const char *bytes, size_t size, bool lines, char out[CLI_SHOWN_MAX],
                          size_t *n);
/* Appends a text as it is shown. */
void cli_show(struct base_buffer *out, const char *bytes, size_t size, bool lines);

#endif

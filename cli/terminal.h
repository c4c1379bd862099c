/* cli/terminal.h: shows untrusted text on a terminal: model names, prompts, the output of models.
 *
 * Control characters that a terminal would interpret (ESC and others, also C1), and bidirectional
 * controls, which change the displayed order, are shown as \u001b and so on, as in JSON; bytes that
 * are not UTF-8 are shown as \xff. All other text is unchanged. */
#pragma once

#include "base/buffer.h"

enum { CLI_SHOWN_MAX = 8 };

/* Converts the first character of bytes[0..size), size > 0, to its shown form, *n bytes of out.
 * `lines`: LF and TAB are unchanged. Returns the number of bytes used. Async-signal-safe. */
size_t cli_show_character(const char *bytes, size_t size, bool lines, char out[CLI_SHOWN_MAX],
                          size_t *n);
/* Appends a text in its shown form. */
void cli_show(struct base_buffer *out, const char *bytes, size_t size, bool lines);

/* Appends text[0..size) in lines of at most `width` columns that end at words. The first begins in
 * `column`, and the others are indented by `indent`. */
void cli_show_wrapped(const char *text, size_t size, size_t column, size_t indent, size_t width,
                      struct base_buffer *out);

/* cli/chat/chat_wrap.h: word wrap of an answer at the edge of a terminal.
 *
 * A word is held until it is complete; if it does not fit, a line end replaces the spaces before
 * it. Line ends of the text are kept. Letters that take two columns (Chinese, Japanese) are words
 * of their own. */
#ifndef CLI_CHAT_CHAT_WRAP_H
#define CLI_CHAT_CHAT_WRAP_H

#include "base/buffer.h"

struct cli_wrap {
    size_t width;            /* columns of the terminal; 0: no wrapping */
    size_t column;           /* column after the text shown so far */
    size_t spaces;           /* held back, before the word */
    struct base_buffer word; /* the held word as cli/terminal.h shows it */
    size_t word_width;
    bool inside; /* the word's beginning has been shown: it is longer than a line */
};

/* To be called at the beginning of a line; reads the terminal's width. */
void cli_wrap_begin(struct cli_wrap *w);
/* Adds a piece of complete characters; appends the text that can be shown to `out`. */
void cli_wrap_add(struct cli_wrap *w, const char *bytes, size_t size, struct base_buffer *out);
/* Appends the held text. */
void cli_wrap_flush(struct cli_wrap *w, struct base_buffer *out);
void cli_wrap_free(struct cli_wrap *w); /* a zeroed one is fine */

#endif

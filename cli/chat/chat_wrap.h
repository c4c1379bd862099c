/* cli/chat/chat_wrap.h: word wrap of an answer at the edge of a terminal.
 *
 * A word is held back until it is complete; if it does not fit, a line end replaces the spaces
 * before it. Line ends of the text are kept. Letters that take two columns (Chinese, Japanese) are
 * words of their own. */
#pragma once

#include "base/buffer.h"

struct cli_wrap {
    size_t width;            /* columns of the terminal; 0: no wrapping */
    size_t column;           /* column after the text that was shown so far */
    size_t spaces;           /* spaces before the word that are held back */
    struct base_buffer word; /* the word that is held back, in the form of cli/terminal.h */
    size_t word_width;
    bool inside; /* the word's beginning has been shown: it is longer than a line */
};

/* Call this at the beginning of an answer; `wraps` false: the text is shown as it is. The width is
 * that of the terminal, also after a change of its size. */
void cli_wrap_begin(struct cli_wrap *w, bool wraps);
/* Adds a piece of complete characters; appends the text that can be shown to `out`. */
void cli_wrap_add(struct cli_wrap *w, const char *bytes, size_t size, struct base_buffer *out);
/* Appends the text that is held back. */
void cli_wrap_flush(struct cli_wrap *w, struct base_buffer *out);
void cli_wrap_free(struct cli_wrap *w); /* may be all zeros */

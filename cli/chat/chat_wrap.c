/* cli/chat/chat_wrap.c: word wrap. See cli/chat/chat_wrap.h. */
#include "cli/chat/chat_wrap.h"
#include "base/utf8.h"
#include "cli/terminal.h"
#include <sys/ioctl.h>
#include <unistd.h>
#include <utf8proc.h>

enum { MIN_WIDTH = 20, TAB_WIDTH = 8 };

/* Returns the columns of the terminal; 0: not known, or too few. */
static size_t read_width(void)
{
    struct winsize size;
    const bool known = ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col >= MIN_WIDTH;
    return known ? size.ws_col : 0;
}

void cli_wrap_begin(struct cli_wrap *w, bool wraps)
{
    base_buffer_clear(&w->word);
    w->width = wraps ? read_width() : 0;
    w->column = w->spaces = w->word_width = 0;
    w->inside = false;
}

void cli_wrap_flush(struct cli_wrap *w, struct base_buffer *out)
{
    if (w->width == 0) return;
    const size_t width = read_width();
    if (width) w->width = width;
    const size_t end = w->column + w->spaces + w->word_width;
    if (w->word_width > 0 && w->column > 0 && end > w->width && !w->inside) {
        base_buffer_add_text(out, "\n");
        w->column = 0;
    } else {
        for (size_t i = 0; i < w->spaces; i++) base_buffer_add_text(out, " ");
        w->column += w->spaces;
    }
    base_buffer_add(out, w->word.data, w->word.size);
    out->failed |= w->word.failed;
    /* The terminal wraps a word that is longer than a line; no line end is added after a full
     * line. */
    w->column += w->word_width;
    if (w->column > w->width) w->column = (w->column - 1) % w->width + 1;
    w->spaces = w->word_width = 0;
    w->inside = false;
    base_buffer_clear(&w->word);
}

/* A space, TAB or line end completes the word. */
static void end_word(struct cli_wrap *w, char end, struct base_buffer *out)
{
    if (w->word.size || end != ' ') cli_wrap_flush(w, out);
    w->inside = false;
    w->spaces += end == ' ';
    if (end == ' ') return;
    base_buffer_add(out, &end, 1);
    const size_t stop = (w->column / TAB_WIDTH + 1) * TAB_WIDTH;
    w->column = end == '\n' ? 0 : stop < w->width ? stop : w->width;
}

void cli_wrap_add(struct cli_wrap *w, const char *bytes, size_t size, struct base_buffer *out)
{
    if (w->width == 0) {
        base_buffer_add(out, bytes, size);
        return;
    }
    for (size_t i = 0; i < size;) {
        char shown[CLI_SHOWN_MAX];
        size_t n;
        int32_t code;
        base_utf8_decode(bytes + i, size - i, &code);
        const size_t used = cli_show_character(bytes + i, size - i, true, shown, &n);
        const size_t columns = n == used && code >= 0 ? (size_t)utf8proc_charwidth(code) : n;
        i += used;
        if (code == ' ' || code == '\t' || code == '\n') {
            end_word(w, (char)code, out);
            continue;
        }
        if (columns == 2 && w->word_width > 0) cli_wrap_flush(w, out);
        base_buffer_add(&w->word, shown, n);
        w->word_width += columns;
        const bool is_long = w->word_width >= w->width;
        if (columns == 2 || is_long) cli_wrap_flush(w, out);
        w->inside |= is_long;
    }
}

void cli_wrap_free(struct cli_wrap *w)
{
    base_buffer_free(&w->word);
}

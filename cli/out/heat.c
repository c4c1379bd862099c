/* cli/out/heat.c: marks tokens by their probability. See cli/out/heat.h. */
#include "cli/out/heat.h"
#include "base/list.h"
#include "base/utf8.h"
#include "cli/system.h"
#include "cli/terminal.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <utf8proc.h>

enum {
    LEVELS = 6,
    TAB_WIDTH = 8,
    /* SVG: pixels and columns */
    SVG_COLUMNS = 84,
    SVG_CELL = 8, /* width of a character at font size 13 */
    SVG_LINE = 22,
    SVG_LEFT = 16,
    SVG_TOP = 16
};

/* Colours of the background and of the text on it; the same in all forms. */
static const struct {
    double least; /* probability */
    const char *name, *mark, *rgb, *palette, *ground, *text;
} levels[LEVELS] = {
    {0.9, "90 %", " ", NULL, NULL, NULL, "#1f2328"},
    {0.5, "50 %", "\u00b7", "48;2;255;243;191;38;2;0;0;0", "48;5;230;38;5;16", "#fff3bf",
     "#000000"},
    {0.2, "20 %", "\u2591", "48;2;255;217;138;38;2;0;0;0", "48;5;222;38;5;16", "#ffd98a",
     "#000000"},
    {0.05, "5 %", "\u2592", "48;2;255;176;102;38;2;0;0;0", "48;5;215;38;5;16", "#ffb066",
     "#000000"},
    {0.01, "1 %", "\u2593", "48;2;244;124;80;38;2;0;0;0", "48;5;209;38;5;16", "#f47c50", "#000000"},
    {0, "below 1 %", "\u2588", "48;2;192;38;29;38;2;255;255;255", "48;5;124;38;5;231", "#c0261d",
     "#ffffff"},
};

struct cli_heat_token {
    size_t end; /* in the text */
    double logprob;
};

static int level_of(double logprob)
{
    int level = 0;
    if (isnan(logprob)) return 0;
    while (exp(logprob) < levels[level].least) level++;
    return level;
}

void cli_heat_begin(struct cli_heat *h, bool silent)
{
    const char *no_color = getenv("NO_COLOR"), *term = getenv("TERM"), *depth = getenv("COLORTERM");
    const bool dumb = !term || !*term || strcmp(term, "dumb") == 0;
    *h = (struct cli_heat){.silent = silent, .width = cli_stdout_width()};
    if (!cli_stdout_is_terminal() || dumb || (no_color && *no_color)) return;
    const bool rgb = depth && (strstr(depth, "truecolor") || strstr(depth, "24bit"));
    h->form = rgb ? CLI_HEAT_RGB : CLI_HEAT_256;
}

void cli_heat_free(struct cli_heat *h)
{
    base_buffer_free(&h->text);
    base_buffer_free(&h->line);
    base_buffer_free(&h->marks);
    free(h->token);
    *h = (struct cli_heat){0};
}

/* ---- Characters ---- */

/* Returns the bytes of the character at text[i..end) in the form of a terminal, its columns and the
 * bytes used. */
static size_t character(const char *text, size_t size, char shown[CLI_SHOWN_MAX], size_t *n,
                        size_t *columns)
{
    int32_t code;
    base_utf8_decode(text, size, &code);
    const size_t used = cli_show_character(text, size, false, shown, n);
    const int width = *n == used && code >= 0 ? utf8proc_charwidth(code) : (int)*n;
    *columns = width > 0 ? (size_t)width : 0;
    return used;
}

/* Returns whether the text ends within a character. */
static bool ends_within(const char *text, size_t size)
{
    for (size_t back = 1; back <= 3 && back <= size; back++) {
        const unsigned char c = (unsigned char)text[size - back];
        if ((c & 0xc0) == 0x80) continue;
        return c >= 0xc0 && back < (c >= 0xf0 ? 4u : c >= 0xe0 ? 3u : 2u);
    }
    return false;
}

/* ---- Marks below the text ---- */

static bool end_line(struct cli_heat *h, struct base_error *err)
{
    while (h->marks.size > 0 && h->marks.data[h->marks.size - 1] == ' ') h->marks.size--;
    base_buffer_add_text(&h->line, "\n");
    if (h->marks.size > 0) {
        base_buffer_add(&h->line, h->marks.data, h->marks.size);
        base_buffer_add_text(&h->line, "\n");
    }
    h->line.failed |= h->marks.failed;
    base_buffer_clear(&h->marks);
    h->column = 0;
    return cli_write_buffer(&h->line, err);
}

/* A token that does not fit begins a new line. */
static bool add_marked(struct cli_heat *h, const char *text, size_t size, int level,
                       struct base_error *err)
{
    size_t all = 0;
    for (size_t i = 0, n, columns; i < size && text[i] != '\n'; all += columns) {
        char shown[CLI_SHOWN_MAX];
        i += character(text + i, size - i, shown, &n, &columns);
    }
    if (h->column > 0 && h->column + all > h->width && !end_line(h, err)) return false;
    for (size_t i = 0, n, columns; i < size;) {
        char shown[CLI_SHOWN_MAX];
        if (text[i] == '\n') {
            if (!end_line(h, err)) return false;
            i++;
            continue;
        }
        const bool is_tab = text[i] == '\t';
        i += character(text + i, size - i, shown, &n, &columns);
        if (is_tab) columns = TAB_WIDTH - h->column % TAB_WIDTH;
        if (h->column + columns > h->width && h->column > 0 && !end_line(h, err)) return false;
        for (size_t c = 0; is_tab && c < columns; c++) base_buffer_add_text(&h->line, " ");
        if (!is_tab) base_buffer_add(&h->line, shown, n);
        for (size_t c = 0; c < columns; c++) base_buffer_add_text(&h->marks, levels[level].mark);
        h->column += columns;
    }
    return true;
}

/* ---- Colours ---- */

static bool colour(const struct cli_heat *h, int level, struct base_error *err)
{
    char sequence[64];
    if (level == 0) return true;
    snprintf(sequence, sizeof sequence, "\033[%sm",
             h->form == CLI_HEAT_RGB ? levels[level].rgb : levels[level].palette);
    return cli_write_control(sequence, err);
}

static bool end_colour(int level, struct base_error *err)
{
    return level == 0 || cli_write_control("\033[0m", err);
}

/* Line ends have no colour, because terminals fill the rest of a line with it. */
static bool add_coloured(const struct cli_heat *h, const char *text, size_t size, int level,
                         struct base_error *err)
{
    for (size_t i = 0; i < size;) {
        const char *end = memchr(text + i, '\n', size - i);
        const size_t n = end ? (size_t)(end - text) - i : size - i;
        if (n > 0 &&
            (!colour(h, level, err) || !cli_write(text + i, n, err) || !end_colour(level, err)))
            return false;
        if (end && !cli_write("\n", 1, err)) return false;
        i += n + (end != NULL);
    }
    return true;
}

/* ---- The text ---- */

static bool show(struct cli_heat *h, struct base_error *err)
{
    for (; h->n_shown < h->n_tokens; h->n_shown++) {
        const size_t start = h->n_shown ? h->token[h->n_shown - 1].end : 0;
        const struct cli_heat_token *s = &h->token[h->n_shown];
        const char *text = h->text.data + start;
        const int level = level_of(s->logprob);
        if (!(h->form == CLI_HEAT_MARKS ? add_marked(h, text, s->end - start, level, err)
                                        : add_coloured(h, text, s->end - start, level, err)))
            return false;
    }
    return true;
}

static bool add_span(struct cli_heat *h, double logprob, struct base_error *err)
{
    if (!BASE_LIST_ROOM(h->token, h->n_tokens, h->room))
        return base_fail(err, BASE_NO_MEMORY, "not enough memory for --heat");
    h->token[h->n_tokens++] = (struct cli_heat_token){h->text.size, logprob};
    return true;
}

bool cli_heat_add(struct cli_heat *h, const char *bytes, size_t size, double logprob,
                  struct base_error *err)
{
    const size_t start = h->n_tokens ? h->token[h->n_tokens - 1].end : 0;
    const bool joins = start > 0 && ends_within(h->text.data, start);
    if (!isnan(logprob)) {
        h->sum += logprob;
        h->n++;
    }
    if (size == 0) return true;
    base_buffer_add(&h->text, bytes, size);
    if (!cli_buffer_check(&h->text, err)) return false;
    if (joins) { /* the token before it was not shown yet */
        struct cli_heat_token *last = &h->token[h->n_tokens - 1];
        last->end = h->text.size;
        last->logprob = fmin(last->logprob, logprob);
    } else if (!add_span(h, logprob, err)) {
        return false;
    }
    return h->silent || ends_within(h->text.data, h->text.size) || show(h, err);
}

bool cli_heat_take(struct cli_heat *h, const struct cli_model *model, bool special,
                   const struct generate_piece *piece, struct base_error *err)
{
    BASE_LOCAL_BUFFER bytes = BASE_BUFFER_INIT;
    double logprob = NAN;
    if (piece->id < 0) return true;
    if (piece->logits)
        sample_logprobs(model->engine->options.level, piece->logits,
                        model_facts(model->model)->n_vocab, 0, NULL, piece->id, &logprob);
    text_token_bytes(model->tokenizer, piece->id, special, &bytes);
    return cli_buffer_check(&bytes, err) &&
           cli_heat_add(h, bytes.size ? bytes.data : "", bytes.size, logprob, err);
}

static void add_summary(const struct cli_heat *h, struct base_buffer *out)
{
    base_buffer_add_format(out, "%llu tokens", (unsigned long long)h->n);
    if (h->n > 0) base_buffer_add_format(out, ", perplexity %.2f", exp(-h->sum / (double)h->n));
}

bool cli_heat_next(struct cli_heat *h, struct base_error *err)
{
    struct base_buffer text = BASE_BUFFER_INIT;
    base_buffer_add_text(&text, "  (");
    add_summary(h, &text);
    base_buffer_add_text(&text, ")\n");
    const bool ok = cli_buffer_check(&text, err) && cli_heat_add(h, text.data, text.size, NAN, err);
    base_buffer_free(&text);
    h->sum = 0;
    h->n = 0;
    h->n_texts++;
    return ok;
}

/* Writes the names of the levels, each as its tokens are shown. */
static bool write_legend(struct cli_heat *h, struct base_error *err)
{
    BASE_LOCAL_BUFFER text = BASE_BUFFER_INIT;
    bool ok = cli_write("\nprobability:", 13, err);
    for (int i = 0; ok && i < LEVELS; i++) {
        base_buffer_add_format(&text, i < LEVELS - 1 ? "from %s" : "%s", levels[i].name);
        if (h->form == CLI_HEAT_MARKS && i > 0) {
            ok = cli_write(i > 1 ? ", " : " ", i > 1 ? 2 : 1, err) &&
                 cli_write(levels[i].mark, strlen(levels[i].mark), err) && cli_write(" ", 1, err) &&
                 cli_write(text.data, text.size, err);
        } else if (h->form != CLI_HEAT_MARKS) {
            ok = cli_write("  ", 2, err) && colour(h, i, err) &&
                 cli_write(text.data, text.size, err) && end_colour(i, err);
        }
        base_buffer_clear(&text);
    }
    base_buffer_add_text(&text, "\n");
    if (h->n_texts == 0) {
        add_summary(h, &text);
        base_buffer_add_text(&text, "\n");
    }
    return ok && cli_write_buffer(&text, err);
}

bool cli_heat_end(struct cli_heat *h, struct base_error *err)
{
    if (h->silent) return true;
    if (!show(h, err)) return false;
    const bool in_line = h->text.size > 0 && h->text.data[h->text.size - 1] != '\n';
    if (in_line && !(h->form == CLI_HEAT_MARKS ? end_line(h, err) : cli_write("\n", 1, err)))
        return false;
    return write_legend(h, err);
}

/* ---- SVG: with a white ground, legible in dark viewers too ---- */

/* Appends text in the form of cli/terminal.h, escaped for XML. */
static void add_svg_text(const struct base_buffer *text, struct base_buffer *out)
{
    for (size_t i = 0, n; i < text->size;) {
        char shown[CLI_SHOWN_MAX];
        i += cli_show_character(text->data + i, text->size - i, false, shown, &n);
        if (*shown == '<' || *shown == '&' || *shown == '"')
            base_buffer_add_text(out, *shown == '<' ? "&lt;" : *shown == '&' ? "&amp;" : "&quot;");
        else
            base_buffer_add(out, shown, n);
    }
    base_buffer_add_text(out, "</text>");
}

/* Where the next character is drawn. */
struct svg_position {
    size_t column, line;
};

static void add_run(const struct base_buffer *shown, struct svg_position at, size_t columns,
                    int level, struct base_buffer *out)
{
    const int x = SVG_LEFT + (int)at.column * SVG_CELL, y = SVG_TOP + (int)at.line * SVG_LINE;
    const int width = (int)columns * SVG_CELL;
    if (columns == 0) return;
    if (level > 0)
        base_buffer_add_format(out,
                               "<rect x=\"%d\" y=\"%d\" width=\"%d\" height=\"%d\" fill=\"%s\"/>",
                               x, y, width, SVG_LINE - 3, levels[level].ground);
    base_buffer_add_format(out,
                           "<text x=\"%d\" y=\"%d\" fill=\"%s\" textLength=\"%d\" "
                           "lengthAdjust=\"spacingAndGlyphs\" xml:space=\"preserve\">",
                           x, y + 14, levels[level].text, width);
    add_svg_text(shown, out);
}

/* Appends a token; one that does not fit begins a new line. */
static void add_svg_token(const char *text, size_t size, double logprob, struct svg_position *at,
                          struct base_buffer *out)
{
    BASE_LOCAL_BUFFER run = BASE_BUFFER_INIT;
    const int level = level_of(logprob);
    size_t all = 0, columns = 0;
    char shown[CLI_SHOWN_MAX];
    for (size_t i = 0, n, one; i < size && text[i] != '\n'; all += one)
        i += character(text + i, size - i, shown, &n, &one);
    if (at->column > 0 && at->column + all > SVG_COLUMNS)
        *at = (struct svg_position){0, at->line + 1};
    base_buffer_add_text(out, "<g>");
    if (!isnan(logprob)) base_buffer_add_format(out, "<title>%.3g %%</title>", 100 * exp(logprob));
    for (size_t i = 0, n, one; i < size;) {
        const bool ends = text[i] == '\n';
        const size_t used = character(text + i, size - i, shown, &n, &one);
        if (ends || at->column + columns + one > SVG_COLUMNS) {
            add_run(&run, *at, columns, level, out);
            base_buffer_clear(&run);
            *at = (struct svg_position){0, at->line + 1};
            columns = 0;
        }
        i += used;
        if (ends) continue;
        base_buffer_add(&run, shown, n);
        columns += one;
    }
    add_run(&run, *at, columns, level, out);
    base_buffer_add_text(out, "</g>\n");
    at->column += columns;
    out->failed |= run.failed;
}

static void add_svg_legend(const struct cli_heat *h, int y, struct base_buffer *out)
{
    BASE_LOCAL_BUFFER summary = BASE_BUFFER_INIT;
    if (h->n_texts == 0) add_summary(h, &summary);
    base_buffer_add_format(out,
                           "<g font-family=\"sans-serif\" font-size=\"12\">\n"
                           "<text x=\"%d\" y=\"%d\">probability of each token:</text>\n",
                           SVG_LEFT, y);
    for (int i = 0; i < LEVELS; i++) {
        const int x = SVG_LEFT + 164 + i * 87;
        base_buffer_add_format(out,
                               "<rect x=\"%d\" y=\"%d\" width=\"14\" height=\"14\" fill=\"%s\" "
                               "stroke=\"#8c959f\"/><text x=\"%d\" y=\"%d\">%s%s</text>\n",
                               x, y - 12, levels[i].ground ? levels[i].ground : "#ffffff", x + 20,
                               y, i < LEVELS - 1 ? "from " : "", levels[i].name);
    }
    base_buffer_add_format(out, "<text x=\"%d\" y=\"%d\" fill=\"#57606a\">", SVG_LEFT, y + 20);
    add_svg_text(&summary, out);
    base_buffer_add_text(out, "\n</g>\n");
    out->failed |= summary.failed;
}

bool cli_heat_svg(const struct cli_heat *h, struct base_output *file, struct base_error *err)
{
    BASE_LOCAL_BUFFER body = BASE_BUFFER_INIT, out = BASE_BUFFER_INIT;
    struct svg_position at = {0, 0};
    for (size_t i = 0; i < h->n_tokens; i++) {
        const size_t start = i ? h->token[i - 1].end : 0;
        add_svg_token(h->text.data + start, h->token[i].end - start, h->token[i].logprob, &at,
                      &body);
    }
    const int y = SVG_TOP + (int)(at.line + 1) * SVG_LINE + 24;
    add_svg_legend(h, y, &body);
    const int width = 2 * SVG_LEFT + SVG_COLUMNS * SVG_CELL;
    base_buffer_add_format(
        &out,
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%d\" height=\"%d\" "
        "viewBox=\"0 0 %d %d\" font-family=\"ui-monospace, DejaVu Sans Mono, Menlo, Consolas, "
        "monospace\" font-size=\"13\" fill=\"#1f2328\">\n"
        "<rect width=\"100%%\" height=\"100%%\" rx=\"6\" fill=\"#ffffff\"/>\n",
        width, y + 36, width, y + 36);
    base_buffer_add(&out, body.data, body.size);
    base_buffer_add_text(&out, "</svg>\n");
    out.failed |= body.failed;
    return cli_buffer_check(&out, err) && base_output_write(file, out.data, out.size, err);
}

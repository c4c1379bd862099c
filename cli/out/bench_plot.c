/* cli/out/bench_plot.c: draws the results of `infer bench` as bars, for terminals and as SVG. Each
 * bar is the larger of a test's shares of the two limits: reading memory and multiplying
 * integers. */
#include "cli/out/bench.h"
#include "cli/terminal.h"
#include <stdio.h>

enum {
    BAR_CELLS = 16, /* characters of a full bar */
    LABEL_SIZE = 64,
    /* SVG, in pixels */
    SVG_WIDTH = 760,
    SVG_TOP = 56,
    SVG_ROW = 26,
    SVG_BAR_X = 280,
    SVG_BAR_WIDTH = 300
};

struct bar {
    char label[LABEL_SIZE];
    const char *limit; /* name of the limit */
    double share;      /* 0 .. 1 (above 1 if other load lowered the measured limit) */
    double rate;
};

static struct bar bar_of(const struct cli_bench_result *r)
{
    const bool multiplies = r->of_int8 > r->of_bandwidth;
    struct bar bar = {.limit = multiplies ? "int8" : "bandwidth",
                      .share = multiplies ? r->of_int8 : r->of_bandwidth,
                      .rate = r->median};
    int n = snprintf(bar.label, sizeof bar.label, "%s %u", cli_bench_test_name(r), r->n_tokens);
    if (r->n_seq > 1) n += snprintf(bar.label + n, sizeof bar.label - n, " x%u", r->n_seq);
    if (r->depth > 0) snprintf(bar.label + n, sizeof bar.label - n, " @%u", r->depth);
    return bar;
}

/* Appends filled cells, then one that is filled by eighths (U+2588 back to U+258F), then spaces. */
static void add_cells(double share, struct base_buffer *out)
{
    const int eighths = share >= 1 ? 8 * BAR_CELLS : (int)(share * 8 * BAR_CELLS + 0.5);
    for (int cell = 0; cell < BAR_CELLS; cell++) {
        const int here = eighths - 8 * cell;
        const char block[4] = {'\xe2', '\x96', (char)(0x90 - (here < 8 ? here : 8)), '\0'};
        base_buffer_add_text(out, here > 0 ? block : " ");
    }
}

void cli_bench_plot(const struct cli_bench *b, struct base_buffer *out)
{
    base_buffer_add_text(out, "\n");
    for (size_t i = 0; i < b->n_results; i++) {
        const struct bar bar = bar_of(&b->result[i]);
        base_buffer_add_format(out, "%-20s %9.2f tokens/s |", bar.label, bar.rate);
        add_cells(bar.share, out);
        base_buffer_add_format(out, "| %5.1f %% of %s\n", 100 * bar.share, bar.limit);
    }
}

static void add_xml(const struct base_buffer *text, struct base_buffer *out)
{
    for (size_t i = 0, n; i < text->size;) {
        char shown[CLI_SHOWN_MAX];
        i += cli_show_character(text->data + i, text->size - i, false, shown, &n);
        if (*shown == '<' || *shown == '&')
            base_buffer_add_text(out, *shown == '<' ? "&lt;" : "&amp;");
        else
            base_buffer_add(out, shown, n);
    }
}

static void add_svg_row(const struct bar *bar, int y, struct base_buffer *out)
{
    const double width = SVG_BAR_WIDTH * (bar->share < 1 ? bar->share : 1);
    base_buffer_add_format(
        out,
        "<text x=\"12\" y=\"%d\">%s</text>\n"
        "<text x=\"%d\" y=\"%d\" text-anchor=\"end\">%.1f tokens/s</text>\n"
        "<rect x=\"%d\" y=\"%d\" width=\"%d\" height=\"%d\" fill=\"#e4e7eb\"/>\n"
        "<rect x=\"%d\" y=\"%d\" width=\"%.1f\" height=\"%d\" fill=\"#2f6fab\"/>\n"
        "<text x=\"%d\" y=\"%d\">%.1f %% of %s</text>\n",
        y, bar->label, SVG_BAR_X - 12, y, bar->rate, SVG_BAR_X, y - 13, SVG_BAR_WIDTH, SVG_ROW - 8,
        SVG_BAR_X, y - 13, width, SVG_ROW - 8, SVG_BAR_X + SVG_BAR_WIDTH + 10, y, 100 * bar->share,
        bar->limit);
}

void cli_bench_svg(const struct cli_bench *b, struct base_buffer *out)
{
    const int height = SVG_TOP + (int)b->n_results * SVG_ROW + 12;
    base_buffer_add_format(out,
                           "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%d\" height=\"%d\" "
                           "viewBox=\"0 0 %d %d\" font-family=\"sans-serif\" font-size=\"13\">\n"
                           "<rect width=\"100%%\" height=\"100%%\" fill=\"#ffffff\"/>\n"
                           "<text x=\"12\" y=\"24\" font-weight=\"bold\">",
                           SVG_WIDTH, height, SVG_WIDTH, height);
    add_xml(&b->model.name, out);
    base_buffer_add_format(out,
                           ", %s, %d threads</text>\n<text x=\"12\" y=\"42\" font-size=\"11\">"
                           "limits: reading %.1f GB/s, int8 %.0f G multiply-adds/s</text>\n",
                           cpu_level_name(b->model.engine->options.level),
                           b->model.engine->options.n_threads, b->bandwidth / 1e9, b->int8 / 1e9);
    for (size_t i = 0; i < b->n_results; i++) {
        const struct bar bar = bar_of(&b->result[i]);
        add_svg_row(&bar, SVG_TOP + (int)i * SVG_ROW + SVG_ROW / 2 + 5, out);
    }
    base_buffer_add_text(out, "</svg>\n");
}

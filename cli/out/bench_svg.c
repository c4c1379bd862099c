/* cli/out/bench_svg.c: draws the results of `infer bench` as SVG: a line chart for each test, with
 * the lowest and highest measurement at each point; without an axis, bars of the shares of the
 * limits.
 *
 *     title, machine
 *     test: tokens/s over depth     o 1 threads   o 2 threads      chart
 *      800 |...o
 *      400 |........o
 *        0 +----------                                             PLOT_HEIGHT
 *          0    1024                                               name of the axis
 */
#include "cli/out/bench.h"
#include "cli/out/svg.h"
#include "cli/system.h"
#include <math.h>
#include <string.h>

enum {
    WIDTH = 760,
    TOP = 56,
    PLOT_X = 72,
    PLOT_WIDTH = 660,
    PLOT_HEIGHT = 200,
    CHART_HEIGHT = 292, /* without the lines of its legend */
    LEGEND_ROW = 18,
    LEGEND_COLUMNS = 2,
    LABEL_GAP = 44, /* between two labels of the axis */
    BAR_ROW = 44,   /* a label, and below it the rate, the bar and its share */
    BAR_HEIGHT = 18,
    BAR_WIDTH = 400,
    BAR_X = 140
};

/* Distinguishable without colour vision (the palette of Okabe and Ito), and by the marks' shapes.
 */
static const char *const colours[] = {"#0072b2", "#d55e00", "#009e73", "#cc79a7",
                                      "#e69f00", "#56b4e9", "#555555", "#8a5a00"};
enum { N_COLOURS = sizeof colours / sizeof colours[0] };

struct chart {
    const struct cli_bench_table *t;
    enum cli_bench_field axis;
    bool is_prompt;
    int y;              /* of its title */
    int plot_y;         /* of the upper end of the axes */
    double x0, x1, top; /* range of the axes: x0 to x1, 0 to top */
    size_t n_lines;
};

/* ---- Axes ---- */

/* Returns a round number (1, 2 or 5 times a power of ten) that is at least x. */
static double round_up(double x)
{
    const double power = pow(10, floor(log10(x)));
    for (int i = 1; i <= 5; i += 1 + (i > 1) * 2)
        if (x <= i * power * (1 + 1e-9)) return i * power;
    return 10 * power;
}

static double at_x(const struct chart *c, double x)
{
    const double part = c->x1 > c->x0 ? (x - c->x0) / (c->x1 - c->x0) : 0.5;
    return PLOT_X + 16 + part * (PLOT_WIDTH - 32);
}

static double at_y(const struct chart *c, double y)
{
    return c->plot_y + PLOT_HEIGHT * (1 - y / c->top);
}

static bool is_in(const struct chart *c, size_t i)
{
    return c->t->row[i].is_prompt == c->is_prompt;
}

static bool begins_line(const struct chart *c, size_t i)
{
    bool begins = is_in(c, i);
    for (size_t k = 0; begins && k < i; k++)
        begins = !cli_bench_same_line(&c->t->row[k], &c->t->row[i], c->axis);
    return begins;
}

static void measure(struct chart *c)
{
    double most = 0;
    c->x0 = INFINITY;
    c->x1 = -INFINITY;
    for (size_t i = 0; i < c->t->n; i++) {
        const struct cli_bench_row *r = &c->t->row[i];
        if (!is_in(c, i) || r->n_samples == 0) continue;
        const double x = cli_bench_axis_value(r, c->axis);
        c->x0 = fmin(c->x0, x);
        c->x1 = fmax(c->x1, x);
        most = fmax(most, r->sample[r->n_samples - 1]);
        c->n_lines += begins_line(c, i);
    }
    const double step = round_up(fmax(most, 1e-3) / 4);
    c->top = step * ceil(most / step);
}

static void add_axes(const struct chart *c, const char *name, struct base_buffer *out)
{
    const double step = round_up(c->top / 5.0001);
    double last = -INFINITY;
    for (int i = 0; i * step <= c->top * 1.0001; i++) {
        const double y = at_y(c, i * step);
        base_buffer_add_format(
            out,
            "<line x1=\"%d\" x2=\"%d\" y1=\"%.1f\" y2=\"%.1f\" stroke=\"%s\"/>\n"
            "<text x=\"%d\" y=\"%.1f\" text-anchor=\"end\" font-size=\"12\">%.6g</text>\n",
            PLOT_X, PLOT_X + PLOT_WIDTH, y, y, i ? "#dfe3e8" : "#57606a", PLOT_X - 8, y + 4,
            i * step);
    }
    /* A tick at each value; a label where there is room, from the least value on. */
    for (double from = -INFINITY, next;; from = next) {
        next = INFINITY;
        for (size_t i = 0; i < c->t->n; i++) {
            const double x = cli_bench_axis_value(&c->t->row[i], c->axis);
            if (is_in(c, i) && x > from && x < next) next = x;
        }
        if (next == INFINITY) break;
        const double x = at_x(c, next);
        const int bottom = c->plot_y + PLOT_HEIGHT;
        base_buffer_add_format(
            out, "<line x1=\"%.1f\" x2=\"%.1f\" y1=\"%d\" y2=\"%d\" stroke=\"#57606a\"/>\n", x, x,
            bottom, bottom + 5);
        if (x - last < LABEL_GAP) continue;
        base_buffer_add_format(
            out, "<text x=\"%.1f\" y=\"%d\" text-anchor=\"middle\" font-size=\"12\">%.0f</text>\n",
            x, bottom + 20, next);
        last = x;
    }
    base_buffer_add_format(out,
                           "<text x=\"%d\" y=\"%d\" text-anchor=\"middle\" font-size=\"12\" "
                           "fill=\"#57606a\">%s%s</text>\n",
                           PLOT_X + PLOT_WIDTH / 2, c->plot_y + PLOT_HEIGHT + 40, name,
                           c->axis == CLI_BENCH_DEPTH ? " (tokens in the context)" : "");
}

/* ---- Lines ---- */

/* Appends a mark; its shape distinguishes lines without colours. */
static void add_mark(double x, double y, size_t line, struct base_buffer *out)
{
    const char *colour = colours[line % N_COLOURS];
    if (line % 3 == 0)
        base_buffer_add_format(out, "<circle cx=\"%.1f\" cy=\"%.1f\" r=\"4\" fill=\"%s\"/>", x, y,
                               colour);
    else if (line % 3 == 1)
        base_buffer_add_format(out,
                               "<rect x=\"%.1f\" y=\"%.1f\" width=\"8\" height=\"8\" fill=\"%s\"/>",
                               x - 4, y - 4, colour);
    else
        base_buffer_add_format(out, "<path d=\"M%.1f %.1fl5 9h-10z\" fill=\"%s\"/>", x, y - 5.5,
                               colour);
}

/* Appends the rest of the points of the line that begins with row `first`, in the order of the
 * axis; a bar from the lowest to the highest measurement at each. */
static void add_line(const struct chart *c, size_t first, size_t line, struct base_buffer *out)
{
    const char *colour = colours[line % N_COLOURS], *limit;
    struct base_buffer marks = BASE_BUFFER_INIT;
    base_buffer_add_text(out, "<polyline points=\"");
    for (double from = -INFINITY;;) {
        const struct cli_bench_row *next = NULL;
        for (size_t i = first; i < c->t->n; i++) {
            const struct cli_bench_row *r = &c->t->row[i];
            const double x = cli_bench_axis_value(r, c->axis);
            if (cli_bench_same_line(r, &c->t->row[first], c->axis) && r->n_samples && x > from &&
                (!next || x < cli_bench_axis_value(next, c->axis)))
                next = r;
        }
        if (!next) break;
        from = cli_bench_axis_value(next, c->axis);
        const double x = at_x(c, from), y = at_y(c, cli_bench_rate(next));
        const double share = cli_bench_share(next, &limit);
        base_buffer_add_format(out, "%.1f,%.1f ", x, y);
        base_buffer_add_format(
            &marks,
            "<g><title>%.1f tokens/s (%.1f to %.1f), %.0f %% of %s</title>"
            "<line x1=\"%.1f\" x2=\"%.1f\" y1=\"%.1f\" y2=\"%.1f\" stroke=\"%s\"/>",
            cli_bench_rate(next), next->sample[0], next->sample[next->n_samples - 1], 100 * share,
            limit, x, x, at_y(c, next->sample[0]), at_y(c, next->sample[next->n_samples - 1]),
            colour);
        add_mark(x, y, line, &marks);
        base_buffer_add_text(&marks, "</g>\n");
    }
    base_buffer_add_format(out, "\" fill=\"none\" stroke=\"%s\" stroke-width=\"2\"/>\n", colour);
    base_buffer_add(out, marks.data, marks.size);
    out->failed |= marks.failed;
    base_buffer_free(&marks);
}

static void add_legend(const struct chart *c, size_t row, size_t line, struct base_buffer *out)
{
    struct base_buffer name = BASE_BUFFER_INIT;
    const int x = PLOT_X + (int)(line % LEGEND_COLUMNS) * (PLOT_WIDTH / LEGEND_COLUMNS);
    const int y = c->y + LEGEND_ROW * (1 + (int)(line / LEGEND_COLUMNS));
    cli_bench_add_line_name(c->t, &c->t->row[row], c->axis, &name);
    if (name.size) {
        add_mark(x + 6, y - 4, line, out);
        base_buffer_add_format(out, "<text x=\"%d\" y=\"%d\" font-size=\"12\">", x + 18, y);
        cli_svg_add_text(name.data, name.size, out);
        base_buffer_add_text(out, "</text>\n");
    }
    out->failed |= name.failed;
    base_buffer_free(&name);
}

static int legend_height(const struct chart *c)
{
    return c->n_lines > 1 ? LEGEND_ROW * (int)((c->n_lines + LEGEND_COLUMNS - 1) / LEGEND_COLUMNS)
                          : 0;
}

static void add_chart(struct chart *c, struct base_buffer *out)
{
    struct base_buffer title = BASE_BUFFER_INIT;
    size_t line = 0, first = 0;
    while (!is_in(c, first)) first++;
    c->plot_y = c->y + legend_height(c) + 18;
    cli_bench_add_title(c->t, &c->t->row[first], c->axis, &title);
    base_buffer_add_format(out, "<text x=\"12\" y=\"%d\" font-weight=\"bold\">", c->y);
    cli_svg_add_text(title.data ? title.data : "", title.size, out);
    base_buffer_add_text(out, "</text>\n");
    const char *over = title.data ? strstr(title.data, "over ") : NULL;
    add_axes(c, over ? over + strlen("over ") : "", out);
    for (size_t i = 0; i < c->t->n; i++) {
        if (!begins_line(c, i)) continue;
        if (c->n_lines > 1) add_legend(c, i, line, out);
        add_line(c, i, line++, out);
    }
    out->failed |= title.failed;
    base_buffer_free(&title);
}

/* ---- Bars ---- */

static void add_bars(const struct cli_bench_table *t, struct base_buffer *out)
{
    for (size_t i = 0; i < t->n; i++) {
        const struct cli_bench_row *r = &t->row[i];
        struct base_buffer label = BASE_BUFFER_INIT;
        const char *limit;
        const double share = cli_bench_share(r, &limit);
        const int y = TOP + (int)i * BAR_ROW + 16;
        cli_bench_add_label(t, r, &label);
        base_buffer_add_format(out, "<text x=\"12\" y=\"%d\" font-weight=\"bold\">", y);
        cli_svg_add_text(label.data ? label.data : "", label.size, out);
        base_buffer_add_format(
            out,
            "</text>\n<text x=\"12\" y=\"%d\">%.1f tokens/s</text>\n"
            "<rect x=\"%d\" y=\"%d\" width=\"%d\" height=\"%d\" fill=\"#e4e7eb\"/>\n"
            "<rect x=\"%d\" y=\"%d\" width=\"%.1f\" height=\"%d\" fill=\"%s\"/>\n"
            "<text x=\"%d\" y=\"%d\">%.0f %% of %s</text>\n",
            y + 20, cli_bench_rate(r), BAR_X, y + 7, BAR_WIDTH, BAR_HEIGHT, BAR_X, y + 7,
            BAR_WIDTH * fmin(share, 1), BAR_HEIGHT, colours[0], BAR_X + BAR_WIDTH + 12, y + 20,
            100 * share, limit);
        out->failed |= label.failed;
        base_buffer_free(&label);
    }
}

static void add_head(const struct cli_bench_table *t, struct base_buffer *out)
{
    const struct cli_bench_row *last = &t->row[t->n - 1];
    const struct cli_bench_setup *s = last->setup;
    base_buffer_add_text(out, "<text x=\"12\" y=\"24\" font-size=\"15\" font-weight=\"bold\">");
    if (cli_bench_varies(t, CLI_BENCH_FILE))
        base_buffer_add_text(out, "infer bench");
    else
        cli_svg_add_text(s->model, strlen(s->model), out);
    base_buffer_add_format(out, "</text>\n<text x=\"12\" y=\"42\" font-size=\"12\">%s", s->level);
    if (!cli_bench_varies(t, CLI_BENCH_THREADS))
        base_buffer_add_format(out, ", %d thread%s", s->threads, s->threads == 1 ? "" : "s");
    base_buffer_add_text(out, "; ");
    cli_bench_add_limits(last, out);
    base_buffer_add_text(out, "; medians, lowest to highest</text>\n");
}

bool cli_bench_svg(const struct cli_bench_table *t, struct base_buffer *out, struct base_error *err)
{
    const enum cli_bench_field axis = cli_bench_axis(t);
    struct base_buffer body = BASE_BUFFER_INIT;
    int height = TOP + 12;
    add_head(t, &body);
    if (axis == CLI_BENCH_FIELDS) {
        add_bars(t, &body);
        height += (int)t->n * BAR_ROW;
    }
    for (int test = 0; test < 2 && axis != CLI_BENCH_FIELDS; test++) {
        struct chart c = {.t = t, .axis = axis, .is_prompt = test == 0, .y = height + 8};
        measure(&c);
        if (c.n_lines == 0) continue;
        add_chart(&c, &body);
        height += CHART_HEIGHT + legend_height(&c);
    }
    cli_svg_begin(WIDTH, height, "sans-serif", out);
    base_buffer_add(out, body.data, body.size);
    cli_svg_end(out);
    out->failed |= body.failed;
    base_buffer_free(&body);
    return cli_buffer_check(out, err);
}

/* cli/out/bench_plot.c: draws the results of `infer bench` for terminals, as bars: tokens per
 * second over what varies, or each test's share of the machine's limit. */
#include "cli/out/bench.h"
#include <string.h>

enum {
    CELLS_MIN = 8,
    CELLS_MAX = 60,
    AFTER = 34 /* columns beside a bar and its label */,
    LABEL = 8
};

/* ---- What is drawn ---- */

static const struct {
    enum cli_bench_field field;
    const char *unit; /* of a line's name: "2 threads" */
} axes[] = {{CLI_BENCH_DEPTH, "depth"},
            {CLI_BENCH_THREADS, "threads"},
            {CLI_BENCH_SEQ, "sequences"},
            {CLI_BENCH_TOKENS, "tokens"},
            {CLI_BENCH_BATCH, "batch size"}};
enum { N_AXES = sizeof axes / sizeof axes[0] };

/* Returns whether two rows of one test differ in a field; of the test of `like`, NULL: of any. */
static bool varies_in_test(const struct cli_bench_table *t, const struct cli_bench_row *like,
                           enum cli_bench_field f)
{
    for (size_t i = 0; i < t->n; i++)
        for (size_t k = i + 1; k < t->n; k++)
            if (t->row[i].is_prompt == t->row[k].is_prompt &&
                (!like || t->row[i].is_prompt == like->is_prompt) &&
                !cli_bench_same(&t->row[i], &t->row[k], f))
                return true;
    return false;
}

/* Returns the field of the axis; CLI_BENCH_FIELDS: none varies. */
static enum cli_bench_field axis_of(const struct cli_bench_table *t)
{
    for (size_t i = 0; i < N_AXES; i++)
        if (varies_in_test(t, NULL, axes[i].field)) return axes[i].field;
    return CLI_BENCH_FIELDS;
}

/* Returns whether two rows are points of one line. */
static bool same_line(const struct cli_bench_row *a, const struct cli_bench_row *b,
                      enum cli_bench_field axis)
{
    for (int f = 0; f < CLI_BENCH_FIELDS; f++)
        if (f != (int)axis && !cli_bench_same(a, b, (enum cli_bench_field)f)) return false;
    return true;
}

/* Appends the name of a line: the fields that vary between lines of the same test; "" if none. */
static void add_line_name(const struct cli_bench_table *t, const struct cli_bench_row *r,
                          enum cli_bench_field axis, struct base_buffer *out)
{
    const size_t start = out->size;
    for (int f = 0; f < CLI_BENCH_FIELDS; f++) {
        if (f == (int)axis || f == CLI_BENCH_TEST || !varies_in_test(t, r, (enum cli_bench_field)f))
            continue;
        if (out->size > start) base_buffer_add_text(out, ", ");
        const char *unit = f == CLI_BENCH_TYPE_K ? "keys" : f == CLI_BENCH_TYPE_V ? "values" : "";
        for (size_t i = 0; i < N_AXES; i++)
            if (f == (int)axes[i].field) unit = axes[i].unit;
        const bool before = f == CLI_BENCH_TYPE_K || f == CLI_BENCH_TYPE_V ||
                            f == CLI_BENCH_DEPTH || f == CLI_BENCH_BATCH;
        if (before) base_buffer_add_format(out, "%s ", unit);
        const size_t at = out->size;
        cli_bench_add_field(r, (enum cli_bench_field)f, out);
        if (out->failed) return;
        const bool one = strcmp(out->data + at, "1") == 0;
        if (!before && *unit) base_buffer_add_format(out, " %.*s", (int)strlen(unit) - one, unit);
    }
}

/* Appends the title of a test's bars: "generate 128 tokens: tokens/s over depth". */
static void add_title(const struct cli_bench_table *t, const struct cli_bench_row *r,
                      enum cli_bench_field axis, struct base_buffer *out)
{
    base_buffer_add_text(out, r->is_prompt ? "prompt" : "generate");
    if (!varies_in_test(t, r, CLI_BENCH_TOKENS))
        base_buffer_add_format(out, " %u tokens", r->n_tokens);
    if (r->n_seq > 1 && !varies_in_test(t, r, CLI_BENCH_SEQ))
        base_buffer_add_format(out, ", %u sequences", r->n_seq);
    if (r->depth > 0 && !varies_in_test(t, r, CLI_BENCH_DEPTH))
        base_buffer_add_format(out, ", depth %u", r->depth);
    for (size_t i = 0; i < N_AXES; i++)
        if (axis == axes[i].field) base_buffer_add_format(out, ": tokens/s over %s", axes[i].unit);
}

/* ---- Bars ---- */

/* Appends filled cells, then one that is filled by eighths (U+2588 back to U+258F), then spaces. */
static void add_cells(double share, size_t cells, struct base_buffer *out)
{
    const size_t eighths = share >= 1 ? 8 * cells : (size_t)(share * 8 * (double)cells + 0.5);
    for (size_t cell = 0; cell < cells; cell++) {
        const size_t here = eighths > 8 * cell ? eighths - 8 * cell : 0;
        const char block[4] = {'\xe2', '\x96', (char)(0x90 - (here < 8 ? here : 8)), '\0'};
        base_buffer_add_text(out, here > 0 ? block : " ");
    }
}

static size_t cells_of(size_t width, size_t label)
{
    const size_t used = label + AFTER;
    const size_t cells = width > used + CELLS_MIN ? width - used : CELLS_MIN;
    return cells < CELLS_MAX ? cells : CELLS_MAX;
}

static void add_bar(const struct base_buffer *label, size_t room, double part, size_t width,
                    const struct cli_bench_row *r, struct base_buffer *out)
{
    const char *limit;
    const double share = cli_bench_share(r, &limit);
    const char *text = label->size ? label->data : "";
    const bool above = room > width / 3; /* a long label has a line of its own */
    if (above) base_buffer_add_format(out, "  %s\n", text);
    base_buffer_add_format(out, "  %*s |", above ? 2 : (int)room, above ? "" : text);
    add_cells(part, cells_of(width, above ? 2 : room), out);
    base_buffer_add_format(out, "%9.1f  %3.0f %% of %s\n", cli_bench_rate(r), 100 * share, limit);
}

/* Draws the chart of a test: the bars of each line together, as parts of the highest rate. */
static void add_chart(const struct cli_bench_table *t, bool is_prompt, enum cli_bench_field axis,
                      size_t width, struct base_buffer *out)
{
    double most = 0;
    bool first = true;
    for (size_t i = 0; i < t->n; i++)
        if (t->row[i].is_prompt == is_prompt && cli_bench_rate(&t->row[i]) > most)
            most = cli_bench_rate(&t->row[i]);
    for (size_t i = 0; i < t->n; i++) {
        const struct cli_bench_row *r = &t->row[i];
        bool begins = r->is_prompt == is_prompt;
        for (size_t k = 0; begins && k < i; k++) begins = !same_line(&t->row[k], r, axis);
        if (!begins) continue;
        BASE_LOCAL_BUFFER name = BASE_BUFFER_INIT, label = BASE_BUFFER_INIT;
        if (first) {
            base_buffer_add_text(out, "\n");
            add_title(t, r, axis, out);
            base_buffer_add_text(out, "\n");
        }
        first = false;
        add_line_name(t, r, axis, &name);
        if (name.size) base_buffer_add_format(out, "  %s\n", name.data);
        for (size_t k = i; k < t->n; k++) {
            if (!same_line(&t->row[k], r, axis)) continue;
            base_buffer_clear(&label);
            cli_bench_add_field(&t->row[k], axis, &label);
            add_bar(&label, LABEL, cli_bench_rate(&t->row[k]) / most, width, &t->row[k], out);
        }
        out->failed |= name.failed | label.failed;
    }
}

/* Appends a row's test and what distinguishes it from others. */
static void add_label(const struct cli_bench_table *t, const struct cli_bench_row *r,
                      struct base_buffer *out)
{
    add_title(t, r, CLI_BENCH_FIELDS, out);
    BASE_LOCAL_BUFFER name = BASE_BUFFER_INIT;
    add_line_name(t, r, CLI_BENCH_FIELDS, &name);
    if (name.size) base_buffer_add_format(out, ", %s", name.data);
    out->failed |= name.failed;
}

static void add_shares(const struct cli_bench_table *t, size_t width, struct base_buffer *out)
{
    BASE_LOCAL_BUFFER label = BASE_BUFFER_INIT;
    const char *limit;
    size_t room = 0;
    for (size_t i = 0; i < t->n; i++) {
        base_buffer_clear(&label);
        add_label(t, &t->row[i], &label);
        if (label.size > room) room = label.size;
    }
    base_buffer_add_text(out, "\nshares of the limit, tokens/s\n");
    for (size_t i = 0; i < t->n; i++) {
        base_buffer_clear(&label);
        add_label(t, &t->row[i], &label);
        add_bar(&label, room, cli_bench_share(&t->row[i], &limit), width, &t->row[i], out);
    }
    out->failed |= label.failed;
}

void cli_bench_plot(const struct cli_bench_table *t, size_t width, struct base_buffer *out)
{
    const enum cli_bench_field axis = axis_of(t);
    if (axis == CLI_BENCH_FIELDS) {
        add_shares(t, width, out);
        return;
    }
    add_chart(t, true, axis, width, out);
    add_chart(t, false, axis, width, out);
}

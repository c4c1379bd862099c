/* cli/out/bench_report.c: writes the results of `infer bench` as md, json, jsonl and csv. */
#include "cli/commands.h"
#include "cli/out/bench.h"
#include <stdio.h>
#include <string.h>
#include <strings.h>

const char *const cli_bench_field_name[CLI_BENCH_FIELDS] = {
    [CLI_BENCH_FILE] = "file",           [CLI_BENCH_THREADS] = "threads",
    [CLI_BENCH_BATCH] = "batch_size",    [CLI_BENCH_TYPE_K] = "cache_type_k",
    [CLI_BENCH_TYPE_V] = "cache_type_v", [CLI_BENCH_GPU] = "gpu_layers",
    [CLI_BENCH_TEST] = "test",           [CLI_BENCH_TOKENS] = "tokens",
    [CLI_BENCH_DEPTH] = "depth",         [CLI_BENCH_SEQ] = "sequences",
};

/* ---- Rows ---- */

void cli_bench_add_field(const struct cli_bench_row *r, enum cli_bench_field f,
                         struct base_buffer *out)
{
    const struct cli_bench_setup *s = r->setup;
    const char *const text[CLI_BENCH_FIELDS] = {
        [CLI_BENCH_FILE] = s->file,
        [CLI_BENCH_TYPE_K] = s->type_k,
        [CLI_BENCH_TYPE_V] = s->type_v,
        [CLI_BENCH_TEST] = r->is_prompt ? "prompt" : "generate",
    };
    const int64_t number[CLI_BENCH_FIELDS] = {
        [CLI_BENCH_THREADS] = s->threads, [CLI_BENCH_BATCH] = s->batch_size,
        [CLI_BENCH_GPU] = s->gpu_layers,  [CLI_BENCH_TOKENS] = r->n_tokens,
        [CLI_BENCH_DEPTH] = r->depth,     [CLI_BENCH_SEQ] = r->n_seq,
    };
    if (text[f])
        base_buffer_add_text(out, text[f]);
    else
        base_buffer_add_format(out, "%lld", (long long)number[f]);
}

bool cli_bench_same(const struct cli_bench_row *a, const struct cli_bench_row *b,
                    enum cli_bench_field f)
{
    BASE_LOCAL_BUFFER x = BASE_BUFFER_INIT, y = BASE_BUFFER_INIT;
    cli_bench_add_field(a, f, &x);
    cli_bench_add_field(b, f, &y);
    return x.size == y.size && memcmp(x.data, y.data, x.size) == 0;
}

bool cli_bench_varies(const struct cli_bench_table *t, enum cli_bench_field f)
{
    for (size_t i = 1; i < t->n; i++)
        if (!cli_bench_same(&t->row[0], &t->row[i], f)) return true;
    return false;
}

double cli_bench_rate(const struct cli_bench_row *r)
{
    return cli_bench_median(r->sample, r->n_samples);
}

double cli_bench_share(const struct cli_bench_row *r, const char **limit)
{
    const bool multiplies = r->of_int8 > r->of_bandwidth;
    *limit = multiplies ? "int8" : "bandwidth";
    return multiplies ? r->of_int8 : r->of_bandwidth;
}

static double lowest(const struct cli_bench_row *r)
{
    return r->n_samples ? r->sample[0] : 0;
}

static double highest(const struct cli_bench_row *r)
{
    return r->n_samples ? r->sample[r->n_samples - 1] : 0;
}

/* ---- Markdown ---- */

/* Columns that are shown only where rows differ; the header has the value otherwise. */
static const struct {
    enum cli_bench_field field;
    const char *title;
} optional[] = {{CLI_BENCH_FILE, "file"},
                {CLI_BENCH_THREADS, "-t"},
                {CLI_BENCH_BATCH, "-b"},
                {CLI_BENCH_TYPE_K, "-ctk"},
                {CLI_BENCH_TYPE_V, "-ctv"}};
enum { N_OPTIONAL = sizeof optional / sizeof optional[0] };

static int width_of(const struct cli_bench_table *t, size_t column)
{
    size_t width = strlen(optional[column].title);
    for (size_t i = 0; i < t->n; i++) {
        BASE_LOCAL_BUFFER text = BASE_BUFFER_INIT;
        cli_bench_add_field(&t->row[i], optional[column].field, &text);
        if (text.size > width) width = text.size;
    }
    return (int)width;
}

/* Appends the cells of a row; without one the titles (`fill` a space) or the line below ('-'). */
static void add_columns(const struct cli_bench_table *t, const struct cli_bench_row *r, char fill,
                        struct base_buffer *out)
{
    for (size_t c = 0; c < N_OPTIONAL; c++) {
        if (!cli_bench_varies(t, optional[c].field)) continue;
        const int width = width_of(t, c);
        BASE_LOCAL_BUFFER cell = BASE_BUFFER_INIT;
        base_buffer_add_text(out, fill == '-' ? "|-" : "| ");
        if (r)
            cli_bench_add_field(r, optional[c].field, &cell);
        else if (fill == ' ')
            base_buffer_add_text(&cell, optional[c].title);
        base_buffer_add(out, cell.data, cell.size);
        for (int i = (int)cell.size; i < width + 1; i++) base_buffer_add(out, &fill, 1);
        out->failed |= cell.failed;
    }
}

static void add_test(const struct cli_bench_table *t, const struct cli_bench_row *r, char fill,
                     struct base_buffer *out)
{
    bool has_seq = false;
    for (size_t i = 0; i < t->n; i++) has_seq |= t->row[i].n_seq > 1;
    if (r)
        base_buffer_add_format(out, "| %-8s | %6u | %5u ", r->is_prompt ? "prompt" : "generate",
                               r->n_tokens, r->depth);
    else
        base_buffer_add_text(out, fill == '-' ? "|----------|-------:|------:"
                                              : "| test     | tokens | depth ");
    if (has_seq && r)
        base_buffer_add_format(out, "| %3u ", r->n_seq);
    else if (has_seq)
        base_buffer_add_text(out, fill == '-' ? "|----:" : "| seq ");
}

void cli_bench_add_cells(const struct cli_bench_table *t, const struct cli_bench_row *r,
                         struct base_buffer *out)
{
    add_columns(t, r, ' ', out);
    add_test(t, r, ' ', out);
}

void cli_bench_add_head(const struct cli_bench_table *t, const char *titles, const char *line,
                        struct base_buffer *out)
{
    cli_bench_add_cells(t, NULL, out);
    base_buffer_add_text(out, titles);
    add_columns(t, NULL, '-', out);
    add_test(t, NULL, '-', out);
    base_buffer_add_text(out, line);
}

static void add_markdown_head(const struct cli_bench_table *t, struct base_buffer *out)
{
    const struct cli_bench_setup *s = t->row[0].setup;
    if (!cli_bench_varies(t, CLI_BENCH_FILE))
        base_buffer_add_format(out, "%s, %.1f MiB, ", s->model, (double)s->weight_bytes / 0x1p20);
    base_buffer_add_text(out, s->level);
    if (s->gpu) base_buffer_add_format(out, ", %s", s->gpu);
    if (!cli_bench_varies(t, CLI_BENCH_THREADS))
        base_buffer_add_format(out, ", %d thread%s", s->threads, s->threads == 1 ? "" : "s");
    if (!cli_bench_varies(t, CLI_BENCH_BATCH))
        base_buffer_add_format(out, ", batch %lld", (long long)s->batch_size);
    base_buffer_add_text(out, "\n");
    if (!cli_bench_varies(t, CLI_BENCH_TYPE_K) && strcasecmp(s->type_k, "f16") != 0)
        base_buffer_add_format(out, "keys %s; ", s->type_k);
    if (!cli_bench_varies(t, CLI_BENCH_TYPE_V) && strcasecmp(s->type_v, "f16") != 0)
        base_buffer_add_format(out, "values %s; ", s->type_v);
    base_buffer_add_text(out, "read, int8: shares of the machine's limits\n\n");
    cli_bench_add_head(t, "| tokens/s | lowest-highest |  read |  int8 |\n",
                       "|---------:|---------------:|------:|------:|\n", out);
}

static void add_markdown_row(const struct cli_bench_table *t, const struct cli_bench_row *r,
                             struct base_buffer *out)
{
    char range[40];
    snprintf(range, sizeof range, "%.1f-%.1f", lowest(r), highest(r));
    cli_bench_add_cells(t, r, out);
    base_buffer_add_format(out, "| %8.2f | %14s | %3.0f %% | %3.0f %% |\n", cli_bench_rate(r),
                           range, 100 * r->of_bandwidth, 100 * r->of_int8);
}

void cli_bench_add_limits(const struct cli_bench_row *r, struct base_buffer *out)
{
    const struct cli_bench_setup *s = r->setup;
    base_buffer_add_format(out, "limits with %d thread%s", s->threads, s->threads == 1 ? "" : "s");
    if (s->gpu) base_buffer_add_format(out, ", %u layers on the GPU", s->gpu_layers);
    base_buffer_add_format(out, ": reading %.1f GB/s, int8 %.1f G multiply-adds/s",
                           r->bandwidth / 1e9, r->int8 / 1e9);
    if (r->disk > 0)
        base_buffer_add_format(out, ", disk %.2f GB/s (%.2f GB/s read)", r->disk / 1e9,
                               r->from_disk / 1e9);
}

/* Appends the limits for each number of threads, as of its last row. */
static void add_markdown_end(const struct cli_bench_table *t, struct base_buffer *out)
{
    base_buffer_add_text(out, "\n");
    for (size_t i = 0; i < t->n; i++) {
        const struct cli_bench_row *r = &t->row[i];
        bool is_last = true;
        for (size_t k = i + 1; k < t->n; k++)
            is_last &= !cli_bench_same(r, &t->row[k], CLI_BENCH_THREADS);
        if (!is_last) continue;
        cli_bench_add_limits(r, out);
        base_buffer_add_text(out, "\n");
    }
}

/* ---- JSON and CSV ---- */

static void add_json_row(const struct cli_bench_table *t, const struct cli_bench_row *r,
                         struct base_buffer *out)
{
    const struct cli_bench_setup *s = r->setup;
    base_buffer_add_text(out, "{");
    base_buffer_add_member(out, "model", s->model, strlen(s->model));
    base_buffer_add_member(out, "file", s->file, strlen(s->file));
    base_buffer_add_format(
        out,
        ",\"version\":\"%s\",\"weight_bytes\":%llu,\"parameters\":%llu,\"isa\":\"%s\","
        "\"threads\":%d,\"gpu_layers\":%u,\"batch_size\":%lld,\"cache_type_k\":\"%s\","
        "\"cache_type_v\":\"%s\","
        "\"test\":\"%s\",\"tokens\":%u,\"depth\":%u,\"sequences\":%u,"
        "\"tokens_per_second\":%.3f,\"lowest\":%.3f,\"highest\":%.3f,\"samples\":[",
        INFER_VERSION, (unsigned long long)s->weight_bytes, (unsigned long long)s->n_params,
        s->level, s->threads, s->gpu_layers, (long long)s->batch_size, s->type_k, s->type_v,
        r->is_prompt ? "prompt" : "generate", r->n_tokens, r->depth, r->n_seq, cli_bench_rate(r),
        lowest(r), highest(r));
    for (size_t i = 0; i < r->n_samples; i++)
        base_buffer_add_format(out, "%s%.3f", i ? "," : "", r->sample[i]);
    base_buffer_add_text(out, "],");
    base_buffer_add_string(out, "gpu", s->gpu);
    base_buffer_add_format(out,
                           ",\"share_of_bandwidth\":%.4f,\"bandwidth_bytes_per_second\":%.0f,"
                           "\"share_of_int8\":%.4f,\"int8_macs_per_second\":%.0f",
                           r->of_bandwidth, r->bandwidth, r->of_int8, r->int8);
    if (r->disk > 0)
        base_buffer_add_format(
            out, ",\"disk_bytes_per_second\":%.0f,\"disk_read_bytes_per_second\":%.0f", r->disk,
            r->from_disk);
    if (t->compares && r->ratio.known)
        base_buffer_add_format(
            out, ",\"before\":%.3f,\"ratio\":%.4f,\"ratio_low\":%.4f,\"ratio_high\":%.4f",
            r->ratio.before, r->ratio.ratio, r->ratio.low, r->ratio.high);
    else if (t->compares)
        base_buffer_add_text(out, ",\"before\":null,\"ratio\":null,\"ratio_low\":null,"
                                  "\"ratio_high\":null");
    base_buffer_add_text(out, "}");
}

/* Appends a text as a field of CSV (RFC 4180). */
static void add_csv_text(const char *text, struct base_buffer *out)
{
    const bool quoted = strpbrk(text, ",\"\r\n") != NULL;
    if (quoted) base_buffer_add_text(out, "\"");
    for (; *text; text++) base_buffer_add(out, *text == '"' ? "\"\"" : text, *text == '"' ? 2 : 1);
    if (quoted) base_buffer_add_text(out, "\"");
}

static void add_csv_row(const struct cli_bench_table *t, const struct cli_bench_row *r,
                        struct base_buffer *out)
{
    const struct cli_bench_setup *s = r->setup;
    add_csv_text(s->model, out);
    base_buffer_add_text(out, ",");
    add_csv_text(s->file, out);
    base_buffer_add_format(out, ",%s,%llu,%llu,%s,%d,%u,%lld,%s,%s,%s,%u,%u,%u,%.3f,%.3f,%.3f,",
                           INFER_VERSION, (unsigned long long)s->weight_bytes,
                           (unsigned long long)s->n_params, s->level, s->threads, s->gpu_layers,
                           (long long)s->batch_size, s->type_k, s->type_v,
                           r->is_prompt ? "prompt" : "generate", r->n_tokens, r->depth, r->n_seq,
                           cli_bench_rate(r), lowest(r), highest(r));
    for (size_t i = 0; i < r->n_samples; i++)
        base_buffer_add_format(out, "%s%.3f", i ? " " : "", r->sample[i]);
    base_buffer_add_text(out, ",");
    if (s->gpu) add_csv_text(s->gpu, out);
    base_buffer_add_format(out, ",%.4f,%.0f,%.4f,%.0f", r->of_bandwidth, r->bandwidth, r->of_int8,
                           r->int8);
    if (t->compares && r->ratio.known)
        base_buffer_add_format(out, ",%.3f,%.4f,%.4f,%.4f", r->ratio.before, r->ratio.ratio,
                               r->ratio.low, r->ratio.high);
    else if (t->compares)
        base_buffer_add_text(out, ",,,,");
    base_buffer_add_text(out, "\n");
}

/* ---- Formats ---- */

static bool is_format(const char *format, const char *name)
{
    return strcasecmp(format, name) == 0;
}

void cli_bench_begin(const struct cli_bench_table *t, const char *format, struct base_buffer *out)
{
    if (is_format(format, "md")) add_markdown_head(t, out);
    if (is_format(format, "json"))
        base_buffer_add_format(out, "{\"version\":\"%s\",\"results\":[\n", INFER_VERSION);
    if (is_format(format, "csv"))
        base_buffer_add_format(
            out,
            "model,file,version,weight_bytes,parameters,isa,threads,gpu_layers,batch_size,cache_"
            "type_k,"
            "cache_type_v,test,tokens,depth,sequences,tokens_per_second,lowest,highest,samples,gpu,"
            "share_of_bandwidth,bandwidth_bytes_per_second,share_of_int8,int8_macs_per_second%s\n",
            t->compares ? ",before,ratio,ratio_low,ratio_high" : "");
}

void cli_bench_add_row(const struct cli_bench_table *t, size_t i, const char *format,
                       struct base_buffer *out)
{
    const struct cli_bench_row *r = &t->row[i];
    if (is_format(format, "md")) add_markdown_row(t, r, out);
    if (is_format(format, "csv")) add_csv_row(t, r, out);
    if (is_format(format, "json") && i) base_buffer_add_text(out, ",\n");
    if (is_format(format, "json") || is_format(format, "jsonl")) add_json_row(t, r, out);
    if (is_format(format, "jsonl")) base_buffer_add_text(out, "\n");
}

void cli_bench_end(const struct cli_bench_table *t, const char *format, struct base_buffer *out)
{
    if (is_format(format, "md")) add_markdown_end(t, out);
    if (is_format(format, "json")) base_buffer_add_text(out, "\n]}\n");
}

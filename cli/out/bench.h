/* cli/out/bench.h: the results of `infer bench`, shared by the measurement (cmd_bench.c), the
 * formats (bench_report.c), the comparison with a file (bench_compare.c, bench_ratio.c) and the
 * bars (bench_plot.c). */
#pragma once

#include "base/buffer.h"
#include "base/error.h"
#include <stdint.h>

enum { CLI_BENCH_TYPE_SIZE = 16 };

/* What rows are measured with. */
struct cli_bench_setup {
    const char *file, *model; /* name of the file, without its folder; general.name */
    const char *level;        /* of instructions */
    const char *gpu;          /* its name; NULL: none */
    uint32_t gpu_layers;
    uint64_t weight_bytes, n_params;
    int threads;
    int64_t batch_size;
    char type_k[CLI_BENCH_TYPE_SIZE], type_v[CLI_BENCH_TYPE_SIZE];
};

/* The speed relative to that in a file. */
struct cli_bench_ratio {
    bool known;
    double before;           /* tokens per second there: the median */
    double ratio, low, high; /* above 1: faster now; the interval at 95 % */
};

/* One test: its parameters, then its results. */
struct cli_bench_row {
    const struct cli_bench_setup *setup;
    bool is_prompt;
    uint32_t n_tokens; /* per sequence */
    uint32_t depth;    /* tokens in each context before the test */
    uint32_t n_seq;
    double *sample;               /* [n_samples], ascending: tokens per second, of all sequences */
    size_t n_samples;             /* 0: not measured yet */
    double bandwidth, int8;       /* the limits: bytes and multiply-adds per second */
    double of_bandwidth, of_int8; /* shares of the two limits; 1 is the limit */
    double disk, from_disk; /* bytes per second that the disk can read, and that the test read; 0:
                               not measured, because the weights fit into memory */
    struct cli_bench_ratio ratio;
};

struct cli_bench_table {
    struct cli_bench_row *row; /* [n] */
    size_t n;
    bool compares; /* ratios are shown */
};

/* What distinguishes rows. */
enum cli_bench_field {
    CLI_BENCH_FILE,
    CLI_BENCH_THREADS,
    CLI_BENCH_BATCH,
    CLI_BENCH_TYPE_K,
    CLI_BENCH_TYPE_V,
    CLI_BENCH_GPU,
    CLI_BENCH_TEST,
    CLI_BENCH_TOKENS,
    CLI_BENCH_DEPTH,
    CLI_BENCH_SEQ,
    CLI_BENCH_FIELDS
};
extern const char *const cli_bench_field_name[CLI_BENCH_FIELDS]; /* in JSON and CSV */

/* Appends a field's value as text. */
void cli_bench_add_field(const struct cli_bench_row *r, enum cli_bench_field f,
                         struct base_buffer *out);
bool cli_bench_same(const struct cli_bench_row *a, const struct cli_bench_row *b,
                    enum cli_bench_field f);
/* Returns whether rows of the table differ in a field. */
bool cli_bench_varies(const struct cli_bench_table *t, enum cli_bench_field f);
void cli_bench_sort(double *x, size_t n);
double cli_bench_median(const double *sorted, size_t n);
/* Returns the median of a row, and a row's larger share of the two limits with its name. */
double cli_bench_rate(const struct cli_bench_row *r);
double cli_bench_share(const struct cli_bench_row *r, const char **limit);

/* Appends "limits with 2 threads: reading .. GB/s, int8 .. G multiply-adds/s". */
void cli_bench_add_limits(const struct cli_bench_row *r, struct base_buffer *out);

/* ---- Formats: md, json, jsonl or csv ----
 *
 * Append what comes before the rows, a measured row, and what comes after them. */
void cli_bench_begin(const struct cli_bench_table *t, const char *format, struct base_buffer *out);
void cli_bench_add_row(const struct cli_bench_table *t, size_t i, const char *format,
                       struct base_buffer *out);
void cli_bench_end(const struct cli_bench_table *t, const char *format, struct base_buffer *out);

/* Appends the head of a table of rows: titles of the columns that are shown only where rows differ,
 * of the test (name, tokens, depth, and sequences if some row has several), and of results; and the
 * line below them. */
void cli_bench_add_head(const struct cli_bench_table *t, const char *titles, const char *line,
                        struct base_buffer *out);
/* Appends the cells of a row before its results. */
void cli_bench_add_cells(const struct cli_bench_table *t, const struct cli_bench_row *r,
                         struct base_buffer *out);

/* ---- Comparison ---- */

struct cli_bench_saved; /* opaque: rows of a file */

/* Reads a file of --format json, jsonl or csv and finds the rows of the table in it. Fields in
 * which each side has one value (other models, numbers of threads) may differ. Fails with
 * BASE_USAGE and the file's name if it has none of the rows. The caller frees *saved, after a
 * failure too. */
bool cli_bench_saved_read(struct cli_bench_saved **saved, const char *path,
                          const struct cli_bench_table *t, struct base_error *err);
/* Sets the ratio of a measured row. */
bool cli_bench_compare(const struct cli_bench_saved *saved, struct cli_bench_table *t, size_t i,
                       struct base_error *err);
/* Appends the ratios as a Markdown table, with what else differs. */
void cli_bench_add_ratios(const struct cli_bench_saved *saved, const struct cli_bench_table *t,
                          struct base_buffer *out);
void cli_bench_saved_free(struct cli_bench_saved *saved); /* accepts NULL */

/* Estimates by how much b is faster than a: the median of all ratios b[j] / a[i] (the estimate of
 * Hodges and Lehmann), and the interval that contains the ratio of the distributions at 95 % (from
 * the order statistics of the Mann-Whitney test; with few samples all ratios). */
bool cli_bench_ratio_of(const double *a, size_t n_a, const double *b, size_t n_b,
                        struct cli_bench_ratio *out, struct base_error *err);

/* Appends bars for a terminal of `width` columns: tokens per second over the first of depth,
 * threads, sequences, tokens and batch size that varies; if none does, shares of the limits. */
void cli_bench_plot(const struct cli_bench_table *t, size_t width, struct base_buffer *out);

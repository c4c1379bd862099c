/* cli/out/bench.h: the results of `infer bench`, shared by the measurement (cmd_bench.c), the
 * formats (bench_report.c) and the charts (bench_plot.c). */
#ifndef CLI_OUT_BENCH_H
#define CLI_OUT_BENCH_H

#include "cli/load.h"

/* One test: its parameters, then its results. */
struct cli_bench_result {
    bool is_prompt;
    uint32_t n_tokens; /* per sequence */
    uint32_t depth;    /* tokens in each context before the test */
    uint32_t n_seq;
    double median, low, high;     /* tokens per second, of all sequences together */
    double of_bandwidth, of_int8; /* shares of the two limits; 1 is the limit */
};

/* The weights that every token is multiplied with (body), and those of the output projection, which
 * only rows with logits use (head). */
struct cli_bench_work {
    double body_bytes, body_macs, head_bytes, head_macs;
};

struct cli_bench {
    const struct cli_values *values;
    struct cli_model model;
    struct cli_bench_work work;
    int32_t *ids; /* [n_ids]: random, the same in each run */
    uint32_t n_ids;
    struct model_token *step; /* [largest number of sequences]: one token of each */
    double *rate;             /* [repetitions] */
    struct cli_bench_result *result;
    size_t n_results;
    double bandwidth, int8; /* the limits: bytes and multiply-adds per second */
};

/* Returns "prompt" or "generate". */
const char *cli_bench_test_name(const struct cli_bench_result *r);

/* Appends the results as md, json, jsonl or csv. */
void cli_bench_report(const struct cli_bench *b, const char *format, struct base_buffer *out);

/* Append one bar per result: the larger of its shares of the two limits. */
void cli_bench_plot(const struct cli_bench *b, struct base_buffer *out);
void cli_bench_svg(const struct cli_bench *b, struct base_buffer *out);

#endif

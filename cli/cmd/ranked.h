/* cli/cmd/ranked.h: lines of text with a score each, for `rerank` and `similar`. */
#pragma once

#include "cli/embedding.h"

struct cli_ranked_line {
    uint64_t number; /* of the line, from 1 on */
    const char *text;
    size_t size;
    double score;
};

struct cli_ranked {
    struct base_buffer bytes;     /* the input */
    struct cli_ranked_line *line; /* [n], without blank lines */
    size_t n;
};

/* Reads the lines of --file or standard input. The caller calls cli_ranked_free, also after a
 * failure. */
bool cli_ranked_read(struct cli_ranked *r, const struct cli_values *values, const char *command,
                     struct base_error *err);
/* Splits r->bytes, which the caller has filled, into lines. */
bool cli_ranked_split(struct cli_ranked *r, struct base_error *err);
/* Makes the rows of a line. */
typedef bool (*cli_ranked_add)(void *user, const struct cli_ranked_line *line,
                               struct cli_embed_rows *rows, struct base_error *err);
/* Receives the row of a line and returns its score. */
typedef double (*cli_ranked_score)(void *user, const float *row);
/* Computes the scores of all lines; an error names the line. */
bool cli_ranked_run(struct cli_ranked *r, const struct cli_embed *e, cli_ranked_add add,
                    cli_ranked_score score, void *user, struct base_error *err);
/* Writes the --top lines with the largest scores, best first or (--in-order) in the order of the
 * input: "SCORE<tab>TEXT", with --json objects. */
bool cli_ranked_write(struct cli_ranked *r, const struct cli_embed *e, struct base_error *err);
void cli_ranked_free(struct cli_ranked *r);

/* cli/out/result.h: writes a completion as JSON: one object at its end (--json), or a line per
 * token while it is generated and then the same object (--jsonl). docs/run.schema.json and
 * docs/run-event.schema.json specify them.
 *
 * Every object is valid JSON for any output of the model: bytes that are not UTF-8 become U+FFFD,
 * numbers are finite, a log-probability of minus infinity is null. */
#pragma once

#include "cli/out/logprobs.h"

struct cli_result {
    const struct cli_values *values;
    const struct cli_model *model;
    const struct text_ids *prompt;
    uint64_t seed;
    const char *sha256; /* hash of the model file; "": unknown */
    double load_seconds;
    struct base_buffer message; /* with --chat, set before the end: the member "message" */
    const char *part;           /* with --chat, set before each piece: its "part"; else NULL */
    /* The other members are private. */
    struct base_buffer text; /* the complete text */
    struct base_buffer ids;  /* items of this array */
    struct cli_logprobs logprobs;
    struct base_buffer line; /* JSON under construction */
};

/* Returns whether --json or --jsonl is given. */
bool cli_result_wanted(const struct cli_values *values);

/* The members above must be set. Call these before the first token, for each piece, and after the
 * last token. */
bool cli_result_start(struct cli_result *r, struct base_error *err);
bool cli_result_piece(struct cli_result *r, const struct generate_piece *piece,
                      struct base_error *err);
bool cli_result_end(struct cli_result *r, const struct generate_outcome *outcome,
                    struct base_error *err);
void cli_result_free(struct cli_result *r); /* may be all zeros */

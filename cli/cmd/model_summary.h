/* cli/cmd/model_summary.h: what a model file is, and the memory that it needs, for `infer inspect`.
 */
#pragma once

#include "cli/out/memory_plan.h"

enum { CLI_SUMMARY_CONTEXTS = 3, CLI_SUMMARY_INDENT = 11 /* of the values */ };

struct cli_model_summary {
    struct base_error cannot_run;         /* BASE_OK: the model runs here */
    bool writes;                          /* it has logits; `bytes` are those of a session */
    uint32_t embeds, scores;              /* numbers of an embedding and of scores; 0: none */
    uint32_t predictors;                  /* layers with a predictor of zeros */
    uint32_t trained;                     /* the context of its training; 0: not known */
    uint64_t bytes[CLI_SUMMARY_CONTEXTS]; /* memory for contexts of 4096, 8192 and 32768 tokens */
};

/* Plans the sessions of a model whose engine only plans. Fails with BASE_NO_MEMORY and
 * BASE_INTERRUPTED; another error is the reason why the model cannot run. */
bool cli_summary_measure(struct cli_model_summary *s, struct cli_model *m,
                         const struct cli_values *values, struct cli_plan_probe *probe,
                         struct base_error *err);

/* Append the summary as lines, or as a JSON object. */
void cli_summary_add_text(const struct cli_model_summary *s, const struct cli_model *m,
                          const struct cli_plan_probe *probe, struct base_buffer *out);
void cli_summary_add_json(const struct cli_model_summary *s, const struct cli_model *m,
                          const struct cli_plan_probe *probe, struct base_buffer *out);

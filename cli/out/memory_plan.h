/* cli/out/memory_plan.h: --plan: the memory that a run would need, without running it.
 *
 * Only the header of the model is read (gguf_open_header), and the engine only plans, so neither
 * the weights nor the memory need to exist. */
#pragma once

#include "cli/load.h"

/* Facts of the system about memory, read before a sandbox closes its files. */
struct cli_plan_probe {
    int statm;        /* of this process; -1: not known */
    uint64_t program; /* resident memory at the first measurement; 0: not known, or none yet */
    uint64_t room;    /* free memory within the limits of this process */
    bool room_known;
};
void cli_plan_probe_open(struct cli_plan_probe *p);
void cli_plan_probe_close(struct cli_plan_probe *p);

struct cli_memory_plan {
    uint64_t weights, copies, cache,
        activations;   /* copies: by columns (--sparse), of cold rows, of interleaved rows */
    uint64_t program;  /* with vocabulary and tables; 0: not known */
    uint64_t total;    /* of this machine's memory */
    uint64_t n_prompt; /* tokens of the longest batch */
    uint32_t n_ctx;
    bool drafts;
};
/* Computes the needs of the open session for a prompt of n_prompt tokens (0: a full batch) and the
 * text after it. */
bool cli_plan_measure(const struct cli_model *m, const struct cli_values *values, uint64_t n_prompt,
                      struct cli_plan_probe *probe, struct cli_memory_plan *out,
                      struct base_error *err);
/* Prints a plan, with --json as JSON. */
bool cli_plan_print(const struct cli_memory_plan *p, const struct cli_model *m,
                    const struct cli_values *values, const struct cli_plan_probe *probe,
                    struct base_error *err);

/* Both, with a probe of its own. */
bool cli_plan_show(const struct cli_model *m, const struct cli_values *values, uint64_t n_prompt,
                   struct base_error *err);

/* models/internal.h: the model and its graphs, shared by the files of this room. */
#ifndef MODELS_INTERNAL_H
#define MODELS_INTERNAL_H

#include "models/block/blocks.h"
#include "models/model.h"
#include "models/weights.h"

struct model {
    const struct gguf_file *file; /* not owned */
    struct engine *engine;        /* not owned */
    struct model_params params;
    struct model_weights weights;
    struct model_facts facts;
};

/* ---- Graphs (build.c) ---- */

/* One planned graph for a batch shape: T tokens in, final hidden rows of n_out of them out. */
struct model_graph {
    struct engine_graph *graph;
    uint32_t n_tokens, n_out;
    uint32_t n_span;                  /* runs of consecutive tokens of one sequence */
    struct engine_tensor *ids;        /* I32 [T] */
    struct engine_tensor *positions;  /* I32 [T] */
    struct engine_tensor *q_scale;    /* F32 [T][1][1], or NULL */
    struct model_state_inputs inputs; /* where the state of each token is */
    struct engine_tensor *out_rows;   /* I32 [n_out]; NULL if all or no rows are requested */
    struct engine_tensor *hidden;     /* F32 [n_out][E], normalized; NULL for none */
    uint64_t last_used;
};

bool model_graph_build(struct model_graph *g, struct model *m, struct model_state *state,
                       uint32_t n_tokens, uint32_t n_span, uint32_t n_out, struct base_error *err);

/* The output product: hidden F32 [rows][E] to logits F32 [rows][V]. */
struct model_head {
    struct engine_graph *graph;
    uint32_t n_rows;
    struct engine_tensor *hidden, *logits;
};
bool model_head_build(struct model_head *h, struct model *m, uint32_t n_rows,
                      struct base_error *err);

#endif

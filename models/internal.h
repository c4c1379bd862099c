/* models/internal.h: the model, its caches and its graphs, as the files of this room share them. */
#ifndef MODELS_INTERNAL_H
#define MODELS_INTERNAL_H

#include "models/arch.h"
#include "models/model.h"
#include "models/weights.h"

struct model {
    const struct gguf_file *file; /* not owned */
    struct engine *engine;        /* not owned */
    struct model_params params;
    struct model_weights weights;
    struct model_facts facts;
    char arch[32];
};

/* ---- Sequence memory (cache.c) ----
 *
 * The keys and values of one timeline. Position j of the timeline lies in cell j of full layers and
 * in cell j mod `n_window_cells` of windowed ones, whose rings keep only what their queries can
 * still see. The attention op reads cells through a list, so nothing above knows of rings. */
enum model_span { MODEL_SPAN_FULL, MODEL_SPAN_WINDOW, MODEL_SPAN_COUNT };

struct model_cache_layer {
    struct engine_tensor k; /* [cells][KH D] */
    struct engine_tensor v; /* [cells][KH DV] */
    enum model_span span;
};

struct model_cache {
    struct model_cache_layer *layer; /* [n_layer] */
    uint32_t n_layer;
    uint32_t n_ctx;
    uint32_t window; /* of the windowed layers; 0: there are none */
    uint32_t n_cells[MODEL_SPAN_COUNT];
    int32_t *list[MODEL_SPAN_COUNT]; /* [n_ctx]: the cell of each position */
    struct engine_tensor list_tensor[MODEL_SPAN_COUNT];
    uint64_t bytes;
};

/* n_batch is the most tokens that are written before they are read. */
bool model_cache_init(struct model_cache *c, const struct model_params *p, uint32_t n_ctx,
                      uint32_t n_batch, const struct quant_type *type_k,
                      const struct quant_type *type_v, struct base_error *err);
void model_cache_free(struct model_cache *c);

/* Inputs of a batch of T tokens from position `first` on: cell[T] to write to, span[T][4] to read.
 */
void model_cache_fill(const struct model_cache *c, enum model_span span, uint32_t first,
                      uint32_t n_tokens, int32_t *cell, int32_t *span_rows);
/* Whether positions from `length` on can still be evaluated after `used` were written. */
bool model_cache_can_truncate(const struct model_cache *c, uint32_t used, uint32_t length);

/* ---- Graphs (build.c) ---- */

/* One planned graph for a batch shape: T tokens in, final hidden rows of n_out of them out. */
struct model_graph {
    struct engine_graph *graph;
    uint32_t n_tokens, n_out;
    struct engine_tensor *ids;                    /* I32 [T] */
    struct engine_tensor *positions;              /* I32 [T] */
    struct engine_tensor *cell[MODEL_SPAN_COUNT]; /* I32 [T]; NULL where no layer needs it */
    struct engine_tensor *span[MODEL_SPAN_COUNT]; /* I32 [T][4] */
    struct engine_tensor *out_rows; /* I32 [n_out]; NULL when all or none are wanted */
    struct engine_tensor *hidden;   /* F32 [n_out][E], normalized; NULL for none */
    uint64_t last_used;
};

bool model_graph_build(struct model_graph *g, struct model *m, struct model_cache *cache,
                       uint32_t n_tokens, uint32_t n_out, struct base_error *err);

/* The output product: hidden F32 [rows][E] to logits F32 [rows][V]. */
struct model_head {
    struct engine_graph *graph;
    uint32_t n_rows;
    struct engine_tensor *hidden, *logits;
};
bool model_head_build(struct model_head *h, struct model *m, uint32_t n_rows,
                      struct base_error *err);

#endif

/* models/internal.h: the model, its caches and its graphs, as the files of this room share them. */
#ifndef MODELS_INTERNAL_H
#define MODELS_INTERNAL_H

#include "models/arch/arch.h"
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

/* ---- Sequence memory (state/kv_cache.c) ----
 *
 * The keys and values of several sequences in one pool of cells per kind of layer. Each sequence
 * has a list, the cell of each of its positions; the attention op reads cells through these lists,
 * so nothing above knows where a position lies. A cell belongs to all sequences whose lists name
 * it and is counted by them: a fork copies a list. A cell is written once, by the sequence that
 * took it, and is free again when its last sequence lets go.
 *
 * In full layers a sequence keeps all its positions, in windowed layers the last `ring` ones:
 * window + batch, because a batch is written before its first token reads. The pools hold n_seq
 * times that, so they never run out; memory that was never written is never touched. */
enum model_span { MODEL_SPAN_FULL, MODEL_SPAN_WINDOW, MODEL_SPAN_COUNT };

struct model_cache_layer {
    /* [KH][cells][D] and [KH][cells][DV]: a head's keys are one stream; of F16 and BF16, codes */
    struct engine_tensor k, v;
    enum model_span span;
};

struct model_cells {
    uint32_t ring;             /* positions that a sequence keeps; 0: no layer is of this kind */
    uint32_t count;            /* n_seq * ring */
    uint32_t *users;           /* [count]: lists that name the cell */
    int32_t *list;             /* [n_seq][n_ctx]: of each position that is held, its cell */
    uint32_t *oldest;          /* [n_seq]: positions before it were let go */
    struct engine_tensor view; /* of list */
};

struct model_cache {
    struct model_cache_layer *layer; /* [n_layer] */
    uint32_t n_layer, n_seq, n_ctx;
    uint32_t window; /* of the windowed layers; 0: there are none */
    struct model_cells cells[MODEL_SPAN_COUNT];
    uint32_t *length; /* [n_seq] */
    uint64_t bytes;
    enum quant_id type_k, type_v;
    bool plan_only; /* keys and values have addresses and no memory */
};

struct model_cache_options {
    uint32_t n_seq, n_ctx;
    uint32_t n_batch; /* tokens that are written before they are read, at most */
    const struct quant_type *type_k, *type_v;
    bool plan_only;
};

bool model_cache_init(struct model_cache *c, const struct model_params *p,
                      const struct model_cache_options *o, struct base_error *err);
void model_cache_free(struct model_cache *c);

/* Gives the next position of `seq` (its length must be below n_ctx) its cells. */
void model_cache_append(struct model_cache *c, uint32_t seq);
/* Where a position is written, and its row for the attention op. */
int32_t model_cache_cell(const struct model_cache *c, enum model_span span, uint32_t seq,
                         uint32_t position);
void model_cache_span(const struct model_cache *c, enum model_span span, uint32_t seq,
                      uint32_t position, int32_t row[4]);
/* Whether positions from `length` on can be evaluated (again): the windows still hold what they
 * look at. Always true for 0 and for the sequence's own length. */
bool model_cache_holds(const struct model_cache *c, uint32_t seq, uint32_t length);
void model_cache_truncate(struct model_cache *c, uint32_t seq, uint32_t length);
/* `to` (which must be empty) shares the first `length` positions of `from`. */
void model_cache_fork(struct model_cache *c, uint32_t from, uint32_t to, uint32_t length);

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

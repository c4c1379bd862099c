/* models/block/blocks.h: a block: a mixer or a feed-forward network, as one vertical file.
 *
 * A block is a row: the metadata keys that it reads, the tensors that it binds, its graph. Its file
 * models/block/block_NAME.c has a struct of its own for what it keeps of a layer: sizes (that its
 * tensor rows name), numbers, tensors. blocks.c lists the rows; the helpers below are what blocks
 * have in common. Private to models/.
 *
 * Shapes: T tokens, E embedding, H query heads, KH key heads, D and DV head sizes, F feed-forward
 * length, V vocabulary. Every intermediate has a name, so that any can be dumped. */
#ifndef MODELS_BLOCK_BLOCKS_H
#define MODELS_BLOCK_BLOCKS_H

#include "engine/graph_recurrent.h"
#include "models/state/state.h"

/* One graph under construction. */
struct model_builder {
    struct engine_graph *g;
    const struct model_params *params;
    struct model_state *state;
    uint32_t n_tokens;
    struct engine_tensor *ids;       /* I32 [T] */
    struct engine_tensor *positions; /* I32 [T] */
    struct engine_tensor *q_scale;   /* F32 [T][1][1]: queries are multiplied by it; or NULL */
    struct model_state_inputs inputs;
    struct engine_tensor *embedding; /* [T][E]: what the layers begin with */
    struct engine_tensor *layer_in;  /* [n][E]: its input, the rows that continue after the mixer */
    const struct model_layer *layer; /* the one that is being built */
    uint32_t kv_layer;               /* that of the state which belongs to it, in this pass */
    struct engine_tensor *written[2];              /* the latest layer's state after its writes */
    struct engine_tensor *kept[MODEL_KV_KINDS][2]; /* the same of the latest layer of each kind */
    struct engine_tensor *residual;  /* what the norm before the feed-forward network is given */
    struct engine_tensor *per_layer; /* [T][L P]: a part for each layer; or NULL */
    struct engine_tensor *stream[MODEL_STREAMS]; /* of AltUp: [T][E] each, the first is x */
    struct engine_tensor *out_rows; /* rows that continue after the layer's mixer; NULL: all */
};

struct model_block {
    const char *name;
    size_t size; /* of its struct for a layer, zeroed before `read` */
    /* Reads and checks its keys: numbers and sizes into `self`, what the layer keeps for each token
     * into l->kv. `self` is the struct in every function. */
    bool (*read)(struct model_reader *r, struct model_params *p, struct model_layer *l, void *self);
    const struct model_tensor_row *tensors; /* ended by a row without a name; offsets into self */
    /* x [n][E], normalized, to [n][E]. A mixer has all T tokens in x; a feed-forward network only
     * the rows that continue. */
    struct engine_tensor *(*build)(struct model_builder *b, void *self, struct engine_tensor *x);
};

extern const struct model_block model_block_attention, model_block_ffn, model_block_experts,
    model_block_linear, model_block_altup, model_block_per_layer, model_block_mla,
    model_block_short_conv, model_block_delta_net, model_block_mamba2;
extern const struct model_block *const model_blocks[MODEL_BLOCK_COUNT]; /* by id */

/* ---- Keys that several blocks share ---- */

/* RoPE of a layer: `max` elements of a head at most, and by default. `windowed`: the layer has a
 * sliding window. *rotates: false where the layer has none. Leaves p->ends.n_factors large enough
 * for its factors. */
bool model_read_rope(struct model_reader *r, struct model_params *p, bool windowed, uint32_t max,
                     uint32_t layer, struct engine_rope *rope, bool *rotates);

/* The bound of a layer's gated units where the architecture has such; 0: none. */
bool model_read_glu_clamp(struct model_reader *r, const struct model_params *p, const char *key,
                          uint32_t layer, float *clamp);

/* ---- Graphs ---- */

/* Gated units: act(gate) * up; with a bound c > 0 min(act(gate), c) * clamp(up, -c, c). */
struct engine_tensor *model_glu(const struct model_builder *b, struct engine_tensor *gate,
                                struct engine_tensor *up, float clamp);
/* Names t "NAME-LAYER". */
struct engine_tensor *model_named(const struct model_builder *b, struct engine_tensor *t,
                                  const char *name);
/* x normalized over its rows by the model's kind of norm. */
struct engine_tensor *model_norm(const struct model_builder *b, struct engine_tensor *x,
                                 const struct model_norm *norm);
/* The same for norms after a block, which may have an epsilon of their own. */
struct engine_tensor *model_post_norm(const struct model_builder *b, struct engine_tensor *x,
                                      const struct model_norm *norm);
/* The same by a given kind. */
struct engine_tensor *model_norm_as(const struct model_builder *b, struct engine_tensor *x,
                                    const struct model_norm *norm, enum model_norm_kind kind);
/* The rows of x [T][..] that the layer passes on after its mixer: b->out_rows, or all. */
struct engine_tensor *model_wanted_rows(const struct model_builder *b, struct engine_tensor *x);
/* W x, with the linear's scale and bias. */
struct engine_tensor *model_linear(const struct model_builder *b, const struct model_linear *l,
                                   struct engine_tensor *x);
/* Causal convolution, channel by channel: x [T][C] and taps [K][C] give [T][C]. The layer's
 * convolution state is what is before each span of tokens, and becomes its last K - 1 rows. */
struct engine_tensor *model_convolve(struct model_builder *b, struct engine_tensor *x,
                                     struct engine_tensor *taps);
/* The layer's recurrent states [slots][H][rows][cols], which an op of engine/graph_recurrent.h
 * takes with b->inputs.spans and updates. */
struct engine_tensor *model_state_of(const struct model_builder *b);
/* Embeddings for each layer: of the tokens, and of their embeddings x [T][E]: [T][L P]. */
struct engine_tensor *model_build_per_layer(const struct model_builder *b, struct engine_tensor *x);
/* N W_proj (gelu(W_gate x) * part), [n][E]: the layer's part of b->per_layer, through the tensors
 * inp_gate [P][E], proj [E][P] and the norm post_norm. */
struct engine_tensor *model_build_part(const struct model_builder *b,
                                       const struct model_linear *gate,
                                       const struct model_linear *proj,
                                       const struct model_norm *norm, struct engine_tensor *x);
/* The streams of AltUp, from embeddings x [T][E] to b->stream, and back to one. */
void model_altup_begin(struct model_builder *b, struct engine_tensor *x);
struct engine_tensor *model_altup_end(const struct model_builder *b);
/* [A][B][size] as [B][A][size], by strides alone: a cache keeps each head's slots together, the
 * tokens of a batch and the attention op have heads inside. */
struct engine_tensor *model_swap_heads(const struct model_builder *b, struct engine_tensor *x);
/* Writes keys [T][KH][D] and values [T][KH][DV] into the layer's cache, which is of `kind`; NULL:
 * the layer shares those of the latest layer of that kind. Then attention of the queries [T][H][D]
 * over the cache: [T][H * DV]. `sinks` may be NULL. */
struct engine_tensor *model_attend(struct model_builder *b, enum model_kv_kind kind,
                                   struct engine_tensor *q, struct engine_tensor *k,
                                   struct engine_tensor *v, struct engine_tensor *sinks,
                                   const struct engine_attention *how);
/* The divisors of the RoPE frequencies, or NULL: long or short ones by the sequences' context. The
 * layer being built has none where it has a window and those are never scaled. */
struct engine_tensor *model_rope_factors(const struct model_builder *b,
                                         const struct engine_rope *rope);
/* Scale and bias of a product that is there already. */
struct engine_tensor *model_finish(const struct model_builder *b, const struct model_linear *l,
                                   struct engine_tensor *product);
/* The same inside a feed-forward network, where files that have both scale what the bias was added
 * to (as the reference implementation does). */
struct engine_tensor *model_finish_ffn(const struct model_builder *b, const struct model_linear *l,
                                       struct engine_tensor *product);

#endif

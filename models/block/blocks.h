/* models/block/blocks.h: a block: a mixer or a feed-forward network, in one file.
 *
 * A block is a row: the metadata keys that it reads, the tensors that it binds, and its graph. Its
 * file models/block/block_NAME.c has a struct for its data of a layer: sizes (which its tensor rows
 * name), numbers, tensors. blocks.c lists the rows; blocks share the helpers below. Private to
 * models/.
 *
 * Shapes: T tokens, E embedding, H query heads, KH key heads, D and DV head sizes, F feed-forward
 * length, V vocabulary, L layers, P per-layer embedding. Every intermediate tensor has a name, so
 * that any of them can be printed. */
#pragma once

#include "engine/graph_recurrent.h"
#include "models/adapter_set.h"
#include "models/state/state.h"

/* A graph under construction. */
struct model_builder {
    struct engine_graph *g;
    const struct model_params *params;
    struct model_state *state;
    uint32_t n_tokens;
    struct engine_tensor *ids;       /* I32 [T] */
    struct engine_tensor *positions; /* I32 [T] */
    struct engine_tensor *q_scale;   /* F32 [T][1][1]: multiplies queries; or NULL */
    struct engine_tensor *buckets;   /* I32 [2 MODEL_RELATIVE_RADIUS + 1], or NULL */
    struct engine_tensor *relative;  /* biases by relative position of the first layer */
    struct model_state_inputs inputs;
    /* In the graph of an encoder before a decoder: I32 [T][4] and [1][T], ranges and table of its
     * tokens, whose keys and values are not cached; otherwise NULL. */
    struct engine_tensor *source_range, *source_table;
    struct engine_tensor *embedding;  /* [T][E]: input of the first layer */
    struct engine_tensor *layer_in;   /* [n][E]: its input rows that continue after the mixer */
    const struct model_layer *layer;  /* the layer being built */
    uint32_t kv_layer;                /* index of its state, in this pass */
    struct engine_tensor *written[3]; /* the latest layer's state after its writes */
    struct engine_tensor *chosen;     /* the latest choice of an indexer (engine_choose_keys) */
    struct engine_tensor *kept[MODEL_KV_KINDS][2]; /* as above, for the latest layer of each kind */
    struct engine_tensor *residual;   /* input of the norm before the feed-forward network */
    struct engine_tensor *per_layer;  /* [T][L P]: per-layer embeddings; or NULL */
    struct engine_tensor *shift_taps; /* of model_shift, or NULL */
    struct engine_tensor *values;     /* RWKV 7: those of the first layer, [T][E] */
    struct engine_tensor *stream[MODEL_STREAMS]; /* AltUp: [T][E] each, the first is x */
    struct engine_tensor *aside;    /* [n][S][E]: the streams set aside (MODEL_ATTENDED); or NULL */
    bool rank;                      /* pooled rows are scored instead of projected */
    struct engine_tensor *out_rows; /* rows that continue after the layer's mixer; NULL: all */
    const struct model_adapter_set *adapters;                /* NULL: none act in this graph */
    struct engine_tensor *adapter_scale[MODEL_ADAPTERS_MAX]; /* F32 [T] each */
};

struct model_block {
    const char *name;
    size_t size; /* size of its struct for a layer, which is zeroed before `read` */
    /* Reads and checks the block's keys: writes numbers and sizes to `self`, and the shape of the
     * keys and values that it caches to l->kv. `l` is NULL for a block after the layers. In every
     * function `self` is the block's struct. */
    bool (*read)(struct model_reader *r, struct model_params *p, struct model_layer *l, void *self);
    const struct model_tensor_row *tensors; /* ended by a row without a name; offsets into self */
    /* Builds the graph from x [n][E], normalized, to [n][E]. A mixer's x has all T tokens, that of
     * a feed-forward network only the rows that continue after the mixer, or all T if it has a
     * state (shift_channels). */
    struct engine_tensor *(*build)(struct model_builder *b, void *self, struct engine_tensor *x);
};

/* Defines model_block_NAME from the functions and rows of its file. */
#define MODEL_BLOCK(NAME, TITLE)                                                                   \
    const struct model_block model_block_##NAME = {.name = (TITLE),                                \
                                                   .size = sizeof(struct NAME),                    \
                                                   .read = read,                                   \
                                                   .tensors = tensors,                             \
                                                   .build = build};

extern const struct model_block model_block_attention, model_block_ffn, model_block_experts,
    model_block_linear, model_block_altup, model_block_per_layer, model_block_mla,
    model_block_short_conv, model_block_delta_net, model_block_kda, model_block_lightning,
    model_block_mamba2, model_block_mamba, model_block_rwkv6, model_block_rwkv7,
    model_block_channel_mix, model_block_cross, model_block_compressed, model_block_ngram,
    model_block_pool;
extern const struct model_block *const model_blocks[MODEL_BLOCK_COUNT]; /* by id */

/* ---- Keys that several blocks share ---- */

/* Reads the RoPE of a layer, which rotates `max` elements of a head by default and at most.
 * `windowed`: the layer has a sliding window. *rotates is false if the layer has no RoPE. Raises
 * p->ends.n_factors to the number of the layer's factors. */
bool model_read_rope(struct model_reader *r, struct model_params *p, bool windowed, uint32_t max,
                     uint32_t layer, struct engine_rope *rope, bool *rotates);

/* Reads whether the layer has a sliding window and its size in keys; 0: none. */
bool model_read_window(struct model_reader *r, const struct model_params *p, uint32_t layer,
                       uint32_t *window);

/* Reads the bound of a layer's gated units; *clamp 0: none. */
bool model_read_glu_clamp(struct model_reader *r, const struct model_params *p, const char *key,
                          uint32_t layer, float *clamp);

/* Reads the size and number of the heads of RWKV's time mix, and sets the shape of its states. */
bool model_read_rwkv(struct model_reader *r, const struct model_params *p, struct model_layer *l,
                     uint32_t *size, uint32_t *heads);

/* T5's relative positions: distances (key minus query) share biases by buckets, and those of
 * MODEL_RELATIVE_RADIUS or more are in the last bucket of their direction. Returns the bucket of
 * `distance` among n; with `both`, half of them are for later keys, otherwise none. */
enum { MODEL_RELATIVE_RADIUS = 128 };
int32_t model_relative_bucket(int32_t distance, uint32_t n, bool both);

/* Returns how many numbers the pool block makes of a row: scores if `rank` (0: the file has no
 * classifier), otherwise an embedding. */
uint32_t model_pool_size(const struct model_params *p, bool rank);

/* ---- Graphs ---- */

/* Builds gated units: act(gate) * up, bounded by `clamp` if it is not 0, in the form of the
 * architecture's row. */
struct engine_tensor *model_glu(const struct model_builder *b, struct engine_tensor *gate,
                                struct engine_tensor *up, enum engine_unary act, float clamp);
/* Multiplies an attention's output x [T][n] by the architecture's activation of its gate [T][rows],
 * of which each number is for n / rows elements. */
struct engine_tensor *model_apply_gate(const struct model_builder *b, struct engine_tensor *x,
                                       struct engine_tensor *gate, int64_t n, int64_t rows);
/* Names t "NAME-LAYER" and returns it. */
struct engine_tensor *model_named(const struct model_builder *b, struct engine_tensor *t,
                                  const char *name);
/* Builds x [n][E] with each row normalized by the model's kind of norm. */
struct engine_tensor *model_norm(const struct model_builder *b, struct engine_tensor *x,
                                 const struct model_norm *norm);
/* Builds the norm after a block, whose epsilon may differ. */
struct engine_tensor *model_post_norm(const struct model_builder *b, struct engine_tensor *x,
                                      const struct model_norm *norm);
/* Builds a norm of a given kind instead of the model's. */
struct engine_tensor *model_norm_as(const struct model_builder *b, struct engine_tensor *x,
                                    const struct model_norm *norm, enum model_norm_kind kind);
/* Builds a norm of a given kind and epsilon. */
struct engine_tensor *model_norm_with(const struct model_builder *b, struct engine_tensor *x,
                                      const struct model_norm *norm, enum model_norm_kind kind,
                                      float eps);
/* Returns the rows of x [T][..] that continue after the mixer: b->out_rows, or all. */
struct engine_tensor *model_wanted_rows(const struct model_builder *b, struct engine_tensor *x);
/* ---- Products of weights (product.c) ---- */

/* Where a linear stands, which determines the order of its scale and bias: (W x) scale + bias, but
 * in a feed-forward network, as in the reference implementation, (W x + bias) scale, or without the
 * scale if the architecture has none there. */
enum model_linear_role { MODEL_IN_MIXER, MODEL_IN_FFN };
enum { MODEL_LINEARS_MAX = 4 };

/* Builds W x with the linear's scale and bias, for x [n][inputs]: [n][outputs]. */
struct engine_tensor *model_linear(const struct model_builder *b, const struct model_linear *l,
                                   struct engine_tensor *x);
struct engine_tensor *model_linear_as(const struct model_builder *b, const struct model_linear *l,
                                      enum model_linear_role role, struct engine_tensor *x);
/* Applies the scale and bias of a linear to its product x. */
struct engine_tensor *model_linear_finish(const struct model_builder *b,
                                          const struct model_linear *l, enum model_linear_role role,
                                          struct engine_tensor *x);
/* Builds a linear of a feed-forward network whose product is zero where `active` [n][outputs] is
 * zero. */
struct engine_tensor *model_linear_active(const struct model_builder *b,
                                          const struct model_linear *l, struct engine_tensor *x,
                                          struct engine_tensor *active);
/* Builds W x for a matrix without scale and bias, or for a view of one; more dimensions of W are
 * those of x. */
struct engine_tensor *model_linear_of(const struct model_builder *b, struct engine_tensor *weight,
                                      struct engine_tensor *x);
/* Builds n linears of one input as columns of one product, which gets the name "NAME-LAYER": out[i]
 * is [T][size[i]], with the scale and bias of l[i]. If `whole` (which may be NULL) has a weight, it
 * has the rows of all, and l[i] none. n is at most MODEL_LINEARS_MAX. */
void model_linears(const struct model_builder *b, const struct model_linear *whole,
                   const struct model_linear *const *l, const uint32_t *size, int n,
                   struct engine_tensor *x, const char *name, enum model_linear_role role,
                   struct engine_tensor **out);
/* Multiplies row (t, u) of x [n][1 or U][..] by the matrix of expert ids[t][u]: [n][U][outputs];
 * the product is zero where `active`, of that shape, is zero (NULL: nowhere). */
struct engine_tensor *model_linear_id(const struct model_builder *b, const struct model_linear *l,
                                      struct engine_tensor *x, struct engine_tensor *ids,
                                      struct engine_tensor *active);

/* Returns y [n][outputs], of all tokens or those that continue after the mixer, plus the product of
 * x [n][inputs] by each token's adapter; y if the file has none. */
struct engine_tensor *model_switched_add(const struct model_builder *b,
                                         const struct model_switched *s, struct engine_tensor *x,
                                         struct engine_tensor *y);

/* Builds the rows of a table [rows][n] for ids I32 [T]: [T][n]. */
struct engine_tensor *model_rows_of(const struct model_builder *b, struct engine_tensor *table,
                                    struct engine_tensor *ids);
/* Adds to the graph the adapters and their scales F32 [adapters][T], an input that is returned;
 * NULL without adapters. */
struct engine_tensor *model_adapters_begin(struct model_builder *b,
                                           const struct model_adapter_set *set);

/* Makes the scales those of `rows`, with which the graph continues; NULL: of all as before. */
void model_adapters_select(struct model_builder *b, struct engine_tensor *rows);
/* Makes adapters of a tensor that is no product and no table of tokens an error of the session. */
void model_adapters_refuse(const struct model_builder *b, const struct engine_tensor *weight);

/* ---- Other parts ---- */

/* Builds a convolution of each channel: x [T][C] and taps [K][C] to [T][C]. The last tap is that of
 * the row `ahead` after a token (0: causal). The layer's convolution state precedes each span of
 * tokens and becomes the last K - 1 rows of the span. */
struct engine_tensor *model_convolve(struct model_builder *b, struct engine_tensor *x,
                                     struct engine_tensor *taps, int ahead);
/* As model_convolve, causal, with the state of what changes the layer's input. */
struct engine_tensor *model_convolve_front(struct model_builder *b, struct engine_tensor *x,
                                           struct engine_tensor *taps);
/* Returns the layer's recurrent states [slots][H][rows][cols]. An op of engine/graph_recurrent.h
 * reads them with b->inputs.spans and updates them. */
struct engine_tensor *model_state_of(const struct model_builder *b);
/* Builds the previous token's row minus the row, for x [T][E]; zeros precede a sequence. The state
 * is the layer's convolution state, or that of its network. */
struct engine_tensor *model_shift(struct model_builder *b, bool network, struct engine_tensor *x);
/* Returns x [T][heads * size] as [T][heads][size]. */
struct engine_tensor *model_split_heads(const struct model_builder *b, struct engine_tensor *x,
                                        int64_t heads, int64_t size);
/* Builds x [T][heads][size] with each head `each` times: [T][heads * each][size]. */
struct engine_tensor *model_repeat_heads(const struct model_builder *b, struct engine_tensor *x,
                                         uint32_t each);
/* Builds x [T][heads][size] with each head divided by sqrt(|x|^2 + eps). */
struct engine_tensor *model_unit_heads(const struct model_builder *b, struct engine_tensor *x,
                                       float eps);
/* RWKV: builds x [T][H][D] as [T][E], with each head normalized if the norm has weights. */
struct engine_tensor *model_norm_heads(const struct model_builder *b, struct engine_tensor *x,
                                       const struct model_norm *norm);
/* Builds the per-layer embeddings [T][L P] from the tokens and their embeddings x [T][E]. */
struct engine_tensor *model_build_per_layer(const struct model_builder *b, struct engine_tensor *x);
/* Builds N W_proj (gelu(W_gate x) * part), [n][E], where part is the layer's part of b->per_layer,
 * with the tensors inp_gate [P][E], proj [E][P] and the norm post_norm. */
struct engine_tensor *model_build_part(const struct model_builder *b,
                                       const struct model_linear *gate,
                                       const struct model_linear *proj,
                                       const struct model_norm *norm, struct engine_tensor *x);
/* _begin builds the streams of AltUp, b->stream, from embeddings x [T][E]; _end builds one stream
 * from them, [n][E]. */
void model_altup_begin(struct model_builder *b, struct engine_tensor *x);
struct engine_tensor *model_altup_end(const struct model_builder *b);
/* The weights with which a sublayer's output is added to the streams, [n][S], and with which the
 * streams are mixed, [n][S S] from stream by to stream; mix NULL: they are not. */
struct model_hyper_back {
    struct engine_tensor *back, *mix;
};

/* Hyper-connections (hyper.c): _begin makes the streams x [n][S E] of embeddings [n][E]; _read
 * returns the sum [n][E] that a sublayer reads, and in *back (NULL: not needed) the weights with
 * which _write mixes the streams and adds the sublayer's output y [n][E] to them. */
struct engine_tensor *model_hyper_begin(const struct model_builder *b, struct engine_tensor *x);
struct engine_tensor *model_hyper_read(const struct model_builder *b, const struct model_hyper *h,
                                       struct engine_tensor *x, struct model_hyper_back *back);
struct engine_tensor *model_hyper_write(const struct model_builder *b, struct engine_tensor *x,
                                        struct engine_tensor *y,
                                        const struct model_hyper_back *back);
/* Builds the streams x [n][S E], each normalized with its weights of the norm [S][E]. */
struct engine_tensor *model_stream_norm(const struct model_builder *b, struct engine_tensor *x,
                                        const struct model_norm *norm);
/* Writes the layer's keys and values of an encoder's rows [T][E] to the slots I32 [T]. */
void model_cross_store(struct model_builder *b, struct engine_tensor *rows,
                       struct engine_tensor *slots);
/* Returns [A][B][size] as [B][A][size] by exchanging strides. A cache stores the slots of each head
 * together; a batch and the attention op store the heads of each token together. */
struct engine_tensor *model_swap_heads(const struct model_builder *b, struct engine_tensor *x);
/* Writes keys [T][KH][D] and values [T][KH][DV] to the layer's cache, which is of `kind`, and
 * returns the attention of the queries [T][H][D] over the cache: [T][H * DV]. k NULL: the keys and
 * values are those of the latest layer of that kind. `sinks` and `relative` may be NULL
 * (engine_attention). */
struct engine_tensor *model_attend(struct model_builder *b, enum model_kv_kind kind,
                                   struct engine_tensor *q, struct engine_tensor *k,
                                   struct engine_tensor *v, struct engine_tensor *sinks,
                                   struct engine_tensor *relative,
                                   const struct engine_attention *how);
/* Writes the keys of an indexer, k [T][1][DI], to the layer's cache and returns its choice by the
 * queries q [T][HI][DI] and the weights [T][HI] (engine_choose_keys). Without weights (NULL) the
 * HI = KH lists are those of the key heads. */
struct engine_tensor *model_choose_keys(struct model_builder *b, struct engine_tensor *q,
                                        struct engine_tensor *k, struct engine_tensor *weights,
                                        const struct engine_choose_keys *how);
/* Returns the keys [T][size] of the blocks that tokens end, for an indexer: the mean of the rows of
 * their positions x [T][size], or with `ape` [ratio][size] the sum of the first halves of x [T][2
 * size], weighted by the softmax of the second ones plus ape, channel by channel. Zeros for a token
 * that ends no block. The rows are kept in the layer's cache. */
struct engine_tensor *model_pool_keys(struct model_builder *b, struct engine_tensor *x,
                                      struct engine_tensor *ape, uint32_t size);
/* Writes keys of blocks, k [T][DI], to the layer's cache and returns the choice of n_used blocks by
 * the queries q [T][HI][DI] and the weights [T][HI]: their positions, and those after the last
 * complete block. */
struct engine_tensor *model_choose_pools(struct model_builder *b, struct engine_tensor *q,
                                         struct engine_tensor *k, struct engine_tensor *weights,
                                         uint32_t n_used);
/* As model_attend, to the chosen keys only; k must not be NULL, nor are there sinks with several
 * lists. */
struct engine_tensor *model_attend_chosen(struct model_builder *b, struct engine_tensor *chosen,
                                          struct engine_tensor *q, struct engine_tensor *k,
                                          struct engine_tensor *v, struct engine_tensor *sinks,
                                          const struct engine_attention *how);
/* Writes what compressed keys will be made of, x [T][W], to the layer's cache, and returns the
 * cache [slots][1][W]. */
struct engine_tensor *model_keep_open(struct model_builder *b, struct engine_tensor *x);
/* As model_attend_chosen, to the layer's window and to compressed keys, k_blocks [T][1][D], which
 * are also values; rows of tokens that end no block are ignored. An indexer chooses among these by
 * q, k (NULL: all are chosen) and weights, as in model_choose_keys; its keys are of blocks, too. */
struct model_block_choice {
    struct engine_tensor *q, *k, *weights; /* or NULL */
    uint32_t n_used;
};
struct engine_tensor *model_attend_blocks(struct model_builder *b, struct engine_tensor *q,
                                          struct engine_tensor *k, struct engine_tensor *k_blocks,
                                          const struct model_block_choice *choice,
                                          struct engine_tensor *sinks,
                                          const struct engine_attention *how);
/* Returns the divisors of the RoPE frequencies (long or short ones, by the context of the
 * sequences), or NULL; NULL too for a layer with a window if windowed layers are never scaled. */
struct engine_tensor *model_rope_factors(const struct model_builder *b,
                                         const struct engine_rope *rope);

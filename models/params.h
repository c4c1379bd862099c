/* models/params.h: one model's numbers and tensors, layer by layer.
 *
 * A layer is {mixer, feed-forward network, norms}. The architecture's plan selects the blocks. The
 * data of a layer's block (numbers, tensors) is a struct that only the block's file in
 * models/block/ declares. Private to models/. */
#pragma once

#include "models/arch/arch.h"

/* y = (W x) * scale + bias; scale (one number, or one per expert) and bias are NULL if the file has
 * none. */
struct model_linear {
    struct engine_tensor *weight;  /* [outputs][inputs]; experts: [X][outputs][inputs] */
    struct engine_tensor *bias;    /* [outputs]; experts: [X][outputs] */
    struct engine_tensor *scale;   /* [1]; experts: [X] */
    struct engine_tensor **of_run; /* [n_run]: scales instead of that one, or NULL */
    struct engine_tensor *columns; /* the weight by columns (quant/columns.h), or NULL */
    bool transposed;               /* the weight is [inputs][outputs] */
};

/* A linear whose rows are in two places: [0] those of the layer's place, [1] those of place 0; a
 * weight is NULL if a part has no rows. Bias and scale are not divided. */
struct model_parts {
    bool can;      /* set by the block: the linear may be divided */
    bool divided;  /* otherwise the layer's place has all of it */
    uint32_t n[2]; /* rows */
    struct engine_tensor *weight[2];
};

/* Which rows are in the layer's place: none, the hot ones of struct model_placement, or as many of
 * the first as the hot ones are of all, rounded down to 32. */
enum model_cut { MODEL_CUT_NONE, MODEL_CUT_HOT, MODEL_CUT_SHARE };

struct model_norm {
    struct engine_tensor *weight, *bias; /* [size] or [rows][size]; NULL if the file has none */
};

/* ---- Tensors as rows of data ---- */

/* Pointers come first (bind_row). */
enum model_tensor_kind {
    MODEL_VECTOR, /* a pointer; NAME.weight of [outputs][inputs], as F32 */
    MODEL_TAPS,   /* a pointer; NAME.weight of [outputs][inputs] or [depth][1][inputs], as F32
                     [inputs][outputs or depth] */
    MODEL_BIAS,   /* a pointer; NAME.bias of [inputs], as F32 */
    MODEL_SCALE,  /* a pointer; NAME.scale of [inputs], as F32 */
    MODEL_SLICES, /* a pointer; NAME.weight of [outputs][1][1][inputs], as F32 [outputs][inputs] */
    MODEL_MATRIX, /* a pointer; NAME.weight of [outputs][inputs] */
    MODEL_IDS,    /* a pointer; NAME.weight of [outputs][inputs], I32 */
    MODEL_LONGS,  /* a pointer; NAME.weight of [inputs], I64 */
    MODEL_NORM,   /* a model_norm; NAME.weight and NAME.bias of [outputs][inputs], as F32 */
    MODEL_LINEAR, /* a model_linear; NAME.weight, and NAME.bias and .scale if present */
    MODEL_BARE,   /* a model_linear; NAME.weight. NAME.bias and .scale are ignored */
    MODEL_STACK,  /* a model_linear of `depth` matrices, one per expert */
    MODEL_TRANSPOSED /* a model_linear; NAME.weight of [inputs][outputs] */
};

enum model_need { MODEL_REQUIRED, MODEL_OPTIONAL };

/* A tensor as a row of data. Offsets are those of the block's struct plus 1 (MODEL_AT); 0 means
 * none. Sizes are uint32_t fields of that struct, because they differ by layer; without an offset a
 * size is 1. A tensor with a size of 0 is not part of this model, and model_weights_bind reports an
 * error for a file that has it. */
/* What reads a tensor: the table of embeddings, in place 0, or the output, in the place of
 * struct model_ends. */
enum model_end { MODEL_NO_END, MODEL_INPUT, MODEL_OUTPUT };

struct model_tensor_row {
    const char *name; /* without "blk.N.", which precedes a layer's tensors */
    enum model_tensor_kind kind;
    enum model_need need;
    uint16_t field;                  /* a pointer, a model_norm or a model_linear */
    uint16_t inputs, outputs, depth; /* offsets of sizes */
    uint16_t unless;                 /* not required if this earlier linear was found */
    uint16_t zeros;     /* offset of a number: whether many inputs are zero, so that columns help */
    uint16_t parts;     /* offset of a struct model_parts: the linear may be in two places, */
    enum model_cut cut; /* divided in this way */
    enum model_end end; /* its place, if that is not the one of its layer */
};
#define MODEL_AT(type, member) ((uint16_t)(1 + offsetof(type, member)))

/* ---- A layer ---- */

/* The weights of hyper-connections around a sublayer (models/block/hyper.c): S streams. */
struct model_hyper {
    uint32_t n_in, n_mix, n_scale; /* S E, numbers of a mixture, of their factors; 0: none */
    struct engine_tensor *fn;      /* [n_mix][S E] */
    struct engine_tensor *base, *scale;
    uint32_t n_norm, n_norm_rows, n_low, n_back; /* S E and 1, or E and S; rank; S; with gates */
    struct model_norm norm;                      /* [S][E] */
    struct model_linear down, up, back;          /* rank x S E, S E x rank, S x S E */
};

/* Embeddings of n-grams of ids, those of a position and before it (models/block/block_ngram.c). */
enum { MODEL_NGRAM_MAX = 8, MODEL_NGRAM_HEADS = 64 };
struct model_ngram {
    uint32_t n_head; /* rows of the table for a position: `each` for each n = 2 .. size; 0: none */
    uint32_t layer, size, each, n_taps;
    int32_t end_id; /* ids up to the latest one before a position count as this */
    uint64_t multiplier[MODEL_NGRAM_MAX];
    uint32_t first[MODEL_NGRAM_HEADS], n_row[MODEL_NGRAM_HEADS]; /* of each head */
};

/* Adapters in the file that ids choose (Granite Switch, 2026): id `on` i chooses adapter i + 1 for
 * the tokens from it on, and is read as id `as` i. Those of all ids before a token are attended to
 * (models/state/history.c). */
struct model_switch {
    uint32_t n, rank; /* 0: none */
    float gain;
    const struct gguf_kv *on, *as; /* in the file */
};

/* W x + B_s A_s x, s the token's adapter; that of number 0 has zeros. */
struct model_switched {
    struct model_linear a, b; /* stacks of rank x inputs, outputs x rank */
};

struct model_block; /* models/block/blocks.h */

struct model_part {
    const struct model_block *block; /* NULL: the layer has no such part */
    void *self;                      /* [block->size], freed with the params */
};

/* The shape of the keys and values that a layer caches for each token. */
struct model_kv_shape {
    uint32_t n_head, size_k, size_v; /* n_head 0: none */
    uint32_t window;                 /* keys that a query attends to, its own included; 0: all */
    bool chunked; /* attends to its chunk instead: positions from a multiple of `window` on */
    uint32_t size_index; /* of the one key of an indexer; 0: none */
    uint32_t ratio; /* positions of a block that has a compressed key; 0: there are none. Without
                       a window the key is only one of the indexer */
    bool overlaps;  /* such a key is made of its block and of the one before it */
    uint32_t size_open; /* numbers of a position for compressed keys */
};

/* The shape of a layer's recurrent state. */
struct model_recurrent_shape {
    uint32_t conv_columns, conv_channels;   /* the latest inputs of a convolution; 0: none */
    uint32_t n_head, rows, cols;            /* a matrix for each head; 0: none */
    uint32_t shift_channels;                /* the latest input of the network; 0: none */
    uint32_t front_columns, front_channels; /* as conv_columns, of what changes the layer's input */
};

struct model_layer {
    uint32_t index;
    const struct engine_place *place; /* of its weights, state and nodes; NULL: place 0 */
    const struct model_hot *hot;      /* NULL: all of its network is in its place */
    struct engine_tensor *order;      /* I32 [rows]: where a row's result is among those of the hot
                                         rows, followed by the others; NULL without `hot` */
    uint32_t n_mixer_norm, n_mixer_post_norm, n_ffn_norm, n_ffn_post_norm; /* sizes: E or 0 */
    uint32_t n_ffn_norm_optional, n_mixer_norm_2;                          /* optional in files */
    uint32_t n_mixer_norm_optional;
    uint32_t n_beside_norm;
    struct model_norm mixer_norm, mixer_post_norm, ffn_norm, ffn_post_norm;
    struct model_norm mixer_norm_2; /* norm of the mixer instead of mixer_norm; MODEL_SUM_NORM */
    uint32_t n_skip;                /* 1 if the layer adds the embeddings, else 0 */
    struct engine_tensor *skip;     /* [1]: factor of the embeddings */
    uint32_t n_score; /* E if sublayers attend to earlier streams (MODEL_ATTENDED), else 0 */
    struct engine_tensor *mixer_score, *ffn_score; /* [E] */
    struct model_hyper mixer_hyper, ffn_hyper;
    struct model_part front; /* changes the layer's input */
    struct model_part mixer, ffn;
    struct model_part cross; /* attention to an encoder's rows, after the mixer */
    struct model_norm cross_norm;
    uint32_t n_cross_norm, n_cross_k, n_cross_v; /* E; sizes of its keys and values; 0: none */
    struct model_part mixer_2; /* a second mixer of the same input; its output is added */
    struct model_part beside;  /* experts beside ffn */
    uint32_t n_beside_norms;   /* E or 0: size of the next three norms */
    struct model_norm ffn_norm_1, beside_post_norm; /* norms of the outputs of ffn and beside */
    struct model_norm beside_norm; /* norm of the input of beside; possible without the others */
    struct model_part tail;        /* block at the layer's end; with AltUp it is the entire layer */
    uint32_t n_scale;              /* 1 if files may have out_scale, else 0 */
    struct engine_tensor *out_scale; /* [1]: factor of the layer's output; or NULL */
    bool halved;                     /* the layer's output is halved */
    uint32_t near; /* a drafter's layer attends to so many positions, but all are kept; 0: to all */
    bool idle;     /* the layer has tensors but no effect */
    struct model_kv_shape kv; /* set by the mixer, as is recurrent */
    struct model_recurrent_shape recurrent;
};

enum { MODEL_STREAMS = 4 }; /* streams of AltUp */

/* Tensors before and after the layers. */
struct model_ends {
    const struct engine_place *place; /* of the output's tensors and nodes; NULL: place 0, which
                                         the others are in */
    uint32_t n_embd, n_vocab, n_output_norm;
    uint32_t n_embd_norm, n_positions;    /* 0: the model has none */
    uint32_t n_positions_must;            /* positions that a file must have */
    uint32_t n_source_norm;               /* E if there is an encoder before a decoder, else 0 */
    uint32_t n_types;                     /* token types; 0: none */
    uint32_t n_output;                    /* V; 0: the model has no logits */
    uint32_t n_factors;                   /* half the number of elements that RoPE rotates */
    uint32_t n_per_layer, n_per_layers;   /* P per layer, L P in all; 0: no per-layer embeddings */
    struct engine_tensor *per_layer_embd; /* [V][L P] */
    struct model_linear per_layer_proj;   /* L P x E */
    struct model_norm per_layer_norm;     /* [P] */
    uint32_t n_start;                     /* E if there are two stacks of layers, else 0 */
    struct engine_tensor *low;            /* [E]: at first the output of the low one */
    uint32_t n_ngram, n_ngram_rows;       /* numbers of a row of the next table, its rows; or 0 */
    struct engine_tensor *ngram_embd;
    uint32_t n_streams;                          /* further streams of AltUp; 0: none */
    struct model_linear streams_in, streams_out; /* n_streams matrices E x E each */
    struct engine_tensor *token_embd;            /* [V][E]; the output's weight if missing */
    struct model_norm embd_norm;                 /* [E] */
    struct engine_tensor *positions; /* [positions][E]: learned position embeddings, or NULL */
    struct model_norm types;         /* weight [types][E]: added to embeddings by token type */
    struct model_norm output_norm;   /* [E] */
    struct model_norm source_norm;   /* [E]: of the encoder's rows */
    struct model_linear output;      /* V x E; the embeddings if missing */
    struct model_hyper hyper;        /* before the output norm */
    uint32_t n_score;                /* as in a layer, before the output norm */
    struct engine_tensor *score;
    /* Divisors of the RoPE frequencies: for all contexts, for contexts longer than the original
     * one, and for other contexts. */
    struct engine_tensor *rope_freqs, *rope_long, *rope_short;
};

/* The tensors around the MTP layer, which predicts the token after the next. */
struct model_mtp {
    uint32_t n_embd, n_both, n_vocab; /* E, 2 E, V; 0 where the file has none */
    struct model_norm embd_norm, hidden_norm;
    struct model_linear in;           /* E x 2 E: multiplies both, concatenated */
    struct engine_tensor *token_embd; /* NULL: the model's own, as for the next two */
    struct model_norm output_norm;
    struct model_linear output;
};

/* The hidden states that a drafter reads of each position: those that enter layer[i] of the model,
 * or, with the number of its layers (of all passes), those that leave the last one. */
enum { MODEL_READS_MAX = 32 };
struct model_reads {
    uint32_t n, layer[MODEL_READS_MAX];
    bool last;       /* one of them leaves the last layer */
    bool normalized; /* that one is read after the output norm */
};

/* What a drafter in a file of its own has besides its layers. */
struct model_drafter_ends {
    uint32_t n_read, layer[MODEL_READS_MAX]; /* see struct model_reads */
    uint32_t n_embd_read;                    /* E of the model that it drafts for */
    uint32_t n_embd, n_in, n_norm, n_ids;    /* E; n_read n_embd_read; of norm; draft ids */
    uint32_t n_hidden_norm;                  /* E, or 0 */
    struct model_norm norm; /* EAGLE-3: [n_in], of what it reads; DFlash: [E], after `in` */
    struct model_norm hidden_norm;
    struct model_linear in;    /* E x n_in: multiplies them, concatenated */
    struct engine_tensor *ids; /* I64 [n_ids]: ids of its logits, or NULL: the model's */
    bool adds_normalized;      /* the layer adds the hidden state after its norm */
    uint32_t block;            /* DFlash: tokens that it was trained to evaluate at once */
    uint32_t mask_id;
    bool causal; /* tokens of a block attend only to earlier ones */
};

struct model_reader;
struct model_params;
/* Reads the numbers of a drafter, after those of its layers' ends. */
bool model_drafter_read(struct model_reader *r, struct model_params *p);
extern const struct model_tensor_row model_drafter_rows[]; /* of struct model_drafter_ends */

struct model_params {
    const struct model_arch *arch;
    const char *name; /* general.architecture in the table's form */
    uint32_t n_layer, n_embd, n_ctx_train, n_vocab;
    bool bidirectional; /* tokens attend to later ones too: a sequence is one span of one run */
    bool shifted;       /* see struct model_facts, as for the next one */
    int32_t mask_id;
    bool has_pooling;   /* the file has pooling_type */
    uint32_t n_buckets; /* of relative positions; 0: none */
    enum model_pooling pooling;
    uint32_t n_source;          /* layers of an encoder before a decoder; 0: none */
    int32_t start_id;           /* the token after a source; -1: none */
    struct model_layer *source; /* [n_source], owned */
    uint32_t n_stack, n_low;    /* layers of each of two stacks, 0: there are none; runs of the low
                                   one before each of the high one (model_run_layer) */
    uint32_t n_run;             /* layers that a token passes through, each with its own state */
    bool scales_by_run;         /* blk.N.NAME.scale belongs to run N, not to layer N */
    bool pass_norm;             /* the output norm is applied between passes too */
    uint32_t n_draft_layer;     /* MTP layers of the file, after the others */
    uint32_t n_mtp;             /* 1: the first of them drafts tokens; the others are not used */
    uint32_t n_head, n_head_kv; /* of the first layer with attention */
    uint32_t n_expert, n_expert_used;
    bool experts_here;                              /* in place 0, wherever their layer is */
    float temperature;                              /* scale of queries by position; 0: none */
    uint32_t temperature_length, temperature_first; /* step; number of position 0 */
    enum model_residual residual; /* the architecture's; the file decides for PARALLEL_KEY */
    enum model_norm_kind norm;    /* the architecture's; the file decides for BY_EPSILON */
    uint32_t n_hyper;             /* streams of hyper-connections; 0: none */
    uint32_t sinkhorn;            /* iterations for weights that mix them; 0: they are not mixed */
    float hyper_eps, hyper_magnitude;
    uint32_t hyper_rank; /* of the gates of streams; 0: they have none */
    struct model_ngram ngram;
    struct model_switch adapters;
    uint32_t set_aside;      /* of MODEL_ATTENDED: attn_res.block_size; 0: none */
    float situ, situ_linear; /* bounds of gated units; situ 0: none */
    bool makes_columns; /* matrices with many zeros as inputs are copied by columns when bound, */
    bool plans_columns; /* or the bytes of the copies are only counted */
    bool plans_rows;    /* the bytes of copies of rows are only counted, too */
    bool predicts;      /* the predictors of zeros are used */
    enum engine_unary act; /* of feed-forward networks: the architecture's, or that of the file */
    float norm_eps, post_norm_eps;
    float embd_scale, residual_scale, logit_scale; /* factors; 1: none */
    float logit_softcap;                           /* 0: none */
    struct model_ends ends;
    struct model_mtp mtp;
    struct model_drafter_ends drafter; /* of a file with a drafter */
    struct model_part pool;            /* the classifier and projections of pooled rows */
    struct model_layer *layer;         /* [n_layer + n_mtp], owned */
};

/* Returns the layer of run i < n_run: all layers in order, again and again. With two stacks (HRM,
 * Wang et al. 2025) the low one, the first n_stack layers, runs n_low times and then the high one,
 * and so on; with H and L the latest outputs of the two, at first the embeddings and ends.low, each
 * run makes its stack's output RMS(stack(H + L)). */
static inline uint32_t model_run_layer(const struct model_params *p, uint32_t i)
{
    if (p->n_stack == 0) return i % p->n_layer;
    return i % p->n_stack + (i / p->n_stack % (p->n_low + 1) == p->n_low ? p->n_stack : 0);
}

/* Reads and checks the numbers; n_vocab comes from the shape of the embeddings. Fails with
 * BASE_MODEL: the message names the key, or an unknown architecture and the supported ones with the
 * nearest names. After a failure *p is empty. The caller frees it with model_params_free. */
bool model_params_read(struct model_params *p, const struct gguf_file *file,
                       struct base_error *err);
/* As model_params_read, of a file with a drafter. n_vocab is that of its own embeddings and
 * ends.n_output of its own output; 0: it uses those of the model. */
bool model_params_read_drafter(struct model_params *p, const struct gguf_file *file,
                               struct base_error *err);
void model_params_free(struct model_params *p);

/* Parts of model_params_read (params_streams.c). _read_streams reads the numbers of streams around
 * sublayers, of gated units, n-grams and adapters that ids choose. _hyper_gated returns the sizes
 * of hyper-connections with gates, of a layer or (`end`) before the output; files have the weights
 * of their norm as [S E] or [S][E]. _read_stacks reads the
 * numbers of two stacks of layers; before it n_layer is the number of their runs. */
struct model_reader;
struct gguf_tensor;
bool model_read_streams(struct model_reader *r, struct model_params *p);
bool model_read_stacks(struct model_reader *r, struct model_params *p, uint32_t max_layers);
struct model_hyper model_hyper_gated(const struct model_params *p, const struct gguf_tensor *norm,
                                     bool end);

/* Calls `visit` for each row of tensors that the model has, in a fixed order. `prefix` is "" or
 * "blk.N."; the row's offsets are those of the struct `self`. Returns false as soon as `visit`
 * does. */
typedef bool (*model_row_visit)(void *user, const struct model_tensor_row *row, const char *prefix,
                                void *self);
bool model_rows_visit(struct model_params *p, model_row_visit visit, void *user);
#define MODEL_SOURCE_PREFIX "enc." /* of an encoder's layers, before "blk." */
/* Writes a tensor's name in the model's file: PREFIX ROW "." PART, or its alias in the
 * architecture. */
enum { MODEL_TENSOR_NAME = 96 };
void model_tensor_name(const struct model_params *p, const char *prefix, const char *row,
                       const char *part, char name[MODEL_TENSOR_NAME]);
/* Returns the size at an offset of a row (see model_tensor_row). */
uint32_t model_row_size(const void *self, uint16_t offset);

/* ---- Metadata keys (reader.c) ----
 *
 * Keys are "ARCH.name". The functions check every number against bounds; numbers become sizes and
 * divisors, so builders need no checks of their own. An absent key leaves *out unchanged, unless it
 * is required. Functions that fail return false with BASE_MODEL, or with BASE_USAGE if
 * gguf_override set the value; the message names the key. */

/* Bounds above those of any published model; products of two of these numbers cannot overflow. */
enum {
    MODEL_MAX_DIM = 1 << 20,
    MODEL_MAX_HEADS = 1 << 14,
    MODEL_MAX_LAYERS = 1 << 12,
    MODEL_MAX_CTX = 1 << 28,
    MODEL_MAX_EXPERTS = 1 << 12,
    MODEL_MAX_TAPS = 1 << 6 /* of a convolution */
};

struct model_reader {
    const struct gguf_file *file;
    const char *prefix; /* of layers' tensors; NULL: none */
    const char *name;   /* the prefix of the keys */
    uint32_t n_layer;
    struct base_error *err;
    char key[128]; /* the full name of the latest key */
};

/* Writes the full key into r->key and returns it. */
const char *model_reader_key(struct model_reader *r, const char *name);
bool model_reader_has(struct model_reader *r, const char *name);
/* Returns whether gguf_override set the value. */
bool model_reader_given(struct model_reader *r, const char *name);
/* Fails with a message about the key `name`: BASE_USAGE if gguf_override set its value. */
bool model_reader_fail(struct model_reader *r, const char *name, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* Returns a layer's tensor with the name `rest` after "blk.N."; NULL if the file has none. */
const struct gguf_tensor *model_reader_tensor(const struct model_reader *r, uint32_t layer,
                                              const char *rest);

/* Reads a number in min .. max. */
bool model_read_u32(struct model_reader *r, const char *name, enum model_need need, uint32_t min,
                    uint32_t max, uint32_t *out);
/* Reads a number of one layer. The key's value is one number for all layers, or an array of at
 * least n_layer numbers; layers past its end use its last one. */
bool model_read_layer_u32(struct model_reader *r, const char *name, enum model_need need,
                          uint32_t layer, uint32_t min, uint32_t max, uint32_t *out);
/* Reads an array of n_layer booleans or integers: *out is true if it marks layer `layer`.
 * *is_array and *out are false if the key is absent or no array. */
bool model_read_layer_flag(struct model_reader *r, const char *name, uint32_t layer, bool *is_array,
                           bool *out);
/* Reads a finite number >= min. */
bool model_read_f32(struct model_reader *r, const char *name, enum model_need need, float min,
                    float *out);
/* Reads a number of one layer: one number for all layers, or an array of n_layer. */
bool model_read_layer_f32(struct model_reader *r, const char *name, enum model_need need,
                          uint32_t layer, float min, float *out);

/* engine/graph.h: building a graph of ops, planning it once, running it many times.
 *
 * Build: the functions below append tensors to the graph. The first error sticks in the graph
 * (engine_graph_plan returns it); after an error, or for a NULL tensor, builders return NULL, so
 * that a model's code needs no check after each line. Plan: fuses nodes, selects those that outputs
 * depend on and those that write into leaves, in the order of building, computes the offset of
 * every intermediate from its lifetime, and allocates one buffer in each place. Run: executes the
 * planned nodes without any allocation; a decode step writes new inputs and runs the same graph
 * again.
 *
 * Shapes: [rows][cols], slowest first. T tokens, E embedding, H heads, D head size. */
#pragma once

#include "engine/engine.h"
#include "engine/tensor.h"

struct engine_graph; /* opaque */

/* A graph of at most max_tensors tensors (weights are not counted); the caller frees it. */
struct engine_graph *engine_graph_new(struct engine *engine, int max_tensors,
                                      struct base_error *err);
void engine_graph_free(struct engine_graph *g); /* g may be NULL */

/* Sets a printf-style name for dumps and messages. Returns t, which may be NULL. */
struct engine_tensor *engine_name(struct engine_tensor *t, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* A leaf in place 0 that the caller fills before each run. */
struct engine_tensor *engine_input(struct engine_graph *g, enum quant_id type, int n_dims,
                                   const int64_t *ne, const char *name);
/* Marks t as an output: its data is valid after a run. */
void engine_output(struct engine_graph *g, struct engine_tensor *t);
/* The memory of an input, and of an output after a run, in this machine's memory; valid from the
 * plan on. */
static inline void *engine_input_data(const struct engine_tensor *t)
{
    return t->data;
}

static inline const void *engine_output_data(const struct engine_tensor *t)
{
    return t->copy ? t->copy->data : t->data;
}

/* Sets the place of the nodes that are appended from now on; at first it is place 0. A node that
 * writes into another tensor's memory is in the place of that tensor. */
void engine_graph_set_place(struct engine_graph *g, const struct engine_place *place);

/* Fuses nodes if `simplify` (which affects only speed; tests compare both), plans and allocates.
 * Call it once. BASE_USAGE if the device of a node's place lacks its op. */
bool engine_graph_plan(struct engine_graph *g, bool simplify, struct base_error *err);
/* Runs the planned graph on all workers. BASE_INTERRUPTED when base/interrupt.h's flag is set. */
bool engine_graph_run(struct engine_graph *g, struct base_error *err);

int64_t engine_graph_bytes(const struct engine_graph *g); /* buffer + scratch, after the plan */
int engine_graph_nodes(const struct engine_graph *g);     /* nodes that run, after the plan */
/* The first tensor of that name, for dumps; NULL if absent. Only outputs have valid data. */
struct engine_tensor *engine_graph_find(struct engine_graph *g, const char *name);

/* ---- Views: no work, no memory ---- */
/* A view with ne and nb (bytes; NULL: contiguous) of n_dims dimensions, `offset` bytes after the
 * start of a. */
struct engine_tensor *engine_view(struct engine_graph *g, struct engine_tensor *a, int n_dims,
                                  const int64_t *ne, const int64_t *nb, int64_t offset);
/* Splits or joins dimensions; joined dimensions must be contiguous. Strided rows may be split along
 * ne[0]: [T][H*D] (any row stride) to [T][H][D]. */
struct engine_tensor *engine_reshape(struct engine_graph *g, struct engine_tensor *a, int n_dims,
                                     const int64_t *ne);
struct engine_tensor *engine_permute(struct engine_graph *g, struct engine_tensor *a, int d0,
                                     int d1, int d2,
                                     int d3); /* dimension i of a becomes dimension d_i */
/* Columns [first, first + n) of every row. */
struct engine_tensor *engine_cols(struct engine_graph *g, struct engine_tensor *a, int64_t first,
                                  int64_t n);

/* ---- Moving data ---- */
struct engine_tensor *engine_cont(struct engine_graph *g, struct engine_tensor *a); /* contiguous */
/* Converts and copies a into dst's memory (same number of elements); returns a view of dst. */
struct engine_tensor *engine_copy(struct engine_graph *g, struct engine_tensor *a,
                                  struct engine_tensor *dst);
struct engine_tensor *engine_cast(struct engine_graph *g, struct engine_tensor *a,
                                  enum quant_id type);
/* Rows of table[n][E] (any type that decodes) at the I32 indices ids[T]: F32 [T][E]. The row of an
 * index out of range is NaN. Rows of I32 remain I32, and one out of range is of -1. */
struct engine_tensor *engine_get_rows(struct engine_graph *g, struct engine_tensor *table,
                                      struct engine_tensor *ids);
/* Writes row t of a[T][E] to row ids[t] of table, converting to its type; ids are I32, and rows
 * with an id out of range are skipped. Returns a view of table; nodes that read this view run after
 * the write. */
struct engine_tensor *engine_set_rows(struct engine_graph *g, struct engine_tensor *table,
                                      struct engine_tensor *a, struct engine_tensor *ids);
struct engine_tensor *engine_concat(struct engine_graph *g, struct engine_tensor *a,
                                    struct engine_tensor *b, int dim);
struct engine_tensor *engine_repeat(struct engine_graph *g, struct engine_tensor *a,
                                    struct engine_tensor *like);

/* ---- Arithmetic: elementwise; b is repeated over a if its dimensions divide a's ---- */
struct engine_tensor *engine_add(struct engine_graph *g, struct engine_tensor *a,
                                 struct engine_tensor *b);
struct engine_tensor *engine_sub(struct engine_graph *g, struct engine_tensor *a,
                                 struct engine_tensor *b);
struct engine_tensor *engine_mul(struct engine_graph *g, struct engine_tensor *a,
                                 struct engine_tensor *b);
struct engine_tensor *engine_div(struct engine_graph *g, struct engine_tensor *a,
                                 struct engine_tensor *b);
struct engine_tensor *engine_scale(struct engine_graph *g, struct engine_tensor *a, float scale,
                                   float bias); /* fmaf(a, scale, bias) */
struct engine_tensor *engine_clamp(struct engine_graph *g, struct engine_tensor *a, float lo,
                                   float hi);
struct engine_tensor *engine_softcap(struct engine_graph *g, struct engine_tensor *a,
                                     float cap); /* cap * tanh(a / cap) */
struct engine_tensor *engine_unary(struct engine_graph *g, struct engine_tensor *a,
                                   enum engine_unary f);
/* unary(gate) * up, both [T][F]; rows may be strided. An element of up counts as +0 where unary is
 * RELU or RELU_SQR and not above zero, so that up may have any value there, also infinity or NaN.
 */
struct engine_tensor *engine_glu(struct engine_graph *g, struct engine_tensor *gate,
                                 struct engine_tensor *up, enum engine_unary f);

/* f(min(gate, limit)) * (clamp(up, -limit, limit) + offset): clamped SwiGLU (SILU, offset 0) and
 * the variant of gpt-oss (GELU_QUICK, limit 7, offset 1). The second factor counts as +0 where that
 * of engine_glu does. */
struct engine_tensor *engine_glu_clamp(struct engine_graph *g, struct engine_tensor *gate,
                                       struct engine_tensor *up, enum engine_unary f, float limit,
                                       float offset);

/* ---- Rows: over ne[0] ---- */
struct engine_tensor *engine_norm(struct engine_graph *g, struct engine_tensor *a, float eps);
struct engine_tensor *engine_rms_norm(struct engine_graph *g, struct engine_tensor *a, float eps);
struct engine_tensor *engine_l2_norm(struct engine_graph *g, struct engine_tensor *a, float eps);
struct engine_tensor *engine_sum_rows(struct engine_graph *g, struct engine_tensor *a);
/* softmax(a * scale + slope(head) * mask) over rows; a [N][H][T][K]; mask [T][K] F32 or F16 or
 * NULL; sinks [H] or NULL (a logit per head that is only added to the sum); slopes are 1, or those
 * of ALiBi if max_bias > 0. */
struct engine_tensor *engine_soft_max(struct engine_graph *g, struct engine_tensor *a,
                                      struct engine_tensor *mask, struct engine_tensor *sinks,
                                      float scale, float max_bias);

/* ---- Products ---- */
/* w[n][k] (any type with arithmetic) and x[T][k] F32 give [T][n] F32. x's ne2 and ne3 are multiples
 * of w's, which are broadcast (grouped-query attention, expert stacks). Arithmetic:
 * quant/quant.h. */
struct engine_tensor *engine_mul_mat(struct engine_graph *g, struct engine_tensor *w,
                                     struct engine_tensor *x);
/* Several weights with one input, as one parallel region that quantizes x once. The results are
 * adjacent, [T][n_0 + n_1 + ...], for engine_cols. n_w <= 4; types may differ. */
struct engine_tensor *engine_mul_mat_cat(struct engine_graph *g, struct engine_tensor *const *w,
                                         int n_w, struct engine_tensor *x);
/* Experts: w[X][n][k], x[T][1 or U][k], ids I32 [T][U] give [T][U][n]: row (t, u) of x times expert
 * ids[t][u]. An id out of range gives NaN rows. */
struct engine_tensor *engine_mul_mat_id(struct engine_graph *g, struct engine_tensor *w,
                                        struct engine_tensor *x, struct engine_tensor *ids);
/* As engine_mul_mat, for matrices, and engine_mul_mat_id, but a result is +0 if the number of
 * `active`, F32 of the result's shape, at its place is zero (of either sign). With one or two
 * columns the rows of w without an active result are not read. */
struct engine_tensor *engine_mul_mat_active(struct engine_graph *g, struct engine_tensor *w,
                                            struct engine_tensor *x, struct engine_tensor *active);
struct engine_tensor *engine_mul_mat_id_active(struct engine_graph *g, struct engine_tensor *w,
                                               struct engine_tensor *x, struct engine_tensor *ids,
                                               struct engine_tensor *active);
/* As engine_mul_mat of a matrix w, of which `columns`, I8, is the copy that quant_columns_make
 * makes: the same bits. With one or two columns of x, most of whose elements are zero, the copy is
 * read instead of w, without the columns of zeros. The second: as engine_mul_mat_id, with the
 * copies of all experts, columns[X][bytes], which are read if no expert has more columns. */
struct engine_tensor *engine_mul_mat_columns(struct engine_graph *g, struct engine_tensor *w,
                                             struct engine_tensor *columns,
                                             struct engine_tensor *x);
struct engine_tensor *engine_mul_mat_id_columns(struct engine_graph *g, struct engine_tensor *w,
                                                struct engine_tensor *columns,
                                                struct engine_tensor *x, struct engine_tensor *ids);

/* w[k][n] (any type with arithmetic) and x[T][k] F32 give [T][n]: sums of the rows of w, weighted
 * by x. Rows where x is zero (of either sign) are left out, and not read if all of x are zero
 * there. For ascending i with x[i] != 0, from +0: y = fmaf(w[i], x[i], y). */
struct engine_tensor *engine_mul_mat_transposed(struct engine_graph *g, struct engine_tensor *w,
                                                struct engine_tensor *x);

/* y + s * B z: the second factor of a low-rank update. y[T][n] and z[T][r] F32, contiguous rows;
 * b[ceil(n / 64)][r][64] of any type with arithmetic: B^T in panels of 64 outputs, those past n do
 * not matter; s = scale[t] * factor, scale F32 [T], where T may be two dimensions of y and z. With
 * experts y[T][U][n], z[T][U][r], b[X][..][r][64] and ids I32 [T][U]; without, NULL. For ascending
 * j: y = fmaf(b[j], s * z[j], y); a row with scale 0 is y, bit for bit. An id out of range gives
 * NaN rows. */
enum { ENGINE_LOW_RANK_PANEL = 64 };
struct engine_tensor *engine_add_low_rank(struct engine_graph *g, struct engine_tensor *y,
                                          struct engine_tensor *z, struct engine_tensor *b,
                                          struct engine_tensor *scale, float factor,
                                          struct engine_tensor *ids);

/* ---- Experts: T tokens, X experts, U of them used for each token; arithmetic: op_experts.c
 * ---- */
/* The U experts with the largest probs[T][X] + bias[X] (bias NULL: the largest probs), best first:
 * I32 [T][U]. They are selected from the n_groups_used best of n_groups groups of consecutive
 * experts, the best being those with the largest sum of their two largest values; 1 and 1: no
 * groups. */
struct engine_tensor *engine_choose_experts(struct engine_graph *g, struct engine_tensor *probs,
                                            struct engine_tensor *bias, int n_used, int n_groups,
                                            int n_groups_used);
/* As engine_choose_experts without bias and groups, but returns id / chunk, the number of the group
 * of `chunk` consecutive experts that contains the expert. A number may occur several times. */
struct engine_tensor *engine_choose_expert_chunks(struct engine_graph *g,
                                                  struct engine_tensor *probs, int n_used,
                                                  int chunk);
/* Weights of the chosen experts, F32 [T][U]: probs of ids[T][U], then a softmax over them if
 * `softmax`, divided by their sum (at least 2^-14) if `normalize`, times scale. */
struct engine_tensor *engine_expert_weights(struct engine_graph *g, struct engine_tensor *probs,
                                            struct engine_tensor *ids, bool softmax, bool normalize,
                                            float scale);
/* The sum over ascending u of y[T][U][E] * weights[T][U]: [T][E]. */
struct engine_tensor *engine_expert_sum(struct engine_graph *g, struct engine_tensor *y,
                                        struct engine_tensor *weights);

/* ---- Positions and attention ---- */
/* Rotates x[T][H][D] (rows may be strided) by positions I32 [T]. Kinds with sections have positions
 * [4][T], or [T] for text, which means three equal rows and a fourth of zeros. factors: F32
 * [n_rot/2] (divisors per frequency: LongRoPE, Llama 3) or NULL. Angles and their sin/cos are
 * computed in double and rounded once. Elements from n_rot on are copied. */
struct engine_tensor *engine_rope(struct engine_graph *g, struct engine_tensor *x,
                                  struct engine_tensor *positions, struct engine_tensor *factors,
                                  const struct engine_rope *rope);

/* clang-format off */
/* An int16-quantized KV cache stores keys or values as the device's attention multiplies them
 * (engine/kv.h; on the processor engine/cpu/isa/attn.h):
 *
 *   cache    I8 [KH][slots / ENGINE_KV_Q16_GROUP][elements of engine_kv_form], 64-byte aligned,
 *            zeroed at first
 *
 * engine_set_kv_q16 rounds the rows x[KH][T][D] to the type `as` and stores them in the slots I32
 * [T], which must differ (slots out of range are skipped); the result is the cache. Attention over
 * it gives the bits of attention over a cache of type `as`. Attention reads the cache in place if
 * keys of consecutive positions, from a multiple of ENGINE_KV_Q16_ALIGN on, have consecutive slots
 * from such a multiple on; otherwise it gathers rows. */
/* clang-format on */
enum { ENGINE_KV_Q16_GROUP = 16, ENGINE_KV_Q16_ALIGN = 32 };
struct engine_tensor *engine_set_kv_q16(struct engine_graph *g, enum engine_kv_q16 what,
                                        struct engine_tensor *cache, struct engine_tensor *x,
                                        struct engine_tensor *slots, enum quant_id as);

/* clang-format off */
/* Attention of T tokens over cached keys and values. Instead of a mask, each token has a range of
 * positions.
 *
 *   q        F32 [T][H][D]           queries
 *   k_cache  [slots][KH][D]          keys, of any type with arithmetic; KH divides H;
 *            I8 [slots / 16][KH][bytes]  or int16-quantized (engine_set_kv_q16)
 *   v_cache  [slots][KH][DV]         values, likewise
 *   ranges   I32 [T][4]              each token's attention range {table, first, end, after}: the
 *                                    keys of positions first <= j < end; `after` of them, the last
 *                                    ones, follow the query's own position
 *   tables   I32 [tables][positions] block tables: the KV slot of each position of a sequence
 *   sinks    F32 [H] or NULL         for each head a logit that is added to the softmax's sum
 *   relative F32 [2 R + 1][H] or NULL   biases of scores by the distance of key and query
 *   result   F32 [T][H * DV]
 *
 * Tables may share slots (common prefixes); `first` implements sliding windows, `end` the
 * bidirectional attention of encoders.
 *
 * A query's own position is p = end - 1 - after.
 *
 * Arithmetic, for each token and head, over chunks of ENGINE_ATTENTION_CHUNK keys counted from
 * position 0, in ascending order; j runs over the chunk's keys in the token's range:
 *
 *   score    s_j = q . k_j * scale, then - slope(head) * |j - p| if max_alibi is not 0, then
 *              + relative[R + clamp(j - p, -R, R)][head], then cap * tanh(s_j / cap) if softcap is not 0
 *              F32 keys: the dot of F32 weights (quant/quant.h)
 *              other:    queries and keys are int16 codes of 12 to 15 bits, their dot sums of integers
 *   F32 values:   m = max s_j;  w_j = exp(s_j - m)
 *                 l = sum of w_j in lanes of (j - first key);  o = sum of w_j * v_j, fmaf ascending
 *   other values: codes v_j of up to 13 bits with a power of two each; weights are powers of two of
 *                 s_j * log2(e) relative to a whole number of binary exponents, so that changing it
 *                 is exact; they become codes of 15 bits with a power of two for each 32 keys, and
 *                 their products with v_j are sums of integers
 *   merge    chunks in ascending order: M = max(m0, m1), each side times exp(m - M), or the power
 *            of two;  result = o / l
 *
 * engine/cpu/isa/attn.h specifies the codes and roundings of types other than F32. */
/* clang-format on */
enum { ENGINE_ATTENTION_CHUNK = 256 };
struct engine_tensor *engine_attention(struct engine_graph *g, struct engine_tensor *q,
                                       struct engine_tensor *k_cache, struct engine_tensor *v_cache,
                                       struct engine_tensor *ranges, struct engine_tensor *tables,
                                       struct engine_tensor *sinks, struct engine_tensor *relative,
                                       const struct engine_attention *params);

/* clang-format off */
/* Chooses the keys that each of T tokens attends to, by the scores of an indexer (sparse attention).
 *
 *   q        F32 [T][HI][DI]         queries of the indexer
 *   k_cache  [slots][1][DI]          its keys, F32 or int16-quantized
 *   ranges, tables                   as of engine_attention: the keys to choose from
 *   weights  F32 [T][HI] or NULL
 *   result   I32 [T][lists][ENGINE_RANGE + K], K = min(n_used * block, positions): each row is a
 *            range and a block table, for an attention whose tables are all rows' [K]:
 *            {row, 0, n, 0}, then the slots of the n chosen positions, ascending, and -1
 *
 * With weights there is one list, for all heads: the score of position j is the sum over h of
 * w_h max(q_h . k_j, 0). Without, each head has a list of its own, by q_h . k_j; the slots of list l
 * are l * stride higher, for a cache of several heads that is viewed as one. Positions are chosen in
 * blocks of `block`, whose score is the largest of their positions in the range: the last n_local
 * blocks of the range and those with the largest scores, n_used in all; of equal scores the earlier
 * positions. Scores that are not needed are not computed. Arithmetic:
 * engine/cpu/attention/choose_keys.c.
 *
 * engine_choose_far_keys adds the slots of a second range, the near keys, after the chosen ones:
 * near_ranges and near_tables, of at most n_near positions, which K includes. There is one list; q,
 * k_cache and weights may be NULL together, and then all positions of the range are chosen. With
 * n_each, position j of the range stands for the near positions j n_each .. (j + 1) n_each - 1: their
 * slots are listed if it is chosen (K = min(n_used * block, positions) * n_each + n_near), and the
 * near keys are those of the near range after the last of them. */
/* clang-format on */
enum { ENGINE_RANGE = 4 };
struct engine_tensor *engine_choose_keys(struct engine_graph *g, struct engine_tensor *q,
                                         struct engine_tensor *k_cache,
                                         struct engine_tensor *ranges, struct engine_tensor *tables,
                                         struct engine_tensor *weights,
                                         const struct engine_choose_keys *params);
struct engine_tensor *
engine_choose_far_keys(struct engine_graph *g, struct engine_tensor *q,
                       struct engine_tensor *k_cache, struct engine_tensor *ranges,
                       struct engine_tensor *tables, struct engine_tensor *weights,
                       struct engine_tensor *near_ranges, struct engine_tensor *near_tables,
                       const struct engine_choose_keys *params);

/* clang-format off */
/* Keys of blocks of consecutive positions (DeepSeek-V4), for tokens that end a block.
 *
 *   rows     F32 [slots][1][N]       what each position has: values and scores of W numbers each
 *   ranges   I32 [T][4]              {table, first, end, _}: the block's positions; first >= end:
 *                                    the token ends none, and its result is zeros
 *   tables   I32 [tables][positions] block tables
 *   ape      F32 [ratio][W]          is added to the scores of position j of a block; NULL if rows
 *                                    have no scores: the result is the mean of the values
 *   result   F32 [T][D]              W = D: sum over j of softmax(scores)_j values_j, channel by
 *                                    channel
 *
 * With `overlaps` W is 2 D: the softmax is over the first halves of the `ratio` positions before
 * the block, if there are any, and the second halves of its own. Arithmetic:
 * engine/cpu/op/op_compress.c. */
/* clang-format on */
struct engine_tensor *engine_compress_keys(struct engine_graph *g, struct engine_tensor *rows,
                                           struct engine_tensor *ranges,
                                           struct engine_tensor *tables, struct engine_tensor *ape,
                                           const struct engine_compress_keys *params);

/* Makes matrices nearly doubly stochastic (Sinkhorn 1967): x[N][S][S], contiguous: a softmax of
 * each row, plus eps; then columns are divided by their sums plus eps; then, iterations - 1 times,
 * rows and columns. Arithmetic: engine/cpu/op/op_compress.c. */
struct engine_tensor *engine_sinkhorn(struct engine_graph *g, struct engine_tensor *x,
                                      int iterations, float eps);

/* engine/graph_recurrent.h: builders of the ops that carry a state from token to token (Mamba,
 * RWKV, gated delta rule). The rules of engine/graph.h apply.
 *
 * T tokens of S spans, H heads, D head size, N state size. A span is consecutive tokens of one
 * sequence: the op reads the state before them from one slot of a table and writes the state after
 * them to another. `spans`: I32 [S][4], each {first token, tokens, slot before, slot after}. A
 * span's two slots may be the same; its slot after must not be a slot of another span. Spans cover
 * all tokens and do not overlap; outputs of tokens outside of all spans are undefined. The outputs
 * of a span with a slot out of range are NaN, and no state is written; tokens out of range are
 * skipped.
 *
 * `table`: F32 [slots][..], contiguous, a leaf; a run writes into it, and nodes built later read
 * the new states. Other sources may have any strides and be of any type with arithmetic.
 * Arithmetic: op_recurrent.c. */
#pragma once

#include "engine/graph.h"

/* Convolution, channel by channel: x[T][C] and taps[K][C] give [T][C]:
 *     out[t][c] = sum over k of x[t + ahead - K + 1 + k][c] taps[k][c],
 * where the K - 1 inputs before a span are its state, table[slots][1][K - 1][C], and those after it
 * are left out of the sum. ahead < K; 0: causal. Fastest if the channels of both are contiguous. */
struct engine_tensor *engine_ssm_conv(struct engine_graph *g, struct engine_tensor *table,
                                      struct engine_tensor *x, struct engine_tensor *taps,
                                      struct engine_tensor *spans, int ahead);

/* Selective scan. table[slots][H][D][N]; x[T][H][D]; dt[T][H]; a[H][N] (Mamba 1) or a[H][1]
 * (Mamba 2); b and c[T][G][N], where H / G consecutive heads share a group; gives [T][H][D]. With
 * d = softplus(dt):
 *     state = state exp(d a) + (d x) b;   out = sum over n of state c. */
struct engine_tensor *engine_ssm_scan(struct engine_graph *g, struct engine_tensor *table,
                                      struct engine_tensor *x, struct engine_tensor *dt,
                                      struct engine_tensor *a, struct engine_tensor *b,
                                      struct engine_tensor *c, struct engine_tensor *spans);

/* RWKV 6. k, v, r, decay [T][H][D]; bonus [H][D]; table[slots][H][D][D], key by value; gives
 * [T][H][D]:
 *     out[j] = sum over i of r[i] (state[i][j] + bonus[i] k[i] v[j])
 *     state[i][j] = state[i][j] decay[i] + k[i] v[j]. */
struct engine_tensor *engine_wkv6(struct engine_graph *g, struct engine_tensor *k,
                                  struct engine_tensor *v, struct engine_tensor *r,
                                  struct engine_tensor *bonus, struct engine_tensor *decay,
                                  struct engine_tensor *table, struct engine_tensor *spans);

/* RWKV 7. The result and all sources except the table are [T][H][D]; table[slots][H][D][D], value
 * by key:
 *     state[i][j] = state[i][j] decay[j] + v[i] k[j] + b[j] sum over l of a[l] state[i][l]
 *     out[i] = sum over j of state[i][j] r[j]. */
struct engine_tensor *engine_wkv7(struct engine_graph *g, struct engine_tensor *r,
                                  struct engine_tensor *decay, struct engine_tensor *k,
                                  struct engine_tensor *v, struct engine_tensor *a,
                                  struct engine_tensor *b, struct engine_tensor *table,
                                  struct engine_tensor *spans);

/* Gated delta rule. q and k [T][QH][DK], where head h uses head h % QH; v[T][H][D]; gate [T][H][1],
 * or [T][H][DK] for a decay per key element; beta [T][H][1]; table [slots][H][D][DK], value by key;
 * gives [T][H][D]:
 *     state[i][j] = state[i][j] exp(gate[j]);
 *     state[i][j] += beta (v[i] - sum over l of state[i][l] k[l]) k[j]
 *     out[i] = sum over j of state[i][j] q[j] / sqrt(DK). */
struct engine_tensor *engine_gated_delta(struct engine_graph *g, struct engine_tensor *q,
                                         struct engine_tensor *k, struct engine_tensor *v,
                                         struct engine_tensor *gate, struct engine_tensor *beta,
                                         struct engine_tensor *table, struct engine_tensor *spans);

/* engine/graph_recurrent.h: builders of the ops that carry a state from token to token (Mamba,
 * RWKV, gated delta rule). The same rules as in engine/graph.h.
 *
 * S sequences of T tokens each, H heads, D head size, N state size. Every op returns two views of
 * one node: what it computes for each token, and the state after the last token, which the caller
 * copies into its cache of states. Sources may have any strides; states and coefficients are of any
 * type with arithmetic. Arithmetic: op_recurrent.c. */
#ifndef ENGINE_GRAPH_RECURRENT_H
#define ENGINE_GRAPH_RECURRENT_H

#include "engine/graph.h"

struct engine_recurrent {
    struct engine_tensor *out;   /* [S][T][H][D] */
    struct engine_tensor *state; /* [S][H][...], shaped as the state that came in */
};

/* Causal convolution, channel by channel: x[S][C][K - 1 + T] (the last K - 1 columns of the past,
 * then the new ones) and weight[C][K] give [S][T][C]: sum over k of x[s][c][t + k] weight[c][k].
 * Fastest where the channels of both are contiguous: transposed views of [S][K - 1 + T][C],
 * [K][C]. */
struct engine_tensor *engine_ssm_conv(struct engine_graph *g, struct engine_tensor *x,
                                      struct engine_tensor *weight);

/* Selective scan. state[slots][H][D][N], of which sequence s takes slot ids[s] (I32 [S]; out of
 * range: NaN); x[S][T][H][D]; dt[S][T][H]; a[H][N] (Mamba 1) or a[H][1] (Mamba 2); b and
 * c[S][T][G][N], where H / G consecutive heads share a group. With d = softplus(dt):
 *     state = state exp(d a) + (d x) b;   out = sum over n of state c. */
struct engine_recurrent engine_ssm_scan(struct engine_graph *g, struct engine_tensor *state,
                                        struct engine_tensor *x, struct engine_tensor *dt,
                                        struct engine_tensor *a, struct engine_tensor *b,
                                        struct engine_tensor *c, struct engine_tensor *ids);

/* RWKV 6. k, v, r, decay [S][T][H][D]; bonus [H][D]; state[S][H][D][D], key by value:
 *     out[j] = sum over i of r[i] (state[i][j] + bonus[i] k[i] v[j])
 *     state[i][j] = state[i][j] decay[i] + k[i] v[j]. */
struct engine_recurrent engine_wkv6(struct engine_graph *g, struct engine_tensor *k,
                                    struct engine_tensor *v, struct engine_tensor *r,
                                    struct engine_tensor *bonus, struct engine_tensor *decay,
                                    struct engine_tensor *state);

/* RWKV 7. All but state are [S][T][H][D]; state[S][H][D][D], value by key:
 *     state[i][j] = state[i][j] decay[j] + v[i] k[j] + b[j] sum over l of a[l] state[i][l]
 *     out[i] = sum over j of state[i][j] r[j]. */
struct engine_recurrent engine_wkv7(struct engine_graph *g, struct engine_tensor *r,
                                    struct engine_tensor *decay, struct engine_tensor *k,
                                    struct engine_tensor *v, struct engine_tensor *a,
                                    struct engine_tensor *b, struct engine_tensor *state);

/* Gated delta rule. q and k [S][T][QH][DK], where head h takes head h % QH; v[S][T][H][D]; gate
 * [S][T][H][1], or [S][T][H][DK] for a decay per key element; beta [S][T][H][1]; state
 * [slots][H][D][DK], value by key, of which sequence s takes slot ids[s] (I32 [S]; out of range:
 * NaN):
 *     state[i][j] = state[i][j] exp(gate[j]);
 *     state[i][j] += beta (v[i] - sum over l of state[i][l] k[l]) k[j]
 *     out[i] = sum over j of state[i][j] q[j] / sqrt(DK). */
struct engine_recurrent engine_gated_delta(struct engine_graph *g, struct engine_tensor *q,
                                           struct engine_tensor *k, struct engine_tensor *v,
                                           struct engine_tensor *gate, struct engine_tensor *beta,
                                           struct engine_tensor *state, struct engine_tensor *ids);

#endif

/* engine/op_sources.h: the sources of ops that have many: their places in src[] of a node.
 *
 * Shape rules and every device read them by these names. */
#pragma once

#include "engine/tensor.h"

/* The numbers of a row of `spans` (engine/graph_recurrent.h). */
enum {
    ENGINE_SPAN_FIRST,
    ENGINE_SPAN_COUNT,
    ENGINE_SPAN_FROM,
    ENGINE_SPAN_TO,
    ENGINE_SPAN_NUMBERS
};

/* clang-format off */
enum { ENGINE_CONV_TABLE, ENGINE_CONV_X, ENGINE_CONV_TAPS, ENGINE_CONV_SPANS };
enum { ENGINE_SCAN_TABLE, ENGINE_SCAN_X, ENGINE_SCAN_DT, ENGINE_SCAN_A, ENGINE_SCAN_B,
       ENGINE_SCAN_C, ENGINE_SCAN_SPANS };
enum { ENGINE_WKV6_K, ENGINE_WKV6_V, ENGINE_WKV6_R, ENGINE_WKV6_BONUS, ENGINE_WKV6_DECAY,
       ENGINE_WKV6_TABLE, ENGINE_WKV6_SPANS };
enum { ENGINE_WKV7_R, ENGINE_WKV7_DECAY, ENGINE_WKV7_K, ENGINE_WKV7_V, ENGINE_WKV7_A,
       ENGINE_WKV7_B, ENGINE_WKV7_TABLE, ENGINE_WKV7_SPANS };
enum { ENGINE_DELTA_Q, ENGINE_DELTA_K, ENGINE_DELTA_V, ENGINE_DELTA_GATE, ENGINE_DELTA_BETA,
       ENGINE_DELTA_TABLE, ENGINE_DELTA_SPANS };
enum { ENGINE_ATTENTION_Q, ENGINE_ATTENTION_K, ENGINE_ATTENTION_V, ENGINE_ATTENTION_RANGE,
       ENGINE_ATTENTION_TABLES, ENGINE_ATTENTION_SINKS, ENGINE_ATTENTION_RELATIVE };
enum { ENGINE_CHOOSE_Q, ENGINE_CHOOSE_K, ENGINE_CHOOSE_RANGE, ENGINE_CHOOSE_TABLES,
       ENGINE_CHOOSE_WEIGHTS, ENGINE_CHOOSE_NEAR_RANGE, ENGINE_CHOOSE_NEAR_TABLES };
enum { ENGINE_COMPRESS_ROWS, ENGINE_COMPRESS_RANGE, ENGINE_COMPRESS_TABLES, ENGINE_COMPRESS_APE };
enum { ENGINE_LOW_RANK_Y, ENGINE_LOW_RANK_Z, ENGINE_LOW_RANK_B, ENGINE_LOW_RANK_SCALE,
       ENGINE_LOW_RANK_IDS };
/* clang-format on */

enum { ENGINE_PRODUCT_WEIGHTS = 4 };

/* The sources of a product node:
 *
 *   op              src[0]  src[1]          src[2]          src[3] src[4]
 *   mul_mat         x       weight          more weights: adjacent results
 *   mul_mat_id      x       experts         ids
 *   mul_mat_glu     x       gate's weight   up's weight
 *   mul_mat_id_glu  x       gate's experts  ids             up's experts
 *   mul_mat_active     x    weight          active
 *   mul_mat_id_active  x    experts         ids             active
 *   mul_mat_columns     x   weight          its copy by columns
 *   mul_mat_id_columns  x   experts         ids             their copies by columns */
struct engine_product {
    const struct engine_tensor *x, *ids, *w[ENGINE_PRODUCT_WEIGHTS];
    const struct engine_tensor *up;      /* with a gate, which is w[0]; otherwise NULL */
    const struct engine_tensor *columns; /* I8: the weight, or [X] experts, by columns
                                            (quant/columns.h); or NULL */
    const struct engine_tensor *active;  /* results with a zero here are zero; or NULL */
    int n_w;
};
struct engine_product engine_product_of(const struct engine_tensor *dst);

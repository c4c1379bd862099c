/* engine/graph/graph_recur.c: the ops that carry a state from token to token
 * (engine/graph_recurrent.h): rows, shape rules and builders. Their arithmetic on the CPU, which is
 * the specification: engine/cpu/op/op_recurrent.c. */
#include "engine/graph_internal.h"
#include "engine/graph_recurrent.h"
#include "engine/op_sources.h"
#include "engine/ops.h"

/* ---- Shared by the ops ---- */

static bool has_shape(const struct engine_tensor *t, int64_t ne0, int64_t ne1, int64_t ne2,
                      int64_t ne3)
{
    return engine_type_computes(t) && t->type->block_len == 1 && t->ne[0] == ne0 &&
           t->ne[1] == ne1 && t->ne[2] == ne2 && t->ne[3] == ne3;
}

static bool same_shape(const struct engine_tensor *t, const struct engine_tensor *like)
{
    return has_shape(t, like->ne[0], like->ne[1], like->ne[2], like->ne[3]);
}

/* ---- Spans ---- */

static bool spans_fit(const struct engine_tensor *spans)
{
    return engine_tensor_is(spans, QUANT_I32) && engine_tensor_contiguous(spans) &&
           spans->ne[0] == ENGINE_SPAN_NUMBERS && spans->ne[2] == 1 && spans->ne[3] == 1;
}

/* Whether t is a valid table. */
static bool is_table(const struct engine_tensor *t)
{
    return engine_tensor_is(t, QUANT_F32) && engine_tensor_contiguous(t);
}

/* ---- ssm_conv ---- */

static bool ssm_conv_shape(struct engine_tensor *dst, struct base_error *err)
{
    const struct engine_tensor *table = dst->src[ENGINE_CONV_TABLE], *x = dst->src[ENGINE_CONV_X];
    const struct engine_tensor *taps = dst->src[ENGINE_CONV_TAPS];
    if (!has_shape(x, x->ne[0], x->ne[1], 1, 1) || !has_shape(taps, x->ne[0], taps->ne[1], 1, 1) ||
        !has_shape(table, x->ne[0], taps->ne[1] - 1, 1, table->ne[3]) || !is_table(table) ||
        dst->params.conv_ahead < 0 || dst->params.conv_ahead >= taps->ne[1] ||
        !spans_fit(dst->src[ENGINE_CONV_SPANS]))
        return engine_shape_fail(dst, err, "shapes do not fit");
    engine_dst_shape(dst, QUANT_F32, x->ne[0], x->ne[1], 1, 1);
    return true;
}

const struct engine_op engine_op_ssm_conv = {"ssm_conv", .n_src = 4, .shape = ssm_conv_shape,
                                             .updates = ENGINE_CONV_TABLE + 1};

struct engine_tensor *engine_ssm_conv(struct engine_graph *g, struct engine_tensor *table,
                                      struct engine_tensor *x, struct engine_tensor *taps,
                                      struct engine_tensor *spans, int ahead)
{
    return engine_graph_node(g, &engine_op_ssm_conv,
                             (struct engine_tensor *[]){table, x, taps, spans}, 4,
                             &(union engine_params){.conv_ahead = ahead});
}

/* ---- ssm_scan ---- */

static bool ssm_scan_shape(struct engine_tensor *dst, struct base_error *err)
{
    struct engine_tensor *const *src = dst->src;
    const struct engine_tensor *x = src[ENGINE_SCAN_X], *table = src[ENGINE_SCAN_TABLE],
                               *b = src[ENGINE_SCAN_B];
    const int64_t n = table->ne[0], heads = x->ne[1], tokens = x->ne[2];
    const struct engine_tensor *a = src[ENGINE_SCAN_A];
    if (!has_shape(x, x->ne[0], heads, tokens, 1) ||
        !has_shape(table, n, x->ne[0], heads, table->ne[3]) || !is_table(table) ||
        !has_shape(src[ENGINE_SCAN_DT], heads, tokens, 1, 1) ||
        !has_shape(a, a->ne[0] == 1 ? 1 : n, heads, 1, 1) ||
        !has_shape(b, n, b->ne[1], tokens, 1) || !same_shape(src[ENGINE_SCAN_C], b) ||
        heads % b->ne[1] != 0 || !spans_fit(src[ENGINE_SCAN_SPANS]))
        return engine_shape_fail(dst, err, "shapes do not fit");
    engine_dst_like(dst, QUANT_F32, x);
    return true;
}

const struct engine_op engine_op_ssm_scan = {"ssm_scan", .n_src = 7, .shape = ssm_scan_shape,
                                             .updates = ENGINE_SCAN_TABLE + 1};

struct engine_tensor *engine_ssm_scan(struct engine_graph *g, struct engine_tensor *table,
                                      struct engine_tensor *x, struct engine_tensor *dt,
                                      struct engine_tensor *a, struct engine_tensor *b,
                                      struct engine_tensor *c, struct engine_tensor *spans)
{
    return ENGINE_NODE(g, &engine_op_ssm_scan, table, x, dt, a, b, c, spans);
}

/* ---- wkv6 ---- */

static bool wkv6_shape(struct engine_tensor *dst, struct base_error *err)
{
    struct engine_tensor *const *src = dst->src;
    const struct engine_tensor *k = src[ENGINE_WKV6_K], *table = src[ENGINE_WKV6_TABLE];
    const int64_t dim = k->ne[0], heads = k->ne[1];
    if (!has_shape(k, dim, heads, k->ne[2], 1) || !same_shape(src[ENGINE_WKV6_V], k) ||
        !same_shape(src[ENGINE_WKV6_R], k) || !same_shape(src[ENGINE_WKV6_DECAY], k) ||
        !has_shape(src[ENGINE_WKV6_BONUS], dim, heads, 1, 1) ||
        !has_shape(table, dim, dim, heads, table->ne[3]) || !is_table(table) ||
        !spans_fit(src[ENGINE_WKV6_SPANS]))
        return engine_shape_fail(dst, err, "shapes do not fit");
    engine_dst_like(dst, QUANT_F32, k);
    return true;
}

const struct engine_op engine_op_wkv6 = {"wkv6", .n_src = 7, .shape = wkv6_shape,
                                         .updates = ENGINE_WKV6_TABLE + 1};

struct engine_tensor *engine_wkv6(struct engine_graph *g, struct engine_tensor *k,
                                  struct engine_tensor *v, struct engine_tensor *r,
                                  struct engine_tensor *bonus, struct engine_tensor *decay,
                                  struct engine_tensor *table, struct engine_tensor *spans)
{
    return ENGINE_NODE(g, &engine_op_wkv6, k, v, r, bonus, decay, table, spans);
}

/* ---- wkv7 ---- */

static bool wkv7_shape(struct engine_tensor *dst, struct base_error *err)
{
    struct engine_tensor *const *src = dst->src;
    const struct engine_tensor *r = src[ENGINE_WKV7_R], *table = src[ENGINE_WKV7_TABLE];
    const int64_t dim = r->ne[0];
    bool fits = has_shape(r, dim, r->ne[1], r->ne[2], 1) &&
                has_shape(table, dim, dim, r->ne[1], table->ne[3]) && is_table(table) &&
                spans_fit(src[ENGINE_WKV7_SPANS]);
    for (int i = ENGINE_WKV7_R; i <= ENGINE_WKV7_B; i++) fits = fits && same_shape(src[i], r);
    if (!fits) return engine_shape_fail(dst, err, "shapes do not fit");
    engine_dst_like(dst, QUANT_F32, r);
    return true;
}

const struct engine_op engine_op_wkv7 = {"wkv7", .n_src = 8, .shape = wkv7_shape,
                                         .updates = ENGINE_WKV7_TABLE + 1};

struct engine_tensor *engine_wkv7(struct engine_graph *g, struct engine_tensor *r,
                                  struct engine_tensor *decay, struct engine_tensor *k,
                                  struct engine_tensor *v, struct engine_tensor *a,
                                  struct engine_tensor *b, struct engine_tensor *table,
                                  struct engine_tensor *spans)
{
    return ENGINE_NODE(g, &engine_op_wkv7, r, decay, k, v, a, b, table, spans);
}

/* ---- gated_delta ---- */

static bool gated_delta_shape(struct engine_tensor *dst, struct base_error *err)
{
    struct engine_tensor *const *src = dst->src;
    const struct engine_tensor *q = src[ENGINE_DELTA_Q], *v = src[ENGINE_DELTA_V],
                               *gate = src[ENGINE_DELTA_GATE];
    const int64_t dim = v->ne[0], heads = v->ne[1], tokens = v->ne[2];
    const struct engine_tensor *table = src[ENGINE_DELTA_TABLE];
    const int64_t dim_k = q->ne[0];
    if (!has_shape(v, dim, heads, tokens, 1) || !has_shape(q, dim_k, q->ne[1], tokens, 1) ||
        !same_shape(src[ENGINE_DELTA_K], q) || heads % q->ne[1] != 0 ||
        !has_shape(gate, gate->ne[0] == 1 ? 1 : dim_k, heads, tokens, 1) ||
        !has_shape(src[ENGINE_DELTA_BETA], 1, heads, tokens, 1) ||
        !has_shape(table, dim_k, dim, heads, table->ne[3]) || !is_table(table) ||
        !spans_fit(src[ENGINE_DELTA_SPANS]))
        return engine_shape_fail(dst, err, "shapes do not fit");
    engine_dst_like(dst, QUANT_F32, v);
    return true;
}

const struct engine_op engine_op_gated_delta = {
    "gated_delta", .n_src = 7, .shape = gated_delta_shape, .updates = ENGINE_DELTA_TABLE + 1};

struct engine_tensor *engine_gated_delta(struct engine_graph *g, struct engine_tensor *q,
                                         struct engine_tensor *k, struct engine_tensor *v,
                                         struct engine_tensor *gate, struct engine_tensor *beta,
                                         struct engine_tensor *table, struct engine_tensor *spans)
{
    return ENGINE_NODE(g, &engine_op_gated_delta, q, k, v, gate, beta, table, spans);
}

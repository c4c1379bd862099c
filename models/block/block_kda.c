/* models/block/block_kda.c: Kimi delta attention (Kimi Linear, 2025): the gated delta rule with a
 * decay for each element of a key. See models/block/blocks.h. H heads of D elements.
 *
 *     q, k, v = silu(convolution of W_q x, W_k x, W_v x);  q and k have length 1
 *     f = W_fb W_fa x + dt, or W_fa x + dt;  beta = sigmoid(W_beta x)
 *     decay = a softplus(f), or, with a bound L <= 0, L sigmoid(|a| f)
 *     out = W_o (RMS(delta rule) * sigmoid(gate x)),  gate x = W_gb W_ga x or W_ga x */
#include "models/block/blocks.h"
#include <math.h>

struct kda {
    uint32_t n_embd, n_taps, n_head, d, n_inner; /* E, K, H, D, H D */
    uint32_t n_f, n_f_in, n_g, n_g_in; /* rows of W_fa, W_ga; D, or 0 without W_fb, W_gb */
    uint32_t a_in, a_out;              /* shape of a in files: H numbers */
    float bound;                       /* L; -INFINITY: none */
    struct model_linear q, k, v, beta;
    struct engine_tensor *conv_q, *conv_k, *conv_v; /* [K][H D] */
    struct model_linear f_a, f_b, g_a, g_b;
    struct engine_tensor *a, *dt; /* [H], [H D] */
    struct model_norm norm;       /* [D] */
    struct model_linear out;      /* E x H D */
};

#define AT(member) MODEL_AT(struct kda, member)

/* clang-format off */
static const struct model_tensor_row tensors[] = {
    {"attn_q",       MODEL_BARE,   MODEL_REQUIRED, AT(q),      .inputs = AT(n_embd), .outputs = AT(n_inner)},
    {"attn_k",       MODEL_BARE,   MODEL_REQUIRED, AT(k),      .inputs = AT(n_embd), .outputs = AT(n_inner)},
    {"attn_v",       MODEL_BARE,   MODEL_REQUIRED, AT(v),      .inputs = AT(n_embd), .outputs = AT(n_inner)},
    {"ssm_conv1d_q", MODEL_TAPS,   MODEL_REQUIRED, AT(conv_q), .inputs = AT(n_taps), .depth = AT(n_inner)},
    {"ssm_conv1d_k", MODEL_TAPS,   MODEL_REQUIRED, AT(conv_k), .inputs = AT(n_taps), .depth = AT(n_inner)},
    {"ssm_conv1d_v", MODEL_TAPS,   MODEL_REQUIRED, AT(conv_v), .inputs = AT(n_taps), .depth = AT(n_inner)},
    {"ssm_beta",     MODEL_BARE,   MODEL_REQUIRED, AT(beta),   .inputs = AT(n_embd), .outputs = AT(n_head)},
    {"ssm_f_a",      MODEL_LINEAR, MODEL_REQUIRED, AT(f_a),    .inputs = AT(n_embd), .outputs = AT(n_f)},
    {"ssm_f_b",      MODEL_LINEAR, MODEL_REQUIRED, AT(f_b),    .inputs = AT(n_f_in), .outputs = AT(n_inner)},
    {"ssm_g_a",      MODEL_LINEAR, MODEL_REQUIRED, AT(g_a),    .inputs = AT(n_embd), .outputs = AT(n_g)},
    {"ssm_g_b",      MODEL_LINEAR, MODEL_REQUIRED, AT(g_b),    .inputs = AT(n_g_in), .outputs = AT(n_inner)},
    {"ssm_a",        MODEL_VECTOR, MODEL_REQUIRED, AT(a),      .inputs = AT(a_in),   .outputs = AT(a_out)},
    {"ssm_dt",       MODEL_BIAS,   MODEL_REQUIRED, AT(dt),     .inputs = AT(n_inner)},
    {"ssm_norm",     MODEL_NORM,   MODEL_REQUIRED, AT(norm),   .inputs = AT(d)},
    {"attn_output",  MODEL_BARE,   MODEL_REQUIRED, AT(out),    .inputs = AT(n_inner), .outputs = AT(n_embd)},
    {.name = NULL},
};
/* clang-format on */

/* Reads the number of heads: in files with one for each layer, which may be 0 here, that of the
 * first other layer. */
static bool read_heads(struct model_reader *r, uint32_t layer, uint32_t *n_head)
{
    static const char key[] = "attention.head_count";
    for (uint32_t i = 0; i <= r->n_layer && *n_head == 0; i++)
        if (!model_read_layer_u32(r, key, MODEL_REQUIRED, i ? i - 1 : layer, 0, MODEL_MAX_HEADS,
                                  n_head))
            return false;
    return *n_head > 0 || model_reader_fail(r, key, "no layer has heads");
}

/* Reads the bound of decays. Some writers put -inf for a missing key. */
static bool read_bound(struct model_reader *r, const struct model_kda_row *row, float *bound)
{
    static const char key[] = "kda.gate_lower_bound", safe_key[] = "kda.safe_gate";
    bool safe = true;
    *bound = -INFINITY;
    if (!row->bounded) return true;
    if (!gguf_get_f32(r->file, model_reader_key(r, key), bound, r->err) ||
        !gguf_get_bool(r->file, model_reader_key(r, safe_key), &safe, r->err))
        return false;
    if (row->positive && !safe)
        return model_reader_fail(r, safe_key, "false: decays without a bound");
    if (!(*bound <= 0.0f) || (row->positive && !isfinite(*bound)))
        return model_reader_fail(
            r, key, "%s", isnan(*bound) || *bound > 0.0f ? "not 0 or less" : "this key is missing");
    return true;
}

static bool read(struct model_reader *r, struct model_params *p, struct model_layer *l, void *self)
{
    struct kda *a = self;
    const struct model_kda_row *row = &p->arch->kda;
    if (!read_heads(r, l->index, &a->n_head) ||
        !model_read_u32(r, "ssm.conv_kernel", MODEL_REQUIRED, 2, MODEL_MAX_TAPS, &a->n_taps) ||
        !model_read_u32(r, "kda.head_dim", MODEL_REQUIRED, 1, MODEL_MAX_DIM / a->n_head / 3,
                        &a->d) ||
        !read_bound(r, row, &a->bound))
        return false;
    a->n_embd = p->n_embd;
    a->n_inner = a->n_head * a->d;
    a->n_f_in = row->decay_full ? 0 : a->d;
    a->n_g_in = row->gate_full ? 0 : a->d;
    a->n_f = row->decay_full ? a->n_inner : a->d;
    a->n_g = row->gate_full ? a->n_inner : a->d;
    a->a_in = row->flat ? a->n_head : 1;
    a->a_out = row->flat ? 1 : a->n_head;
    l->recurrent = (struct model_recurrent_shape){.conv_columns = a->n_taps - 1,
                                                  .conv_channels = 3 * a->n_inner,
                                                  .n_head = a->n_head,
                                                  .rows = a->d,
                                                  .cols = a->d};
    return true;
}

/* ---- Graph ---- */

/* Returns one row after the other of x, y and z. */
static struct engine_tensor *join(const struct model_builder *b, struct engine_tensor *x,
                                  struct engine_tensor *y, struct engine_tensor *z)
{
    return engine_concat(b->g, engine_concat(b->g, x, y, 0), z, 0);
}

/* Builds heads x [T][H][D] of length 1. */
static struct engine_tensor *unit(const struct model_builder *b, struct engine_tensor *x)
{
    const float eps = b->params->arch->kda.unit_eps;
    return model_unit_heads(b, x, eps > 0.0f ? eps : b->params->norm_eps);
}

/* Returns part i of x [T][3 H D] as heads [T][H][D]. */
static struct engine_tensor *heads(const struct model_builder *b, const struct kda *a,
                                   struct engine_tensor *x, int64_t i)
{
    return model_split_heads(b, engine_cols(b->g, x, i * a->n_inner, a->n_inner), a->n_head, a->d);
}

/* Builds the logarithm of the decay [T][H][D] from f [T][H D] without dt. */
static struct engine_tensor *build_decay(const struct model_builder *b, const struct kda *a,
                                         struct engine_tensor *f)
{
    f = model_split_heads(b, engine_add(b->g, f, a->dt), a->n_head, a->d);
    struct engine_tensor *by = engine_reshape(b->g, a->a, 3, (int64_t[]){1, a->n_head, 1});
    if (isinf(a->bound)) return engine_mul(b->g, engine_unary(b->g, f, ENGINE_SOFTPLUS), by);
    f = engine_mul(b->g, f, by);
    if (!b->params->arch->kda.positive) f = engine_scale(b->g, f, -1.0f, 0.0f);
    return engine_scale(b->g, engine_unary(b->g, f, ENGINE_SIGMOID), a->bound, 0.0f);
}

static struct engine_tensor *build(struct model_builder *b, void *self, struct engine_tensor *x)
{
    const struct kda *a = self;
    const struct model_linear *const in[] = {&a->q, &a->k, &a->v, &a->beta}, *const gates[] = {
                                                                                 &a->f_a, &a->g_a};
    const uint32_t size[] = {a->n_inner, a->n_inner, a->n_inner, a->n_head},
                   gate_size[] = {a->n_f, a->n_g};
    struct engine_tensor *part[4], *fg[2];
    model_linears(b, NULL, in, size, 4, x, "kda_in", MODEL_IN_MIXER, part);
    model_linears(b, NULL, gates, gate_size, 2, x, "kda_gates", MODEL_IN_MIXER, fg);
    if (a->n_f_in) fg[0] = model_linear(b, &a->f_b, fg[0]);
    if (a->n_g_in) fg[1] = model_linear(b, &a->g_b, fg[1]);

    struct engine_tensor *taps = join(b, a->conv_q, a->conv_k, a->conv_v);
    struct engine_tensor *qkv = model_convolve(b, join(b, part[0], part[1], part[2]), taps, 0);
    qkv = engine_unary(b->g, qkv, ENGINE_SILU);
    struct engine_tensor *q = model_named(b, unit(b, heads(b, a, qkv, 0)), "q");
    struct engine_tensor *k = model_named(b, unit(b, heads(b, a, qkv, 1)), "k");
    struct engine_tensor *decay = model_named(b, build_decay(b, a, fg[0]), "decay");
    struct engine_tensor *beta =
        model_split_heads(b, engine_unary(b->g, part[3], ENGINE_SIGMOID), a->n_head, 1);
    struct engine_tensor *delta = engine_gated_delta(b->g, q, k, heads(b, a, qkv, 2), decay, beta,
                                                     model_state_of(b), b->inputs.spans);
    b->written[1] = delta;
    x = model_norm(b, model_named(b, delta, "delta"), &a->norm);
    x = engine_reshape(b->g, x, 2, (int64_t[]){a->n_inner, b->n_tokens});
    x = engine_mul(b->g, x, engine_unary(b->g, fg[1], ENGINE_SIGMOID));
    return model_named(b, model_linear(b, &a->out, x), "kda_out");
}

MODEL_BLOCK(kda, "Kimi delta attention")

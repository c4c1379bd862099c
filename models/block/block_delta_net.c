/* models/block/block_delta_net.c: the gated delta rule (Yang et al. 2024) after a short
 * convolution. See models/block/blocks.h. KH key heads, H value heads, D their size. */
#include "models/block/blocks.h"

struct delta_net {
    uint32_t n_embd, n_taps, n_head_k, n_head, d; /* E, K, KH, H, D */
    uint32_t n_key, n_value, n_qkv;               /* KH D, H D, Q and K and V */
    uint32_t n_qkvz, n_ba, n_each;                /* rows: Q, K, V and Z; 2 H or 0; H or 0 */
    struct model_linear qkv, z;                   /* or, if the file has no qkv: */
    struct model_linear qkvz; /* by key head: Q, K, and V and Z of its H / KH heads */
    struct model_linear ba;   /* by key head: beta and alpha of its heads; or */
    struct model_linear beta, alpha;
    struct engine_tensor *conv;        /* [K][Q and K and V] */
    struct engine_tensor *dt_bias, *a; /* [H] */
    struct model_norm norm;            /* [D] */
    struct model_linear out;           /* E x H D */
};

#define AT(member) MODEL_AT(struct delta_net, member)

/* clang-format off */
static const struct model_tensor_row tensors[] = {
    {"ssm_in",     MODEL_LINEAR, MODEL_OPTIONAL, AT(qkvz),    .inputs = AT(n_embd), .outputs = AT(n_qkvz)},
    {"attn_qkv",   MODEL_LINEAR, MODEL_REQUIRED, AT(qkv),     .inputs = AT(n_embd), .outputs = AT(n_qkv),   .unless = AT(qkvz)},
    {"attn_gate",  MODEL_LINEAR, MODEL_REQUIRED, AT(z),       .inputs = AT(n_embd), .outputs = AT(n_value), .unless = AT(qkvz)},
    {"ssm_ba",     MODEL_LINEAR, MODEL_REQUIRED, AT(ba),      .inputs = AT(n_embd), .outputs = AT(n_ba)},
    {"ssm_beta",   MODEL_LINEAR, MODEL_REQUIRED, AT(beta),    .inputs = AT(n_embd), .outputs = AT(n_each)},
    {"ssm_alpha",  MODEL_LINEAR, MODEL_REQUIRED, AT(alpha),   .inputs = AT(n_embd), .outputs = AT(n_each)},
    {"ssm_conv1d", MODEL_TAPS,   MODEL_REQUIRED, AT(conv),    .inputs = AT(n_taps), .outputs = AT(n_qkv)},
    {"ssm_dt",     MODEL_BIAS,   MODEL_REQUIRED, AT(dt_bias), .inputs = AT(n_head)},
    {"ssm_a",      MODEL_VECTOR, MODEL_REQUIRED, AT(a),       .inputs = AT(n_head)},
    {"ssm_norm",   MODEL_NORM,   MODEL_REQUIRED, AT(norm),    .inputs = AT(d)},
    {"ssm_out",    MODEL_LINEAR, MODEL_REQUIRED, AT(out),     .inputs = AT(n_value), .outputs = AT(n_embd)},
    {.name = NULL},
};
/* clang-format on */

static bool read(struct model_reader *r, struct model_params *p, struct model_layer *l, void *self)
{
    struct delta_net *d = self;
    uint32_t inner = 0;
    if (!model_read_u32(r, "ssm.conv_kernel", MODEL_REQUIRED, 2, MODEL_MAX_TAPS, &d->n_taps) ||
        !model_read_u32(r, "ssm.inner_size", MODEL_REQUIRED, 1, MODEL_MAX_DIM, &inner) ||
        !model_read_u32(r, "ssm.state_size", MODEL_REQUIRED, 1, inner, &d->d) ||
        !model_read_u32(r, "ssm.time_step_rank", MODEL_REQUIRED, 1, MODEL_MAX_HEADS, &d->n_head) ||
        !model_read_u32(r, "ssm.group_count", MODEL_REQUIRED, 1, d->n_head, &d->n_head_k))
        return false;
    if (d->n_head % d->n_head_k)
        return model_reader_fail(r, "ssm.group_count", "%u heads cannot share %u key heads",
                                 d->n_head, d->n_head_k);
    if ((uint64_t)d->d * d->n_head != inner)
        return model_reader_fail(r, "ssm.inner_size", "%u, but there are %u heads of %u", inner,
                                 d->n_head, d->d);
    const bool grouped = p->arch->delta.grouped;
    d->n_embd = p->n_embd;
    d->n_key = d->n_head_k * d->d;
    d->n_value = inner;
    d->n_qkv = 2 * d->n_key + d->n_value;
    d->n_qkvz = grouped ? d->n_qkv + d->n_value : 0;
    d->n_ba = grouped ? 2 * d->n_head : 0;
    d->n_each = grouped ? 0 : d->n_head;
    l->recurrent = (struct model_recurrent_shape){.conv_columns = d->n_taps - 1,
                                                  .conv_channels = d->n_qkv,
                                                  .n_head = d->n_head,
                                                  .rows = d->d,
                                                  .cols = d->d};
    return true;
}

/* ---- Graph ---- */

enum { QKV, Z, BETA, ALPHA, PARTS };

/* Gathers columns [first, first + size) of each key head of x [T][KH * n]: [T][KH * size]. */
static struct engine_tensor *by_key_head(const struct model_builder *b, const struct delta_net *d,
                                         struct engine_tensor *x, int64_t n, int64_t first,
                                         int64_t size)
{
    const int64_t ne[] = {n, d->n_head_k, b->n_tokens};
    x = engine_cols(b->g, engine_reshape(b->g, x, 3, ne), first, size);
    return engine_reshape(b->g, engine_cont(b->g, x), 2,
                          (int64_t[]){size * d->n_head_k, b->n_tokens});
}

static void split_qkvz(const struct model_builder *b, const struct delta_net *d,
                       struct engine_tensor *x, struct engine_tensor *part[PARTS])
{
    const int64_t key = d->d, value = d->n_value / d->n_head_k, n = 2 * key + 2 * value;
    x = model_linear(b, &d->qkvz, x);
    struct engine_tensor *q = by_key_head(b, d, x, n, 0, key);
    struct engine_tensor *k = by_key_head(b, d, x, n, key, key);
    struct engine_tensor *v = by_key_head(b, d, x, n, 2 * key, value);
    part[QKV] = engine_concat(b->g, engine_concat(b->g, q, k, 0), v, 0);
    part[Z] = by_key_head(b, d, x, n, 2 * key + value, value);
}

static void split_ba(const struct model_builder *b, const struct delta_net *d,
                     struct engine_tensor *x, struct engine_tensor *part[PARTS])
{
    const int64_t each = d->n_head / d->n_head_k;
    x = model_linear(b, &d->ba, x);
    part[BETA] = by_key_head(b, d, x, 2 * each, 0, each);
    part[ALPHA] = by_key_head(b, d, x, 2 * each, each, each);
}

/* Builds all projections of x [T][E]; separate tensors become columns of one product. */
static void build_parts(const struct model_builder *b, const struct delta_net *d,
                        struct engine_tensor *x, struct engine_tensor *part[PARTS])
{
    const struct model_linear *const linear[] = {&d->qkv, &d->z, &d->beta, &d->alpha};
    const uint32_t size[] = {d->n_qkv, d->n_value, d->n_each, d->n_each};
    const int first = d->qkv.weight ? QKV : BETA, last = d->ba.weight ? BETA : PARTS;
    if (first == BETA) split_qkvz(b, d, x, part);
    if (last == BETA) split_ba(b, d, x, part);
    if (first == last) return;
    model_linears(b, NULL, linear + first, size + first, last - first, x, "delta_in",
                  MODEL_IN_MIXER, part + first);
}

/* Returns the columns from `first` on of x [T][..] as heads [T][heads][D], normalized to length 1
 * and, in grouped models, repeated for each value head. */
static struct engine_tensor *build_keys(const struct model_builder *b, const struct delta_net *d,
                                        struct engine_tensor *x, int64_t first)
{
    const uint32_t each = d->n_head / d->n_head_k;
    x = model_split_heads(b, engine_cols(b->g, x, first, d->n_key), d->n_head_k, d->d);
    x = model_unit_heads(b, x, b->params->norm_eps);
    return b->params->arch->delta.grouped ? model_repeat_heads(b, x, each) : x;
}

static struct engine_tensor *build(struct model_builder *b, void *self, struct engine_tensor *x)
{
    const struct delta_net *d = self;
    const int64_t values[] = {d->d, d->n_head, b->n_tokens},
                  numbers[] = {1, d->n_head, b->n_tokens};
    struct engine_tensor *part[PARTS];
    build_parts(b, d, x, part);

    struct engine_tensor *qkv =
        engine_unary(b->g, model_convolve(b, part[QKV], d->conv, 0), ENGINE_SILU);
    struct engine_tensor *q = model_named(b, build_keys(b, d, qkv, 0), "q");
    struct engine_tensor *k = model_named(b, build_keys(b, d, qkv, d->n_key), "k");
    struct engine_tensor *v =
        engine_reshape(b->g, engine_cols(b->g, qkv, 2 * d->n_key, d->n_value), 3, values);
    struct engine_tensor *gate =
        engine_unary(b->g, engine_add(b->g, part[ALPHA], d->dt_bias), ENGINE_SOFTPLUS);
    gate = engine_reshape(b->g, engine_mul(b->g, gate, d->a), 3, numbers);
    struct engine_tensor *beta = engine_unary(b->g, part[BETA], ENGINE_SIGMOID);
    beta = engine_reshape(b->g, beta, 3, numbers);

    struct engine_tensor *delta =
        engine_gated_delta(b->g, q, k, v, gate, beta, model_state_of(b), b->inputs.spans);
    b->written[1] = delta;
    x = model_norm(b, model_named(b, delta, "delta"), &d->norm);
    const enum engine_unary act = b->params->arch->delta.sigmoid ? ENGINE_SIGMOID : ENGINE_SILU;
    x = engine_glu(b->g, engine_reshape(b->g, part[Z], 3, values), x, act);
    x = engine_reshape(b->g, x, 2, (int64_t[]){d->n_value, b->n_tokens});
    return model_named(b, model_linear(b, &d->out, x), "delta_out");
}

MODEL_BLOCK(delta_net, "gated delta rule")

/* models/block/block_mamba2.c: a selective scan after a short convolution (Mamba 2: Dao and Gu
 * 2024). See models/block/blocks.h. H heads of P numbers, each with a state of N; G groups of heads
 * share B and C. */
#include "models/block/blocks.h"

struct mamba2 {
    uint32_t n_embd, n_taps, n_head, n_group, n_state; /* E, K, H, G, N */
    uint32_t n_inner, n_conv, n_in, n_norm;            /* H P, x and B and C, z and those and dt */
    uint32_t n_norm_optional;                          /* H P / G, or 0 */
    struct model_linear in;
    struct engine_tensor *conv, *conv_bias; /* [K][x and B and C]; [..] or NULL */
    struct engine_tensor *dt_bias;          /* [H] */
    struct engine_tensor *a, *d;            /* [H][1] */
    struct model_norm norm;                 /* [G][H P / G], or none */
    struct model_linear out;                /* E x H P */
};

#define AT(member) MODEL_AT(struct mamba2, member)

/* clang-format off */
static const struct model_tensor_row tensors[] = {
    {"ssm_in",     MODEL_LINEAR, MODEL_REQUIRED, AT(in),        .inputs = AT(n_embd), .outputs = AT(n_in)},
    {"ssm_conv1d", MODEL_TAPS,   MODEL_REQUIRED, AT(conv),      .inputs = AT(n_taps), .outputs = AT(n_conv)},
    {"ssm_conv1d", MODEL_BIAS,   MODEL_OPTIONAL, AT(conv_bias), .inputs = AT(n_conv)},
    {"ssm_dt",     MODEL_BIAS,   MODEL_REQUIRED, AT(dt_bias),   .inputs = AT(n_head)},
    {"ssm_a",      MODEL_VECTOR, MODEL_REQUIRED, AT(a),         .outputs = AT(n_head)},
    {"ssm_d",      MODEL_VECTOR, MODEL_REQUIRED, AT(d),         .outputs = AT(n_head)},
    {"ssm_norm",   MODEL_NORM,   MODEL_REQUIRED, AT(norm),      .inputs = AT(n_norm),          .outputs = AT(n_group)},
    {"ssm_norm",   MODEL_NORM,   MODEL_OPTIONAL, AT(norm),      .inputs = AT(n_norm_optional), .outputs = AT(n_group)},
    {"ssm_out",    MODEL_LINEAR, MODEL_REQUIRED, AT(out),       .inputs = AT(n_inner), .outputs = AT(n_embd)},
    {.name = NULL},
};
/* clang-format on */

static bool read(struct model_reader *r, struct model_params *p, struct model_layer *l, void *self)
{
    struct mamba2 *m = self;
    if (!model_read_u32(r, "ssm.conv_kernel", MODEL_REQUIRED, 2, MODEL_MAX_TAPS, &m->n_taps) ||
        !model_read_u32(r, "ssm.inner_size", MODEL_REQUIRED, 1, MODEL_MAX_DIM, &m->n_inner) ||
        !model_read_u32(r, "ssm.state_size", MODEL_REQUIRED, 1, MODEL_MAX_HEADS, &m->n_state) ||
        !model_read_u32(r, "ssm.time_step_rank", MODEL_REQUIRED, 1, MODEL_MAX_HEADS, &m->n_head) ||
        !model_read_u32(r, "ssm.group_count", MODEL_REQUIRED, 1, m->n_head, &m->n_group))
        return false;
    if (m->n_inner % m->n_head || m->n_head % m->n_group)
        return model_reader_fail(r, "ssm.inner_size", "%u is not shared by %u heads in %u groups",
                                 m->n_inner, m->n_head, m->n_group);
    const uint64_t conv = m->n_inner + 2 * (uint64_t)m->n_group * m->n_state;
    if (conv > MODEL_MAX_DIM)
        return model_reader_fail(r, "ssm.state_size", "%u is too large", m->n_state);
    m->n_embd = p->n_embd;
    m->n_conv = (uint32_t)conv;
    m->n_in = m->n_inner + m->n_conv + m->n_head;
    *(p->arch->mamba.norm_optional ? &m->n_norm_optional : &m->n_norm) = m->n_inner / m->n_group;
    l->recurrent = (struct model_recurrent_shape){.conv_columns = m->n_taps - 1,
                                                  .conv_channels = m->n_conv,
                                                  .n_head = m->n_head,
                                                  .rows = m->n_inner / m->n_head,
                                                  .cols = m->n_state};
    return true;
}

/* Returns the columns from `first` on of x [T][..] as `heads` heads of `size`. */
static struct engine_tensor *heads_of(const struct model_builder *b, struct engine_tensor *x,
                                      int64_t first, int64_t heads, int64_t size)
{
    x = engine_cols(b->g, x, first, heads * size);
    return model_split_heads(b, x, heads, size);
}

static struct engine_tensor *build(struct model_builder *b, void *self, struct engine_tensor *x)
{
    const struct mamba2 *m = self;
    const int64_t heads = m->n_head;
    const int64_t size = m->n_inner / m->n_head, n = m->n_state, groups = m->n_group;
    struct engine_tensor *in = model_named(b, model_linear(b, &m->in, x), "mamba_in");
    struct engine_tensor *xbc = engine_cols(b->g, in, m->n_inner, m->n_conv);
    xbc = model_convolve(b, xbc, m->conv, 0);
    if (m->conv_bias) xbc = engine_add(b->g, xbc, m->conv_bias);
    xbc = engine_unary(b->g, xbc, ENGINE_SILU);
    x = heads_of(b, xbc, 0, heads, size);
    struct engine_tensor *dt = engine_cols(b->g, in, m->n_inner + m->n_conv, heads);
    dt = engine_add(b->g, dt, m->dt_bias);

    struct engine_tensor *scan = engine_ssm_scan(
        b->g, model_state_of(b), x, dt, m->a, heads_of(b, xbc, m->n_inner, groups, n),
        heads_of(b, xbc, m->n_inner + groups * n, groups, n), b->inputs.spans);
    b->written[1] = scan;
    x = engine_add(b->g, model_named(b, scan, "scan"), engine_mul(b->g, x, m->d));
    x = engine_glu(b->g, heads_of(b, in, 0, heads, size), x, ENGINE_SILU);
    if (m->norm.weight) {
        x = model_split_heads(b, x, groups, m->n_inner / groups);
        x = model_norm(b, x, &m->norm);
    }
    x = engine_reshape(b->g, x, 2, (int64_t[]){m->n_inner, b->n_tokens});
    return model_named(b, model_linear(b, &m->out, x), "mamba_out");
}

MODEL_BLOCK(mamba2, "Mamba 2")

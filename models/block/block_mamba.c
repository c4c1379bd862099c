/* models/block/block_mamba.c: a selective scan after a short convolution (Mamba: Gu and Dao 2023),
 * whose step and B and C are low-rank functions of its input. See models/block/blocks.h. I inner
 * channels in H heads, each channel with a state of N; H is I, but with heads (PLaMo 2) the
 * channels of one share step and decay. */
#include "models/block/blocks.h"

struct mamba {
    uint32_t n_embd, n_taps, n_inner, n_state, n_head; /* E, K, I, N, H */
    uint32_t n_in, n_dt, n_x;                          /* 2 I, R, R + 2 N */
    uint32_t a_rows, a_cols;                           /* of the decay in the file */
    uint32_t n_norm, n_dt_norm;                        /* N and R, or 0 */
    bool is_normalized;                                /* B, C and the step's input */
    struct model_linear in;
    struct engine_tensor *conv, *conv_bias; /* [K][I]; [I] or NULL */
    struct model_linear x, dt;              /* (R + 2 N) x I, H x R */
    struct model_norm dt_norm, b_norm, c_norm;
    struct engine_tensor *a, *d; /* [I][N] or [H]; [H] */
    struct model_linear out;     /* E x I */
};

#define AT(member) MODEL_AT(struct mamba, member)

/* clang-format off */
static const struct model_tensor_row tensors[] = {
    {"ssm_in",      MODEL_LINEAR, MODEL_REQUIRED, AT(in),        .inputs = AT(n_embd),  .outputs = AT(n_in)},
    {"ssm_conv1d",  MODEL_TAPS,   MODEL_REQUIRED, AT(conv),      .inputs = AT(n_taps),  .outputs = AT(n_inner)},
    {"ssm_conv1d",  MODEL_BIAS,   MODEL_OPTIONAL, AT(conv_bias), .inputs = AT(n_inner)},
    {"ssm_x",       MODEL_LINEAR, MODEL_REQUIRED, AT(x),         .inputs = AT(n_inner), .outputs = AT(n_x)},
    {"ssm_dt_norm", MODEL_NORM,   MODEL_REQUIRED, AT(dt_norm),   .inputs = AT(n_dt_norm)},
    {"ssm_b_norm",  MODEL_NORM,   MODEL_REQUIRED, AT(b_norm),    .inputs = AT(n_norm)},
    {"ssm_c_norm",  MODEL_NORM,   MODEL_REQUIRED, AT(c_norm),    .inputs = AT(n_norm)},
    {"ssm_dt",      MODEL_LINEAR, MODEL_REQUIRED, AT(dt),        .inputs = AT(n_dt),    .outputs = AT(n_head)},
    {"ssm_a",       MODEL_VECTOR, MODEL_REQUIRED, AT(a),         .inputs = AT(a_cols),  .outputs = AT(a_rows)},
    {"ssm_d",       MODEL_VECTOR, MODEL_REQUIRED, AT(d),         .inputs = AT(n_head)},
    {"ssm_out",     MODEL_LINEAR, MODEL_REQUIRED, AT(out),       .inputs = AT(n_inner), .outputs = AT(n_embd)},
    {.name = NULL},
};
/* clang-format on */

static bool read(struct model_reader *r, struct model_params *p, struct model_layer *l, void *self)
{
    struct mamba *m = self;
    const struct model_mamba_row *row = &p->arch->mamba;
    uint32_t rank = 0;
    if (!model_read_u32(r, "ssm.conv_kernel", MODEL_REQUIRED, 2, MODEL_MAX_TAPS, &m->n_taps) ||
        !model_read_u32(r, "ssm.inner_size", MODEL_REQUIRED, 1, MODEL_MAX_DIM / 2, &m->n_inner) ||
        !model_read_u32(r, "ssm.state_size", MODEL_REQUIRED, 1, MODEL_MAX_HEADS, &m->n_state) ||
        !model_read_u32(r, "ssm.time_step_rank", MODEL_REQUIRED, 1, MODEL_MAX_HEADS, &rank) ||
        !gguf_get_bool(r->file, model_reader_key(r, "ssm.dt_b_c_rms"), &m->is_normalized, r->err))
        return false;
    m->n_head = row->heads ? rank : m->n_inner;
    m->n_dt = !row->heads ? rank : p->n_embd / 16 > 64 ? p->n_embd / 16 : 64;
    if (m->n_inner % m->n_head)
        return model_reader_fail(r, "ssm.inner_size", "%u is not shared by %u heads", m->n_inner,
                                 m->n_head);
    m->n_embd = p->n_embd;
    m->n_in = 2 * m->n_inner;
    m->n_x = m->n_dt + 2 * m->n_state;
    m->a_cols = row->heads ? m->n_head : m->n_state;
    m->a_rows = row->heads ? 1 : m->n_inner;
    m->n_norm = row->norms ? m->n_state : 0;
    m->n_dt_norm = row->norms ? m->n_dt : 0;
    m->is_normalized |= row->norms;
    l->recurrent = (struct model_recurrent_shape){.conv_columns = m->n_taps - 1,
                                                  .conv_channels = m->n_inner,
                                                  .n_head = m->n_head,
                                                  .rows = m->n_inner / m->n_head,
                                                  .cols = m->n_state};
    return true;
}

/* Splits W_in x [T][2 I] into the scan's input *x [T][I] and the gate, which is returned, [T][H][I
 * / H]: halves, or with heads a gate and an input for each head. */
static struct engine_tensor *split(const struct model_builder *b, const struct mamba *m,
                                   struct engine_tensor *in, struct engine_tensor **x)
{
    const int64_t size = m->n_inner / m->n_head, n = m->n_inner;
    if (b->params->arch->mamba.heads) {
        in = model_split_heads(b, in, m->n_head, 2 * size);
        *x = engine_cont(b->g, engine_cols(b->g, in, size, size));
        *x = engine_reshape(b->g, *x, 2, (int64_t[]){n, b->n_tokens});
        return engine_cols(b->g, in, 0, size);
    }
    *x = engine_cols(b->g, in, 0, n);
    return model_split_heads(b, engine_cols(b->g, in, n, n), m->n_head, size);
}

/* Returns the columns from `first` on of x [T][R + 2 N], normalized if the layer does so. */
static struct engine_tensor *part_of(const struct model_builder *b, const struct mamba *m,
                                     struct engine_tensor *x, int64_t first, int64_t n,
                                     const struct model_norm *norm)
{
    x = engine_cols(b->g, x, first, n);
    return m->is_normalized ? model_norm(b, x, norm) : x;
}

static struct engine_tensor *build(struct model_builder *b, void *self, struct engine_tensor *x)
{
    const struct mamba *m = self;
    const int64_t heads = m->n_head, size = m->n_inner / m->n_head, n = m->n_state;
    const int64_t channels[] = {size, heads, b->n_tokens}, states[] = {n, 1, b->n_tokens};
    const bool dt_last = b->params->arch->mamba.heads;
    struct engine_tensor *in = model_named(b, model_linear(b, &m->in, x), "mamba_in");
    struct engine_tensor *gate = split(b, m, in, &x);
    x = model_convolve(b, x, m->conv, 0);
    if (m->conv_bias) x = engine_add(b->g, x, m->conv_bias);
    x = engine_unary(b->g, x, ENGINE_SILU);

    struct engine_tensor *low = model_linear(b, &m->x, x);
    struct engine_tensor *dt = part_of(b, m, low, dt_last ? 2 * n : 0, m->n_dt, &m->dt_norm);
    struct engine_tensor *bs = part_of(b, m, low, dt_last ? 0 : m->n_dt, n, &m->b_norm);
    struct engine_tensor *cs = part_of(b, m, low, dt_last ? n : m->n_dt + n, n, &m->c_norm);
    dt = model_linear(b, &m->dt, dt);
    struct engine_tensor *a =
        engine_reshape(b->g, m->a, 2, (int64_t[]){(int64_t)m->a_cols * m->a_rows / heads, heads});
    x = engine_reshape(b->g, x, 3, channels);
    struct engine_tensor *scan =
        engine_ssm_scan(b->g, model_state_of(b), x, dt, a, engine_reshape(b->g, bs, 3, states),
                        engine_reshape(b->g, cs, 3, states), b->inputs.spans);
    b->written[1] = scan;
    scan = model_named(b, scan, "scan");
    struct engine_tensor *d = engine_reshape(b->g, m->d, 2, (int64_t[]){1, heads});
    if (size == 1) { /* a long row is faster than many of one number */
        d = m->d;
        x = engine_reshape(b->g, x, 2, &channels[1]);
        scan = engine_reshape(b->g, scan, 2, &channels[1]);
        gate = engine_reshape(b->g, gate, 2, &channels[1]);
    }
    x = engine_glu(b->g, gate, engine_add(b->g, scan, engine_mul(b->g, x, d)), ENGINE_SILU);
    x = engine_reshape(b->g, x, 2, (int64_t[]){m->n_inner, b->n_tokens});
    return model_named(b, model_linear(b, &m->out, x), "mamba_out");
}

MODEL_BLOCK(mamba, "Mamba")

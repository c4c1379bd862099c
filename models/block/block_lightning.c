/* models/block/block_lightning.c: lightning attention (MiniMax-01, 2025): linear attention with a
 * constant decay of each head. See models/block/blocks.h. H heads of D elements.
 *
 *     q, k, v = silu(W_qkv x), by head
 *     S = exp(-l_h) S + k v^T;  o = S^T q
 *     out = W_o (RMS(o of all heads) * sigmoid(gate x))
 *     l_h = 2^(-8 (h + 1) / H) (1 - i / (L - 1) + 10^-5) in layer i
 *
 * It is a selective scan whose step is 1. */
#include "base/elementary.h"
#include "models/block/blocks.h"

enum { MAX_HEADS = 512 };

struct lightning {
    uint32_t n_embd, n_head, d, n_inner, n_qkv; /* E, H, D, H D, 3 H D */
    float rate[MAX_HEADS];                      /* -l_h */
    struct engine_tensor decay;                 /* [H][1], these numbers */
    struct model_linear qkv, gate;
    struct model_norm norm; /* [H D] */
    struct model_linear out;
};

#define AT(member) MODEL_AT(struct lightning, member)

/* clang-format off */
static const struct model_tensor_row tensors[] = {
    {"attn_qkv",    MODEL_BARE,   MODEL_REQUIRED, AT(qkv),  .inputs = AT(n_embd),  .outputs = AT(n_qkv)},
    {"attn_gate",   MODEL_LINEAR, MODEL_REQUIRED, AT(gate), .inputs = AT(n_embd),  .outputs = AT(n_inner)},
    {"attn_norm_2", MODEL_NORM,   MODEL_REQUIRED, AT(norm), .inputs = AT(n_inner)},
    {"attn_output", MODEL_BARE,   MODEL_REQUIRED, AT(out),  .inputs = AT(n_inner), .outputs = AT(n_embd)},
    {.name = NULL},
};
/* clang-format on */

static bool read(struct model_reader *r, struct model_params *p, struct model_layer *l, void *self)
{
    struct lightning *a = self;
    if (!model_read_layer_u32(r, "attention.head_count", MODEL_REQUIRED, l->index, 1, MAX_HEADS,
                              &a->n_head))
        return false;
    a->d = p->n_embd / a->n_head;
    if (!model_read_u32(r, "attention.key_length", MODEL_OPTIONAL, 1, MODEL_MAX_DIM / 3 / a->n_head,
                        &a->d))
        return false;
    if (a->d == 0)
        return model_reader_fail(r, "attention.head_count", "%u heads of an embedding of %u",
                                 a->n_head, p->n_embd);
    a->n_embd = p->n_embd;
    a->n_inner = a->n_head * a->d;
    a->n_qkv = 3 * a->n_inner;
    const double depth = p->n_layer > 1 ? (double)l->index / (double)(p->n_layer - 1) : 0.0;
    for (uint32_t h = 0; h < a->n_head; h++)
        a->rate[h] = (float)(-base_pow(2.0, -8.0 * (double)(h + 1) / (double)a->n_head) *
                             (1.0 - depth + 1e-5));
    l->recurrent = (struct model_recurrent_shape){.n_head = a->n_head, .rows = a->d, .cols = a->d};
    return engine_tensor_init(&a->decay, quant_type_by_id(QUANT_F32), 2, (int64_t[]){1, a->n_head},
                              a->rate, "decay", r->err);
}

static struct engine_tensor *build(struct model_builder *b, void *self, struct engine_tensor *x)
{
    struct lightning *a = self;
    const float step = 0.5413248546f; /* softplus of it is 1: the step of the scan */
    const int64_t d = a->d, n = b->n_tokens;
    struct engine_tensor *part[2];
    const struct model_linear *const in[] = {&a->qkv, &a->gate};
    const uint32_t size[] = {a->n_qkv, a->n_inner};
    model_linears(b, NULL, in, size, 2, x, "lightning_in", MODEL_IN_MIXER, part);
    struct engine_tensor *qkv = engine_unary(b->g, part[0], ENGINE_SILU);
    qkv = model_named(b, engine_reshape(b->g, qkv, 3, (int64_t[]){3 * d, a->n_head, n}), "qkv");
    struct engine_tensor *q = engine_cols(b->g, qkv, 0, d), *k = engine_cols(b->g, qkv, d, d);
    struct engine_tensor *v = engine_cols(b->g, qkv, 2 * d, d);
    struct engine_tensor *dt = engine_cont(b->g, engine_cols(b->g, qkv, 0, 1));
    dt = engine_scale(b->g, engine_reshape(b->g, dt, 2, (int64_t[]){a->n_head, n}), 0.0f, step);
    x = engine_ssm_scan(b->g, model_state_of(b), v, dt, &a->decay, k, q, b->inputs.spans);
    b->written[1] = x;
    x = engine_reshape(b->g, model_named(b, x, "scan"), 2, (int64_t[]){a->n_inner, n});
    x = model_norm(b, x, &a->norm);
    x = engine_mul(b->g, x, engine_unary(b->g, part[1], ENGINE_SIGMOID));
    return model_named(b, model_linear(b, &a->out, x), "lightning_out");
}

MODEL_BLOCK(lightning, "lightning attention")

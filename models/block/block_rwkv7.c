/* models/block/block_rwkv7.c: RWKV 7's time mix (Peng et al. 2025): a delta rule whose decay,
 * learning rate and removed key depend on the tokens. See models/block/blocks.h. H heads of D
 * numbers. */
#include "models/block/blocks.h"

enum { R, W, K, V, A, G, SLICES }; /* inputs of receptance, decay, keys, values, rate, gate */

struct low_rank {                      /* second (f(first x)) + zero */
    uint32_t n, n_zero;                /* rank; 1 if it has `zero`, else 0 */
    struct model_linear first, second; /* n x E, E x n */
    struct engine_tensor *zero;        /* [E] */
};

struct rwkv7 {
    uint32_t n_embd, d, n_head, n_slices;   /* E, D, H; 6, or 5 without a gate */
    uint32_t n_norm, n_norm_optional;       /* E or 0 */
    struct low_rank decay, rate, mix, gate; /* mix: of values with the first layer's */
    struct low_rank unused;                 /* `mix` in files' first layer */
    struct engine_tensor *lerp;             /* [6 or 5][E] */
    struct engine_tensor *k_k, *k_a, *r_k;  /* [E] */
    struct model_linear key, value, receptance, out;
    struct model_norm norm;
};

#define AT(member) MODEL_AT(struct rwkv7, member)

/* clang-format off */
static const struct model_tensor_row tensors[] = {
    {"time_mix_w0",         MODEL_VECTOR, MODEL_REQUIRED, AT(decay.zero),    .inputs = AT(n_embd)},
    {"time_mix_w1",         MODEL_LINEAR, MODEL_REQUIRED, AT(decay.first),   .inputs = AT(n_embd),   .outputs = AT(decay.n)},
    {"time_mix_w2",         MODEL_LINEAR, MODEL_REQUIRED, AT(decay.second),  .inputs = AT(decay.n),  .outputs = AT(n_embd)},
    {"time_mix_a0",         MODEL_VECTOR, MODEL_REQUIRED, AT(rate.zero),     .inputs = AT(n_embd)},
    {"time_mix_a1",         MODEL_LINEAR, MODEL_REQUIRED, AT(rate.first),    .inputs = AT(n_embd),   .outputs = AT(rate.n)},
    {"time_mix_a2",         MODEL_LINEAR, MODEL_REQUIRED, AT(rate.second),   .inputs = AT(rate.n),   .outputs = AT(n_embd)},
    {"time_mix_v0",         MODEL_VECTOR, MODEL_REQUIRED, AT(mix.zero),      .inputs = AT(n_embd),   .outputs = AT(mix.n_zero)},
    {"time_mix_v1",         MODEL_LINEAR, MODEL_REQUIRED, AT(mix.first),     .inputs = AT(n_embd),   .outputs = AT(mix.n)},
    {"time_mix_v2",         MODEL_LINEAR, MODEL_REQUIRED, AT(mix.second),    .inputs = AT(mix.n),    .outputs = AT(n_embd)},
    {"time_mix_v0",         MODEL_VECTOR, MODEL_OPTIONAL, AT(unused.zero),   .inputs = AT(n_embd),   .outputs = AT(unused.n_zero)},
    {"time_mix_v1",         MODEL_LINEAR, MODEL_OPTIONAL, AT(unused.first),  .inputs = AT(n_embd),   .outputs = AT(unused.n)},
    {"time_mix_v2",         MODEL_LINEAR, MODEL_OPTIONAL, AT(unused.second), .inputs = AT(unused.n), .outputs = AT(n_embd)},
    {"time_mix_g1",         MODEL_LINEAR, MODEL_REQUIRED, AT(gate.first),    .inputs = AT(n_embd),   .outputs = AT(gate.n)},
    {"time_mix_g2",         MODEL_LINEAR, MODEL_REQUIRED, AT(gate.second),   .inputs = AT(gate.n),   .outputs = AT(n_embd)},
    {"time_mix_lerp_fused", MODEL_SLICES, MODEL_REQUIRED, AT(lerp),          .inputs = AT(n_embd),   .outputs = AT(n_slices)},
    {"time_mix_k_k",        MODEL_VECTOR, MODEL_REQUIRED, AT(k_k),           .inputs = AT(n_embd)},
    {"time_mix_k_a",        MODEL_VECTOR, MODEL_REQUIRED, AT(k_a),           .inputs = AT(n_embd)},
    {"time_mix_r_k",        MODEL_VECTOR, MODEL_REQUIRED, AT(r_k),           .inputs = AT(n_embd)},
    {"time_mix_key",        MODEL_LINEAR, MODEL_REQUIRED, AT(key),           .inputs = AT(n_embd),   .outputs = AT(n_embd)},
    {"time_mix_value",      MODEL_LINEAR, MODEL_REQUIRED, AT(value),         .inputs = AT(n_embd),   .outputs = AT(n_embd)},
    {"time_mix_receptance", MODEL_LINEAR, MODEL_REQUIRED, AT(receptance),    .inputs = AT(n_embd),   .outputs = AT(n_embd)},
    {"time_mix_ln",         MODEL_NORM,   MODEL_REQUIRED, AT(norm),          .inputs = AT(n_norm)},
    {"time_mix_ln",         MODEL_NORM,   MODEL_OPTIONAL, AT(norm),          .inputs = AT(n_norm_optional)},
    {"time_mix_output",     MODEL_LINEAR, MODEL_REQUIRED, AT(out),           .inputs = AT(n_embd),   .outputs = AT(n_embd)},
    {.name = NULL},
};
/* clang-format on */

static bool read(struct model_reader *r, struct model_params *p, struct model_layer *l, void *self)
{
    struct rwkv7 *t = self;
    struct low_rank *mix = l->index ? &t->mix : &t->unused;
    const uint32_t max = MODEL_MAX_DIM;
    if (!model_read_rwkv(r, p, l, &t->d, &t->n_head) ||
        !model_read_u32(r, "attention.decay_lora_rank", MODEL_REQUIRED, 1, max, &t->decay.n) ||
        !model_read_u32(r, "attention.iclr_lora_rank", MODEL_REQUIRED, 1, max, &t->rate.n) ||
        !model_read_u32(r, "attention.value_residual_mix_lora_rank", MODEL_REQUIRED, 1, max,
                        &mix->n) ||
        !model_read_u32(r, "attention.gate_lora_rank", MODEL_OPTIONAL, 0, max, &t->gate.n))
        return false;
    if (l->index == 0) mix->n = t->rate.n; /* as files have it */
    mix->n_zero = 1;
    if (!model_reader_tensor(r, l->index, "time_mix_g1.weight")) t->gate.n = 0;
    t->n_embd = p->n_embd;
    t->n_slices = t->gate.n ? SLICES : SLICES - 1;
    *(p->arch->rwkv.norm_optional ? &t->n_norm_optional : &t->n_norm) = p->n_embd;
    return true;
}

/* Builds second (f(first x)) + zero for x [T][E]; f is `act`, or none. */
static struct engine_tensor *build_low_rank(const struct model_builder *b, const struct low_rank *l,
                                            struct engine_tensor *x, const enum engine_unary *act)
{
    x = model_linear(b, &l->first, x);
    x = model_linear(b, &l->second, act ? engine_unary(b->g, x, *act) : x);
    return l->zero ? engine_add(b->g, x, l->zero) : x;
}

/* Builds the values of x [T][E], mixed with those of the first layer. */
static struct engine_tensor *build_values(struct model_builder *b, const struct rwkv7 *t,
                                          struct engine_tensor *x)
{
    struct engine_tensor *v = model_linear(b, &t->value, x);
    if (b->layer->index == 0) return b->values = v;
    struct engine_tensor *share =
        engine_unary(b->g, build_low_rank(b, &t->mix, x, NULL), ENGINE_SIGMOID);
    return engine_add(b->g, v, engine_mul(b->g, engine_sub(b->g, b->values, v), share));
}

static struct engine_tensor *build(struct model_builder *b, void *self, struct engine_tensor *x)
{
    static const enum engine_unary act_tanh = ENGINE_TANH, act_sigmoid = ENGINE_SIGMOID;
    const struct rwkv7 *t = self;
    const uint32_t heads = t->n_head, d = t->d;
    struct engine_tensor *in[SLICES], *shift = model_shift(b, false, x);
    for (uint32_t i = 0; i < t->n_slices; i++) {
        struct engine_tensor *lerp = engine_view(b->g, t->lerp, 1, (int64_t[]){t->n_embd}, NULL,
                                                 (int64_t)i * t->n_embd * (int64_t)sizeof(float));
        in[i] = engine_add(b->g, engine_mul(b->g, shift, lerp), x);
    }
    struct engine_tensor *decay = build_low_rank(b, &t->decay, in[W], &act_tanh);
    decay = engine_scale(b->g, engine_unary(b->g, decay, ENGINE_SIGMOID), -0.606531f, 0.0f);
    decay = model_split_heads(b, engine_unary(b->g, decay, ENGINE_EXP), heads, d);
    struct engine_tensor *rate =
        engine_unary(b->g, build_low_rank(b, &t->rate, in[A], NULL), ENGINE_SIGMOID);
    struct engine_tensor *r =
        model_split_heads(b, model_linear(b, &t->receptance, in[R]), heads, d);
    struct engine_tensor *k = model_linear(b, &t->key, in[K]);
    struct engine_tensor *v = model_split_heads(b, build_values(b, t, in[V]), heads, d);
    /* The key that is removed from the state, and k += (rate - 1) k_a k */
    struct engine_tensor *removed = model_split_heads(b, engine_mul(b->g, k, t->k_k), heads, d);
    removed = engine_l2_norm(b->g, removed, 1e-12f);
    struct engine_tensor *ka = engine_mul(b->g, k, t->k_a);
    k = engine_add(b->g, k, engine_sub(b->g, engine_mul(b->g, rate, ka), ka));
    k = model_split_heads(b, k, heads, d);

    x = engine_wkv7(b->g, r, decay, k, v, engine_scale(b->g, removed, -1.0f, 0.0f),
                    engine_mul(b->g, removed, model_split_heads(b, rate, heads, d)),
                    model_state_of(b), b->inputs.spans);
    b->written[1] = model_named(b, x, "wkv");
    struct engine_tensor *r_k = engine_reshape(b->g, t->r_k, 2, (int64_t[]){d, heads});
    struct engine_tensor *own =
        engine_sum_rows(b->g, engine_mul(b->g, engine_mul(b->g, k, r), r_k));
    own = engine_reshape(b->g, engine_mul(b->g, v, own), 2, (int64_t[]){t->n_embd, b->n_tokens});
    x = engine_add(b->g, model_norm_heads(b, x, &t->norm), own);
    if (t->gate.n) x = engine_mul(b->g, x, build_low_rank(b, &t->gate, in[G], &act_sigmoid));
    return model_named(b, model_linear(b, &t->out, x), "time_mix_out");
}

MODEL_BLOCK(rwkv7, "RWKV 7")

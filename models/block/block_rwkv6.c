/* models/block/block_rwkv6.c: RWKV 6's time mix (Peng et al. 2024): linear attention whose decays
 * depend on the tokens. See models/block/blocks.h. H heads of D numbers. With `linear`, as in
 * models that were converted from Qwen 2: no bonus for the token itself and no norm of heads, keys
 * times 1 - decay, and several heads may share keys and values. */
#include "models/block/blocks.h"
#include <math.h>

enum { W, K, V, R, G, SLICES }; /* inputs of decay, keys, values, receptance, gate */

struct rwkv6 {
    uint32_t n_embd, d, n_head, n_head_kv, n_kv;  /* E, D, H, KH, KH D */
    uint32_t n_mix, n_mixes, n_slices, n_decay;   /* ranks: X of each slice, 5 X; 5; Y */
    uint32_t n_first, n_norm;                     /* D and E; 0 with `linear` */
    struct model_linear mix_1, mix_2;             /* 5 X x E; 5 matrices E x X */
    struct engine_tensor *lerp_x;                 /* [E] */
    struct engine_tensor *lerp, *lerp_of[SLICES]; /* [5][E]; or [E] each */
    struct engine_tensor *first;                  /* [H][D] */
    struct engine_tensor *decay;                  /* [E] */
    struct model_linear decay_1, decay_2;         /* Y x E, E x Y */
    struct model_linear key, value, receptance, gate, out;
    struct model_norm norm;
};

#define AT(member) MODEL_AT(struct rwkv6, member)

/* clang-format off */
static const struct model_tensor_row tensors[] = {
    {"time_mix_w1",         MODEL_LINEAR, MODEL_REQUIRED, AT(mix_1),      .inputs = AT(n_embd),  .outputs = AT(n_mixes)},
    {"time_mix_w2",         MODEL_STACK,  MODEL_REQUIRED, AT(mix_2),      .inputs = AT(n_mix),   .outputs = AT(n_embd), .depth = AT(n_slices)},
    {"time_mix_lerp_x",     MODEL_VECTOR, MODEL_REQUIRED, AT(lerp_x),     .inputs = AT(n_embd)},
    {"time_mix_lerp_fused", MODEL_SLICES, MODEL_OPTIONAL, AT(lerp),       .inputs = AT(n_embd),  .outputs = AT(n_slices)},
    {"time_mix_lerp_w",     MODEL_VECTOR, MODEL_REQUIRED, AT(lerp_of[W]), .inputs = AT(n_embd),  .unless = AT(lerp)},
    {"time_mix_lerp_k",     MODEL_VECTOR, MODEL_REQUIRED, AT(lerp_of[K]), .inputs = AT(n_embd),  .unless = AT(lerp)},
    {"time_mix_lerp_v",     MODEL_VECTOR, MODEL_REQUIRED, AT(lerp_of[V]), .inputs = AT(n_embd),  .unless = AT(lerp)},
    {"time_mix_lerp_r",     MODEL_VECTOR, MODEL_REQUIRED, AT(lerp_of[R]), .inputs = AT(n_embd),  .unless = AT(lerp)},
    {"time_mix_lerp_g",     MODEL_VECTOR, MODEL_REQUIRED, AT(lerp_of[G]), .inputs = AT(n_embd),  .unless = AT(lerp)},
    {"time_mix_first",      MODEL_VECTOR, MODEL_REQUIRED, AT(first),      .inputs = AT(n_first), .outputs = AT(n_head)},
    {"time_mix_decay",      MODEL_VECTOR, MODEL_REQUIRED, AT(decay),      .inputs = AT(n_embd)},
    {"time_mix_decay_w1",   MODEL_LINEAR, MODEL_REQUIRED, AT(decay_1),    .inputs = AT(n_embd),  .outputs = AT(n_decay)},
    {"time_mix_decay_w2",   MODEL_LINEAR, MODEL_REQUIRED, AT(decay_2),    .inputs = AT(n_decay), .outputs = AT(n_embd)},
    {"time_mix_key",        MODEL_LINEAR, MODEL_REQUIRED, AT(key),        .inputs = AT(n_embd),  .outputs = AT(n_kv)},
    {"time_mix_value",      MODEL_LINEAR, MODEL_REQUIRED, AT(value),      .inputs = AT(n_embd),  .outputs = AT(n_kv)},
    {"time_mix_receptance", MODEL_LINEAR, MODEL_REQUIRED, AT(receptance), .inputs = AT(n_embd),  .outputs = AT(n_embd)},
    {"time_mix_gate",       MODEL_LINEAR, MODEL_REQUIRED, AT(gate),       .inputs = AT(n_embd),  .outputs = AT(n_embd)},
    {"time_mix_ln",         MODEL_NORM,   MODEL_REQUIRED, AT(norm),       .inputs = AT(n_norm)},
    {"time_mix_output",     MODEL_LINEAR, MODEL_REQUIRED, AT(out),        .inputs = AT(n_embd),  .outputs = AT(n_embd)},
    {.name = NULL},
};
/* clang-format on */

static bool read(struct model_reader *r, struct model_params *p, struct model_layer *l, void *self)
{
    struct rwkv6 *t = self;
    const bool linear = p->arch->rwkv.linear;
    if (!model_read_rwkv(r, p, l, &t->d, &t->n_head) ||
        !model_read_u32(r, "time_mix_extra_dim", MODEL_REQUIRED, 1, MODEL_MAX_DIM / SLICES,
                        &t->n_mix) ||
        !model_read_u32(r, "time_decay_extra_dim", MODEL_REQUIRED, 1, MODEL_MAX_DIM, &t->n_decay) ||
        (linear && !model_read_layer_u32(r, "attention.head_count_kv", MODEL_OPTIONAL, l->index, 0,
                                         MODEL_MAX_HEADS, &t->n_head_kv)))
        return false;
    if (t->n_head_kv == 0) t->n_head_kv = t->n_head;
    if (t->n_head % t->n_head_kv)
        return model_reader_fail(r, "attention.head_count_kv", "%u heads cannot share %u key heads",
                                 t->n_head, t->n_head_kv);
    t->n_embd = p->n_embd;
    t->n_kv = t->n_head_kv * t->d;
    t->n_slices = SLICES;
    t->n_mixes = SLICES * t->n_mix;
    t->n_first = linear ? 0 : t->d;
    t->n_norm = linear ? 0 : p->n_embd;
    return true;
}

/* Returns the weights of the previous token, [5][1][E]. */
static struct engine_tensor *lerps_of(const struct model_builder *b, const struct rwkv6 *t)
{
    struct engine_tensor *all = t->lerp ? t->lerp : t->lerp_of[W];
    for (int i = W + 1; !t->lerp && i < SLICES; i++)
        all = engine_concat(b->g, all, t->lerp_of[i], 1);
    return engine_reshape(b->g, all, 3, (int64_t[]){t->n_embd, 1, SLICES});
}

/* Builds the inputs [T][E] of all projections: x + (the previous token - x) * weights, which depend
 * on the token. */
static void build_slices(struct model_builder *b, const struct rwkv6 *t, struct engine_tensor *x,
                         struct engine_tensor *slice[SLICES])
{
    const int64_t n = b->n_tokens, embd = t->n_embd;
    struct engine_tensor *shift = model_shift(b, false, x);
    struct engine_tensor *z = engine_add(b->g, engine_mul(b->g, shift, t->lerp_x), x);
    z = engine_unary(b->g, model_linear(b, &t->mix_1, z), ENGINE_TANH);
    z = engine_reshape(b->g, z, 3, (int64_t[]){t->n_mix, SLICES, n});
    z = model_linear_of(b, t->mix_2.weight, engine_cont(b->g, model_swap_heads(b, z)));
    z = engine_mul(b->g, engine_add(b->g, z, lerps_of(b, t)), shift);
    z = model_named(b, engine_add(b->g, z, x), "time_mix_in");
    for (int i = 0; i < SLICES; i++)
        slice[i] = engine_view(b->g, z, 2, (int64_t[]){embd, n}, NULL,
                               i * embd * n * (int64_t)sizeof(float));
}

/* Returns exp(-exp(decay of x [T][E])) as [T][H][D]. */
static struct engine_tensor *build_decay(const struct model_builder *b, const struct rwkv6 *t,
                                         struct engine_tensor *x)
{
    x = engine_unary(b->g, model_linear(b, &t->decay_1, x), ENGINE_TANH);
    x = engine_add(b->g, model_linear(b, &t->decay_2, x), t->decay);
    x = engine_scale(b->g, engine_unary(b->g, x, ENGINE_EXP), -1.0f, 0.0f);
    return model_split_heads(b, engine_unary(b->g, x, ENGINE_EXP), t->n_head, t->d);
}

static struct engine_tensor *build(struct model_builder *b, void *self, struct engine_tensor *x)
{
    const struct rwkv6 *t = self;
    const bool linear = b->params->arch->rwkv.linear;
    const uint32_t each = t->n_head / t->n_head_kv;
    struct engine_tensor *in[SLICES];
    build_slices(b, t, x, in);
    struct engine_tensor *decay = build_decay(b, t, in[W]);
    struct engine_tensor *k = model_linear(b, &t->key, in[K]),
                         *v = model_linear(b, &t->value, in[V]);
    struct engine_tensor *r = model_linear(b, &t->receptance, in[R]);
    struct engine_tensor *g =
        engine_unary(b->g, model_linear(b, &t->gate, in[G]), linear ? ENGINE_SIGMOID : ENGINE_SILU);
    k = model_repeat_heads(b, model_split_heads(b, k, t->n_head_kv, t->d), each);
    v = model_repeat_heads(b, model_split_heads(b, v, t->n_head_kv, t->d), each);
    r = model_split_heads(b, r, t->n_head, t->d);
    if (linear) { /* WKV 7 without its correction of the state */
        struct engine_tensor *none = engine_scale(b->g, k, 0.0f, 0.0f);
        k = engine_sub(b->g, k, engine_mul(b->g, k, decay));
        r = engine_scale(b->g, r, 1.0f / sqrtf((float)t->d), 0.0f);
        x = engine_wkv7(b->g, r, decay, k, v, none, none, model_state_of(b), b->inputs.spans);
    } else {
        x = engine_wkv6(b->g, k, v, r, t->first, decay, model_state_of(b), b->inputs.spans);
    }
    b->written[1] = model_named(b, x, "wkv");
    x = model_norm_heads(b, x, &t->norm);
    return model_named(b, model_linear(b, &t->out, engine_mul(b->g, x, g)), "time_mix_out");
}

MODEL_BLOCK(rwkv6, "RWKV 6")

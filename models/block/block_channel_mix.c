/* models/block/block_channel_mix.c: the networks of RWKV 6 and 7, whose input is a mixture of a
 * token and the one before it. See models/block/blocks.h. */
#include "models/block/blocks.h"

struct channel_mix {
    uint32_t n_embd, n_ff, n_receptance; /* E, F; E or 0 */
    uint32_t zeros;                      /* 1: many inputs of `value` are zero */
    struct engine_tensor *lerp_k, *lerp_r;
    struct model_linear key, value, receptance; /* F x E, E x F, E x E */
};

#define AT(member) MODEL_AT(struct channel_mix, member)

/* clang-format off */
static const struct model_tensor_row tensors[] = {
    {"channel_mix_lerp_k",     MODEL_VECTOR, MODEL_REQUIRED, AT(lerp_k),     .inputs = AT(n_embd)},
    {"channel_mix_lerp_r",     MODEL_VECTOR, MODEL_REQUIRED, AT(lerp_r),     .inputs = AT(n_receptance)},
    {"channel_mix_key",        MODEL_LINEAR, MODEL_REQUIRED, AT(key),        .inputs = AT(n_embd), .outputs = AT(n_ff)},
    {"channel_mix_value",      MODEL_LINEAR, MODEL_REQUIRED, AT(value),      .inputs = AT(n_ff),   .outputs = AT(n_embd), .zeros = AT(zeros)},
    {"channel_mix_receptance", MODEL_LINEAR, MODEL_REQUIRED, AT(receptance), .inputs = AT(n_receptance), .outputs = AT(n_embd)},
    {.name = NULL},
};
/* clang-format on */

static bool read(struct model_reader *r, struct model_params *p, struct model_layer *l, void *self)
{
    struct channel_mix *c = self;
    c->n_embd = p->n_embd;
    c->n_receptance = p->arch->rwkv.receptance ? p->n_embd : 0;
    c->zeros = 1;
    l->recurrent.shift_channels = p->n_embd;
    return model_read_layer_u32(r, "feed_forward_length", MODEL_REQUIRED, l->index, 1,
                                MODEL_MAX_DIM, &c->n_ff);
}

/* value relu(key x_k)^2, times sigmoid(receptance x_r) if the layer has it */
static struct engine_tensor *build(struct model_builder *b, void *self, struct engine_tensor *x)
{
    const struct channel_mix *c = self;
    struct engine_tensor *shift = model_wanted_rows(b, model_shift(b, true, x));
    x = model_wanted_rows(b, x);
    struct engine_tensor *k = engine_add(b->g, engine_mul(b->g, shift, c->lerp_k), x);
    k = engine_unary(b->g, model_linear(b, &c->key, k), ENGINE_RELU_SQR);
    k = model_linear(b, &c->value, k);
    if (c->n_receptance) {
        struct engine_tensor *r = engine_add(b->g, engine_mul(b->g, shift, c->lerp_r), x);
        r = engine_unary(b->g, model_linear(b, &c->receptance, r), ENGINE_SIGMOID);
        k = engine_mul(b->g, r, k);
    }
    return model_named(b, k, "channel_mix_out");
}

MODEL_BLOCK(channel_mix, "channel mix")

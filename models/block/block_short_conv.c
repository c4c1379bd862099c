/* models/block/block_short_conv.c: a convolution over a few tokens between two gates (LFM2: Liquid
 * AI 2025). See models/block/blocks.h. */
#include "models/block/blocks.h"

struct short_conv {
    uint32_t n_embd, n_in, n_taps; /* E, 3 E, K */
    struct model_linear in;        /* 3 E x E: the gates B and C, and x */
    struct engine_tensor *conv;    /* [K][E] */
    struct model_linear out;       /* E x E */
};

#define AT(member) MODEL_AT(struct short_conv, member)

/* clang-format off */
static const struct model_tensor_row tensors[] = {
    {"shortconv.in_proj",  MODEL_LINEAR, MODEL_REQUIRED, AT(in),   .inputs = AT(n_embd), .outputs = AT(n_in)},
    {"shortconv.conv",     MODEL_TAPS,   MODEL_REQUIRED, AT(conv), .inputs = AT(n_taps), .outputs = AT(n_embd)},
    {"shortconv.out_proj", MODEL_LINEAR, MODEL_REQUIRED, AT(out),  .inputs = AT(n_embd), .outputs = AT(n_embd)},
    {.name = NULL},
};
/* clang-format on */

static bool read(struct model_reader *r, struct model_params *p, struct model_layer *l, void *self)
{
    struct short_conv *c = self;
    if (!model_read_u32(r, "shortconv.l_cache", MODEL_REQUIRED, 2, MODEL_MAX_TAPS, &c->n_taps))
        return false;
    c->n_embd = p->n_embd;
    c->n_in = 3 * p->n_embd;
    l->recurrent.conv_columns = c->n_taps - 1;
    l->recurrent.conv_channels = p->n_embd;
    return true;
}

/* out(C * convolution(B * x)); where tokens attend to later ones, taps are around a token. */
static struct engine_tensor *build(struct model_builder *b, void *self, struct engine_tensor *x)
{
    const struct short_conv *c = self;
    const int64_t embd = c->n_embd;
    const int ahead = b->params->bidirectional ? (int)(c->n_taps - 1) / 2 : 0;
    x = model_named(b, model_linear(b, &c->in, x), "conv_bcx");
    struct engine_tensor *gate_in = engine_cols(b->g, x, 0, embd);
    struct engine_tensor *gate_out = engine_cols(b->g, x, embd, embd);
    x = engine_mul(b->g, gate_in, engine_cols(b->g, x, 2 * embd, embd));
    x = engine_mul(b->g, gate_out, model_convolve(b, x, c->conv, ahead));
    return model_named(b, model_linear(b, &c->out, x), "conv_out");
}

MODEL_BLOCK(short_conv, "short convolution")

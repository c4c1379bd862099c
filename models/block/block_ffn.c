/* models/block/block_ffn.c: the feed-forward network. See models/block/blocks.h. */
#include "models/block/blocks.h"

struct ffn {
    uint32_t n_embd, n_ff;
    struct model_linear gate, up; /* F x E */
    struct model_linear down;     /* E x F */
};

#define AT(member) MODEL_AT(struct ffn, member)

/* clang-format off */
static const struct model_tensor_row tensors[] = {
    {"ffn_gate", MODEL_LINEAR, MODEL_REQUIRED, AT(gate), .inputs = AT(n_embd), .outputs = AT(n_ff)},
    {"ffn_up", MODEL_LINEAR, MODEL_REQUIRED, AT(up), .inputs = AT(n_embd), .outputs = AT(n_ff)},
    {"ffn_down", MODEL_LINEAR, MODEL_REQUIRED, AT(down), .inputs = AT(n_ff), .outputs = AT(n_embd)},
    {.name = NULL},
};
/* clang-format on */

static bool read(struct model_reader *r, struct model_params *p, struct model_layer *l, void *self)
{
    struct ffn *f = self;
    f->n_embd = p->n_embd;
    return model_read_layer_u32(r, "feed_forward_length", MODEL_REQUIRED, l->index, 1,
                                MODEL_MAX_DIM, &f->n_ff);
}

static struct engine_tensor *build(struct model_builder *b, void *self, struct engine_tensor *x)
{
    const struct ffn *f = self;
    struct engine_tensor *const both[] = {f->gate.weight, f->up.weight};
    x = model_named(b, engine_mul_mat_cat(b->g, both, 2, x), "ffn_gate_up");
    struct engine_tensor *gate = model_finish_ffn(b, &f->gate, engine_cols(b->g, x, 0, f->n_ff));
    struct engine_tensor *up = model_finish_ffn(b, &f->up, engine_cols(b->g, x, f->n_ff, f->n_ff));
    x = model_named(b, engine_glu(b->g, gate, up, b->params->arch->ffn.act), "ffn_gated");
    x = engine_mul_mat(b->g, f->down.weight, x);
    return model_named(b, model_finish_ffn(b, &f->down, x), "ffn_out");
}

const struct model_block model_block_ffn = {
    .name = "ffn", .size = sizeof(struct ffn), .read = read, .tensors = tensors, .build = build};

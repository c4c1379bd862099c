/* models/block/block_linear.c: a mixer without attention, which is only the output projection. See
 * models/block/blocks.h. */
#include "models/block/blocks.h"

struct linear {
    uint32_t n_embd;
    struct model_linear out; /* E x E */
};

#define AT(member) MODEL_AT(struct linear, member)

static const struct model_tensor_row tensors[] = {
    {"attn_output", MODEL_LINEAR, MODEL_REQUIRED, AT(out), .inputs = AT(n_embd),
     .outputs = AT(n_embd)},
    {.name = NULL},
};

static bool read(struct model_reader *r, struct model_params *p, struct model_layer *l, void *self)
{
    struct linear *a = self;
    (void)r;
    (void)l;
    a->n_embd = p->n_embd;
    return true;
}

static struct engine_tensor *build(struct model_builder *b, void *self, struct engine_tensor *x)
{
    const struct linear *a = self;
    return model_named(b, model_linear(b, &a->out, x), "attn_out");
}

MODEL_BLOCK(linear, "linear")

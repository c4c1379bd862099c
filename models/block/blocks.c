/* models/block/blocks.c: the table of blocks, and what they have in common. See blocks.h. */
#include "models/block/blocks.h"

const struct model_block *const model_blocks[MODEL_BLOCK_COUNT] = {
    [MODEL_ATTENTION] = &model_block_attention, [MODEL_FFN] = &model_block_ffn,
    [MODEL_EXPERTS] = &model_block_experts,     [MODEL_LINEAR_MIXER] = &model_block_linear,
    [MODEL_PER_LAYER] = &model_block_per_layer,
};

struct engine_tensor *model_named(const struct model_builder *b, struct engine_tensor *t,
                                  const char *name)
{
    return engine_name(t, "%s-%u", name, b->layer->index);
}

struct engine_tensor *model_norm_as(const struct model_builder *b, struct engine_tensor *x,
                                    const struct model_norm *norm, enum model_norm_kind kind)
{
    const float eps = b->params->norm_eps;
    x = kind == MODEL_RMS_NORM || kind == MODEL_RMS_NORM_PLAIN ? engine_rms_norm(b->g, x, eps)
                                                               : engine_norm(b->g, x, eps);
    if (norm->weight) x = engine_mul(b->g, x, norm->weight);
    return norm->bias ? engine_add(b->g, x, norm->bias) : x;
}

struct engine_tensor *model_norm(const struct model_builder *b, struct engine_tensor *x,
                                 const struct model_norm *norm)
{
    return model_norm_as(b, x, norm, b->params->arch->norm);
}

static struct engine_tensor *add_bias(const struct model_builder *b, const struct model_linear *l,
                                      struct engine_tensor *x)
{
    return l->bias ? engine_add(b->g, x, l->bias) : x;
}

static struct engine_tensor *apply_scale(const struct model_builder *b,
                                         const struct model_linear *l, struct engine_tensor *x)
{
    return l->scale ? engine_mul(b->g, x, l->scale) : x;
}

struct engine_tensor *model_finish(const struct model_builder *b, const struct model_linear *l,
                                   struct engine_tensor *product)
{
    return add_bias(b, l, apply_scale(b, l, product));
}

struct engine_tensor *model_finish_ffn(const struct model_builder *b, const struct model_linear *l,
                                       struct engine_tensor *product)
{
    product = add_bias(b, l, product);
    return b->params->arch->ffn.scales ? apply_scale(b, l, product) : product;
}

struct engine_tensor *model_linear(const struct model_builder *b, const struct model_linear *l,
                                   struct engine_tensor *x)
{
    return model_finish(b, l, engine_mul_mat(b->g, l->weight, x));
}

/* models/block/blocks.c: the table of blocks, and helpers that they share. See blocks.h. */
#include "models/block/blocks.h"
#include <math.h>

/* clang-format off */
const struct model_block *const model_blocks[MODEL_BLOCK_COUNT] = {
    [MODEL_ATTENTION] = &model_block_attention,
    [MODEL_FFN] = &model_block_ffn,
    [MODEL_EXPERTS] = &model_block_experts,
    [MODEL_LINEAR_MIXER] = &model_block_linear,
    [MODEL_ALTUP] = &model_block_altup,
    [MODEL_PER_LAYER] = &model_block_per_layer,
    [MODEL_MLA] = &model_block_mla,
    [MODEL_SHORT_CONV] = &model_block_short_conv,
    [MODEL_DELTA_NET] = &model_block_delta_net,
    [MODEL_MAMBA2] = &model_block_mamba2,
    [MODEL_MAMBA] = &model_block_mamba,
    [MODEL_RWKV6] = &model_block_rwkv6,
    [MODEL_RWKV7] = &model_block_rwkv7,
    [MODEL_CHANNEL_MIX] = &model_block_channel_mix,
    [MODEL_CROSS] = &model_block_cross,
    [MODEL_POOL] = &model_block_pool,
};
/* clang-format on */

struct engine_tensor *model_named(const struct model_builder *b, struct engine_tensor *t,
                                  const char *name)
{
    return engine_name(t, "%s-%u", name, b->layer->index);
}

struct engine_tensor *model_norm_with(const struct model_builder *b, struct engine_tensor *x,
                                      const struct model_norm *norm, enum model_norm_kind kind,
                                      float eps)
{
    x = kind == MODEL_RMS_NORM || kind == MODEL_RMS_NORM_PLAIN ? engine_rms_norm(b->g, x, eps)
                                                               : engine_norm(b->g, x, eps);
    if (norm->weight) x = engine_mul(b->g, x, norm->weight);
    return norm->bias ? engine_add(b->g, x, norm->bias) : x;
}

struct engine_tensor *model_wanted_rows(const struct model_builder *b, struct engine_tensor *x)
{
    return b->out_rows ? engine_get_rows(b->g, x, b->out_rows) : x;
}

struct engine_tensor *model_norm_as(const struct model_builder *b, struct engine_tensor *x,
                                    const struct model_norm *norm, enum model_norm_kind kind)
{
    return model_norm_with(b, x, norm, kind, b->params->norm_eps);
}

struct engine_tensor *model_norm(const struct model_builder *b, struct engine_tensor *x,
                                 const struct model_norm *norm)
{
    return model_norm_with(b, x, norm, b->params->norm, b->params->norm_eps);
}

struct engine_tensor *model_post_norm(const struct model_builder *b, struct engine_tensor *x,
                                      const struct model_norm *norm)
{
    return model_norm_with(b, x, norm, b->params->norm, b->params->post_norm_eps);
}

bool model_read_glu_clamp(struct model_reader *r, const struct model_params *p, const char *key,
                          uint32_t layer, float *clamp)
{
    return !p->arch->ffn.clamps || model_read_layer_f32(r, key, MODEL_OPTIONAL, layer, 0.0f, clamp);
}

bool model_act_has_zeros(enum engine_unary act)
{
    return act == ENGINE_RELU || act == ENGINE_RELU_SQR;
}

struct engine_tensor *model_glu(const struct model_builder *b, struct engine_tensor *gate,
                                struct engine_tensor *up, enum engine_unary act, float clamp)
{
    if (clamp < 1e-6f) return engine_glu(b->g, gate, up, act);
    gate = engine_clamp(b->g, engine_unary(b->g, gate, act), -INFINITY, clamp);
    return engine_mul(b->g, gate, engine_clamp(b->g, up, -clamp, clamp));
}

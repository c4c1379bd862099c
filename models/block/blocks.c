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
    [MODEL_KDA] = &model_block_kda,
    [MODEL_LIGHTNING] = &model_block_lightning,
    [MODEL_MAMBA2] = &model_block_mamba2,
    [MODEL_MAMBA] = &model_block_mamba,
    [MODEL_RWKV6] = &model_block_rwkv6,
    [MODEL_RWKV7] = &model_block_rwkv7,
    [MODEL_CHANNEL_MIX] = &model_block_channel_mix,
    [MODEL_CROSS] = &model_block_cross,
    [MODEL_COMPRESSED] = &model_block_compressed,
    [MODEL_NGRAM] = &model_block_ngram,
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

/* Returns whether the layer has a sliding window by the rule of the architecture, for files without
 * an array of flags. */
static bool is_windowed(const struct model_window *row, uint32_t period, uint32_t layer)
{
    switch (row->rule) {
    case MODEL_WINDOW_NONE:
        return false;
    case MODEL_WINDOW_PERIOD:
        return layer % period != period - 1;
    case MODEL_WINDOW_FIRST:
        return layer % period != 0;
    case MODEL_WINDOW_ALL:
        return true;
    case MODEL_WINDOW_MARKED:
        return period != 0;
    }
    return false;
}

bool model_read_window(struct model_reader *r, const struct model_params *p, uint32_t layer,
                       uint32_t *window)
{
    const struct model_window *row = &p->arch->attn.window;
    uint32_t size = row->size, period = row->period;
    bool is_array, windowed;
    *window = 0;
    if (row->rule == MODEL_WINDOW_NONE) return true;
    if (!model_read_u32(r, "attention.sliding_window", MODEL_OPTIONAL, 0, MODEL_MAX_CTX, &size) ||
        !model_read_layer_flag(r, "attention.sliding_window_pattern", layer, &is_array, &windowed))
        return false;
    if (!is_array) {
        const bool marked = row->rule == MODEL_WINDOW_MARKED;
        if (!model_read_u32(r, "attention.sliding_window_pattern",
                            marked ? MODEL_REQUIRED : MODEL_OPTIONAL, marked ? 0 : 1,
                            MODEL_MAX_LAYERS, &period))
            return false;
        windowed = is_windowed(row, period, layer);
    }
    if (row->fixed && size > 0) size = row->fixed;
    if (row->chunked && size == 0)
        return model_reader_fail(r, "attention.sliding_window", "0 is not supported here");
    if (windowed) *window = size;
    return true;
}

bool model_read_glu_clamp(struct model_reader *r, const struct model_params *p, const char *key,
                          uint32_t layer, float *clamp)
{
    return !p->arch->ffn.clamps || model_read_layer_f32(r, key, MODEL_OPTIONAL, layer, 0.0f, clamp);
}

struct engine_tensor *model_split_heads(const struct model_builder *b, struct engine_tensor *x,
                                        int64_t heads, int64_t size)
{
    return engine_reshape(b->g, x, 3, (int64_t[]){size, heads, b->n_tokens});
}

struct engine_tensor *model_apply_gate(const struct model_builder *b, struct engine_tensor *x,
                                       struct engine_tensor *gate, int64_t n, int64_t rows)
{
    const bool soft = b->params->arch->attn.gate == MODEL_GATE_SOFTPLUS;
    gate = engine_unary(b->g, gate, soft ? ENGINE_SOFTPLUS : ENGINE_SIGMOID);
    gate = model_split_heads(b, gate, rows, 1);
    x = model_split_heads(b, x, rows, n / rows);
    return engine_reshape(b->g, engine_mul(b->g, x, gate), 2, (int64_t[]){n, b->n_tokens});
}

struct engine_tensor *model_glu(const struct model_builder *b, struct engine_tensor *gate,
                                struct engine_tensor *up, enum engine_unary act, float clamp)
{
    const struct model_params *p = b->params;
    if (p->arch->ffn.oai) return engine_glu_clamp(b->g, gate, up, ENGINE_GELU_QUICK, 7.0f, 1.0f);
    if (p->situ > 0.0f) {
        if (p->situ_linear > 0.0f) up = engine_softcap(b->g, up, p->situ_linear);
        struct engine_tensor *on = engine_unary(b->g, gate, ENGINE_SIGMOID);
        return engine_mul(b->g, engine_mul(b->g, engine_softcap(b->g, gate, p->situ), on), up);
    }
    if (clamp < 1e-6f) return engine_glu(b->g, gate, up, act);
    if (p->arch->ffn.clamps >= MODEL_CLAMPS_INPUT)
        return engine_glu_clamp(b->g, gate, up, act, clamp, 0.0f);
    gate = engine_clamp(b->g, engine_unary(b->g, gate, act), -INFINITY, clamp);
    return engine_mul(b->g, gate, engine_clamp(b->g, up, -clamp, clamp));
}

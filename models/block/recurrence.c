/* models/block/recurrence.c: convolution and recurrent states in the graphs of blocks. See
 * models/block/blocks.h. */
#include "models/block/blocks.h"
#include <math.h>

static struct model_recurrent_layer *layer_of(const struct model_builder *b)
{
    return &b->state->recurrent.layer[b->layer->index];
}

struct engine_tensor *model_convolve(struct model_builder *b, struct engine_tensor *x,
                                     struct engine_tensor *taps, int ahead)
{
    x = engine_ssm_conv(b->g, &layer_of(b)->conv, x, taps, b->inputs.spans, ahead);
    return b->written[0] = model_named(b, x, "conv");
}

struct engine_tensor *model_convolve_front(struct model_builder *b, struct engine_tensor *x,
                                           struct engine_tensor *taps)
{
    x = engine_ssm_conv(b->g, &layer_of(b)->front, x, taps, b->inputs.spans, 0);
    return model_named(b, x, "front_conv");
}

struct engine_tensor *model_state_of(const struct model_builder *b)
{
    return &layer_of(b)->state;
}

struct engine_tensor *model_shift(struct model_builder *b, bool network, struct engine_tensor *x)
{
    struct engine_tensor *table = network ? &layer_of(b)->shift : &layer_of(b)->conv;
    if (!b->shift_taps) { /* 1 and -1 in each channel */
        struct engine_tensor *row =
            engine_view(b->g, x, 1, (int64_t[]){b->params->n_embd}, NULL, 0);
        b->shift_taps = engine_concat(b->g, engine_clamp(b->g, row, 1.0f, 1.0f),
                                      engine_clamp(b->g, row, -1.0f, -1.0f), 1);
    }
    x = engine_ssm_conv(b->g, table, x, b->shift_taps, b->inputs.spans, 0);
    return b->written[0] = model_named(b, x, network ? "network_shift" : "shift");
}

struct engine_tensor *model_unit_heads(const struct model_builder *b, struct engine_tensor *x,
                                       float eps)
{
    const float size = x ? (float)x->ne[0] : 1.0f;
    return engine_scale(b->g, engine_rms_norm(b->g, x, eps / size), 1.0f / sqrtf(size), 0.0f);
}

struct engine_tensor *model_repeat_heads(const struct model_builder *b, struct engine_tensor *x,
                                         uint32_t each)
{
    if (each == 1 || !x) return x;
    const int64_t size = x->ne[0], heads = x->ne[1];
    x = engine_reshape(b->g, x, 4, (int64_t[]){size, 1, heads, b->n_tokens});
    struct engine_tensor *all = x;
    for (uint32_t i = 1; i < each; i++) all = engine_concat(b->g, all, x, 1);
    return engine_reshape(b->g, all, 3, (int64_t[]){size, each * heads, b->n_tokens});
}

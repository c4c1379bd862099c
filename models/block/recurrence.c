/* models/block/recurrence.c: convolution and recurrent states in the graphs of blocks. See
 * models/block/blocks.h. */
#include "models/block/blocks.h"

static struct model_recurrent_layer *layer_of(const struct model_builder *b)
{
    return &b->state->recurrent.layer[b->layer->index];
}

struct engine_tensor *model_convolve(struct model_builder *b, struct engine_tensor *x,
                                     struct engine_tensor *taps)
{
    x = engine_ssm_conv(b->g, &layer_of(b)->conv, x, taps, b->inputs.spans);
    return b->written[0] = model_named(b, x, "conv");
}

struct engine_tensor *model_state_of(const struct model_builder *b)
{
    return &layer_of(b)->state;
}

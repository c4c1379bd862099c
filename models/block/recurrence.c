/* models/block/recurrence.c: how blocks read and keep convolution and recurrent states. See
 * models/block/blocks.h. */
#include "models/block/blocks.h"

static struct model_recurrent_layer *layer_of(const struct model_builder *b)
{
    return &b->state->recurrent.layer[b->layer->index];
}

struct engine_tensor *model_convolve(struct model_builder *b, struct engine_tensor *x,
                                     struct engine_tensor *weight)
{
    struct engine_tensor *kept = &layer_of(b)->conv;
    const int64_t channels = b->layer->recurrent.conv_channels, seqs = b->n_seq;
    const int64_t columns = b->layer->recurrent.conv_columns, run = b->n_tokens / b->n_seq;
    struct engine_tensor *past = engine_get_rows(b->g, kept, b->inputs.recurrent.from);
    past = engine_reshape(b->g, past, 3, (int64_t[]){channels, columns, seqs});
    x = model_named(b, engine_concat(b->g, past, x, 1), "conv_in");
    if (!x) return NULL;
    const int64_t tail[] = {channels, columns, seqs};
    struct engine_tensor *last = engine_view(b->g, x, 3, tail, x->nb, run * x->nb[1]);
    last = engine_reshape(b->g, last, 2, (int64_t[]){channels * columns, seqs});
    b->written[0] = engine_set_rows(b->g, kept, last, b->inputs.recurrent.to);
    weight = engine_transpose(b->g, engine_cont(b->g, engine_transpose(b->g, weight)));
    return engine_ssm_conv(b->g, engine_transpose(b->g, x), weight);
}

struct engine_tensor *model_state_of(const struct model_builder *b)
{
    return &layer_of(b)->state;
}

void model_keep_state(struct model_builder *b, struct engine_tensor *state)
{
    const struct model_recurrent_shape *shape = &b->layer->recurrent;
    const int64_t matrix = (int64_t)shape->rows * shape->cols, heads = shape->n_head;
    const int64_t table[] = {matrix, heads, b->state->recurrent.count};
    const int64_t new[] = {matrix, heads, b->n_seq};
    /* [H][slots] and [H][S] matrices, by strides alone. */
    struct engine_tensor *to =
        engine_permute(b->g, engine_reshape(b->g, &layer_of(b)->state, 3, table), 0, 2, 1, 3);
    state = engine_permute(b->g, engine_reshape(b->g, state, 3, new), 0, 2, 1, 3);
    b->written[1] = engine_set_rows(b->g, to, state, b->inputs.recurrent.to);
}

/* models/block/hyper.c: independent hyper-connections (Hunyuan V4, 2026). See
 * models/block/blocks.h.
 *
 * The hidden state is S streams X_s [E], at first equal to the embedding. Around each sublayer f:
 *
 *     m = W RMS(X)                         over all streams together, without weights: 2 S numbers
 *     u = sum over s of (sigmoid(m_s a_0 + b_s) + eps) X_s
 *     X_s += (c sigmoid(m_(S+s) a_1 + b_(S+s)) + eps) f(N u)
 *
 * and the output norm reads such a sum, with W of S rows. c is hyper_connection.magnitude. */
#include "models/block/blocks.h"

/* Returns factor sigmoid(mix a_i + b) + eps for the numbers [first, first + S) of a mixture. */
static struct engine_tensor *weights_of(const struct model_builder *b, const struct model_hyper *h,
                                        struct engine_tensor *mix, int64_t i, float factor)
{
    const int64_t n = b->params->n_hyper, first = i * n;
    struct engine_tensor *w = engine_cols(b->g, mix, first, n);
    w = engine_mul(b->g, w, engine_cols(b->g, h->scale, i, 1));
    w = engine_add(b->g, w, engine_cols(b->g, h->base, first, n));
    return engine_scale(b->g, engine_unary(b->g, w, ENGINE_SIGMOID), factor, b->params->hyper_eps);
}

struct engine_tensor *model_hyper_begin(const struct model_builder *b, struct engine_tensor *x)
{
    struct engine_tensor *all = x;
    for (uint32_t i = 1; i < b->params->n_hyper; i++) all = engine_concat(b->g, all, x, 0);
    return all;
}

struct engine_tensor *model_hyper_read(const struct model_builder *b, const struct model_hyper *h,
                                       struct engine_tensor *x, struct engine_tensor **back)
{
    const int64_t embd = b->params->n_embd, n = b->params->n_hyper;
    struct engine_tensor *mix =
        model_linear_of(b, h->fn, engine_rms_norm(b->g, x, b->params->norm_eps));
    if (back) *back = weights_of(b, h, mix, 1, b->params->hyper_magnitude);
    x = engine_reshape(b->g, x, 3, (int64_t[]){embd, n, x ? x->ne[1] : 0});
    return engine_expert_sum(b->g, x, engine_cont(b->g, weights_of(b, h, mix, 0, 1.0f)));
}

struct engine_tensor *model_hyper_write(const struct model_builder *b, struct engine_tensor *x,
                                        struct engine_tensor *y, struct engine_tensor *back)
{
    const int64_t embd = b->params->n_embd, n = b->params->n_hyper, rows = x ? x->ne[1] : 0;
    x = engine_reshape(b->g, x, 3, (int64_t[]){embd, n, rows});
    y = engine_repeat(b->g, engine_reshape(b->g, y, 3, (int64_t[]){embd, 1, rows}), x);
    back = engine_reshape(b->g, back, 3, (int64_t[]){1, n, rows});
    x = engine_add(b->g, x, engine_mul(b->g, y, back));
    return engine_reshape(b->g, x, 2, (int64_t[]){embd * n, rows});
}

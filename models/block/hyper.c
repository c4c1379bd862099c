/* models/block/hyper.c: hyper-connections (Zhu et al. 2024): independent ones (Hunyuan V4, 2026),
 * those whose streams are mixed (DeepSeek-V4, 2026), and those with gates (Qwen 4, 2026). See
 * models/block/blocks.h.
 *
 * The hidden state is S streams X_s [E], at first equal to the embedding. Around each sublayer f:
 *
 *     m = W RMS(X)                         over all streams together, without weights: 2 S numbers
 *     u = sum over s of (sigmoid(m_s a_0 + b_s) + eps) X_s
 *     X_s += (c sigmoid(m_(S+s) a_1 + b_(S+s)) + eps) f(N u)
 *
 * and the output norm reads such a sum, with W of S rows. c is hyper_connection.magnitude.
 *
 * With mixed streams W has S S rows more, c is 2, without the eps after it, and
 *
 *     X_d = c sigmoid(..)_d f(N u) + sum over s of C_sd X_s,  C = sinkhorn(m_(2S ..) a_2 + b_(2S ..))
 *
 * where C is nearly doubly stochastic (engine_sinkhorn, hyper_connection.sinkhorn_iterations).
 * MODEL_HYPER_MEAN: the output norm reads the mean of the streams.
 *
 * With gates, and without norms N of their own, where V_s = RMS(X_s) w_s, V all of them:
 *
 *     u = mean over s of V_s sigmoid(W_up silu(W_down V / S))_s
 *     X_s += 2 sigmoid((W_back V)_s / S) f(u) */
#include "models/block/blocks.h"

/* Returns the numbers mix a_i + b of a mixture, [first, first + n). */
static struct engine_tensor *part_of(const struct model_builder *b, const struct model_hyper *h,
                                     struct engine_tensor *mix, int64_t i, int64_t n)
{
    const int64_t first = i * b->params->n_hyper;
    struct engine_tensor *w = engine_cols(b->g, mix, first, n);
    w = engine_mul(b->g, w, engine_cols(b->g, h->scale, i, 1));
    return engine_add(b->g, w, engine_cols(b->g, h->base, first, n));
}

/* Returns factor sigmoid(mix a_i + b) + eps for S numbers of a mixture. */
static struct engine_tensor *weights_of(const struct model_builder *b, const struct model_hyper *h,
                                        struct engine_tensor *mix, int64_t i, float factor,
                                        float eps)
{
    struct engine_tensor *w = part_of(b, h, mix, i, b->params->n_hyper);
    return engine_scale(b->g, engine_unary(b->g, w, ENGINE_SIGMOID), factor, eps);
}

struct engine_tensor *model_hyper_begin(const struct model_builder *b, struct engine_tensor *x)
{
    struct engine_tensor *all = x;
    for (uint32_t i = 1; i < b->params->n_hyper; i++) all = engine_concat(b->g, all, x, 0);
    return all;
}

/* Returns the mean of the streams x [n][S E]. */
static struct engine_tensor *mean_of(const struct model_builder *b, struct engine_tensor *x)
{
    const int64_t embd = b->params->n_embd, n = b->params->n_hyper;
    struct engine_tensor *sum = engine_cols(b->g, x, 0, embd);
    for (int64_t s = 1; s < n; s++)
        sum = engine_add(b->g, sum, engine_cols(b->g, x, s * embd, embd));
    return engine_scale(b->g, sum, 1.0f / (float)n, 0.0f);
}

struct engine_tensor *model_stream_norm(const struct model_builder *b, struct engine_tensor *x,
                                        const struct model_norm *norm)
{
    const int64_t embd = b->params->n_embd, n = b->params->n_hyper, rows = x ? x->ne[1] : 0;
    struct engine_tensor *w = engine_reshape(b->g, norm->weight, 2, (int64_t[]){embd, n});
    x = engine_reshape(b->g, x, 3, (int64_t[]){embd, n, rows});
    x = engine_mul(b->g, engine_rms_norm(b->g, x, b->params->norm_eps), w);
    return engine_reshape(b->g, x, 2, (int64_t[]){embd * n, rows});
}

/* As model_hyper_read, with gates. */
static struct engine_tensor *read_gated(const struct model_builder *b, const struct model_hyper *h,
                                        struct engine_tensor *x, struct model_hyper_back *back)
{
    const float each = 1.0f / (float)b->params->n_hyper;
    x = model_stream_norm(b, x, &h->norm);
    struct engine_tensor *gate = engine_scale(b->g, model_linear(b, &h->down, x), each, 0.0f);
    gate = model_linear(b, &h->up, engine_unary(b->g, gate, ENGINE_SILU));
    if (back) {
        struct engine_tensor *w = engine_scale(b->g, model_linear(b, &h->back, x), each, 0.0f);
        w = engine_scale(b->g, engine_unary(b->g, w, ENGINE_SIGMOID), 2.0f, 0.0f);
        *back = (struct model_hyper_back){w, NULL};
    }
    return mean_of(b, engine_mul(b->g, x, engine_unary(b->g, gate, ENGINE_SIGMOID)));
}

struct engine_tensor *model_hyper_read(const struct model_builder *b, const struct model_hyper *h,
                                       struct engine_tensor *x, struct model_hyper_back *back)
{
    const int64_t embd = b->params->n_embd, n = b->params->n_hyper;
    if (b->params->hyper_rank) return read_gated(b, h, x, back);
    if (h->n_mix == 0) return mean_of(b, x);
    struct engine_tensor *mix =
        model_linear_of(b, h->fn, engine_rms_norm(b->g, x, b->params->norm_eps));
    const bool mixed = b->params->sinkhorn > 0;
    const float eps = b->params->hyper_eps;
    if (back)
        *back = (struct model_hyper_back){
            weights_of(b, h, mix, 1, b->params->hyper_magnitude, mixed ? 0.0f : eps), NULL};
    x = engine_reshape(b->g, x, 3, (int64_t[]){embd, n, x ? x->ne[1] : 0});
    if (back && mixed) {
        const int64_t rows = x ? x->ne[2] : 0;
        struct engine_tensor *c = part_of(b, h, mix, 2, n * n);
        c = engine_reshape(b->g, c, 3, (int64_t[]){n, n, rows});
        c = engine_sinkhorn(b->g, c, (int)b->params->sinkhorn, eps);
        back->mix = engine_reshape(b->g, c, 2, (int64_t[]){n * n, rows});
    }
    return engine_expert_sum(b->g, x, engine_cont(b->g, weights_of(b, h, mix, 0, 1.0f, eps)));
}

/* Returns the streams x [n][S][E] mixed. */
static struct engine_tensor *mix_streams(const struct model_builder *b, struct engine_tensor *x,
                                         struct engine_tensor *mix)
{
    const int64_t embd = b->params->n_embd, n = b->params->n_hyper, rows = x ? x->ne[2] : 0;
    struct engine_tensor *all = NULL;
    mix = engine_cont(
        b->g,
        engine_permute(b->g, engine_reshape(b->g, mix, 3, (int64_t[]){n, n, rows}), 1, 0, 2, 3));
    mix = engine_reshape(b->g, mix, 2, (int64_t[]){n * n, rows});
    for (int64_t d = 0; d < n; d++) {
        struct engine_tensor *to =
            engine_expert_sum(b->g, x, engine_cont(b->g, engine_cols(b->g, mix, d * n, n)));
        to = engine_reshape(b->g, to, 3, (int64_t[]){embd, 1, rows});
        all = all ? engine_concat(b->g, all, to, 1) : to;
    }
    return all;
}

struct engine_tensor *model_hyper_write(const struct model_builder *b, struct engine_tensor *x,
                                        struct engine_tensor *y,
                                        const struct model_hyper_back *back)
{
    const int64_t embd = b->params->n_embd, n = b->params->n_hyper, rows = x ? x->ne[1] : 0;
    x = engine_reshape(b->g, x, 3, (int64_t[]){embd, n, rows});
    y = engine_repeat(b->g, engine_reshape(b->g, y, 3, (int64_t[]){embd, 1, rows}), x);
    if (back->mix) x = mix_streams(b, x, back->mix);
    y = engine_mul(b->g, y, engine_reshape(b->g, back->back, 3, (int64_t[]){1, n, rows}));
    return engine_reshape(b->g, engine_add(b->g, x, y), 2, (int64_t[]){embd * n, rows});
}

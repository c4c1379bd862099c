/* models/block/block_ngram.c: embeddings of n-grams, added to the streams X_s [E] of a layer's
 * input (Qwen 4, 2026; hyper.c). See models/block/blocks.h.
 *
 *     e = rows of a table for the n-grams of ids that end at the token (models/state/history.c)
 *     a_s = N_k(W_k e)_s . N_q(X)_s / sqrt(E),  g_s = sigmoid(sign(a_s) sqrt(max(|a_s|, 10^-6)))
 *     v_s = g_s W_v e
 *     X_s += v_s + silu(convolution of N_c(v))_s
 *
 * The taps of the convolution of each channel are as many positions apart as the longest n-gram has
 * ids. */
#include "models/block/blocks.h"
#include <math.h>

struct ngram {
    uint32_t n_in, n_embd, n_all, n_taps; /* numbers of e, E, S E, K */
    struct model_linear key, value;
    struct ngram_norm {
        uint32_t size, rows; /* S E and 1, or E and S, by the file's tensor */
        struct model_norm norm;
    } key_norm, query_norm, conv_norm;
    struct engine_tensor *conv; /* [K][S E] */
};

#define AT(member) MODEL_AT(struct ngram, member)

/* clang-format off */
static const struct model_tensor_row tensors[] = {
    {"ple_key",        MODEL_LINEAR, MODEL_REQUIRED, AT(key),   .inputs = AT(n_in), .outputs = AT(n_all)},
    {"ple_value",      MODEL_LINEAR, MODEL_REQUIRED, AT(value), .inputs = AT(n_in), .outputs = AT(n_embd)},
    {"ple_norm_key",   MODEL_NORM,   MODEL_REQUIRED, AT(key_norm.norm),   .inputs = AT(key_norm.size),   .outputs = AT(key_norm.rows)},
    {"ple_norm_query", MODEL_NORM,   MODEL_REQUIRED, AT(query_norm.norm), .inputs = AT(query_norm.size), .outputs = AT(query_norm.rows)},
    {"ple_norm_conv",  MODEL_NORM,   MODEL_REQUIRED, AT(conv_norm.norm),  .inputs = AT(conv_norm.size),  .outputs = AT(conv_norm.rows)},
    {"ple_conv1d",     MODEL_TAPS,   MODEL_REQUIRED, AT(conv),  .inputs = AT(n_taps), .outputs = AT(n_all)},
    {.name = NULL},
};
/* clang-format on */

static void size_norm(const struct model_reader *r, const struct model_params *p, uint32_t layer,
                      const char *name, struct ngram_norm *norm)
{
    const struct gguf_tensor *t = model_reader_tensor(r, layer, name);
    const bool rows = t && t->ne[1] == p->n_hyper;
    norm->size = rows ? p->n_embd : p->n_hyper * p->n_embd;
    norm->rows = rows ? p->n_hyper : 1;
}

static bool read(struct model_reader *r, struct model_params *p, struct model_layer *l, void *self)
{
    struct ngram *a = self;
    a->n_in = p->ngram.n_head * p->ends.n_ngram;
    a->n_embd = p->n_embd;
    a->n_all = p->n_hyper * p->n_embd;
    a->n_taps = p->ngram.n_taps;
    size_norm(r, p, l->index, "ple_norm_key.weight", &a->key_norm);
    size_norm(r, p, l->index, "ple_norm_query.weight", &a->query_norm);
    size_norm(r, p, l->index, "ple_norm_conv.weight", &a->conv_norm);
    l->recurrent.front_columns = (a->n_taps - 1) * p->ngram.size;
    l->recurrent.front_channels = a->n_all;
    return true;
}

/* Returns the taps with zeros between them. */
static struct engine_tensor *spread_taps(const struct model_builder *b, const struct ngram *a)
{
    const int64_t n = a->n_all, step = b->params->ngram.size;
    const int64_t ne[] = {n};
    struct engine_tensor *all = engine_view(b->g, a->conv, 1, ne, NULL, 0);
    struct engine_tensor *zeros = engine_clamp(b->g, all, 0.0f, 0.0f);
    for (int64_t k = 1; k < a->n_taps; k++) {
        for (int64_t i = 1; i < step; i++) all = engine_concat(b->g, all, zeros, 1);
        all = engine_concat(b->g, all, engine_view(b->g, a->conv, 1, ne, NULL, k * a->conv->nb[1]),
                            1);
    }
    return all;
}

/* Builds g [T][S] from the normalized keys and queries [T][S E]. */
static struct engine_tensor *build_gate(const struct model_builder *b, struct engine_tensor *key,
                                        struct engine_tensor *query)
{
    const int64_t embd = b->params->n_embd, n = b->params->n_hyper;
    struct engine_tensor *x = model_split_heads(b, engine_mul(b->g, key, query), n, embd);
    x = engine_scale(b->g, engine_sum_rows(b->g, x), 1.0f / sqrtf((float)embd), 0.0f);
    struct engine_tensor *minus = engine_scale(b->g, x, -1.0f, 0.0f);
    struct engine_tensor *size = engine_add(b->g, engine_unary(b->g, x, ENGINE_RELU),
                                            engine_unary(b->g, minus, ENGINE_RELU));
    struct engine_tensor *sign = engine_sub(b->g, engine_unary(b->g, x, ENGINE_STEP),
                                            engine_unary(b->g, minus, ENGINE_STEP));
    size = engine_unary(b->g, engine_clamp(b->g, size, 1e-6f, INFINITY), ENGINE_SQRT);
    return engine_unary(b->g, engine_mul(b->g, sign, size), ENGINE_SIGMOID);
}

static struct engine_tensor *build(struct model_builder *b, void *self, struct engine_tensor *x)
{
    const struct ngram *a = self;
    const int64_t embd = a->n_embd, n = b->params->n_hyper, shape[] = {embd, n, b->n_tokens};
    struct engine_tensor *table = b->params->ends.ngram_embd;
    model_adapters_refuse(b, table);
    engine_graph_set_place(b->g, table ? table->place : NULL); /* rows are copied, not the table */
    struct engine_tensor *e = engine_get_rows(b->g, table, b->inputs.ngram);
    engine_graph_set_place(b->g, b->layer->place);
    e = engine_reshape(b->g, e, 2, (int64_t[]){a->n_in, b->n_tokens});
    struct engine_tensor *key =
        model_stream_norm(b, model_linear(b, &a->key, e), &a->key_norm.norm);
    struct engine_tensor *gate = build_gate(b, key, model_stream_norm(b, x, &a->query_norm.norm));
    struct engine_tensor *v = model_split_heads(b, model_linear(b, &a->value, e), 1, embd);
    v = engine_repeat(b->g, v, engine_reshape(b->g, x, 3, shape));
    v = engine_reshape(b->g, engine_mul(b->g, v, gate), 2, (int64_t[]){embd * n, b->n_tokens});
    model_named(b, v, "ngram");
    struct engine_tensor *conv =
        model_convolve_front(b, model_stream_norm(b, v, &a->conv_norm.norm), spread_taps(b, a));
    conv = engine_unary(b->g, conv, ENGINE_SILU);
    return engine_add(b->g, x, engine_add(b->g, v, conv));
}

MODEL_BLOCK(ngram, "n-grams")

/* models/block/block_altup.c: layers of Gemma 3n: alternating updates (Baykal et al. 2023) of four
 * streams X, of which the first runs through attention and network; a learned augmented residual
 * (LAuReL, Menghani et al. 2024) beside attention; per-layer embeddings for the other streams.
 *
 *   route(x) = tanh(W_r (rms(x) * n / E))
 *   P_i      = X_i + sum over j of (W_p route(X_0))_ij X_j              predicted
 *   u        = N P_0;  l = u + N R L u;  y = (P_0 + N attention(u) + l) / sqrt(2)
 *   z        = y + N network(N y)
 *   X_i      = P_i + (1 + W_c route(z))_i (z - P_0)                     corrected
 *   X_i     += N W_proj (gelu(W_gate (X_0 * s)) * part_l)               for i > 0
 *
 * See models/block/blocks.h. */
#include "models/block/blocks.h"
#include <math.h>

enum { LAUREL_RANK = 64 };

struct altup {
    uint32_t n_embd, n_part, n_rank, n_streams, n_predict; /* E, P, 64, 4, 4 * 4 */
    struct model_linear router, predict, correct;
    struct model_norm router_norm;   /* [E] */
    struct engine_tensor *scale;     /* [E] */
    struct model_linear gate, proj;  /* P x E, E x P */
    struct model_norm part_norm;     /* [E] */
    struct model_linear left, right; /* 64 x E, E x 64 */
    struct model_norm laurel_norm;   /* [E] */
};

#define AT(member) MODEL_AT(struct altup, member)

/* clang-format off */
static const struct model_tensor_row tensors[] = {
    {"altup_router",        MODEL_LINEAR, MODEL_REQUIRED, AT(router),      .inputs = AT(n_embd), .outputs = AT(n_streams)},
    {"altup_router_norm",   MODEL_NORM,   MODEL_REQUIRED, AT(router_norm), .inputs = AT(n_embd)},
    {"altup_predict_coef",  MODEL_LINEAR, MODEL_REQUIRED, AT(predict),     .inputs = AT(n_streams), .outputs = AT(n_predict)},
    {"altup_correct_coef",  MODEL_LINEAR, MODEL_REQUIRED, AT(correct),     .inputs = AT(n_streams), .outputs = AT(n_streams)},
    {"altup_correct_scale", MODEL_VECTOR, MODEL_REQUIRED, AT(scale),       .inputs = AT(n_embd)},
    {"inp_gate",            MODEL_LINEAR, MODEL_REQUIRED, AT(gate),        .inputs = AT(n_embd), .outputs = AT(n_part)},
    {"proj",                MODEL_LINEAR, MODEL_REQUIRED, AT(proj),        .inputs = AT(n_part), .outputs = AT(n_embd)},
    {"post_norm",           MODEL_NORM,   MODEL_REQUIRED, AT(part_norm),   .inputs = AT(n_embd)},
    {"laurel_l",            MODEL_LINEAR, MODEL_REQUIRED, AT(left),        .inputs = AT(n_embd), .outputs = AT(n_rank)},
    {"laurel_r",            MODEL_LINEAR, MODEL_REQUIRED, AT(right),       .inputs = AT(n_rank), .outputs = AT(n_embd)},
    {"laurel_post_norm",    MODEL_NORM,   MODEL_REQUIRED, AT(laurel_norm), .inputs = AT(n_embd)},
    {.name = NULL},
};
/* clang-format on */

static bool read(struct model_reader *r, struct model_params *p, struct model_layer *l, void *self)
{
    struct altup *a = self;
    (void)r;
    (void)l;
    a->n_embd = p->n_embd;
    a->n_part = p->ends.n_per_layer;
    a->n_rank = LAUREL_RANK;
    a->n_streams = MODEL_STREAMS;
    a->n_predict = MODEL_STREAMS * MODEL_STREAMS;
    return true;
}

/* ---- Streams ---- */

/* Scales each row of y [T][E] to the Euclidean norm of the same row of x. */
static struct engine_tensor *rescale(const struct model_builder *b, struct engine_tensor *y,
                                     struct engine_tensor *x)
{
    struct engine_tensor *want =
        engine_unary(b->g, engine_sum_rows(b->g, engine_mul(b->g, x, x)), ENGINE_SQRT);
    struct engine_tensor *have =
        engine_unary(b->g, engine_sum_rows(b->g, engine_mul(b->g, y, y)), ENGINE_SQRT);
    return engine_div(b->g, engine_mul(b->g, y, want), have);
}

/* Returns matrix i of a stack times x. */
static struct engine_tensor *product_of(const struct model_builder *b, const struct model_linear *l,
                                        int i, struct engine_tensor *x)
{
    struct engine_tensor *w = l->weight;
    w = engine_view(b->g, w, 2, w->ne, w->nb, i * w->nb[2]);
    return model_linear_of(b, w, x);
}

void model_altup_begin(struct model_builder *b, struct engine_tensor *x)
{
    b->stream[0] = x;
    for (int i = 1; i < MODEL_STREAMS; i++)
        b->stream[i] = rescale(b, product_of(b, &b->params->ends.streams_in, i - 1, x), x);
}

struct engine_tensor *model_altup_end(const struct model_builder *b)
{
    struct engine_tensor *const first = b->stream[0], *x = first;
    for (int i = 1; i < MODEL_STREAMS; i++) {
        struct engine_tensor *y = product_of(b, &b->params->ends.streams_out, i - 1, b->stream[i]);
        x = engine_add(b->g, x, rescale(b, y, first));
    }
    return engine_scale(b->g, x, 1.0f / (float)MODEL_STREAMS, 0.0f);
}

/* ---- A layer ---- */

static struct engine_tensor *route(const struct model_builder *b, const struct altup *a,
                                   struct engine_tensor *x)
{
    x = model_norm(b, x, &a->router_norm);
    x = engine_scale(b->g, x, 1.0f / (float)a->n_embd, 0.0f);
    return engine_unary(b->g, model_linear(b, &a->router, x), ENGINE_TANH);
}

/* Multiplies x [T][E] by column i of the router's output. */
static struct engine_tensor *times(const struct model_builder *b, struct engine_tensor *x,
                                   struct engine_tensor *coef, int i)
{
    return engine_mul(b->g, x, engine_cols(b->g, coef, i, 1));
}

static void predict(struct model_builder *b, const struct altup *a)
{
    struct engine_tensor *const *x = b->stream, *predicted[MODEL_STREAMS];
    struct engine_tensor *coef = model_linear(b, &a->predict, route(b, a, x[0]));
    for (int i = 0; i < MODEL_STREAMS; i++) {
        struct engine_tensor *sum = times(b, x[0], coef, i * MODEL_STREAMS);
        for (int j = 1; j < MODEL_STREAMS; j++)
            sum = engine_add(b->g, sum, times(b, x[j], coef, i * MODEL_STREAMS + j));
        predicted[i] = engine_add(b->g, sum, x[i]);
    }
    for (int i = 0; i < MODEL_STREAMS; i++) b->stream[i] = predicted[i];
}

static void correct(struct model_builder *b, const struct altup *a, struct engine_tensor *z)
{
    struct engine_tensor *change = engine_sub(b->g, z, b->stream[0]);
    struct engine_tensor *coef = model_linear(b, &a->correct, route(b, a, z));
    coef = engine_scale(b->g, coef, 1.0f, 1.0f);
    for (int i = 0; i < MODEL_STREAMS; i++)
        b->stream[i] = engine_add(b->g, times(b, change, coef, i), b->stream[i]);
}

static void add_part(struct model_builder *b, const struct altup *a)
{
    struct engine_tensor *x = engine_mul(b->g, b->stream[0], a->scale);
    x = model_build_part(b, &a->gate, &a->proj, &a->part_norm, x);
    for (int i = 1; i < MODEL_STREAMS; i++) b->stream[i] = engine_add(b->g, b->stream[i], x);
}

static struct engine_tensor *build(struct model_builder *b, void *self, struct engine_tensor *x)
{
    const struct altup *a = self;
    const struct model_layer *l = b->layer;
    predict(b, a);
    struct engine_tensor *u = model_norm(b, b->stream[0], &l->mixer_norm);
    x = model_wanted_rows(b, l->mixer.block->build(b, l->mixer.self, u));
    u = model_wanted_rows(b, u);
    for (int i = 0; i < MODEL_STREAMS; i++) b->stream[i] = model_wanted_rows(b, b->stream[i]);

    struct engine_tensor *laurel = model_linear(b, &a->right, model_linear(b, &a->left, u));
    laurel = engine_add(b->g, model_norm(b, laurel, &a->laurel_norm), u);
    x = engine_add(b->g, model_norm(b, x, &l->mixer_post_norm), b->stream[0]);
    struct engine_tensor *y =
        engine_scale(b->g, engine_add(b->g, x, laurel), 1.0f / sqrtf(2.0f), 0.0f);
    y = model_named(b, y, "ffn_in");
    x = l->ffn.block->build(b, l->ffn.self, model_norm(b, y, &l->ffn_norm));
    correct(b, a, engine_add(b->g, model_norm(b, x, &l->ffn_post_norm), y));
    add_part(b, a);
    return model_named(b, b->stream[0], "layer_out");
}

MODEL_BLOCK(altup, "altup")

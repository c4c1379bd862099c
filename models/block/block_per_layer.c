/* models/block/block_per_layer.c: per-layer embeddings, added at a layer's end (Gemma 3n and 4).
 *
 *   part = (rms(W_model x / sqrt(E)) * norm + sqrt(P) table[id]) / sqrt(2)     once, [L][P]
 *   out  = y + N W_proj (gelu(W_gate y) * part_l)                              in layer l
 *
 * x is the token's embedding, y the layer's output. See models/block/blocks.h. */
#include "models/block/blocks.h"
#include <math.h>

struct per_layer {
    uint32_t n_embd, n_part;        /* E, P */
    struct model_linear gate, proj; /* P x E, E x P */
    struct model_norm norm;         /* [E] */
};

#define AT(member) MODEL_AT(struct per_layer, member)

/* clang-format off */
static const struct model_tensor_row tensors[] = {
    {"inp_gate",  MODEL_LINEAR, MODEL_REQUIRED, AT(gate), .inputs = AT(n_embd), .outputs = AT(n_part)},
    {"proj",      MODEL_LINEAR, MODEL_REQUIRED, AT(proj), .inputs = AT(n_part), .outputs = AT(n_embd)},
    {"post_norm", MODEL_NORM,   MODEL_REQUIRED, AT(norm), .inputs = AT(n_embd)},
    {.name = NULL},
};
/* clang-format on */

static bool read(struct model_reader *r, struct model_params *p, struct model_layer *l, void *self)
{
    struct per_layer *e = self;
    (void)r;
    (void)l;
    e->n_embd = p->n_embd;
    e->n_part = p->ends.n_per_layer;
    return true;
}

struct engine_tensor *model_build_per_layer(const struct model_builder *b, struct engine_tensor *x)
{
    const struct model_ends *ends = &b->params->ends;
    const int64_t part = ends->n_per_layer, all = ends->n_per_layers;
    struct engine_tensor *of_ids = model_rows_of(b, ends->per_layer_embd, b->ids);
    of_ids = engine_scale(b->g, of_ids, sqrtf((float)part), 0.0f);
    x = model_linear(b, &ends->per_layer_proj, x);
    x = engine_scale(b->g, x, 1.0f / sqrtf((float)b->params->n_embd), 0.0f);
    x = model_split_heads(b, x, all / part, part);
    x = model_norm(b, x, &ends->per_layer_norm);
    x = engine_add(b->g, engine_reshape(b->g, x, 2, (int64_t[]){all, b->n_tokens}), of_ids);
    return engine_name(engine_scale(b->g, x, 1.0f / sqrtf(2.0f), 0.0f), "per_layer");
}

struct engine_tensor *model_build_part(const struct model_builder *b,
                                       const struct model_linear *gate,
                                       const struct model_linear *proj,
                                       const struct model_norm *norm, struct engine_tensor *x)
{
    const int64_t size = b->params->ends.n_per_layer;
    struct engine_tensor *part = model_wanted_rows(b, b->per_layer);
    part = engine_cols(b->g, part, b->layer->index * size, size);
    x = engine_glu(b->g, model_linear(b, gate, x), part, b->params->arch->ffn.act);
    return model_norm(b, model_linear(b, proj, x), norm);
}

static struct engine_tensor *build(struct model_builder *b, void *self, struct engine_tensor *x)
{
    const struct per_layer *e = self;
    struct engine_tensor *h = model_build_part(b, &e->gate, &e->proj, &e->norm, x);
    return model_named(b, engine_add(b->g, h, x), "per_layer_out");
}

MODEL_BLOCK(per_layer, "per_layer")

/* models/block/block_cross.c: attention of a decoder to the rows of its encoder (T5). See
 * models/block/blocks.h. Their keys and values are computed once for a text
 * (models/state/cross.h). */
#include "models/block/blocks.h"

struct cross {
    uint32_t n_embd, n_head, n_head_kv, d, dv; /* E, H, KH, D, DV */
    uint32_t n_q, n_k, n_v, n_out, n_buckets;  /* H D, KH D, KH DV, H DV; biases of the file */
    struct model_linear q, k, v, out;
    struct engine_tensor *unused; /* biases by relative position, which have no effect */
};

#define AT(member) MODEL_AT(struct cross, member)

/* clang-format off */
static const struct model_tensor_row tensors[] = {
    {"cross_attn_q",     MODEL_LINEAR, MODEL_REQUIRED, AT(q),      .inputs = AT(n_embd), .outputs = AT(n_q)},
    {"cross_attn_k",     MODEL_LINEAR, MODEL_REQUIRED, AT(k),      .inputs = AT(n_embd), .outputs = AT(n_k)},
    {"cross_attn_v",     MODEL_LINEAR, MODEL_REQUIRED, AT(v),      .inputs = AT(n_embd), .outputs = AT(n_v)},
    {"cross_attn_o",     MODEL_LINEAR, MODEL_REQUIRED, AT(out),    .inputs = AT(n_out),  .outputs = AT(n_embd)},
    {"cross_attn_rel_b", MODEL_MATRIX, MODEL_OPTIONAL, AT(unused), .inputs = AT(n_head), .outputs = AT(n_buckets)},
    {.name = NULL},
};
/* clang-format on */

static bool read(struct model_reader *r, struct model_params *p, struct model_layer *l, void *self)
{
    struct cross *c = self;
    if (!model_read_layer_u32(r, "attention.head_count", MODEL_REQUIRED, l->index, 1,
                              MODEL_MAX_HEADS, &c->n_head))
        return false;
    c->n_embd = p->n_embd;
    c->n_buckets = p->n_buckets;
    c->n_head_kv = l->kv.n_head;
    c->d = l->kv.size_k;
    c->dv = l->kv.size_v;
    c->n_q = c->n_head * c->d;
    c->n_k = c->n_head_kv * c->d;
    c->n_v = c->n_head_kv * c->dv;
    c->n_out = c->n_head * c->dv;
    l->n_cross_k = c->n_k;
    l->n_cross_v = c->n_v;
    return true;
}

void model_cross_store(struct model_builder *b, struct engine_tensor *rows,
                       struct engine_tensor *slots)
{
    const struct cross *c = b->layer->cross.self;
    struct model_cross_layer *layer = &b->state->cross.layer[b->layer->index];
    b->written[0] = engine_set_rows(b->g, &layer->k, model_linear(b, &c->k, rows), slots);
    b->written[1] = engine_set_rows(b->g, &layer->v, model_linear(b, &c->v, rows), slots);
}

static struct engine_tensor *heads_of(const struct model_builder *b, struct engine_tensor *t,
                                      uint32_t heads, uint32_t size)
{
    return engine_view(b->g, t, 3, (int64_t[]){size, heads, t->ne[1]}, NULL, 0);
}

static struct engine_tensor *build(struct model_builder *b, void *self, struct engine_tensor *x)
{
    const struct cross *c = self;
    struct model_cross *cross = &b->state->cross;
    struct model_cross_layer *layer = &cross->layer[b->layer->index];
    const struct engine_attention how = {.scale = 1.0f, .dv = (int)c->dv};
    x = model_split_heads(b, model_linear(b, &c->q, x), c->n_head, c->d);
    x = engine_attention(b->g, x, heads_of(b, &layer->k, c->n_head_kv, c->d),
                         heads_of(b, &layer->v, c->n_head_kv, c->dv), b->inputs.cross, &cross->view,
                         NULL, NULL, &how);
    return model_named(b, model_linear(b, &c->out, model_named(b, x, "cross")), "cross_out");
}

MODEL_BLOCK(cross, "cross attention")

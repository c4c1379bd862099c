/* models/block/attend.c: writes a batch's keys and values into the cache and builds attention over
 * it. See models/block/blocks.h. */
#include "models/block/blocks.h"

struct engine_tensor *model_swap_heads(const struct model_builder *b, struct engine_tensor *x)
{
    return engine_permute(b->g, x, 0, 2, 1, 3);
}

/* Writes rows x [T][heads][size] to a part of the layer's cache, and returns it. */
static struct engine_tensor *write_rows(const struct model_builder *b, enum model_kv_part part,
                                        struct engine_tensor *x)
{
    struct model_kv_layer *layer = &b->state->kv.layer[b->kv_layer];
    struct model_kv_rows *rows = &layer->part[part];
    struct engine_tensor *slots = b->inputs.kv.slot[layer->kind];
    x = model_swap_heads(b, x);
    return rows->form.is_coded
               ? engine_set_kv_q16(b->g, rows->form.what, &rows->t, x, slots, rows->type)
               : engine_set_rows(b->g, &rows->t, x, slots);
}

static void store(struct model_builder *b, struct engine_tensor *k, struct engine_tensor *v)
{
    struct engine_tensor **kept = b->kept[b->state->kv.layer[b->kv_layer].kind];
    b->written[0] = kept[0] = write_rows(b, MODEL_KV_KEYS, k);
    b->written[1] = kept[1] = write_rows(b, MODEL_KV_VALUES, v);
}

struct engine_tensor *model_attend(struct model_builder *b, enum model_kv_kind kind,
                                   struct engine_tensor *q, struct engine_tensor *k,
                                   struct engine_tensor *v, struct engine_tensor *sinks,
                                   struct engine_tensor *relative,
                                   const struct engine_attention *how)
{
    struct engine_tensor **kept = b->kept[kind];
    if (b->source_range)
        return engine_attention(b->g, q, engine_cont(b->g, k), engine_cont(b->g, v),
                                b->source_range, b->source_table, sinks, relative, how);
    if (k) store(b, k, v);
    return engine_attention(b->g, q, model_swap_heads(b, kept[0]), model_swap_heads(b, kept[1]),
                            b->inputs.kv.range[kind], &b->state->kv.slots[kind].view, sinks,
                            relative, how);
}

struct engine_tensor *model_choose_keys(struct model_builder *b, struct engine_tensor *q,
                                        struct engine_tensor *k, struct engine_tensor *weights,
                                        const struct engine_choose_keys *how)
{
    const enum model_kv_kind kind = b->state->kv.layer[b->kv_layer].kind;
    struct engine_choose_keys all = *how;
    all.stride = (int)b->state->kv.slots[kind].count;
    b->written[2] = write_rows(b, MODEL_KV_INDEX, k);
    return engine_choose_keys(b->g, q, model_swap_heads(b, b->written[2]), b->inputs.kv.range[kind],
                              &b->state->kv.slots[kind].view, weights, &all);
}

/* Returns a cache of keys or values [KH][units][..] as that of one head, [1][KH units][..]. */
static struct engine_tensor *as_one_head(const struct model_builder *b, struct engine_tensor *x)
{
    if (x && x->ne[2] > 1)
        x = engine_reshape(b->g, x, 3, (int64_t[]){x->ne[0], x->ne[1] * x->ne[2], 1});
    return model_swap_heads(b, x);
}

struct engine_tensor *model_attend_chosen(struct model_builder *b, struct engine_tensor *chosen,
                                          struct engine_tensor *q, struct engine_tensor *k,
                                          struct engine_tensor *v, struct engine_tensor *sinks,
                                          const struct engine_attention *how)
{
    struct engine_tensor **kept = b->kept[b->state->kv.layer[b->kv_layer].kind];
    store(b, k, v);
    if (!chosen || !q) return NULL;
    const int64_t n = chosen->ne[0], n_lists = chosen->ne[1], d = q->ne[0], n_head = q->ne[1];
    const int64_t rows = n_lists * b->n_tokens;
    chosen = engine_reshape(b->g, chosen, 2, (int64_t[]){n, rows});
    if (n_lists > 1) q = engine_reshape(b->g, q, 3, (int64_t[]){d, n_head / n_lists, rows});
    struct engine_tensor *x = engine_attention(
        b->g, q, as_one_head(b, kept[0]), as_one_head(b, kept[1]),
        engine_cols(b->g, chosen, 0, ENGINE_RANGE),
        engine_cols(b->g, chosen, ENGINE_RANGE, n - ENGINE_RANGE), sinks, NULL, how);
    return engine_reshape(b->g, x, 2, (int64_t[]){x ? x->ne[0] * n_lists : 0, b->n_tokens});
}

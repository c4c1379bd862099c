/* models/block/attend.c: writes a batch's keys and values into the cache and builds attention over
 * it. See models/block/blocks.h. */
#include "models/block/blocks.h"

struct engine_tensor *model_swap_heads(const struct model_builder *b, struct engine_tensor *x)
{
    return engine_permute(b->g, x, 0, 2, 1, 3);
}

/* Writes rows x [T][heads][size] to a part of the layer's cache, those of a kind, and returns
 * it. */
static struct engine_tensor *write_kind(const struct model_builder *b, enum model_kv_kind kind,
                                        enum model_kv_part part, struct engine_tensor *x)
{
    struct model_kv_rows *rows = &b->state->kv.layer[b->kv_layer].part[part];
    struct engine_tensor *slots = b->inputs.kv.slot[kind];
    x = model_swap_heads(b, x);
    return rows->form.is_coded
               ? engine_set_kv_q16(b->g, rows->form.what, &rows->t, x, slots, rows->type)
               : engine_set_rows(b->g, &rows->t, x, slots);
}

static struct engine_tensor *write_rows(const struct model_builder *b, enum model_kv_part part,
                                        struct engine_tensor *x)
{
    return write_kind(b, b->state->kv.layer[b->kv_layer].kind, part, x);
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

struct engine_tensor *model_pool_keys(struct model_builder *b, struct engine_tensor *x,
                                      struct engine_tensor *ape, uint32_t size)
{
    const struct model_kv_layer *layer = &b->state->kv.layer[b->kv_layer];
    const struct engine_compress_keys how = {
        .ratio = (int)b->layer->kv.ratio, .size = (int)size, .score_at = ape ? (int)size : -1};
    struct engine_tensor *rows = model_keep_open(b, x);
    return engine_compress_keys(b->g, rows, b->inputs.kv.ended[layer->blocks],
                                &b->state->kv.slots[layer->kind].view, ape, &how);
}

struct engine_tensor *model_choose_pools(struct model_builder *b, struct engine_tensor *q,
                                         struct engine_tensor *k, struct engine_tensor *weights,
                                         uint32_t n_used)
{
    const struct model_kv_layer *layer = &b->state->kv.layer[b->kv_layer];
    struct model_kv *kv = &b->state->kv;
    const struct model_kv_inputs *in = &b->inputs.kv;
    const int ratio = (int)b->layer->kv.ratio;
    const struct engine_choose_keys how = {
        .n_used = (int)n_used, .block = 1, .n_near = ratio - 1, .n_each = ratio};
    k = engine_reshape(b->g, k, 3, (int64_t[]){k ? k->ne[0] : 0, 1, b->n_tokens});
    k = write_kind(b, layer->blocks, MODEL_KV_INDEX, k);
    return engine_choose_far_keys(b->g, q, model_swap_heads(b, k), in->range[layer->blocks],
                                  &kv->slots[layer->blocks].view, weights, in->range[layer->kind],
                                  &kv->slots[layer->kind].view, &how);
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
    k = n_lists > 1 ? as_one_head(b, kept[0]) : model_swap_heads(b, kept[0]);
    v = n_lists > 1 ? as_one_head(b, kept[1]) : model_swap_heads(b, kept[1]);
    struct engine_tensor *x = engine_attention(
        b->g, q, k, v, engine_cols(b->g, chosen, 0, ENGINE_RANGE),
        engine_cols(b->g, chosen, ENGINE_RANGE, n - ENGINE_RANGE), sinks, NULL, how);
    return engine_reshape(b->g, x, 2, (int64_t[]){x ? x->ne[0] * n_lists : 0, b->n_tokens});
}

struct engine_tensor *model_keep_open(struct model_builder *b, struct engine_tensor *x)
{
    x = engine_reshape(b->g, x, 3, (int64_t[]){x ? x->ne[0] : 0, 1, b->n_tokens});
    b->written[2] = write_rows(b, MODEL_KV_OPEN, x);
    return model_swap_heads(b, b->written[2]);
}

struct engine_tensor *model_attend_blocks(struct model_builder *b, struct engine_tensor *q,
                                          struct engine_tensor *k, struct engine_tensor *k_blocks,
                                          const struct model_block_choice *choice,
                                          struct engine_tensor *sinks,
                                          const struct engine_attention *how)
{
    const struct model_kv_layer *layer = &b->state->kv.layer[b->kv_layer];
    struct model_kv_slots *near = &b->state->kv.slots[layer->kind],
                          *far = &b->state->kv.slots[layer->blocks];
    const struct model_kv_inputs *in = &b->inputs.kv;
    const struct engine_choose_keys all = {
        .n_used = (int)choice->n_used, .block = 1, .n_near = (int)b->layer->kv.window};
    struct engine_tensor *index =
        choice->k ? write_kind(b, layer->blocks, MODEL_KV_INDEX, choice->k) : NULL;
    struct engine_tensor *chosen = engine_choose_far_keys(
        b->g, choice->q, index ? model_swap_heads(b, index) : NULL, in->range[layer->blocks],
        &far->view, choice->weights, in->range[layer->kind], &near->view, &all);
    if (!model_named(b, chosen, "chosen")) return NULL;
    write_rows(b, MODEL_KV_KEYS, k);
    write_rows(b, MODEL_KV_VALUES, k);
    struct engine_tensor *keys = write_kind(b, layer->blocks, MODEL_KV_KEYS, k_blocks),
                         *values = write_kind(b, layer->blocks, MODEL_KV_VALUES, k_blocks);
    b->written[0] = keys;
    b->written[1] = values;
    const int64_t n = chosen->ne[0];
    chosen = engine_reshape(b->g, chosen, 2, (int64_t[]){n, b->n_tokens});
    return engine_attention(b->g, q, model_swap_heads(b, keys), model_swap_heads(b, values),
                            engine_cols(b->g, chosen, 0, ENGINE_RANGE),
                            engine_cols(b->g, chosen, ENGINE_RANGE, n - ENGINE_RANGE), sinks, NULL,
                            how);
}

/* models/block/attend.c: writes a batch's keys and values into the cache and builds attention over
 * it. See models/block/blocks.h. */
#include "models/block/blocks.h"

struct engine_tensor *model_swap_heads(const struct model_builder *b, struct engine_tensor *x)
{
    return engine_permute(b->g, x, 0, 2, 1, 3);
}

/* Writes rows x [T][KH][size] to the layer's cache of keys or values. */
static struct engine_tensor *write_rows(const struct model_builder *b,
                                        const struct engine_kv_form *form,
                                        struct engine_tensor *cache, enum quant_id type,
                                        struct engine_tensor *x)
{
    struct engine_tensor *slots = b->inputs.kv.slot[b->state->kv.layer[b->kv_layer].kind];
    x = model_swap_heads(b, x);
    return form->is_coded ? engine_set_kv_q16(b->g, form->what, cache, x, slots, type)
                          : engine_set_rows(b->g, cache, x, slots);
}

struct engine_tensor *model_attend(struct model_builder *b, enum model_kv_kind kind,
                                   struct engine_tensor *q, struct engine_tensor *k,
                                   struct engine_tensor *v, struct engine_tensor *sinks,
                                   struct engine_tensor *relative,
                                   const struct engine_attention *how)
{
    struct model_kv *kv = &b->state->kv;
    struct engine_tensor **kept = b->kept[kind];
    if (b->source_range)
        return engine_attention(b->g, q, engine_cont(b->g, k), engine_cont(b->g, v),
                                b->source_range, b->source_table, sinks, relative, how);
    if (k) {
        struct model_kv_layer *cache = &kv->layer[b->kv_layer];
        k = write_rows(b, &cache->form_k, &cache->k, kv->type_k, k);
        v = write_rows(b, &cache->form_v, &cache->v, kv->type_v, v);
        b->written[0] = kept[0] = k;
        b->written[1] = kept[1] = v;
    }
    return engine_attention(b->g, q, model_swap_heads(b, kept[0]), model_swap_heads(b, kept[1]),
                            b->inputs.kv.range[kind], &kv->slots[kind].view, sinks, relative, how);
}

/* models/block/rwkv_heads.c: what the time mixes of RWKV 6 and 7 share. See models/block/blocks.h.
 */
#include "models/block/blocks.h"

bool model_read_rwkv(struct model_reader *r, const struct model_params *p, struct model_layer *l,
                     uint32_t *size, uint32_t *heads)
{
    if (!model_read_u32(r, "wkv.head_size", MODEL_REQUIRED, 1, p->n_embd, size)) return false;
    if (p->n_embd % *size)
        return model_reader_fail(r, "wkv.head_size",
                                 "%u does not divide the embedding length of %u", *size, p->n_embd);
    *heads = p->n_embd / *size;
    l->recurrent = (struct model_recurrent_shape){.conv_columns = 1,
                                                  .conv_channels = p->n_embd,
                                                  .n_head = *heads,
                                                  .rows = *size,
                                                  .cols = *size};
    return true;
}

struct engine_tensor *model_norm_heads(const struct model_builder *b, struct engine_tensor *x,
                                       const struct model_norm *norm)
{
    const int64_t rows[] = {b->params->n_embd, b->n_tokens};
    if (!norm->weight) return engine_reshape(b->g, x, 2, rows);
    x = engine_reshape(b->g, engine_norm(b->g, x, 64e-5f), 2, rows);
    x = engine_mul(b->g, x, norm->weight);
    return norm->bias ? engine_add(b->g, x, norm->bias) : x;
}

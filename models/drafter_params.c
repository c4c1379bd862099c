/* models/drafter_params.c: the numbers and tensors of a drafter besides those of its layers. See
 * models/params.h. */
#include "models/params.h"

/* Reads the numbers of the layers whose hidden states a drafter reads. */
static bool read_reads(struct model_reader *r, struct model_drafter_ends *d)
{
    static const char key[] = "target_layers";
    const struct gguf_kv *kv = gguf_kv_find(r->file, model_reader_key(r, key));
    if (!gguf_is_integers(kv) || kv->count == 0 || kv->count > MODEL_READS_MAX)
        return model_reader_fail(r, key, "an array of 1 to %d layers was expected",
                                 MODEL_READS_MAX);
    for (uint32_t i = 0; i < kv->count; i++) {
        const int64_t layer = gguf_array_int(kv, i);
        if (layer < 0 || layer > MODEL_MAX_LAYERS)
            return model_reader_fail(r, key, "item %u is %lld, no layer", i, (long long)layer);
        d->layer[d->n_read++] = (uint32_t)layer;
    }
    return true;
}

static bool read_eagle3(struct model_reader *r, struct model_params *p)
{
    struct model_drafter_ends *d = &p->drafter;
    bool norm = false;
    if (p->n_layer > 1)
        return model_reader_fail(r, "block_count", "%u, but such a drafter has one layer",
                                 p->n_layer);
    if (d->n_read != 3)
        return model_reader_fail(r, "target_layers", "%u layers, but such a drafter reads 3",
                                 d->n_read);
    if (!model_read_u32(r, "target_hidden_size", MODEL_REQUIRED, 1, MODEL_MAX_DIM,
                        &d->n_embd_read) ||
        !gguf_get_bool(r->file, model_reader_key(r, "norm_before_fc"), &norm, r->err) ||
        !gguf_get_bool(r->file, model_reader_key(r, "norm_before_residual"), &d->adds_normalized,
                       r->err))
        return false;
    d->n_norm = norm ? d->n_read * d->n_embd_read : 0;
    d->n_hidden_norm = p->n_embd;
    return true;
}

static bool read_dflash(struct model_reader *r, struct model_drafter_ends *d)
{
    static const char mask_key[] = "tokenizer.ggml.mask_token_id";
    d->mask_id = UINT32_MAX;
    d->block = 16;
    if (!model_read_u32(r, "block_size", MODEL_OPTIONAL, 2, MODEL_MAX_CTX, &d->block) ||
        !gguf_get_bool(r->file, model_reader_key(r, "attention.causal"), &d->causal, r->err) ||
        !gguf_get_u32(r->file, mask_key, &d->mask_id, r->err))
        return false;
    if (d->mask_id == UINT32_MAX)
        return base_fail_at(r->err, BASE_MODEL, mask_key, -1, "this key is missing");
    d->n_norm = d->n_embd;
    return true;
}

bool model_drafter_read(struct model_reader *r, struct model_params *p)
{
    struct model_drafter_ends *d = &p->drafter;
    d->n_embd_read = d->n_embd = p->n_embd;
    if (!read_reads(r, d) ||
        !(p->arch->drafter == MODEL_DRAFTER_EAGLE3 ? read_eagle3(r, p) : read_dflash(r, d)))
        return false;
    d->n_in = d->n_read * d->n_embd_read;
    d->n_ids = gguf_tensor_find(r->file, "d2t") ? p->ends.n_output : 0;
    return true;
}

#define DRAFTER(member) MODEL_AT(struct model_drafter_ends, member)

/* clang-format off */
const struct model_tensor_row model_drafter_rows[] = {
    {"fc",                     MODEL_LINEAR, MODEL_REQUIRED, DRAFTER(in),   .inputs = DRAFTER(n_in), .outputs = DRAFTER(n_embd)},
    {"enc.output_norm",        MODEL_NORM,   MODEL_REQUIRED, DRAFTER(norm), .inputs = DRAFTER(n_norm)},
    {"blk.0.attn_norm_2",      MODEL_NORM,   MODEL_REQUIRED, DRAFTER(hidden_norm), .inputs = DRAFTER(n_hidden_norm)},
    {"d2t",                    MODEL_LONGS,  MODEL_REQUIRED, DRAFTER(ids),  .inputs = DRAFTER(n_ids)},
    {.name = NULL},
};
/* clang-format on */

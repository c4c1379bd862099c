/* models/cache.c: keys and values of one timeline. See models/internal.h. */
#include "base/size.h"
#include "models/internal.h"
#include <stdlib.h>

static uint32_t least_u32(uint32_t a, uint64_t b)
{
    return a < b ? a : (uint32_t)b;
}

/* One cache tensor [cells][heads * size], zeroed (so that its pages are not touched before use). */
static bool init_tensor(struct model_cache *c, struct engine_tensor *t,
                        const struct quant_type *type, uint32_t heads, uint32_t size,
                        uint32_t cells, struct base_error *err)
{
    uint64_t row, bytes;
    if (type->act == QUANT_ACT_NONE || size % type->block_len)
        return base_fail(err, BASE_USAGE,
                         "a cache of type %s does not fit heads of %u values (blocks of %u)",
                         type->name, size, type->block_len);
    int64_t ne[2] = {(int64_t)heads * size, cells};
    if (!quant_row_bytes(type, (uint64_t)ne[0], &row) || !base_mul(row, cells, &bytes))
        return base_fail(err, BASE_NO_MEMORY, "a cache of %u tokens is too large", cells);
    void *data = calloc(1, bytes);
    if (!data)
        return base_fail(err, BASE_NO_MEMORY,
                         "no memory for a cache of %u tokens (%llu bytes a layer); a smaller "
                         "--ctx needs less",
                         cells, (unsigned long long)bytes);
    if (!engine_tensor_init(t, type, 2, ne, data, "kv_cache", err)) {
        free(data);
        return false;
    }
    c->bytes += bytes;
    return true;
}

static bool init_lists(struct model_cache *c, struct base_error *err)
{
    for (int span = 0; span < MODEL_SPAN_COUNT; span++) {
        if (c->n_cells[span] == 0) continue;
        int64_t ne[2] = {c->n_ctx, 1};
        int32_t *list = malloc((size_t)c->n_ctx * sizeof *list);
        if (!list) return base_fail(err, BASE_NO_MEMORY, "no memory for %u positions", c->n_ctx);
        for (uint32_t j = 0; j < c->n_ctx; j++) list[j] = (int32_t)(j % c->n_cells[span]);
        c->list[span] = list;
        if (!engine_tensor_init(&c->list_tensor[span], quant_type_by_id(QUANT_I32), 2, ne, list,
                                "cells", err))
            return false;
    }
    return true;
}

bool model_cache_init(struct model_cache *c, const struct model_params *p, uint32_t n_ctx,
                      uint32_t n_batch, const struct quant_type *type_k,
                      const struct quant_type *type_v, struct base_error *err)
{
    *c = (struct model_cache){.n_layer = p->n_layer, .n_ctx = n_ctx};
    c->layer = calloc(p->n_layer, sizeof *c->layer);
    if (!c->layer) {
        base_fail(err, BASE_NO_MEMORY, "no memory for %u layers", p->n_layer);
        goto fail;
    }
    for (uint32_t i = 0; i < p->n_layer; i++) {
        const struct model_layer_params *l = &p->layer[i];
        struct model_cache_layer *layer = &c->layer[i];
        layer->span = l->window ? MODEL_SPAN_WINDOW : MODEL_SPAN_FULL;
        if (l->window) c->window = l->window;
        /* A batch is written before its first token reads: the window plus the batch must fit. */
        uint32_t cells = l->window ? least_u32(n_ctx, (uint64_t)l->window + n_batch) : n_ctx;
        c->n_cells[layer->span] = cells;
        if (!init_tensor(c, &layer->k, type_k, l->n_head_kv, p->n_embd_head_k, cells, err) ||
            !init_tensor(c, &layer->v, type_v, l->n_head_kv, p->n_embd_head_v, cells, err))
            goto fail;
    }
    if (!init_lists(c, err)) goto fail;
    return true;

fail:
    model_cache_free(c);
    return false;
}

void model_cache_free(struct model_cache *c)
{
    for (uint32_t i = 0; c->layer && i < c->n_layer; i++) {
        free(c->layer[i].k.data);
        free(c->layer[i].v.data);
    }
    for (int span = 0; span < MODEL_SPAN_COUNT; span++) free(c->list[span]);
    free(c->layer);
    *c = (struct model_cache){0};
}

void model_cache_fill(const struct model_cache *c, enum model_span span, uint32_t first,
                      uint32_t n_tokens, int32_t *cell, int32_t *span_rows)
{
    for (uint32_t t = 0; t < n_tokens; t++) {
        uint32_t position = first + t, oldest = 0;
        if (span == MODEL_SPAN_WINDOW && position + 1 > c->window)
            oldest = position + 1 - c->window;
        cell[t] = c->list[span][position];
        span_rows[4 * t + 0] = 0;
        span_rows[4 * t + 1] = (int32_t)oldest;
        span_rows[4 * t + 2] = (int32_t)position + 1;
        span_rows[4 * t + 3] = 0;
    }
}

bool model_cache_can_truncate(const struct model_cache *c, uint32_t used, uint32_t length)
{
    uint32_t cells = c->n_cells[MODEL_SPAN_WINDOW];
    if (c->window == 0 || used <= cells || length == 0) return true;
    /* The ring holds positions used - cells and later; the next token looks back window - 1. */
    uint32_t oldest_needed = length + 1 > c->window ? length + 1 - c->window : 0;
    return oldest_needed >= used - cells;
}

/* models/state/kv_cache.c: keys and values of several sequences. See models/internal.h. */
#include "base/size.h"
#include "engine/graph.h"
#include "models/internal.h"
#include <stdlib.h>
#include <sys/mman.h>

static uint32_t least_u32(uint32_t a, uint64_t b)
{
    return a < b ? a : (uint32_t)b;
}

/* ---- Life ---- */

/* Pages that read as zero and take memory when they are written; for a plan, addresses alone. */
static void *take_bytes(const struct model_cache *c, uint64_t bytes)
{
    const int access = c->plan_only ? PROT_NONE : PROT_READ | PROT_WRITE;
    const int how = MAP_PRIVATE | MAP_ANONYMOUS | (c->plan_only ? MAP_NORESERVE : 0);
    void *data = mmap(NULL, bytes, access, how, -1, 0);
    return data == MAP_FAILED ? NULL : data;
}

static void give_bytes(struct engine_tensor *t)
{
    if (t->data) munmap(t->data, (size_t)engine_tensor_bytes(t));
}

/* Types of 16 bits an element are kept as the codes that attention would make of them. */
static bool is_coded(const struct quant_type *type)
{
    return type->id == QUANT_F16 || type->id == QUANT_BF16;
}

/* One cache tensor [heads][cells][size], or of codes. */
static bool init_tensor(struct model_cache *c, struct engine_tensor *t, enum engine_kv_q16 what,
                        const struct quant_type *type, uint32_t heads, uint32_t size,
                        uint32_t cells, struct base_error *err)
{
    uint64_t row, bytes;
    if (!type->act || size % type->block_len)
        return base_fail(err, BASE_USAGE,
                         "a cache of type %s does not fit heads of %u values (blocks of %u)",
                         type->name, size, type->block_len);
    int64_t ne[3] = {size, cells, heads};
    if (is_coded(type)) {
        type = quant_type_by_id(QUANT_I8);
        ne[0] = engine_kv_q16_bytes(what, size);
        ne[1] = cells / ENGINE_KV_Q16_GROUP;
    }
    if (!quant_row_bytes(type, (uint64_t)ne[0], &row) || !base_mul(row, (uint64_t)ne[1], &bytes) ||
        !base_mul(bytes, heads, &bytes))
        return base_fail(err, BASE_NO_MEMORY, "a cache of %u tokens is too large", cells);
    void *data = take_bytes(c, bytes);
    if (!data)
        return base_fail(err, BASE_NO_MEMORY,
                         "no memory for a cache of %u tokens (%llu bytes a layer); a smaller "
                         "--ctx-size needs less",
                         cells, (unsigned long long)bytes);
    if (!engine_tensor_init(t, type, 3, ne, data, "kv_cache", err)) {
        munmap(data, bytes);
        return false;
    }
    c->bytes += bytes;
    return true;
}

static bool init_cells(const struct model_cache *c, struct model_cells *cells,
                       struct base_error *err)
{
    uint64_t positions, count;
    if (!base_mul(c->n_seq, c->n_ctx, &positions) || !base_mul(c->n_seq, cells->ring, &count) ||
        positions > INT32_MAX)
        return base_fail(err, BASE_NO_MEMORY, "%u sequences of %u tokens are too many", c->n_seq,
                         c->n_ctx);
    cells->count = (uint32_t)count;
    cells->users = calloc(count, sizeof *cells->users);
    cells->oldest = calloc(c->n_seq, sizeof *cells->oldest);
    /* Left to the system to clear when touched: a plan for a huge context must cost nothing. */
    cells->list = calloc((size_t)positions, sizeof *cells->list);
    if (!cells->users || !cells->oldest || !cells->list)
        return base_fail(err, BASE_NO_MEMORY, "no memory for %llu positions",
                         (unsigned long long)positions);
    return engine_tensor_init(&cells->view, quant_type_by_id(QUANT_I32), 2,
                              (int64_t[]){c->n_ctx, c->n_seq}, cells->list, "cells", err);
}

static bool init_layers(struct model_cache *c, const struct model_params *p,
                        const struct model_cache_options *o, struct base_error *err)
{
    for (uint32_t i = 0; i < p->n_layer; i++) {
        const struct model_layer_params *l = &p->layer[i];
        struct model_cache_layer *layer = &c->layer[i];
        const uint32_t count = c->cells[layer->span].count;
        if (!init_tensor(c, &layer->k, ENGINE_KV_Q16_KEYS, o->type_k, l->n_head_kv,
                         p->n_embd_head_k, count, err) ||
            !init_tensor(c, &layer->v, ENGINE_KV_Q16_VALUES, o->type_v, l->n_head_kv,
                         p->n_embd_head_v, count, err))
            return false;
    }
    return true;
}

bool model_cache_init(struct model_cache *c, const struct model_params *p,
                      const struct model_cache_options *o, struct base_error *err)
{
    *c = (struct model_cache){.n_layer = p->n_layer,
                              .n_seq = o->n_seq,
                              .n_ctx = o->n_ctx,
                              .type_k = o->type_k->id,
                              .type_v = o->type_v->id,
                              .plan_only = o->plan_only};
    c->layer = calloc(p->n_layer, sizeof *c->layer);
    c->length = calloc(o->n_seq, sizeof *c->length);
    if (!c->layer || !c->length) {
        base_fail(err, BASE_NO_MEMORY, "no memory for %u layers and %u sequences", p->n_layer,
                  o->n_seq);
        goto fail;
    }
    for (uint32_t i = 0; i < p->n_layer; i++) {
        const uint32_t window = p->layer[i].window;
        c->layer[i].span = window ? MODEL_SPAN_WINDOW : MODEL_SPAN_FULL;
        if (window) c->window = window;
        const uint64_t ring =
            window ? least_u32(o->n_ctx, (uint64_t)window + o->n_batch) : o->n_ctx;
        c->cells[c->layer[i].span].ring = (uint32_t)((ring + ENGINE_KV_Q16_ALIGN - 1) /
                                                     ENGINE_KV_Q16_ALIGN * ENGINE_KV_Q16_ALIGN);
    }
    for (int span = 0; span < MODEL_SPAN_COUNT; span++)
        if (c->cells[span].ring && !init_cells(c, &c->cells[span], err)) goto fail;
    if (!init_layers(c, p, o, err)) goto fail;
    return true;

fail:
    model_cache_free(c);
    return false;
}

void model_cache_free(struct model_cache *c)
{
    for (uint32_t i = 0; c->layer && i < c->n_layer; i++) {
        give_bytes(&c->layer[i].k);
        give_bytes(&c->layer[i].v);
    }
    for (int span = 0; span < MODEL_SPAN_COUNT; span++) {
        free(c->cells[span].users);
        free(c->cells[span].oldest);
        free(c->cells[span].list);
    }
    free(c->layer);
    free(c->length);
    *c = (struct model_cache){0};
}

/* ---- Cells ---- */

static int32_t *list_of(const struct model_cache *c, const struct model_cells *cells, uint32_t seq)
{
    return cells->list + (size_t)seq * c->n_ctx;
}

static void let_go(struct model_cells *cells, int32_t *place)
{
    cells->users[*place]--;
    *place = -1;
}

/* A free cell, near where the sequence's own ones lie, and such that positions follow one another
 * in cells as ENGINE_KV_Q16_ALIGN asks: attention reads them faster so. Each sequence starts in a
 * stretch of the pool of its own, and comes back to it when it reaches the stretch's end: for a
 * windowed layer that is a ring. There always is a free cell, because no sequence holds more than
 * `ring`; an aligned one is wanted, not needed. */
static uint32_t take(struct model_cells *cells, uint32_t seq, uint32_t position, int32_t previous)
{
    const uint32_t home = seq * cells->ring, next = (uint32_t)(previous + 1);
    uint32_t cell =
        next > home && next < home + cells->ring ? next : home + position % ENGINE_KV_Q16_ALIGN;
    for (uint32_t i = 0; cells->users[cell] && i < cells->count; i += ENGINE_KV_Q16_ALIGN)
        cell = (cell + ENGINE_KV_Q16_ALIGN) % cells->count;
    while (cells->users[cell]) cell = (cell + 1) % cells->count;
    cells->users[cell] = 1;
    return cell;
}

void model_cache_append(struct model_cache *c, uint32_t seq)
{
    const uint32_t position = c->length[seq]++;
    for (int span = 0; span < MODEL_SPAN_COUNT; span++) {
        struct model_cells *cells = &c->cells[span];
        if (cells->count == 0) continue;
        int32_t *list = list_of(c, cells, seq);
        for (uint32_t *oldest = &cells->oldest[seq]; *oldest + cells->ring <= position; ++*oldest)
            let_go(cells, &list[*oldest]);
        list[position] = (int32_t)take(cells, seq, position, position ? list[position - 1] : -1);
    }
}

bool model_cache_holds(const struct model_cache *c, uint32_t seq, uint32_t length)
{
    /* The next token looks back window - 1 positions. */
    const uint32_t oldest = length + 1 > c->window ? length + 1 - c->window : 0;
    return c->window == 0 || length == 0 || oldest >= c->cells[MODEL_SPAN_WINDOW].oldest[seq];
}

void model_cache_truncate(struct model_cache *c, uint32_t seq, uint32_t length)
{
    for (int span = 0; span < MODEL_SPAN_COUNT; span++) {
        struct model_cells *cells = &c->cells[span];
        if (cells->count == 0) continue;
        int32_t *list = list_of(c, cells, seq);
        for (uint32_t j = c->length[seq]; j > length && j > cells->oldest[seq]; j--)
            let_go(cells, &list[j - 1]);
        if (length == 0) cells->oldest[seq] = 0;
    }
    c->length[seq] = length;
}

void model_cache_fork(struct model_cache *c, uint32_t from, uint32_t to, uint32_t length)
{
    for (int span = 0; span < MODEL_SPAN_COUNT; span++) {
        struct model_cells *cells = &c->cells[span];
        if (cells->count == 0) continue;
        const int32_t *theirs = list_of(c, cells, from);
        int32_t *list = list_of(c, cells, to);
        cells->oldest[to] = cells->oldest[from];
        for (uint32_t j = cells->oldest[from]; j < length; j++) {
            list[j] = theirs[j];
            cells->users[list[j]]++;
        }
    }
    c->length[to] = length;
}

/* ---- Inputs of a batch ---- */

int32_t model_cache_cell(const struct model_cache *c, enum model_span span, uint32_t seq,
                         uint32_t position)
{
    return list_of(c, &c->cells[span], seq)[position];
}

void model_cache_span(const struct model_cache *c, enum model_span span, uint32_t seq,
                      uint32_t position, int32_t row[4])
{
    const bool slid = span == MODEL_SPAN_WINDOW && position + 1 > c->window;
    row[0] = (int32_t)seq;
    row[1] = slid ? (int32_t)(position + 1 - c->window) : 0;
    row[2] = (int32_t)position + 1;
    row[3] = 0;
}

/* models/state/kv_cache.c: keys and values of several sequences. See models/state/kv_cache.h. */
#include "base/size.h"
#include "models/state/state.h"
#include <stdlib.h>

static uint32_t min_u32(uint32_t a, uint64_t b)
{
    return a < b ? a : (uint32_t)b;
}

/* ---- Life ---- */

/* Types of 16 bits an element are kept as the int16 form that attention makes of them. */
static bool is_int16(const struct quant_type *type)
{
    return type->block_len == 1 && type->block_bytes == 2;
}

/* One cache tensor [heads][slots][size], or its int16-quantized form. */
static bool init_tensor(struct model_state *s, struct engine_tensor *t, enum engine_kv_q16 what,
                        const struct quant_type *type, uint32_t heads, uint32_t size,
                        uint32_t slots, struct base_error *err)
{
    uint64_t row, bytes;
    if (!type->encode || size % type->block_len)
        return base_fail(err, BASE_USAGE,
                         "a cache of type %s does not fit heads of %u values (blocks of %u)",
                         type->name, size, type->block_len);
    int64_t ne[3] = {size, slots, heads};
    if (is_int16(type)) {
        type = quant_type_by_id(QUANT_I8);
        ne[0] = engine_kv_q16_bytes(what, size);
        ne[1] = slots / ENGINE_KV_Q16_GROUP;
    }
    if (!quant_row_bytes(type, (uint64_t)ne[0], &row) || !base_mul(row, (uint64_t)ne[1], &bytes) ||
        !base_mul(bytes, heads, &bytes))
        return base_fail(err, BASE_NO_MEMORY, "a cache of %u tokens is too large", slots);
    void *data = model_state_take(s, bytes);
    if (!data)
        return base_fail(err, BASE_NO_MEMORY,
                         "no memory for a cache of %u tokens (%llu bytes a layer)", slots,
                         (unsigned long long)bytes);
    if (!engine_tensor_init(t, type, 3, ne, data, "kv_cache", err)) {
        model_state_give(data, bytes);
        return false;
    }
    s->bytes += bytes;
    return true;
}

static bool init_slots(const struct model_state *s, struct model_kv_slots *slots,
                       struct base_error *err)
{
    uint64_t positions, count;
    if (!base_mul(s->n_seq, s->n_ctx, &positions) || !base_mul(s->n_seq, slots->capacity, &count) ||
        positions > INT32_MAX)
        return base_fail(err, BASE_NO_MEMORY, "%u sequences of %u tokens are too many", s->n_seq,
                         s->n_ctx);
    slots->count = (uint32_t)count;
    slots->refcount = calloc(count, sizeof *slots->refcount);
    slots->oldest = calloc(s->n_seq, sizeof *slots->oldest);
    /* Left to the system to clear when touched: a plan for a huge context must cost nothing. */
    slots->table = calloc((size_t)positions, sizeof *slots->table);
    if (!slots->refcount || !slots->oldest || !slots->table)
        return base_fail(err, BASE_NO_MEMORY, "no memory for %llu positions",
                         (unsigned long long)positions);
    return engine_tensor_init(&slots->view, quant_type_by_id(QUANT_I32), 2,
                              (int64_t[]){s->n_ctx, s->n_seq}, slots->table, "cells", err);
}

/* Which kinds there are, and how many slots each has. */
static void size_slots(struct model_kv *kv, const struct model_params *p,
                       const struct model_state_options *o)
{
    for (uint32_t i = 0; i < kv->n_layer; i++) {
        const struct model_kv_shape *shape = &p->layer[i % p->n_layer].kv;
        struct model_kv_layer *layer = &kv->layer[i];
        if (shape->n_head == 0) continue;
        layer->present = true;
        layer->kind = shape->window ? MODEL_KV_SLIDING : MODEL_KV_FULL;
        if (shape->window) kv->window = shape->window;
        if (shape->window) kv->chunked = shape->chunked;
        const uint64_t kept =
            shape->window ? min_u32(o->n_ctx, (uint64_t)shape->window + o->n_batch) : o->n_ctx;
        kv->slots[layer->kind].capacity = (uint32_t)((kept + ENGINE_KV_Q16_ALIGN - 1) /
                                                     ENGINE_KV_Q16_ALIGN * ENGINE_KV_Q16_ALIGN);
    }
}

static bool init(struct model_state *s, const struct model_params *p,
                 const struct model_state_options *o, struct base_error *err)
{
    struct model_kv *kv = &s->kv;
    *kv = (struct model_kv){.n_layer = p->n_layer * p->n_pass,
                            .type_k = o->type_k->id,
                            .type_v = o->type_v->id,
                            .int16_k = is_int16(o->type_k),
                            .int16_v = is_int16(o->type_v)};
    kv->layer = calloc(kv->n_layer, sizeof *kv->layer);
    if (!kv->layer) return base_fail(err, BASE_NO_MEMORY, "no memory for %u layers", kv->n_layer);
    size_slots(kv, p, o);
    for (int kind = 0; kind < MODEL_KV_KINDS; kind++)
        if (kv->slots[kind].capacity && !init_slots(s, &kv->slots[kind], err)) return false;
    for (uint32_t i = 0; i < kv->n_layer; i++) {
        const struct model_kv_shape *shape = &p->layer[i % p->n_layer].kv;
        struct model_kv_layer *layer = &kv->layer[i];
        const uint32_t count = kv->slots[layer->kind].count;
        if (layer->present && (!init_tensor(s, &layer->k, ENGINE_KV_Q16_KEYS, o->type_k,
                                            shape->n_head, shape->size_k, count, err) ||
                               !init_tensor(s, &layer->v, ENGINE_KV_Q16_VALUES, o->type_v,
                                            shape->n_head, shape->size_v, count, err)))
            return false;
    }
    return true;
}

static void free_kv(struct model_state *s)
{
    struct model_kv *kv = &s->kv;
    for (uint32_t i = 0; kv->layer && i < kv->n_layer; i++) {
        model_state_free_tensor(&kv->layer[i].k);
        model_state_free_tensor(&kv->layer[i].v);
    }
    for (int kind = 0; kind < MODEL_KV_KINDS; kind++) {
        free(kv->slots[kind].refcount);
        free(kv->slots[kind].oldest);
        free(kv->slots[kind].table);
    }
    free(kv->layer);
    *kv = (struct model_kv){0};
}

/* ---- Slots ---- */

static int32_t *table_of(const struct model_state *s, const struct model_kv_slots *slots,
                         uint32_t seq)
{
    return slots->table + (size_t)seq * s->n_ctx;
}

static void release(struct model_kv_slots *slots, int32_t *entry)
{
    slots->refcount[*entry]--;
    *entry = -1;
}

/* A free slot, near those of the sequence, and such that consecutive positions lie in slots as
 * ENGINE_KV_Q16_ALIGN says: attention reads them faster so. Each sequence starts in a range of the
 * pool of its own, and comes back to its start when it reaches the range's end: for a sliding layer
 * that is a ring. There always is a free slot, because no sequence holds more than `capacity`; an
 * aligned one is a preference. */
static uint32_t take(struct model_kv_slots *slots, uint32_t seq, uint32_t position,
                     int32_t previous)
{
    const uint32_t home = seq * slots->capacity, next = (uint32_t)(previous + 1);
    uint32_t slot =
        next > home && next < home + slots->capacity ? next : home + position % ENGINE_KV_Q16_ALIGN;
    for (uint32_t i = 0; slots->refcount[slot] && i < slots->count; i += ENGINE_KV_Q16_ALIGN)
        slot = (slot + ENGINE_KV_Q16_ALIGN) % slots->count;
    while (slots->refcount[slot]) slot = (slot + 1) % slots->count;
    slots->refcount[slot] = 1;
    return slot;
}

static void append_one(struct model_state *s, uint32_t seq, uint32_t position)
{
    for (int kind = 0; kind < MODEL_KV_KINDS; kind++) {
        struct model_kv_slots *slots = &s->kv.slots[kind];
        if (slots->count == 0) continue;
        int32_t *table = table_of(s, slots, seq);
        for (uint32_t *oldest = &slots->oldest[seq]; *oldest + slots->capacity <= position;
             ++*oldest)
            release(slots, &table[*oldest]);
        table[position] = (int32_t)take(slots, seq, position, position ? table[position - 1] : -1);
    }
}

/* The first position that sliding layers see from `position`. */
static uint32_t first_seen(const struct model_kv *kv, uint32_t position)
{
    if (kv->window == 0) return 0;
    if (kv->chunked) return position / kv->window * kv->window;
    return position + 1 > kv->window ? position + 1 - kv->window : 0;
}

static void append(struct model_state *s, uint32_t seq, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++) append_one(s, seq, s->length[seq] + i);
}

/* The sliding layers must still keep what the next token sees. */
static uint32_t held(const struct model_state *s, uint32_t seq, uint32_t length)
{
    const bool all = s->kv.window == 0 ||
                     first_seen(&s->kv, length) >= s->kv.slots[MODEL_KV_SLIDING].oldest[seq];
    return all ? length : 0;
}

static void truncate_kv(struct model_state *s, uint32_t seq, uint32_t length)
{
    for (int kind = 0; kind < MODEL_KV_KINDS; kind++) {
        struct model_kv_slots *slots = &s->kv.slots[kind];
        if (slots->count == 0) continue;
        int32_t *table = table_of(s, slots, seq);
        for (uint32_t j = s->length[seq]; j > length && j > slots->oldest[seq]; j--)
            release(slots, &table[j - 1]);
        if (length == 0) slots->oldest[seq] = 0;
    }
}

static void fork_kv(struct model_state *s, uint32_t from, uint32_t to, uint32_t length)
{
    for (int kind = 0; length > 0 && kind < MODEL_KV_KINDS; kind++) {
        struct model_kv_slots *slots = &s->kv.slots[kind];
        if (slots->count == 0) continue;
        const int32_t *theirs = table_of(s, slots, from);
        int32_t *table = table_of(s, slots, to);
        slots->oldest[to] = slots->oldest[from];
        for (uint32_t j = slots->oldest[from]; j < length; j++) {
            table[j] = theirs[j];
            slots->refcount[table[j]]++;
        }
    }
}

/* ---- Inputs of a batch ---- */

static void add_inputs(const struct model_state *s, struct engine_graph *g, uint32_t n_tokens,
                       uint32_t n_span, struct model_state_inputs *in)
{
    (void)n_span;
    for (int kind = 0; kind < MODEL_KV_KINDS; kind++) {
        if (s->kv.slots[kind].count == 0) continue;
        in->kv.slot[kind] = engine_input(g, QUANT_I32, 1, (int64_t[]){n_tokens}, "slot");
        in->kv.range[kind] = engine_input(g, QUANT_I32, 2, (int64_t[]){4, n_tokens}, "range");
    }
}

static void fill_inputs(const struct model_state *s, const struct model_state_inputs *in,
                        const struct model_place *at)
{
    const uint32_t position = at->position;
    for (int kind = 0; kind < MODEL_KV_KINDS; kind++) {
        if (!in->kv.slot[kind]) continue;
        int32_t *slot = (int32_t *)in->kv.slot[kind]->data + at->t;
        int32_t *range = (int32_t *)in->kv.range[kind]->data + 4 * (size_t)at->t;
        *slot = table_of(s, &s->kv.slots[kind], at->seq)[position];
        range[0] = (int32_t)at->seq;
        range[1] = kind == MODEL_KV_SLIDING ? (int32_t)first_seen(&s->kv, position) : 0;
        range[2] = (int32_t)position + 1;
        range[3] = 0;
    }
}

const struct model_state_kind model_state_kv = {.name = "kv",
                                                .init = init,
                                                .free = free_kv,
                                                .append = append,
                                                .held = held,
                                                .truncate = truncate_kv,
                                                .fork = fork_kv,
                                                .add_inputs = add_inputs,
                                                .fill_inputs = fill_inputs};

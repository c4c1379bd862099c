/* models/state/kv_cache.c: keys and values of several sequences. See models/state/kv_cache.h. */
#include "base/size.h"
#include "models/state/state.h"
#include <stdlib.h>
#include <string.h>

static uint32_t min_u32(uint32_t a, uint64_t b)
{
    return a < b ? a : (uint32_t)b;
}

/* ---- Creation ---- */

/* Whether positions, or blocks, of this kind have a part in the layer. */
static bool has_part(const struct model_kv_layer *layer, int kind, enum model_kv_part part)
{
    const bool of_blocks = (int)layer->blocks == kind, blocks = layer->blocks != MODEL_KV_KINDS;
    if (!layer->present || ((int)layer->kind != kind && !of_blocks)) return false;
    if (part == MODEL_KV_INDEX) return of_blocks == blocks;
    return !of_blocks || (part != MODEL_KV_OPEN && layer->kind == MODEL_KV_SLIDING);
}

/* Returns the number of slots of a part of a layer. */
static uint32_t slots_of(const struct model_kv *kv, const struct model_kv_layer *layer,
                         enum model_kv_part part)
{
    const bool of_blocks = layer->blocks != MODEL_KV_KINDS && has_part(layer, layer->blocks, part);
    const struct model_kv_slots *slots = &kv->slots[of_blocks ? layer->blocks : layer->kind];
    return slots->base + slots->count;
}

/* Initializes a part of a layer of this shape for values of `type`. Keys of an indexer, which are
 * few, are not quantized further than to F16. */
static bool init_part(struct model_state *s, struct model_kv_layer *layer, enum model_kv_part part,
                      const struct model_layer *of, const struct quant_type *type,
                      struct base_error *err)
{
    const struct model_kv_shape *shape = &of->kv;
    const uint32_t slots = slots_of(&s->kv, layer, part);
    const uint32_t sizes[] = {shape->size_k, shape->size_v, shape->size_index, shape->size_open};
    const enum engine_kv_q16 what =
        part == MODEL_KV_VALUES ? ENGINE_KV_Q16_VALUES : ENGINE_KV_Q16_KEYS;
    struct model_kv_rows *rows = &layer->part[part];
    if (sizes[part] == 0) return true;
    if (part == MODEL_KV_INDEX && type->id != QUANT_F32) type = quant_type_by_id(QUANT_F16);
    rows->type = type->id;
    if (part == MODEL_KV_OPEN) {
        rows->form = (struct engine_kv_form){.size = sizes[part],
                                             .rows = 1,
                                             .type = type,
                                             .elements = sizes[part],
                                             .bytes = sizes[part] * sizeof(float)};
    } else if (!engine_kv_form(of->place, what, type, sizes[part], &rows->form, err)) {
        return false;
    }
    const int64_t n_head = part >= MODEL_KV_INDEX ? 1 : shape->n_head;
    const int64_t ne[3] = {rows->form.elements, slots / rows->form.rows, n_head};
    s->kv.is_coded = s->kv.is_coded || rows->form.rows > 1;
    return model_state_tensor(s, &rows->t, of->place, rows->form.type, 3, ne, err);
}

static bool init_slots(const struct model_state *s, struct model_kv_slots *slots,
                       struct base_error *err)
{
    uint64_t positions, count;
    if (!base_mul(s->n_seq, slots->entries, &positions) ||
        !base_mul(s->n_seq, slots->capacity, &count) || positions > INT32_MAX)
        return base_fail(err, BASE_NO_MEMORY, "%u sequences of %u tokens are too many", s->n_seq,
                         s->n_ctx);
    slots->count = (uint32_t)count;
    slots->refcount = calloc(count, sizeof *slots->refcount);
    slots->oldest = calloc(s->n_seq, sizeof *slots->oldest);
    /* calloc gets zeroed pages from the operating system: a large context takes no physical memory
     * here. */
    slots->table = calloc((size_t)positions, sizeof *slots->table);
    if (!slots->refcount || !slots->oldest || !slots->table)
        return base_fail(err, BASE_NO_MEMORY, "no memory for %llu positions",
                         (unsigned long long)positions);
    return engine_tensor_init(&slots->view, quant_type_by_id(QUANT_I32), 2,
                              (int64_t[]){slots->entries, s->n_seq}, slots->table, "slots", err);
}

/* Returns the layer of the model that layer `i` of the state belongs to: those of all runs, then
 * those of a drafter. */
static const struct model_layer *layer_of(const struct model_params *p,
                                          const struct model_state_options *o, uint32_t i)
{
    return i < p->n_run ? &p->layer[model_run_layer(p, i)] : &o->drafter[i - p->n_run];
}

static uint32_t round_up(uint64_t n)
{
    return (uint32_t)((n + ENGINE_KV_Q16_ALIGN - 1) / ENGINE_KV_Q16_ALIGN * ENGINE_KV_Q16_ALIGN);
}

/* Sets the kind of the layer's compressed keys and the number of their slots. */
static void size_blocks(struct model_kv *kv, const struct model_kv_shape *shape,
                        struct model_kv_layer *layer, const struct model_state_options *o)
{
    if (shape->ratio == 0) return;
    layer->blocks = shape->overlaps ? MODEL_KV_FINE : MODEL_KV_COARSE;
    struct model_kv_slots *slots = &kv->slots[layer->blocks];
    slots->ratio = shape->ratio;
    slots->entries = o->n_ctx < shape->ratio ? 1 : o->n_ctx / shape->ratio;
    slots->capacity = round_up(slots->entries);
}

/* Returns how many positions before a token a layer with a window needs for it. */
static uint32_t needed(const struct model_kv_shape *shape)
{
    const uint32_t blocks = shape->ratio * (shape->overlaps ? 2 : 1);
    return shape->window > blocks ? shape->window : blocks;
}

/* Sets which kinds of layers the model has and the number of slots of each kind. */
static void size_slots(struct model_kv *kv, const struct model_params *p,
                       const struct model_state_options *o)
{
    const uint64_t batch =
        o->n_draft && o->n_batch < MODEL_DRAFTER_STEPS ? MODEL_DRAFTER_STEPS : o->n_batch;
    for (int kind = 0; kind < MODEL_KV_KINDS; kind++) {
        kv->slots[kind].ratio = 1;
        kv->slots[kind].entries = o->n_ctx;
    }
    for (uint32_t i = 0; i < kv->n_layer; i++) {
        const struct model_kv_shape *shape = &layer_of(p, o, i)->kv;
        struct model_kv_layer *layer = &kv->layer[i];
        layer->blocks = MODEL_KV_KINDS;
        if (shape->n_head == 0) continue;
        layer->present = true;
        layer->kind = shape->window ? MODEL_KV_SLIDING : MODEL_KV_FULL;
        if (shape->window) kv->window = shape->window;
        if (shape->window) kv->chunked = shape->chunked;
        const uint32_t need = needed(shape);
        const uint32_t seen =
            o->n_draft && need < MODEL_DRAFTER_PENDING ? MODEL_DRAFTER_PENDING : need;
        const uint32_t kept = round_up(shape->window ? min_u32(o->n_ctx, seen + batch) : o->n_ctx);
        struct model_kv_slots *slots = &kv->slots[layer->kind];
        if (kept > slots->capacity) slots->capacity = kept;
        size_blocks(kv, shape, layer, o);
    }
}

/* Lets layer i use the memory of an earlier one of the same shape. Returns whether there is one. */
static bool borrow(struct model_kv *kv, const struct model_params *p,
                   const struct model_state_options *o, uint32_t i)
{
    const struct model_layer *mine = layer_of(p, o, i);
    for (uint32_t k = 0; kv->both && k < i; k++) {
        const struct model_layer *other = layer_of(p, o, k);
        if (other->place != mine->place || kv->layer[k].kind != kv->layer[i].kind ||
            other->kv.n_head != mine->kv.n_head || other->kv.size_k != mine->kv.size_k ||
            other->kv.size_v != mine->kv.size_v || other->kv.size_index != mine->kv.size_index)
            continue;
        kv->layer[i] = kv->layer[k];
        return true;
    }
    return false;
}

static bool init(struct model_state *s, const struct model_params *p,
                 const struct model_state_options *o, struct base_error *err)
{
    struct model_kv *kv = &s->kv;
    *kv = (struct model_kv){.n_layer = p->n_run + o->n_draft, .both = p->bidirectional};
    kv->layer = calloc(kv->n_layer, sizeof *kv->layer);
    kv->draft_first = calloc(s->n_seq, sizeof *kv->draft_first);
    if (!kv->layer || !kv->draft_first)
        return base_fail(err, BASE_NO_MEMORY, "no memory for %u layers", kv->n_layer);
    size_slots(kv, p, o);
    for (int kind = 0; kind < MODEL_KV_KINDS; kind++)
        if (kv->slots[kind].capacity) {
            if (kind >= MODEL_KV_FINE) kv->slots[kind].base = kv->slots[MODEL_KV_SLIDING].count;
            if (!init_slots(s, &kv->slots[kind], err)) return false;
        }
    for (uint32_t i = 0; i < kv->n_layer; i++) {
        const struct model_layer *of = layer_of(p, o, i);
        struct model_kv_layer *layer = &kv->layer[i];
        if (!layer->present || borrow(kv, p, o, i)) continue;
        if (!init_part(s, layer, MODEL_KV_KEYS, of, o->type_k, err) ||
            !init_part(s, layer, MODEL_KV_VALUES, of, o->type_v, err) ||
            !init_part(s, layer, MODEL_KV_INDEX, of, o->type_k, err) ||
            !init_part(s, layer, MODEL_KV_OPEN, of, quant_type_by_id(QUANT_F32), err))
            return false;
    }
    return true;
}

static void free_kv(struct model_state *s)
{
    struct model_kv *kv = &s->kv;
    for (int kind = 0; kind < MODEL_KV_KINDS; kind++) {
        free(kv->slots[kind].refcount);
        free(kv->slots[kind].oldest);
        free(kv->slots[kind].table);
    }
    free(kv->draft_first);
    free(kv->layer);
    *kv = (struct model_kv){0};
}

/* ---- Slots ---- */

static int32_t *table_of(const struct model_kv_slots *slots, uint32_t seq)
{
    return slots->table + (size_t)seq * slots->entries;
}

static void release(struct model_kv_slots *slots, int32_t *entry)
{
    slots->refcount[(uint32_t)*entry - slots->base]--;
    *entry = -1;
}

/* Reserves a free slot near those of the sequence. If possible, consecutive positions have slots
 * that are aligned to ENGINE_KV_Q16_ALIGN, which attention reads faster. Each sequence has a range
 * of the pool and continues at the start of the range after its end, which makes a ring for sliding
 * layers. A free slot always exists, because no sequence holds more than `capacity`. */
static uint32_t take(struct model_kv_slots *slots, uint32_t seq, uint32_t position,
                     int32_t previous)
{
    const uint32_t home = seq * slots->capacity;
    const uint32_t next = previous < 0 ? 0 : (uint32_t)(previous + 1) - slots->base;
    uint32_t slot =
        next > home && next < home + slots->capacity ? next : home + position % ENGINE_KV_Q16_ALIGN;
    for (uint32_t i = 0; slots->refcount[slot] && i < slots->count; i += ENGINE_KV_Q16_ALIGN)
        slot = (slot + ENGINE_KV_Q16_ALIGN) % slots->count;
    while (slots->refcount[slot]) slot = (slot + 1) % slots->count;
    slots->refcount[slot] = 1;
    return slot + slots->base;
}

static void append_one(struct model_state *s, uint32_t seq, uint32_t position)
{
    for (int kind = 0; kind < MODEL_KV_KINDS; kind++) {
        struct model_kv_slots *slots = &s->kv.slots[kind];
        if (slots->count == 0 || (position + 1) % slots->ratio) continue;
        int32_t *table = table_of(slots, seq);
        const uint32_t at = position / slots->ratio;
        for (uint32_t *oldest = &slots->oldest[seq]; *oldest + slots->capacity <= at; ++*oldest)
            release(slots, &table[*oldest]);
        table[at] = (int32_t)take(slots, seq, at, at ? table[at - 1] : -1);
    }
}

/* Returns the first position that `position` attends to in sliding layers. */
static uint32_t first_seen(const struct model_kv *kv, uint32_t position)
{
    if (kv->window == 0) return 0;
    if (kv->chunked) return position / kv->window * kv->window;
    if (kv->both) return position > kv->window / 2 ? position - kv->window / 2 : 0;
    return position + 1 > kv->window ? position + 1 - kv->window : 0;
}

/* Returns the position after the last one that `position` attends to. The tokens of a span are
 * appended before this is called. */
static uint32_t end_seen(const struct model_state *s, int kind, uint32_t seq, uint32_t position)
{
    if (!s->kv.both) return position + 1;
    const uint32_t length = s->length[seq];
    if (kind != MODEL_KV_SLIDING || length - position <= s->kv.window / 2) return length;
    return position + s->kv.window / 2 + 1;
}

/* Returns the first position that layers with a window need for `position`: those that it attends
 * to, and those that make the key of its block. */
static uint32_t first_needed(const struct model_kv *kv, uint32_t position)
{
    uint32_t first = first_seen(kv, position);
    for (int kind = MODEL_KV_FINE; kind < MODEL_KV_KINDS; kind++) {
        const struct model_kv_slots *slots = &kv->slots[kind];
        if (slots->count == 0) continue;
        uint32_t block = position / slots->ratio;
        if (kind == MODEL_KV_FINE && block > 0) block--;
        if (block * slots->ratio < first) first = block * slots->ratio;
    }
    return first;
}

static void append(struct model_state *s, uint32_t seq, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++) append_one(s, seq, s->length[seq] + i);
}

/* A sequence can be cut back if sliding layers still hold the positions that the next token attends
 * to. */
static uint32_t held(const struct model_state *s, uint32_t seq, uint32_t length)
{
    const bool all = s->kv.window == 0 ||
                     first_needed(&s->kv, length) >= s->kv.slots[MODEL_KV_SLIDING].oldest[seq];
    return all ? length : 0;
}

static void truncate_kv(struct model_state *s, uint32_t seq, uint32_t length)
{
    for (int kind = 0; kind < MODEL_KV_KINDS; kind++) {
        struct model_kv_slots *slots = &s->kv.slots[kind];
        if (slots->count == 0) continue;
        int32_t *table = table_of(slots, seq);
        for (uint32_t j = s->length[seq] / slots->ratio;
             j > length / slots->ratio && j > slots->oldest[seq]; j--)
            release(slots, &table[j - 1]);
        if (length == 0) slots->oldest[seq] = 0;
    }
}

/* The rows of one head in a part of a layer. */
struct head_rows {
    const struct engine_tensor *t;
    const struct engine_kv_form *form;
    char *data;           /* of slot 0 */
    const int32_t *table; /* the sequence's slots by position */
    uint32_t n;           /* rows of a unit: consecutive slots from a multiple of n on */
    uint64_t bytes;       /* of a unit */
};

static char *unit_at(const struct head_rows *r, int32_t slot)
{
    return r->data + (uint64_t)slot / r->n * r->bytes;
}

/* Returns the rows of a head; the caller sets `table`. */
static struct head_rows rows_of(const struct model_kv_rows *part, int64_t head)
{
    return (struct head_rows){.t = &part->t,
                              .form = &part->form,
                              .data = part->t.data + head * part->t.nb[2],
                              .n = part->form.rows,
                              .bytes = part->form.bytes};
}

static void copy_row(const struct model_kv_rows *part, int32_t from, int32_t to)
{
    for (int64_t head = 0; part->t.data && head < part->t.ne[2]; head++) {
        const struct head_rows r = rows_of(part, head);
        engine_kv_copy(r.t->place, r.form, unit_at(&r, to), (uint32_t)to % r.n, unit_at(&r, from),
                       (uint32_t)from % r.n);
    }
}

/* Copies the content of a slot, in all layers of the kind. */
static void copy_slot(const struct model_kv *kv, int kind, int32_t from, int32_t to)
{
    for (uint32_t i = 0; i < kv->n_layer; i++) {
        const struct model_kv_layer *layer = &kv->layer[i];
        for (int part = 0; part < MODEL_KV_PARTS; part++)
            if (has_part(layer, kind, part)) copy_row(&layer->part[part], from, to);
    }
}

/* Both sequences share all slots but those of an incomplete last group of ENGINE_KV_Q16_ALIGN,
 * which are copied: `to` will fill the group, and attention reads complete groups in place. */
static void fork_kv(struct model_state *s, uint32_t from, uint32_t to, uint32_t length)
{
    const uint32_t n = s->kv.is_coded ? ENGINE_KV_Q16_ALIGN : 1;
    s->kv.draft_first[to] = s->kv.draft_first[from];
    for (int kind = 0; length > 0 && kind < MODEL_KV_KINDS; kind++) {
        struct model_kv_slots *slots = &s->kv.slots[kind];
        if (slots->count == 0) continue;
        const int32_t *theirs = table_of(slots, from);
        int32_t *table = table_of(slots, to), previous = -1;
        const uint32_t end = length / slots->ratio;
        slots->oldest[to] = slots->oldest[from];
        for (uint32_t j = slots->oldest[from]; j < end; j++) {
            if (j < end / n * n) {
                table[j] = theirs[j];
                slots->refcount[(uint32_t)table[j] - slots->base]++;
                continue;
            }
            table[j] = previous = (int32_t)take(slots, to, j, previous);
            copy_slot(&s->kv, kind, theirs[j], table[j]);
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
        if (kind < MODEL_KV_FINE) continue;
        in->kv.ended[kind] = engine_input(g, QUANT_I32, 2, (int64_t[]){4, n_tokens}, "ended");
        in->kv.start[kind] = engine_input(g, QUANT_I32, 1, (int64_t[]){n_tokens}, "start");
    }
}

/* Fills the inputs of a kind of blocks. */
static void fill_blocks(const struct model_state *s, const struct model_kv_inputs *in, int kind,
                        const struct model_place *at)
{
    const struct model_kv_slots *slots = &s->kv.slots[kind];
    const uint32_t end = at->position + 1, n = end / slots->ratio;
    const bool ends = end % slots->ratio == 0;
    const int32_t first = ends ? (int32_t)(end - slots->ratio) : 0;
    int32_t *range = (int32_t *)engine_input_data(in->range[kind]) + 4 * (size_t)at->t;
    int32_t *ended = (int32_t *)engine_input_data(in->ended[kind]) + 4 * (size_t)at->t;
    ((int32_t *)engine_input_data(in->slot[kind]))[at->t] =
        ends ? table_of(slots, at->seq)[n - 1] : -1;
    ((int32_t *)engine_input_data(in->start[kind]))[at->t] = first;
    range[0] = ended[0] = (int32_t)at->seq;
    range[1] = range[3] = ended[3] = 0;
    range[2] = (int32_t)n;
    ended[1] = first;
    ended[2] = ends ? (int32_t)end : 0;
}

static void fill_inputs(const struct model_state *s, const struct model_state_inputs *in,
                        const struct model_place *at)
{
    const uint32_t position = at->position;
    for (int kind = 0; kind < MODEL_KV_KINDS; kind++) {
        if (!in->kv.slot[kind]) continue;
        if (kind >= MODEL_KV_FINE) {
            fill_blocks(s, &in->kv, kind, at);
            continue;
        }
        int32_t *slot = (int32_t *)engine_input_data(in->kv.slot[kind]) + at->t;
        int32_t *range = (int32_t *)engine_input_data(in->kv.range[kind]) + 4 * (size_t)at->t;
        *slot = table_of(&s->kv.slots[kind], at->seq)[position];
        const uint32_t end = end_seen(s, kind, at->seq, position);
        range[0] = (int32_t)at->seq;
        range[1] = kind == MODEL_KV_SLIDING ? (int32_t)first_seen(&s->kv, position)
                   : s->cross.layer         ? (int32_t)s->cross.source[at->seq]
                                            : 0;
        range[2] = (int32_t)end;
        range[3] = (int32_t)(end - 1 - position);
    }
}

/* ---- Saving and loading ----
 *
 * The bytes are those of layers that attend to all positions, then of those with a window,
 * then of those with compressed keys:
 *
 *     [blocks of BLOCK positions][layer][keys, values, index][head][positions of the block]
 *
 * so that the bytes begin with the beginning of the sequence. A drafter's layers have positions
 * from draft_first on. Positions are rows as in the cache. An int16-quantized cache has groups of
 * ENGINE_KV_Q16_GROUP positions from a multiple of that on, with zeros for positions that the
 * sequence does not keep. */

enum { BLOCK = 32 };

static uint64_t n_units(const struct head_rows *r, uint32_t first, uint32_t end)
{
    return first < end ? (uint64_t)(end - 1) / r->n - first / r->n + 1 : 0;
}

/* Returns the number of positions from `first` on, below `end`, whose units are complete and
 * consecutive in memory. */
static uint32_t whole_units(const struct head_rows *r, uint32_t first, uint32_t end)
{
    uint32_t n = 1;
    if (first % r->n || (uint32_t)r->table[first] % r->n) return 0;
    while (first + n < end && r->table[first + n] == r->table[first + n - 1] + 1) n++;
    return n / r->n * r->n;
}

/* This machine's memory for units of the largest layer. */
struct images {
    char *unit;  /* one, in which positions are where the file has them */
    char *slots; /* BLOCK, as in the cache */
};

/* Copies the rows of positions [first, end) of one unit to an image of the unit (saves), or from
 * it. */
static void copy_rows(const struct head_rows *r, uint32_t first, uint32_t end,
                      const struct images *images, bool saves)
{
    for (uint32_t p = first; p < end; p++) {
        const uint32_t row = (uint32_t)r->table[p] % r->n;
        char *unit = unit_at(r, r->table[p]);
        char *here = (char *)model_state_get(r->t, unit, r->bytes, images->slots);
        if (saves) {
            engine_kv_copy(NULL, r->form, images->unit, p % r->n, here, row);
        } else {
            engine_kv_copy(NULL, r->form, here, row, images->unit, p % r->n);
            model_state_put(r->t, unit, here, r->bytes);
        }
    }
}

static bool save_rows(const struct head_rows *r, uint32_t first, uint32_t end,
                      const struct images *images, const struct model_sink *to,
                      struct base_error *err)
{
    while (first < end) {
        const uint32_t whole = whole_units(r, first, end), next = (first / r->n + 1) * r->n;
        const uint32_t stop = whole ? first + whole : next < end ? next : end;
        const uint64_t bytes = n_units(r, first, stop) * r->bytes;
        const char *from = images->unit;
        if (whole) {
            from = model_state_get(r->t, unit_at(r, r->table[first]), bytes, images->slots);
        } else {
            memset(images->unit, 0, (size_t)r->bytes);
            copy_rows(r, first, stop, images, true);
        }
        if (!to->write(to->user, from, bytes, err)) return false;
        first = stop;
    }
    return true;
}

static bool load_rows(const struct head_rows *r, uint32_t first, uint32_t end,
                      const struct images *images, const struct model_state_reader *from,
                      struct base_error *err)
{
    while (first < end) {
        const uint32_t whole = whole_units(r, first, end), next = (first / r->n + 1) * r->n;
        const uint32_t stop = whole ? first + whole : next < end ? next : end;
        const uint64_t bytes = n_units(r, first, stop) * r->bytes;
        char *unit = unit_at(r, r->table[first]);
        void *to = whole ? model_state_room(r->t, unit, images->slots) : images->unit;
        if (!model_state_read(from, to, bytes, err)) return false;
        if (whole)
            model_state_put(r->t, unit, to, bytes);
        else
            copy_rows(r, first, stop, images, false);
        first = stop;
    }
    return true;
}

/* [first, end): the positions that are saved; [from, to): those of them that are loaded. */
struct saved_range {
    uint32_t first, end, from, to;
};

static struct saved_range in_block(struct saved_range p, uint32_t block)
{
    const uint32_t end = p.end - block < BLOCK ? p.end : block + BLOCK;
    struct saved_range b = {p.first > block ? p.first : block, end, p.from > block ? p.from : block,
                            p.to < end ? p.to : end};
    if (b.from >= b.to) b.from = b.to = b.first;
    return b;
}

static bool load_range(const struct head_rows *r, struct saved_range p, const struct images *images,
                       const struct model_state_reader *from, struct base_error *err)
{
    const uint64_t all = n_units(r, p.first, p.end), read = n_units(r, p.from, p.to);
    const uint64_t before = read ? p.from / r->n - p.first / r->n : 0;
    return (before == 0 || model_state_skip(from, before * r->bytes, err)) &&
           load_rows(r, p.from, p.to, images, from, err) &&
           (before + read == all || model_state_skip(from, (all - before - read) * r->bytes, err));
}

/* Writes, or reads, a part of one layer and block. */
static bool move_part(const struct model_kv_rows *part, const int32_t *table, struct saved_range p,
                      const struct images *images, const struct model_sink *to,
                      const struct model_state_reader *from, struct base_error *err)
{
    for (int64_t head = 0; part->t.data && head < part->t.ne[2]; head++) {
        struct head_rows r = rows_of(part, head);
        r.table = table;
        if (!(from ? load_range(&r, p, images, from, err)
                   : save_rows(&r, p.first, p.end, images, to, err)))
            return false;
    }
    return true;
}

/* Returns the positions of p that layer i has, if a drafter's layers begin at draft_first. */
static struct saved_range of_layer(const struct model_state *s, uint32_t i, struct saved_range p,
                                   uint32_t draft_first)
{
    const bool later = i >= s->kv.n_layer - s->n_draft;
    if (later && p.first < draft_first) p.first = draft_first;
    if (later && p.from < draft_first) p.from = draft_first;
    return p;
}

/* Writes the layers of a kind, or reads them if `from` is not NULL. */
static bool move_kind(const struct model_state *s, enum model_kv_kind kind, const int32_t *table,
                      struct saved_range p, uint32_t draft_first, const struct images *images,
                      const struct model_sink *to, const struct model_state_reader *from,
                      struct base_error *err)
{
    uint32_t first = p.end; /* the first position of any layer; blocks before it have no bytes */
    for (uint32_t i = 0; i < s->kv.n_layer; i++) {
        const struct model_kv_layer *layer = &s->kv.layer[i];
        const uint32_t from_here = of_layer(s, i, p, draft_first).first;
        /* Blocks may have only keys of an indexer. */
        const bool has =
            has_part(layer, kind, MODEL_KV_KEYS) || has_part(layer, kind, MODEL_KV_INDEX);
        if (has && from_here < first) first = from_here;
    }
    for (uint32_t block = first / BLOCK * BLOCK; block < p.end; block += BLOCK)
        for (uint32_t i = 0; i < s->kv.n_layer; i++) {
            const struct model_kv_layer *layer = &s->kv.layer[i];
            const struct saved_range b = in_block(of_layer(s, i, p, draft_first), block);
            for (int k = 0; k < MODEL_KV_PARTS; k++)
                if (has_part(layer, kind, k) &&
                    !move_part(&layer->part[k], table, b, images, to, from, err))
                    return false;
        }
    return true;
}

/* Allocates images; the caller frees them by images_free, also after a failure. */
static bool images_new(struct images *images, const struct model_kv *kv, struct base_error *err)
{
    uint64_t bytes = 64;
    bool apart = false;
    for (uint32_t i = 0; i < kv->n_layer; i++) {
        const struct model_kv_rows *part = kv->layer[i].part;
        for (int k = 0; k < MODEL_KV_PARTS; k++)
            if (part[k].form.bytes > bytes) bytes = part[k].form.bytes;
        apart = apart || (kv->layer[i].present && engine_tensor_place(&part[0].t) > 0);
    }
    bytes = (bytes + 63) / 64 * 64;
    images->unit = aligned_alloc(64, bytes);
    images->slots = apart ? aligned_alloc(64, bytes * BLOCK) : NULL;
    return (images->unit && (images->slots || !apart)) ||
           base_fail(err, BASE_NO_MEMORY, "no memory to save or load a sequence");
}

static void images_free(struct images *images)
{
    free(images->unit);
    free(images->slots);
}

static void outline(const struct model_state *s, uint32_t seq, struct model_state_outline *o)
{
    for (int kind = 0; kind < MODEL_KV_KINDS; kind++)
        o->oldest[kind] = s->kv.slots[kind].count ? s->kv.slots[kind].oldest[seq] : 0;
    o->draft_first = s->kv.draft_first[seq];
}

static uint32_t loadable(const struct model_state *s, const struct model_state_outline *o,
                         uint32_t length)
{
    for (int kind = 0; kind < MODEL_KV_KINDS; kind++)
        if (o->oldest[kind] > o->length || (kind != MODEL_KV_SLIDING && o->oldest[kind])) return 0;
    if (s->kv.slots[MODEL_KV_SLIDING].count == 0) return o->oldest[MODEL_KV_SLIDING] ? 0 : length;
    return first_needed(&s->kv, length) >= o->oldest[MODEL_KV_SLIDING] ? length : 0;
}

static bool save(const struct model_state *s, uint32_t seq, const struct model_sink *to,
                 struct base_error *err)
{
    struct images images;
    bool ok = images_new(&images, &s->kv, err);
    for (int kind = 0; ok && kind < MODEL_KV_KINDS; kind++) {
        const struct model_kv_slots *slots = &s->kv.slots[kind];
        if (slots->count == 0) continue;
        const struct saved_range p = {.first = slots->oldest[seq],
                                      .end = s->length[seq] / slots->ratio};
        ok = move_kind(s, kind, table_of(slots, seq), p, s->kv.draft_first[seq], &images, to, NULL,
                       err);
    }
    images_free(&images);
    return ok;
}

/* Returns which of the saved positions to load. */
static struct saved_range loaded(const struct model_kv_slots *slots,
                                 const struct model_state_outline *o, enum model_kv_kind kind,
                                 uint32_t length)
{
    length /= slots->ratio;
    struct saved_range p = {
        .first = o->oldest[kind], .end = o->length / slots->ratio, .to = length};
    p.from = length > slots->capacity ? length - slots->capacity : 0;
    if (p.from < p.first) p.from = p.first;
    return p;
}

/* Returns a reader's share of these positions: consecutive complete blocks. */
static struct saved_range share_of(struct saved_range p, const struct model_state_reader *r)
{
    if (p.from >= p.to) return p;
    const uint64_t first = p.from / BLOCK, n = (p.to - 1) / BLOCK - first + 1;
    const uint64_t from = (first + n * r->part / r->n_parts) * BLOCK;
    const uint64_t to = (first + n * (r->part + 1) / r->n_parts) * BLOCK;
    if (p.from < from) p.from = (uint32_t)from;
    if (p.to > to) p.to = (uint32_t)to;
    return p;
}

static void make_room(struct model_state *s, uint32_t seq, uint32_t length,
                      const struct model_state_outline *o)
{
    s->kv.draft_first[seq] = o->draft_first;
    for (int kind = 0; kind < MODEL_KV_KINDS; kind++) {
        struct model_kv_slots *slots = &s->kv.slots[kind];
        if (slots->count == 0) continue;
        int32_t *table = table_of(slots, seq);
        const uint32_t first = slots->oldest[seq] = loaded(slots, o, kind, length).from;
        for (uint32_t p = first; p < length / slots->ratio; p++)
            table[p] = (int32_t)take(slots, seq, p, p > first ? table[p - 1] : -1);
    }
}

static bool load(struct model_state *s, uint32_t seq, uint32_t length,
                 const struct model_state_outline *o, const struct model_state_reader *from,
                 struct base_error *err)
{
    struct images images;
    bool ok = images_new(&images, &s->kv, err);
    for (int kind = 0; ok && kind < MODEL_KV_KINDS; kind++) {
        const struct model_kv_slots *slots = &s->kv.slots[kind];
        if (slots->count == 0) continue;
        const struct saved_range p = share_of(loaded(slots, o, kind, length), from);
        ok = move_kind(s, kind, table_of(slots, seq), p, o->draft_first, &images, NULL, from, err);
    }
    images_free(&images);
    return ok;
}

const struct model_state_kind model_state_kv = {.name = "kv",
                                                .init = init,
                                                .free = free_kv,
                                                .append = append,
                                                .held = held,
                                                .truncate = truncate_kv,
                                                .fork = fork_kv,
                                                .add_inputs = add_inputs,
                                                .fill_inputs = fill_inputs,
                                                .outline = outline,
                                                .loadable = loadable,
                                                .save = save,
                                                .make_room = make_room,
                                                .load = load};

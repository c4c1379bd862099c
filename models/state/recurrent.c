/* models/state/recurrent.c: convolution and recurrent states. See models/state/recurrent.h. */
#include "base/size.h"
#include "models/state/state.h"
#include <stdlib.h>
#include <string.h>

/* A sequence has as many snapshots as fit into SNAPSHOT_BYTES, but at least MIN_SNAPSHOTS and at
 * most MODEL_SNAPSHOTS_MAX, including the current state and its predecessor. */
enum { MIN_SNAPSHOTS = 4, SNAPSHOT_BYTES = 256 * 1024 * 1024 };

/* ---- Creation ---- */

static bool size_slot(const struct model_params *p, uint64_t *bytes, struct base_error *err)
{
    *bytes = 0;
    for (uint32_t i = 0; i < p->n_layer; i++) {
        const struct model_recurrent_shape *shape = &p->layer[i].recurrent;
        uint64_t conv, state, front;
        if (!base_mul(shape->front_columns, shape->front_channels, &front) ||
            !base_mul(shape->conv_columns, shape->conv_channels, &conv) ||
            !base_mul(shape->n_head, shape->rows, &state) ||
            !base_mul(state, shape->cols, &state) || !base_add(conv, state, &state) ||
            !base_add(state, shape->shift_channels, &state) || !base_add(state, front, &state) ||
            !base_mul(state, sizeof(float), &state) || !base_add(*bytes, state, bytes))
            return base_fail(err, BASE_NO_MEMORY, "the recurrent states are too large");
    }
    return true;
}

/* Initializes a tensor of states, unless its shape is empty. */
static bool init_tensor(struct model_state *s, struct engine_tensor *t,
                        const struct engine_place *place, const int64_t ne[ENGINE_DIMS],
                        struct base_error *err)
{
    for (int d = 0; d < ENGINE_DIMS; d++)
        if (ne[d] == 0) return true;
    return model_state_tensor(s, t, place, quant_type_by_id(QUANT_F32), ENGINE_DIMS, ne, err);
}

static bool init(struct model_state *s, const struct model_params *p,
                 const struct model_state_options *o, struct base_error *err)
{
    struct model_recurrent *r = &s->recurrent;
    uint64_t slot, list;
    *r = (struct model_recurrent){.n_layer = p->n_layer};
    if (!size_slot(p, &slot, err)) return false;
    if (slot == 0) return true;
    const uint64_t fit = SNAPSHOT_BYTES / slot;
    r->capacity = fit < MIN_SNAPSHOTS         ? MIN_SNAPSHOTS
                  : fit > MODEL_SNAPSHOTS_MAX ? MODEL_SNAPSHOTS_MAX
                                              : (uint32_t)fit;
    if (!base_mul(o->n_seq, r->capacity, &list) || list >= INT32_MAX)
        return base_fail(err, BASE_NO_MEMORY, "%u sequences are too many", o->n_seq);
    r->count = (uint32_t)list + 1;
    r->layer = calloc(p->n_layer, sizeof *r->layer);
    r->refcount = calloc(r->count, sizeof *r->refcount);
    r->snapshot = calloc(list, sizeof *r->snapshot);
    r->n_snapshot = calloc(o->n_seq, sizeof *r->n_snapshot);
    r->start = calloc(o->n_seq, sizeof *r->start);
    if (!r->layer || !r->refcount || !r->snapshot || !r->n_snapshot || !r->start)
        return base_fail(err, BASE_NO_MEMORY, "no memory for states of %u sequences", o->n_seq);
    for (uint32_t i = 0; i < p->n_layer; i++) {
        const struct model_recurrent_shape *shape = &p->layer[i].recurrent;
        const int64_t conv[] = {shape->conv_channels, shape->conv_columns, 1, r->count};
        const int64_t state[] = {shape->cols, shape->rows, shape->n_head, r->count};
        const int64_t shift[] = {shape->shift_channels, 1, 1, r->count};
        const int64_t front[] = {shape->front_channels, shape->front_columns, 1, r->count};
        const struct engine_place *place = p->layer[i].place;
        if (!init_tensor(s, &r->layer[i].conv, place, conv, err) ||
            !init_tensor(s, &r->layer[i].state, place, state, err) ||
            !init_tensor(s, &r->layer[i].shift, place, shift, err) ||
            !init_tensor(s, &r->layer[i].front, place, front, err))
            return false;
    }
    return true;
}

static void free_recurrent(struct model_state *s)
{
    struct model_recurrent *r = &s->recurrent;
    free(r->layer);
    free(r->refcount);
    free(r->snapshot);
    free(r->n_snapshot);
    free(r->start);
    *r = (struct model_recurrent){0};
}

/* ---- Snapshots ---- */

static struct model_snapshot *list_of(const struct model_recurrent *r, uint32_t seq)
{
    return r->snapshot + (size_t)seq * r->capacity;
}

static void drop(struct model_recurrent *r, uint32_t seq, uint32_t i)
{
    struct model_snapshot *list = list_of(r, seq);
    r->refcount[list[i].slot]--;
    memmove(list + i, list + i + 1, (--r->n_snapshot[seq] - i) * sizeof *list);
}

/* Returns whether a snapshot may be evicted: not the last one, which the next run reads, nor the
 * one at the batch's start. */
static bool may_go(const struct model_recurrent *r, uint32_t seq, uint32_t i)
{
    return i + 1 < r->n_snapshot[seq] && list_of(r, seq)[i].length != r->start[seq];
}

/* Evicts the snapshot that takes the fewest tokens to recompute. */
static void thin_out(struct model_recurrent *r, uint32_t seq)
{
    const struct model_snapshot *list = list_of(r, seq);
    const uint32_t n = r->n_snapshot[seq];
    uint32_t best = 0, best_cost = UINT32_MAX;
    for (uint32_t i = 0; i + 1 < n; i++) {
        const uint32_t cost = list[i].length - (i ? list[i - 1].length : 0);
        if (may_go(r, seq, i) && cost < best_cost) {
            best = i;
            best_cost = cost;
        }
    }
    drop(r, seq, best);
}

/* Reserves a free slot. One always exists: no sequence has more than `capacity` snapshots. */
static int32_t take(struct model_recurrent *r)
{
    uint32_t slot = 1;
    while (r->refcount[slot]) slot++;
    r->refcount[slot] = 1;
    return (int32_t)slot;
}

static void begin(struct model_state *s)
{
    for (uint32_t seq = 0; s->recurrent.capacity && seq < s->n_seq; seq++)
        s->recurrent.start[seq] = s->length[seq];
}

static void append(struct model_state *s, uint32_t seq, uint32_t n)
{
    struct model_recurrent *r = &s->recurrent;
    if (r->capacity == 0) return;
    struct model_snapshot *list = list_of(r, seq);
    uint32_t *count = &r->n_snapshot[seq];
    for (uint32_t i = *count; i-- > 0;)
        if (may_go(r, seq, i) && !list[i].border) drop(r, seq, i);
    if (*count == r->capacity) thin_out(r, seq);
    if (*count && n > 1) list[*count - 1].border = true;
    list[(*count)++] =
        (struct model_snapshot){.length = s->length[seq] + n, .slot = take(r), .border = n > 1};
}

static uint32_t held(const struct model_state *s, uint32_t seq, uint32_t length)
{
    const struct model_recurrent *r = &s->recurrent;
    if (r->capacity == 0) return length;
    for (uint32_t i = r->n_snapshot[seq]; i-- > 0;)
        if (list_of(r, seq)[i].length <= length) return list_of(r, seq)[i].length;
    return 0;
}

static void truncate_recurrent(struct model_state *s, uint32_t seq, uint32_t length)
{
    struct model_recurrent *r = &s->recurrent;
    if (r->capacity == 0) return;
    for (uint32_t i = r->n_snapshot[seq]; i-- > 0;)
        if (list_of(r, seq)[i].length > length) drop(r, seq, i);
}

static void fork_recurrent(struct model_state *s, uint32_t from, uint32_t to, uint32_t length)
{
    struct model_recurrent *r = &s->recurrent;
    if (r->capacity == 0) return;
    for (uint32_t i = 0; i < r->n_snapshot[from]; i++) {
        const struct model_snapshot *theirs = &list_of(r, from)[i];
        if (theirs->length > length) break;
        list_of(r, to)[r->n_snapshot[to]++] = *theirs;
        r->refcount[theirs->slot]++;
    }
}

/* ---- Inputs of a run ---- */

static void add_inputs(const struct model_state *s, struct engine_graph *g, uint32_t n_tokens,
                       uint32_t n_span, struct model_state_inputs *in)
{
    (void)n_tokens;
    if (s->recurrent.capacity == 0) return;
    in->spans = engine_input(g, QUANT_I32, 2, (int64_t[]){4, n_span}, "spans");
}

static void fill_inputs(const struct model_state *s, const struct model_state_inputs *in,
                        const struct model_place *at)
{
    const struct model_recurrent *r = &s->recurrent;
    if (r->capacity == 0) return;
    const struct model_snapshot *list = list_of(r, at->seq),
                                *now = list + r->n_snapshot[at->seq] - 1;
    const struct model_snapshot *before = now > list ? now - 1 : NULL;
    const uint32_t length = before ? before->length : 0;
    if (at->position != length) return; /* only the first token of a span sets its inputs */
    int32_t *span = (int32_t *)engine_input_data(in->spans) + 4 * (size_t)at->span;
    span[0] = (int32_t)at->t;
    span[1] = (int32_t)(now->length - length);
    span[2] = before ? before->slot : 0;
    span[3] = now->slot;
}

/* ---- Saving and loading ---- */

enum { PARTS = 4 };

/* Returns tensor i < n_layer * PARTS of the states. */
static const struct engine_tensor *part_of(const struct model_recurrent *r, uint32_t i)
{
    const struct model_recurrent_layer *l = &r->layer[i / PARTS];
    const struct engine_tensor *const part[PARTS] = {&l->conv, &l->state, &l->shift, &l->front};
    return part[i % PARTS];
}

static uint64_t slot_bytes(const struct model_recurrent *r, const struct engine_tensor *t)
{
    return t->data ? (uint64_t)engine_tensor_bytes(t) / r->count : 0;
}

static void outline(const struct model_state *s, uint32_t seq, struct model_state_outline *o)
{
    const struct model_recurrent *r = &s->recurrent;
    o->n_snapshot = r->capacity ? r->n_snapshot[seq] : 0;
    for (uint32_t i = 0; i < o->n_snapshot; i++) o->snapshot[i] = list_of(r, seq)[i].length;
}

static uint32_t loadable(const struct model_state *s, const struct model_state_outline *o,
                         uint32_t length)
{
    if (s->recurrent.capacity == 0) return o->n_snapshot ? 0 : length;
    for (uint32_t i = o->n_snapshot; i-- > 0;)
        if (o->snapshot[i] <= length) return o->snapshot[i];
    return 0;
}

/* Writes the data of a sequence's snapshots, or reads it if `from` is not NULL. */
static bool move_snapshots(const struct model_recurrent *r, uint32_t seq,
                           const struct model_sink *to, const struct model_state_reader *from,
                           struct base_error *err)
{
    for (uint32_t n = 0; n < r->n_snapshot[seq]; n++)
        for (uint32_t i = 0; i < r->n_layer * PARTS; i++) {
            const struct engine_tensor *t = part_of(r, i);
            const uint64_t bytes = slot_bytes(r, t);
            char *data = t->data + (uint64_t)list_of(r, seq)[n].slot * bytes;
            if (!model_state_move(t, data, bytes, to, from, err)) return false;
        }
    return true;
}

static bool save(const struct model_state *s, uint32_t seq, const struct model_sink *to,
                 struct base_error *err)
{
    const struct model_recurrent *r = &s->recurrent;
    return r->capacity == 0 || move_snapshots(r, seq, to, NULL, err);
}

/* Returns the number of saved snapshots up to `length`. */
static uint32_t count_saved(const struct model_state_outline *o, uint32_t length)
{
    uint32_t n = 0;
    while (n < o->n_snapshot && o->snapshot[n] <= length) n++;
    return n;
}

static void make_room(struct model_state *s, uint32_t seq, uint32_t length,
                      const struct model_state_outline *o)
{
    struct model_recurrent *r = &s->recurrent;
    const uint32_t n = count_saved(o, length);
    for (uint32_t i = n > r->capacity ? n - r->capacity : 0; r->capacity && i < n; i++)
        list_of(r, seq)[r->n_snapshot[seq]++] =
            (struct model_snapshot){.length = o->snapshot[i], .slot = take(r), .border = true};
}

static bool load(struct model_state *s, uint32_t seq, uint32_t length,
                 const struct model_state_outline *o, const struct model_state_reader *from,
                 struct base_error *err)
{
    const struct model_recurrent *r = &s->recurrent;
    uint64_t bytes = 0;
    if (r->capacity == 0 || from->part > 0) return true; /* the first reader reads everything */
    for (uint32_t i = 0; i < r->n_layer * PARTS; i++) bytes += slot_bytes(r, part_of(r, i));
    for (uint32_t i = r->n_snapshot[seq]; i < count_saved(o, length); i++)
        if (!model_state_skip(from, bytes, err)) return false;
    return move_snapshots(r, seq, NULL, from, err);
}

const struct model_state_kind model_state_recurrent = {.name = "recurrent",
                                                       .init = init,
                                                       .free = free_recurrent,
                                                       .begin = begin,
                                                       .append = append,
                                                       .held = held,
                                                       .truncate = truncate_recurrent,
                                                       .fork = fork_recurrent,
                                                       .add_inputs = add_inputs,
                                                       .fill_inputs = fill_inputs,
                                                       .outline = outline,
                                                       .loadable = loadable,
                                                       .save = save,
                                                       .make_room = make_room,
                                                       .load = load};

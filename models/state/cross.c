/* models/state/cross.c: see models/state/cross.h. */
#include "base/size.h"
#include "models/state/state.h"
#include <stdlib.h>

static bool init(struct model_state *s, const struct model_params *p,
                 const struct model_state_options *o, struct base_error *err)
{
    struct model_cross *c = &s->cross;
    uint64_t slots;
    *c = (struct model_cross){.n_layer = p->n_layer};
    if (p->n_source == 0) return true;
    if (!base_mul(o->n_seq, o->n_ctx, &slots) || slots > INT32_MAX)
        return base_fail(err, BASE_NO_MEMORY, "%u sequences of %u tokens are too many", o->n_seq,
                         o->n_ctx);
    c->layer = calloc(p->n_layer, sizeof *c->layer);
    c->source = calloc(o->n_seq, sizeof *c->source);
    c->region = calloc(o->n_seq, sizeof *c->region);
    c->refcount = calloc(o->n_seq, sizeof *c->refcount);
    c->table = calloc(slots, sizeof *c->table);
    if (!c->layer || !c->source || !c->region || !c->refcount || !c->table)
        return base_fail(err, BASE_NO_MEMORY, "no memory for texts of %u sequences", o->n_seq);
    for (uint32_t i = 0; i < p->n_layer; i++) {
        const struct model_layer *l = &p->layer[i];
        const struct quant_type *f32 = quant_type_by_id(QUANT_F32);
        if (!model_state_tensor(s, &c->layer[i].k, l->place, f32, 2,
                                (int64_t[]){l->n_cross_k, (int64_t)slots}, err) ||
            !model_state_tensor(s, &c->layer[i].v, l->place, f32, 2,
                                (int64_t[]){l->n_cross_v, (int64_t)slots}, err))
            return false;
    }
    return engine_tensor_init(&c->view, quant_type_by_id(QUANT_I32), 2,
                              (int64_t[]){o->n_ctx, o->n_seq}, c->table, "sources", err);
}

static void free_cross(struct model_state *s)
{
    struct model_cross *c = &s->cross;
    free(c->layer);
    free(c->source);
    free(c->region);
    free(c->refcount);
    free(c->table);
    *c = (struct model_cross){0};
}

/* Lets a sequence without a source name a region, for a source of n tokens. */
static void name_region(struct model_state *s, uint32_t seq, uint32_t region, uint32_t n)
{
    struct model_cross *c = &s->cross;
    c->refcount[region]++;
    c->region[seq] = region;
    c->source[seq] = n;
    for (uint32_t j = 0; j < n; j++)
        c->table[(size_t)seq * s->n_ctx + j] = (int32_t)(region * s->n_ctx + j);
}

/* Returns a free region. One exists: there are as many as sequences, one of which has none. */
static uint32_t free_region(const struct model_cross *c)
{
    uint32_t region = 0;
    while (c->refcount[region]) region++;
    return region;
}

static void append(struct model_state *s, uint32_t seq, uint32_t n)
{
    if (s->cross.layer && s->length[seq] == 0) name_region(s, seq, free_region(&s->cross), n);
}

static uint32_t held(const struct model_state *s, uint32_t seq, uint32_t length)
{
    return s->cross.layer && length < s->cross.source[seq] ? 0 : length;
}

static void truncate_cross(struct model_state *s, uint32_t seq, uint32_t length)
{
    struct model_cross *c = &s->cross;
    if (!c->layer || length > 0 || c->source[seq] == 0) return;
    c->refcount[c->region[seq]]--;
    c->source[seq] = 0;
}

static void fork_cross(struct model_state *s, uint32_t from, uint32_t to, uint32_t length)
{
    const struct model_cross *c = &s->cross;
    if (c->layer && length > 0) name_region(s, to, c->region[from], c->source[from]);
}

static void add_inputs(const struct model_state *s, struct engine_graph *g, uint32_t n_tokens,
                       uint32_t n_span, struct model_state_inputs *in)
{
    (void)n_span;
    if (s->cross.layer)
        in->cross = engine_input(g, QUANT_I32, 2, (int64_t[]){4, n_tokens}, "source");
}

static void fill_inputs(const struct model_state *s, const struct model_state_inputs *in,
                        const struct model_place *at)
{
    if (!in->cross) return;
    int32_t *range = (int32_t *)engine_input_data(in->cross) + 4 * (size_t)at->t;
    range[0] = (int32_t)at->seq;
    range[1] = range[3] = 0;
    range[2] = (int32_t)s->cross.source[at->seq];
}

/* ---- Saving and loading ---- */

static void outline(const struct model_state *s, uint32_t seq, struct model_state_outline *o)
{
    o->source = s->cross.layer ? s->cross.source[seq] : 0;
}

static uint32_t loadable(const struct model_state *s, const struct model_state_outline *o,
                         uint32_t length)
{
    if (!s->cross.layer) return o->source ? 0 : length;
    return o->source == 0 || o->source > o->length || length < o->source ? 0 : length;
}

/* Writes the rows of all layers, or reads them if `from` is not NULL. */
static bool move_rows(const struct model_state *s, uint32_t seq, const struct model_sink *to,
                      const struct model_state_reader *from, struct base_error *err)
{
    const struct model_cross *c = &s->cross;
    for (uint32_t i = 0; i < 2 * c->n_layer; i++) {
        const struct engine_tensor *t = i % 2 ? &c->layer[i / 2].v : &c->layer[i / 2].k;
        const uint64_t row = (uint64_t)t->nb[1];
        char *data = t->data + (uint64_t)c->region[seq] * s->n_ctx * row;
        if (!model_state_move(t, data, c->source[seq] * row, to, from, err)) return false;
    }
    return true;
}

static bool save(const struct model_state *s, uint32_t seq, const struct model_sink *to,
                 struct base_error *err)
{
    return !s->cross.layer || move_rows(s, seq, to, NULL, err);
}

static void make_room(struct model_state *s, uint32_t seq, uint32_t length,
                      const struct model_state_outline *o)
{
    (void)length;
    if (s->cross.layer) name_region(s, seq, free_region(&s->cross), o->source);
}

static bool load(struct model_state *s, uint32_t seq, uint32_t length,
                 const struct model_state_outline *o, const struct model_state_reader *from,
                 struct base_error *err)
{
    (void)length;
    (void)o;
    if (!s->cross.layer || from->part > 0) return true; /* the first reader reads everything */
    return move_rows(s, seq, NULL, from, err);
}

const struct model_state_kind model_state_cross = {.name = "cross",
                                                   .init = init,
                                                   .free = free_cross,
                                                   .append = append,
                                                   .held = held,
                                                   .truncate = truncate_cross,
                                                   .fork = fork_cross,
                                                   .add_inputs = add_inputs,
                                                   .fill_inputs = fill_inputs,
                                                   .outline = outline,
                                                   .loadable = loadable,
                                                   .save = save,
                                                   .make_room = make_room,
                                                   .load = load};

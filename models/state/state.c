/* models/state/state.c: all kinds of state together. See models/state/state.h. */
#include "models/state/state.h"
#include "base/list.h"
#include "base/size.h"
#include "engine/cpu/pool.h"
#include <stdlib.h>
#include <string.h>

/* In the order of a saved sequence: `recurrent` does not read to the end of its data. */
static const struct model_state_kind *const kinds[] = {&model_state_kv, &model_state_history,
                                                       &model_state_recurrent, &model_state_cross};

enum { MOVE_STEP = 1 << 16 }; /* bytes of another place that are copied at once */

#define EACH(kind)                                                                                 \
    for (size_t i_ = 0; i_ < sizeof kinds / sizeof *kinds; i_++)                                   \
        for (const struct model_state_kind *kind = kinds[i_]; kind; kind = NULL)

bool model_state_tensor(struct model_state *s, struct engine_tensor *t,
                        const struct engine_place *place, const struct quant_type *type, int n_dims,
                        const int64_t *ne, struct base_error *err)
{
    uint64_t bytes;
    if (!quant_row_bytes(type, (uint64_t)ne[0], &bytes)) goto too_large;
    for (int d = 1; d < n_dims; d++)
        if (!base_mul(bytes, (uint64_t)ne[d], &bytes)) goto too_large;
    if (!BASE_LIST_ROOM(s->buffers, s->n_buffers, s->max_buffers))
        return base_fail(err, BASE_NO_MEMORY, "no memory for the state of sequences");
    struct engine_buffer *buffer = &s->buffers[s->n_buffers];
    if (!engine_buffer_new(place ? place : s->host, ENGINE_BUFFER_STATE, bytes, buffer, err))
        return false;
    s->n_buffers++;
    s->bytes += bytes;
    if (!engine_tensor_init(t, type, n_dims, ne, buffer->base, "state", err)) return false;
    t->place = place;
    return true;

too_large:
    return base_fail(err, BASE_NO_MEMORY, "the state of %u sequences of %u tokens is too large",
                     s->n_seq, s->n_ctx);
}

const void *model_state_get(const struct engine_tensor *t, const char *from, uint64_t size,
                            void *image)
{
    if (engine_tensor_place(t) == 0) return from;
    engine_place_read(t->place, image, from, size);
    return image;
}

void *model_state_room(const struct engine_tensor *t, char *to, void *image)
{
    return engine_tensor_place(t) == 0 ? to : image;
}

void model_state_put(const struct engine_tensor *t, char *to, const void *bytes, uint64_t size)
{
    if (engine_tensor_place(t) != 0)
        engine_place_write(t->place, to, bytes, size);
    else if (to != bytes)
        memcpy(to, bytes, size);
}

bool model_state_move(const struct engine_tensor *t, char *data, uint64_t size,
                      const struct model_sink *to, const struct model_state_reader *from,
                      struct base_error *err)
{
    char image[MOVE_STEP];
    const uint64_t step = engine_tensor_place(t) == 0 ? size : MOVE_STEP;
    for (uint64_t at = 0, n; at < size; at += n) {
        n = size - at < step ? size - at : step;
        char *room = model_state_room(t, data + at, image);
        if (!(from ? model_state_read(from, room, n, err)
                   : to->write(to->user, model_state_get(t, data + at, n, image), n, err)))
            return false;
        if (from) model_state_put(t, data + at, room, n);
    }
    return true;
}

bool model_state_init(struct model_state *s, const struct model_params *p,
                      const struct model_state_options *o, struct base_error *err)
{
    *s = (struct model_state){.n_seq = o->n_seq,
                              .n_ctx = o->n_ctx,
                              .reads = o->reads,
                              .n_draft = o->n_draft,
                              .hidden = o->hidden,
                              .host = o->host};
    s->length = calloc(o->n_seq, sizeof *s->length);
    bool done = s->length || base_fail(err, BASE_NO_MEMORY, "no memory for %u sequences", o->n_seq);
    EACH (kind) done = done && kind->init(s, p, o, err);
    if (!done) model_state_free(s);
    return done;
}

void model_state_free(struct model_state *s)
{
    EACH (kind) kind->free(s);
    for (size_t i = 0; i < s->n_buffers; i++) engine_buffer_free(&s->buffers[i]);
    free(s->buffers);
    free(s->length);
    *s = (struct model_state){0};
}

bool model_state_needs_spans(const struct model_state *s)
{
    return s->recurrent.capacity > 0;
}

void model_state_begin(struct model_state *s)
{
    EACH (kind)
        if (kind->begin) kind->begin(s);
}

uint32_t model_state_append(struct model_state *s, uint32_t seq, uint32_t n)
{
    const uint32_t position = s->length[seq];
    EACH (kind)
        if (kind->append) kind->append(s, seq, n);
    s->length[seq] += n;
    return position;
}

/* Returns the largest length that all kinds hold. Each kind may reduce it, and the others must hold
 * the reduced length too. */
static uint32_t held(const struct model_state *s, uint32_t seq, uint32_t length)
{
    uint32_t before;
    do {
        before = length;
        EACH (kind)
            if (kind->held) length = kind->held(s, seq, length);
    } while (length != before);
    return length;
}

uint32_t model_state_truncate(struct model_state *s, uint32_t seq, uint32_t length)
{
    if (length >= s->length[seq]) return s->length[seq];
    length = held(s, seq, length);
    EACH (kind)
        if (kind->truncate) kind->truncate(s, seq, length);
    s->length[seq] = length;
    return length;
}

uint32_t model_state_fork(struct model_state *s, uint32_t from, uint32_t to, uint32_t length)
{
    if (from == to) return model_state_truncate(s, to, length);
    if (length > s->length[from]) length = s->length[from];
    model_state_truncate(s, to, 0);
    length = held(s, from, length);
    EACH (kind) kind->fork(s, from, to, length);
    s->length[to] = length;
    return length;
}

/* ---- Saving and loading ---- */

bool model_state_save(const struct model_state *s, uint32_t seq, const struct model_sink *to,
                      struct base_error *err)
{
    struct model_state_outline o = {.length = s->length[seq]};
    EACH (kind)
        if (kind->outline) kind->outline(s, seq, &o);
    bool ok = to->write(to->user, &o, sizeof o, err);
    EACH (kind) ok = ok && kind->save(s, seq, to, err);
    return ok;
}

/* Returns the largest length <= `most` that all kinds can be cut back to; 0 if the outline is
 * invalid. */
static uint32_t loadable(const struct model_state *s, const struct model_state_outline *o,
                         uint32_t most)
{
    uint32_t length = most < o->length ? most : o->length, before;
    if (o->length > INT32_MAX || length > s->n_ctx || o->n_snapshot > MODEL_SNAPSHOTS_MAX) return 0;
    for (uint32_t i = 0; i < o->n_snapshot; i++)
        if (o->snapshot[i] > o->length || o->snapshot[i] <= (i ? o->snapshot[i - 1] : 0)) return 0;
    do {
        before = length;
        EACH (kind)
            if (kind->loadable) length = kind->loadable(s, o, length);
    } while (length != before);
    return length;
}

struct loading {
    struct model_state *s;
    uint32_t seq, length;
    const struct model_state_outline *o;
    const struct model_source *from;
    unsigned n_parts;
    struct base_error error[MODEL_READERS_MAX]; /* [n_parts] */
};

static void load_part(struct loading *l, unsigned part)
{
    const struct model_state_reader r = {l->from, part, l->n_parts};
    struct base_error *err = &l->error[part];
    bool ok = part == 0 || model_state_skip(&r, sizeof *l->o, err); /* the first part reads it */
    EACH (kind) ok = ok && kind->load(l->s, l->seq, l->length, l->o, &r, err);
}

static void load_parts(const struct engine_worker *w, void *user)
{
    struct loading *l = user;
    for (unsigned part = (unsigned)w->ith; part < l->n_parts; part += (unsigned)w->nth)
        load_part(l, part);
}

uint32_t model_state_load(struct model_state *s, uint32_t seq, uint32_t least, uint32_t most,
                          const struct model_source *from, struct engine_pool *pool,
                          struct base_error *err)
{
    struct model_state_outline o;
    if (!from->read(from->user[0], &o, sizeof o, err)) return 0;
    const uint32_t length = loadable(s, &o, most);
    if (length == 0 || length < least) return 0;
    model_state_truncate(s, seq, 0);
    EACH (kind)
        if (kind->make_room) kind->make_room(s, seq, length, &o);
    s->length[seq] = length;
    struct loading l = {s, seq, length, &o, from, from->n_users, {{0}}};
    for (unsigned i = 0; i < l.n_parts; i++) l.error[i] = BASE_ERROR_INIT;
    if (pool)
        engine_pool_run(pool, load_parts, &l);
    else
        load_parts(&(struct engine_worker){.nth = 1}, &l);
    for (unsigned i = 0; i < l.n_parts; i++) {
        if (l.error[i].code == BASE_OK) continue;
        model_state_truncate(s, seq, 0);
        if (err && err->code == BASE_OK) *err = l.error[i];
        return 0;
    }
    return length;
}

/* ---- Inputs of a graph ---- */

void model_state_add_inputs(const struct model_state *s, struct engine_graph *g, uint32_t n_tokens,
                            uint32_t n_span, struct model_state_inputs *in)
{
    EACH (kind) kind->add_inputs(s, g, n_tokens, n_span, in);
}

void model_state_fill_inputs(const struct model_state *s, const struct model_state_inputs *in,
                             const struct model_place *at)
{
    EACH (kind) kind->fill_inputs(s, in, at);
}

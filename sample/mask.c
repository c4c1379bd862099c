/* sample/mask.c: which tokens may come next. Two caches make it cheap: whole masks by the state's
 * content, and what the top frame alone says (inside a string, inside an automaton), which is the
 * same whatever stands below. Only tokens that leave the top frame are read through the stacks. */
#include "sample/machine.h"
#include "sample/schema_run.h"
#include "sample/vocab.h"
#include <stdlib.h>
#include <string.h>

enum { WAYS = 4, LEAVES = 0, CLOSES = 1, CHECKS = 2 };

/* A place in the trie where the top frame's own knowledge ends. */
struct leave {
    uint32_t node, q, escape;
    uint32_t kind; /* LEAVES: calls and returns; CLOSES: the last byte is a closing quote; CHECKS:
                      whether the name may go on depends on the names that were seen */
};
struct entry {
    uint64_t key[2];
    uint64_t used; /* when; 0: free */
    uint64_t *mask;
    struct leave *leave; /* of top frames */
    uint32_t n_leave, leave_room;
};
struct sample_masker {
    const struct sample_constraint *constraint;
    const struct sample_vocab *vocab;
    struct entry *whole, *top; /* [n_set][WAYS] */
    uint32_t n_set, words;
    uint64_t clock;
    uint64_t *mask;                      /* being made */
    uint32_t *set, n_set_item, set_room; /* stacks per depth of the walk */
    uint32_t at[SAMPLE_MAX_TOKEN + 2], frames[SAMPLE_MAX_TOKEN + 2];
};

struct sample_masker *sample_masker_new(const struct sample_constraint *c,
                                        const struct sample_vocab *v, uint64_t cache_bytes,
                                        struct base_error *err)
{
    struct sample_masker *m = calloc(1, sizeof *m);
    uint64_t words = ((uint64_t)v->n_vocab + 63) / 64, sets = 1;
    if (!m) goto fail;
    while (sets * 2 * 2 * WAYS * (words * 8 + sizeof(struct entry)) <= cache_bytes &&
           sets < 1u << 16)
        sets *= 2;
    m->constraint = c;
    m->vocab = v;
    m->words = (uint32_t)words;
    m->n_set = (uint32_t)sets;
    m->whole = calloc(sets * WAYS, sizeof *m->whole);
    m->top = calloc(sets * WAYS, sizeof *m->top);
    m->mask = calloc(words + 1, sizeof *m->mask);
    if (m->whole && m->top && m->mask) return m;
fail:
    sample_masker_free(m);
    base_fail(err, BASE_NO_MEMORY, "no memory for token masks");
    return NULL;
}

void sample_masker_free(struct sample_masker *m)
{
    if (!m) return;
    for (uint32_t i = 0; i < m->n_set * WAYS; i++) {
        if (m->whole) free(m->whole[i].mask);
        if (m->top) free(m->top[i].mask), free(m->top[i].leave);
    }
    free(m->whole), free(m->top), free(m->mask), free(m->set);
    free(m);
}

/* The entry of a key, or the least recently used one of its set, emptied (*found false). */
static struct entry *look_up(struct sample_masker *m, struct entry *table, const uint64_t key[2],
                             bool *found, struct base_error *err)
{
    struct entry *set = table + (size_t)(key[0] & (m->n_set - 1)) * WAYS, *oldest = set;
    *found = true;
    for (uint32_t i = 0; i < WAYS; i++) {
        if (set[i].used && set[i].key[0] == key[0] && set[i].key[1] == key[1]) {
            set[i].used = ++m->clock;
            return &set[i];
        }
        if (set[i].used < oldest->used) oldest = &set[i];
    }
    *found = false;
    if (!oldest->mask) oldest->mask = calloc(m->words + 1, sizeof *oldest->mask);
    if (!oldest->mask) {
        base_fail(err, BASE_NO_MEMORY, "no memory for token masks");
        return NULL;
    }
    oldest->used = 0; /* until it is filled */
    oldest->key[0] = key[0];
    oldest->key[1] = key[1];
    oldest->n_leave = 0;
    memset(oldest->mask, 0, m->words * sizeof *oldest->mask);
    return oldest;
}

static void allow(const struct sample_vocab *v, uint64_t *mask, uint32_t node)
{
    for (uint32_t t = v->node[node].token; t < v->node[node + 1].token; t++)
        mask[(uint32_t)v->order[t] >> 6] |= 1ull << (v->order[t] & 63);
}

/* -- reading tokens through the stacks -- */

static bool keep_set(struct sample_masker *m, struct sample_state *s, uint32_t depth)
{
    for (uint32_t i = 0; i < s->n_out; i++) {
        if (s->out[i] == 0) continue; /* the text may end: nothing follows from there */
        if (!sample_grow(&m->set, &m->set_room, m->n_set_item, sizeof *m->set, s->err)) {
            s->failed = true;
            return false;
        }
        m->set[m->n_set_item++] = s->out[i];
    }
    m->at[depth + 1] = m->n_set_item;
    m->frames[depth] = s->n_frame;
    return true;
}

/* Allows the tokens below `root`, whose stacks are set[at[0]..at[1]). `first` remembers which
 * bytes cannot come first. */
static void walk(struct sample_masker *m, struct sample_state *s, uint32_t root, bool dead[256])
{
    const struct sample_trie_node *node = m->vocab->node;
    uint32_t end = node[root].next, base = node[root].depth;
    for (uint32_t i = root + 1; i < end && !s->failed;) {
        uint32_t depth = node[i].depth - base; /* 1 for children of the root */
        if (depth == 1 && dead[node[i].byte]) {
            i = node[i].next;
            continue;
        }
        sample_state_rewind(s, m->frames[depth - 1]);
        m->n_set_item = m->at[depth];
        sample_state_begin(s);
        for (uint32_t k = m->at[depth - 1]; k < m->at[depth]; k++)
            sample_state_step(s, m->set[k], node[i].byte);
        sample_state_settle(s);
        if (s->n_out == 0) {
            if (depth == 1) dead[node[i].byte] = true;
            i = node[i].next;
            continue;
        }
        allow(m->vocab, m->mask, i);
        if (!keep_set(m, s, depth)) return;
        i = m->at[depth] == m->at[depth + 1] ? node[i].next : i + 1;
    }
}

/* -- what the top frame alone says -- */

static bool add_leave(struct sample_masker *m, struct entry *e, uint32_t node, uint32_t q,
                      uint32_t escape, uint32_t kind, struct base_error *err)
{
    bool childless = m->vocab->node[node].next == node + 1;
    if (childless && kind == LEAVES) return true;
    if (!sample_grow(&e->leave, &e->leave_room, e->n_leave, sizeof *e->leave, err)) return false;
    e->leave[e->n_leave++] = (struct leave){node, q, escape, kind};
    return true;
}

static bool fill_automaton(struct sample_masker *m, const struct sample_frame *f, struct entry *e,
                           struct base_error *err)
{
    const struct sample_dfa *d = m->constraint->dfa[f->a];
    const struct sample_trie_node *node = m->vocab->node;
    uint32_t q[SAMPLE_MAX_TOKEN + 1];
    q[0] = f->b;
    for (uint32_t i = 1; i < m->vocab->n_node;) {
        uint32_t depth = node[i].depth, to = sample_dfa_step(d, q[depth - 1], node[i].byte);
        q[depth] = to;
        if (!to) {
            i = node[i].next;
            continue;
        }
        allow(m->vocab, e->mask, i);
        if ((d->accept[to] & (SAMPLE_DFA_ACCEPTS | SAMPLE_DFA_CALLS)) &&
            !add_leave(m, e, i, to, 0, LEAVES, err))
            return false;
        i++;
    }
    return true;
}

/* Whether the name may go on whatever names were seen: it can become one that is not known. */
static bool always_goes_on(const struct sample_schema *schema, const struct sample_object *o,
                           uint32_t q)
{
    if (o->max != UINT32_MAX) return false;
    for (uint32_t i = 0; i < o->words; i++) {
        uint64_t bits = schema->bits[o->reach + (size_t)q * o->words + i];
        for (bits &= schema->bits[o->usable + i]; bits; bits &= bits - 1)
            if (schema->label[o->known + 64 * i + (uint32_t)__builtin_ctzll(bits)] == 0)
                return true;
    }
    return false;
}

/* Inside a string (kind STRING) or a name (kind OBJECT). */
static bool fill_text(struct sample_masker *m, const struct sample_frame *f, struct entry *e,
                      struct base_error *err)
{
    const struct sample_schema *schema = m->constraint->schema;
    const struct sample_object *o = f->kind == SAMPLE_FRAME_OBJECT ? &schema->object[f->a] : NULL;
    const struct sample_dfa *d = o ? o->key : schema->string[f->a];
    const struct sample_trie_node *node = m->vocab->node;
    uint32_t q[SAMPLE_MAX_TOKEN + 1], escape[SAMPLE_MAX_TOKEN + 1];
    q[0] = f->b;
    escape[0] = f->d;
    for (uint32_t i = 1; i < m->vocab->n_node;) {
        uint32_t depth = node[i].depth, from = q[depth - 1];
        q[depth] = from;
        escape[depth] = escape[depth - 1];
        enum sample_text_step step =
            sample_text_step(schema, d, &q[depth], &escape[depth], node[i].byte);
        bool ok = true, inside = step == SAMPLE_TEXT_INSIDE;
        if (step == SAMPLE_TEXT_CLOSED && (d->accept[from] & SAMPLE_DFA_ACCEPTS)) {
            if (!o) allow(m->vocab, e->mask, i);
            if (o || node[i].next != i + 1) ok = add_leave(m, e, i, from, 0, CLOSES, err);
        } else if (inside && o && (escape[depth] || !always_goes_on(schema, o, q[depth]))) {
            ok = add_leave(m, e, i, q[depth], escape[depth], CHECKS, err);
            inside = false;
        } else if (inside) {
            allow(m->vocab, e->mask, i);
        }
        if (!ok) return false;
        i = inside ? i + 1 : node[i].next;
    }
    return true;
}

/* The set from which the tokens behind a leave go on; its stacks stand at depth 0. */
static bool enter_leave(struct sample_masker *m, struct sample_state *s,
                        const struct sample_frame *top, const struct leave *l)
{
    struct sample_frame f = *top;
    f.b = l->q;
    f.d = l->escape;
    m->n_set_item = m->at[0] = 0;
    uint32_t stack = sample_frame_intern(s, &f);
    sample_state_begin(s);
    if (!stack) return false;
    if (l->kind == LEAVES) sample_state_leave(s, stack);
    if (l->kind == CLOSES) sample_state_step(s, stack, '"');
    if (l->kind == CHECKS && sample_object_may_name(m->constraint->schema, &f, l->q, false))
        sample_state_emit(s, stack);
    sample_state_settle(s);
    return keep_set(m, s, 0) && !s->failed;
}

/* The masks of one stack: what its top frame says, and the tokens that leave it. */
static bool add_top(struct sample_masker *m, struct sample_state *s, uint32_t stack)
{
    const struct sample_frame top = s->frame[stack];
    uint64_t key[2] = {((uint64_t)top.a << 32 | top.b) * 0x9e3779b97f4a7c15u + top.kind,
                       (uint64_t)top.kind << 56 ^ (uint64_t)top.a << 28 ^ top.b};
    uint32_t frames = s->n_frame;
    bool found, dead[256];
    key[0] ^= key[0] >> 29;
    struct entry *e = look_up(m, m->top, key, &found, s->err);
    if (!e) return false;
    if (!found) {
        bool ok = top.kind == SAMPLE_FRAME_AUTO ? fill_automaton(m, &top, e, s->err)
                                                : fill_text(m, &top, e, s->err);
        if (!ok) return false;
        e->used = ++m->clock;
    }
    for (uint32_t w = 0; w < m->words; w++) m->mask[w] |= e->mask[w];
    const struct leave *last = NULL;
    for (uint32_t i = 0; i < e->n_leave && !s->failed; i++) {
        const struct leave *l = &e->leave[i];
        if (!last || last->q != l->q || last->kind != l->kind || last->escape != l->escape) {
            sample_state_rewind(s, frames);
            memset(dead, 0, sizeof dead);
            if (!enter_leave(m, s, &top, l)) return false;
            last = l;
        }
        if (m->at[1] == 0) continue;
        if (l->kind != LEAVES) allow(m->vocab, m->mask, l->node);
        walk(m, s, l->node, dead);
    }
    sample_state_rewind(s, frames);
    return !s->failed;
}

/* -- whole states -- */

static bool has_own_mask(const struct sample_frame *f)
{
    if (f->kind == SAMPLE_FRAME_AUTO) return true;
    if (f->d) return false;
    return (f->kind == SAMPLE_FRAME_STRING && f->b) ||
           (f->kind == SAMPLE_FRAME_OBJECT && SAMPLE_PHASE(f->c) == SAMPLE_OBJECT_NAME);
}

static bool make(struct sample_masker *m, struct sample_state *s)
{
    bool dead[256] = {false};
    uint32_t frames = s->n_frame;
    memset(m->mask, 0, m->words * sizeof *m->mask);
    for (uint32_t i = 0; i < s->n_top; i++)
        if (s->top[i] && has_own_mask(&s->frame[s->top[i]]) && !add_top(m, s, s->top[i]))
            return false;
    m->n_set_item = m->at[0] = 0;
    s->n_out = 0;
    for (uint32_t i = 0; i < s->n_top; i++) {
        if (!s->top[i] || has_own_mask(&s->frame[s->top[i]])) continue;
        if (!sample_grow(&m->set, &m->set_room, m->n_set_item, sizeof *m->set, s->err))
            return false;
        m->set[m->n_set_item++] = s->top[i];
    }
    m->at[1] = m->n_set_item;
    m->frames[0] = frames;
    if (m->at[1]) walk(m, s, 0, dead);
    sample_state_rewind(s, frames);
    return !s->failed;
}

const uint64_t *sample_masker_mask(struct sample_masker *m, struct sample_state *s,
                                   struct base_error *err)
{
    uint64_t key[2] = {0, s->n_top};
    bool found;
    for (uint32_t i = 0; i < s->n_top; i++) { /* in any order */
        uint64_t h = s->frame[s->top[i]].hash * 0xd6e8feb86659fd93u;
        key[0] += h ^ h >> 32;
        h *= 0x9e3779b97f4a7c15u;
        key[1] += h ^ h >> 29;
    }
    struct entry *e = look_up(m, m->whole, key, &found, err);
    if (!e || found) return e ? e->mask : NULL;
    s->err = err;
    s->failed = false;
    if (!make(m, s)) return NULL;
    memcpy(e->mask, m->mask, m->words * sizeof *e->mask);
    e->used = ++m->clock;
    return e->mask;
}

/* sample/constrain/mask.c: the tokens that are allowed next. There are two caches: complete masks
 * by the content of the state, and masks that depend on the top frame only (inside a string, inside
 * an automaton). Only tokens that leave the top frame are read through the stacks; while one mask
 * is computed, each transition of a set of stacks by a byte is computed once. Plain tokens
 * (token_trie.h) are not read if a state treats all of them alike. */
#include "sample/constrain/constrain_stack.h"
#include "sample/constrain/idset.h"
#include "sample/constrain/schema_run.h"
#include "sample/constrain/token_trie.h"
#include <stdlib.h>
#include <string.h>

enum {
    WAYS = 4,
    MAX_SETS = 1024,      /* number of sets of stacks that are kept while a mask is computed */
    MAX_FRAMES = 1 << 16, /* number of frames of these sets */
    DEAD = UINT32_MAX     /* number of the empty set */
};

_Static_assert((int)CONSTRAIN_TOKEN_REACH >= (int)CONSTRAIN_MAX_TOKEN,
               "counts that masks are cached by");

/* A node of a trie at which a token ends the top frame, and the state q of the automaton there: the
 * rest of the token is read by the frames below. */
struct frame_end {
    uint32_t node, q;
    bool plain;  /* in the trie of plain tokens; false: in the trie of the others */
    bool closes; /* by a closing quote; false: by calls and returns */
};
struct cached_mask {
    uint64_t key[2];
    uint64_t used; /* time of the last use, by `clock`; 0: free */
    uint64_t *mask;
    struct frame_end *end; /* only in masks of top frames */
    uint32_t n_ends, ends_room;
};
struct plain_depths { /* of plain tokens, by state of one automaton: see constrain_plain_depths */
    uint8_t *min_depth, *max_depth;
    uint32_t *loop; /* kinds of bytes that lead from the state to itself, and LOOP_KNOWN */
};
#define LOOP_KNOWN 0x80000000u
struct byte_set { /* a set of bytes */
    uint64_t bit[4];
};
struct constrain_masker {
    const struct constraint *constraint;
    const struct constrain_token_trie *vocab;
    struct cached_mask *whole, *top; /* [n_set][WAYS] each */
    uint32_t n_set, words;
    uint64_t clock;
    uint64_t *mask; /* the mask under construction */

    /* Sets of stacks, numbered while there is room. Further sets are temporary, one for each depth
     * of a walk: number MAX_SETS + depth, stack[from[depth]..from[depth + 1]). */
    struct constrain_idsets sets;
    uint32_t *next; /* [MAX_SETS][256]: 2 + the number of the set after a byte; 1: DEAD; 0: not
                     * computed yet */
    uint32_t first_frame, numbered_frames; /* at the mask's begin; of numbered sets */
    bool full;
    uint32_t *stack, stack_room;
    uint32_t from[CONSTRAIN_MAX_TOKEN + 2], frames[CONSTRAIN_MAX_TOKEN + 2];
    struct plain_depths *string, *dfa; /* [n_string], [n_dfa][1 if there are frames below] */
    struct byte_set *first,
        *follow; /* [n_dfa]: bytes that may begin a rule, and that may follow it */
    uint8_t *good, *min_depth, *max_depth; /* [states of the largest automaton]: scratch */
    uint32_t *todo;
};

/* Returns the number of states of the largest automaton. */
static uint32_t max_states(const struct constraint *c)
{
    uint32_t max = 1;
    const struct constrain_schema *s = c->schema;
    for (uint32_t i = 0; i < c->n_dfa; i++)
        if (c->dfa[i] && c->dfa[i]->n_state > max) max = c->dfa[i]->n_state;
    for (uint32_t i = 0; s && i < s->n_string; i++)
        if (s->string[i].dfa->n_state > max) max = s->string[i].dfa->n_state;
    for (uint32_t i = 0; s && i < s->n_object; i++)
        if (s->object[i].key->n_state > max) max = s->object[i].key->n_state;
    return max;
}

/* -- bytes that may follow a rule -- */

static bool join(struct byte_set *to, const struct byte_set *from)
{
    bool more = false;
    for (int i = 0; i < 4; i++) {
        more |= (from->bit[i] & ~to->bit[i]) != 0;
        to->bit[i] |= from->bit[i];
    }
    return more;
}

static bool has_byte(const struct byte_set *set, uint8_t byte)
{
    return set->bit[byte >> 6] >> (byte & 63) & 1;
}

/* Returns the bytes that may come next in state q of a rule by calls and returns, as far as the
 * sets are complete. */
static struct byte_set next_by_leaving(const struct constrain_masker *m, uint32_t rule, uint32_t q)
{
    const struct constrain_dfa *d = m->constraint->dfa[rule];
    struct byte_set out = {{0}};
    for (uint32_t c = d->call_at[q]; c < d->call_at[q + 1]; c++)
        if (d->call[c].back) join(&out, &m->first[d->call[c].rule]);
    if (d->accept[q] & CONSTRAIN_DFA_ACCEPTS) join(&out, &m->follow[rule]);
    return out;
}

static struct byte_set next_bytes(const struct constrain_masker *m, uint32_t rule, uint32_t q)
{
    const struct constrain_dfa *d = m->constraint->dfa[rule];
    struct byte_set out = next_by_leaving(m, rule, q);
    for (uint32_t b = 0; b < 256; b++)
        if (constrain_dfa_step(d, q, (uint8_t)b)) out.bit[b >> 6] |= 1ull << (b & 63);
    return out;
}

static void find_follow(struct constrain_masker *m)
{
    const struct constraint *c = m->constraint;
    /* Before a JSON value any byte may follow, which is a superset of the possible ones. */
    for (uint32_t i = 0; i < c->n_part; i++)
        memset(&m->follow[c->part[i].before], 0xff, sizeof *m->follow);
    for (bool changed = true; changed;) {
        changed = false;
        for (uint32_t r = 0; r < c->n_dfa; r++) {
            const struct constrain_dfa *d = c->dfa[r];
            if (!d) continue;
            struct byte_set first = next_bytes(m, r, 1);
            changed |= join(&m->first[r], &first);
            for (uint32_t k = 0; k < d->call_at[d->n_state]; k++) {
                if (!d->call[k].back) continue;
                struct byte_set after = next_bytes(m, r, d->call[k].back);
                changed |= join(&m->follow[d->call[k].rule], &after);
            }
        }
    }
}

struct constrain_masker *constrain_masker_new(const struct constraint *c,
                                              const struct constrain_token_trie *v,
                                              uint64_t cache_bytes, struct base_error *err)
{
    struct constrain_masker *m = calloc(1, sizeof *m);
    uint64_t words = v->words, sets = 1;
    size_t states = max_states(c);
    if (!m) goto fail;
    while (sets * 2 * 2 * WAYS * (words * 8 + sizeof(struct cached_mask)) <= cache_bytes &&
           sets < 1u << 16)
        sets *= 2;
    m->constraint = c;
    m->vocab = v;
    m->words = (uint32_t)words;
    m->n_set = (uint32_t)sets;
    m->whole = calloc(sets * WAYS, sizeof *m->whole);
    m->top = calloc(sets * WAYS, sizeof *m->top);
    m->mask = calloc(words + 1, sizeof *m->mask);
    m->string = calloc(c->schema ? c->schema->n_string + 1 : 1, sizeof *m->string);
    m->dfa = calloc(2 * (size_t)c->n_dfa + 1, sizeof *m->dfa);
    m->first = calloc((size_t)c->n_dfa + 1, sizeof *m->first);
    m->follow = calloc((size_t)c->n_dfa + 1, sizeof *m->follow);
    m->good = calloc(states, 3);
    m->todo = calloc(states, 2 * sizeof *m->todo);
    m->next = malloc((size_t)MAX_SETS * 256 * sizeof *m->next);
    if (m->whole && m->top && m->mask && m->string && m->dfa && m->first && m->follow && m->good &&
        m->todo && m->next) {
        find_follow(m);
        m->min_depth = m->good + states;
        m->max_depth = m->min_depth + states;
        return m;
    }
fail:
    constrain_masker_free(m);
    return base_null(base_fail(err, BASE_NO_MEMORY, "no memory for token masks"));
}

void constrain_masker_free(struct constrain_masker *m)
{
    if (!m) return;
    const struct constrain_schema *s = m->constraint->schema;
    for (uint32_t i = 0; i < m->n_set * WAYS; i++) {
        if (m->whole) free(m->whole[i].mask);
        if (m->top) free(m->top[i].mask), free(m->top[i].end);
    }
    for (uint32_t i = 0; m->string && s && i < s->n_string; i++)
        free(m->string[i].min_depth), free(m->string[i].loop);
    for (uint32_t i = 0; m->dfa && i < 2 * m->constraint->n_dfa; i++)
        free(m->dfa[i].min_depth), free(m->dfa[i].loop);
    free(m->whole), free(m->top), free(m->mask), free(m->next), free(m->stack);
    constrain_idsets_free(&m->sets);
    free(m->string), free(m->dfa), free(m->good), free(m->todo);
    free(m->first), free(m->follow);
    free(m);
}

/* Returns the entry of a key; if there is none (*found false), the least recently used entry of its
 * set, emptied. */
static struct cached_mask *find_cached(struct constrain_masker *m, struct cached_mask *table,
                                       const uint64_t key[2], bool *found, struct base_error *err)
{
    struct cached_mask *set = table + (size_t)(key[0] & (m->n_set - 1)) * WAYS, *oldest = set;
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
    if (!oldest->mask)
        return base_null(base_fail(err, BASE_NO_MEMORY, "no memory for token masks"));
    oldest->used = 0; /* free until the caller fills it */
    oldest->key[0] = key[0];
    oldest->key[1] = key[1];
    oldest->n_ends = 0;
    memset(oldest->mask, 0, m->words * sizeof *oldest->mask);
    return oldest;
}

/* Allows the tokens that end at the nodes from .. to - 1. */
static void allow_all(const struct constrain_trie *v, uint64_t *mask, uint32_t from, uint32_t to)
{
    for (uint32_t t = v->node[from].token; t < v->node[to].token; t++)
        mask[(uint32_t)v->order[t] >> 6] |= 1ull << (v->order[t] & 63);
}

static void allow(const struct constrain_trie *v, uint64_t *mask, uint32_t node)
{
    allow_all(v, mask, node, node + 1);
}

/* -- reading tokens through the stacks -- */

static bool begin_sets(struct constrain_masker *m, struct constrain_state *s)
{
    m->first_frame = m->numbered_frames = s->n_frame;
    m->full = false;
    m->from[0] = 0;
    return constrain_idsets_clear(&m->sets, s->err);
}

/* Stores the emitted stacks (0 among them: the text may end, and nothing follows) as a set. A
 * temporary set belongs to `depth`. */
static bool keep_set(struct constrain_masker *m, struct constrain_state *s, uint32_t depth,
                     uint32_t *number)
{
    if (!m->full && (m->sets.n_set >= MAX_SETS || s->n_frame - m->first_frame >= MAX_FRAMES)) {
        m->full = true;
        m->from[depth] = 0;
    }
    if (m->full) {
        uint32_t n = m->from[depth];
        for (uint32_t i = 0; i < s->n_out; i++) {
            if (!s->out[i]) continue;
            if (!constrain_grow(&m->stack, &m->stack_room, n, sizeof *m->stack, s->err))
                return false;
            m->stack[n++] = s->out[i];
        }
        m->from[depth + 1] = n;
        m->frames[depth] = s->n_frame;
        *number = MAX_SETS + depth;
        return true;
    }
    for (uint32_t i = 0; i < s->n_out; i++)
        if (s->out[i] && !constrain_idsets_add(&m->sets, s->out[i], s->err)) return false;
    const uint32_t known = m->sets.n_set;
    if (!constrain_idsets_close(&m->sets, false, number, s->err)) return false;
    if (m->sets.n_set > known) memset(m->next + (size_t)known * 256, 0, 256 * sizeof *m->next);
    m->numbered_frames = s->n_frame;
    return true;
}

/* Returns the n stacks of a set. */
static const uint32_t *stacks_of(const struct constrain_masker *m, uint32_t set, uint32_t *n)
{
    if (set < MAX_SETS) {
        *n = m->sets.at[set + 1] - m->sets.at[set];
        return m->sets.id + m->sets.at[set];
    }
    *n = m->from[set - MAX_SETS + 1] - m->from[set - MAX_SETS];
    return m->stack + m->from[set - MAX_SETS];
}

/* Frees the frames of the temporary sets deeper than this one, before the walk reads at `depth`. */
static void rewind_sets(struct constrain_masker *m, struct constrain_state *s, uint32_t set,
                        uint32_t depth)
{
    if (!m->full) return;
    constrain_state_rewind(s, set < MAX_SETS ? m->numbered_frames : m->frames[depth - 1]);
    if (set < MAX_SETS) m->from[depth] = 0;
}

/* Returns the number of the set after a byte, at this depth (from 1 on); DEAD if the byte cannot
 * follow. */
static uint32_t step(struct constrain_masker *m, struct constrain_state *s, uint32_t set,
                     uint8_t byte, uint32_t depth)
{
    uint32_t n, to = DEAD;
    uint32_t *known = set < MAX_SETS ? &m->next[(size_t)set * 256 + byte] : NULL;
    if (known && *known) return *known - 2;
    rewind_sets(m, s, set, depth);
    const uint32_t frames = s->n_frame;
    constrain_state_begin(s);
    const uint32_t *stack = stacks_of(m, set, &n);
    for (uint32_t i = 0; i < n; i++) constrain_state_step(s, stack[i], byte);
    constrain_state_close(s);
    if (s->failed) return DEAD;
    if (s->n_out == 0) {
        constrain_state_rewind(s, frames);
    } else if (!keep_set(m, s, depth, &to)) {
        s->failed = true;
        return DEAD;
    }
    if (known && to < MAX_SETS) *known = to + 2;
    if (known && to == DEAD) *known = 1;
    return to;
}

/* Allows the tokens below `root`; the set has depth 0. */
static void walk(struct constrain_masker *m, struct constrain_state *s,
                 const struct constrain_trie *trie, uint32_t root, uint32_t set)
{
    const struct constrain_trie_node *node = trie->node;
    const uint32_t end = node[root].next, base = node[root].depth;
    uint32_t path[CONSTRAIN_MAX_TOKEN + 1], n;
    path[0] = set;
    for (uint32_t i = root + 1; i < end && !s->failed;) {
        const uint32_t depth = node[i].depth - base; /* 1 for the children of the root */
        const uint32_t to = step(m, s, path[depth - 1], node[i].byte, depth);
        path[depth] = to;
        if (to != DEAD) allow(trie, m->mask, i);
        i = to == DEAD || (stacks_of(m, to, &n), n == 0) ? node[i].next : i + 1;
    }
}

/* -- tokens within the top frame -- */

static bool add_frame_end(struct cached_mask *e, struct frame_end end, struct base_error *err)
{
    if (!constrain_grow(&e->end, &e->ends_room, e->n_ends, sizeof *e->end, err)) return false;
    e->end[e->n_ends++] = end;
    return true;
}

/* Returns the plain depths of an automaton's states, which are computed at the first use. */
static bool find_depths(struct constrain_masker *m, const struct constrain_dfa *d,
                        struct plain_depths *out, bool below, struct base_error *err)
{
    if (out->max_depth) return true;
    out->min_depth = malloc(2 * (size_t)d->n_state);
    out->loop = calloc(d->n_state, sizeof *out->loop);
    if (!out->min_depth || !out->loop) {
        free(out->min_depth), free(out->loop);
        *out = (struct plain_depths){0};
        return base_fail(err, BASE_NO_MEMORY, "no memory for token masks");
    }
    out->max_depth = out->min_depth + d->n_state;
    const uint32_t leaving = CONSTRAIN_DFA_CALLS | (below ? CONSTRAIN_DFA_ACCEPTS : 0);
    for (uint32_t q = 0; q < d->n_state; q++) m->good[q] = d->accept[q] & leaving ? 2 : 1;
    constrain_plain_depths(d, m->good, out->min_depth, out->max_depth, m->todo);
    return true;
}

/* Allows plain tokens if the state treats all tokens of a length alike; returns false if it does
 * not. */
static bool allow_plain(const struct constrain_masker *m, uint64_t *mask, uint32_t min,
                        uint32_t max)
{
    if (min < CONSTRAIN_PLAIN && min != max) return false;
    const uint64_t *plain = m->vocab->plain_mask + (size_t)min * m->words;
    for (uint32_t w = 0; w < m->words; w++) mask[w] |= plain[w];
    return true;
}

static bool has_child(const struct constrain_trie_node *node, uint32_t i,
                      const struct byte_set *set)
{
    for (uint32_t c = i + 1; c < node[i].next; c = node[c].next)
        if (has_byte(set, node[c].byte)) return true;
    return false;
}

static uint32_t loop_of(const struct constrain_dfa *d, uint32_t q, uint32_t *loop)
{
    if (loop[q]) return loop[q];
    uint32_t other = 0;
    for (uint32_t b = 0; b < 256; b++)
        if (constrain_dfa_step(d, q, (uint8_t)b) != q) other |= constrain_byte_kind((uint8_t)b);
    return loop[q] = ~other | LOOP_KNOWN;
}

/* Allows the tokens that a state's frame reads without leaving it: a whole subtree at once if it is
 * plain, or if all its bytes lead from the state to itself. */
static bool fill_automaton(struct constrain_masker *m, const struct constrain_frame *f,
                           bool is_plain, struct cached_mask *e, struct base_error *err)
{
    const struct constrain_dfa *d = m->constraint->dfa[f->index];
    const struct plain_depths *depths = &m->dfa[2 * f->index + (f->next != 0)];
    const struct constrain_trie *trie = is_plain ? &m->vocab->plain : &m->vocab->other;
    const struct constrain_trie_node *node = trie->node;
    const uint32_t leaving = CONSTRAIN_DFA_CALLS | (f->next ? CONSTRAIN_DFA_ACCEPTS : 0);
    uint32_t q[CONSTRAIN_MAX_TOKEN + 1], last = 0;
    struct byte_set may_follow = {{0}}; /* of state `last` */
    q[0] = f->state;
    for (uint32_t i = 1; i < trie->n_node;) {
        uint32_t depth = node[i].depth, to = constrain_dfa_step(d, q[depth - 1], node[i].byte);
        q[depth] = to;
        if (!to) {
            i = node[i].next;
            continue;
        }
        if ((is_plain && depths->min_depth[to] == CONSTRAIN_PLAIN) ||
            (trie->below[i] & ~loop_of(d, to, depths->loop)) == 0) {
            allow_all(trie, e->mask, i, node[i].next);
            i = node[i].next;
            continue;
        }
        allow(trie, e->mask, i);
        if (d->accept[to] & leaving) {
            if (to != last) may_follow = next_by_leaving(m, f->index, last = to);
            if (has_child(node, i, &may_follow) &&
                !add_frame_end(e, (struct frame_end){i, to, is_plain, false}, err))
                return false;
        }
        i++;
    }
    return true;
}

/* The state of a string's content or a property's name during a token. */
struct text_states {
    const struct constrain_schema *schema;
    const struct constrain_dfa *d;
    const struct constrain_frame *frame;
    const uint8_t *good; /* of a name: states from which an allowed name can be reached; or NULL */
    const struct constrain_length *length; /* of a string; NULL: of a name */
    uint32_t q[CONSTRAIN_MAX_TOKEN + 1], count[CONSTRAIN_MAX_TOKEN + 1];
    struct constrain_escape escape[CONSTRAIN_MAX_TOKEN + 1];
};

static bool may_pass(const struct text_states *r, uint32_t depth)
{
    if (!r->good) return true;
    if (!r->escape[depth].kind) return r->good[r->q[depth]];
    struct constrain_frame f = *r->frame;
    f.object.escape = r->escape[depth];
    return constrain_object_may_name(r->schema, &f, r->q[depth], false);
}

static bool fill_text(struct constrain_masker *m, struct text_states *r, bool is_plain,
                      struct cached_mask *e, struct base_error *err)
{
    const struct constrain_trie *trie = is_plain ? &m->vocab->plain : &m->vocab->other;
    const struct constrain_trie_node *node = trie->node;
    r->q[0] = r->frame->state;
    r->escape[0] = (struct constrain_escape){0};
    r->count[0] = r->length ? r->frame->string.count : 0;
    for (uint32_t i = 1; i < trie->n_node;) {
        uint32_t depth = node[i].depth, from = r->q[depth - 1];
        r->q[depth] = from;
        r->count[depth] = r->count[depth - 1];
        r->escape[depth] = r->escape[depth - 1];
        enum constrain_text_step step =
            constrain_text_step(r->schema, r->d, &r->q[depth], &r->escape[depth], node[i].byte);
        bool inside = step == CONSTRAIN_TEXT_INSIDE && may_pass(r, depth);
        if (inside && r->length && constrain_text_begins(r->escape[depth - 1], node[i].byte))
            inside = constrain_length_count(r->length, &r->count[depth]);
        bool closed = step == CONSTRAIN_TEXT_CLOSED &&
                      (r->d->accept[from] & CONSTRAIN_DFA_ACCEPTS) &&
                      (!r->length || r->count[depth] >= r->length->min) &&
                      (!r->good || constrain_object_may_name(r->schema, r->frame, from, true));
        if (inside || closed) allow(trie, e->mask, i);
        if (closed && node[i].next != i + 1 &&
            !add_frame_end(e, (struct frame_end){i, from, is_plain, true}, err))
            return false;
        i = inside ? i + 1 : node[i].next;
    }
    return true;
}

static bool fill_string(struct constrain_masker *m, const struct constrain_frame *f,
                        struct cached_mask *e, struct base_error *err)
{
    struct text_states r = {.schema = m->constraint->schema, .frame = f};
    struct plain_depths *depths = &m->string[f->index];
    r.d = r.schema->string[f->index].dfa;
    r.length = &r.schema->string[f->index].length;
    if (!find_depths(m, r.d, depths, false, err)) return false;
    const uint32_t left = r.length->max - f->string.count, min = depths->min_depth[f->state];
    const uint32_t max = depths->max_depth[f->state];
    if (!allow_plain(m, e->mask, min < left ? min : left, max < left ? max : left) &&
        !fill_text(m, &r, true, e, err))
        return false;
    return fill_text(m, &r, false, e, err);
}

static bool fill_name(struct constrain_masker *m, const struct constrain_frame *f,
                      struct cached_mask *e, struct base_error *err)
{
    struct text_states r = {.schema = m->constraint->schema, .frame = f, .good = m->good};
    r.d = r.schema->object[f->index].key;
    for (uint32_t q = 0; q < r.d->n_state; q++)
        m->good[q] = q && constrain_object_may_name(r.schema, f, q, false);
    constrain_plain_depths(r.d, m->good, m->min_depth, m->max_depth, m->todo);
    if (!allow_plain(m, e->mask, m->min_depth[f->state], m->max_depth[f->state]) &&
        !fill_text(m, &r, true, e, err))
        return false;
    return fill_text(m, &r, false, e, err);
}

static bool fill(struct constrain_masker *m, const struct constrain_frame *f, struct cached_mask *e,
                 struct base_error *err)
{
    if (f->kind == CONSTRAIN_FRAME_STRING) return fill_string(m, f, e, err);
    if (f->kind == CONSTRAIN_FRAME_OBJECT) return fill_name(m, f, e, err);
    struct plain_depths *depths = &m->dfa[2 * f->index + (f->next != 0)];
    if (!find_depths(m, m->constraint->dfa[f->index], depths, f->next != 0, err)) return false;
    if (!allow_plain(m, e->mask, depths->min_depth[f->state], depths->max_depth[f->state]) &&
        !fill_automaton(m, f, true, e, err))
        return false;
    return fill_automaton(m, f, false, e, err);
}

/* Returns in *set the set with which the tokens after the end of a frame continue, at depth 0. */
static bool pass_frame_end(struct constrain_masker *m, struct constrain_state *s,
                           const struct constrain_frame *top, const struct frame_end *l,
                           uint32_t *set)
{
    struct constrain_frame f = *top;
    f.state = l->q;
    if (f.kind == CONSTRAIN_FRAME_STRING) /* the string is long enough to be closed */
        f.string.count = m->constraint->schema->string[f.index].length.min;
    if (m->full) constrain_state_rewind(s, m->numbered_frames);
    uint32_t stack = constrain_frame_intern(s, &f);
    constrain_state_begin(s);
    if (!stack) return false;
    if (l->closes)
        constrain_state_step(s, stack, '"');
    else
        constrain_state_leave(s, stack);
    constrain_state_close(s);
    return !s->failed && keep_set(m, s, 0, set);
}

/* Computes the key of a top frame's entry. */
static void top_key(const struct constrain_masker *m, const struct constrain_frame *f,
                    uint64_t key[2])
{
    uint64_t more = f->kind == CONSTRAIN_FRAME_AUTO && f->next;
    key[0] = ((uint64_t)f->index << 32 | f->state) * 0x9e3779b97f4a7c15u + f->kind;
    key[1] = (uint64_t)f->kind << 56 ^ (uint64_t)f->index << 28 ^ f->state;
    if (f->kind ==
        CONSTRAIN_FRAME_OBJECT) { /* the names that occurred, and the counts if they matter */
        const uint64_t *seen = f->object.seen;
        const struct constrain_object *o = &m->constraint->schema->object[f->index];
        if (o->max != UINT32_MAX || m->constraint->schema->ordered) more = f->object.n_names;
        for (int i = 0; i < CONSTRAIN_SEEN_WORDS; i++) {
            more = (more ^ seen[i]) * 0xd6e8feb86659fd93u;
            more ^= more >> 32;
            key[1] = (key[1] ^ seen[i]) * 0xe7037ed1a0b428dbu;
            key[1] ^= key[1] >> 29;
        }
    }
    if (f->kind == CONSTRAIN_FRAME_STRING)
        more =
            constrain_length_key(m->constraint->schema->string[f->index].length, f->string.count);
    key[0] ^= more * 0xff51afd7ed558ccdu;
    key[0] ^= key[0] >> 29;
    key[1] ^= more << 1;
}

/* Allows the tokens that the name of the top frame denotes. */
static void add_named(struct constrain_masker *m, const struct constrain_state *s, uint32_t stack)
{
    const uint32_t rule = s->frame[stack].index;
    if (!s->names) return;
    const uint32_t id = (uint32_t)s->names->id[rule];
    const uint64_t bit = 1ull << (id & 63);
    if (!m->constraint->token[rule].negated)
        m->mask[id >> 6] |= bit;
    else
        for (uint32_t w = 0; w < m->words; w++)
            m->mask[w] |= w == id >> 6 ? s->names->any[w] & ~bit : s->names->any[w];
}

/* Adds the mask of one stack: tokens within its top frame, and tokens that leave it. */
static bool add_top(struct constrain_masker *m, struct constrain_state *s, uint32_t stack)
{
    const struct constrain_frame top = s->frame[stack];
    uint64_t key[2];
    uint32_t set = 0;
    bool found;
    top_key(m, &top, key);
    struct cached_mask *e = find_cached(m, m->top, key, &found, s->err);
    if (!e) return false;
    if (!found) {
        if (!fill(m, &top, e, s->err)) return false;
        e->used = ++m->clock;
    }
    for (uint32_t w = 0; w < m->words; w++) m->mask[w] |= e->mask[w];
    const struct frame_end *last = NULL;
    for (uint32_t i = 0; i < e->n_ends && !s->failed; i++) {
        const struct frame_end *l = &e->end[i];
        if (!last || last->q != l->q || last->closes != l->closes) {
            if (!pass_frame_end(m, s, &top, l, &set)) return false;
            last = l;
        }
        walk(m, s, l->plain ? &m->vocab->plain : &m->vocab->other, l->node, set);
    }
    return !s->failed;
}

/* -- masks of states -- */

static bool has_own_mask(const struct constrain_frame *f)
{
    if (f->kind == CONSTRAIN_FRAME_STRING) return f->state && !f->string.escape.kind;
    if (f->kind == CONSTRAIN_FRAME_OBJECT)
        return f->object.phase == CONSTRAIN_OBJECT_NAME && !f->object.escape.kind;
    return f->kind <= CONSTRAIN_FRAME_TOKEN;
}

/* Adds the mask of the stacks whose top frames have no masks of their own. */
static bool add_others(struct constrain_masker *m, struct constrain_state *s)
{
    uint32_t set;
    s->n_out = 0;
    for (uint32_t i = 0; i < s->n_top; i++) {
        if (!s->top[i] || has_own_mask(&s->frame[s->top[i]])) continue;
        if (!constrain_grow(&s->out, &s->out_room, s->n_out, sizeof *s->out, s->err)) return false;
        s->out[s->n_out++] = s->top[i];
    }
    if (s->n_out == 0) return true;
    if (!keep_set(m, s, 0, &set)) return false;
    walk(m, s, &m->vocab->plain, 0, set);
    walk(m, s, &m->vocab->other, 0, set);
    return !s->failed;
}

static bool make(struct constrain_masker *m, struct constrain_state *s)
{
    bool ok = begin_sets(m, s);
    memset(m->mask, 0, m->words * sizeof *m->mask);
    for (uint32_t i = 0; ok && i < s->n_top; i++) {
        const struct constrain_frame *top = &s->frame[s->top[i]];
        if (s->top[i] && top->kind == CONSTRAIN_FRAME_TOKEN)
            add_named(m, s, s->top[i]);
        else if (s->top[i] && has_own_mask(top))
            ok = add_top(m, s, s->top[i]);
    }
    ok = ok && add_others(m, s);
    constrain_state_rewind(s, m->first_frame);
    return ok;
}

const uint64_t *constrain_masker_mask(struct constrain_masker *m, struct constrain_state *s,
                                      struct base_error *err)
{
    uint64_t key[2];
    bool found;
    constrain_state_key(s, key);
    struct cached_mask *e = find_cached(m, m->whole, key, &found, err);
    if (!e || found) return e ? e->mask : NULL;
    s->err = err;
    s->failed = false;
    if (!make(m, s)) return NULL;
    memcpy(e->mask, m->mask, m->words * sizeof *e->mask);
    e->used = ++m->clock;
    return e->mask;
}

/* sample/constrain/automaton_ops.c: products, lengths and trimming of automata. See
 * sample/constrain/automaton.h. */
#include "base/interrupt.h"
#include "sample/constrain/automaton.h"
#include "sample/constrain/constraint.h"
#include <stdlib.h>
#include <string.h>

enum { MAX_OPERANDS = 31 };

struct constrain_dfa *constrain_dfa_length(uint32_t min, uint32_t max, struct base_error *err)
{
    uint32_t top = max == CONSTRAIN_NO_MAX ? min : max;
    struct constrain_dfa *d = calloc(1, sizeof *d);
    if (!d) goto fail;
    d->n_class = 2; /* class 1: continuation bytes of a code point */
    d->n_state = top + 2;
    for (int b = 0x80; b < 0xc0; b++) d->class_of[b] = 1;
    d->next = calloc(d->n_state, 2 * sizeof *d->next);
    d->accept = calloc(d->n_state, 1);
    d->call_at = calloc((size_t)d->n_state + 1, sizeof *d->call_at);
    if (!d->next || !d->accept || !d->call_at) goto fail;
    for (uint32_t q = 1; q < d->n_state; q++) { /* state q: q - 1 code points were read */
        d->next[2 * q] = q - 1 < top ? q + 1 : max == CONSTRAIN_NO_MAX ? q : 0;
        d->next[2 * q + 1] = q;
        d->accept[q] = q - 1 >= min;
    }
    return d;
fail:
    base_fail(err, BASE_NO_MEMORY, "no memory for an automaton");
    constrain_dfa_free(d);
    return NULL;
}

/* Builds an automaton of any code points, which is an operand of every product. */
static struct constrain_dfa *any_text(struct base_error *err)
{
    struct constrain_tree t = {0};
    struct constrain_dfa *d = NULL;
    uint32_t set = constrain_tree_set(&t, 0, true, 1, 1, err);
    uint32_t star = set ? constrain_tree_add(&t, CONSTRAIN_TREE_REPEAT, 1, 1, err) : 0;
    if (star) {
        t.node[star].max = CONSTRAIN_NO_MAX;
        constrain_tree_adopt(&t, star, set);
        d = constrain_dfa_build(&t, star, false, NULL, err);
    }
    constrain_tree_free(&t);
    return d;
}

struct dfa_product {
    const struct constrain_dfa *d[MAX_OPERANDS + 1]; /* the last operand accepts any text */
    uint32_t n;
    uint32_t *tuple, tuple_room; /* [n_state][n] */
    uint32_t *slot, n_slot;
    uint32_t n_state;
    uint32_t needed; /* bits of the operands that must not be dead */
};

static uint64_t hash_tuple(const uint32_t *t, uint32_t n)
{
    uint64_t h = 7;
    for (uint32_t i = 0; i < n; i++) h = (h ^ t[i]) * 0x9e3779b97f4a7c15u, h ^= h >> 31;
    return h;
}

static bool intern_tuple(struct dfa_product *p, const uint32_t *t, uint32_t *out,
                         struct base_error *err)
{
    size_t bytes = p->n * sizeof *t;
    if (p->n_state * 2 >= p->n_slot) {
        uint32_t n = p->n_slot ? p->n_slot * 2 : 64;
        uint32_t *slot = calloc(n, sizeof *slot);
        if (!slot) return base_fail(err, BASE_NO_MEMORY, "no memory for an automaton");
        for (uint32_t i = 0; i < p->n_state; i++) {
            uint64_t h = hash_tuple(p->tuple + (size_t)i * p->n, p->n);
            while (slot[h & (n - 1)]) h++;
            slot[h & (n - 1)] = i + 1;
        }
        free(p->slot);
        p->slot = slot;
        p->n_slot = n;
    }
    uint64_t h = hash_tuple(t, p->n);
    for (; p->slot[h & (p->n_slot - 1)]; h++) {
        *out = p->slot[h & (p->n_slot - 1)] - 1;
        if (memcmp(p->tuple + (size_t)*out * p->n, t, bytes) == 0) return true;
    }
    if (p->n_state >= CONSTRAIN_MAX_DFA)
        return base_fail(err, BASE_USAGE, "patterns combine to more than %d states",
                         CONSTRAIN_MAX_DFA);
    if (!constrain_grow(&p->tuple, &p->tuple_room, p->n_state, bytes, err)) return false;
    memcpy(p->tuple + (size_t)p->n_state * p->n, t, bytes);
    p->slot[h & (p->n_slot - 1)] = p->n_state + 1;
    *out = p->n_state++;
    return true;
}

static void product_classes(const struct dfa_product *p, struct constrain_dfa *d,
                            uint8_t byte_of[256])
{
    d->n_class = 0;
    for (int b = 0; b < 256; b++) {
        uint32_t c = 0;
        for (; c < d->n_class; c++) {
            bool same = true;
            for (uint32_t i = 0; i < p->n && same; i++)
                same = p->d[i]->class_of[b] == p->d[i]->class_of[byte_of[c]];
            if (same) break;
        }
        if (c == d->n_class) byte_of[d->n_class++] = (uint8_t)b;
        d->class_of[b] = (uint8_t)c;
    }
}

static bool fill_product(struct dfa_product *p, struct constrain_dfa *d, struct base_error *err)
{
    uint32_t t[MAX_OPERANDS + 1] = {0}, q, room = 0, n_next = 0;
    uint8_t byte_of[256];
    product_classes(p, d, byte_of);
    if (!intern_tuple(p, t, &q, err)) return false;
    for (uint32_t i = 0; i < p->n; i++) t[i] = 1;
    if (!intern_tuple(p, t, &q, err)) return false;
    for (uint32_t s = 0; s < p->n_state; s++) {
        if (!base_goes_on(err)) return false;
        if (n_next >= CONSTRAIN_MAX_MOVES)
            return base_fail(err, BASE_USAGE, "patterns combine to more than %d moves",
                             CONSTRAIN_MAX_MOVES);
        for (uint32_t c = 0; c < d->n_class; c++) {
            const uint32_t *from = p->tuple + (size_t)s * p->n;
            for (uint32_t i = 0; i < p->n; i++)
                t[i] = constrain_dfa_step(p->d[i], from[i], byte_of[c]);
            bool is_dead = t[p->n - 1] == 0;
            for (uint32_t i = 0; i < p->n - 1; i++) is_dead |= t[i] == 0 && p->needed >> i & 1;
            if (is_dead) memset(t, 0, sizeof t);
            if (!intern_tuple(p, t, &q, err)) return false;
            if (!constrain_grow(&d->next, &room, n_next, sizeof *d->next, err)) return false;
            d->next[n_next++] = q;
        }
    }
    d->n_state = p->n_state;
    d->accept = calloc(d->n_state, 1);
    d->mask = calloc(d->n_state, sizeof *d->mask);
    d->call_at = calloc((size_t)d->n_state + 1, sizeof *d->call_at);
    if (!d->accept || !d->mask || !d->call_at)
        return base_fail(err, BASE_NO_MEMORY, "no memory for an automaton");
    for (uint32_t s = 1; s < d->n_state; s++) {
        const uint32_t *from = p->tuple + (size_t)s * p->n;
        d->accept[s] = p->d[p->n - 1]->accept[from[p->n - 1]] & 1;
        for (uint32_t i = 0; d->accept[s] && i + 1 < p->n; i++)
            d->mask[s] |= (uint32_t)(p->d[i]->accept[from[i]] & 1) << i;
    }
    return true;
}

struct constrain_dfa *constrain_dfa_product(const struct constrain_dfa *const *d, uint32_t n,
                                            uint32_t needed, struct base_error *err)
{
    struct dfa_product p = {.n = n + 1, .needed = needed};
    if (n > MAX_OPERANDS)
        return base_null(
            base_fail(err, BASE_USAGE, "more than %d patterns in one place", MAX_OPERANDS));
    struct constrain_dfa *any = any_text(err), *out = any ? calloc(1, sizeof *out) : NULL;
    for (uint32_t i = 0; i < n; i++) p.d[i] = d[i];
    p.d[n] = any;
    if (any && !out) base_fail(err, BASE_NO_MEMORY, "no memory for an automaton");
    if (out && !fill_product(&p, out, err)) {
        constrain_dfa_free(out);
        out = NULL;
    }
    constrain_dfa_free(any);
    free(p.tuple);
    free(p.slot);
    return out;
}

/* Sets the CONSTRAIN_DFA_* flags of each state: a state that only accepts needs no frame to return
 * to. */
static void mark_finals(struct constrain_dfa *d)
{
    for (uint32_t q = 1; q < d->n_state; q++) {
        for (uint32_t c = 0; c < d->n_class; c++)
            if (d->next[(size_t)q * d->n_class + c]) d->accept[q] |= CONSTRAIN_DFA_READS;
        for (uint32_t c = d->call_at[q]; c < d->call_at[q + 1]; c++)
            if (d->call[c].back) d->accept[q] |= CONSTRAIN_DFA_CALLS;
    }
}

/* The moves of an automaton by their targets: those to q come from from[at[q]..at[q + 1]). */
struct reversed {
    uint32_t *at, *from;
};

/* Counts a move in the first pass, and stores it in the second, when at[to + 1] is where the next
 * move to that state is stored. */
static void put(struct reversed *r, int pass, uint32_t from, uint32_t to)
{
    if (pass == 0)
        r->at[to + 2]++;
    else
        r->from[r->at[to + 1]++] = from;
}

/* Returns whether the called rule ever returns. */
static bool returns(const struct constrain_call *call, const uint8_t *productive)
{
    return productive && productive[call->rule];
}

static void reverse(const struct constrain_dfa *d, const uint8_t *productive, struct reversed *r)
{
    for (int pass = 0; pass < 2; pass++) {
        for (uint32_t q = 1; q < d->n_state; q++) {
            for (uint32_t c = 0; c < d->n_class; c++)
                put(r, pass, q, d->next[(size_t)q * d->n_class + c]);
            for (uint32_t c = d->call_at[q]; c < d->call_at[q + 1]; c++)
                if (returns(&d->call[c], productive)) put(r, pass, q, d->call[c].back);
        }
        for (uint32_t q = 1; pass == 0 && q < d->n_state + 2; q++) r->at[q] += r->at[q - 1];
    }
}

/* Marks the states from which an accepting one is reached, backward from these. */
static void mark_live(const struct constrain_dfa *d, const struct reversed *r, uint32_t *todo,
                      uint8_t *live)
{
    uint32_t n = 0;
    for (uint32_t q = 1; q < d->n_state; q++)
        if (d->accept[q] & 1) live[q] = 1, todo[n++] = q;
    while (n) {
        const uint32_t q = todo[--n];
        for (uint32_t i = r->at[q]; i < r->at[q + 1]; i++)
            if (!live[r->from[i]]) live[r->from[i]] = 1, todo[n++] = r->from[i];
    }
}

bool constrain_dfa_trim(struct constrain_dfa *d, const uint8_t *productive, struct base_error *err)
{
    const size_t n = d->n_state, moves = n * d->n_class + d->call_at[n];
    struct reversed r = {calloc(n + 2, sizeof *r.at), calloc(moves + 1, sizeof *r.from)};
    uint32_t *todo = calloc(n + 1, sizeof *todo);
    uint8_t *live = calloc(n + 1, 1);
    bool ok = (r.at && r.from && todo && live) ||
              base_fail(err, BASE_NO_MEMORY, "no memory for an automaton");
    if (ok) {
        reverse(d, productive, &r);
        mark_live(d, &r, todo, live);
        for (size_t i = d->n_class; i < n * d->n_class; i++)
            if (!live[d->next[i]]) d->next[i] = 0;
        for (uint32_t c = d->call_at[1]; c < d->call_at[n]; c++)
            if (!returns(&d->call[c], productive) || !live[d->call[c].back]) d->call[c].back = 0;
        mark_finals(d);
        ok = live[1];
    }
    free(r.at), free(r.from), free(todo), free(live);
    return ok;
}

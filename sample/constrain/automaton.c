/* sample/constrain/automaton.c: converts a tree into a deterministic automaton: first Thompson's
 * nondeterministic automaton over UTF-8 bytes, with free (epsilon) moves, then the subset
 * construction. See automaton.h. */
#include "sample/constrain/automaton.h"
#include "base/interrupt.h"
#include "sample/constrain/constraint.h"
#include "sample/constrain/idset.h"
#include <stdlib.h>
#include <string.h>

void constrain_dfa_free(struct constrain_dfa *d)
{
    if (!d) return;
    free(d->next);
    free(d->accept);
    free(d->call_at);
    free(d->call);
    free(d->mask);
    free(d);
}

enum move_kind { MOVE_FREE, MOVE_BEGIN, MOVE_END, MOVE_BYTES, MOVE_CALL };
struct move {
    enum move_kind kind;
    uint32_t to, lo, hi; /* BYTES: lo..hi are the bytes; CALL: lo is the rule */
    uint32_t next;       /* next move of the same state; 0: none */
};
struct nfa {
    uint32_t *first; /* [n_state]: first move of each state */
    uint32_t n_state, state_room;
    struct move *move; /* move[0] is unused */
    uint32_t n_move, move_room;
    const struct constrain_tree *tree;
    const struct constrain_rules *rules;
    uint32_t tail[4]; /* tail[n]: any n continuation bytes lead from it to tail[0]; 0: none yet */
    uint32_t depth;
    struct base_error *err;
};

/* -- building the nondeterministic automaton -- */

static bool add_state(struct nfa *a, uint32_t *state)
{
    if (a->n_state >= CONSTRAIN_MAX_NFA)
        return base_fail(a->err, BASE_USAGE, "the pattern expands to more than %d states",
                         CONSTRAIN_MAX_NFA);
    if (!constrain_grow(&a->first, &a->state_room, a->n_state, sizeof *a->first, a->err))
        return false;
    a->first[a->n_state] = 0;
    *state = a->n_state++;
    return true;
}

static bool add_move(struct nfa *a, uint32_t from, enum move_kind kind, uint32_t lo, uint32_t hi,
                     uint32_t to)
{
    if (a->n_move == 0) a->n_move = 1;
    if (a->n_move >= 4 * CONSTRAIN_MAX_NFA)
        return base_fail(a->err, BASE_USAGE, "the pattern expands to more than %d moves",
                         4 * CONSTRAIN_MAX_NFA);
    if (!constrain_grow(&a->move, &a->move_room, a->n_move, sizeof *a->move, a->err)) return false;
    a->move[a->n_move] = (struct move){kind, to, lo, hi, a->first[from]};
    a->first[from] = a->n_move++;
    return true;
}

/* Returns in *state the state before the last `n` bytes, of any value, of a code point. All code
 * points that lead to the same state `to` share it, which keeps repetitions small. */
static bool add_tail(struct nfa *a, int n, uint32_t to, uint32_t *state)
{
    if (a->tail[0] != to) memset(a->tail, 0, sizeof a->tail);
    a->tail[0] = to;
    for (int i = 1; i <= n; i++)
        if (!a->tail[i] && (!add_state(a, &a->tail[i]) ||
                            !add_move(a, a->tail[i], MOVE_BYTES, 0x80, 0xbf, a->tail[i - 1])))
            return false;
    *state = a->tail[n];
    return true;
}

/* Adds the code points lo..hi, which all have `n` bytes, as sub-ranges in which each byte has a
 * range of its own. */
static bool add_utf8(struct nfa *a, uint32_t from, uint32_t to, uint32_t lo, uint32_t hi, int n,
                     uint32_t lead)
{
    if (n == 1) return add_move(a, from, MOVE_BYTES, lead | lo, lead | hi, to);
    uint32_t span = 1u << (6 * (n - 1)); /* number of code points with the same first byte */
    while (lo <= hi) {
        uint32_t top = lo / span, end = hi / span, mid;
        uint32_t low = lo % span, high = end == top ? hi % span : span - 1;
        if (low == 0 && end > top && hi % span != span - 1) end--, high = span - 1;
        if (low != 0) end = top;
        const bool is_any = low == 0 && high == span - 1;
        if (!(is_any ? add_tail(a, n - 1, to, &mid) : add_state(a, &mid))) return false;
        if (!add_move(a, from, MOVE_BYTES, lead | top, lead | end, mid)) return false;
        if (!is_any && !add_utf8(a, mid, to, low, high, n - 1, 0x80)) return false;
        lo = (end + 1) * span;
    }
    return true;
}

static bool add_range(struct nfa *a, uint32_t from, uint32_t to, uint32_t lo, uint32_t hi)
{
    static const struct {
        uint32_t lo, hi, lead;
        int n;
    } part[] = {{0, 0x7f, 0, 1},
                {0x80, 0x7ff, 0xc0, 2},
                {0x800, 0xd7ff, 0xe0, 3},
                {0xe000, 0xffff, 0xe0, 3},
                {0x10000, 0x10ffff, 0xf0, 4}};
    for (size_t i = 0; i < sizeof part / sizeof part[0]; i++) {
        uint32_t l = lo > part[i].lo ? lo : part[i].lo, h = hi < part[i].hi ? hi : part[i].hi;
        if (l <= h && !add_utf8(a, from, to, l, h, part[i].n, part[i].lead)) return false;
    }
    return true;
}

static bool add_node(struct nfa *a, uint32_t node, uint32_t from, uint32_t to);

static bool add_repeat(struct nfa *a, const struct constrain_node *n, uint32_t from, uint32_t to)
{
    uint32_t at = from, next;
    for (uint32_t i = 0; i < n->min; i++, at = next)
        if (!add_state(a, &next) || !add_node(a, n->child, at, next)) return false;
    if (n->max == CONSTRAIN_NO_MAX) {
        if (!add_state(a, &next) || !add_move(a, at, MOVE_FREE, 0, 0, next)) return false;
        return add_node(a, n->child, next, next) && add_move(a, next, MOVE_FREE, 0, 0, to);
    }
    for (uint32_t i = n->min; i < n->max; i++, at = next) {
        if (!add_move(a, at, MOVE_FREE, 0, 0, to)) return false;
        if (!add_state(a, &next) || !add_node(a, n->child, at, next)) return false;
    }
    return add_move(a, at, MOVE_FREE, 0, 0, to);
}

/* Adds moves from `from` to `to` for the texts that `node` accepts. The readers bound the depth of
 * groups; `depth` also counts inlined rules. A loop begins in a new state, so that alternatives
 * that share `from` do not enter each other's loops. */
static bool add_node(struct nfa *a, uint32_t node, uint32_t from, uint32_t to)
{
    const struct constrain_node *n = &a->tree->node[node];
    uint32_t next, at = from;
    if (a->depth > 8 * CONSTRAIN_MAX_NESTING)
        return base_fail(a->err, BASE_USAGE, "line %u, column %u: nested too deeply", n->line,
                         n->column);
    a->depth++;
    bool ok = true;
    switch (n->kind) {
    case CONSTRAIN_TREE_SEQ:
        for (uint32_t c = n->child; ok && c; c = a->tree->node[c].sibling, at = next)
            ok = add_state(a, &next) && add_node(a, c, at, next);
        ok = ok && add_move(a, at, MOVE_FREE, 0, 0, to);
        break;
    case CONSTRAIN_TREE_ALT:
        for (uint32_t c = n->child; ok && c; c = a->tree->node[c].sibling)
            ok = add_node(a, c, from, to);
        break;
    case CONSTRAIN_TREE_SET:
        for (uint32_t i = 0; ok && i < n->n_range; i++)
            ok = add_range(a, from, to, a->tree->range[n->range + i].lo,
                           a->tree->range[n->range + i].hi);
        break;
    case CONSTRAIN_TREE_BYTE:
        ok = add_move(a, from, MOVE_BYTES, n->min, n->min, to);
        break;
    case CONSTRAIN_TREE_REPEAT:
        ok = add_repeat(a, n, from, to);
        break;
    case CONSTRAIN_TREE_CALL:
        if (a->rules && a->rules->inlined[n->min])
            ok = add_node(a, a->rules->tree[n->min], from, to);
        else
            ok = add_move(a, from, MOVE_CALL, n->min, 0, to);
        break;
    case CONSTRAIN_TREE_BEGIN:
        ok = add_move(a, from, MOVE_BEGIN, 0, 0, to);
        break;
    case CONSTRAIN_TREE_END:
        ok = add_move(a, from, MOVE_END, 0, 0, to);
        break;
    }
    a->depth--;
    return ok;
}

/* -- sets of states -- */

struct sets {
    struct constrain_idsets ids; /* one set for each state of the deterministic automaton */
    uint8_t *accept;
    uint32_t accept_room;
    uint32_t *mark, stamp; /* [n_state]: stamp of the closure that visited the state */
    uint32_t *todo;        /* [n_state] */
    uint32_t *next, next_room, n_next;
    uint64_t work; /* number of moves examined */
    struct constrain_call *call;
    uint32_t n_call, call_room;
    uint32_t *call_at, call_at_room;
};

/* Follows free moves from todo[0..n) and adds the states that have other moves to the set under
 * construction. Returns whether it reaches the final state; with `ends` it follows the moves of
 * assertions of the end too. */
static bool close_set(const struct nfa *a, struct sets *s, uint32_t n, bool begin, bool ends,
                      bool keep, bool *final, uint32_t goal)
{
    *final = false;
    while (n) {
        uint32_t q = s->todo[--n];
        bool matters = false;
        if (q == goal) *final = true;
        for (uint32_t m = a->first[q]; m; m = a->move[m].next) {
            const struct move *v = &a->move[m];
            bool free_move = v->kind == MOVE_FREE || (v->kind == MOVE_BEGIN && begin) ||
                             (v->kind == MOVE_END && ends);
            if (v->kind >= MOVE_END) matters = true;
            if (!free_move || s->mark[v->to] == s->stamp) continue;
            s->mark[v->to] = s->stamp;
            s->todo[n++] = v->to;
        }
        if (!keep || !(matters || q == goal)) continue;
        if (!constrain_idsets_add(&s->ids, q, a->err)) return false;
    }
    return true;
}

/* Sets *out to the number of the closure of todo[0..n); 0 for the empty set. */
static bool intern_set(const struct nfa *a, struct sets *s, uint32_t n, bool begin, uint32_t *out)
{
    const uint32_t known = s->ids.n_set;
    bool final;
    s->stamp++;
    for (uint32_t i = 0; i < n; i++) s->mark[s->todo[i]] = s->stamp;
    if (!close_set(a, s, n, begin, false, true, &final, 1)) return false;
    if (s->ids.n_id > CONSTRAIN_MAX_SETS)
        return base_fail(a->err, BASE_USAGE, "the pattern is too ambiguous to be compiled");
    /* The start is a state of its own, because assertions of the beginning hold only before the
     * first byte. */
    if (!constrain_idsets_close(&s->ids, begin, out, a->err)) return false;
    if (s->ids.n_set == known) return true;
    if (known >= CONSTRAIN_MAX_DFA)
        return base_fail(a->err, BASE_USAGE,
                         "the pattern is too ambiguous: its automaton has more than %d states",
                         CONSTRAIN_MAX_DFA);
    if (!constrain_grow(&s->accept, &s->accept_room, known, 1, a->err)) return false;
    /* The text may end here if assertions of the end hold, and at the start also those of the
     * beginning. */
    s->stamp++;
    const uint32_t from = s->ids.at[known], count = s->ids.at[known + 1] - from;
    memcpy(s->todo, s->ids.id + from, count * sizeof *s->todo);
    for (uint32_t i = 0; i < count; i++) s->mark[s->todo[i]] = s->stamp;
    if (!close_set(a, s, count, begin, true, false, &final, 1)) return false;
    s->accept[*out] = final;
    return true;
}

/* Divides bytes into classes: bytes that no move distinguishes share one. */
static void find_classes(const struct nfa *a, struct constrain_dfa *d)
{
    bool cut[257] = {true};
    for (uint32_t m = 1; m < a->n_move; m++)
        if (a->move[m].kind == MOVE_BYTES) cut[a->move[m].lo] = cut[a->move[m].hi + 1] = true;
    d->n_class = 0;
    for (int b = 0; b < 256; b++) d->class_of[b] = (uint8_t)((d->n_class += cut[b]) - 1);
}

/* Collects in todo[] the targets of one byte, or of one call, from all states of a set. Returns
 * their number. */
static uint32_t targets(const struct nfa *a, struct sets *s, uint32_t set, enum move_kind kind,
                        uint32_t value)
{
    uint32_t n = 0;
    s->stamp++;
    for (uint32_t i = s->ids.at[set]; i < s->ids.at[set + 1]; i++)
        for (uint32_t m = a->first[s->ids.id[i]]; m; m = a->move[m].next, s->work++) {
            const struct move *v = &a->move[m];
            bool hit = v->kind == kind &&
                       (kind == MOVE_CALL ? v->lo == value : v->lo <= value && value <= v->hi);
            if (!hit || s->mark[v->to] == s->stamp) continue;
            s->mark[v->to] = s->stamp;
            s->todo[n++] = v->to;
        }
    return n;
}

static bool add_calls(const struct nfa *a, struct sets *s, uint32_t set)
{
    uint32_t first = s->n_call;
    for (uint32_t i = s->ids.at[set]; i < s->ids.at[set + 1]; i++)
        for (uint32_t m = a->first[s->ids.id[i]]; m; m = a->move[m].next) {
            bool known = a->move[m].kind != MOVE_CALL;
            for (uint32_t c = first; c < s->n_call && !known; c++)
                known = s->call[c].rule == a->move[m].lo;
            if (known) continue;
            if (!constrain_grow(&s->call, &s->call_room, s->n_call, sizeof *s->call, a->err))
                return false;
            s->call[s->n_call++] = (struct constrain_call){a->move[m].lo, 0};
        }
    for (uint32_t c = first; c < s->n_call; c++) {
        uint32_t back, n = targets(a, s, set, MOVE_CALL, s->call[c].rule);
        if (!intern_set(a, s, n, false, &back)) return false;
        s->call[c].back = back;
    }
    return true;
}

static bool determinize(const struct nfa *a, struct sets *s, struct constrain_dfa *d)
{
    uint32_t set;
    uint8_t byte_of[256];
    find_classes(a, d);
    for (int b = 255; b >= 0; b--) byte_of[d->class_of[b]] = (uint8_t)b;
    if (!constrain_idsets_clear(&s->ids, a->err)) return false;
    if (!intern_set(a, s, 0, false, &set)) return false; /* state 0 is the empty set */
    s->todo[0] = 0;
    if (!intern_set(a, s, 1, true, &set)) return false;
    for (uint32_t i = 0; i < s->ids.n_set; i++) {
        if (!base_goes_on(a->err)) return false;
        if (s->n_next >= CONSTRAIN_MAX_MOVES || s->work > CONSTRAIN_MAX_WORK)
            return base_fail(a->err, BASE_USAGE, "the pattern is too large to be compiled");
        if (!constrain_grow(&s->call_at, &s->call_at_room, i + 1, sizeof *s->call_at, a->err))
            return false;
        s->call_at[i] = s->n_call;
        for (uint32_t c = 0; c < d->n_class; c++) {
            uint32_t n = targets(a, s, i, MOVE_BYTES, byte_of[c]);
            if (!intern_set(a, s, n, false, &set)) return false;
            if (!constrain_grow(&s->next, &s->next_room, s->n_next, sizeof *s->next, a->err))
                return false;
            s->next[s->n_next++] = set;
        }
        if (!add_calls(a, s, i)) return false;
        s->call_at[i + 1] = s->n_call;
    }
    d->n_state = s->ids.n_set;
    d->next = s->next;
    d->accept = s->accept;
    d->call = s->call;
    d->call_at = s->call_at;
    s->next = NULL, s->accept = NULL, s->call = NULL, s->call_at = NULL;
    return true;
}

static bool build_nfa(struct nfa *a, uint32_t root, bool search)
{
    uint32_t start, goal, from, to;
    if (!add_state(a, &start) || !add_state(a, &goal)) return false; /* states 0 and 1 */
    if (!add_state(a, &from) || !add_state(a, &to)) return false;
    if (!add_move(a, start, MOVE_FREE, 0, 0, from) || !add_move(a, to, MOVE_FREE, 0, 0, goal))
        return false;
    if (search && (!add_range(a, from, from, 0, 0x10ffff) || !add_range(a, to, to, 0, 0x10ffff)))
        return false;
    return add_node(a, root, from, to);
}

struct constrain_dfa *constrain_dfa_build(const struct constrain_tree *t, uint32_t root,
                                          bool search, const struct constrain_rules *rules,
                                          struct base_error *err)
{
    struct nfa a = {.tree = t, .rules = rules, .err = err};
    struct sets s = {0};
    bool ok = false;
    struct constrain_dfa *d = calloc(1, sizeof *d);
    if (!d) base_fail(err, BASE_NO_MEMORY, "no memory for an automaton");
    if (d && build_nfa(&a, root, search)) {
        s.mark = calloc(a.n_state, sizeof *s.mark);
        s.todo = calloc(a.n_state, sizeof *s.todo);
        if (!s.mark || !s.todo) base_fail(err, BASE_NO_MEMORY, "no memory for an automaton");
        ok = s.mark && s.todo && determinize(&a, &s, d);
    }
    free(a.first), free(a.move);
    constrain_idsets_free(&s.ids);
    free(s.accept), free(s.mark), free(s.todo);
    free(s.next), free(s.call), free(s.call_at);
    if (!ok) {
        constrain_dfa_free(d);
        d = NULL;
    }
    return d;
}

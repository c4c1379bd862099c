/* sample/constrain/grammar.c: compiles a grammar's rules into automata. Small rules that are not
 * recursive are inlined, the others are called. See sample/constrain/grammar_read.h. */
#include "sample/constrain/constrain_stack.h"
#include "sample/constrain/grammar_read.h"
#include <stdlib.h>
#include <string.h>

enum { INLINE_STATES = 2000, INLINE_DEPTH = 40 };

/* -- inlining -- */

struct plan {
    uint32_t *size, *depth; /* per rule: states and depth of its tree, inlined rules included */
    uint8_t *inlined, *done;
    uint32_t *tree;
};

/* Computes an upper bound of the states of a tree; false while it calls a rule that is not planned
 * yet. */
static bool measure(const struct constrain_grammar *g, const struct plan *p, uint32_t node,
                    uint64_t *size, uint32_t *depth)
{
    const struct constrain_node *n = &g->tree.node[node];
    uint64_t sum = 1;
    uint32_t deepest = 0;
    if (n->kind == CONSTRAIN_TREE_CALL) {
        if (!p->done[n->min]) return false;
        *size = p->inlined[n->min] ? p->size[n->min] : 1;
        *depth = p->inlined[n->min] ? p->depth[n->min] + 1 : 1;
        return true;
    }
    if (n->kind == CONSTRAIN_TREE_SET) sum = 20;
    for (uint32_t c = n->child; c; c = g->tree.node[c].sibling) {
        uint64_t part;
        uint32_t below;
        if (!measure(g, p, c, &part, &below)) return false;
        sum += part;
        if (below > deepest) deepest = below;
    }
    if (n->kind == CONSTRAIN_TREE_REPEAT)
        sum *= n->max != CONSTRAIN_NO_MAX ? (uint64_t)n->max + 1 : (uint64_t)n->min + 1;
    *size = sum < CONSTRAIN_MAX_NFA ? sum : CONSTRAIN_MAX_NFA;
    *depth = deepest + 1;
    return true;
}

/* Plans the rules whose callees are all planned; the rules of a cycle remain calls. */
static void plan_rules(const struct constrain_grammar *g, struct plan *p)
{
    bool changed = true;
    for (int pass = 0; changed; pass++) {
        changed = false;
        for (uint32_t k = 0; k < g->n_rule; k++) {
            uint32_t i = pass & 1 ? k : g->n_rule - 1 - k, depth;
            uint64_t size;
            if (p->done[i] || !measure(g, p, g->rule[i].tree, &size, &depth)) continue;
            p->done[i] = 1;
            p->size[i] = (uint32_t)size;
            p->depth[i] = depth;
            p->inlined[i] = size <= INLINE_STATES && depth <= INLINE_DEPTH;
            changed = true;
        }
    }
}

/* -- properties of rules -- */

/* Returns whether the rule can match any text (`bytes`), or the empty text. */
static bool can_end(const struct constrain_dfa *d, const uint8_t *able, bool bytes, uint8_t *seen,
                    uint32_t *todo)
{
    uint32_t n = 0;
    memset(seen, 0, d->n_state);
    seen[1] = 1;
    todo[n++] = 1;
    while (n) {
        uint32_t q = todo[--n];
        if (d->accept[q]) return true;
        for (uint32_t c = 0; bytes && c < d->n_class; c++) {
            uint32_t to = d->next[(size_t)q * d->n_class + c];
            if (to && !seen[to]) seen[to] = 1, todo[n++] = to;
        }
        for (uint32_t c = d->call_at[q]; c < d->call_at[q + 1]; c++) {
            uint32_t to = d->call[c].back;
            if (to && able[d->call[c].rule] && !seen[to]) seen[to] = 1, todo[n++] = to;
        }
    }
    return false;
}

/* Marks in able[] the rules that can match, beginning with those marked already, until none is
 * added. */
static void find_able(struct constrain_dfa **dfa, uint32_t n, bool bytes, uint8_t *able,
                      uint8_t *seen, uint32_t *todo)
{
    bool changed = true;
    for (int pass = 0; changed; pass++) {
        changed = false;
        for (uint32_t k = 0; k < n; k++) {
            uint32_t i = pass & 1 ? k : n - 1 - k;
            if (!dfa[i] || able[i] || !can_end(dfa[i], able, bytes, seen, todo)) continue;
            able[i] = 1;
            changed = true;
        }
    }
}

/* Returns 1 + a rule that can be called at the rule's left edge and may be part of a cycle; 0 if
 * there is none. */
static uint32_t left_edge_open(const struct constrain_dfa *d, const uint8_t *nullable,
                               const uint8_t *clear, uint8_t *seen, uint32_t *todo)
{
    uint32_t n = 0;
    memset(seen, 0, d->n_state);
    seen[1] = 1;
    todo[n++] = 1;
    while (n) {
        uint32_t q = todo[--n];
        for (uint32_t c = d->call_at[q]; c < d->call_at[q + 1]; c++) {
            uint32_t to = d->call[c].back;
            if (!to) continue;
            if (!clear[d->call[c].rule]) return d->call[c].rule + 1;
            if (nullable[d->call[c].rule] && !seen[to]) seen[to] = 1, todo[n++] = to;
        }
    }
    return 0;
}

static bool check_left(const struct constrain_grammar *g, struct constrain_dfa **dfa,
                       const uint8_t *nullable, uint8_t *clear, uint8_t *seen, uint32_t *todo,
                       struct base_error *err)
{
    bool changed = true;
    for (int pass = 0; changed; pass++) {
        changed = false;
        for (uint32_t k = 0; k < g->n_rule; k++) {
            uint32_t i = pass & 1 ? k : g->n_rule - 1 - k;
            if (clear[i] || (dfa[i] && left_edge_open(dfa[i], nullable, clear, seen, todo)))
                continue;
            clear[i] = 1;
            changed = true;
        }
    }
    uint32_t at = 0;
    while (at < g->n_rule && clear[at]) at++;
    if (at == g->n_rule) return true;
    /* Rule `at` may lead to a cycle without being part of it. After as many calls as there are
     * rules, `at` is part of the cycle. */
    for (uint32_t k = 0; k < g->n_rule; k++)
        at = left_edge_open(dfa[at], nullable, clear, seen, todo) - 1;
    return base_fail(err, BASE_USAGE,
                     "line %u, column %u: rule '%s' is left-recursive: it can call itself "
                     "before it reads anything",
                     g->rule[at].line, g->rule[at].column, g->rule[at].name);
}

/* -- building -- */

/* Builds the automata of the root and of all rules that are called from it, directly or not. */
static bool build_rules(const struct constrain_grammar *g, const struct plan *p,
                        struct constraint *c, uint32_t *todo, uint32_t *max_state,
                        struct base_error *err)
{
    struct constrain_rules rules = {p->tree, p->inlined};
    uint32_t n = 0, total = 0;
    todo[n++] = c->root;
    while (n) {
        uint32_t r = todo[--n];
        if (c->dfa[r]) continue;
        struct base_error why = BASE_ERROR_INIT;
        struct constrain_dfa *d =
            constrain_dfa_build(&g->tree, g->rule[r].tree, false, &rules, &why);
        c->dfa[r] = d;
        if (!d)
            return base_fail(err, why.code, "line %u, column %u: rule '%s': %s", g->rule[r].line,
                             g->rule[r].column, g->rule[r].name, why.text);
        total += d->n_state;
        if (total > 4 * CONSTRAIN_MAX_NFA)
            return base_fail(err, BASE_USAGE, "line %u, column %u: the grammar is too large",
                             g->rule[r].line, g->rule[r].column);
        if (d->n_state > *max_state) *max_state = d->n_state;
        for (uint32_t i = 0; i < d->call_at[d->n_state]; i++) {
            uint32_t called = d->call[i].rule;
            if (c->dfa[called] || p->done[called] == 2) continue;
            p->done[called] = 2; /* in the list */
            todo[n++] = called;
        }
    }
    return true;
}

static bool check_rules(const struct constrain_grammar *g, struct constraint *c, uint32_t max_state,
                        struct base_error *err)
{
    uint32_t n = g->n_rule;
    uint8_t *flag = calloc(n, 3), *seen = calloc(max_state, 1);
    uint32_t *todo = calloc(max_state, sizeof *todo);
    bool ok = flag && seen && todo;
    if (!ok) base_fail(err, BASE_NO_MEMORY, "no memory for a grammar");
    if (ok) {
        uint8_t *nullable = flag, *productive = flag + n, *clear = flag + 2 * (size_t)n;
        for (uint32_t i = 0; i < n; i++) productive[i] = constrain_rule_is_token(&g->rule[i]);
        find_able(c->dfa, n, false, nullable, seen, todo);
        find_able(c->dfa, n, true, productive, seen, todo);
        ok = check_left(g, c->dfa, nullable, clear, seen, todo, err);
        if (ok && !productive[c->root])
            ok = base_fail(err, BASE_USAGE,
                           "line %u, column %u: rule '%s' can never end: nothing derives from it",
                           g->rule[c->root].line, g->rule[c->root].column, g->rule[c->root].name);
        for (uint32_t i = 0; ok && i < n; i++) { /* a dead rule is allowed: no rule calls it */
            struct base_error why = BASE_ERROR_INIT;
            if (c->dfa[i] && !constrain_dfa_trim(c->dfa[i], productive, &why) &&
                why.code != BASE_OK)
                ok = base_fail(err, why.code, "%s", why.text);
        }
    }
    free(flag), free(seen), free(todo);
    return ok;
}

/* Copies the names of tokens, which are rules without an automaton. */
static bool copy_tokens(const struct constrain_grammar *g, struct constraint *c,
                        struct base_error *err)
{
    for (uint32_t i = 0; i < g->n_rule; i++) {
        const struct constrain_rule *r = &g->rule[i];
        if (!constrain_rule_is_token(r)) continue;
        if (!c->token) c->token = calloc(g->n_rule, sizeof *c->token);
        char *text = c->token ? strdup(r->name + (r->name[0] == '!')) : NULL;
        if (!text) return base_fail(err, BASE_NO_MEMORY, "no memory for a grammar");
        c->token[i] = (struct constrain_token){text, r->name[0] == '!', r->line, r->column};
    }
    return true;
}

static bool compile(const struct constrain_grammar *g, struct constraint *c, struct base_error *err)
{
    uint32_t n = g->n_rule, max_state = 2;
    struct plan p = {calloc(n, 4), calloc(n, 4), calloc(n, 1), calloc(n, 1), calloc(n, 4)};
    uint32_t *todo = calloc((size_t)n + 1, sizeof *todo);
    c->dfa = calloc(n, sizeof *c->dfa);
    bool ok = p.size && p.depth && p.inlined && p.done && p.tree && todo && c->dfa;
    if (!ok) {
        base_fail(err, BASE_NO_MEMORY, "no memory for a grammar");
    } else {
        c->n_dfa = n;
        c->root = g->root;
        for (uint32_t i = 0; i < n; i++) {
            p.tree[i] = g->rule[i].tree;
            if (constrain_rule_is_token(&g->rule[i])) p.done[i] = 2; /* it has no automaton */
        }
        plan_rules(g, &p);
        ok = build_rules(g, &p, c, todo, &max_state, err) && check_rules(g, c, max_state, err) &&
             copy_tokens(g, c, err);
    }
    free(p.size), free(p.depth), free(p.inlined), free(p.done), free(p.tree), free(todo);
    return ok;
}

struct constraint *constraint_from_grammar(const char *text, size_t size, struct base_error *err)
{
    struct constrain_grammar g = {0};
    struct constraint *c = calloc(1, sizeof *c);
    if (!c) {
        base_fail(err, BASE_NO_MEMORY, "no memory for a grammar");
    } else if (!constrain_grammar_read(&g, text, size, err) || !compile(&g, c, err)) {
        constraint_free(c);
        c = NULL;
    }
    constrain_grammar_free(&g);
    return c;
}

/* sample/constrain/schema_expand.c: the ways to satisfy a set of literals with a value of one type.
 * Unit propagation decides clauses with one open alternative; the others branch. See schema.h. */
#include "base/interrupt.h"
#include "sample/constrain/schema.h"
#include <stdlib.h>
#include <string.h>

enum { STATUS_DEPTH = 12, MAX_SET = 4000 };

static const uint8_t types_of[] = {
    [CONSTRAIN_F_MIN] = CONSTRAIN_IS_NUMBER,      [CONSTRAIN_F_MAX] = CONSTRAIN_IS_NUMBER,
    [CONSTRAIN_F_MULTIPLE] = CONSTRAIN_IS_NUMBER, [CONSTRAIN_F_LENGTH] = CONSTRAIN_IS_STRING,
    [CONSTRAIN_F_TEXT] = CONSTRAIN_IS_STRING,     [CONSTRAIN_F_PROPERTY] = CONSTRAIN_IS_OBJECT,
    [CONSTRAIN_F_PATTERN] = CONSTRAIN_IS_OBJECT,  [CONSTRAIN_F_NAMES] = CONSTRAIN_IS_OBJECT,
    [CONSTRAIN_F_REQUIRED] = CONSTRAIN_IS_OBJECT, [CONSTRAIN_F_MIN_PROPS] = CONSTRAIN_IS_OBJECT,
    [CONSTRAIN_F_ITEM] = CONSTRAIN_IS_ARRAY,      [CONSTRAIN_F_ITEMS] = CONSTRAIN_IS_ARRAY,
    [CONSTRAIN_F_MIN_ITEMS] = CONSTRAIN_IS_ARRAY, [CONSTRAIN_F_MIN_CONTAINS] = CONSTRAIN_IS_ARRAY,
    [CONSTRAIN_F_EXISTS] = CONSTRAIN_IS_OBJECT,   [CONSTRAIN_F_UNIQUE] = CONSTRAIN_IS_ARRAY};

struct literal_set { /* literals in the order in which they were added */
    uint32_t *lit, n, room;
};
struct expansion {
    const struct constrain_schema *s;
    enum constrain_type type;
    constrain_leaf_fn *leaf;
    void *context;
    uint32_t leaves, nodes, depth;
    uint32_t json; /* node of the schema, for messages */
    struct base_error *err;
};
enum status { IS_FALSE, IS_TRUE, IS_OPEN };

static bool add(struct literal_set *set, uint32_t lit, struct base_error *err)
{
    if (set->n >= MAX_SET) return base_fail(err, BASE_USAGE, "a place of the schema is too large");
    if (!constrain_grow(&set->lit, &set->room, set->n, sizeof *set->lit, err)) return false;
    set->lit[set->n++] = lit;
    return true;
}

static bool has(const struct literal_set *set, uint32_t lit)
{
    for (uint32_t i = 0; i < set->n; i++)
        if (set->lit[i] == lit) return true;
    return false;
}

static bool same_atom(const struct constrain_formula *x, const struct constrain_formula *y)
{
    return x->kind == y->kind && x->a == y->a && x->b == y->b && x->c == y->c;
}

/* Returns the status of an atom if `atoms` hold. Equal atoms of different places of the schema
 * count as the same. */
static enum status atom_status(const struct expansion *e, const struct literal_set *atoms,
                               uint32_t lit)
{
    const struct constrain_formula *f = &e->s->formula[lit / 2];
    bool negated = lit & 1;
    if (f->kind == CONSTRAIN_F_TYPE) return ((f->a & e->type) != 0) != negated ? IS_TRUE : IS_FALSE;
    if (!(types_of[f->kind] & e->type)) return negated ? IS_FALSE : IS_TRUE;
    if (f->kind == CONSTRAIN_F_PROPERTY && f->b == CONSTRAIN_LIT_TRUE)
        return negated ? IS_FALSE : IS_TRUE;
    if (f->kind == CONSTRAIN_F_TEXT && f->a == CONSTRAIN_TEXT_UNKNOWN)
        return e->depth == 0 ? IS_FALSE : IS_TRUE; /* deeper: schemas may overlap here */
    for (uint32_t i = 0; i < atoms->n; i++) {
        const struct constrain_formula *g = &e->s->formula[atoms->lit[i] / 2];
        if (same_atom(f, g)) return ((atoms->lit[i] ^ lit) & 1) ? IS_FALSE : IS_TRUE;
        /* "Required" contradicts "must be absent". */
        if (f->kind == CONSTRAIN_F_PROPERTY && f->b == CONSTRAIN_LIT_FALSE &&
            g->kind == CONSTRAIN_F_REQUIRED && f->a == g->a)
            return (atoms->lit[i] & 1) == negated ? IS_FALSE : IS_TRUE;
        if (f->kind == CONSTRAIN_F_REQUIRED && g->kind == CONSTRAIN_F_PROPERTY && f->a == g->a &&
            g->b == CONSTRAIN_LIT_FALSE)
            return (atoms->lit[i] & 1) == negated ? IS_FALSE : IS_TRUE;
    }
    return IS_OPEN;
}

static bool disjoint(const struct expansion *e, uint32_t x, uint32_t y);

/* Returns whether the literal is false because a required property has schemas that exclude each
 * other. */
static bool excluded(const struct expansion *e, const struct literal_set *atoms, uint32_t lit)
{
    const struct constrain_formula *f = &e->s->formula[lit / 2];
    bool required = false, apart = false;
    if (f->kind != CONSTRAIN_F_PROPERTY || e->depth > 1) return false;
    for (uint32_t i = 0; i < atoms->n; i++) {
        const struct constrain_formula *g = &e->s->formula[atoms->lit[i] / 2];
        if (atoms->lit[i] & 1 || g->a != f->a) continue;
        if (g->kind == CONSTRAIN_F_REQUIRED) required = true;
        if (g->kind == CONSTRAIN_F_PROPERTY && !apart) apart = disjoint(e, g->b, f->b);
    }
    return required && apart;
}

static enum status status_of(const struct expansion *e, const struct literal_set *atoms,
                             uint32_t lit, uint32_t depth)
{
    const struct constrain_formula *f = &e->s->formula[lit / 2];
    if (f->kind > CONSTRAIN_F_OR) {
        enum status known = atom_status(e, atoms, lit);
        if (known == IS_OPEN && excluded(e, atoms, lit)) return lit & 1 ? IS_TRUE : IS_FALSE;
        return known;
    }
    /* A conjunction (all) or a disjunction of literals; a negation exchanges the two and negates
     * each literal. */
    bool all = (f->kind == CONSTRAIN_F_AND) != (lit & 1);
    enum status sum = all ? IS_TRUE : IS_FALSE;
    if (depth > STATUS_DEPTH) return IS_OPEN;
    for (uint32_t i = 0; i < f->b; i++) {
        enum status part = status_of(e, atoms, e->s->list[f->a + i] ^ (lit & 1), depth + 1);
        if (part == (all ? IS_FALSE : IS_TRUE)) return part;
        if (part == IS_OPEN) sum = IS_OPEN;
    }
    return sum;
}

/* Assumes that the literals `todo` hold: collects atoms, and appends disjunctions to `clauses`.
 * Returns false with *fits false if they contradict each other. */
static bool assume(struct expansion *e, struct literal_set *todo, struct literal_set *seen,
                   struct literal_set *atoms, struct literal_set *clauses, bool *fits)
{
    *fits = true;
    while (todo->n && *fits) {
        uint32_t lit = todo->lit[--todo->n];
        const struct constrain_formula *f = &e->s->formula[lit / 2];
        if (!base_goes_on(e->err)) return false;
        if (++e->nodes > 100 * CONSTRAIN_MAX_BRANCHES)
            return constrain_schema_fail(e->s, f->json, e->err, "leads to too many combinations");
        if (has(seen, lit)) continue;
        if (has(seen, lit ^ 1)) *fits = false;
        if (!add(seen, lit, e->err)) return false;
        if (f->kind > CONSTRAIN_F_OR) {
            enum status known = atom_status(e, atoms, lit);
            if (known == IS_FALSE) *fits = false;
            if (known == IS_OPEN && !add(atoms, lit, e->err)) return false;
        } else if ((f->kind == CONSTRAIN_F_AND) != (lit & 1)) {
            for (uint32_t i = f->b; i-- > 0;)
                if (!add(todo, e->s->list[f->a + i] ^ (lit & 1), e->err)) return false;
        } else if (!add(clauses, lit, e->err)) {
            return false;
        }
    }
    return true;
}

/* Decides clauses with one open alternative until none is left; *branch becomes one with several,
 * or -1. */
static bool decide(struct expansion *e, struct literal_set *seen, struct literal_set *atoms,
                   struct literal_set *clauses, bool *fits, int64_t *branch)
{
    struct literal_set todo = {0};
    bool ok = true, changed = true;
    *fits = true;
    while (ok && *fits && changed) {
        changed = false;
        *branch = -1;
        for (uint32_t c = 0; ok && *fits && c < clauses->n; c++) {
            uint32_t lit = clauses->lit[c], open = 0, last = 0;
            const struct constrain_formula *f = &e->s->formula[lit / 2];
            bool met = false;
            for (uint32_t i = 0; i < f->b && !met; i++) {
                uint32_t part = e->s->list[f->a + i] ^ (lit & 1);
                enum status known = has(seen, part) ? IS_TRUE : status_of(e, atoms, part, 0);
                met = known == IS_TRUE;
                if (known == IS_OPEN) open++, last = part;
            }
            if (!met && open > 1) {
                if (*branch < 0) *branch = c;
                continue;
            }
            clauses->lit[c--] = clauses->lit[--clauses->n];
            *branch = -1;
            changed = true;
            if (met) continue;
            *fits = open == 1;
            ok = !*fits ||
                 (add(&todo, last, e->err) && assume(e, &todo, seen, atoms, clauses, fits));
        }
    }
    free(todo.lit);
    return ok;
}

static bool copy_set(struct literal_set *out, const struct literal_set *in, struct base_error *err)
{
    *out = (struct literal_set){calloc(in->n + 16, sizeof *out->lit), in->n, in->n + 16};
    if (!out->lit) return base_fail(err, BASE_NO_MEMORY, "no memory for a schema");
    if (in->n) memcpy(out->lit, in->lit, in->n * sizeof *in->lit);
    return true;
}

static bool solve(struct expansion *e, struct literal_set *todo, struct literal_set *seen,
                  struct literal_set *atoms, struct literal_set *clauses, uint32_t level);

static bool solve_branch(struct expansion *e, uint32_t choice, const struct literal_set *seen,
                         const struct literal_set *atoms, const struct literal_set *clauses,
                         uint32_t level)
{
    struct literal_set todo = {0}, s = {0}, a = {0}, c = {0};
    bool ok = copy_set(&s, seen, e->err) && copy_set(&a, atoms, e->err) &&
              copy_set(&c, clauses, e->err) && add(&todo, choice, e->err) &&
              solve(e, &todo, &s, &a, &c, level + 1);
    free(todo.lit), free(s.lit), free(a.lit), free(c.lit);
    return ok;
}

static bool solve(struct expansion *e, struct literal_set *todo, struct literal_set *seen,
                  struct literal_set *atoms, struct literal_set *clauses, uint32_t level)
{
    bool fits;
    int64_t branch;
    if (!assume(e, todo, seen, atoms, clauses, &fits)) return false;
    if (!fits) return true;
    if (!decide(e, seen, atoms, clauses, &fits, &branch)) return false;
    if (!fits) return true;
    if (branch < 0) {
        if (++e->leaves > CONSTRAIN_MAX_BRANCHES)
            return base_fail(e->err, BASE_USAGE,
                             "line %u, column %u: 'anyOf', 'oneOf', 'not' or 'if' leads to more "
                             "than %d combinations",
                             e->s->json.node[e->json].line, e->s->json.node[e->json].column,
                             CONSTRAIN_MAX_BRANCHES);
        if (atoms->n) qsort(atoms->lit, atoms->n, sizeof *atoms->lit, constrain_schema_compare);
        return e->leaf(e->context, atoms->lit, atoms->n, e->err);
    }
    uint32_t lit = clauses->lit[branch];
    const struct constrain_formula *f = &e->s->formula[lit / 2];
    if (level > CONSTRAIN_MAX_NESTING)
        return constrain_schema_fail(e->s, f->json, e->err, "leads to too many combinations");
    clauses->lit[branch] = clauses->lit[--clauses->n];
    for (uint32_t i = 0; i < f->b; i++)
        if (!solve_branch(e, e->s->list[f->a + i] ^ (lit & 1), seen, atoms, clauses, level))
            return false;
    return true;
}

static bool expand(const struct constrain_schema *s, const uint32_t *lits, uint32_t n,
                   enum constrain_type type, constrain_leaf_fn *leaf, void *context, uint32_t depth,
                   struct base_error *err)
{
    struct expansion e = {
        s, type, leaf, context, 0, 0, depth, n ? s->formula[lits[n - 1] / 2].json : 1, err};
    struct literal_set todo = {0}, seen = {0}, atoms = {0}, clauses = {0};
    bool ok = true;
    for (uint32_t i = n; ok && i-- > 0;) ok = add(&todo, lits[i], err);
    ok = ok && solve(&e, &todo, &seen, &atoms, &clauses, 0);
    free(todo.lit), free(seen.lit), free(atoms.lit), free(clauses.lit);
    return ok;
}

bool constrain_schema_expand(const struct constrain_schema *s, const uint32_t *lits, uint32_t n,
                             enum constrain_type type, constrain_leaf_fn *leaf, void *context,
                             struct base_error *err)
{
    return expand(s, lits, n, type, leaf, context, 0, err);
}

/* -- whether two schemas exclude each other -- */

struct overlap {
    const struct constrain_schema *s;
    enum constrain_type type;
    bool found;
};

static bool overlap_leaf(void *context, const uint32_t *atoms, uint32_t n, struct base_error *err)
{
    struct overlap *o = context;
    if (o->type != CONSTRAIN_IS_STRING) {
        o->found = true;
        return true;
    }
    struct constrain_length length;
    if (constrain_schema_length(o->s, atoms, n, &length)) {
        o->found |= length.min <= length.max;
        return true;
    }
    struct constrain_dfa *d = constrain_schema_string(o->s, atoms, n, err);
    if (d) o->found = true;
    constrain_dfa_free(d);
    return true;
}

/* Returns true only if no value satisfies both. Compares the languages of strings, otherwise only
 * the types. */
static bool disjoint(const struct expansion *e, uint32_t x, uint32_t y)
{
    struct overlap o = {e->s, 0, false};
    uint32_t lits[2] = {x, y};
    for (uint32_t type = 1; type < CONSTRAIN_IS_ANY && !o.found; type <<= 1) {
        struct base_error why = BASE_ERROR_INIT;
        o.type = (enum constrain_type)type;
        if (!expand(e->s, lits, 2, o.type, overlap_leaf, &o, e->depth + 1, &why)) return false;
        if (why.code != BASE_OK) return false;
    }
    return !o.found;
}

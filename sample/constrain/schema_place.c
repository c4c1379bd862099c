/* sample/constrain/schema_place.c: places: sets of literals that one value must satisfy, compiled
 * into alternatives by type. Numbers and arrays are here, objects in schema_object.c. See
 * schema.h. */
#include "base/interrupt.h"
#include "sample/constrain/constrain_stack.h"
#include "sample/constrain/schema.h"
#include <stdlib.h>
#include <string.h>

/* -- numbers -- */

static void raise_min(struct constrain_number *c, const struct constrain_decimal *d, bool open)
{
    int order = c->has_min ? constrain_decimal_compare(d, &c->min) : 1;
    if (order > 0) c->min = *d;
    c->open_min = order > 0 ? open : order == 0 ? c->open_min || open : c->open_min;
    c->has_min = true;
}

static void lower_max(struct constrain_number *c, const struct constrain_decimal *d, bool open)
{
    int order = c->has_max ? constrain_decimal_compare(d, &c->max) : -1;
    if (order < 0) c->max = *d;
    c->open_max = order < 0 ? open : order == 0 ? c->open_max || open : c->open_max;
    c->has_max = true;
}

static bool add_step(struct constrain_schema *s, const struct constrain_decimal *d,
                     struct base_error *err)
{
    if (!constrain_grow(&s->step, &s->step_room, s->n_step, sizeof *s->step, err)) return false;
    s->step[s->n_step++] = *d;
    return true;
}

static __int128 common(__int128 a, __int128 b)
{
    while (b) {
        __int128 rest = a % b;
        a = b;
        b = rest;
    }
    return a;
}

/* Converts the bounds and the step to units of 1/10^9, rounded inwards: generation uses a
 * subset. */
static void scale_number(const struct constrain_schema *s, struct constrain_number *c)
{
    const __int128 max = (__int128)10000000000000000 * 1000000000;
    bool exact;
    c->lo = -max, c->hi = max, c->grid = 1;
    c->rounded = !c->has_min || !c->has_max;
    if (c->has_min) {
        c->lo = constrain_decimal_scaled(&c->min, &exact);
        c->rounded |= !exact || c->lo < -max || c->lo > max;
        if (!exact && !c->min.negative)
            c->lo++;
        else if (exact && c->open_min)
            c->lo++;
        if (c->lo < -max) c->lo = -max;
    }
    if (c->has_max) {
        c->hi = constrain_decimal_scaled(&c->max, &exact);
        c->rounded |= !exact || c->hi < -max || c->hi > max;
        if (!exact && c->max.negative)
            c->hi--;
        else if (exact && c->open_max)
            c->hi--;
        if (c->hi > max) c->hi = max;
    }
    for (uint32_t i = 0; i < c->n_multiple && c->grid; i++) {
        __int128 step = constrain_decimal_scaled(&s->step[c->multiple + i], &exact);
        const __int128 part = exact && step ? step / common(c->grid, step) : 0;
        if (part && c->grid <= max / part) {
            c->grid *= part;
            continue;
        }
        c->rounded = true;
        if (part) { /* 0 is the only multiple that is generated */
            if (c->lo < 0) c->lo = 0;
            if (c->hi > 0) c->hi = 0;
        } else {
            c->grid = 0; /* checked only at the end of the number */
        }
    }
    c->rounded |= c->n_not_multiple > CONSTRAIN_MAX_AVOID;
    for (uint32_t i = 0; i < c->n_not_multiple && c->n_avoid < CONSTRAIN_MAX_AVOID; i++) {
        __int128 step = constrain_decimal_scaled(&s->step[c->not_multiple + i], &exact);
        if (exact && step)
            c->avoid[c->n_avoid++] = step;
        else
            c->rounded = true;
    }
}

/* Returns the node of the only number within the bounds: that of a const or enum, if there is
 * one. */
static uint32_t find_literal(const struct constrain_schema *s, const uint32_t *atoms, uint32_t n,
                             const struct constrain_number *c)
{
    uint32_t found = 0;
    if (!c->has_min || !c->has_max || constrain_decimal_compare(&c->min, &c->max) != 0) return 0;
    for (uint32_t i = 0; i < n; i++) {
        const struct constrain_formula *f = &s->formula[atoms[i] / 2];
        if (f->kind == CONSTRAIN_F_MULTIPLE ||
            constrain_decimal_compare(&s->decimal[f->a], &c->min) != 0)
            continue;
        if (f->c || !found) found = f->json;
        if (f->c) break;
    }
    return found;
}

static bool is_empty_number(const struct constrain_number *c)
{
    if (!c->has_min || !c->has_max) return false;
    int order = constrain_decimal_compare(&c->min, &c->max);
    return order > 0 || (order == 0 && (c->open_min || c->open_max));
}

static bool make_number(struct constrain_schema *s, const uint32_t *atoms, uint32_t n,
                        struct constrain_number *c, struct base_error *err)
{
    *c = (struct constrain_number){.bounded = n > 0};
    for (uint32_t i = 0; i < n; i++) {
        const struct constrain_formula *f = &s->formula[atoms[i] / 2];
        const struct constrain_decimal *d = &s->decimal[f->a];
        bool negate = atoms[i] & 1;
        if (f->kind == CONSTRAIN_F_MULTIPLE) continue;
        if ((f->kind == CONSTRAIN_F_MIN) != negate)
            raise_min(c, d, (f->b != 0) != negate);
        else
            lower_max(c, d, (f->b != 0) != negate);
    }
    for (int negate = 0; negate < 2; negate++) {
        *(negate ? &c->not_multiple : &c->multiple) = s->n_step;
        for (uint32_t i = 0; i < n; i++) {
            const struct constrain_formula *f = &s->formula[atoms[i] / 2];
            if (f->kind != CONSTRAIN_F_MULTIPLE || (int)(atoms[i] & 1) != negate) continue;
            if (!add_step(s, &s->decimal[f->a], err)) return false;
            ++*(negate ? &c->n_not_multiple : &c->n_multiple);
        }
    }
    scale_number(s, c);
    if (s->generate) c->literal = find_literal(s, atoms, n, c);
    return true;
}

/* -- arrays -- */

struct contains_condition {
    uint32_t lit, from, min, max;
};
struct array_terms {
    struct contains_condition contains[CONSTRAIN_MAX_MARKS];
    uint32_t n_contains, positions;
    const struct constrain_formula *unique; /* or NULL */
    uint64_t min, max;
};

static bool add_contains(struct array_terms *a, const struct constrain_schema *s, uint32_t json,
                         uint32_t lit, uint32_t from, uint32_t min, uint32_t max,
                         struct base_error *err)
{
    uint32_t i = 0;
    while (i < a->n_contains && (a->contains[i].lit != lit || a->contains[i].from != from)) i++;
    if (i == CONSTRAIN_MAX_MARKS)
        return constrain_schema_fail(s, json, err, "occurs with too many 'contains'");
    if (i == a->n_contains)
        a->contains[a->n_contains++] = (struct contains_condition){lit, from, 0, 255};
    if (min > a->contains[i].min) a->contains[i].min = min;
    if (max < a->contains[i].max) a->contains[i].max = max;
    return true;
}

static bool read_items(const struct constrain_schema *s, const uint32_t *atoms, uint32_t n,
                       struct array_terms *a, struct base_error *err)
{
    *a = (struct array_terms){.max = UINT32_MAX};
    for (uint32_t i = 0; i < n; i++) {
        const struct constrain_formula *f = &s->formula[atoms[i] / 2];
        bool negate = atoms[i] & 1, ok = true;
        uint32_t from = 0;
        if (f->kind == CONSTRAIN_F_UNIQUE) {
            ok = (!negate && !a->unique) ||
                 constrain_schema_fail(s, f->json, err, "is supported once, and not negated");
            a->unique = f;
        } else if (f->kind == CONSTRAIN_F_ITEM) {
            from = f->a + 1;
            if (negate && a->min < from) a->min = from;
        } else if (f->kind == CONSTRAIN_F_ITEMS) {
            from = f->a;
            if (negate) ok = add_contains(a, s, f->json, f->b ^ 1, from, 1, 255, err);
        } else if (f->kind == CONSTRAIN_F_MIN_ITEMS) {
            if (!negate && a->min < f->a) a->min = f->a;
            if (negate && a->max > f->a - 1) a->max = f->a - 1;
        } else {
            from = f->c;
            ok = add_contains(a, s, f->json, f->b, from, negate ? 0 : f->a, negate ? f->a - 1 : 255,
                              err);
        }
        if (!ok) return false;
        if (a->positions < from) a->positions = from;
    }
    return true;
}

/* Adds the options of an item if no two items may be equal: one for each value. */
static bool add_values(struct constrain_schema *s, const uint32_t *atoms, uint32_t n,
                       const struct constrain_formula *unique, struct base_error *err)
{
    uint32_t *lits = calloc((size_t)n + 1, sizeof *lits), n_base = 0, place;
    struct constrain_slice options = {s->n_option, 0};
    bool ok = lits || base_fail(err, BASE_NO_MEMORY, "no memory for a schema");
    for (uint32_t i = 0; ok && i < n; i++)
        if (s->formula[atoms[i] / 2].kind == CONSTRAIN_F_ITEMS)
            lits[n_base++] = s->formula[atoms[i] / 2].b;
    for (; ok && options.count < unique->b; options.count++) {
        lits[n_base] = s->list[unique->a + options.count];
        ok = constrain_schema_place(s, lits, n_base + 1, &place, err) &&
             constrain_grow(&s->option, &s->option_room, s->n_option, sizeof *s->option, err);
        if (ok) s->option[s->n_option++] = (struct constrain_option){place, options.count};
    }
    ok = ok && constrain_grow(&s->slice, &s->slice_room, s->n_slice, sizeof *s->slice, err);
    if (ok) s->slice[s->n_slice++] = options;
    free(lits);
    return ok;
}

/* Adds the options of the item at one position (`positions`: of all later items). */
static bool add_position(struct constrain_schema *s, const uint32_t *atoms, uint32_t n,
                         const struct array_terms *a, uint32_t position, struct base_error *err)
{
    uint32_t *base = calloc((size_t)n + 1, sizeof *base), n_base = 0, with[CONSTRAIN_MAX_MARKS];
    bool exact[CONSTRAIN_MAX_MARKS], ok = base || base_fail(err, BASE_NO_MEMORY, "no memory");
    struct constrain_slice options;
    for (uint32_t i = 0; ok && i < n; i++) {
        const struct constrain_formula *f = &s->formula[atoms[i] / 2];
        bool negate = atoms[i] & 1;
        if (f->kind == CONSTRAIN_F_ITEM && f->a == position) base[n_base++] = f->b ^ negate;
        if (f->kind == CONSTRAIN_F_ITEMS && !negate && position >= f->a) base[n_base++] = f->b;
    }
    /* A counter that does not include this position yet keeps its bit, but adds no literal. */
    for (uint32_t i = 0; i < a->n_contains; i++) {
        bool sees = position >= a->contains[i].from;
        with[i] = sees ? a->contains[i].lit : CONSTRAIN_LIT_FALSE;
        exact[i] = sees && a->contains[i].max < 255;
    }
    ok = ok &&
         constrain_schema_options_of(s, base, n_base, with, exact, a->n_contains, &options, err);
    ok = ok && constrain_grow(&s->slice, &s->slice_room, s->n_slice, sizeof *s->slice, err);
    if (ok) s->slice[s->n_slice++] = options;
    free(base);
    return ok;
}

static bool make_array(struct constrain_schema *s, const uint32_t *atoms, uint32_t n,
                       struct constrain_array *out, bool *some, struct base_error *err)
{
    struct array_terms a;
    if (!read_items(s, atoms, n, &a, err)) return false;
    *some = a.min <= a.max;
    for (uint32_t i = 0; i < a.n_contains; i++)
        *some = *some && a.contains[i].min <= a.contains[i].max;
    if (!*some) return true;
    *out = (struct constrain_array){.min = (uint32_t)a.min,
                                    .max = (uint32_t)a.max,
                                    .positions = a.positions,
                                    .position = s->n_slice,
                                    .n_contains = a.n_contains};
    for (uint32_t i = 0; i < a.n_contains; i++) {
        out->min_contains[i] = (uint8_t)a.contains[i].min;
        out->max_contains[i] = (uint8_t)a.contains[i].max;
    }
    if (a.unique) {
        out->unique = a.unique->b;
        if (a.positions || a.n_contains)
            return constrain_schema_fail(s, a.unique->json, err,
                                         "is not supported beside conditions on single items");
        return add_values(s, atoms, n, a.unique, err);
    }
    for (uint32_t p = 0; p <= a.positions; p++)
        if (!add_position(s, atoms, n, &a, p, err)) return false;
    return true;
}

/* -- compiling a place -- */

struct place_compiler {
    struct constrain_schema *s;
    enum constrain_type type;
    uint32_t fixed;
    struct constrain_slice found;
    bool any; /* an alternative without a condition, which contains the others */
};

static bool keep_index(struct constrain_schema *s, uint32_t value, struct base_error *err)
{
    if (!constrain_grow(&s->index, &s->index_room, s->n_index, sizeof *s->index, err)) return false;
    s->index[s->n_index++] = value;
    return true;
}

static struct constrain_atom atom_of(const struct constrain_schema *s, uint32_t lit)
{
    const struct constrain_formula *f = &s->formula[lit / 2];
    return (struct constrain_atom){f->kind, f->a, lit & 1};
}

/* Returns the number of the string with the same conditions; 0: there is none. */
static uint32_t known_string(const struct constrain_schema *s, const uint32_t *atoms, uint32_t n)
{
    for (uint32_t i = 1; i < s->n_string; i++) {
        const struct constrain_slice own = s->string[i].atoms;
        uint32_t k = 0;
        for (; k < n && own.count == n; k++) {
            const struct constrain_atom x = s->atom[own.at + k], y = atom_of(s, atoms[k]);
            if (x.kind != y.kind || x.a != y.a || x.negated != y.negated) break;
        }
        if (k == n) return i;
    }
    return 0;
}

static bool keep_atoms(struct constrain_schema *s, const uint32_t *atoms, uint32_t n,
                       struct constrain_slice *out, struct base_error *err)
{
    *out = (struct constrain_slice){s->n_atom, n};
    for (uint32_t i = 0; i < n; i++) {
        if (!constrain_grow(&s->atom, &s->atom_room, s->n_atom, sizeof *s->atom, err)) return false;
        s->atom[s->n_atom++] = atom_of(s, atoms[i]);
    }
    return true;
}

static bool keep_string(struct constrain_schema *s, const uint32_t *atoms, uint32_t n,
                        struct base_error *err)
{
    struct base_error why = BASE_ERROR_INIT;
    struct constrain_string string = {0};
    if (n == 0) return keep_index(s, 0, err); /* automaton 0 accepts any string */
    const uint32_t known = known_string(s, atoms, n);
    if (known) return keep_index(s, known, err);
    if (constrain_schema_length(s, atoms, n, &string.length)) {
        if (string.length.min > string.length.max) return true;
        string.dfa = s->string[0].dfa;
    } else {
        string.length = s->string[0].length;
        string.dfa = constrain_schema_string(s, atoms, n, &why);
    }
    if (!string.dfa && why.code == BASE_OK) return true;
    if (!string.dfa)
        return base_fail(err, why.code, "line %u, column %u: %s",
                         s->json.node[s->formula[atoms[0] / 2].json].line,
                         s->json.node[s->formula[atoms[0] / 2].json].column, why.text);
    if (!keep_atoms(s, atoms, n, &string.atoms, err) ||
        !constrain_grow(&s->string, &s->string_room, s->n_string, sizeof *s->string, err)) {
        if (string.dfa != s->string[0].dfa) constrain_dfa_free(string.dfa);
        return false;
    }
    s->string[s->n_string++] = string;
    return keep_index(s, s->n_string - 1, err);
}

static bool keep_number(struct constrain_schema *s, const uint32_t *atoms, uint32_t n,
                        struct base_error *err)
{
    struct constrain_number c;
    if (!make_number(s, atoms, n, &c, err)) return false;
    if (is_empty_number(&c)) return true;
    if (c.literal && !constrain_number_accepts(s, &c, &c.min)) return true;
    if (s->generate && !c.literal && c.bounded && !constrain_number_is_writable(&c)) {
        if (!constrain_number_may_exist(&c)) return true;
        uint32_t at = n - 1; /* a bound is more specific than a step */
        for (uint32_t i = 0; i < n; i++)
            if (s->formula[atoms[i] / 2].kind != CONSTRAIN_F_MULTIPLE) at = i;
        return constrain_schema_fail(s, s->formula[atoms[at] / 2].json, err,
                                     "leaves no number that can be generated (16 digits before "
                                     "the point at most, 9 after it, 15 altogether)");
    }
    if (!constrain_grow(&s->number, &s->number_room, s->n_number, sizeof *s->number, err))
        return false;
    s->number[s->n_number++] = c;
    return keep_index(s, s->n_number - 1, err);
}

static bool leaf(void *context, const uint32_t *atoms, uint32_t n, struct base_error *err)
{
    struct place_compiler *c = context;
    struct constrain_schema *s = c->s;
    struct constrain_array array;
    struct constrain_object object;
    bool some;
    if (c->any) return true;
    if (n == 0) {
        c->any = true;
        s->n_index = c->found.at;
    }
    switch (c->type) {
    case CONSTRAIN_IS_NUMBER:
        return keep_number(s, atoms, n, err);
    case CONSTRAIN_IS_STRING:
        return keep_string(s, atoms, n, err);
    case CONSTRAIN_IS_ARRAY:
        if (!make_array(s, atoms, n, &array, &some, err)) return false;
        if (!some) return true;
        if (!constrain_grow(&s->array, &s->array_room, s->n_array, sizeof array, err)) return false;
        s->array[s->n_array++] = array;
        return keep_index(s, s->n_array - 1, err);
    case CONSTRAIN_IS_OBJECT:
        if (!constrain_grow(&s->object, &s->object_room, s->n_object, sizeof object, err))
            return false;
        if (!constrain_schema_object(s, atoms, n, &object, &some, err)) return false;
        if (!some) return true;
        s->object[s->n_object++] = object;
        return keep_index(s, s->n_object - 1, err);
    default:
        c->fixed |= c->type;
        return true;
    }
}

static bool compile_place(struct constrain_schema *s, uint32_t place, struct base_error *err)
{
    struct place_compiler c = {.s = s};
    for (uint32_t type = 1; type < CONSTRAIN_IS_ANY; type <<= 1) {
        uint32_t n = s->lits.at[place + 1] - s->lits.at[place];
        uint32_t *lits = calloc((size_t)n + 1, sizeof *lits); /* the table may be reallocated */
        if (!lits) return base_fail(err, BASE_NO_MEMORY, "no memory for a schema");
        if (n) memcpy(lits, s->lits.id + s->lits.at[place], n * sizeof *lits);
        c.type = (enum constrain_type)type;
        c.found = (struct constrain_slice){s->n_index, 0};
        c.any = false;
        bool ok = (type != CONSTRAIN_IS_OBJECT || constrain_schema_rank(s, lits, n, err)) &&
                  constrain_schema_expand(s, lits, n, c.type, leaf, &c, err);
        free(lits);
        if (!ok) return false;
        c.found.count = s->n_index - c.found.at;
        struct constrain_place *p = &s->place[place];
        if (type == CONSTRAIN_IS_NUMBER) p->number = c.found;
        if (type == CONSTRAIN_IS_STRING) p->string = c.found;
        if (type == CONSTRAIN_IS_ARRAY) p->array = c.found;
        if (type == CONSTRAIN_IS_OBJECT) p->object = c.found;
    }
    s->place[place].fixed = c.fixed;
    return true;
}

/* Fails for a schema that only refers to itself, because it states no condition. */
static bool check_loops(const struct constrain_schema *s, struct base_error *err)
{
    uint8_t *color = calloc(s->n_formula, 1); /* 1: on the path; 2: done */
    uint32_t *path = calloc((size_t)s->n_formula + 1, sizeof *path);
    uint32_t *next = calloc(s->n_formula, sizeof *next), n = 0;
    bool ok = (color && path && next) || base_fail(err, BASE_NO_MEMORY, "no memory for a schema");
    for (uint32_t root = 0; ok && root < s->n_formula; root++) {
        if (color[root] || s->formula[root].kind > CONSTRAIN_F_OR) continue;
        color[path[n++] = root] = 1;
        while (n && ok) {
            const struct constrain_formula *f = &s->formula[path[n - 1]];
            if (next[path[n - 1]] == f->b) {
                color[path[--n]] = 2;
                continue;
            }
            uint32_t child = s->list[f->a + next[path[n - 1]]++] / 2;
            if (s->formula[child].kind > CONSTRAIN_F_OR || color[child] == 2) continue;
            if (color[child] == 1)
                ok = base_fail(err, BASE_USAGE, "line %u, column %u: '$ref' leads back to itself",
                               s->json.node[s->formula[child].json].line,
                               s->json.node[s->formula[child].json].column);
            else
                color[path[n++] = child] = 1;
        }
    }
    free(color), free(path), free(next);
    return ok;
}

bool constrain_schema_compile(struct constrain_schema *s, const char *text, size_t size,
                              const struct constrain_schema_options *options,
                              struct base_error *err)
{
    uint32_t root;
    s->generate = options->generate;
    s->open = options->open;
    s->ordered = options->generate && !options->any_order;
    s->lenient_advice = options->lenient_advice;
    if (!constrain_schema_read(s, text, size, options, &root, err) || !check_loops(s, err))
        return false;
    struct constrain_dfa *any = constrain_schema_string(s, NULL, 0, err);
    if (!any || !constrain_grow(&s->string, &s->string_room, 0, sizeof *s->string, err)) {
        constrain_dfa_free(any);
        return false;
    }
    s->string[s->n_string++] =
        (struct constrain_string){.dfa = any, .length = {0, CONSTRAIN_NO_MAX}};
    if (!constrain_schema_place(s, &root, 1, &s->root, err)) return false;
    for (size_t i = 0; i < options->n_members; i++)
        if (!constrain_schema_place(s, &s->member[i], 1, &s->member[i], err)) return false;
    for (uint32_t i = 0; i < s->n_place; i++)
        if (!base_goes_on(err) || !compile_place(s, i, err)) return false;
    constrain_schema_find_alive(s);
    if (!s->place[s->root].alive && s->generate && options->notes && options->notes->count)
        return base_fail(err, BASE_USAGE, "no value can be generated: %s", options->notes->text);
    if (!s->place[s->root].alive && s->generate)
        return base_fail(err, BASE_USAGE, "line 1, column 1: no value satisfies this schema");
    for (size_t i = 0; i < options->n_members; i++)
        if (!s->place[s->member[i]].alive)
            return base_fail(err, BASE_USAGE, "no value satisfies schema %zu of %zu", i + 1,
                             options->n_members);
    return true;
}

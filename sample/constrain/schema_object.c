/* sample/constrain/schema_object.c: the objects of a place. One automaton divides names into
 * classes; a class determines how the value is read. This file also computes which objects, arrays
 * and places are alive, that is, satisfied by at least one value. See schema.h. */
#include "sample/constrain/schema.h"
#include <stdlib.h>
#include <string.h>

enum { MAX_PATTERNS = 22, MAX_CLASSES = 1024 };

struct name_terms {
    uint32_t key[CONSTRAIN_MAX_NAMES], n_key;
    struct {
        uint32_t text, lit;
        bool exists; /* true: at least one property matches and satisfies lit; false: all that match
                      * satisfy it */
    } pattern[MAX_PATTERNS];
    uint32_t n_pattern, n_bit; /* operands of the product: patterns, bits of the name's number */
    uint64_t min, max;
    uint32_t min_json; /* node of the keyword that set `min` */
    uint32_t mask[MAX_CLASSES], n_class;
    bool closed; /* names that match no key and no pattern are not generated */
};

static bool add_key(struct name_terms *w, const struct constrain_schema *s,
                    const struct constrain_formula *f, struct base_error *err)
{
    for (uint32_t i = 0; i < w->n_key; i++)
        if (w->key[i] == f->a) return true;
    if (w->n_key == CONSTRAIN_MAX_NAMES)
        return constrain_schema_fail(s, f->json, err,
                                     "names more than 504 properties of one object");
    w->key[w->n_key++] = f->a;
    return true;
}

static bool add_pattern(struct name_terms *w, const struct constrain_schema *s,
                        const struct constrain_formula *f, uint32_t text, uint32_t lit, bool exists,
                        struct base_error *err)
{
    uint32_t marks = 0;
    for (uint32_t i = 0; i < w->n_pattern; i++) marks += w->pattern[i].exists;
    if (w->n_pattern == MAX_PATTERNS || (exists && marks == CONSTRAIN_MAX_MARKS))
        return constrain_schema_fail(s, f->json, err, "occurs with too many patterns of names");
    w->pattern[w->n_pattern].text = text;
    w->pattern[w->n_pattern].lit = lit;
    w->pattern[w->n_pattern++].exists = exists;
    return true;
}

/* -- names that satisfy a schema -- */

struct name_union {
    const struct constrain_schema *s;
    struct constrain_dfa *part[31];
    uint32_t n;
};

static bool union_leaf(void *context, const uint32_t *atoms, uint32_t n, struct base_error *err)
{
    struct name_union *u = context;
    struct base_error why = BASE_ERROR_INIT;
    if (u->n == 31) return base_fail(err, BASE_USAGE, "'propertyNames' has too many alternatives");
    struct constrain_dfa *d = constrain_schema_string(u->s, atoms, n, &why);
    if (d) u->part[u->n++] = d;
    return d || why.code == BASE_OK || base_fail(err, why.code, "'propertyNames': %s", why.text);
}

/* Returns in *text the automaton of the strings that do not satisfy the literal. */
static bool other_names(struct constrain_schema *s, uint32_t lit, uint32_t *text,
                        struct base_error *err)
{
    struct name_union u = {.s = s};
    struct constrain_dfa *d = NULL;
    bool ok = constrain_schema_expand(s, &lit, 1, CONSTRAIN_IS_STRING, union_leaf, &u, err);
    if (ok) d = constrain_dfa_product((const struct constrain_dfa *const *)u.part, u.n, 0, err);
    for (uint32_t q = 0; d && q < d->n_state; q++) d->accept[q] &= d->mask[q] == 0;
    for (uint32_t i = 0; i < u.n; i++) constrain_dfa_free(u.part[i]);
    if (!d || !constrain_grow(&s->text, &s->text_room, s->n_text, sizeof *s->text, err)) {
        constrain_dfa_free(d);
        return false;
    }
    *text = s->n_text;
    s->text[s->n_text++] = d;
    return true;
}

/* -- the order of names -- */

bool constrain_schema_rank(struct constrain_schema *s, const uint32_t *lits, uint32_t n,
                           struct base_error *err)
{
    const uint64_t before = s->last_rank;
    uint32_t *todo = NULL, room = 0, n_todo = 0;
    bool ok = true;
    if (!s->ordered) return true;
    if (!s->rank && !(s->rank = calloc(s->n_formula, sizeof *s->rank)))
        return base_fail(err, BASE_NO_MEMORY, "no memory for a schema");
    for (uint32_t i = n; ok && i-- > 0;)
        if ((ok = constrain_grow(&todo, &room, n_todo, sizeof *todo, err)))
            todo[n_todo++] = lits[i] / 2;
    while (ok && n_todo) {
        const uint32_t at = todo[--n_todo];
        const struct constrain_formula *f = &s->formula[at];
        if (s->rank[at] > before) continue;
        s->rank[at] = ++s->last_rank;
        if (f->kind > CONSTRAIN_F_OR) continue;
        for (uint32_t i = f->b; ok && i-- > 0;)
            if ((ok = constrain_grow(&todo, &room, n_todo, sizeof *todo, err)))
                todo[n_todo++] = s->list[f->a + i] / 2;
    }
    free(todo);
    return ok;
}

struct ranked_atom {
    uint64_t rank;
    uint32_t atom;
};

/* Properties first, then names that are only required, then names that a negation mentions. */
static struct ranked_atom ranked_atom(const struct constrain_schema *s, uint32_t atom)
{
    const struct constrain_formula *f = &s->formula[atom / 2];
    const bool shown = f->kind == CONSTRAIN_F_PROPERTY && f->b != CONSTRAIN_LIT_FALSE;
    const uint64_t group = atom & 1 ? 2 : shown ? 0 : f->kind == CONSTRAIN_F_REQUIRED ? 1 : 2;
    return (struct ranked_atom){group << 62 | s->rank[atom / 2], atom};
}

static int compare_ranks(const void *a, const void *b)
{
    const uint64_t x = ((const struct ranked_atom *)a)->rank,
                   y = ((const struct ranked_atom *)b)->rank;
    return x < y ? -1 : x > y;
}

/* Adds the names of the atoms, in the order of generation. */
static bool add_keys(struct name_terms *w, const struct constrain_schema *s, const uint32_t *atoms,
                     uint32_t n, struct base_error *err)
{
    struct ranked_atom *list = calloc((size_t)n + 1, sizeof *list);
    bool ok = list || base_fail(err, BASE_NO_MEMORY, "no memory for a schema");
    for (uint32_t i = 0; ok && i < n; i++)
        list[i] = s->ordered ? ranked_atom(s, atoms[i]) : (struct ranked_atom){i, atoms[i]};
    if (ok && n) qsort(list, n, sizeof *list, compare_ranks);
    for (uint32_t i = 0; ok && i < n; i++) {
        const struct constrain_formula *f = &s->formula[list[i].atom / 2];
        if (f->kind == CONSTRAIN_F_PROPERTY || f->kind == CONSTRAIN_F_REQUIRED)
            ok = add_key(w, s, f, err);
    }
    free(list);
    return ok;
}

/* -- reading the atoms -- */

static bool read_atoms(struct constrain_schema *s, const uint32_t *atoms, uint32_t n,
                       struct name_terms *w, struct base_error *err)
{
    *w = (struct name_terms){.max = UINT32_MAX};
    if (!add_keys(w, s, atoms, n, err)) return false;
    for (uint32_t i = 0; i < n; i++) {
        struct constrain_formula f = s->formula[atoms[i] / 2];
        bool negate = atoms[i] & 1, ok = true;
        uint32_t text;
        switch (f.kind) {
        case CONSTRAIN_F_PROPERTY:
        case CONSTRAIN_F_REQUIRED:
            break;
        case CONSTRAIN_F_MIN_PROPS:
            if (!negate && w->min < f.a) {
                w->min = f.a;
                w->min_json = f.json;
            }
            if (negate && w->max > f.a - 1) w->max = f.a - 1;
            break;
        case CONSTRAIN_F_PATTERN:
            ok = add_pattern(w, s, &f, f.a, f.b ^ negate, negate, err);
            break;
        default: /* CONSTRAIN_F_NAMES */
            ok = other_names(s, f.b, &text, err) &&
                 add_pattern(w, s, &f, text, negate ? CONSTRAIN_LIT_TRUE : CONSTRAIN_LIT_FALSE,
                             negate, err);
        }
        if (!ok) return false;
    }
    return true;
}

/* Returns the automaton of the names whose number (from 1 on) has the bit set. */
static struct constrain_dfa *names_with_bit(const struct constrain_schema *s,
                                            const struct name_terms *w, uint32_t bit,
                                            struct base_error *err)
{
    struct constrain_tree t = {0};
    struct constrain_dfa *d = NULL;
    uint32_t alt = constrain_tree_add(&t, CONSTRAIN_TREE_ALT, 1, 1, err), size;
    bool ok = alt != 0;
    for (uint32_t i = 0; ok && i < w->n_key; i++) {
        if (!((i + 1) >> bit & 1)) continue;
        const char *name = constrain_schema_key(s, w->key[i], &size);
        ok = constrain_tree_add_text(&t, alt, name, size, err);
    }
    if (ok) d = constrain_dfa_build(&t, alt, false, NULL, err);
    constrain_tree_free(&t);
    return d;
}

static struct constrain_dfa *build_key(const struct constrain_schema *s, struct name_terms *w,
                                       struct base_error *err)
{
    struct constrain_dfa *bit[9] = {NULL}, *key = NULL;
    const struct constrain_dfa *part[31];
    bool ok = true;
    w->n_bit = 0;
    while (w->n_key >> w->n_bit) w->n_bit++;
    for (uint32_t i = 0; ok && i < w->n_bit; i++)
        ok = (part[i] = bit[i] = names_with_bit(s, w, i, err)) != NULL;
    for (uint32_t i = 0; i < w->n_pattern; i++) part[w->n_bit + i] = s->text[w->pattern[i].text];
    if (ok) key = constrain_dfa_product(part, w->n_bit + w->n_pattern, 0, err);
    for (uint32_t i = 0; i < w->n_bit; i++) constrain_dfa_free(bit[i]);
    if (key && !constrain_dfa_trim(key, NULL, err)) {
        constrain_dfa_free(key);
        key = NULL;
    }
    return key;
}

/* -- classes of names -- */

static bool add_class(struct constrain_schema *s, const uint32_t *atoms, uint32_t n,
                      const struct name_terms *w, uint32_t mask, struct base_error *err)
{
    uint32_t known = mask & ((1u << w->n_bit) - 1), n_base = 0, with[CONSTRAIN_MAX_MARKS],
             n_with = 0;
    uint32_t *base = calloc((size_t)n + w->n_pattern + 1, sizeof *base);
    struct constrain_slice options;
    bool ok = base || base_fail(err, BASE_NO_MEMORY, "no memory for a schema");
    if (ok && w->closed && mask == 0) base[n_base++] = CONSTRAIN_LIT_FALSE;
    for (uint32_t i = 0; ok && known && i < n; i++) {
        const struct constrain_formula *f = &s->formula[atoms[i] / 2];
        bool negate = atoms[i] & 1;
        if ((f->kind != CONSTRAIN_F_PROPERTY && f->kind != CONSTRAIN_F_REQUIRED) ||
            f->a != w->key[known - 1])
            continue;
        if (f->kind == CONSTRAIN_F_PROPERTY)
            base[n_base++] = f->b ^ negate;
        else if (negate)
            base[n_base++] = CONSTRAIN_LIT_FALSE;
    }
    for (uint32_t i = 0; i < w->n_pattern; i++) {
        bool hit = mask >> (w->n_bit + i) & 1;
        if (w->pattern[i].exists)
            with[n_with++] = hit ? w->pattern[i].lit : CONSTRAIN_LIT_FALSE;
        else if (hit && ok)
            base[n_base++] = w->pattern[i].lit;
    }
    ok = ok && constrain_schema_options_of(s, base, n_base, with, NULL, n_with, &options, err) &&
         constrain_grow(&s->slice, &s->slice_room, s->n_slice, sizeof *s->slice, err);
    if (ok) s->slice[s->n_slice++] = options;
    free(base);
    return ok;
}

static bool grow_tables(struct constrain_schema *s, uint64_t labels, uint64_t bits,
                        struct base_error *err)
{
    while (s->n_label + labels > s->label_room)
        if (!constrain_grow(&s->label, &s->label_room, s->label_room, sizeof *s->label, err))
            return false;
    while (s->n_bits + bits > s->bits_room)
        if (!constrain_grow(&s->bits, &s->bits_room, s->bits_room, sizeof *s->bits, err))
            return false;
    if (labels) memset(s->label + s->n_label, 0, labels * sizeof *s->label);
    if (bits) memset(s->bits + s->n_bits, 0, bits * sizeof *s->bits);
    s->n_label += (uint32_t)labels;
    s->n_bits += (uint32_t)bits;
    return true;
}

/* Computes which classes each state can still reach. */
static void find_reach(const struct constrain_schema *s, const struct constrain_object *o)
{
    bool changed = true;
    for (uint32_t q = 0; q < o->key->n_state; q++) {
        uint32_t c = s->label[o->label + q];
        if (c) s->bits[o->reach + (size_t)q * o->words + (c - 1) / 64] |= 1ull << (c - 1) % 64;
    }
    while (changed) {
        changed = false;
        for (uint32_t q = o->key->n_state; q-- > 1;)
            for (uint32_t c = 0; c < o->key->n_class; c++) {
                uint32_t to = o->key->next[(size_t)q * o->key->n_class + c];
                for (uint32_t i = 0; to && i < o->words; i++) {
                    uint64_t *mine = &s->bits[o->reach + (size_t)q * o->words + i];
                    uint64_t more = *mine | s->bits[o->reach + (size_t)to * o->words + i];
                    changed |= more != *mine;
                    *mine = more;
                }
            }
    }
}

static bool add_classes(struct constrain_schema *s, const uint32_t *atoms, uint32_t n,
                        struct name_terms *w, struct constrain_object *o, struct base_error *err)
{
    const struct constrain_dfa *d = o->key;
    o->label = s->n_label;
    if (!grow_tables(s, d->n_state, 0, err)) return false;
    o->cls = s->n_slice;
    for (uint32_t q = 1; q < d->n_state; q++) {
        uint32_t c = 0;
        if (!(d->accept[q] & CONSTRAIN_DFA_ACCEPTS)) continue;
        while (c < w->n_class && w->mask[c] != d->mask[q]) c++;
        if (c == MAX_CLASSES)
            return base_fail(err, BASE_USAGE, "'patternProperties' distinguishes too many names");
        if (c == w->n_class) {
            w->mask[w->n_class++] = d->mask[q];
            if (!add_class(s, atoms, n, w, d->mask[q], err)) return false;
        }
        s->label[o->label + q] = c + 1;
    }
    o->n_class = w->n_class;
    o->words = (w->n_class + 63) / 64;
    o->known = s->n_label;
    o->reach = s->n_bits;
    if (!grow_tables(s, o->n_class, (uint64_t)(d->n_state + 1) * o->words, err)) return false;
    o->usable = s->n_bits - o->words;
    o->n_key = w->n_key;
    o->rest = s->n_label;
    if (!grow_tables(s, s->ordered ? 2 * (uint64_t)(w->n_key + 1) : 0, 0, err)) return false;
    for (uint32_t c = 0; c < o->n_class; c++)
        s->label[o->known + c] = w->mask[c] & ((1u << w->n_bit) - 1);
    find_reach(s, o);
    return true;
}

/* Returns whether the atoms name enough properties that may be present; generation then uses only
 * those that the schema mentions. */
static bool is_closed(const struct constrain_schema *s, const uint32_t *atoms, uint32_t n,
                      const struct name_terms *w)
{
    bool named = false;
    if (!s->generate || s->open || w->min > w->n_key) return false;
    for (uint32_t i = 0; i < w->n_pattern; i++)
        if (w->pattern[i].exists) return false;
    for (uint32_t i = 0; i < n; i++) {
        const struct constrain_formula *f = &s->formula[atoms[i] / 2];
        named |= f->kind == CONSTRAIN_F_PROPERTY && !(atoms[i] & 1) && f->b != CONSTRAIN_LIT_FALSE;
    }
    return named;
}

bool constrain_schema_object(struct constrain_schema *s, const uint32_t *atoms, uint32_t n,
                             struct constrain_object *out, bool *some, struct base_error *err)
{
    struct name_terms w;
    uint32_t marks = 0;
    *some = false;
    if (!read_atoms(s, atoms, n, &w, err)) return false;
    *out = (struct constrain_object){.min = (uint32_t)w.min, .max = (uint32_t)w.max};
    for (uint32_t i = 0; i < n; i++) {
        const struct constrain_formula *f = &s->formula[atoms[i] / 2];
        bool negate = atoms[i] & 1;
        if (f->kind != (negate ? CONSTRAIN_F_PROPERTY : CONSTRAIN_F_REQUIRED)) continue;
        uint32_t k = 0;
        while (w.key[k] != f->a) k++;
        out->required[k / 64] |= 1ull << k % 64;
    }
    for (int i = 0; i < CONSTRAIN_SEEN_WORDS; i++)
        out->n_required += (uint32_t)__builtin_popcountll(out->required[i]);
    for (uint32_t i = 0; i < w.n_pattern; i++)
        if (w.pattern[i].exists)
            out->required[CONSTRAIN_FIRST_MARK / 64] |= 1ull
                                                        << (CONSTRAIN_FIRST_MARK % 64 + marks++);
    if (w.min > w.max || out->n_required > w.max) return true;
    if (constrain_object_counts(s->generate, out->min) && w.min > w.n_key + 1)
        return constrain_schema_refuse(s, w.min_json, err,
                                       "demands more names than the schema has and one: others "
                                       "could repeat");
    w.closed = is_closed(s, atoms, n, &w);
    if (!(out->key = build_key(s, &w, err))) return false;
    if (!add_classes(s, atoms, n, &w, out, err)) {
        constrain_dfa_free(out->key);
        return false;
    }
    *some = true;
    return true;
}

/* -- alive objects, arrays and places -- */

static bool any_alive(const struct constrain_schema *s, struct constrain_slice options,
                      uint32_t *marks)
{
    bool alive = false;
    for (uint32_t i = 0; i < options.count; i++) {
        const struct constrain_option *o = &s->option[options.at + i];
        if (!s->place[o->place].alive) continue;
        alive = true;
        *marks |= o->marks;
    }
    return alive;
}

static bool array_alive(const struct constrain_schema *s, const struct constrain_array *a)
{
    uint32_t marks = 0, need = a->min, length = 0;
    for (uint32_t i = 0; i < a->n_contains; i++)
        if (a->min_contains[i] > need) need = a->min_contains[i];
    if (need > a->max) return false;
    if (a->unique) {
        const struct constrain_slice values = s->slice[a->position];
        for (uint32_t i = 0; i < values.count; i++)
            length += s->place[s->option[values.at + i].place].alive;
        return length >= need;
    }
    while (length <= a->positions && length < a->max &&
           any_alive(s, s->slice[a->position + length], &marks))
        length++;
    if (length <= a->positions && length < need) return false;
    for (uint32_t i = 0; i < a->n_contains; i++)
        if (a->min_contains[i] && !(marks >> i & 1)) return false;
    return true;
}

static bool object_alive(struct constrain_schema *s, const struct constrain_object *o)
{
    uint64_t seen[CONSTRAIN_SEEN_WORDS] = {0}, names = 0;
    uint32_t marks = 0;
    bool others = false;
    for (uint32_t c = 0; c < o->n_class; c++) {
        if (!any_alive(s, s->slice[o->cls + c], &marks)) continue;
        uint32_t known = s->label[o->known + c];
        s->bits[o->usable + c / 64] |= 1ull << c % 64;
        if (known)
            seen[(known - 1) / 64] |= 1ull << (known - 1) % 64, names++;
        else
            others = true;
    }
    seen[CONSTRAIN_FIRST_MARK / 64] |= (uint64_t)marks << CONSTRAIN_FIRST_MARK % 64;
    return constrain_object_has_all(o, seen) &&
           (constrain_object_counts(s->generate, o->min) ? names + others >= o->min
                                                         : others || names >= o->min);
}

/* Computes what the names from each known one on can add to an object. */
static void fill_rest(struct constrain_schema *s, const struct constrain_object *o)
{
    uint32_t *marks = s->label + o->rest, *names = marks + o->n_key + 1;
    for (uint32_t c = 0; c < o->n_class; c++) {
        const uint32_t known = s->label[o->known + c], at = known ? known - 1 : o->n_key;
        if (!any_alive(s, s->slice[o->cls + c], &marks[at])) continue;
        names[at] =
            known || constrain_object_counts(s->generate, o->min) ? 1 : CONSTRAIN_MANY_NAMES;
    }
    for (uint32_t k = o->n_key; k-- > 0;) {
        marks[k] |= marks[k + 1];
        names[k] += names[k + 1];
    }
}

void constrain_schema_find_alive(struct constrain_schema *s)
{
    bool changed = true;
    while (changed) {
        changed = false;
        for (uint32_t i = s->n_place; i-- > 0;) {
            struct constrain_place *p = &s->place[i];
            bool alive = p->fixed || p->number.count || p->string.count;
            for (uint32_t k = 0; k < p->array.count; k++) {
                struct constrain_array *a = &s->array[s->index[p->array.at + k]];
                if (!a->alive) a->alive = array_alive(s, a);
                alive |= a->alive;
            }
            for (uint32_t k = 0; k < p->object.count; k++) {
                struct constrain_object *o = &s->object[s->index[p->object.at + k]];
                if (!o->alive) o->alive = object_alive(s, o);
                alive |= o->alive;
            }
            changed |= alive != p->alive;
            p->alive = alive;
        }
    }
    /* Repeated, because classes become alive after their objects. */
    for (uint32_t i = 0; i < s->n_object; i++) {
        object_alive(s, &s->object[i]);
        if (s->ordered) fill_rest(s, &s->object[i]);
    }
}

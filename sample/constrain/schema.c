/* sample/constrain/schema.c: the tables that the reader and the compiler of a schema share:
 * formulas, keys, places by their literals, automata of strings; and error messages. See
 * schema.h. */
#include "sample/constrain/schema.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void constrain_schema_free(struct constrain_schema *s)
{
    if (!s) return;
    constrain_json_free(&s->json);
    for (uint32_t i = 0; i < s->n_text; i++) constrain_dfa_free(s->text[i]);
    for (uint32_t i = 0; i < s->n_string; i++)
        if (i == 0 || s->string[i].dfa != s->string[0].dfa) constrain_dfa_free(s->string[i].dfa);
    for (uint32_t i = 0; i < s->n_object; i++) constrain_dfa_free(s->object[i].key);
    free(s->formula), free(s->list), free(s->decimal), free(s->text), free(s->key);
    constrain_idsets_free(&s->lits);
    free(s->place), free(s->index), free(s->number), free(s->step);
    free(s->string), free(s->array), free(s->object), free(s->option), free(s->slice);
    free(s->label), free(s->bits), free(s->member), free(s->rank), free(s->atom);
    free(s);
}

/* -- errors -- */

bool constrain_schema_fail(const struct constrain_schema *s, uint32_t json, struct base_error *err,
                           const char *what)
{
    const struct constrain_json_node *n = &s->json.node[json];
    return base_fail(err, BASE_USAGE, "line %u, column %u: '%.*s' %s", n->line, n->column,
                     (int)(n->name_size < 60 ? n->name_size : 60), s->json.text.data + n->name,
                     what);
}

bool constrain_schema_refuse(const struct constrain_schema *s, uint32_t json,
                             struct base_error *err, const char *what)
{
    char text[256];
    if (!s->lenient_advice) return constrain_schema_fail(s, json, err, what);
    snprintf(text, sizeof text, "%s (%s)", what, s->lenient_advice);
    return constrain_schema_fail(s, json, err, text);
}

/* -- formulas -- */

bool constrain_schema_formula(struct constrain_schema *s, enum constrain_formula_kind kind,
                              uint32_t a, uint32_t b, uint32_t c, uint32_t json, uint32_t *lit,
                              struct base_error *err)
{
    if (!constrain_grow(&s->formula, &s->formula_room, s->n_formula, sizeof *s->formula, err))
        return false;
    *lit = 2 * s->n_formula;
    s->formula[s->n_formula++] = (struct constrain_formula){kind, a, b, c, json};
    return true;
}

bool constrain_schema_set_list(struct constrain_schema *s, uint32_t formula, const uint32_t *lits,
                               uint32_t n, struct base_error *err)
{
    s->formula[formula].a = s->n_list;
    s->formula[formula].b = n;
    for (uint32_t i = 0; i < n; i++) {
        if (!constrain_grow(&s->list, &s->list_room, s->n_list, sizeof *s->list, err)) return false;
        s->list[s->n_list++] = lits[i];
    }
    return true;
}

bool constrain_schema_join(struct constrain_schema *s, enum constrain_formula_kind kind,
                           const uint32_t *lits, uint32_t n, uint32_t json, uint32_t *lit,
                           struct base_error *err)
{
    return constrain_schema_formula(s, kind, 0, 0, 0, json, lit, err) &&
           constrain_schema_set_list(s, *lit / 2, lits, n, err);
}

const char *constrain_schema_key(const struct constrain_schema *s, uint32_t key, uint32_t *size)
{
    const struct constrain_json_node *n = &s->json.node[s->key[key] / 2];
    bool text = s->key[key] & 1;
    *size = text ? n->text_size : n->name_size;
    return s->json.text.data + (text ? n->text : n->name);
}

/* -- places by their literals -- */

int constrain_schema_compare(const void *a, const void *b)
{
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    return x < y ? -1 : x > y;
}

bool constrain_schema_place(struct constrain_schema *s, const uint32_t *lits, uint32_t n,
                            uint32_t *place, struct base_error *err)
{
    if (s->n_place == 0 && !constrain_idsets_clear(&s->lits, err)) return false;
    const uint32_t from = s->lits.n_id;
    for (uint32_t i = 0; i < n; i++)
        if (lits[i] != CONSTRAIN_LIT_TRUE && !constrain_idsets_add(&s->lits, lits[i], err))
            return false;
    uint32_t *mine = s->lits.id + from, kept = 0;
    n = s->lits.n_id - from;
    if (n) qsort(mine, n, sizeof *mine, constrain_schema_compare);
    for (uint32_t i = 0; i < n; i++)
        if (!kept || mine[i] != mine[kept - 1]) mine[kept++] = mine[i];
    s->lits.n_id = from + kept;
    if (!constrain_idsets_close(&s->lits, false, place, err)) return false;
    if (*place < s->n_place) return true;
    if (s->n_place >= CONSTRAIN_MAX_PLACES)
        return base_fail(err, BASE_USAGE, "the schema combines to more than %d places",
                         CONSTRAIN_MAX_PLACES);
    if (!constrain_grow(&s->place, &s->place_room, s->n_place, sizeof *s->place, err)) return false;
    s->place[s->n_place++] = (struct constrain_place){0};
    return true;
}

bool constrain_schema_options_of(struct constrain_schema *s, const uint32_t *base, uint32_t n_base,
                                 const uint32_t *with, const bool *exact, uint32_t n_with,
                                 struct constrain_slice *out, struct base_error *err)
{
    uint32_t *lits = calloc((size_t)n_base + n_with + 1, sizeof *lits);
    bool ok = lits || base_fail(err, BASE_NO_MEMORY, "no memory for a schema");
    *out = (struct constrain_slice){s->n_option, 0};
    for (uint32_t marks = 0; ok && marks < 1u << n_with; marks++) {
        uint32_t n = n_base, place;
        if (n) memcpy(lits, base, n * sizeof *lits);
        for (uint32_t i = 0; i < n_with; i++) {
            if (marks >> i & 1)
                lits[n++] = with[i];
            else if (exact && exact[i])
                lits[n++] = with[i] ^ 1;
        }
        ok = constrain_schema_place(s, lits, n, &place, err) &&
             constrain_grow(&s->option, &s->option_room, s->n_option, sizeof *s->option, err);
        if (!ok) break;
        s->option[s->n_option++] = (struct constrain_option){place, marks};
        out->count++;
    }
    free(lits);
    return ok;
}

/* -- strings -- */

bool constrain_schema_length(const struct constrain_schema *s, const uint32_t *atoms, uint32_t n,
                             struct constrain_length *length)
{
    bool all = true;
    *length = (struct constrain_length){0, CONSTRAIN_NO_MAX};
    for (uint32_t i = 0; i < n; i++) {
        const struct constrain_formula *f = &s->formula[atoms[i] / 2];
        if (f->kind != CONSTRAIN_F_LENGTH)
            all = false;
        else if (!(atoms[i] & 1) && f->a > length->min)
            length->min = f->a;
        else if ((atoms[i] & 1) && f->a - 1 < length->max)
            length->max = f->a - 1;
    }
    return all;
}

static struct constrain_dfa *length_dfa(struct constrain_length length, struct base_error *err)
{
    const bool open = length.max == CONSTRAIN_NO_MAX;
    if ((open ? length.min : length.max) < CONSTRAIN_MAX_DFA)
        return constrain_dfa_length(length.min, length.max, err);
    return base_null(base_fail(err, BASE_USAGE, "'%s' beside other conditions is more than %d",
                               open ? "minLength" : "maxLength", CONSTRAIN_MAX_DFA - 1));
}

struct constrain_dfa *constrain_schema_string(const struct constrain_schema *s,
                                              const uint32_t *atoms, uint32_t n,
                                              struct base_error *err)
{
    const struct constrain_dfa *part[31];
    struct constrain_dfa *counted = NULL, *d = NULL;
    struct base_error why = BASE_ERROR_INIT;
    struct constrain_length length;
    uint32_t want = 0, n_part = 0;
    constrain_schema_length(s, atoms, n, &length);
    if (length.min > length.max) return NULL;
    if (length.min > 0 || length.max != CONSTRAIN_NO_MAX) {
        if (!(counted = length_dfa(length, err))) return NULL;
        want |= 1;
        part[n_part++] = counted;
    }
    for (uint32_t i = 0; i < n && n_part < 31; i++) {
        if (s->formula[atoms[i] / 2].kind == CONSTRAIN_F_LENGTH) continue;
        want |= (uint32_t) !(atoms[i] & 1) << n_part;
        part[n_part++] = s->text[s->formula[atoms[i] / 2].a];
    }
    if (n > 31)
        base_fail(err, BASE_USAGE, "'pattern': more than 31 conditions on one string");
    else
        d = constrain_dfa_product(part, n_part, want, err);
    constrain_dfa_free(counted);
    for (uint32_t q = 0; d && q < d->n_state; q++) d->accept[q] &= d->mask[q] == want;
    if (d && !constrain_dfa_trim(d, NULL, &why)) {
        if (why.code != BASE_OK) base_fail(err, why.code, "%s", why.text);
        constrain_dfa_free(d);
        return NULL;
    }
    return d;
}

bool constrain_schema_keep_text(struct constrain_schema *s, struct constrain_dfa *d, uint32_t *text,
                                struct base_error *err)
{
    if (!d) return false;
    if (!constrain_grow(&s->text, &s->text_room, s->n_text, sizeof *s->text, err)) {
        constrain_dfa_free(d);
        return false;
    }
    *text = s->n_text;
    s->text[s->n_text++] = d;
    return true;
}

bool constrain_schema_words(struct constrain_schema *s, uint32_t json, bool names, uint32_t *text,
                            struct base_error *err)
{
    struct constrain_tree t = {0};
    const char *bytes = s->json.text.data;
    const bool one = json && s->json.node[json].kind == CONSTRAIN_JSON_STRING;
    uint32_t alt = constrain_tree_add(&t, CONSTRAIN_TREE_ALT, 1, 1, err);
    bool ok = alt != 0;
    for (uint32_t c = one    ? json
                      : json ? s->json.node[json].child
                             : 0;
         ok && c; c = one ? 0 : s->json.node[c].sibling) {
        const struct constrain_json_node *n = &s->json.node[c];
        if (names)
            ok = constrain_tree_add_text(&t, alt, bytes + n->name, n->name_size, err);
        else if (n->kind == CONSTRAIN_JSON_STRING)
            ok = constrain_tree_add_text(&t, alt, bytes + n->text, n->text_size, err);
    }
    ok = ok &&
         constrain_schema_keep_text(s, constrain_dfa_build(&t, alt, false, NULL, err), text, err);
    constrain_tree_free(&t);
    return ok;
}

bool constrain_schema_regex(struct constrain_schema *s, uint32_t json, bool name, uint32_t *text,
                            struct base_error *err)
{
    const struct constrain_json_node *n = &s->json.node[json];
    struct base_error why = BASE_ERROR_INIT;
    struct constrain_dfa *d =
        constrain_regex_dfa(s->json.text.data + (name ? n->name : n->text),
                            name ? n->name_size : n->text_size, true, n->line, n->column, &why);
    if (!d)
        return base_fail(err, why.code, "'%s': %s", name ? "patternProperties" : "pattern",
                         why.text);
    return constrain_schema_keep_text(s, d, text, err);
}

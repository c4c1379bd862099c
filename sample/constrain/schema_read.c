/* sample/constrain/schema_read.c: reads the keywords of a JSON schema into formulas. A keyword
 * without a row here is an error that names it. See sample/constrain/schema.h. */
#include "sample/constrain/constrain_stack.h"
#include "sample/constrain/schema_combine.h"
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Adds a formula to the conditions of the schema. */
static bool require(struct constrain_reader *r, enum constrain_formula_kind kind, uint32_t a,
                    uint32_t b, uint32_t json)
{
    uint32_t lit;
    return constrain_schema_formula(r->s, kind, a, b, 0, json, &lit, r->err) &&
           constrain_reader_add(r, lit);
}

/* Adds a negated formula, such as a maximum as a negated minimum. Like every keyword it also allows
 * other types, because a negated atom by itself would require the type. */
static bool require_not(struct constrain_reader *r, enum constrain_formula_kind kind, uint32_t a,
                        uint32_t b, uint32_t json, uint32_t type)
{
    uint32_t either[2], lit;
    if (!constrain_schema_formula(r->s, CONSTRAIN_F_TYPE, type, 0, 0, json, &either[0], r->err) ||
        !constrain_schema_formula(r->s, kind, a, b, 0, json, &either[1], r->err))
        return false;
    either[0] ^= 1, either[1] ^= 1;
    return constrain_schema_join(r->s, CONSTRAIN_F_OR, either, 2, json, &lit, r->err) &&
           constrain_reader_add(r, lit);
}

/* Adds a note for the caller; false if the construct must be an error instead. */
__attribute__((format(printf, 2, 3))) static bool add_note(struct constrain_reader *r,
                                                           const char *format, ...)
{
    struct constrain_notes *notes = r->options->notes;
    va_list args;
    if (!notes || !r->options->generate) return false;
    if (notes->count++) return true;
    va_start(args, format);
    vsnprintf(notes->text, sizeof notes->text, format, args);
    va_end(args);
    return true;
}

/* -- parts -- */

static bool key_at(struct constrain_reader *r, uint32_t json, bool text, uint32_t *key)
{
    struct constrain_schema *s = r->s;
    uint32_t size, other;
    if (!constrain_grow(&s->key, &s->key_room, s->n_key, sizeof *s->key, r->err)) return false;
    s->key[s->n_key] = 2 * json + text;
    const char *bytes = constrain_schema_key(s, s->n_key, &size);
    for (*key = 0; *key < s->n_key; ++*key) {
        const char *known = constrain_schema_key(s, *key, &other);
        if (other == size && memcmp(known, bytes, size) == 0) return true;
    }
    if (s->n_key >= CONSTRAIN_MAX_PLACES)
        return base_fail(r->err, BASE_USAGE, "the schema names too many properties");
    s->n_key++;
    return true;
}

static bool decimal_at(struct constrain_reader *r, uint32_t json, uint32_t *decimal)
{
    struct constrain_schema *s = r->s;
    *decimal = 0;
    if (constrain_reader_at(r, json)->kind != CONSTRAIN_JSON_NUMBER)
        return constrain_schema_fail(s, json, r->err, "must be a number");
    if (!constrain_grow(&s->decimal, &s->decimal_room, s->n_decimal, sizeof *s->decimal, r->err))
        return false;
    *decimal = s->n_decimal++;
    return constrain_decimal_read(&s->decimal[*decimal],
                                  s->json.text.data + constrain_reader_at(r, json)->text,
                                  constrain_reader_at(r, json)->text_size) ||
           constrain_schema_fail(s, json, r->err, "has too many digits");
}

static bool count_at(struct constrain_reader *r, uint32_t json, uint64_t limit, uint32_t *out)
{
    uint32_t decimal;
    uint64_t count;
    char too_large[40];
    *out = 0;
    if (!decimal_at(r, json, &decimal)) return false;
    const struct constrain_decimal *d = &r->s->decimal[decimal];
    if (d->negative || d->exponent < 0)
        return constrain_schema_fail(r->s, json, r->err, "must be a whole number, 0 or more");
    if (!constrain_decimal_count(d, &count)) count = UINT64_MAX;
    snprintf(too_large, sizeof too_large, "is more than %llu", (unsigned long long)limit);
    if (count > limit) return constrain_schema_fail(r->s, json, r->err, too_large);
    *out = (uint32_t)count;
    return true;
}

static bool words_at(struct constrain_reader *r, uint32_t json, bool names, uint32_t *text)
{
    return constrain_schema_words(r->s, json, names, text, r->err);
}

static bool regex_at(struct constrain_reader *r, uint32_t json, bool name, uint32_t *text)
{
    return constrain_schema_regex(r->s, json, name, text, r->err);
}

/* -- values: const and enum -- */

static bool value_at(struct constrain_reader *r, uint32_t json, uint32_t *lit);

static bool members_at(struct constrain_reader *r, uint32_t json, uint32_t *lit, uint32_t *n)
{
    struct constrain_schema *s = r->s;
    bool object = constrain_reader_at(r, json)->kind == CONSTRAIN_JSON_OBJECT;
    uint32_t i = 0, key, value;
    for (uint32_t c = constrain_reader_at(r, json)->child; c;
         c = constrain_reader_at(r, c)->sibling, i++) {
        if (!value_at(r, c, &value)) return false;
        if (!object) {
            if (!constrain_schema_formula(s, CONSTRAIN_F_ITEM, i, value, 0, json, &lit[(*n)++],
                                          r->err))
                return false;
            continue;
        }
        if (!key_at(r, c, false, &key) ||
            !constrain_schema_formula(s, CONSTRAIN_F_REQUIRED, key, 0, 0, json, &lit[(*n)++],
                                      r->err) ||
            !constrain_schema_formula(s, CONSTRAIN_F_PROPERTY, key, value, 0, json, &lit[(*n)++],
                                      r->err))
            return false;
    }
    return true;
}

/* Returns in *lit the literal "equals this value"; the JSON reader bounds the depth of
 * recursion. */
static bool value_at(struct constrain_reader *r, uint32_t json, uint32_t *lit)
{
    static const uint32_t type[] = {CONSTRAIN_IS_NULL,   CONSTRAIN_IS_FALSE,  CONSTRAIN_IS_TRUE,
                                    CONSTRAIN_IS_NUMBER, CONSTRAIN_IS_STRING, CONSTRAIN_IS_ARRAY,
                                    CONSTRAIN_IS_OBJECT};
    struct constrain_schema *s = r->s;
    enum constrain_json_kind kind = constrain_reader_at(r, json)->kind;
    uint32_t n = 0, count = constrain_reader_at(r, json)->count, x;
    uint32_t *part = calloc(2 * (size_t)count + 4, sizeof *part);
    if (!part) return base_fail(r->err, BASE_NO_MEMORY, "no memory for a schema");
    bool ok =
        constrain_schema_formula(s, CONSTRAIN_F_TYPE, type[kind], 0, 0, json, &part[n++], r->err);
    if (kind == CONSTRAIN_JSON_NUMBER) {
        ok = ok && decimal_at(r, json, &x);
        ok = ok && constrain_schema_formula(s, CONSTRAIN_F_MIN, x, 0, 1, json, &part[n++], r->err);
        ok = ok && constrain_schema_formula(s, CONSTRAIN_F_MAX, x, 0, 1, json, &part[n++], r->err);
    } else if (kind == CONSTRAIN_JSON_STRING) {
        ok = ok && words_at(r, json, false, &x);
        ok = ok && constrain_schema_formula(s, CONSTRAIN_F_TEXT, x, 0, 0, json, &part[n++], r->err);
    } else if (kind == CONSTRAIN_JSON_ARRAY || kind == CONSTRAIN_JSON_OBJECT) {
        bool array = kind == CONSTRAIN_JSON_ARRAY;
        ok =
            ok && constrain_schema_formula(s, array ? CONSTRAIN_F_MIN_ITEMS : CONSTRAIN_F_MIN_PROPS,
                                           count + 1, 0, 0, json, &part[n], r->err);
        if (ok) part[n++] ^= 1;
        if (array && count)
            ok = ok && constrain_schema_formula(s, CONSTRAIN_F_MIN_ITEMS, count, 0, 0, json,
                                                &part[n++], r->err);
        ok = ok && members_at(r, json, part, &n);
    }
    ok = ok && constrain_schema_join(s, CONSTRAIN_F_AND, part, n, json, lit, r->err);
    free(part);
    return ok;
}

static bool read_const(struct constrain_reader *r, uint32_t owner, uint32_t v)
{
    uint32_t lit;
    (void)owner;
    return value_at(r, v, &lit) && constrain_reader_add(r, lit);
}

static bool read_enum(struct constrain_reader *r, uint32_t owner, uint32_t v)
{
    uint32_t n = 0, lit, text, strings[2];
    (void)owner;
    if (constrain_reader_at(r, v)->kind != CONSTRAIN_JSON_ARRAY)
        return constrain_schema_fail(r->s, v, r->err, "must be a list");
    uint32_t *part = calloc((size_t)constrain_reader_at(r, v)->count + 1, sizeof *part);
    if (!part) return base_fail(r->err, BASE_NO_MEMORY, "no memory for a schema");
    /* One automaton for all strings costs no more than one for a single string. */
    bool ok = words_at(r, v, false, &text);
    ok = ok && constrain_schema_formula(r->s, CONSTRAIN_F_TEXT, text, 0, 0, v, &strings[0], r->err);
    ok = ok && constrain_schema_formula(r->s, CONSTRAIN_F_TYPE, CONSTRAIN_IS_STRING, 0, 0, v,
                                        &strings[1], r->err);
    ok = ok && constrain_schema_join(r->s, CONSTRAIN_F_AND, strings, 2, v, &part[n++], r->err);
    for (uint32_t c = constrain_reader_at(r, v)->child; ok && c;
         c = constrain_reader_at(r, c)->sibling)
        if (constrain_reader_at(r, c)->kind != CONSTRAIN_JSON_STRING)
            ok = value_at(r, c, &part[n++]);
    ok = ok && constrain_schema_join(r->s, CONSTRAIN_F_OR, part, n, v, &lit, r->err) &&
         constrain_reader_add(r, lit);
    free(part);
    return ok;
}

/* -- keywords of types -- */

static bool one_type(struct constrain_reader *r, uint32_t v, uint32_t *lit)
{
    static const struct {
        const char *name;
        uint32_t mask;
    } types[] = {
        {"null", CONSTRAIN_IS_NULL},     {"boolean", CONSTRAIN_IS_FALSE | CONSTRAIN_IS_TRUE},
        {"number", CONSTRAIN_IS_NUMBER}, {"integer", CONSTRAIN_IS_NUMBER},
        {"string", CONSTRAIN_IS_STRING}, {"array", CONSTRAIN_IS_ARRAY},
        {"object", CONSTRAIN_IS_OBJECT}};
    struct constrain_schema *s = r->s;
    *lit = CONSTRAIN_LIT_TRUE;
    for (size_t i = 0; i < sizeof types / sizeof types[0]; i++) {
        uint32_t part[2];
        if (!constrain_json_is(&s->json, v, types[i].name)) continue;
        if (!constrain_schema_formula(s, CONSTRAIN_F_TYPE, types[i].mask, 0, 0, v, &part[0],
                                      r->err))
            return false;
        *lit = part[0];
        if (i != 3) return true;
        if (!constrain_grow(&s->decimal, &s->decimal_room, s->n_decimal, sizeof *s->decimal,
                            r->err))
            return false;
        constrain_decimal_read(&s->decimal[s->n_decimal], "1", 1);
        return constrain_schema_formula(s, CONSTRAIN_F_MULTIPLE, s->n_decimal++, 0, 0, v, &part[1],
                                        r->err) &&
               constrain_schema_join(s, CONSTRAIN_F_AND, part, 2, v, lit, r->err);
    }
    return constrain_schema_fail(s, v, r->err, "is not the name of a type");
}

/* `nullable` (OpenAPI 3.0): true allows null in addition to the schema's type. */
static bool read_type(struct constrain_reader *r, uint32_t owner, uint32_t v)
{
    uint32_t part[17], n = 0, lit;
    const uint32_t nullable = constrain_json_member(&r->s->json, owner, "nullable", 8);
    if (nullable && constrain_reader_at(r, nullable)->kind == CONSTRAIN_JSON_TRUE &&
        !constrain_schema_formula(r->s, CONSTRAIN_F_TYPE, CONSTRAIN_IS_NULL, 0, 0, v, &part[n++],
                                  r->err))
        return false;
    if (constrain_reader_at(r, v)->kind != CONSTRAIN_JSON_ARRAY) {
        if (!one_type(r, v, &part[n++])) return false;
        return constrain_schema_join(r->s, CONSTRAIN_F_OR, part, n, v, &lit, r->err) &&
               constrain_reader_add(r, lit);
    }
    if (constrain_reader_at(r, v)->count > 16)
        return constrain_schema_fail(r->s, v, r->err, "has too many types");
    for (uint32_t c = constrain_reader_at(r, v)->child; c; c = constrain_reader_at(r, c)->sibling)
        if (!one_type(r, c, &part[n++])) return false;
    return constrain_schema_join(r->s, CONSTRAIN_F_OR, part, n, v, &lit, r->err) &&
           constrain_reader_add(r, lit);
}

static bool is_boolean(const struct constrain_reader *r, uint32_t v)
{
    return constrain_reader_at(r, v)->kind == CONSTRAIN_JSON_TRUE ||
           constrain_reader_at(r, v)->kind == CONSTRAIN_JSON_FALSE;
}

/* In draft 4 exclusiveMinimum is a boolean about `minimum` in the same schema. */
static bool read_bound(struct constrain_reader *r, uint32_t owner, uint32_t v)
{
    uint32_t decimal;
    bool max =
        constrain_reader_is(r, v, "maximum") || constrain_reader_is(r, v, "exclusiveMaximum");
    bool open = constrain_reader_is(r, v, "exclusiveMinimum") ||
                constrain_reader_is(r, v, "exclusiveMaximum");
    if (open && is_boolean(r, v)) return true;
    uint32_t beside = constrain_json_member(&r->s->json, owner,
                                            max ? "exclusiveMaximum" : "exclusiveMinimum", 16);
    open |= beside && constrain_reader_at(r, beside)->kind == CONSTRAIN_JSON_TRUE;
    return decimal_at(r, v, &decimal) &&
           require(r, max ? CONSTRAIN_F_MAX : CONSTRAIN_F_MIN, decimal, open, v);
}

static bool read_multiple(struct constrain_reader *r, uint32_t owner, uint32_t v)
{
    uint32_t decimal;
    (void)owner;
    if (!decimal_at(r, v, &decimal)) return false;
    const struct constrain_decimal *d = &r->s->decimal[decimal];
    if (d->negative || d->n_digit == 0 || d->n_digit > 18)
        return constrain_schema_fail(r->s, v, r->err, "must be positive, with at most 18 digits");
    return require(r, CONSTRAIN_F_MULTIPLE, decimal, 0, v);
}

static bool read_length(struct constrain_reader *r, uint32_t owner, uint32_t v)
{
    uint32_t count;
    (void)owner;
    if (!count_at(r, v, CONSTRAIN_MAX_LENGTH, &count)) return false;
    if (constrain_reader_is(r, v, "maxLength"))
        return require_not(r, CONSTRAIN_F_LENGTH, count + 1, 0, v, CONSTRAIN_IS_STRING);
    return count == 0 || require(r, CONSTRAIN_F_LENGTH, count, 0, v);
}

static bool read_pattern(struct constrain_reader *r, uint32_t owner, uint32_t v)
{
    uint32_t text;
    (void)owner;
    if (constrain_reader_at(r, v)->kind != CONSTRAIN_JSON_STRING)
        return constrain_schema_fail(r->s, v, r->err, "must be a string");
    struct base_error *err = r->err, why = BASE_ERROR_INIT;
    r->err = &why;
    bool ok = regex_at(r, v, false, &text);
    r->err = err;
    if (!ok && why.code == BASE_USAGE &&
        add_note(r, "%s: strings under it are not generated", why.text))
        ok = true, text = CONSTRAIN_TEXT_UNKNOWN;
    if (!ok) *err = why;
    return ok && require(r, CONSTRAIN_F_TEXT, text, 0, v);
}

/* Returns in *text the automaton of a format, which is built once. */
static bool format_at(struct constrain_reader *r, const char *expression, uint32_t v,
                      uint32_t *text)
{
    const struct constrain_json_node *n = constrain_reader_at(r, v);
    uint32_t i = 0;
    while (i < r->n_formats && r->format[i].expression != expression) i++;
    if (i < r->n_formats) {
        *text = r->format[i].text;
        return true;
    }
    struct constrain_dfa *d =
        constrain_regex_dfa(expression, strlen(expression), false, n->line, n->column, r->err);
    if (!constrain_schema_keep_text(r->s, d, text, r->err)) return false;
    if (i == CONSTRAIN_MAX_FORMATS) return true;
    r->format[i].expression = expression;
    r->format[i].text = *text;
    r->n_formats++;
    return true;
}

/* By the draft `format` does not restrict. Generation follows the formats that are supported,
 * because programs that read the text do. Values that the schema lists need no format. */
static bool read_format(struct constrain_reader *r, uint32_t owner, uint32_t v)
{
    const struct constrain_json_node *n = constrain_reader_at(r, v);
    uint32_t text;
    if (!r->s->generate || n->kind != CONSTRAIN_JSON_STRING ||
        constrain_json_member(&r->s->json, owner, "const", 5) ||
        constrain_json_member(&r->s->json, owner, "enum", 4))
        return true;
    const char *expression = constrain_schema_format(r->s->json.text.data + n->text, n->text_size);
    return !expression ||
           (format_at(r, expression, v, &text) && require(r, CONSTRAIN_F_TEXT, text, 0, v));
}

/* -- keywords of arrays -- */

static bool read_prefix(struct constrain_reader *r, uint32_t owner, uint32_t v)
{
    uint32_t lit, i = 0;
    (void)owner;
    if (constrain_reader_at(r, v)->kind != CONSTRAIN_JSON_ARRAY ||
        constrain_reader_at(r, v)->count > CONSTRAIN_MAX_ITEMS)
        return constrain_schema_fail(r->s, v, r->err, "must be a list (of at most 10000)");
    for (uint32_t c = constrain_reader_at(r, v)->child; c;
         c = constrain_reader_at(r, c)->sibling, i++)
        if (!constrain_reader_schema(r, c, &lit) || !require(r, CONSTRAIN_F_ITEM, i, lit, v))
            return false;
    return true;
}

/* In older drafts an array here means prefixItems, and additionalItems replaces `items`. */
static bool read_items(struct constrain_reader *r, uint32_t owner, uint32_t v)
{
    uint32_t lit, prefix = constrain_json_member(&r->s->json, owner, "prefixItems", 11);
    if (constrain_reader_at(r, v)->kind == CONSTRAIN_JSON_ARRAY) return read_prefix(r, owner, v);
    return constrain_reader_schema(r, v, &lit) &&
           require(r, CONSTRAIN_F_ITEMS, prefix ? constrain_reader_at(r, prefix)->count : 0, lit,
                   v);
}

static bool read_more_items(struct constrain_reader *r, uint32_t owner, uint32_t v)
{
    uint32_t lit, items = constrain_json_member(&r->s->json, owner, "items", 5);
    if (!items || constrain_reader_at(r, items)->kind != CONSTRAIN_JSON_ARRAY) return true;
    return constrain_reader_schema(r, v, &lit) &&
           require(r, CONSTRAIN_F_ITEMS, constrain_reader_at(r, items)->count, lit, v);
}

static bool read_count_of(struct constrain_reader *r, uint32_t owner, uint32_t v)
{
    bool items = constrain_reader_is(r, v, "minItems") || constrain_reader_is(r, v, "maxItems");
    bool max = constrain_reader_is(r, v, "maxItems") || constrain_reader_is(r, v, "maxProperties");
    uint32_t count;
    (void)owner;
    if (!count_at(r, v, CONSTRAIN_MAX_ITEMS, &count)) return false;
    if (!max && count == 0) return true;
    enum constrain_formula_kind kind = items ? CONSTRAIN_F_MIN_ITEMS : CONSTRAIN_F_MIN_PROPS;
    if (!max) return require(r, kind, count, 0, v);
    return require_not(r, kind, count + 1, 0, v, items ? CONSTRAIN_IS_ARRAY : CONSTRAIN_IS_OBJECT);
}

static bool read_contains(struct constrain_reader *r, uint32_t owner, uint32_t v)
{
    uint32_t lit, min = 1, max, j;
    if (!constrain_reader_schema(r, v, &lit)) return false;
    if ((j = constrain_json_member(&r->s->json, owner, "minContains", 11)) &&
        !count_at(r, j, 250, &min))
        return false;
    if (min && !require(r, CONSTRAIN_F_MIN_CONTAINS, min, lit, v)) return false;
    if (!(j = constrain_json_member(&r->s->json, owner, "maxContains", 11))) return true;
    return count_at(r, j, 250, &max) &&
           require_not(r, CONSTRAIN_F_MIN_CONTAINS, max + 1, lit, v, CONSTRAIN_IS_ARRAY);
}

/* Fails for a keyword that cannot be enforced. */
static bool refuse(const struct constrain_reader *r, uint32_t v)
{
    return constrain_schema_refuse(r->s, v, r->err, "is not supported");
}

static bool read_unique(struct constrain_reader *r, uint32_t owner, uint32_t v)
{
    static const char not_enumerated[] =
        "is not supported but for items of at most 64 plain values (enum, const, type)";
    uint32_t value[CONSTRAIN_MAX_UNIQUE], lit[CONSTRAIN_MAX_UNIQUE], all;
    uint32_t max = constrain_json_member(&r->s->json, owner, "maxItems", 8), count;
    if (constrain_reader_at(r, v)->kind == CONSTRAIN_JSON_FALSE) return true;
    if (max && count_at(r, max, CONSTRAIN_MAX_ITEMS, &count) && count <= 1) return true;
    const uint32_t items = constrain_json_member(&r->s->json, owner, "items", 5);
    uint32_t n = items ? constrain_schema_values(r->refs, &r->s->json, items, value) : 0;
    if (items && n == 0 && !constrain_schema_few(&r->s->json, items, value, &n, r->err))
        return false;
    if (n == 0) {
        return add_note(r,
                        "line %u, column %u: 'uniqueItems' is not enforced: its items may have "
                        "more than 64 values",
                        constrain_reader_at(r, v)->line, constrain_reader_at(r, v)->column) ||
               constrain_schema_refuse(r->s, v, r->err, not_enumerated);
    }
    for (uint32_t i = 0; i < n; i++)
        if (!value_at(r, value[i], &lit[i])) return false;
    return constrain_schema_join(r->s, CONSTRAIN_F_UNIQUE, lit, n, v, &all, r->err) &&
           constrain_reader_add(r, all);
}

/* -- keywords of objects -- */

static bool must_be_object(struct constrain_reader *r, uint32_t v)
{
    return constrain_reader_at(r, v)->kind == CONSTRAIN_JSON_OBJECT ||
           constrain_schema_fail(r->s, v, r->err, "must be an object");
}

static bool read_properties(struct constrain_reader *r, uint32_t owner, uint32_t v)
{
    uint32_t key, lit;
    (void)owner;
    if (!must_be_object(r, v)) return false;
    for (uint32_t c = constrain_reader_at(r, v)->child; c; c = constrain_reader_at(r, c)->sibling) {
        if (!key_at(r, c, false, &key) || !constrain_reader_schema(r, c, &lit)) return false;
        /* The schema "anything" has no condition, but it makes the name known: a formula must exist
         * for it. */
        if (lit == CONSTRAIN_LIT_TRUE &&
            !constrain_schema_join(r->s, CONSTRAIN_F_AND, NULL, 0, c, &lit, r->err))
            return false;
        if (!require(r, CONSTRAIN_F_PROPERTY, key, lit, v)) return false;
    }
    return true;
}

static bool read_patterns(struct constrain_reader *r, uint32_t owner, uint32_t v)
{
    uint32_t text, lit;
    (void)owner;
    if (!must_be_object(r, v)) return false;
    for (uint32_t c = constrain_reader_at(r, v)->child; c; c = constrain_reader_at(r, c)->sibling)
        if (!regex_at(r, c, true, &text) || !constrain_reader_schema(r, c, &lit) ||
            !require(r, CONSTRAIN_F_PATTERN, text, lit, v))
            return false;
    return true;
}

/* The names that neither `properties` nor `patternProperties` mentions are a pattern of their
 * own. */
static bool read_additional(struct constrain_reader *r, uint32_t owner, uint32_t v)
{
    const struct constrain_json *j = &r->s->json;
    uint32_t properties = constrain_json_member(j, owner, "properties", 10);
    uint32_t patterns = constrain_json_member(j, owner, "patternProperties", 17);
    uint32_t lit, text, n = 0;
    const struct constrain_dfa *part[31];
    if (!constrain_reader_schema(r, v, &lit) || !words_at(r, properties, true, &text)) return false;
    part[n++] = r->s->text[text];
    for (uint32_t c = patterns ? constrain_reader_at(r, patterns)->child : 0; c;
         c = constrain_reader_at(r, c)->sibling) {
        if (n == 31)
            return constrain_schema_fail(r->s, v, r->err, "has too many patterns beside it");
        if (!regex_at(r, c, true, &text)) return false;
        part[n++] = r->s->text[text];
    }
    struct constrain_dfa *rest = constrain_dfa_product(part, n, 0, r->err);
    for (uint32_t q = 0; rest && q < rest->n_state; q++) rest->accept[q] &= rest->mask[q] == 0;
    return constrain_schema_keep_text(r->s, rest, &text, r->err) &&
           require(r, CONSTRAIN_F_PATTERN, text, lit, v);
}

static bool read_names(struct constrain_reader *r, uint32_t owner, uint32_t v)
{
    uint32_t lit;
    (void)owner;
    return constrain_reader_schema(r, v, &lit) && require(r, CONSTRAIN_F_NAMES, 0, lit, v);
}

static bool required_lits(struct constrain_reader *r, uint32_t v, uint32_t *lit, uint32_t *n)
{
    uint32_t key;
    for (uint32_t c = constrain_reader_at(r, v)->child; c; c = constrain_reader_at(r, c)->sibling) {
        if (constrain_reader_at(r, c)->kind != CONSTRAIN_JSON_STRING)
            return constrain_schema_fail(r->s, v, r->err, "must list strings");
        if (!key_at(r, c, true, &key) || !constrain_schema_formula(r->s, CONSTRAIN_F_REQUIRED, key,
                                                                   0, 0, v, &lit[(*n)++], r->err))
            return false;
    }
    return true;
}

static bool read_required(struct constrain_reader *r, uint32_t owner, uint32_t v)
{
    uint32_t n = 0;
    (void)owner;
    if (constrain_reader_at(r, v)->kind != CONSTRAIN_JSON_ARRAY)
        return constrain_schema_fail(r->s, v, r->err, "must be a list");
    uint32_t *lit = calloc((size_t)constrain_reader_at(r, v)->count + 1, sizeof *lit);
    if (!lit) return base_fail(r->err, BASE_NO_MEMORY, "no memory for a schema");
    bool ok = required_lits(r, v, lit, &n);
    for (uint32_t i = 0; ok && i < n; i++) ok = constrain_reader_add(r, lit[i]);
    free(lit);
    return ok;
}

/* Reads "if the name is present, this holds" as: the name is absent, or this holds. Up to draft 7
 * both kinds were `dependencies`. */
static bool read_dependent(struct constrain_reader *r, uint32_t owner, uint32_t v)
{
    (void)owner;
    if (!must_be_object(r, v)) return false;
    for (uint32_t c = constrain_reader_at(r, v)->child; c; c = constrain_reader_at(r, c)->sibling) {
        const bool schemas = constrain_reader_is(r, v, "dependencies")
                                 ? constrain_reader_at(r, c)->kind != CONSTRAIN_JSON_ARRAY
                                 : constrain_reader_is(r, v, "dependentSchemas");
        uint32_t key, either[2], lit, n = 0;
        uint32_t *part = calloc((size_t)constrain_reader_at(r, c)->count + 1, sizeof *part);
        if (!part) return base_fail(r->err, BASE_NO_MEMORY, "no memory for a schema");
        bool ok = key_at(r, c, false, &key) &&
                  constrain_schema_formula(r->s, CONSTRAIN_F_PROPERTY, key, CONSTRAIN_LIT_FALSE, 0,
                                           v, &either[0], r->err);
        if (ok && schemas)
            ok = constrain_reader_schema(r, c, &either[1]);
        else if (ok)
            ok = required_lits(r, c, part, &n) &&
                 constrain_schema_join(r->s, CONSTRAIN_F_AND, part, n, v, &either[1], r->err);
        ok = ok && constrain_schema_join(r->s, CONSTRAIN_F_OR, either, 2, v, &lit, r->err) &&
             constrain_reader_add(r, lit);
        free(part);
        if (!ok) return false;
    }
    return true;
}

/* -- references and identifiers -- */

static bool read_ref(struct constrain_reader *r, uint32_t owner, uint32_t v)
{
    uint32_t lit, target = constrain_refs_find(r->refs, owner, v, r->err);
    return target && constrain_reader_schema(r, target, &lit) && constrain_reader_add(r, lit);
}

static bool read_draft(struct constrain_reader *r, uint32_t owner, uint32_t v)
{
    (void)owner;
    return constrain_schema_draft_is_known(&r->s->json, v) ||
           constrain_schema_fail(r->s, v, r->err, "names a draft that is not known");
}

/* Reads the identifier of a schema in draft 4. In newer drafts, which do not have it, only that of
 * the root is read, because this changes no other reference. */
static bool read_old_id(struct constrain_reader *r, uint32_t owner, uint32_t v)
{
    const bool is_name = constrain_reader_at(r, v)->kind == CONSTRAIN_JSON_STRING;
    return (is_name && constrain_refs_reads_id(r->refs, owner)) || refuse(r, v);
}

/* A keyword that does not restrict the value, or is read with another one (then, maxContains). */
static bool read_nothing(struct constrain_reader *r, uint32_t owner, uint32_t v)
{
    (void)r, (void)owner, (void)v;
    return true;
}

static const struct keyword {
    const char *name;
    bool (*read)(struct constrain_reader *r, uint32_t owner, uint32_t v);
} keywords[] = {
    {"type", read_type},
    {"const", read_const},
    {"enum", read_enum},
    {"minimum", read_bound},
    {"maximum", read_bound},
    {"exclusiveMinimum", read_bound},
    {"exclusiveMaximum", read_bound},
    {"multipleOf", read_multiple},
    {"minLength", read_length},
    {"maxLength", read_length},
    {"pattern", read_pattern},
    {"prefixItems", read_prefix},
    {"items", read_items},
    {"additionalItems", read_more_items},
    {"minItems", read_count_of},
    {"maxItems", read_count_of},
    {"contains", read_contains},
    {"uniqueItems", read_unique},
    {"properties", read_properties},
    {"patternProperties", read_patterns},
    {"additionalProperties", read_additional},
    {"propertyNames", read_names},
    {"required", read_required},
    {"minProperties", read_count_of},
    {"maxProperties", read_count_of},
    {"dependentRequired", read_dependent},
    {"dependentSchemas", read_dependent},
    {"dependencies", read_dependent},
    {"allOf", constrain_read_all_any},
    {"anyOf", constrain_read_all_any},
    {"oneOf", constrain_read_one},
    {"not", constrain_read_not},
    {"if", constrain_read_if},
    {"$ref", read_ref},
    {"$schema", read_draft},
    {"nullable", read_nothing},
    {"then", read_nothing},
    {"else", read_nothing},
    {"minContains", read_nothing},
    {"maxContains", read_nothing},
    {"$id", read_nothing},
    {"id", read_old_id},
    {"$anchor", read_nothing},
    {"$dynamicAnchor", read_nothing},
    {"$defs", read_nothing},
    {"definitions", read_nothing},
    {"$comment", read_nothing},
    {"$vocabulary", read_nothing},
    {"title", read_nothing},
    {"description", read_nothing},
    {"default", read_nothing},
    {"examples", read_nothing},
    {"deprecated", read_nothing},
    {"discriminator", read_nothing}, /* OpenAPI: names the property that `oneOf` decides by */
    {"example", read_nothing},
    {"externalDocs", read_nothing},
    {"xml", read_nothing},
    {"readOnly", read_nothing},
    {"writeOnly", read_nothing},
    {"format", read_format},
    {"contentEncoding", read_nothing},
    {"contentMediaType", read_nothing},
    {"contentSchema", read_nothing},
};

static bool read_keyword(struct constrain_reader *r, uint32_t owner, uint32_t v)
{
    for (size_t i = 0; i < r->options->n_lenient; i++)
        if (constrain_reader_is(r, v, r->options->lenient[i])) return true;
    for (size_t i = 0; i < sizeof keywords / sizeof keywords[0]; i++)
        if (constrain_reader_is(r, v, keywords[i].name)) return keywords[i].read(r, owner, v);
    return refuse(r, v);
}

static void reverse(uint32_t *list, uint32_t n)
{
    for (uint32_t i = 0; i < n / 2; i++) {
        const uint32_t first = list[i];
        list[i] = list[n - 1 - i];
        list[n - 1 - i] = first;
    }
}

static bool read_all(struct constrain_reader *r, uint32_t json_root, uint32_t *root)
{
    uint32_t lit;
    if (!constrain_schema_formula(r->s, CONSTRAIN_F_AND, 0, 0, 0, 1, &lit, r->err)) return false;
    if (!constrain_reader_schema(r, json_root, root)) return false;
    while (r->n_todo) {
        uint32_t json = r->todo[--r->n_todo], first = r->n_todo;
        r->n_lit = 0;
        for (uint32_t c = constrain_reader_at(r, json)->child; c;
             c = constrain_reader_at(r, c)->sibling)
            if (!read_keyword(r, json, c)) return false;
        reverse(r->todo + first, r->n_todo - first); /* the first subschema is read next */
        if (!constrain_schema_set_list(r->s, (r->lit_of[json] - 1) / 2, r->lit, r->n_lit, r->err))
            return false;
    }
    return true;
}

/* Collects the literals of the members of the root's anyOf. */
static bool find_members(struct constrain_reader *r, uint32_t json_root)
{
    uint32_t *out = r->s->member, *end = out + r->options->n_members,
             c = constrain_reader_at(r, json_root)->child;
    while (c && !constrain_reader_is(r, c, "anyOf")) c = constrain_reader_at(r, c)->sibling;
    for (uint32_t m = c ? constrain_reader_at(r, c)->child : 0; m && out < end;
         m = constrain_reader_at(r, m)->sibling)
        if (r->lit_of[m]) *out++ = r->lit_of[m] - 1;
    return out == end || base_fail(r->err, BASE_USAGE, "not as many schemas as texts");
}

bool constrain_schema_read(struct constrain_schema *s, const char *text, size_t size,
                           const struct constrain_schema_options *options, uint32_t *root,
                           struct base_error *err)
{
    struct constrain_reader r = {.s = s, .options = options, .err = err};
    if (size > CONSTRAIN_MAX_SOURCE) return base_fail(err, BASE_USAGE, "the schema is too long");
    if (!constrain_json_read(&s->json, text, size, err)) return false;
    const uint32_t json_root = constrain_schema_unwrap(&s->json);
    r.refs = constrain_refs_new(&s->json, json_root, err);
    r.lit_of = calloc(s->json.n_node, sizeof *r.lit_of);
    r.todo = calloc(s->json.n_node, sizeof *r.todo);
    s->member = calloc(options->n_members + 1, sizeof *s->member);
    bool ok = r.refs && r.lit_of && r.todo && s->member;
    if (!ok) base_fail(err, BASE_NO_MEMORY, "no memory for a schema");
    ok =
        ok && read_all(&r, json_root, root) && (!options->n_members || find_members(&r, json_root));
    constrain_refs_free(r.refs);
    free(r.lit_of), free(r.todo), free(r.lit);
    return ok;
}

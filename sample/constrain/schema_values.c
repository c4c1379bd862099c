/* sample/constrain/schema_values.c: the values of an enumeration, or of a type with few values. See
 * schema.h. */
#include "sample/constrain/schema.h"
#include <stdio.h>
#include <string.h>

enum { MAX_HOPS = 16 }; /* maximum number of consecutive references */

static bool is_equal(const struct constrain_json *j, uint32_t a, uint32_t b)
{
    const struct constrain_json_node *x = &j->node[a], *y = &j->node[b];
    const char *text = j->text.data;
    struct constrain_decimal m, n;
    if (x->kind != y->kind) return false;
    if (x->kind == CONSTRAIN_JSON_STRING)
        return x->text_size == y->text_size &&
               memcmp(text + x->text, text + y->text, x->text_size) == 0;
    if (x->kind != CONSTRAIN_JSON_NUMBER) return true;
    return constrain_decimal_read(&m, text + x->text, x->text_size) &&
           constrain_decimal_read(&n, text + y->text, y->text_size) &&
           constrain_decimal_compare(&m, &n) == 0;
}

uint32_t constrain_schema_values(struct constrain_refs *refs, const struct constrain_json *j,
                                 uint32_t json, uint32_t value[CONSTRAIN_MAX_UNIQUE])
{
    struct base_error unused = BASE_ERROR_INIT;
    uint32_t n = 0, list = 0, one = 0;
    for (int hop = 0; json && hop < MAX_HOPS; hop++) {
        list = constrain_json_member(j, json, "enum", 4);
        one = constrain_json_member(j, json, "const", 5);
        const uint32_t ref = constrain_json_member(j, json, "$ref", 4);
        if (list || one || !ref) break;
        json = constrain_refs_find(refs, json, ref, &unused);
    }
    if (one) list = 0;
    for (uint32_t c = one    ? one
                      : list ? j->node[list].child
                             : 0;
         c; c = one ? 0 : j->node[c].sibling) {
        uint32_t i = 0;
        if (j->node[c].kind >= CONSTRAIN_JSON_ARRAY) return 0;
        while (i < n && !is_equal(j, value[i], c)) i++;
        if (i < n) continue;
        if (n == CONSTRAIN_MAX_UNIQUE) return 0;
        value[n++] = c;
    }
    return n;
}

/* -- types with few values -- */

enum { BOUND_MAX = 1000000000 };

/* Reads an integer among a schema's members; false if there is none within the limits. */
static bool bound(const struct constrain_json *j, uint32_t json, const char *name, int64_t *out)
{
    struct constrain_decimal d;
    const uint32_t at = constrain_json_member(j, json, name, strlen(name));
    if (!at || j->node[at].kind != CONSTRAIN_JSON_NUMBER ||
        !constrain_decimal_read(&d, j->text.data + j->node[at].text, j->node[at].text_size))
        return false;
    bool exact;
    const __int128 scaled = constrain_decimal_scaled(&d, &exact);
    const __int128 whole = scaled / CONSTRAIN_NUMBER_UNIT;
    if (!exact || scaled % CONSTRAIN_NUMBER_UNIT != 0 || whole > BOUND_MAX || whole < -BOUND_MAX)
        return false;
    *out = (int64_t)whole;
    return true;
}

/* Adds a node that the source does not have, with the position of the schema at `json`. */
static bool add_value(struct constrain_json *j, uint32_t json, enum constrain_json_kind kind,
                      const char *text, uint32_t value[CONSTRAIN_MAX_UNIQUE], uint32_t *n,
                      struct base_error *err)
{
    const uint32_t size = (uint32_t)strlen(text), start = (uint32_t)j->text.size;
    if (!constrain_grow(&j->node, &j->node_room, j->n_node, sizeof *j->node, err)) return false;
    j->node[j->n_node] = (struct constrain_json_node){.kind = kind,
                                                      .text = start,
                                                      .text_size = size,
                                                      .line = j->node[json].line,
                                                      .column = j->node[json].column};
    base_buffer_add_text(&j->text, text);
    value[(*n)++] = j->n_node++;
    return !j->text.failed || base_fail(err, BASE_NO_MEMORY, "no memory for a schema");
}

/* Adds the values of one type; sets *fits to false if they are too many. */
static bool add_type(struct constrain_json *j, uint32_t json, uint32_t type,
                     uint32_t value[CONSTRAIN_MAX_UNIQUE], uint32_t *n, bool *fits,
                     struct base_error *err)
{
    char digits[24];
    int64_t min, max;
    *fits = *n + 2 <= CONSTRAIN_MAX_UNIQUE;
    if (*fits && constrain_json_is(j, type, "null"))
        return add_value(j, json, CONSTRAIN_JSON_NULL, "", value, n, err);
    if (*fits && constrain_json_is(j, type, "boolean"))
        return add_value(j, json, CONSTRAIN_JSON_FALSE, "", value, n, err) &&
               add_value(j, json, CONSTRAIN_JSON_TRUE, "", value, n, err);
    *fits = constrain_json_is(j, type, "integer") && bound(j, json, "minimum", &min) &&
            bound(j, json, "maximum", &max) && max - min + *n < CONSTRAIN_MAX_UNIQUE;
    for (int64_t i = *fits ? min : 1; i <= (*fits ? max : 0); i++) {
        snprintf(digits, sizeof digits, "%lld", (long long)i);
        if (!add_value(j, json, CONSTRAIN_JSON_NUMBER, digits, value, n, err)) return false;
    }
    return true;
}

/* Returns whether a list of types contains a type twice: its values would count as different. */
static bool has_twice(const struct constrain_json *j, uint32_t list)
{
    for (uint32_t a = j->node[list].child; a; a = j->node[a].sibling)
        for (uint32_t b = j->node[a].sibling; b; b = j->node[b].sibling)
            if (is_equal(j, a, b)) return true;
    return false;
}

bool constrain_schema_few(struct constrain_json *j, uint32_t json,
                          uint32_t value[CONSTRAIN_MAX_UNIQUE], uint32_t *n, struct base_error *err)
{
    const uint32_t type = constrain_json_member(j, json, "type", 4);
    const bool is_list = type && j->node[type].kind == CONSTRAIN_JSON_ARRAY;
    bool fits = type && !constrain_json_member(j, json, "nullable", 8) &&
                !(is_list && (j->node[type].count > 7 || has_twice(j, type)));
    *n = 0;
    uint32_t c = is_list ? j->node[type].child : type;
    while (fits && c) {
        if (!add_type(j, json, c, value, n, &fits, err)) return false;
        c = is_list ? j->node[c].sibling : 0;
    }
    if (!fits) *n = 0;
    return true;
}

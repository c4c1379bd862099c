/* sample/constrain/schema_values.c: the values that an enumeration allows. See schema.h. */
#include "sample/constrain/schema.h"
#include <string.h>

enum { MAX_HOPS = 16 }; /* references in a row */

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

/* sample/constrain/schema_combine.c: schemas in a schema, and the keywords that combine them. See
 * sample/constrain/schema_combine.h. */
#include "sample/constrain/schema_combine.h"
#include <stdlib.h>

bool constrain_reader_add(struct constrain_reader *r, uint32_t lit)
{
    if (!constrain_grow(&r->lit, &r->lit_room, r->n_lit, sizeof *r->lit, r->err)) return false;
    r->lit[r->n_lit++] = lit;
    return true;
}

bool constrain_reader_is(const struct constrain_reader *r, uint32_t json, const char *name)
{
    return constrain_json_is_named(&r->s->json, json, name);
}

bool constrain_reader_schema(struct constrain_reader *r, uint32_t json, uint32_t *lit)
{
    const struct constrain_json_node *n = constrain_reader_at(r, json);
    *lit = CONSTRAIN_LIT_TRUE;
    if (n->kind == CONSTRAIN_JSON_TRUE || n->kind == CONSTRAIN_JSON_FALSE) {
        *lit = n->kind == CONSTRAIN_JSON_TRUE ? CONSTRAIN_LIT_TRUE : CONSTRAIN_LIT_FALSE;
        return true;
    }
    if (n->kind != CONSTRAIN_JSON_OBJECT)
        return base_fail(r->err, BASE_USAGE,
                         "line %u, column %u: a schema must be an object or a boolean", n->line,
                         n->column);
    if (r->lit_of[json] == 0) {
        if (!constrain_schema_formula(r->s, CONSTRAIN_F_AND, 0, 0, 0, json, lit, r->err))
            return false;
        r->lit_of[json] = *lit + 1;
        r->todo[r->n_todo++] = json;
    }
    *lit = r->lit_of[json] - 1;
    return true;
}

/* -- keywords -- */

static bool list_at(struct constrain_reader *r, uint32_t v, uint32_t **out)
{
    uint32_t n = 0;
    *out = NULL;
    if (constrain_reader_at(r, v)->kind != CONSTRAIN_JSON_ARRAY ||
        constrain_reader_at(r, v)->count > 500)
        return constrain_schema_fail(r->s, v, r->err, "must be a list (of at most 500)");
    uint32_t *part = calloc((size_t)constrain_reader_at(r, v)->count + 1, sizeof *part);
    if (!part) return base_fail(r->err, BASE_NO_MEMORY, "no memory for a schema");
    *out = part;
    for (uint32_t c = constrain_reader_at(r, v)->child; c; c = constrain_reader_at(r, c)->sibling)
        if (!constrain_reader_schema(r, c, &part[n++])) return false;
    return true;
}

bool constrain_read_all_any(struct constrain_reader *r, uint32_t owner, uint32_t v)
{
    uint32_t *part, lit, n = constrain_reader_at(r, v)->count;
    (void)owner;
    bool ok = list_at(r, v, &part) &&
              constrain_schema_join(
                  r->s, constrain_reader_is(r, v, "allOf") ? CONSTRAIN_F_AND : CONSTRAIN_F_OR, part,
                  n, v, &lit, r->err) &&
              constrain_reader_add(r, lit);
    free(part);
    return ok;
}

/* Reads "one branch holds and no other does". */
bool constrain_read_one(struct constrain_reader *r, uint32_t owner, uint32_t v)
{
    uint32_t *part, lit, n = constrain_reader_at(r, v)->count, *only = NULL, *either = NULL;
    (void)owner;
    bool ok = list_at(r, v, &part);
    if (ok && n > 64) ok = constrain_schema_fail(r->s, v, r->err, "has more than 64 branches");
    if (ok) {
        only = calloc((size_t)n + 1, sizeof *only);
        either = calloc((size_t)n + 1, sizeof *either);
        ok = (only && either) || base_fail(r->err, BASE_NO_MEMORY, "no memory for a schema");
    }
    for (uint32_t i = 0; ok && i < n; i++) {
        for (uint32_t k = 0; k < n; k++) only[k] = part[k] ^ (k != i);
        uint32_t first = only[0];
        only[0] = only[i], only[i] = first; /* the branch that holds decides most */
        ok = constrain_schema_join(r->s, CONSTRAIN_F_AND, only, n, v, &either[i], r->err);
    }
    ok = ok && constrain_schema_join(r->s, CONSTRAIN_F_OR, either, n, v, &lit, r->err) &&
         constrain_reader_add(r, lit);
    free(part), free(only), free(either);
    return ok;
}

bool constrain_read_not(struct constrain_reader *r, uint32_t owner, uint32_t v)
{
    uint32_t lit;
    (void)owner;
    return constrain_reader_schema(r, v, &lit) && constrain_reader_add(r, lit ^ 1);
}

bool constrain_read_if(struct constrain_reader *r, uint32_t owner, uint32_t v)
{
    uint32_t test, part[2], lit;
    if (!constrain_reader_schema(r, v, &test)) return false;
    for (int i = 0; i < 2; i++) {
        uint32_t then = constrain_json_member(&r->s->json, owner, i ? "else" : "then", 4);
        part[0] = test ^ !i;
        if (!then) continue;
        if (!constrain_reader_schema(r, then, &part[1]) ||
            !constrain_schema_join(r->s, CONSTRAIN_F_OR, part, 2, v, &lit, r->err) ||
            !constrain_reader_add(r, lit))
            return false;
    }
    return true;
}

/* sample/constrain/schema_combine.h: the reader of a JSON schema, schemas in a schema, and the
 * keywords that combine them. Private to sample/: schema_read.c has a row for each keyword. */
#pragma once

#include "sample/constrain/schema.h"

enum { CONSTRAIN_MAX_FORMATS = 32 };

struct constrain_reader {
    struct constrain_schema *s;
    struct constrain_refs *refs;
    const struct constrain_schema_options *options;
    uint32_t *lit_of;               /* [n_node]: 1 + the literal of a schema */
    uint32_t *todo, n_todo;         /* schemas that are not read yet */
    uint32_t *lit, n_lit, lit_room; /* literals of the schema that is being read */
    struct {
        const char *expression;
        uint32_t text; /* its automaton */
    } format[CONSTRAIN_MAX_FORMATS];
    uint32_t n_formats; /* formats so far */
    struct base_error *err;
};

static inline const struct constrain_json_node *
constrain_reader_at(const struct constrain_reader *r, uint32_t json)
{
    return &r->s->json.node[json];
}
/* Adds a literal to the conditions of the schema that is being read. */
bool constrain_reader_add(struct constrain_reader *r, uint32_t lit);
/* Returns in *lit the literal of a subschema, which is read later. */
bool constrain_reader_schema(struct constrain_reader *r, uint32_t json, uint32_t *lit);
/* Returns whether a member has that name. */
bool constrain_reader_is(const struct constrain_reader *r, uint32_t json, const char *name);

/* Read the member v of the schema `owner`: allOf and anyOf, oneOf, not, if. */
bool constrain_read_all_any(struct constrain_reader *r, uint32_t owner, uint32_t v);
bool constrain_read_one(struct constrain_reader *r, uint32_t owner, uint32_t v);
bool constrain_read_not(struct constrain_reader *r, uint32_t owner, uint32_t v);
bool constrain_read_if(struct constrain_reader *r, uint32_t owner, uint32_t v);

/* sample/constrain/json.h: a JSON text as a tree with source positions, which jansson does not
 * keep, for schemas. */
#pragma once

#include "base/buffer.h"
#include "base/error.h"

enum constrain_json_kind {
    CONSTRAIN_JSON_NULL,
    CONSTRAIN_JSON_FALSE,
    CONSTRAIN_JSON_TRUE,
    CONSTRAIN_JSON_NUMBER,
    CONSTRAIN_JSON_STRING,
    CONSTRAIN_JSON_ARRAY,
    CONSTRAIN_JSON_OBJECT
};
struct constrain_json_node {
    enum constrain_json_kind kind;
    uint32_t child, sibling, count; /* node indices; 0: none */
    uint32_t name, name_size;       /* decoded, in text.data: the name of a member */
    uint32_t text, text_size;       /* in text.data: a decoded string, or a number as written */
    uint32_t line, column;
};
struct constrain_json {
    struct constrain_json_node *node; /* node[1] is the root */
    uint32_t n_node, node_room;
    struct base_buffer text;
};
/* Reads a JSON text. Fails with BASE_USAGE, with line and column; values nest at most
 * CONSTRAIN_MAX_NESTING deep. */
bool constrain_json_read(struct constrain_json *j, const char *text, size_t size,
                         struct base_error *err);
void constrain_json_free(struct constrain_json *j);

/* Returns the value of the member of that name; 0 if there is none or the node is not an object. */
uint32_t constrain_json_member(const struct constrain_json *j, uint32_t node, const char *name,
                               size_t size);
/* Returns whether a node is that string, or a member of that name. */
bool constrain_json_is(const struct constrain_json *j, uint32_t node, const char *text);
bool constrain_json_is_named(const struct constrain_json *j, uint32_t node, const char *name);

/* sample/constrain/json.h: a JSON text as a tree with places, for reading schemas. Private to
 * sample/. */
#ifndef SAMPLE_CONSTRAIN_JSON_H
#define SAMPLE_CONSTRAIN_JSON_H

#include "base/buffer.h"
#include "base/error.h"

enum sample_json_kind {
    SAMPLE_JSON_NULL,
    SAMPLE_JSON_FALSE,
    SAMPLE_JSON_TRUE,
    SAMPLE_JSON_NUMBER,
    SAMPLE_JSON_STRING,
    SAMPLE_JSON_ARRAY,
    SAMPLE_JSON_OBJECT
};
struct sample_json_node {
    enum sample_json_kind kind;
    uint32_t child, sibling, count; /* node indices; 0: none */
    uint32_t name, name_size;       /* decoded, in text.data, for members of an object */
    uint32_t text, text_size;       /* decoded string, or the number as written, in text.data */
    uint32_t line, column;
};
struct sample_json {
    struct sample_json_node *node; /* node[1] is the root */
    uint32_t n_node, node_room;
    struct base_buffer text;
};
/* BASE_USAGE with line and column. Values nest at most SAMPLE_MAX_NESTING deep. */
bool sample_json_read(struct sample_json *j, const char *text, size_t size, struct base_error *err);
void sample_json_free(struct sample_json *j);

/* The member of that name; 0: none, or no object. */
uint32_t sample_json_member(const struct sample_json *j, uint32_t node, const char *name,
                            size_t size);
bool sample_json_is(const struct sample_json *j, uint32_t node, const char *text);

#endif

/* generate/json_lines.h: writes JSON in lines, while it is generated. Private to generate/.
 *
 * The model writes compact JSON, whose white space costs no tokens; this adds line breaks and
 * indents to the text that is shown. */
#pragma once

#include "base/buffer.h"
#include <stdint.h>

struct generate_json_lines {
    uint32_t indent; /* spaces for each level */
    uint32_t depth;
    bool opened; /* after an opening bracket, before its first value */
    bool quoted, escaped;
};

/* Appends the next bytes of a JSON text in lines. The white space outside of its strings is
 * replaced; bytes that are no JSON are copied. */
void generate_json_lines_add(struct generate_json_lines *l, const char *bytes, size_t size,
                             struct base_buffer *out);

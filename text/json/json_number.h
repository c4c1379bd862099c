/* text/json/json_number.h: numbers of JSON as they are written, and JSON texts of values.
 *
 * jansson has integers of 64 bits and doubles. A number that these do not give back as it was
 * written (12345678901234567890, 0.10, 1e2, 1e400, -0) is an object with one member, whose name no
 * JSON text can have: text_json_number returns its text. A double of jansson is written with the
 * fewest digits that are read back as the same number, so most decimals are doubles. */
#pragma once

#include "base/buffer.h"
#include <jansson.h>

/* Returns the text of a number that is kept as it was written; NULL for any other value. */
const char *text_json_number(const json_t *value);
/* Makes a number of text[0..size), a JSON number. NULL without memory. */
json_t *text_json_number_new(const char *text, size_t size);
/* Returns the number of bytes of the JSON number at the beginning; 0: there is none. */
size_t text_json_number_size(const char *text, size_t size);
/* Returns whether jansson's types give this JSON number back as it is written. */
bool text_json_number_is_plain(const char *text, size_t size);

/* Returns whether a value is an object of JSON; such a number is not. */
static inline bool text_json_is_object(const json_t *value)
{
    return json_is_object(value) && !text_json_number(value);
}

/* Appends compact JSON; `sorted`: members by name. */
void text_json_write(struct base_buffer *out, const json_t *value, bool sorted);

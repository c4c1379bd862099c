/* text/json/json_parse.h: JSON that users write: errors with line and column, members, and the
 * bytes of a member as it was written. */
#pragma once

#include "base/buffer.h"
#include "base/error.h"
#include <jansson.h>

/* Parses a JSON value from a text; `what` names the text in messages, if it is not NULL. The caller
 * owns the value. Returns NULL with BASE_USAGE or BASE_NO_MEMORY. */
json_t *text_json_parse(const char *text, size_t size, const char *what, struct base_error *err);
/* Returns a member of an object; NULL if there is none, or it is null. */
const json_t *text_json_member(const json_t *object, const char *name);
/* Appends the value of a member as text[0..size), from which the object was read, has it. */
void text_json_add_own(struct base_buffer *out, const json_t *object, const char *text, size_t size,
                       const char *name);

/* text/json/json_load.h: reads and copies JSON by jansson when memory may run out.
 *
 * The scanner of jansson ignores a failed allocation while a text or a number grows: it continues
 * with a part of it, or ends the process by an assertion. After a failed allocation these functions
 * supply the scanner's further allocations from a reserve, end its input, and discard its
 * result. */
#pragma once

#include <jansson.h>

/* Calls json_loadb for text[0..size) with jansson's flags. Numbers keep their text
 * (text/json/json_number.h), except in a text with a name twice in one object. The caller owns the
 * value. Returns NULL with errno ENOMEM without memory; NULL and *error (`error` may be NULL) if
 * the text is invalid. */
json_t *text_json_load(const char *text, size_t size, size_t flags, json_error_t *error);

/* Return a copy of the value that shares its members or, if deep, has copies of them. The caller
 * owns it. NULL with errno ENOMEM without memory: jansson's own copy functions silently leave out
 * members then. */
json_t *text_json_copy(const json_t *value);
json_t *text_json_copy_deep(const json_t *value);

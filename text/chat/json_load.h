/* text/chat/json_load.h: reading and copying JSON by jansson when memory may run out.
 *
 * The scanner of jansson does not notice an allocation that fails while a text or a number grows:
 * it continues with a part of it, or ends the process by an assertion. Here, once an allocation has
 * failed, the scanner's further allocations come from a reserve, its input ends, and its result is
 * dropped. */
#ifndef TEXT_CHAT_JSON_LOAD_H
#define TEXT_CHAT_JSON_LOAD_H

#include <jansson.h>

/* Calls json_loadb for text[0..size) with jansson's flags. NULL with errno ENOMEM without memory;
 * NULL and `error` (may be NULL) if the text is invalid. The caller owns the value. */
json_t *text_json_load(const char *text, size_t size, size_t flags, json_error_t *error);

/* A copy of the value that shares its members or, if deep, has copies of them. NULL with errno
 * ENOMEM without memory: jansson's own copy functions silently omit members then. The caller owns
 * it. */
json_t *text_json_copy(const json_t *value);
json_t *text_json_copy_deep(const json_t *value);

#endif

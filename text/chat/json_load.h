/* text/chat/json_load.h: reading and copying JSON by jansson when memory may run out.
 *
 * The scanner of jansson does not notice an allocation that fails while a text or a number grows:
 * it continues with a part of it, or ends the process by an assertion. Here, once an allocation has
 * failed, the scanner gets what it still needs from memory that was set aside, its input ends, and
 * what it has read is dropped. */
#ifndef TEXT_CHAT_JSON_LOAD_H
#define TEXT_CHAT_JSON_LOAD_H

#include <jansson.h>

/* json_loadb of text[0..size), with the flags of jansson. NULL with errno ENOMEM without memory;
 * NULL and `error` (it may be NULL) when it is wrong. The caller owns the value. */
json_t *text_json_load(const char *text, size_t size, size_t flags, json_error_t *error);

/* A copy of the value that shares its members, or (deep) has copies of them too. NULL with errno
 * ENOMEM without memory, where jansson's own copies lack members and say nothing. The caller owns
 * it. */
json_t *text_json_copy(const json_t *value);
json_t *text_json_copy_deep(const json_t *value);

#endif

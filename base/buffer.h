/* base/buffer.h: a growable byte string. The buffer records a failed growth and ignores every later
 * append, so a writer checks once at the end. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

struct base_buffer {
    char *data;  /* NULL, or NUL-terminated; may contain NULs */
    size_t size; /* bytes, without the terminator */
    size_t room; /* bytes allocated */
    bool failed; /* an allocation failed; the content is incomplete */
};

#define BASE_BUFFER_INIT ((struct base_buffer){0})
/* The type of variables whose memory is freed at the end of their block. */
#define BASE_LOCAL_BUFFER __attribute__((cleanup(base_buffer_free))) struct base_buffer

/* Reserves `size` more bytes: appending them allocates nothing. */
void base_buffer_reserve(struct base_buffer *b, size_t size);
/* Each of these appends bytes, a C string without its terminator, or the output of printf. */
void base_buffer_add(struct base_buffer *b, const void *bytes, size_t size);
void base_buffer_add_text(struct base_buffer *b, const char *text);
void base_buffer_add_format(struct base_buffer *b, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
/* Appends text as a JSON string with quotes: control characters escaped, invalid UTF-8 replaced by
 * U+FFFD. */
void base_buffer_add_json(struct base_buffer *b, const char *text, size_t size);
/* Appends "name": and the text as above, or null where text is NULL; after a value a comma first.
 */
void base_buffer_add_member(struct base_buffer *b, const char *name, const char *text, size_t size);
/* Appends "name": and a C string in that way; null if it is NULL or empty. */
void base_buffer_add_string(struct base_buffer *b, const char *name, const char *text);
void base_buffer_clear(struct base_buffer *b); /* keeps the memory */
void base_buffer_free(struct base_buffer *b);

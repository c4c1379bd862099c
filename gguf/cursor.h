/* gguf/cursor.h: a bounds-checked reader of bytes.
 *
 * The first error sticks, with the byte offset of the item that failed; every later read returns
 * zero, so that a parser may read a whole record and check once. Private to gguf/. */
#pragma once

#include "base/error.h"
#include "gguf/gguf.h"

struct gguf_cursor {
    const unsigned char *bytes;
    uint64_t size;
    uint64_t at; /* at most size */
    bool failed;
    struct base_error *err;
    struct gguf_str item; /* the key or tensor being read, for messages; size 0 for none */
};

static inline uint64_t gguf_cursor_left(const struct gguf_cursor *c)
{
    return c->size - c->at;
}

/* The next `size` bytes, or NULL and an error that calls them `what`. */
const void *gguf_cursor_take(struct gguf_cursor *c, uint64_t size, const char *what);

uint32_t gguf_cursor_u32(struct gguf_cursor *c, const char *what);
uint64_t gguf_cursor_u64(struct gguf_cursor *c, const char *what);

/* A 64-bit length and that many bytes; the slice points into the file. */
struct gguf_str gguf_cursor_str(struct gguf_cursor *c, const char *what);

/* A 64-bit count of records that take at least `min_size` bytes each, checked against the bytes
 * that are left, so that no allocation or loop depends on an unchecked count. */
uint64_t gguf_cursor_count(struct gguf_cursor *c, uint64_t min_size, const char *what);

/* Records BASE_MODEL for the current item at `offset`; always returns false. */
bool gguf_cursor_fail(struct gguf_cursor *c, uint64_t offset, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* A name from the file as a C string for messages: a long one is truncated, NULs become '?'. */
enum { GGUF_ITEM_SIZE = 96 };
const char *gguf_item(struct gguf_str name, char out[GGUF_ITEM_SIZE]);

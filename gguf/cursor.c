/* gguf/cursor.c: the bounds-checked reader. Allocates nothing and does not interpret the bytes.
 * Called by gguf/part.c only. */
#include "gguf/cursor.h"

#include "base/interrupt.h"
#include "gguf/bytes.h"
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>

const char *gguf_item(struct gguf_str name, char out[GGUF_ITEM_SIZE])
{
    size_t size = name.size < GGUF_ITEM_SIZE ? (size_t)name.size : GGUF_ITEM_SIZE - 1;
    for (size_t i = 0; i < size; i++) out[i] = name.data[i] ? name.data[i] : '?';
    out[size] = '\0';
    return out;
}

bool gguf_cursor_fail(struct gguf_cursor *c, uint64_t offset, const char *format, ...)
{
    char text[256], item[GGUF_ITEM_SIZE];
    if (c->failed) return false;
    c->failed = true;
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    const char *name = c->item.size ? gguf_item(c->item, item) : NULL;
    return base_fail_at(c->err, BASE_MODEL, name, (int64_t)offset, "%s", text);
}

const void *gguf_cursor_take(struct gguf_cursor *c, uint64_t size, const char *what)
{
    if (c->failed) return NULL;
    if (!base_goes_on(c->err)) {
        c->failed = true;
        return NULL;
    }
    if (size > gguf_cursor_left(c)) {
        gguf_cursor_fail(c, c->at,
                         "%s takes %" PRIu64 " bytes but the file ends after %" PRIu64
                         ": damaged or truncated",
                         what, size, gguf_cursor_left(c));
        return NULL;
    }
    const void *bytes = c->bytes + c->at;
    c->at += size;
    return bytes;
}

uint32_t gguf_cursor_u32(struct gguf_cursor *c, const char *what)
{
    const void *bytes = gguf_cursor_take(c, 4, what);
    return bytes ? gguf_load_u32(bytes) : 0;
}

uint64_t gguf_cursor_u64(struct gguf_cursor *c, const char *what)
{
    const void *bytes = gguf_cursor_take(c, 8, what);
    return bytes ? gguf_load_u64(bytes) : 0;
}

struct gguf_str gguf_cursor_str(struct gguf_cursor *c, const char *what)
{
    uint64_t size = gguf_cursor_u64(c, what);
    const char *data = gguf_cursor_take(c, size, what);
    if (!data) return (struct gguf_str){.data = "", .size = 0};
    return (struct gguf_str){.data = data, .size = size};
}

uint64_t gguf_cursor_count(struct gguf_cursor *c, uint64_t min_size, const char *what)
{
    uint64_t offset = c->at;
    uint64_t count = gguf_cursor_u64(c, what);
    if (count <= gguf_cursor_left(c) / min_size) return count;
    gguf_cursor_fail(c, offset,
                     "%s is %" PRIu64 " but the %" PRIu64
                     " bytes left hold less: damaged or truncated",
                     what, count, gguf_cursor_left(c));
    return 0;
}

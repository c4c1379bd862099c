/* gguf/str.h: texts of a file, as slices of it. */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

/* Not terminated; may contain any byte. */
struct gguf_str {
    const char *data;
    uint64_t size;
};

static inline bool gguf_str_begins(struct gguf_str s, const char *start)
{
    const size_t n = strlen(start);
    return s.size >= n && memcmp(s.data, start, n) == 0;
}

static inline bool gguf_str_ends(struct gguf_str s, const char *end)
{
    const size_t n = strlen(end);
    return s.size >= n && memcmp(s.data + s.size - n, end, n) == 0;
}

static inline bool gguf_str_is(struct gguf_str s, const char *text)
{
    return s.size == strlen(text) && gguf_str_begins(s, text);
}

/* Orders by bytes: below 0, 0 or above 0, as memcmp. */
static inline int gguf_str_compare(struct gguf_str a, struct gguf_str b)
{
    const uint64_t n = a.size < b.size ? a.size : b.size;
    const int order = n ? memcmp(a.data, b.data, n) : 0;
    return order ? order : (a.size > b.size) - (a.size < b.size);
}

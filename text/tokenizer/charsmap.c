/* text/tokenizer/charsmap.c: reads SentencePiece's character map. See text/tokenizer/charsmap.h. */
#include "text/tokenizer/charsmap.h"
#include <string.h>

/* Real maps have sources and replacements of some tens of bytes. The limits bound the steps for
 * each byte of a text, also if the trie has a cycle, and the memory for a normalized text. */
enum { MAX_SOURCE = 256, MAX_REPLACEMENT = 256 };

static const char key[] = "tokenizer.ggml.precompiled_charsmap";

static uint32_t load4(const char *bytes)
{
    const unsigned char *u = (const unsigned char *)bytes;
    return u[0] | (uint32_t)u[1] << 8 | (uint32_t)u[2] << 16 | (uint32_t)u[3] << 24;
}

bool text_charsmap_load(struct text_charsmap *map, const struct gguf_file *file,
                        struct base_error *err)
{
    const struct gguf_kv *kv = gguf_kv_find(file, key);
    if (!kv) return true;
    const int64_t offset = (int64_t)kv->offset;
    if (kv->kind != GGUF_ARRAY || (kv->item != GGUF_I8 && kv->item != GGUF_U8))
        return base_fail_at(err, BASE_MODEL, key, offset, "must be an array of bytes");
    const char *data = kv->data;
    const uint32_t size = kv->count >= 4 ? load4(data) : 0;
    if (kv->count < 4 || size > kv->count - 4)
        return base_fail_at(err, BASE_MODEL, key, offset, "is cut: %llu bytes",
                            (unsigned long long)kv->count);
    *map = (struct text_charsmap){data + 4, size / 4, data + 4 + size, kv->count - 4 - size};
    return true;
}

static bool fail(struct base_error *err)
{
    return base_fail_at(err, BASE_MODEL, key, -1, "points past its end");
}

static bool fail_size(const char *what, int most, struct base_error *err)
{
    return base_fail_at(err, BASE_MODEL, key, -1, "has a %s longer than %d bytes", what, most);
}

static uint32_t children_of(uint32_t unit)
{
    return (unit >> 10) << (unit & 1u << 9 ? 8 : 0);
}

bool text_charsmap_find(const struct text_charsmap *map, const char *bytes, size_t size,
                        struct gguf_str *replacement, size_t *used, struct base_error *err)
{
    uint32_t place = 0;
    *used = 0;
    if (!map->n_units) return true;
    uint32_t at = children_of(load4(map->unit));
    for (size_t i = 0; i < size && bytes[i]; i++) {
        const unsigned char byte = (unsigned char)bytes[i];
        at ^= byte;
        if (at >= map->n_units) return fail(err);
        const uint32_t unit = load4(map->unit + 4 * (size_t)at);
        if ((unit & (1u << 31 | 0xff)) != byte) break;
        if (i == MAX_SOURCE) return fail_size("source", MAX_SOURCE, err);
        at ^= children_of(unit);
        if (!(unit >> 8 & 1)) continue;
        if (at >= map->n_units) return fail(err);
        place = load4(map->unit + 4 * (size_t)at) & ~(1u << 31);
        *used = i + 1;
    }
    if (!*used) return true;
    if (place >= map->text_size) return fail(err);
    const uint64_t left = map->text_size - place;
    const uint64_t most = left < MAX_REPLACEMENT + 1 ? left : MAX_REPLACEMENT + 1;
    const char *end = memchr(map->text + place, 0, most);
    if (!end && most == left) return fail(err);
    if (!end) return fail_size("replacement", MAX_REPLACEMENT, err);
    *replacement = (struct gguf_str){map->text + place, (uint64_t)(end - (map->text + place))};
    return true;
}

bool text_charsmap_keeps(const struct text_charsmap *map, unsigned char byte)
{
    if (!map->n_units) return true;
    uint32_t at = children_of(load4(map->unit)) ^ byte;
    if (at >= map->n_units) return false;
    const uint32_t unit = load4(map->unit + 4 * (size_t)at);
    if ((unit & (1u << 31 | 0xff)) != byte) return true; /* no source begins with this byte */
    if (unit >> 8 & 1) return false;
    at ^= children_of(unit);
    for (uint32_t next = 0; next < 0x80; next++) {
        if ((at ^ next) >= map->n_units) return false;
        const uint32_t label = load4(map->unit + 4 * (size_t)(at ^ next)) & (1u << 31 | 0xff);
        if (next && label == next) return false;
    }
    return true;
}

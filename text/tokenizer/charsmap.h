/* text/tokenizer/charsmap.h: the character map by which SentencePiece normalizes a text.
 *
 * Private to text/tokenizer/. The key tokenizer.ggml.precompiled_charsmap contains
 *
 *     u32 size             of the units in bytes, little-endian
 *     u32 unit[size / 4]   a double-array trie of the sources (Darts-clone's units)
 *     char text[]          the replacements, each ended by a zero
 *
 * A unit has the node's label (bits 0 to 7), whether a source ends here (bit 8), and the offset of
 * its children (bits 10 to 30, shifted by 8 if bit 9 is set), or, with bit 31, a value: the offset
 * of a replacement. */
#pragma once

#include "base/error.h"
#include "gguf/gguf.h"

struct text_charsmap {
    const char *unit; /* [n_units][4] bytes, unaligned */
    uint32_t n_units;
    const char *text;
    uint64_t text_size;
};

/* Reads the map; a file without the key has an empty one. The slices are those of the file, which
 * must outlive the map. */
bool text_charsmap_load(struct text_charsmap *map, const struct gguf_file *file,
                        struct base_error *err);
/* Finds the replacement of the longest source at the start of bytes[0..size). *used is the size of
 * the source, 0 if there is none. Fails with BASE_MODEL if the map is damaged. */
bool text_charsmap_find(const struct text_charsmap *map, const char *bytes, size_t size,
                        struct gguf_str *replacement, size_t *used, struct base_error *err);

/* Returns whether the map leaves this ASCII byte unchanged before other ASCII bytes. */
bool text_charsmap_keeps(const struct text_charsmap *map, unsigned char byte);

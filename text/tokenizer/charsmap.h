/* text/tokenizer/charsmap.h: the character map that SentencePiece compiles its normalization to.
 *
 * Private to text/tokenizer/. The key tokenizer.ggml.precompiled_charsmap holds
 *
 *     u32 size             of the units in bytes, little-endian
 *     u32 unit[size / 4]   a double-array trie of the sources (Darts-clone's units)
 *     char text[]          the replacements, each ended by a zero
 *
 * A unit is the node's label (bits 0 to 7), whether a source ends here (bit 8), and the offset of
 * its children (bits 10 to 30, shifted by 8 where bit 9 is set), or, with bit 31, a value: the
 * place of a replacement. */
#ifndef TEXT_TOKENIZER_CHARSMAP_H
#define TEXT_TOKENIZER_CHARSMAP_H

#include "base/error.h"
#include "gguf/gguf.h"

struct text_charsmap {
    const char *unit; /* [n_units][4], unaligned */
    uint32_t n_units;
    const char *text;
    uint64_t text_size;
};

/* A file without the key has an empty map. The slices belong to the file. */
bool text_charsmap_load(struct text_charsmap *map, const struct gguf_file *file,
                        struct base_error *err);
/* The replacement of the longest source at the start of bytes[0..size): *used is the size of the
 * source, 0: none. False: the map is damaged. */
bool text_charsmap_find(const struct text_charsmap *map, const char *bytes, size_t size,
                        struct gguf_str *replacement, size_t *used, struct base_error *err);

/* Whether the map leaves this ASCII byte unchanged before other ASCII bytes. */
bool text_charsmap_keeps(const struct text_charsmap *map, unsigned char byte);

#endif

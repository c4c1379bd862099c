/* text/tokenizer/vocab.h: the parts of a tokenizer that encoders share. Private to text/.
 *
 * Strings are slices of the mapped file; the tables here contain only numbers. */
#pragma once

#include "base/interrupt.h"
#include "text/tokenizer/pre.h"
#include "text/tokenizer/tokenizer.h"
#include "text/tokenizer/trie.h"
#include <string.h>

enum {
    TEXT_MAX_TOKEN_SIZE = 2048, /* bytes of one token's text; real files: below 1,000. It bounds
                                    the steps for each byte of a text through a trie */
    TEXT_MAX_TOKENS = (1 << 24) - 2, /* and merges: limit of a slot; real files: 500,000 */
    TEXT_BATCH = 32                  /* number of entries whose slots are prefetched while
                                      * opening */
};

/* ---- A hash table of numbers (table.c): open addressing; the caller compares the keys ---- */

struct text_table {
    uint32_t *slot; /* 0: free; otherwise the hash's upper 8 bits << 24 | value + 1 */
    uint32_t mask;
};

/* Allocates room for n_values <= TEXT_MAX_TOKENS. */
bool text_table_init(struct text_table *t, uint32_t n_values, struct base_error *err);
void text_table_free(struct text_table *t);

/* Returns the next value whose hash may be `hash`. *at is the position in the table; begin with the
 * hash itself. Returns TEXT_NO_VALUE at the end of the chain; *at is then a free slot for
 * text_table_put. */
int64_t text_table_next(const struct text_table *t, uint64_t hash, uint32_t *at);
/* _put adds a value at the end of text_table_next's chain, _replace replaces the value that it
 * returned last. */
bool text_table_put(struct text_table *t, uint64_t hash, uint32_t at, uint32_t value,
                    struct base_error *err);
void text_table_replace(struct text_table *t, uint64_t hash, uint32_t at, uint32_t value);

/* Prefetches the slot of a hash: memory latency limits the speed of filling a table. */
void text_table_prefetch(const struct text_table *t, uint64_t hash);

uint64_t text_hash(const char *bytes, size_t size);
uint64_t text_hash_pair(uint64_t left, uint64_t right);

/* ---- Special tokens that are cut out of a text before anything else (partition.c) ---- */

enum { TEXT_STRIP_LEFT = 1, TEXT_STRIP_RIGHT = 2 };

/* Special tokens by rank: the longest token has rank 0; among tokens of one length the lower id
 * comes first. */
struct text_specials {
    struct text_trie trie; /* maps their texts to ranks */
    uint32_t count;
    int32_t *id;    /* [count] */
    uint8_t *strip; /* [count]: which white space the token absorbs */
};

struct text_fragment {
    size_t start, size;
    int32_t id; /* the token here; -1: text */
};

struct text_fragments {
    struct text_fragment *item;
    size_t count, room;
};

bool text_specials_init(struct text_tokenizer *t, struct base_error *err);
void text_specials_free(struct text_specials *s);
/* Divides a text into fragments. `own` may be NULL; see text_encode_framed. */
bool text_partition(const struct text_tokenizer *t, const char *text, const char *own, size_t size,
                    bool parse_special, struct text_fragments *out, struct base_error *err);
void text_fragments_free(struct text_fragments *f);

/* ---- An algorithm: a file and a row of tokenizer.c ---- */

struct text_work;

/* The default ids, and the defaults of the tokens around a text; -1: none. */
struct text_defaults {
    int32_t bos, eos, unk, sep;
    bool add_bos, add_eos, add_space_prefix;
};

enum text_drops { TEXT_DROPS_NEVER, TEXT_DROPS_DECLARED, TEXT_DROPS_ALWAYS };

struct text_algorithm {
    const char *name; /* value of tokenizer.ggml.model */
    const char *pre;  /* BPE: the pre-tokenizer that the name implies; NULL: the file names it */
    struct text_defaults defaults; /* `open` may change the tokenizer's copy */
    bool byte_kinds;               /* "<0xNN>" is a byte token in a file without kinds */
    enum text_drops drops_space;   /* whether decoding drops the space at the start of a text */
    bool all_kinds;                /* `decode` is called for tokens of every kind */
    /* Reads the tables and sets t->state; called after the tokens and kinds and before the special
     * ids are read. */
    bool (*open)(struct text_tokenizer *t, struct base_error *err);
    void (*close)(void *state); /* NULL: nothing to free */
    /* Appends the ids of a text without special tokens to w->out. `first`: the text is at the start
     * of the whole text or after a special token. */
    bool (*encode)(const struct text_tokenizer *t, struct text_work *w, const char *text,
                   size_t size, bool first);
    /* Returns the ids before and after a text, -1: none. */
    void (*ends)(const struct text_tokenizer *t, int32_t *before, int32_t *after);
    /* Appends the bytes of a token's text. */
    void (*decode)(const struct text_tokenizer *t, struct gguf_str text, struct base_buffer *out);
};

/* ---- The tokenizer ---- */

struct text_tokenizer {
    const struct gguf_file *file;
    const struct text_algorithm *algorithm;
    void *state;                /* that of the algorithm */
    const struct text_pre *pre; /* BPE, or NULL */
    const struct gguf_kv *tokens, *scores;
    const struct gguf_kv *kinds; /* the list in the file, or NULL */
    uint32_t n_tokens;
    uint32_t longest; /* bytes of the longest token's text */
    uint8_t *kind;    /* [n_tokens] enum text_token_kind */
    uint8_t *is_end;  /* [n_tokens] */
    struct text_table by_text;
    int32_t byte_token[256]; /* ids of "<0xNN>"; -1: none */

    /* Ids, -1: none. */
    int32_t bos, eos, eot, eom, unk, sep;
    int32_t fill[3]; /* [enum text_fill] */
    bool add_bos, add_eos, add_space_prefix;
    struct text_defaults defaults;

    struct text_specials specials;
};

/* ---- Tokens (vocab.c) ---- */

/* Reads tokens, kinds and byte tokens. */
bool text_vocab_load(struct text_tokenizer *t, struct base_error *err);
/* Reads scores, one for each token. t->scores remains NULL if the file has none. */
bool text_scores_load(struct text_tokenizer *t, struct base_error *err);
/* Returns a token's score; 0 in a file without scores. */
float text_score(const struct text_tokenizer *t, uint32_t id);

struct gguf_str text_token(const struct text_tokenizer *t, uint32_t id);
int32_t text_find_token(const struct text_tokenizer *t, const char *bytes, size_t size); /* or -1 */
/* Returns the byte of a text "<0xNN>" with exactly two hexadecimal digits; -1 for other texts. */
int text_parse_byte(struct gguf_str text);

/* Reads special ids, and sets end tokens and the kinds that depend on a token's text
 * (special.c). */
bool text_load_special_ids(struct text_tokenizer *t, struct base_error *err);

/* ---- Merging adjacent symbols (merge.c), for both kinds of BPE ---- */

struct text_symbol {
    uint32_t start, size;  /* offset and bytes of the text; size 0: merged into the symbol before */
    int32_t before, after; /* neighbours, -1: none */
};

struct text_candidate; /* a pair that may be merged */

struct text_merger {
    struct text_symbol *symbol;
    size_t count, room;
    struct text_candidate *heap;
    size_t n_heap, heap_room;
};

/* Returns whether text[0..n_left) and the n_right bytes after it may be merged. The pair with the
 * lowest key is merged first, the leftmost among equal keys. */
typedef bool text_pair_fn(const struct text_tokenizer *t, const char *text, size_t n_left,
                          size_t n_right, uint32_t *key);

bool text_merger_add(struct text_merger *m, size_t start, size_t size, struct base_error *err);
/* Merges until no pair is left. The remaining symbols are linked from symbol[0] on. */
bool text_merger_run(struct text_merger *m, const struct text_tokenizer *t, const char *text,
                     text_pair_fn *pair, struct base_error *err);
void text_merger_free(struct text_merger *m);

/* ---- Encoders of text between special tokens ---- */

/* Where pieces occur whose ids are in the output already (piece_cache.c). */
struct text_cached_piece;
struct text_piece_cache {
    struct text_cached_piece *entry; /* NULL: no reuse */
    uint32_t round;                  /* number of the fragment; other entries are invalid */
};

/* Scratch memory of one text_encode call, reused for each fragment. */
struct text_work {
    struct text_merger merger;
    struct text_cuts cuts;
    struct text_piece_cache pieces;
    struct base_buffer text;          /* the fragment with spaces escaped */
    struct base_buffer word;          /* a piece in letters, or a normalized word */
    const char *source;               /* the fragment */
    size_t source_size, source_place; /* its size, and its offset in the whole text */
    bool escaped, space_added;        /* of w->text */
    unsigned flags;
    struct text_ids *out;
    struct base_error *err;
};
/* Handles a byte without a token: returns true if it is left out, otherwise false with the error of
 * text_encode. `at` is its offset in the fragment, or in w->text while that is encoded. */
bool text_lose_byte(const struct text_work *w, size_t at);
void text_work_free(struct text_work *w);

/* Call this before the pieces of a text of `size` bytes, which must not move until the next
 * call. */
bool text_piece_cache_begin(struct text_piece_cache *r, size_t size, struct base_error *err);
void text_piece_cache_free(struct text_piece_cache *r);
/* Appends the ids of the piece if they are in the table (*found). *place is for
 * text_piece_cache_add; it may be NULL. */
bool text_piece_cache_find(struct text_work *w, const char *piece, size_t size,
                           struct text_cached_piece **place, bool *found);
/* Records that the piece's ids are those of the output from index `first` on. */
void text_piece_cache_add(const struct text_work *w, struct text_cached_piece *place,
                          const char *piece, size_t size, size_t first);

/* Functions for `ends`: BOS and EOS as the file specifies them; no tokens. */
void text_declared_ends(const struct text_tokenizer *t, int32_t *before, int32_t *after);
void text_no_ends(const struct text_tokenizer *t, int32_t *before, int32_t *after);
/* ---- SentencePiece: U+2581 for spaces ---- */

/* Texts up to this many bytes, escaped, are encoded as a whole. A longer text is cut into parts,
 * which needs a search through the vocabulary first. */
enum { TEXT_WHOLE = 16 << 10 };

static inline bool text_is_mark(const char *text, size_t size)
{
    return size >= 3 && !memcmp(text, "\xe2\x96\x81", 3);
}

/* Sets joins[b] if a token has byte b before a U+2581: a text may be cut before a U+2581 after any
 * other byte. */
bool text_find_joins(const struct text_tokenizer *t, bool joins[256], struct base_error *err);
/* Writes the text to w->text with every space as U+2581. */
bool text_escape_spaces(struct text_work *w, const char *text, size_t size, bool add_space);

/* A `decode` function: appends the text with every U+2581 as a space. */
void text_unescape(const struct text_tokenizer *t, struct gguf_str text, struct base_buffer *out);

/* Decode and encode UTF-8 as llama.cpp does where a tokenizer works on characters: overlong forms,
 * surrogates and codes up to 0x1fffff are characters. *code is -1 for an invalid byte. They return
 * the number of bytes. */
size_t text_decode_loose(const char *bytes, size_t size, int32_t *code);
size_t text_encode_loose(int32_t code, char out[4]);
/* Returns the number of bytes of a character by its first byte; 1 for a continuation byte. */
static inline size_t text_lead_size(unsigned char byte)
{
    return byte < 0xc0 ? 1 : byte < 0xe0 ? 2 : byte < 0xf0 ? 3 : 4;
}

extern const struct text_algorithm text_bpe, text_bpe_gemma4, text_bpe_whitespace,
    text_bpe_hybriddna, text_spm, text_wordpiece, text_unigram, text_rwkv, text_plamo2;

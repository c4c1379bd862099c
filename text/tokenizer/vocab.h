/* text/tokenizer/vocab.h: what a tokenizer is made of. Private to text/: the encoders share these
 * parts.
 *
 * Strings stay in the mapped file; the tables here hold numbers only. */
#ifndef TEXT_TOKENIZER_VOCAB_H
#define TEXT_TOKENIZER_VOCAB_H

#include "base/interrupt.h"
#include "text/tokenizer/pre.h"
#include "text/tokenizer/tokenizer.h"

enum {
    TEXT_MAX_TOKEN_SIZE = 65535,     /* bytes of one token's text; real ones stay below 1,000 */
    TEXT_MAX_TOKENS = (1 << 24) - 2, /* and merges: what a slot holds; real ones: 500,000 */
    TEXT_BATCH = 32                  /* entries whose slots are fetched ahead while opening */
};

enum text_model { TEXT_BPE, TEXT_SPM, TEXT_WORDPIECE };

/* ---- A hash table of numbers (table.c): open addressing; the caller compares the keys ---- */

struct text_table {
    uint32_t *slot; /* 0: free; else the hash's upper 8 bits << 24 | value + 1 */
    uint32_t mask;
};

enum { TEXT_NO_VALUE = -1 };

/* Room for n_values <= TEXT_MAX_TOKENS. */
bool text_table_init(struct text_table *t, uint32_t n_values, struct base_error *err);
void text_table_free(struct text_table *t);

/* Walks the values whose hash may be `hash`: *at is where to look (begin with the hash itself).
 * Returns TEXT_NO_VALUE at the end of the chain, and *at is then a free slot for text_table_put. */
int64_t text_table_next(const struct text_table *t, uint64_t hash, uint32_t *at);
/* Puts a value where text_table_next ended, or in place of the one it returned last. */
bool text_table_put(struct text_table *t, uint64_t hash, uint32_t at, uint32_t value,
                    struct base_error *err);
void text_table_replace(struct text_table *t, uint64_t hash, uint32_t at, uint32_t value);

/* Fetches the slot of a hash into the cache: while a table is filled, waiting for memory is what
 * costs. */
void text_table_prefetch(const struct text_table *t, uint64_t hash);

uint64_t text_hash(const char *bytes, size_t size);
uint64_t text_hash_pair(uint64_t left, uint64_t right);

/* ---- An index of tokens by their first bytes (prefix.c) ---- */

struct text_prefix_index {
    const struct text_tokenizer *tokenizer;
    int32_t *id; /* sorted by text */
    uint32_t count;
    uint32_t first[257]; /* first[b]..first[b + 1]: those that begin with byte b */
};

/* Takes over ids[count] (from malloc). Tokens without text are left out. */
void text_prefix_init(struct text_prefix_index *index, const struct text_tokenizer *t, int32_t *ids,
                      uint32_t count);
void text_prefix_free(struct text_prefix_index *index);

/* The tokens that begin with the bytes walked so far. */
struct text_prefix_walk {
    uint32_t low, high, depth;
};
/* Begins with one byte; false when no token begins so. */
bool text_prefix_begin(const struct text_prefix_index *index, char byte,
                       struct text_prefix_walk *walk);
bool text_prefix_step(const struct text_prefix_index *index, char byte,
                      struct text_prefix_walk *walk);
/* The place in index->id of the token that ends here, or TEXT_NO_VALUE. */
int64_t text_prefix_found(const struct text_prefix_index *index,
                          const struct text_prefix_walk *walk);

/* ---- Special tokens that are cut out of a text before anything else (partition.c) ---- */

enum { TEXT_STRIP_LEFT = 1, TEXT_STRIP_RIGHT = 2 };

struct text_specials {
    struct text_prefix_index index;
    uint32_t *order; /* [index.count] places in index.id, the longest token first */
    uint8_t *strip;  /* [index.count] white space that the token takes with it */
};

struct text_fragment {
    size_t start, size;
    int32_t id; /* the token that stands here, or -1: text */
};

struct text_fragments {
    struct text_fragment *item;
    size_t count, room;
};

bool text_specials_init(struct text_tokenizer *t, struct base_error *err);
void text_specials_free(struct text_specials *s);
/* `own` may be NULL; see text_encode_framed. */
bool text_partition(const struct text_tokenizer *t, const char *text, const char *own, size_t size,
                    bool parse_special, struct text_fragments *out, struct base_error *err);
void text_fragments_free(struct text_fragments *f);

/* ---- The tokenizer ---- */

struct text_tokenizer {
    const struct gguf_file *file;
    enum text_model model;
    const char *model_name;
    const struct text_pre *pre; /* BPE */
    const struct gguf_kv *tokens, *scores, *merges;
    const struct gguf_kv *kinds; /* as the file has them, or NULL */
    uint32_t n_tokens;
    uint32_t longest; /* bytes of the longest token */
    uint8_t *kind;    /* [n_tokens] enum text_token_kind */
    uint8_t *is_end;  /* [n_tokens] */
    struct text_table by_text;

    /* Ids, -1: none. */
    int32_t bos, eos, eot, eom, unk, sep;
    bool add_bos, add_eos, add_space_prefix;

    struct text_specials specials;

    /* BPE */
    struct text_splitter *splitter;
    struct text_table by_pair;  /* merges by their two halves */
    uint32_t longest_merge;     /* bytes of both halves */
    uint16_t letter[256];       /* GPT-2's letter for each byte, below U+0144 */
    int16_t letter_byte[0x144]; /* and back; -1: stands for no byte */

    /* SentencePiece, and BPE on raw UTF-8 */
    int32_t byte_token[256]; /* "<0xNN>", -1: none */

    /* WordPiece */
    struct text_prefix_index words;
    bool lowercase, strip_accents;
};

struct gguf_str text_token(const struct text_tokenizer *t, uint32_t id);
int32_t text_find_token(const struct text_tokenizer *t, const char *bytes, size_t size); /* or -1 */
/* Strict: "<0x", two hexadecimal digits, ">". Returns the byte or -1. */
int text_parse_byte(struct gguf_str text);

/* Special ids, end tokens and kinds that follow from a token's text (special.c). */
bool text_load_special_ids(struct text_tokenizer *t, struct base_error *err);

/* ---- Merging neighbours (merge.c), for both kinds of BPE ---- */

struct text_symbol {
    uint32_t start, size;  /* bytes of the text; size 0: merged into the one before */
    int32_t before, after; /* neighbours, -1: none */
};

struct text_candidate; /* a pair that may be merged */

struct text_merger {
    struct text_symbol *symbol;
    size_t count, room;
    struct text_candidate *heap;
    size_t n_heap, heap_room;
};

/* Whether text[0..n_left) and the n_right bytes after it may be merged; the least key goes first,
 * and among equal keys the leftmost pair. */
typedef bool text_pair_fn(const struct text_tokenizer *t, const char *text, size_t n_left,
                          size_t n_right, uint32_t *key);

bool text_merger_add(struct text_merger *m, size_t start, size_t size, struct base_error *err);
/* Merges until no pair is left; the survivors are linked from symbol[0] on. */
bool text_merger_run(struct text_merger *m, const struct text_tokenizer *t, const char *text,
                     text_pair_fn *pair, struct base_error *err);
void text_merger_free(struct text_merger *m);

/* ---- Encoders of text between special tokens ---- */

/* Scratch of one text_encode call, reused from fragment to fragment. */
struct text_work {
    struct text_merger merger;
    struct text_cuts cuts;
    struct base_buffer text; /* the fragment with spaces escaped */
    struct base_buffer word; /* a piece in letters, or a normalized word */
    struct text_ids *out;
    struct base_error *err;
};
void text_work_free(struct text_work *w);

bool text_bpe_open(struct text_tokenizer *t, struct base_error *err);
bool text_bpe_encode(const struct text_tokenizer *t, struct text_work *w, const char *text,
                     size_t size);
bool text_spm_open(struct text_tokenizer *t, struct base_error *err);
bool text_spm_encode(const struct text_tokenizer *t, struct text_work *w, const char *text,
                     size_t size, bool add_space);
bool text_wordpiece_open(struct text_tokenizer *t, struct base_error *err);
bool text_wordpiece_encode(const struct text_tokenizer *t, struct text_work *w, const char *text,
                           size_t size);

/* Fills byte_token. */
void text_load_byte_tokens(struct text_tokenizer *t);
/* The text with every space as U+2581, in w->text. */
bool text_escape_spaces(struct text_work *w, const char *text, size_t size, bool add_space);
#endif

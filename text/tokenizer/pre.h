/* text/tokenizer/pre.h: pre-tokenizers: they cut text into pieces; byte-level BPE merges inside a
 * piece only.
 *
 * Private to text/. Owns: the table of pre-tokenizer names with their patterns and flags
 * (pre_tables.c), the compiled patterns and their run. Refuses: vocabularies, ids. */
#ifndef TEXT_TOKENIZER_PRE_H
#define TEXT_TOKENIZER_PRE_H

#include "base/error.h"
#include "gguf/gguf.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { TEXT_PRE_MAX_STEPS = 7 };

/* One step cuts every piece of the step before it: each match becomes a piece, and so does the text
 * between two matches. A step reads its piece alone, without context to the left or right. */
enum text_step_kind {
    TEXT_STEP_END,
    TEXT_STEP_REGEX,
    /* Digits in threes from the right end of their run. Regular expressions would look ahead to the
     * end of the run at every digit, in quadratic time. */
    TEXT_STEP_DIGITS_LED,  /* number characters; text before the run stays with its first group */
    TEXT_STEP_DIGITS_WORD, /* \d{1,3}(?=(?:\d{3})*\b): only a run that ends at a word boundary */
    TEXT_STEP_DIGITS_AHEAD /* (?=(\d{3})+(?!\d)): cuts only before a group of three */
};

struct text_step {
    enum text_step_kind kind;
    const char *pattern; /* TEXT_STEP_REGEX: PCRE2 syntax; \s and \S mean White_Space */
};

enum text_pre_flags {
    TEXT_PRE_IGNORE_MERGES = 1,  /* a piece that is a token is used without merging */
    TEXT_PRE_ADD_BOS = 2,        /* unless the file says otherwise */
    TEXT_PRE_RAW = 4,            /* tokens are UTF-8, not GPT-2's byte letters; bytes are <0xNN> */
    TEXT_PRE_ESCAPE_SPACES = 8,  /* spaces become U+2581 beforehand */
    TEXT_PRE_NO_BOS = 16,        /* no BOS unless the file declares one */
    TEXT_PRE_FORCE_BOS = 32,     /* BOS whatever the file says */
    TEXT_PRE_WHOLE_NEWLINES = 64 /* a run of newlines that is a token is used without merging */
};

struct text_pre {
    const char *name; /* tokenizer.ggml.pre */
    const struct text_step *steps;
    unsigned flags;
};

/* NULL if there is no such name. */
const struct text_pre *text_pre_find(struct gguf_str name);
/* For tests: the table's rows; NULL past its end. */
const struct text_pre *text_pre_at(size_t index);

struct text_splitter; /* opaque: the compiled patterns; immutable */

struct text_splitter *text_splitter_open(const struct text_step *steps, struct base_error *err);
void text_splitter_close(struct text_splitter *s); /* NULL is fine */

/* Ends of the pieces, ascending; the last one is the text's size. */
struct text_cuts {
    uint32_t *end;
    size_t count;
    size_t room;
    struct text_matcher *matcher; /* the memory of matching, kept for the next text */
};
void text_cuts_free(struct text_cuts *cuts);

/* Replaces *cuts by the pieces of text[0..size), which may hold any bytes: each byte that is not
 * part of valid UTF-8 is taken for U+FFFD, a symbol. Classes are those of Unicode 15.1. size <=
 * INT32_MAX. */
bool text_split(const struct text_splitter *s, const char *text, size_t size,
                struct text_cuts *cuts, struct base_error *err);

/* A character of the class that `code` has in Unicode 15.1, as long in UTF-8, about whose class all
 * versions of the libraries agree: `code` itself, if it was assigned before Unicode 15. */
int32_t text_pin_unicode(int32_t code);
int32_t text_lower(int32_t code);
bool text_is_space(int32_t code); /* White_Space */

#endif

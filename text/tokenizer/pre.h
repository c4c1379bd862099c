/* text/tokenizer/pre.h: pre-tokenizers: they cut text into pieces. Byte-level BPE merges only
 * inside a piece.
 *
 * Private to text/. Contains the table of pre-tokenizer names with their patterns and flags
 * (pre_tables.c), the compiled patterns and their run; no vocabularies or ids. */
#pragma once

#include "base/error.h"
#include "gguf/gguf.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { TEXT_PRE_MAX_STEPS = 7 };

/* A step cuts every piece of the step before it: each match becomes a piece, and so does the text
 * between two matches. A step reads each piece by itself, without context to the left or right. */
enum text_step_kind {
    TEXT_STEP_END,
    TEXT_STEP_REGEX,
    /* Groups of three digits from the right end of their run. A regular expression would look ahead
     * to the end of the run at every digit, which takes quadratic time. */
    TEXT_STEP_DIGITS_LED,  /* number characters; text before the run belongs to its first group */
    TEXT_STEP_DIGITS_WORD, /* \d{1,3}(?=(?:\d{3})*\b): only a run that ends at a word boundary */
    TEXT_STEP_DIGITS_AHEAD /* (?=(\d{3})+(?!\d)): cuts only before a group of three */
};

struct text_step {
    enum text_step_kind kind;
    const char *pattern; /* TEXT_STEP_REGEX: PCRE2 syntax; \s and \S mean White_Space */
};

enum text_pre_flags {
    TEXT_PRE_IGNORE_MERGES = 1,  /* a piece that is a token is used without merging */
    TEXT_PRE_ADD_BOS = 2,        /* add BOS if the file does not specify it */
    TEXT_PRE_RAW = 4,            /* tokens are UTF-8, not GPT-2's byte letters; bytes are <0xNN> */
    TEXT_PRE_ESCAPE_SPACES = 8,  /* spaces become U+2581 first */
    TEXT_PRE_NO_BOS = 16,        /* no BOS unless the file specifies one */
    TEXT_PRE_FORCE_BOS = 32,     /* add BOS whatever the file specifies */
    TEXT_PRE_WHOLE_NEWLINES = 64 /* a run of newlines that is a token is used without merging */
};

struct text_pre {
    const char *name; /* value of tokenizer.ggml.pre */
    const struct text_step *steps;
    unsigned flags;
};

/* Returns the row of a name; NULL if there is none. */
const struct text_pre *text_pre_find(struct gguf_str name);
/* Returns row `index` of the table, for tests; NULL past its end. */
const struct text_pre *text_pre_at(size_t index);

struct text_splitter; /* opaque: the compiled patterns; immutable */

struct text_splitter *text_splitter_open(const struct text_step *steps, struct base_error *err);
void text_splitter_close(struct text_splitter *s); /* accepts NULL */

/* The ends of the pieces, ascending; the last one is the text's size. */
struct text_cuts {
    uint32_t *end;
    size_t count;
    size_t room;
    struct text_matcher *matcher; /* memory for matching, reused for the next text */
};
void text_cuts_free(struct text_cuts *cuts);

/* Replaces *cuts by the pieces of text[0..size), size <= INT32_MAX. The text may contain any bytes:
 * each byte that is not part of valid UTF-8 counts as U+FFFD, a symbol. Character classes are those
 * of Unicode 15.1. Fails with BASE_NO_MEMORY, or BASE_FAILED if PCRE2 fails. */
bool text_split(const struct text_splitter *s, const char *text, size_t size,
                struct text_cuts *cuts, struct base_error *err);

/* Returns a character of the class that `code` has in Unicode 15.1, of the same length in UTF-8,
 * whose class is the same in all versions of the libraries: `code` itself if it was assigned before
 * Unicode 15. */
int32_t text_pin_unicode(int32_t code);
int32_t text_lower(int32_t code);
bool text_is_space(int32_t code); /* White_Space */

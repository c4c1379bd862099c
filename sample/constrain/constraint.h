/* sample/constrain/constraint.h: constraints on a text: grammars, expressions, choices, JSON
 * schemas.
 *
 * Contains the compiled form of each, the state of one text, and masks of the tokens that may come
 * next; no models, tokenizers (a callback returns the bytes of tokens) or printing. A construct
 * that cannot be enforced is a compile error that names it, with line and column. The compiled form
 * is immutable: any number of states and threads may share it. It is a set of deterministic
 * automata that call each other, and frames for JSON; a state is a set of stacks of positions in
 * these, shared and bounded (CONSTRAIN_MAX_*), so that time and memory are bounded for any text. */
#pragma once

#include "base/buffer.h"
#include "base/error.h"

/* Limits. Exceeding one is BASE_USAGE while compiling and BASE_FAILED while reading a text. */
enum {
    CONSTRAIN_MAX_SOURCE = 1 << 22, /* bytes of a grammar, expression or schema */
    CONSTRAIN_MAX_NESTING = 200,    /* nested groups, and nested values of a schema */
    CONSTRAIN_MAX_REPEAT = 1000000, /* m and n of {m,n} */
    CONSTRAIN_MAX_NFA = 1 << 21, /* states before determinization, per rule; moves: 4 times that */
    CONSTRAIN_MAX_DFA = 1 << 20, /* states of one automaton */
    CONSTRAIN_MAX_MOVES = 1 << 25,  /* states times classes of bytes of one automaton */
    CONSTRAIN_MAX_WORK = 1 << 30,   /* moves examined for one automaton: a few seconds */
    CONSTRAIN_MAX_SETS = 1 << 22,   /* sum of the sizes of the state sets of one determinization */
    CONSTRAIN_MAX_RULES = 20000,    /* rules of a grammar */
    CONSTRAIN_MAX_LENGTH = 1 << 30, /* minLength and maxLength */
    CONSTRAIN_MAX_ITEMS = 10000,    /* minItems, maxItems, prefixItems */
    CONSTRAIN_MAX_NAMES = 504,      /* named properties of one object */
    CONSTRAIN_MAX_BRANCHES = 2000,  /* combinations of alternatives at one place of a schema */
    CONSTRAIN_MAX_PLACES = 20000,   /* different places of a schema, combinations included */
    CONSTRAIN_MAX_STACKS = 4096,    /* alternative readings of the text so far */
    CONSTRAIN_MAX_FRAMES = 1 << 20, /* frames of all stacks: bounds the nesting of a text */
    CONSTRAIN_MAX_STEPS = 1 << 18   /* moves per byte of text */
};

struct constraint;                          /* opaque */
void constraint_free(struct constraint *c); /* accepts NULL */

/* Compile functions return a constraint that the caller frees, or NULL with BASE_USAGE and "line L,
 * column C: ..." in the message.
 *
 * Compiles a GBNF grammar; the text must derive from `root`. Left recursion is an error. */
struct constraint *constraint_from_grammar(const char *text, size_t size, struct base_error *err);

/* A token that a grammar names. It is read as a token (constrain_state_take), never by its bytes,
 * and never within another token. */
struct constrain_token {
    const char *text; /* "<text>", angle brackets included, or "<[id]>" */
    bool negated;     /* any token but this one */
    uint32_t line, column;
};
/* Return the number of token names, and the name of a number; NULL if that number names no
 * token. */
uint32_t constraint_token_count(const struct constraint *c);
const struct constrain_token *constraint_token(const struct constraint *c, uint32_t which);

/* Compiles a regular expression that the whole text must match: characters, classes, \d \w \s \D \W
 * \S, `.`, groups, (?:...), (?<name>...), |, * + ? {m} {m,} {m,n} and their lazy forms, ^ and $ (of
 * the text only), \xHH \uHHHH \u{H...} \cX \0 \t \n \v \f \r, \p{...} by general category, and
 * (?=...) and (?!...) at the beginning. Other look-around, back-references, \b, \B and flags are
 * errors that name them. It matches whole code points. */
struct constraint *constraint_from_regex(const char *text, size_t size, struct base_error *err);

/* Compiles a choice of `count` texts, which are compared byte for byte. */
struct constraint *constraint_from_choices(const char *const *choices, size_t count,
                                           struct base_error *err);

/* Rules of a schema that generation does not enforce: `uniqueItems` that is not enforced, because
 * its items may have more values than an automaton can distinguish, and strings that are not
 * generated, because their `pattern` has a construct that is not supported. */
struct constrain_notes {
    uint32_t count;
    char text[256]; /* the first one, with line and column */
};

struct constrain_schema_options {
    /* true: a subset for generation, without white space except one space after a comma or a colon,
     * and without exponents in numbers that have a bound or a step. false: every JSON text that the
     * schema accepts. */
    bool generate;
    /* With `generate`. false: if a schema names properties and does not mention others (no
     * additionalProperties, no pattern that matches), only the named ones are generated. true: any
     * other name may be generated too, as the schema allows. */
    bool open;
    /* With `generate`. false: names come in the order in which the schema mentions them, others
     * last. true: in any order. */
    bool any_order;
    const char *const *lenient; /* keywords that need not be enforced */
    size_t n_lenient;
    const char *lenient_advice;    /* for messages: how the user adds such a keyword; or NULL */
    struct constrain_notes *notes; /* with `generate`; NULL: an error instead */
    size_t n_members;              /* 0; constraint_from_schemas sets it */
};

/* Compiles a JSON schema (draft 2020-12). A name that the schema mentions may occur once; without
 * `generate` properties may be in any order, and `format` does not restrict, as the draft
 * specifies. A string never contains half of a surrogate pair. */
struct constraint *constraint_from_schema(const char *text, size_t size,
                                          const struct constrain_schema_options *options,
                                          struct base_error *err);

/* The texts around a JSON value. */
struct constrain_around {
    const char *before, *after; /* UTF-8; may be empty */
};

/* Compiles a choice of `count` >= 1 texts: around[i].before, a JSON value that satisfies member i
 * of the schema's `anyOf`, around[i].after. The schema must have no other keyword, its `count`
 * members must be objects, and options->generate must be true. A member that no value satisfies is
 * BASE_USAGE too. */
struct constraint *constraint_from_schemas(const char *text, size_t size,
                                           const struct constrain_around *around, size_t count,
                                           const struct constrain_schema_options *options,
                                           struct base_error *err);

/* Compiles the constraint "any JSON object". */
struct constraint *constraint_json_object(bool generate, struct base_error *err);

/* -- the state of one text -- */

struct constrain_state; /* opaque; the constraint must outlive it */
struct constrain_state *constrain_state_new(const struct constraint *c, struct base_error *err);
void constrain_state_free(struct constrain_state *s); /* accepts NULL */

/* The tokens of a vocabulary that the names of tokens denote. */
struct constrain_names {
    const int32_t *id;   /* [constraint_token_count] */
    const uint64_t *any; /* a bit for each token that a negated name may denote */
    int32_t two[2];      /* two of those tokens, for completions; -1: there are fewer */
};
/* Sets the names for this state; `names` must outlive it. A state without names
 * reads no named token. */
void constrain_state_name(struct constrain_state *s, const struct constrain_names *names);

/* A token after the text. */
struct constrain_next {
    int32_t id; /* -1: it is no named token */
    const char *bytes;
    size_t size;
};
#define CONSTRAIN_NOTHING ((struct constrain_next){-1, "", 0})

/* Reads a token as a named token, as its bytes, or both, as the constraint allows. *accepted false:
 * the constraint allows neither, and the state must not be used again. Returns false with an error
 * as constrain_state_feed. */
bool constrain_state_take(struct constrain_state *s, struct constrain_next token, bool *accepted,
                          struct base_error *err);

/* Reads bytes up to the first one that is not allowed and sets *used to the number of bytes read. A
 * byte that is not allowed is not an error. Returns false with BASE_FAILED if a limit is exceeded,
 * or BASE_NO_MEMORY. */
bool constrain_state_feed(struct constrain_state *s, const char *bytes, size_t size, size_t *used,
                          struct base_error *err);
bool constrain_state_may_end(const struct constrain_state *s); /* the text so far is complete */
bool constrain_state_may_continue(const struct constrain_state *s); /* some byte may follow */

/* -- completions -- */

struct constrain_finisher; /* opaque: the shortest completions of one constraint; not thread-safe */
/* Creates one for a constraint, which must outlive it. `usable` (NULL: all) marks the bytes, of
 * 256, that a completion may contain; the ASCII bytes of JSON syntax are always usable. */
struct constrain_finisher *constrain_finisher_new(const struct constraint *c, const bool *usable,
                                                  struct base_error *err);
void constrain_finisher_free(struct constrain_finisher *f); /* accepts NULL */
/* Computes the number of bytes and named tokens that complete the text after a token (or
 * after CONSTRAIN_NOTHING), without a search. *rest
 * UINT64_MAX: the token is not allowed, or the number needs a search. The state does not change. */
bool constrain_finisher_after(struct constrain_finisher *f, struct constrain_state *s,
                              struct constrain_next token, uint64_t *rest, struct base_error *err);
/* Appends bytes that complete the text after a token, as few as the search finds and at most about
 * `max`, checked against the constraint. A named token is the byte CONSTRAIN_TOKEN_BYTE, which no
 * grammar allows, and its id as an int32_t. *found false: the search found none. The state does not
 * change. */
enum { CONSTRAIN_TOKEN_BYTE = 0xff };
bool constrain_finisher_text(struct constrain_finisher *f, struct constrain_state *s,
                             struct constrain_next token, size_t max, struct base_buffer *out,
                             bool *found, struct base_error *err);
/* Appends the bytes that must come next, at most `max`: up to the first place where the text may be
 * complete or continue in more than one way. *ends: the text is complete there and nothing may
 * follow. The state does not change. */
bool constrain_state_only_text(struct constrain_state *s, size_t max, struct base_buffer *out,
                               bool *ends, struct base_error *err);

/* -- masks of tokens -- */

struct constrain_token_trie; /* opaque: a trie of the tokens' bytes; immutable */
/* Appends the bytes of token `id` to `out`; none for a token that constraints never allow. */
typedef void constrain_token_bytes_fn(void *context, int32_t id, struct base_buffer *out);
struct constrain_token_trie *constrain_token_trie_new(uint32_t n_vocab,
                                                      constrain_token_bytes_fn *bytes,
                                                      void *context, struct base_error *err);
void constrain_token_trie_free(struct constrain_token_trie *v); /* accepts NULL */

struct constrain_retokenizer; /* opaque: caches the previous text; not thread-safe */
struct constrain_retokenizer *constrain_retokenizer_new(const struct constrain_token_trie *v,
                                                        struct base_error *err);
void constrain_retokenizer_free(struct constrain_retokenizer *p); /* accepts NULL */
/* Finds the fewest tokens whose concatenated bytes are bytes[0..size): writes them to `ids` (with
 * room for `size`) and their number to *count; 0 if there are none. Work for the longest common
 * suffix with the previous text is reused. */
bool constrain_retokenize(struct constrain_retokenizer *p, const char *bytes, size_t size,
                          int32_t *ids, size_t *count, struct base_error *err);

struct constrain_masker; /* opaque: caches for one constraint and vocabulary; not thread-safe */
/* `cache_bytes` bounds the memory of cached masks; `c` and `v` must outlive the masker. */
struct constrain_masker *constrain_masker_new(const struct constraint *c,
                                              const struct constrain_token_trie *v,
                                              uint64_t cache_bytes, struct base_error *err);
void constrain_masker_free(struct constrain_masker *m); /* accepts NULL */

/* Returns a mask of the tokens that are allowed next: bit `id & 63` of word `id >> 6`. It is valid
 * until the next call. It does not contain end-of-text tokens: the caller adds them by
 * constrain_state_may_end. All states of a masker must have the same names. Returns NULL if a limit
 * is exceeded. The state does not change. */
const uint64_t *constrain_masker_mask(struct constrain_masker *m, struct constrain_state *s,
                                      struct base_error *err);

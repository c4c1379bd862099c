/* sample/constrain/constrain_stack.h: the compiled constraint, and the stacks of frames that read a
 * text.
 *
 * Private to sample/. A frame is a position in one automaton or JSON value; a stack is a frame and
 * the frames that it returns to. Frames are interned, so equal stacks have the same index and the
 * set of stacks that can read the text so far remains small for any text. */
#pragma once

#include "sample/constrain/automaton.h"
#include "sample/constrain/constraint.h"

struct constrain_schema; /* sample/constrain/schema.h */

/* A JSON value with a fixed text before and after it. */
struct constrain_part {
    uint32_t before, after; /* automata of the texts */
    uint32_t place;         /* place of the value, in the schema */
};

struct constraint {
    struct constrain_dfa **dfa; /* the automata; dfa[root] reads the text if there is no schema */
    uint32_t n_dfa, root;
    struct constrain_schema *schema; /* or NULL */
    struct constrain_part *part;     /* [n_part]: alternatives; none: a value of the schema */
    uint32_t n_part;
    struct constrain_token *token; /* [n_dfa], by rule: the token that the rule names; its `text` is
                                    * NULL for other rules; NULL: no rule names a token */
};

enum constrain_frame_kind {
    CONSTRAIN_FRAME_AUTO,    /* an automaton of a grammar, an expression or choices */
    CONSTRAIN_FRAME_TOKEN,   /* before a named token; `index` is the rule */
    CONSTRAIN_FRAME_LITERAL, /* null, false, true or a number as written in the schema */
    CONSTRAIN_FRAME_STRING,
    CONSTRAIN_FRAME_NUMBER,
    CONSTRAIN_FRAME_ARRAY,
    CONSTRAIN_FRAME_OBJECT,
    CONSTRAIN_FRAME_ROOT /* a JSON text of a place of the schema */
};

/* The members of an object so far: one bit per named property, then one per mark. */
enum { CONSTRAIN_SEEN_WORDS = 8, CONSTRAIN_FIRST_MARK = CONSTRAIN_MAX_NAMES };

/* The part of an escape sequence in a JSON string that has been read. */
struct constrain_escape {
    uint32_t kind : 3;   /* enum constrain_escape_kind, schema_run.h; 0: no escape */
    uint32_t digits : 2; /* hexadecimal digits so far */
    uint32_t value : 16; /* their value */
    uint32_t high : 11;  /* the ten bits of the high surrogate before it */
};

/* A frame. It is hashed and compared as `word`, so the words that a kind does not use must be 0. */
struct constrain_frame {
    uint32_t next; /* the stack below; 0: none */
    uint32_t kind;
    uint32_t index; /* of the automaton, literal, string, number, array or object in its table */
    union {
        uint32_t state;      /* AUTO, STRING, the name of an OBJECT: state of the automaton that
                              * reads; 0: before the opening quote of a string */
        uint32_t name_class; /* OBJECT, after a name: the name's class */
    };
    union {
        struct {
            uint32_t read; /* bytes */
        } literal;
        struct {
            struct constrain_escape escape;
            uint32_t count; /* code points begun, if the schema bounds the length */
        } string;
        struct {
            uint16_t size;       /* bytes read */
            uint8_t phase, last; /* last: the last byte of a number with a condition */
        } number;
        struct {
            uint32_t n_items;
            uint8_t phase, space; /* space: number of spaces since the last token, in generation */
            uint8_t contains[8];  /* number of items that satisfy each `contains` */
            uint64_t seen;        /* bits of the values that occurred, if items must be unique */
        } array;
        struct {
            struct constrain_escape escape;
            uint16_t n_names;
            uint8_t phase, space;
            uint64_t seen[CONSTRAIN_SEEN_WORDS];
        } object;
        struct {
            uint32_t done; /* the value has been read */
        } root;
        uint64_t word[1 + CONSTRAIN_SEEN_WORDS];
    };
    uint64_t hash; /* hash of the whole stack, by content */
    uint32_t rest; /* 1 + fewest bytes that end the whole stack; 0: not computed yet */
};
_Static_assert(sizeof(struct constrain_frame) == 32 + 8 * (1 + CONSTRAIN_SEEN_WORDS),
               "no member is larger than `word`");
/* Returns the number of words of a frame: objects have more than the other kinds. */
static inline int constrain_frame_words(const struct constrain_frame *f)
{
    return f->kind == CONSTRAIN_FRAME_OBJECT ? 1 + CONSTRAIN_SEEN_WORDS : 3;
}

/* Returns a frame with all words 0. */
static inline struct constrain_frame constrain_frame_new(enum constrain_frame_kind kind,
                                                         uint32_t index, uint32_t next)
{
    return (struct constrain_frame){.next = next, .kind = kind, .index = index, .word = {0}};
}

struct constrain_state {
    const struct constraint *constraint;
    const struct constrain_names *names; /* NULL: named tokens cannot be read */
    struct constrain_frame *frame;       /* frame[0] is the empty stack */
    uint32_t n_frame, frame_room;
    uint32_t *slot, n_slot; /* hash table of frame indices; 0: free */
    uint32_t *mark, mark_room, stamp;
    uint32_t *top, n_top, top_room;    /* the stacks; the text may end if 0 is among them */
    uint32_t *out, n_out, out_room;    /* the stacks after the byte that is being read */
    uint32_t *todo, n_todo, todo_room; /* emitted stacks, before calls and returns */
    uint32_t *before, before_room;     /* the saved stacks during a trial */
    uint32_t *named, named_room; /* the stacks after a named token, while its bytes are read too */
    uint32_t steps;
    uint32_t sweep_at; /* number of frames at which unused ones are removed */
    bool failed;       /* a limit was exceeded; see err */
    struct base_error *err;
};

/* Returns the hash, by content, of a stack whose top frame is f. */
uint64_t constrain_frame_hash(const struct constrain_state *s, const struct constrain_frame *f);
/* Returns the index of the frame equal to f, whose fields except hash are set; 0 on failure. */
uint32_t constrain_frame_intern(struct constrain_state *s, const struct constrain_frame *f);
/* Adds a stack to the emitted ones. */
void constrain_state_emit(struct constrain_state *s, uint32_t stack);
/* Adds the stacks that the emitted stacks become by calls and returns, without reading a byte. */
void constrain_state_close(struct constrain_state *s);
/* Emits the stacks that follow `stack` after a byte. */
void constrain_state_step(struct constrain_state *s, uint32_t stack, uint8_t byte);
/* Write the stacks after a byte, or after token `id` if a name denotes it, to out[]. */
void constrain_state_step_byte(struct constrain_state *s, uint8_t byte);
void constrain_state_step_token(struct constrain_state *s, int32_t id);
/* Emits the stacks that an automaton's frame becomes only by calls and returns. */
void constrain_state_leave(struct constrain_state *s, uint32_t stack);
/* Begins an empty set out[]. */
void constrain_state_begin(struct constrain_state *s);
/* Removes the frames from index `count` on, which no stack may contain. */
void constrain_state_rewind(struct constrain_state *s, uint32_t count);
/* Computes a hash of the state's stacks by content, independent of their order. String lengths at
 * the top that no token can distinguish count as equal. */
void constrain_state_key(const struct constrain_state *s, uint64_t key[2]);
/* Save the present stacks, and restore them after bytes that were read on trial. Nothing else may
 * use the state in between. */
struct constrain_trial {
    uint32_t n_top, n_frame, sweep_at;
};
bool constrain_trial_begin(struct constrain_state *s, struct constrain_trial *t);
void constrain_trial_end(struct constrain_state *s, struct constrain_trial *t);
bool constrain_state_fail(struct constrain_state *s, enum base_code code, const char *text);

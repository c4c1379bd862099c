/* sample/constrain/constrain_stack.h: the compiled constraint, and stacks of frames that read a
 * text.
 *
 * Private to sample/. A frame is the position in one automaton or JSON value; a stack is a frame
 * and the frames that it returns to. Frames are interned, so equal stacks are identical and the set
 * of stacks that can read the text so far stays small for any text. */
#ifndef SAMPLE_CONSTRAIN_STACK_H
#define SAMPLE_CONSTRAIN_STACK_H

#include "sample/constrain/automaton.h"
#include "sample/constrain/constraint.h"

struct constrain_schema; /* sample/constrain/schema.h */

/* A JSON value with a text on each side of it. */
struct constrain_part {
    uint32_t before, after; /* automata of the texts */
    uint32_t place;         /* place of the value, in the schema */
};

struct constraint {
    struct constrain_dfa **dfa; /* the automata; dfa[root] reads the text when there is no schema */
    uint32_t n_dfa, dfa_room, root;
    struct constrain_schema *schema; /* or NULL */
    struct constrain_part *part;     /* [n_part] one of which is the text; none: the schema's */
    uint32_t n_part;
    struct constrain_token *token; /* [n_dfa] by rule: the token that it names, `text` NULL for
                                      other rules; NULL: no rule names a token */
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

/* The members of an object so far: one bit per known name, then one per mark. */
enum { CONSTRAIN_SEEN_WORDS = 8, CONSTRAIN_FIRST_MARK = CONSTRAIN_MAX_NAMES };

/* The part of an escape in a JSON string that has been read. */
struct constrain_escape {
    uint32_t kind : 3;   /* enum constrain_escape_kind, schema_run.h; 0: no escape */
    uint32_t digits : 2; /* hexadecimal digits so far */
    uint32_t value : 16; /* their value */
    uint32_t high : 11;  /* the ten bits of the high surrogate before it */
};

/* Frames are hashed and compared by `word`: words that a kind's member does not use are 0. */
struct constrain_frame {
    uint32_t next; /* the stack below; 0: none */
    uint32_t kind;
    uint32_t index; /* of the automaton, literal, string, number, array or object in its table */
    union {
        uint32_t state;      /* AUTO, STRING, the name of an OBJECT: of the automaton that reads;
                                0: before the opening quote of a string */
        uint32_t name_class; /* OBJECT, after a name: its class */
    };
    union {
        struct {
            uint32_t read; /* bytes */
        } literal;
        struct {
            struct constrain_escape escape;
            uint32_t count; /* code points begun, where the length counts */
        } string;
        struct {
            uint16_t size;       /* bytes read */
            uint8_t phase, last; /* last: the byte read last, when there is a condition */
        } number;
        struct {
            uint32_t n_items;
            uint8_t phase, space; /* space: white space since the last token */
            uint8_t contains[8];  /* items that count for each `contains` */
            uint64_t seen;        /* values that occurred, if none may be repeated */
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
    uint32_t rest; /* the fewest bytes that end the whole stack, plus 1; 0: not known yet */
};
_Static_assert(sizeof(struct constrain_frame) == 32 + 8 * (1 + CONSTRAIN_SEEN_WORDS),
               "no member is larger than `word`");
/* The number of words of a frame's member: objects have more than the others. */
static inline int constrain_frame_words(const struct constrain_frame *f)
{
    return f->kind == CONSTRAIN_FRAME_OBJECT ? 1 + CONSTRAIN_SEEN_WORDS : 3;
}

/* A frame whose words are 0. */
static inline struct constrain_frame constrain_frame_new(enum constrain_frame_kind kind,
                                                         uint32_t index, uint32_t next)
{
    return (struct constrain_frame){.next = next, .kind = kind, .index = index, .word = {0}};
}

struct constrain_state {
    const struct constraint *constraint;
    const struct constrain_names *names; /* NULL: named tokens are not read */
    struct constrain_frame *frame;       /* frame[0] is the empty stack */
    uint32_t n_frame, frame_room;
    uint32_t *slot, n_slot; /* hash table of frame indices; 0: free */
    uint32_t *mark, mark_room, stamp;
    uint32_t *top, n_top, top_room;    /* the stacks; if 0 is among them, the text may end */
    uint32_t *out, n_out, out_room;    /* the stacks after the byte that is being read */
    uint32_t *todo, n_todo, todo_room; /* emitted, before calls and returns */
    uint32_t *before, before_room;     /* the stacks before a trial */
    uint32_t *named, named_room; /* the stacks after a named token, while its bytes are read */
    uint32_t steps;
    uint32_t sweep_at; /* number of frames at which unused ones are dropped */
    bool failed;       /* a limit was exceeded; see err */
    struct base_error *err;
};

/* The hash by content of a stack whose top is f. */
uint64_t constrain_frame_hash(const struct constrain_state *s, const struct constrain_frame *f);
/* The index of an equal frame with all fields but hash set; 0 on failure. */
uint32_t constrain_frame_intern(struct constrain_state *s, const struct constrain_frame *f);
/* Adds a stack to the set after this byte. */
void constrain_state_emit(struct constrain_state *s, uint32_t stack);
/* Adds the stacks that the emitted stacks become without reading a byte. */
void constrain_state_close(struct constrain_state *s);
/* Emits the stacks that follow from one stack and a byte. */
void constrain_state_step(struct constrain_state *s, uint32_t stack, uint8_t byte);
/* Emits and closes the stacks after a byte, or after token `id` if it is named, into out[]. */
void constrain_state_step_byte(struct constrain_state *s, uint8_t byte);
void constrain_state_step_token(struct constrain_state *s, int32_t id);
/* Emits the stacks that an automaton's frame becomes by calls and returns only. */
void constrain_state_leave(struct constrain_state *s, uint32_t stack);
/* Begins a new empty set `out`. */
void constrain_state_begin(struct constrain_state *s);
/* Drops the frames from `count` on: nothing may refer to them. */
void constrain_state_rewind(struct constrain_state *s, uint32_t count);
/* A hash of the state's stacks by content, in any order; string lengths at the top that no token
 * can distinguish are equal. */
void constrain_state_key(const struct constrain_state *s, uint64_t key[2]);
/* Saves the present stacks and restores them after bytes that were read on trial. No other function
 * may use the state in between. */
struct constrain_trial {
    uint32_t n_top, n_frame, sweep_at;
};
bool constrain_trial_begin(struct constrain_state *s, struct constrain_trial *t);
void constrain_trial_end(struct constrain_state *s, struct constrain_trial *t);
bool constrain_state_fail(struct constrain_state *s, enum base_code code, const char *text);

#endif

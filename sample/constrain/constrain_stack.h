/* sample/constrain/constrain_stack.h: the compiled constraint, and stacks of frames that read a
 * text.
 *
 * Private to sample/. A frame says where one automaton or JSON value stands; a stack is a frame and
 * what it returns to. Equal stacks are one (frames are interned), so the set of stacks that could
 * read the text so far stays small, whatever the text. */
#ifndef SAMPLE_CONSTRAIN_CONSTRAIN_STACK_H
#define SAMPLE_CONSTRAIN_CONSTRAIN_STACK_H

#include "sample/constrain/automaton.h"
#include "sample/constrain/constraint.h"

struct sample_schema; /* sample/constrain/schema.h */

struct sample_constraint {
    struct sample_dfa **dfa; /* the automata; dfa[root] reads the text when there is no schema */
    uint32_t n_dfa, dfa_room, root;
    struct sample_schema *schema; /* or NULL */
};

enum sample_frame_kind {
    SAMPLE_FRAME_AUTO,    /* a: automaton, b: state */
    SAMPLE_FRAME_LITERAL, /* a: which, b: bytes read */
    SAMPLE_FRAME_STRING,  /* a: automaton of the content, b: state, d: escape */
    SAMPLE_FRAME_NUMBER,  /* a: condition, b: phase, c: bytes so far and the last of them */
    SAMPLE_FRAME_ARRAY,   /* a: array, b: phase and white space, c: index, s: counts of contains */
    SAMPLE_FRAME_OBJECT,  /* a: object, b: key state, c: phase and white space and count, d: escape,
                             s: names seen */
    SAMPLE_FRAME_ROOT     /* a JSON text: b: phase and white space */
};
struct sample_frame {
    uint32_t next; /* the stack below; 0: none */
    uint32_t kind;
    uint32_t a, b, c, d;
    uint64_t s[2];
    uint64_t hash; /* of the whole stack, by content */
    uint32_t rest; /* the fewest bytes that end the whole stack, plus 1; 0: not asked yet */
};

struct sample_state {
    const struct sample_constraint *constraint;
    struct sample_frame *frame; /* frame[0] is the empty stack */
    uint32_t n_frame, frame_room;
    uint32_t *slot, n_slot; /* hash table of frame indices; 0: free */
    uint32_t *mark, mark_room, stamp;
    uint32_t *top, n_top, top_room;    /* the stacks; 0 among them: the text may end */
    uint32_t *out, n_out, out_room;    /* the stacks after the byte that is being read */
    uint32_t *todo, n_todo, todo_room; /* emitted, not settled */
    uint32_t *before, before_room;     /* the stacks before a trial */
    uint32_t steps;
    uint32_t sweep_at; /* frames at which unused ones are dropped */
    bool failed;       /* a limit was met: err tells */
    struct base_error *err;
};

/* The index of an equal frame with all fields but hash set; 0 on failure. */
uint32_t sample_frame_intern(struct sample_state *s, const struct sample_frame *f);
/* Adds a stack to the set after this byte. */
void sample_state_emit(struct sample_state *s, uint32_t stack);
/* Adds what the emitted stacks become without reading a byte. */
void sample_state_settle(struct sample_state *s);
/* The stacks that follow from one stack and a byte are emitted. */
void sample_state_step(struct sample_state *s, uint32_t stack, uint8_t byte);
/* Emits what an automaton's frame becomes by calls and returns only. */
void sample_state_leave(struct sample_state *s, uint32_t stack);
/* Begins a new empty set `out`. */
void sample_state_begin(struct sample_state *s);
/* Forgets the frames from `count` on: nothing may refer to them. */
void sample_state_rewind(struct sample_state *s, uint32_t count);
/* What the state's stacks are by content, in any order. */
void sample_state_key(const struct sample_state *s, uint64_t key[2]);
/* The stacks of now, to go back to after bytes that were read on trial. Nothing else may happen to
 * the state in between. */
struct sample_trial {
    uint32_t n_top, n_frame, sweep_at;
};
bool sample_trial_begin(struct sample_state *s, struct sample_trial *t);
void sample_trial_end(struct sample_state *s, struct sample_trial *t);
bool sample_state_fail(struct sample_state *s, enum base_code code, const char *text);

#endif

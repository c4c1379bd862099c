/* sample/constrain/finish_json.h: the finisher of a constraint, and the fewest bytes that end a
 * JSON value. Private to sample/: finish.c has the stacks and the search. */
#pragma once

#include "sample/constrain/constrain_stack.h"
#include "sample/constrain/schema.h"

enum { CONSTRAIN_NEVER = UINT32_MAX }; /* no completion is known */

/* A step of a completion: the key of the state before it, and its byte, or 256 and the id of a
 * named token. */
struct constrain_end_step {
    uint64_t key[2];
    uint32_t unit;
};
struct constrain_finisher {
    const struct constraint *constraint;
    bool usable[256];  /* the bytes that a completion may contain */
    uint32_t **dfa;    /* [n_dfa][n_state]: fewest bytes from a state of an automaton to its end */
    uint32_t **string; /* the same for a schema's strings, without the closing quote */
    uint32_t ***name;  /* [n_object][states of its names][n_class]: fewest bytes from a state to the
                        * end of a name of a class; NULL: not computed yet */
    uint32_t *place;   /* [n_place]: fewest bytes of a value */
    uint32_t *work;    /* [states of the largest automaton of names], scratch */
    uint32_t *path, path_room;
    struct constrain_end_step *end;  /* [n_end + 1]: latest completion, by number of bytes left */
    struct constrain_end_step *lead; /* [n_lead]: the bytes before it, during a search */
    uint32_t n_end, end_room, n_lead, lead_room;
    bool failed; /* an allocation failed */
};

static inline uint32_t constrain_add(uint32_t a, uint32_t b)
{
    return a > CONSTRAIN_NEVER - b ? CONSTRAIN_NEVER : a + b;
}

/* Fills string[], name[] and place[]. */
bool constrain_finish_schema(struct constrain_finisher *f, struct base_error *err);
/* Returns the fewest bytes that end one frame of a JSON value; *below becomes the stack under
 * it. */
uint32_t constrain_finish_frame(struct constrain_finisher *f, const struct constrain_state *s,
                                const struct constrain_frame *frame, uint32_t *below);

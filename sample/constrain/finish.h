/* sample/constrain/finish.h: how few bytes complete a text. Private to sample/. */
#ifndef SAMPLE_CONSTRAIN_FINISH_H
#define SAMPLE_CONSTRAIN_FINISH_H

#include "sample/constrain/constrain_stack.h"
#include "sample/constrain/schema.h"

enum { SAMPLE_NEVER = UINT32_MAX }; /* no number of bytes that is known */

/* A step of an end: the state before it, and its byte. */
struct sample_end_step {
    uint64_t key[2];
    char byte;
};
struct sample_finisher {
    const struct sample_constraint *constraint;
    bool usable[256];  /* bytes that an end may be made of */
    uint32_t **dfa;    /* [n_dfa][n_state] from a state of an automaton to its end */
    uint32_t **string; /* the same of a schema's strings, without the closing quote */
    uint32_t ***name;  /* [n_object][states of its names][n_class] from there to a name's end; NULL:
                          not asked for yet */
    uint32_t *place;   /* [n_place] of a value */
    uint32_t *work;    /* [states of a name's automaton], for the largest */
    uint32_t *path, path_room;
    struct sample_end_step *end;  /* [n_end + 1] the latest end, by how many bytes are left */
    struct sample_end_step *lead; /* [n_lead] what comes before it, as it is found */
    uint32_t n_end, end_room, n_lead, lead_room;
    bool failed; /* memory ran out */
};

static inline uint32_t sample_add(uint32_t a, uint32_t b)
{
    return a > SAMPLE_NEVER - b ? SAMPLE_NEVER : a + b;
}

/* Fills string[], name[] and place[]. */
bool sample_finish_schema(struct sample_finisher *f, struct base_error *err);
/* The least for one frame of a JSON value; *below is the stack under it. */
uint32_t sample_finish_frame(struct sample_finisher *f, const struct sample_state *s,
                             const struct sample_frame *frame, uint32_t *below);

#endif

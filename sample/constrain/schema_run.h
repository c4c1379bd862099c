/* sample/constrain/schema_run.h: how JSON frames move. Private to sample/; called by
 * constrain_stack.c. */
#ifndef SAMPLE_CONSTRAIN_SCHEMA_RUN_H
#define SAMPLE_CONSTRAIN_SCHEMA_RUN_H

#include "sample/constrain/constrain_stack.h"
#include "sample/constrain/schema.h"

/* Emits what a frame becomes without a byte; returns whether the frame itself can read one. */
bool sample_schema_enter(struct sample_state *s, uint32_t stack);
/* Emits what a frame becomes by one byte. */
void sample_schema_step(struct sample_state *s, uint32_t stack, uint8_t byte);

/* Numbers (schema_number.c). */
bool sample_number_enter(struct sample_state *s, uint32_t stack);
void sample_number_step(struct sample_state *s, uint32_t stack, uint8_t byte);
/* The fewest bytes that end the number of a frame (UINT32_MAX: unknown), when generating; *below is
 * the stack under the number. */
uint32_t sample_number_least(const struct sample_state *s, const struct sample_schema *schema,
                             const struct sample_frame *f, uint32_t *below);

enum sample_text_step { SAMPLE_TEXT_DEAD, SAMPLE_TEXT_INSIDE, SAMPLE_TEXT_CLOSED };
/* One byte inside a JSON string whose decoded content an automaton reads: *q its state, *escape
 * what was read of an escape (0: nothing). */
enum sample_text_step sample_text_step(const struct sample_schema *schema,
                                       const struct sample_dfa *d, uint32_t *q, uint32_t *escape,
                                       uint8_t byte);
/* How an escape that has begun can end when generating: states of the automaton behind it, and the
 * bytes that lead there. Returns how many there are. */
enum { SAMPLE_ESCAPE_ENDS = 128 };
struct sample_escape_end {
    uint32_t q, bytes;
};
uint32_t sample_escape_ends(const struct sample_dfa *d, uint32_t q, uint32_t escape,
                            struct sample_escape_end end[SAMPLE_ESCAPE_ENDS]);
/* Array frames: the frame after one more item that counts for `marks`; false: it may not. */
bool sample_array_after(const struct sample_array *a, const struct sample_frame *f, uint32_t marks,
                        struct sample_frame *after);
/* Object frames: how many required names are missing; whether a name of class c may come; the frame
 * after such a name and its value. */
uint32_t sample_object_missing(const struct sample_object *o, const struct sample_frame *f);
bool sample_object_allows(const struct sample_schema *schema, const struct sample_object *o,
                          const struct sample_frame *f, uint32_t c, uint32_t missing);
struct sample_frame sample_object_after(const struct sample_schema *schema,
                                        const struct sample_frame *f, uint32_t c, uint32_t marks);
/* Object frames: whether a name may end, or lead, in this state of the name's automaton. */
bool sample_object_may_name(const struct sample_schema *schema, const struct sample_frame *f,
                            uint32_t q, bool ends);

enum {                      /* phases of an object's frame, in the low bits of c */
       SAMPLE_OBJECT_OPEN,  /* before { */
       SAMPLE_OBJECT_FIRST, /* after { */
       SAMPLE_OBJECT_NAME,  /* inside a name; b is the state of its automaton */
       SAMPLE_OBJECT_COLON, /* before : ; b is the class of the name */
       SAMPLE_OBJECT_VALUE, /* after : */
       SAMPLE_OBJECT_NEXT,  /* after a value */
       SAMPLE_OBJECT_COMMA  /* after , */
};
/* The same of an array's, in b. */
enum { SAMPLE_ARRAY_OPEN, SAMPLE_ARRAY_FIRST, SAMPLE_ARRAY_NEXT, SAMPLE_ARRAY_COMMA };
enum {
    SAMPLE_PHASE_BITS = 4,
    SAMPLE_SPACE_BITS = 8,
    SAMPLE_COUNT_SHIFT = SAMPLE_PHASE_BITS + SAMPLE_SPACE_BITS /* an object's names, in c */
};
#define SAMPLE_PHASE(x) ((x) & ((1u << SAMPLE_PHASE_BITS) - 1))

#endif

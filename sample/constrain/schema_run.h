/* sample/constrain/schema_run.h: moves of JSON frames. Private to sample/; called by
 * constrain_step.c. */
#pragma once

#include "sample/constrain/constrain_stack.h"
#include "sample/constrain/schema.h"

/* Emits the stacks that a frame becomes without reading a byte. Returns whether the frame itself
 * can read one. */
bool constrain_schema_enter(struct constrain_state *s, uint32_t stack);
/* Emits the stacks that a frame becomes by reading one byte. */
void constrain_schema_step(struct constrain_state *s, uint32_t stack, uint8_t byte);

/* Returns the frame that begins a number of the schema; that of its literal if only one value is
 * possible. */
struct constrain_frame constrain_number_frame(const struct constrain_schema *schema,
                                              uint32_t number, uint32_t next);
/* Returns the text of a literal's frame: null, false, true, or the literal of a number. */
const char *constrain_literal(const struct constrain_schema *schema, uint32_t which,
                              uint32_t *size);

/* constrain_schema_enter and constrain_schema_step of a number's frame (schema_number.c). */
bool constrain_number_enter(struct constrain_state *s, uint32_t stack);
void constrain_number_step(struct constrain_state *s, uint32_t stack, uint8_t byte);
/* Returns the fewest bytes that end the number of a frame during generation (UINT32_MAX: unknown);
 * *below becomes the stack under the number. */
uint32_t constrain_number_min_bytes(const struct constrain_state *s,
                                    const struct constrain_schema *schema,
                                    const struct constrain_frame *f, uint32_t *below);

enum constrain_escape_kind {
    CONSTRAIN_ESCAPE_NONE,
    CONSTRAIN_ESCAPE_BEGUN,     /* after the backslash */
    CONSTRAIN_ESCAPE_HEX,       /* after the u */
    CONSTRAIN_ESCAPE_LOW_SLASH, /* after a high surrogate: before the backslash of the low one */
    CONSTRAIN_ESCAPE_LOW_U,     /* before its u */
    CONSTRAIN_ESCAPE_LOW_HEX    /* after its u */
};
enum constrain_text_step { CONSTRAIN_TEXT_DEAD, CONSTRAIN_TEXT_INSIDE, CONSTRAIN_TEXT_CLOSED };
/* Reads one byte of a JSON string whose decoded content an automaton reads. *q is the automaton's
 * state, *escape the part of an escape that has been read. */
enum constrain_text_step constrain_text_step(const struct constrain_schema *schema,
                                             const struct constrain_dfa *d, uint32_t *q,
                                             struct constrain_escape *escape, uint8_t byte);
/* Returns whether a byte inside a string begins a code point. */
static inline bool constrain_text_begins(struct constrain_escape before, uint8_t byte)
{
    return !before.kind && (byte & 0xc0) != 0x80;
}
/* Counts one more code point, as far as the bounds need; false if it is not allowed. */
static inline bool constrain_length_count(const struct constrain_length *l, uint32_t *count)
{
    if (*count == l->max) return false;
    *count += l->max != CONSTRAIN_NO_MAX || *count < l->min;
    return true;
}
/* Computes the possible ends of an escape in generation: the states of the automaton after it, and
 * the bytes that lead there. Returns their number. */
enum { CONSTRAIN_ESCAPE_ENDS = 128 };
struct constrain_escape_end {
    uint32_t q, bytes;
};
uint32_t constrain_escape_ends(const struct constrain_dfa *d, uint32_t q,
                               struct constrain_escape escape,
                               struct constrain_escape_end end[CONSTRAIN_ESCAPE_ENDS]);
/* Computes the frame of an array after one more item that counts for `marks`; false if the item is
 * not allowed. */
bool constrain_array_after(const struct constrain_array *a, const struct constrain_frame *f,
                           uint32_t marks, struct constrain_frame *after);
/* Frames of objects: the number of missing required names; whether a name of class c may come; the
 * frame after such a name and a value that adds `marks`, false if no object ends from there. */
uint32_t constrain_object_missing(const struct constrain_object *o,
                                  const struct constrain_frame *f);
bool constrain_object_allows(const struct constrain_schema *schema,
                             const struct constrain_object *o, const struct constrain_frame *f,
                             uint32_t c, uint32_t missing);
bool constrain_object_after(const struct constrain_schema *schema, const struct constrain_frame *f,
                            uint32_t c, uint32_t marks, struct constrain_frame *after);
/* Returns whether the name of an object's frame may end in state q of its automaton (`ends`), or
 * can lead to an end. */
bool constrain_object_may_name(const struct constrain_schema *schema,
                               const struct constrain_frame *f, uint32_t q, bool ends);

/* The phases of an object's frame and of an array's. */
enum {
    CONSTRAIN_OBJECT_OPEN,  /* before { */
    CONSTRAIN_OBJECT_FIRST, /* after { */
    CONSTRAIN_OBJECT_NAME,  /* inside a name */
    CONSTRAIN_OBJECT_COLON, /* before : */
    CONSTRAIN_OBJECT_VALUE, /* after : */
    CONSTRAIN_OBJECT_NEXT,  /* after a value */
    CONSTRAIN_OBJECT_COMMA  /* after , */
};
enum { CONSTRAIN_ARRAY_OPEN, CONSTRAIN_ARRAY_FIRST, CONSTRAIN_ARRAY_NEXT, CONSTRAIN_ARRAY_COMMA };

/* generate/stop.h: stop strings, matched across token borders.
 *
 * Text that might still become a stop string is held back; text that cannot is released at once.
 * The stop string itself is never released. */
#ifndef GENERATE_STOP_H
#define GENERATE_STOP_H

#include "base/buffer.h"
#include "base/error.h"

struct generate_stop; /* opaque */

/* Copies `count` non-empty strings (an empty one is BASE_USAGE); count 0 is allowed. */
struct generate_stop *generate_stop_new(const char *const *strings, size_t count,
                                        struct base_error *err);
void generate_stop_free(struct generate_stop *s); /* NULL is fine */

/* Resets the state for another text. */
void generate_stop_reset(struct generate_stop *s);

/* Feeds bytes and appends to `out` the text that cannot become part of a match. Returns the index
 * of the matching string (the one that ends first, the longest of several with the same end), or
 * -1. Nothing is released after a match. */
int generate_stop_feed(struct generate_stop *s, const char *bytes, size_t size,
                       struct base_buffer *out);
/* Ends the text without a match: appends the held bytes. */
void generate_stop_end(struct generate_stop *s, struct base_buffer *out);

#endif

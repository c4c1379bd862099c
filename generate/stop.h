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

/* For another text. */
void generate_stop_reset(struct generate_stop *s);

/* Feeds bytes; appends to `out` what is safe to show. Returns the index of the string that matched
 * (the earliest end; of several ending together the longest), or -1. After a match nothing more is
 * released. */
int generate_stop_feed(struct generate_stop *s, const char *bytes, size_t size,
                       struct base_buffer *out);
/* The text ended without a match: appends what was held back. */
void generate_stop_end(struct generate_stop *s, struct base_buffer *out);

#endif

/* generate/stop.h: stop strings, matched across token borders.
 *
 * Text that may still become a stop string is held back; other text is released at once. The stop
 * string itself is never released. */
#pragma once

#include "base/buffer.h"
#include "base/error.h"

struct generate_stop; /* opaque */

/* Copies `count` non-empty strings; count 0 is allowed. The caller frees the result. Returns NULL
 * with BASE_USAGE for an empty string, or BASE_NO_MEMORY. */
struct generate_stop *generate_stop_new(const char *const *strings, size_t count,
                                        struct base_error *err);
void generate_stop_free(struct generate_stop *s); /* accepts NULL */

/* Resets the state for another text. */
void generate_stop_reset(struct generate_stop *s);

/* Reads bytes and appends to `out` the text that cannot become part of a match. Returns the index
 * of the matching string (the one that ends first, the longest of several with the same end), or
 * -1. Nothing is released after a match. */
int generate_stop_feed(struct generate_stop *s, const char *bytes, size_t size,
                       struct base_buffer *out);
/* Ends the text without a match: appends the bytes that were held back. */
void generate_stop_end(struct generate_stop *s, struct base_buffer *out);

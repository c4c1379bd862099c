/* base/checksum.h: a fast checksum of 64 bits, by which damaged bytes are found.
 *
 * Not cryptographic: it finds accidents, not forgeries. Eight lanes of 64 bits; a lane is a
 * bijection of each of its words, so that no single wrong word goes unseen by its lane. */
#ifndef BASE_CHECKSUM_H
#define BASE_CHECKSUM_H

#include <stddef.h>
#include <stdint.h>

/* Of bytes[size], on a little-endian machine; other seeds give unrelated values. */
uint64_t base_checksum(const void *bytes, size_t size, uint64_t seed);

#endif

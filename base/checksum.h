/* base/checksum.h: a fast 64-bit checksum that detects damaged data.
 *
 * Not cryptographic: it detects accidental damage, not forgery. Eight lanes of 64 bits; a lane is a
 * bijection of each of its words, so a single wrong word always changes its lane. */
#pragma once

#include <stddef.h>
#include <stdint.h>

/* The checksum of bytes[size] on a little-endian machine. Different seeds give unrelated values. */
uint64_t base_checksum(const void *bytes, size_t size, uint64_t seed);

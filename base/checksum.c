/* base/checksum.c: a fast checksum. See base/checksum.h. */
#include "base/checksum.h"
#include <string.h>

enum { LANES = 8, BLOCK = 8 * LANES, TURN = 29 };

/* Odd, so that multiplication by it is a bijection; half of the bits are set. */
#define FACTOR 0x9d3f6b2c71e8a54bu

static uint64_t mix(uint64_t a, uint64_t b)
{
    a ^= b;
    return (a << TURN | a >> (64 - TURN)) * FACTOR;
}

/* Mixes a word into a lane by three 64-bit bijections whose operations every vector unit has. */
static inline uint64_t take(uint64_t lane, uint64_t word)
{
    lane ^= word;
    lane += lane << 21;
    return lane ^ lane >> 11;
}

uint64_t base_checksum(const void *bytes, size_t size, uint64_t seed)
{
    const char *from = bytes;
    uint64_t lane[LANES], word[LANES], sum = mix(seed, size);
    for (uint64_t i = 0; i < LANES; i++) lane[i] = mix(seed + i, FACTOR);
    for (size_t done = 0; done < size; done += BLOCK) {
        const size_t left = size - done;
        if (left < BLOCK) memset(word, 0, sizeof word);
        memcpy(word, from + done, left < BLOCK ? left : BLOCK);
        for (int i = 0; i < LANES; i++) lane[i] = take(lane[i], word[i]);
    }
    for (int i = 0; i < LANES; i++) sum = mix(sum, lane[i]);
    return sum ^ sum >> 32;
}

/* test/support_random.c: see the header. */
#include "test/support_random.h"

uint64_t support_random(uint64_t *state)
{
    uint64_t z = *state += UINT64_C(0x9e3779b97f4a7c15);
    z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
    return z ^ z >> 31;
}

uint32_t support_random_below(uint64_t *state, uint32_t n)
{
    return (uint32_t)((support_random(state) >> 32) * n >> 32);
}

float support_random_float(uint64_t *state)
{
    return (float)(int32_t)(support_random(state) >> 32) * 0x1p-30f;
}

float support_random_gauss(uint64_t *state)
{
    int64_t sum = 0;
    for (int i = 0; i < 12; i++) sum += (int64_t)(support_random(state) >> 40) - (1 << 23);
    return (float)sum * 0x1p-24f;
}

uint64_t support_hash(const void *data, size_t size)
{
    const unsigned char *bytes = data;
    uint64_t hash = UINT64_C(0xcbf29ce484222325);
    for (size_t i = 0; i < size; i++) hash = (hash ^ bytes[i]) * UINT64_C(0x100000001b3);
    return hash;
}

/* engine/cpu/isa/attn_terms.h: the arithmetic of single codes, scores and weights of attention
 * (engine/cpu/isa/attn.h), which attn_scalar.c and the kernels for GPUs inline. */
#pragma once

#include "engine/cpu/isa/attn.h"
#include <math.h>
#include <string.h>

enum {
    ATTN_BITS_INFINITY = 0x7f800000,
    ATTN_BITS_TINY = 27 << 23,       /* 2^-100 */
    ATTN_BITS_TINY_VALUE = 67 << 23, /* 2^-60 */
    ATTN_BITS_MIN_SCALE = 55 << 23,  /* 2^-72 */
};

static inline uint32_t attn_magnitude_bits(float x)
{
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    return bits & 0x7fffffff;
}

static inline float attn_float_of(uint32_t bits)
{
    float x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

/* Fractions above 4095 / 2048 would give codes above 4095: the addition carries into the next
 * exponent. */
static inline float attn_value_scale(uint32_t largest_bits, float *factor)
{
    if (largest_bits < ATTN_BITS_TINY_VALUE) return attn_float_of(ATTN_BITS_MIN_SCALE);
    const uint32_t bits = ((largest_bits + 0xfff) >> 23 << 23) - (11 << 23);
    *factor = attn_float_of(0x7f000000 - bits);
    return attn_float_of(bits);
}

/* See engine_attn_scale. */
static inline float attn_scale(uint32_t largest_bits, enum engine_attn_kind kind, float *factor)
{
    const float max_c = kind == ENGINE_ATTN_QUERY ? ENGINE_ATTN_QUERY_MAX : ENGINE_ATTN_KEY_MAX;
    *factor = 0.0f;
    if (largest_bits >= ATTN_BITS_INFINITY) return attn_float_of(0x7fc00000);
    if (kind == ENGINE_ATTN_VALUE) return attn_value_scale(largest_bits, factor);
    if (largest_bits < ATTN_BITS_TINY) return 0.0f;
    *factor = max_c / attn_float_of(largest_bits);
    return attn_float_of(largest_bits) / max_c;
}

/* See engine_attn_exp2. */
static inline float attn_exp2(float x)
{
    return x > -127.0f ? attn_float_of((uint32_t)(x + 127.0f) << 23) : 0.0f;
}

static inline int16_t attn_code(float x, float factor)
{
    /* 0 times an infinite x would be NaN. */
    return factor == 0.0f ? 0 : (int16_t)lrintf(x * factor);
}

/* Codes are read and written at byte offsets in the codes of a group. With planes an offset is that
 * of the high byte, and the low byte follows ATTN_KEY_LOW or attn_value_low bytes later. */
enum {
#ifdef ENGINE_ATTN_PLANES
    ATTN_KEY_LOW = ENGINE_ATTN_GROUP * ENGINE_ATTN_UNIT,
    ATTN_UNIT_BYTES = ENGINE_ATTN_UNIT,
    ATTN_UNIT_STEP = 2 * ENGINE_ATTN_UNIT, /* from unit to unit of a key, divided by GROUP */
#else
    ATTN_KEY_LOW = 0,
    ATTN_UNIT_BYTES = ENGINE_ATTN_UNIT * sizeof(int16_t),
    ATTN_UNIT_STEP = ATTN_UNIT_BYTES,
#endif
    ATTN_CODE_BYTES = ATTN_UNIT_BYTES / ENGINE_ATTN_UNIT,
};

static inline int64_t attn_value_low(int64_t dv)
{
    return (dv + 15) / 16 * 16 * ATTN_UNIT_BYTES;
}

/* The offset of element i of row r. */
static inline int64_t attn_key_at(int64_t r, int64_t i)
{
    return i / ENGINE_ATTN_UNIT * ENGINE_ATTN_GROUP * ATTN_UNIT_STEP + r * ATTN_UNIT_BYTES +
           i % ENGINE_ATTN_UNIT * ATTN_CODE_BYTES;
}

static inline int64_t attn_value_at(int64_t dv, int64_t r, int64_t i)
{
    return r / ENGINE_ATTN_UNIT * ((dv + 15) / 16 * 16) * ATTN_UNIT_STEP + i * ATTN_UNIT_BYTES +
           r % ENGINE_ATTN_UNIT * ATTN_CODE_BYTES;
}

static inline int16_t attn_load(const char *at, int64_t low)
{
#ifdef ENGINE_ATTN_PLANES
    return (int16_t)(128 * *(const signed char *)at + *(const signed char *)(at + low));
#else
    (void)low;
    return *(const int16_t *)(const void *)at;
#endif
}

static inline void attn_store(char *at, int64_t low, int16_t code)
{
#ifdef ENGINE_ATTN_PLANES
    const int high = (code + 64) >> 7;
    at[0] = (char)high;
    at[low] = (char)(code - 128 * high);
#else
    (void)low;
    *(int16_t *)(void *)at = code;
#endif
}

/* The codes of a group. */
static inline char *attn_bytes(const char *group)
{
    return (char *)(void *)engine_attn_codes(group);
}

/* acc of the score of a query and row r of a group of keys. */
static inline float attn_score(int64_t d, const char *group, int64_t r, const int16_t *q)
{
    const char *key = attn_bytes(group);
    float acc = 0.0f;
    for (int64_t first = 0; first < d; first += ENGINE_ATTN_DIMS) {
        int64_t end = first + ENGINE_ATTN_DIMS < d ? first + ENGINE_ATTN_DIMS : d;
        int32_t sum = 0;
        for (int64_t i = first; i < end; i++)
            sum += attn_load(key + attn_key_at(r, i), ATTN_KEY_LOW) * q[i];
        acc = first ? acc + (float)sum : (float)sum;
    }
    return acc;
}

/* L and 2^-L of a value's scale. */
static inline float attn_offset(float scale)
{
    return isnan(scale) ? scale : (float)((int32_t)(attn_magnitude_bits(scale) >> 23) - 127);
}

static inline float attn_inverse(float scale)
{
    return attn_float_of(0x7f000000 - attn_magnitude_bits(scale));
}

/* w of t, in a sub-block with c. */
static inline float attn_weight(float t, float c)
{
    static const float power[] = ENGINE_ATTN_POWERS;
    const float shift = engine_attn_shift(c), x = c - 126.0f > t ? c - 126.0f : t;
    const float s = x + shift, r = x - (s - shift);
    float p = power[0];
    uint32_t bits, exponent;
    for (int i = 1; i < 5; i++) p = fmaf(p, r, power[i]);
    memcpy(&bits, &p, sizeof bits);
    memcpy(&exponent, &s, sizeof exponent);
    return isnan(p) ? p : attn_float_of(bits + (exponent << 23));
}

static inline int16_t attn_weight_code(float w)
{
    return isnan(w) ? 0 : (int16_t)lrintf(w);
}

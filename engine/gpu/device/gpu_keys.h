/* engine/gpu/device/gpu_keys.h: device code: scores of cached keys, for attention and the choice of
 * keys. The arithmetic is that of engine/cpu/isa/attn_terms.h, inlined. */
#pragma once

#include "engine/cpu/isa/attn_terms.h"
#include "engine/gpu/device/gpu_element.h"
#include "quant/types.h"

/* The scale and factor of a row, given each lane's largest magnitude. */
static inline float gpu_scale_of_warp(uint32_t largest, enum engine_attn_kind kind, float *factor)
{
    for (int mask = GPU_WARP / 2; mask; mask /= 2) {
        const uint32_t other = gpu_shuffle_xor(largest, mask);
        largest = other > largest ? other : largest;
    }
    return attn_scale(largest, kind, factor);
}

/* Writes the codes of a query, and returns its scale; all lanes of the warp call it. */
static inline float gpu_query_codes(int64_t d, const float *x, int16_t *codes)
{
    uint32_t largest = 0;
    float factor;
    for (int64_t i = gpu_lane(); i < d; i += GPU_WARP)
        largest = attn_magnitude_bits(x[i]) > largest ? attn_magnitude_bits(x[i]) : largest;
    const float scale = gpu_scale_of_warp(largest, ENGINE_ATTN_QUERY, &factor);
    for (int64_t i = gpu_lane(); i < d; i += GPU_WARP) codes[i] = attn_code(x[i], factor);
    return scale;
}

/* attn_score: without planes a word has the codes of two elements; all words of a sum are loaded at
 * once. */
QUANT_INLINE float gpu_key_score(int64_t d, const char *group, int64_t r, const int16_t *query)
{
#ifdef ENGINE_ATTN_PLANES
    return attn_score(d, group, r, query);
#else
    enum { WORDS = ENGINE_ATTN_DIMS / 2 };
    const uint32_t *key = (const uint32_t *)(const void *)engine_attn_codes(group) + r,
                   *q = (const uint32_t *)(const void *)query;
    const int n_words = (int)(d + 1) / 2;
    float acc = 0.0f;
    for (int first = 0; first < n_words; first += WORDS) {
        uint32_t words[WORDS];
        int32_t sum = 0;
        GPU_EACH (i, WORDS)
            words[i] = first + i < n_words ? key[(first + i) * ENGINE_ATTN_GROUP] : 0;
        GPU_EACH (i, WORDS) {
            const uint32_t x = first + i < n_words ? q[first + i] : 0;
            sum += (int16_t)words[i] * (int16_t)x + (int16_t)(words[i] >> 16) * (int16_t)(x >> 16);
        }
        acc = first ? acc + (float)sum : (float)sum;
    }
    return acc;
#endif
}

/* The dot of F32 weights (quant/quant.h), by one thread. */
QUANT_INLINE float gpu_float_score(int64_t d, const float *key, const float *query)
{
    float lane[16] = {0};
    for (int64_t first = 0; first < d; first += 16) {
        GPU_EACH (l, 16)
            if (first + l < d) lane[l] = fmaf(key[first + l], query[first + l], lane[l]);
    }
    GPU_UNROLL
    for (int h = 8; h; h /= 2) {
        GPU_EACH (l, h) lane[l] += lane[l + h];
    }
    return lane[0];
}

/* engine/attend.h: attention's arithmetic in integers, one table per instruction-set level.
 *
 * Keys, values, queries and weights become codes of 12 to 14 bits with one scale each, so that
 * products are sums of integers: exact, whatever the order, and two multiply-adds a lane where
 * floats have one. attend_scalar.c is the specification, the others give the same bits. Private to
 * attention, which owns memory, lists of cells and softmax. F32 caches are not for these.
 *
 * The codes of a row x[n] for the largest code C: m = largest |x| (compared as integers, so that
 * NaN > Inf > numbers); m not finite: scale = quiet NaN, all codes 0; m < 2^-100: scale 0, codes 0;
 * else scale = m / C, code = round-to-nearest-even(x * (C / m)).
 *   query: C = 8191, once per row. key: C = 4095, value: C = 4095, each row by itself.
 *   score = (acc * key scale) * query scale, acc = sum over blocks of 64 elements, ascending, of
 *   (float)(integer sum), the first one as it is.
 *   weights of ENGINE_ATTEND_SUB keys, counted from position 0: w = p * value scale, 0 where p is
 *   0; codes with C = 16383 and one scale for these keys.
 *   sums: o = fmaf((float)(integer sum over the keys), scale, o), ascending.
 * The largest codes keep every integer sum below 2^31. A query sees its own keys only: what the
 * others of a group of 16 hold never shows. */
#ifndef ENGINE_ATTEND_H
#define ENGINE_ATTEND_H

#include "quant/quant.h"

enum {
    ENGINE_ATTEND_GROUP = 16, /* keys side by side */
    ENGINE_ATTEND_SUB = 32,   /* keys that share a scale of weights */
    ENGINE_ATTEND_DIMS = 64,  /* elements of a score that are summed as integers */
    ENGINE_ATTEND_ROWS = 6,   /* at most so many queries at a time */
    ENGINE_ATTEND_QUERY_MAX = 8191,
    ENGINE_ATTEND_CACHE_MAX = 4095,
    ENGINE_ATTEND_WEIGHT_MAX = 16383
};

/* int16_t codes of a group of keys of d elements: [pair of elements][key][2]; of one query. */
static inline int64_t engine_attend_key_codes(int64_t d)
{
    return (d + 1) / 2 * 2 * ENGINE_ATTEND_GROUP;
}

/* Of a group of values: [pair of keys][element, up to a multiple of 16][2]. */
static inline int64_t engine_attend_value_codes(int64_t dv)
{
    return (dv + 15) / 16 * 16 * ENGINE_ATTEND_GROUP;
}

struct engine_attend {
    /* Codes of one query, an even number of them; returns the scale. */
    float (*query)(int64_t d, const float *x, int16_t *codes);
    /* Codes and scales of the 16 rows of a group: of F16 where `half`, else of floats. */
    void (*keys)(int64_t d, bool half, const char *const *rows, int16_t *codes, float *scale);
    void (*values)(int64_t dv, bool half, const char *const *rows, int16_t *codes, float *scale);
    /* out[r][j] for r < n_rows <= ENGINE_ATTEND_ROWS, j < 16 * n_groups. */
    void (*scores)(int64_t d, int64_t n_groups, const int16_t *keys, const float *key_scale,
                   int n_rows, const int16_t *const *query, const float *query_scale,
                   float *const *out);
    /* Codes [n_sub][32] and scales [n_sub] of one row's weights p[32 * n_sub]. */
    void (*weights)(int64_t n_sub, const float *p, const float *value_scale, int16_t *codes,
                    float *scale);
    /* o[r][i] += the weighted sum of values, for the codes and scales above. */
    void (*sums)(int64_t dv, int64_t n_sub, const int16_t *values, int n_rows,
                 const int16_t *const *codes, const float *const *scale, float *const *o);
};

/* The best table for the level. */
const struct engine_attend *engine_attend_table(enum quant_level level);

extern const struct engine_attend engine_attend_scalar;
#if defined(__x86_64__)
extern const struct engine_attend engine_attend_avx2;
extern const struct engine_attend engine_attend_avx512;
#endif

/* For all levels: the scale of codes up to `most` for a row whose largest magnitude has these bits,
 * and the factor that takes an element to its code (0: all codes are 0). */
float engine_attend_scale(uint32_t largest_bits, int most, float *factor);

#endif

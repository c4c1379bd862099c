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
 * others of a group of 16 hold never shows.
 *
 * Keys and values lie in groups of 16 rows, one after the other: the scales of the rows, then their
 * codes. A cache of codes (engine/graph.h) is made of such groups, and is read where it lies. */
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

/* int16_t codes of a group of keys of d elements: [pair of elements][key][2]. */
static inline int64_t engine_attend_key_codes(int64_t d)
{
    return (d + 1) / 2 * 2 * ENGINE_ATTEND_GROUP;
}

/* Of a group of values: [pair of keys][element, up to a multiple of 16][2]. */
static inline int64_t engine_attend_value_codes(int64_t dv)
{
    return (dv + 15) / 16 * 16 * ENGINE_ATTEND_GROUP;
}

/* Bytes of a group: float scale[16], int16_t codes[]. */
static inline int64_t engine_attend_key_bytes(int64_t d)
{
    return 4 * ENGINE_ATTEND_GROUP + 2 * engine_attend_key_codes(d);
}

static inline int64_t engine_attend_value_bytes(int64_t dv)
{
    return 4 * ENGINE_ATTEND_GROUP + 2 * engine_attend_value_codes(dv);
}

static inline float *engine_attend_scales(const char *group)
{
    return (float *)(void *)group;
}

static inline int16_t *engine_attend_codes(const char *group)
{
    return (int16_t *)(void *)(group + 4 * ENGINE_ATTEND_GROUP);
}

struct engine_attend {
    /* Codes up to `most` of one row, an even number of them; returns the scale. */
    float (*row)(int64_t d, const float *x, int most, int16_t *codes);
    /* A group of the 16 rows x[n][pad]. */
    void (*keys)(int64_t d, const float *x, int64_t pad, char *group);
    void (*values)(int64_t dv, const float *x, int64_t pad, char *group);
    /* out[r][j] for r < n_rows <= ENGINE_ATTEND_ROWS, j < 16 * n_groups. */
    void (*scores)(int64_t d, int64_t n_groups, const char *keys, int n_rows,
                   const int16_t *const *query, const float *query_scale, float *const *out);
    /* Codes [n_sub][32] and scales [n_sub] of one row's weights p[32 * n_sub] of these values. */
    void (*weights)(int64_t dv, int64_t n_sub, const char *values, const float *p, int16_t *codes,
                    float *scale);
    /* o[r][i] += the weighted sum of values, for the codes and scales above. */
    void (*sums)(int64_t dv, int64_t n_sub, const char *values, int n_rows,
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

/* Row `i` of a group, from codes in their order and their scale. */
void engine_attend_key_put(int64_t d, const int16_t *codes, float scale, char *group, int64_t i);
void engine_attend_value_put(int64_t dv, const int16_t *codes, float scale, char *group, int64_t i);
/* Row `from` of one group becomes row `i` of another. */
void engine_attend_key_copy(int64_t d, const char *source, int64_t from, char *group, int64_t i);
void engine_attend_value_copy(int64_t dv, const char *source, int64_t from, char *group, int64_t i);

#endif

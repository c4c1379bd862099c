/* engine/cpu/arm/attn_neon.c: integer attention for all levels of 64-bit ARM. See
 * engine/cpu/isa/attn.h.
 *
 * The pairs of codes of eight keys (elements) are divided into even and odd ones, which SMLAL
 * multiplies by a lane of the queries' (weights') codes: a lane of a sum is then a key (an
 * element). Groups are converted by the scalar functions, which are called once for each row. */
#include "engine/cpu/arm/kernels_arm.h"
#include <arm_neon.h>
#include <string.h>

#define INLINE static inline __attribute__((always_inline))

enum { GROUP = ENGINE_ATTN_GROUP, SUB = ENGINE_ATTN_SUB, ROWS = ENGINE_ATTN_ROWS };

static float row(int64_t d, const float *x, enum engine_attn_kind kind, int16_t *codes)
{
    return engine_attn_scalar.row(d, x, kind, codes);
}

static void keys(int64_t d, const float *x, int64_t pad, char *group)
{
    engine_attn_scalar.keys(d, x, pad, group);
}

static void values(int64_t dv, const float *x, int64_t pad, char *group)
{
    engine_attn_scalar.values(dv, x, pad, group);
}

static void offsets(int64_t dv, int64_t n_groups, const char *from, float *offset, float *inverse)
{
    engine_attn_scalar.offsets(dv, n_groups, from, offset, inverse);
}

/* ---- Products of pairs ---- */

/* Adds the products of eight pairs with lanes `lane` and lane + 1 of each of nr rows. */
INLINE void add_pair(int lane, const int16_t *pairs, const int16x8_t by[ROWS],
                     int32x4_t sum[ROWS][2], int nr)
{
    const int16x8x2_t of = vld2q_s16(pairs);
#define ADD(L)                                                                                     \
    case L:                                                                                        \
        EACH (r, nr) {                                                                             \
            sum[r][0] = vmlal_laneq_s16(sum[r][0], vget_low_s16(of.val[0]), by[r], L);             \
            sum[r][1] = vmlal_high_laneq_s16(sum[r][1], of.val[0], by[r], L);                      \
            sum[r][0] = vmlal_laneq_s16(sum[r][0], vget_low_s16(of.val[1]), by[r], L + 1);         \
            sum[r][1] = vmlal_high_laneq_s16(sum[r][1], of.val[1], by[r], L + 1);                  \
        }                                                                                          \
        break;
    switch (lane) {
        ADD(0)
        ADD(2)
        ADD(4)
        ADD(6)
    }
#undef ADD
}

/* ---- Scores ---- */

/* The integer sums of elements first .. end - 1 of eight keys; consecutive pairs of a key are 2 *
 * GROUP codes apart. */
INLINE void key_sums(int64_t first, int64_t end, const int16_t *key,
                     const struct engine_attn_tile *tile, int32x4_t sum[ROWS][2], int nr)
{
    int16x8_t by[ROWS];
    int64_t i = first;
    EACH (r, nr) sum[r][0] = sum[r][1] = vdupq_n_s32(0);
    for (; i + 8 <= end; i += 8) {
        EACH (r, nr) by[r] = vld1q_s16(tile->query[r] + i);
        EACH (p, 4) add_pair(2 * p, key + (i / 2 + p) * 2 * GROUP, by, sum, nr);
    }
    for (; i < end; i += 2) { /* queries are padded to an even number */
        EACH (r, nr) {
            int32_t pair;
            memcpy(&pair, tile->query[r] + i, sizeof pair);
            by[r] = vreinterpretq_s16_s32(vdupq_n_s32(pair));
        }
        add_pair(0, key + i * GROUP, by, sum, nr);
    }
}

/* Scores of eight keys from key j of the chunk on. */
INLINE void eight_keys(int64_t d, const char *group, int64_t j, const float *offset,
                       struct engine_attn_tile *tile, int nr)
{
    const int16_t *key = engine_attn_codes(group) + j % GROUP * 2;
    const float *scale = engine_attn_scales(group) + j % GROUP;
    float32x4_t acc[ROWS][2];
    EACH (r, nr) acc[r][0] = acc[r][1] = vdupq_n_f32(0.0f); /* + 0 is exact: no sum is -0 */
    for (int64_t first = 0; first < d; first += ENGINE_ATTN_DIMS) {
        const int64_t end = first + ENGINE_ATTN_DIMS < d ? first + ENGINE_ATTN_DIMS : d;
        int32x4_t sum[ROWS][2];
        key_sums(first, end, key, tile, sum, nr);
        EACH (r, nr)
            EACH (h, 2) acc[r][h] = vaddq_f32(acc[r][h], vcvtq_f32_s32(sum[r][h]));
    }
    EACH (r, nr)
        EACH (h, 2)
            vst1q_f32(tile->t[r] + j + 4 * h,
                      vfmaq_n_f32(vld1q_f32(offset + j + 4 * h),
                                  vmulq_f32(acc[r][h], vld1q_f32(scale + 4 * h)),
                                  tile->query_scale[r]));
}

INLINE void scores_of(int64_t d, int64_t first, int64_t end, const char *from, const float *offset,
                      struct engine_attn_tile *tile, int nr)
{
    struct engine_attn_prefetch prefetch = engine_attn_prefetch(tile, 0, end - first);
    for (int64_t g = first; g < end; g++) {
        const char *group = from + g * engine_attn_key_bytes(d);
        engine_attn_prefetch_step(tile, &prefetch, 1);
        for (int64_t j = g * GROUP; j < (g + 1) * GROUP; j += 8)
            eight_keys(d, group, j, offset, tile, nr);
    }
}

static void scores(int64_t d, int64_t first, int64_t end, const char *from, const float *offset,
                   struct engine_attn_tile *tile)
{
    ENGINE_ATTN_BY_ROWS(tile->n_rows, scores_of, d, first, end, from, offset, tile);
}

/* ---- Weights ---- */

INLINE float32x4_t larger(float32x4_t a, float32x4_t b)
{
    return vbslq_f32(vcgtq_f32(a, b), a, b);
}

/* Four keys from key j on that are in the range of row r. */
INLINE uint32x4_t in_range(const struct engine_attn_tile *tile, int64_t r, int64_t j)
{
    static const int32_t step[4] = {0, 1, 2, 3};
    const int64_t lo = tile->lo[r] > 0 ? tile->lo[r] : 0;
    const int64_t hi = tile->hi[r] < ENGINE_ATTN_KEYS ? tile->hi[r] : ENGINE_ATTN_KEYS;
    const int32x4_t at = vaddq_s32(vdupq_n_s32((int32_t)j), vld1q_s32(step));
    return vandq_u32(vcgeq_s32(at, vdupq_n_s32(lo < ENGINE_ATTN_KEYS ? (int32_t)lo : INT32_MAX)),
                     vcltq_s32(at, vdupq_n_s32(hi > 0 ? (int32_t)hi : 0)));
}

/* The largest t of a sub-block in the range, at least -ENGINE_ATTN_LIMIT. */
INLINE float largest(const struct engine_attn_tile *tile, int64_t r, int64_t s)
{
    const float32x4_t least = vdupq_n_f32(-ENGINE_ATTN_LIMIT);
    float32x4_t max[2] = {least, least};
    EACH (i, SUB / 4) {
        const float32x4_t t = vld1q_f32(tile->t[r] + s * SUB + 4 * i);
        const float32x4_t v = vbslq_f32(in_range(tile, r, s * SUB + 4 * i), t, least);
        max[i % 2] = larger(v, max[i % 2]);
    }
    return vmaxvq_f32(larger(max[0], max[1])); /* no NaN */
}

/* power_of of attn_scalar.c. */
INLINE float32x4_t power_of(float32x4_t t, float c)
{
    static const float power[] = ENGINE_ATTN_POWERS;
    const float32x4_t shift = vdupq_n_f32(engine_attn_shift(c));
    const float32x4_t x = larger(vdupq_n_f32(c - 126.0f), t);
    const float32x4_t s = vaddq_f32(x, shift), r = vsubq_f32(x, vsubq_f32(s, shift));
    float32x4_t p = vdupq_n_f32(power[0]);
    EACH (i, 4) p = vfmaq_f32(vdupq_n_f32(power[i + 1]), p, r);
    const uint32x4_t exponent = vshlq_n_u32(vreinterpretq_u32_f32(s), 23);
    const float32x4_t w = vreinterpretq_f32_u32(vaddq_u32(vreinterpretq_u32_f32(p), exponent));
    return vbslq_f32(vceqq_f32(p, p), w, p);
}

/* Codes of sub-block s, whose weights are relative to c, and its lanes. */
INLINE void sub_weights(const float *inverse, struct engine_attn_tile *tile, int64_t r, int64_t s,
                        float c, float32x4_t lane[4])
{
    EACH (i, 4) lane[i] = vdupq_n_f32(0.0f);
    EACH (i, SUB / 4) {
        const int64_t j = s * SUB + 4 * i;
        const uint32x4_t in = in_range(tile, r, j);
        const float32x4_t power = power_of(vld1q_f32(tile->t[r] + j), c);
        const float32x4_t w = vbslq_f32(in, power, vdupq_n_f32(0.0f));
        const float32x4_t sum = vfmaq_f32(lane[i % 4], w, vld1q_f32(inverse + j));
        vst1_s16(tile->codes[r] + j, vmovn_s32(vcvtnq_s32_f32(w))); /* NaN: 0 */
        lane[i % 4] = vbslq_f32(in, sum, lane[i % 4]);
    }
}

static void weights(int64_t first, int64_t end, const float *inverse, struct engine_attn_tile *tile)
{
    for (int64_t r = 0; r < tile->n_rows; r++) {
        float c[ENGINE_ATTN_SUBS], max_c = -ENGINE_ATTN_LIMIT;
        float32x4_t total[4], lane[4];
        for (int64_t s = first; s < end; s++) {
            c[s] = __builtin_ceilf(largest(tile, r, s));
            max_c = c[s] > max_c ? c[s] : max_c;
        }
        EACH (i, 4) total[i] = vdupq_n_f32(0.0f);
        for (int64_t s = first; s < end; s++) {
            engine_attn_weights_prefetch(tile, r, s);
            tile->scale[r][s] = engine_attn_exp2(c[s] - max_c);
            if (c[s] > ENGINE_ATTN_LIMIT) c[s] = __builtin_nanf("");
            sub_weights(inverse, tile, r, s, c[s], lane);
            EACH (i, 4) total[i] = vfmaq_n_f32(total[i], lane[i], tile->scale[r][s]);
        }
        tile->base[r] = max_c - ENGINE_ATTN_WEIGHT_BITS;
        const float32x4_t four =
            vaddq_f32(vaddq_f32(total[0], total[2]), vaddq_f32(total[1], total[3]));
        tile->sum[r] = vpadds_f32(vadd_f32(vget_low_f32(four), vget_high_f32(four)));
    }
}

/* ---- Sums ---- */

/* Adds the sub-block's sums of elements i .. i + 7 to o. */
INLINE void eight_elements(int64_t dv, int64_t i, int64_t s, const char *from,
                           const struct engine_attn_tile *tile, float *const *o, int nr)
{
    const int64_t pad = (dv + 15) / 16 * 16, n = dv - i < 8 ? dv - i : 8;
    int32x4_t sum[ROWS][2];
    EACH (r, nr) sum[r][0] = sum[r][1] = vdupq_n_s32(0);
    for (int64_t j = s * SUB; j < (s + 1) * SUB; j += 8) {
        const int16_t *v = engine_attn_codes(from + j / GROUP * engine_attn_value_bytes(dv));
        int16x8_t by[ROWS];
        EACH (r, nr) by[r] = vld1q_s16(tile->codes[r] + j);
        EACH (p, 4) add_pair(2 * p, v + ((j % GROUP / 2 + p) * pad + i) * 2, by, sum, nr);
    }
    EACH (r, nr) {
        float eight[8] = {0};
        float *to = n == 8 ? o[r] + i : eight;
        if (n < 8) memcpy(eight, o[r] + i, (size_t)n * sizeof *eight);
        EACH (h, 2)
            vst1q_f32(to + 4 * h, vfmaq_n_f32(vld1q_f32(to + 4 * h), vcvtq_f32_s32(sum[r][h]),
                                              tile->scale[r][s]));
        if (n < 8) memcpy(o[r] + i, eight, (size_t)n * sizeof *eight);
    }
}

INLINE void sums_of(int64_t dv, int64_t first, int64_t end, const char *from,
                    const struct engine_attn_tile *tile, float *const *o, int nr)
{
    struct engine_attn_prefetch prefetch =
        engine_attn_prefetch(tile, engine_attn_weights_bytes(tile), end - first);
    for (int64_t s = first; s < end; s++) {
        engine_attn_prefetch_step(tile, &prefetch, 1);
        for (int64_t i = 0; i < dv; i += 8) eight_elements(dv, i, s, from, tile, o, nr);
    }
}

static void sums(int64_t dv, int64_t first, int64_t end, const char *from,
                 const struct engine_attn_tile *tile, float *const *o)
{
    ENGINE_ATTN_BY_ROWS(tile->n_rows, sums_of, dv, first, end, from, tile, o);
}

const struct engine_attn engine_attn_neon = {
    .row = row,
    .keys = keys,
    .values = values,
    .offsets = offsets,
    .scores = scores,
    .weights = weights,
    .sums = sums,
};

/* engine/cpu/arm/attn_neon.c: codes of a row and weights of integer attention for all levels of
 * 64-bit ARM, and the kernels that are compiled for NEON. See engine/cpu/isa/attn.h. */
#define ARM_ATTN engine_attn_neon
#include "engine/cpu/arm/attn_arm.inc"

enum { SUB = ENGINE_ATTN_SUB };

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

/* Elements after the last four are computed as four with zeros; codes are padded only to an even
 * number. FCVTNS of NaN, which a factor of 0 makes of an infinite element, gives 0. */
float engine_attn_row_neon(int64_t d, const float *x, enum engine_attn_kind kind, int16_t *codes)
{
    float last[4] = {0}, factor;
    int16_t last_codes[4];
    const int64_t whole = d - d % 4;
    memcpy(last, x + whole, (size_t)(d - whole) * sizeof *x);
    uint32x4_t most = vreinterpretq_u32_f32(vabsq_f32(vld1q_f32(last)));
    for (int64_t i = 0; i < whole; i += 4)
        most = vmaxq_u32(most, vreinterpretq_u32_f32(vabsq_f32(vld1q_f32(x + i))));
    const float scale = engine_attn_scale(vmaxvq_u32(most), kind, &factor);
    for (int64_t i = 0; i < whole; i += 4)
        vst1_s16(codes + i, vmovn_s32(vcvtnq_s32_f32(vmulq_n_f32(vld1q_f32(x + i), factor))));
    vst1_s16(last_codes, vmovn_s32(vcvtnq_s32_f32(vmulq_n_f32(vld1q_f32(last), factor))));
    memcpy(codes + whole, last_codes, (size_t)(d - whole + d % 2) * sizeof *codes);
    return scale;
}

void engine_attn_weights_neon(int64_t first, int64_t end, const float *inverse,
                              struct engine_attn_tile *tile)
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

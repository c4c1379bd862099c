/* engine/cpu/arm/vec_neon.c: the sixteen-wide operations of vec_scalar.c as four NEON registers.
 *
 * Results have the same bits: maxima and minima are comparisons and selections, because FMAX and
 * FMIN have other rules for NaN and zeros. Called only through the table. */
#include "engine/cpu/arm/kernels_arm.h"
#include <arm_neon.h>
#include <string.h>

#define VEC_FN    static inline __attribute__((always_inline))
#define VEC_ENTRY static

typedef struct {
    float32x4_t q[4]; /* lanes 4i .. 4i + 3 */
} v16;
typedef struct {
    uint32x4_t q[4]; /* all ones or all zeros in each lane */
} m16;

VEC_FN uint32x4_t bits_of(float32x4_t x)
{
    return vreinterpretq_u32_f32(x);
}

VEC_FN float32x4_t float_of(uint32x4_t x)
{
    return vreinterpretq_f32_u32(x);
}

/* ---- Memory ---- */

VEC_FN v16 v_set(float x)
{
    v16 r;
    EACH (i, 4) r.q[i] = vdupq_n_f32(x);
    return r;
}

VEC_FN v16 v_load(const float *p)
{
    v16 r;
    EACH (i, 4) r.q[i] = vld1q_f32(p + 4 * i);
    return r;
}

VEC_FN v16 v_load_n(const float *p, int n)
{
    float lane[16] = {0};
    memcpy(lane, p, (size_t)n * sizeof *p);
    return v_load(lane);
}

VEC_FN v16 v_load_half(const uint16_t *p)
{
    v16 r;
    EACH (i, 4) r.q[i] = vcvt_f32_f16(vreinterpret_f16_u16(vld1_u16(p + 4 * i)));
    return r;
}

VEC_FN v16 v_load_half_n(const uint16_t *p, int n)
{
    uint16_t lane[16] = {0};
    memcpy(lane, p, (size_t)n * sizeof *p);
    return v_load_half(lane);
}

VEC_FN void v_store(float *p, v16 x)
{
    EACH (i, 4) vst1q_f32(p + 4 * i, x.q[i]);
}

VEC_FN void v_store_n(float *p, v16 x, int n)
{
    float lane[16];
    v_store(lane, x);
    memcpy(p, lane, (size_t)n * sizeof *p);
}

VEC_FN void v_load_pairs(const float *p, v16 *a, v16 *b)
{
    EACH (i, 4) {
        const float32x4x2_t pairs = vld2q_f32(p + 8 * i);
        a->q[i] = pairs.val[0];
        b->q[i] = pairs.val[1];
    }
}

VEC_FN void v_store_pairs(float *p, v16 a, v16 b)
{
    EACH (i, 4) vst2q_f32(p + 8 * i, ((float32x4x2_t){{a.q[i], b.q[i]}}));
}

/* ---- Arithmetic ---- */

#define V_BINARY(name)                                                                             \
    VEC_FN v16 v_##name(v16 a, v16 b)                                                              \
    {                                                                                              \
        EACH (i, 4) a.q[i] = v##name##q_f32(a.q[i], b.q[i]);                                       \
        return a;                                                                                  \
    }
V_BINARY(add)
V_BINARY(sub)
V_BINARY(mul)
V_BINARY(div)

VEC_FN v16 v_sqrt(v16 a)
{
    EACH (i, 4) a.q[i] = vsqrtq_f32(a.q[i]);
    return a;
}

VEC_FN v16 v_fma(v16 a, v16 b, v16 c)
{
    EACH (i, 4) c.q[i] = vfmaq_f32(c.q[i], a.q[i], b.q[i]);
    return c;
}

VEC_FN float32x4_t larger(float32x4_t a, float32x4_t b)
{
    return vbslq_f32(vcgtq_f32(a, b), a, b);
}

VEC_FN v16 v_max(v16 a, v16 b)
{
    EACH (i, 4) a.q[i] = larger(a.q[i], b.q[i]);
    return a;
}

VEC_FN v16 v_min(v16 a, v16 b)
{
    EACH (i, 4) a.q[i] = vbslq_f32(vcltq_f32(a.q[i], b.q[i]), a.q[i], b.q[i]);
    return a;
}

VEC_FN m16 v_lt(v16 a, v16 b)
{
    m16 r;
    EACH (i, 4) r.q[i] = vcltq_f32(a.q[i], b.q[i]);
    return r;
}

VEC_FN v16 v_pick(m16 m, v16 yes, v16 no)
{
    EACH (i, 4) yes.q[i] = vbslq_f32(m.q[i], yes.q[i], no.q[i]);
    return yes;
}

/* ---- Floats as 32-bit integers ---- */

VEC_FN v16 v_and_bits(v16 a, uint32_t bits)
{
    EACH (i, 4) a.q[i] = float_of(vandq_u32(bits_of(a.q[i]), vdupq_n_u32(bits)));
    return a;
}

VEC_FN v16 v_xor_bits(v16 a, uint32_t bits)
{
    EACH (i, 4) a.q[i] = float_of(veorq_u32(bits_of(a.q[i]), vdupq_n_u32(bits)));
    return a;
}

VEC_FN v16 v_or(v16 a, v16 b)
{
    EACH (i, 4) a.q[i] = float_of(vorrq_u32(bits_of(a.q[i]), bits_of(b.q[i])));
    return a;
}

VEC_FN v16 v_add_bits(v16 a, v16 b)
{
    EACH (i, 4) a.q[i] = float_of(vaddq_u32(bits_of(a.q[i]), bits_of(b.q[i])));
    return a;
}

VEC_FN v16 v_shl_bits(v16 a, int n)
{
    EACH (i, 4) a.q[i] = float_of(vshlq_u32(bits_of(a.q[i]), vdupq_n_s32(n)));
    return a;
}

/* ---- Trees ---- */

VEC_FN float v_sum_tree(v16 a)
{
    const float32x4_t x4 = vaddq_f32(vaddq_f32(a.q[0], a.q[2]), vaddq_f32(a.q[1], a.q[3]));
    return vpadds_f32(vadd_f32(vget_low_f32(x4), vget_high_f32(x4)));
}

/* The lower lane is the second operand, which is kept unless the first is larger. */
VEC_FN float v_max_tree(v16 a)
{
    const float32x4_t x4 = larger(larger(a.q[3], a.q[1]), larger(a.q[2], a.q[0]));
    const float32x4_t x2 = larger(vextq_f32(x4, x4, 2), x4);
    return vgetq_lane_f32(larger(vextq_f32(x2, x2, 1), x2), 0);
}

#include "engine/cpu/isa/vec_kernels.inc"

void engine_vec_fill_neon(struct engine_vec *vec)
{
    vec_fill(vec);
}

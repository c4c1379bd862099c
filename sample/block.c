/* sample/block.c: arithmetic on blocks of 64 logits. See block.h.
 *
 * The functions are written once, as loops over lanes, and compiled for each level: the compiler
 * vectorizes them. Only the maxima, which every call needs of the whole vocabulary, are written
 * with vectors. */
#include "sample/block.h"
#include <float.h>
#include <math.h>
#include <string.h>

#define INLINE static inline __attribute__((always_inline))

enum { LANES = 16 };

/* exp(d) for d <= 0: d = n ln(2)/16 + f with |f| <= h = ln(2)/32, so exp(d) is 2^(n/16) times 1 +
 * (1 + h^2/8) f + f^2/2, a polynomial whose error is at most h^3/24 = 4e-7. Adding `rounder` rounds
 * d * 16 log2(e) to n, which is then in the low bits; the product of n and ln(2)/16 is exact inside
 * the fused operation. */
static const float rounder = 0x1.8p23f, sixteenths = 0x1.715476p+4f,
                   minus_sixteenth = -0x1.62e430p-5f, slope = 0x1.0003d8p+0f, lowest = -87.0f;
/* Constants of adaptive-p. */
static const float steepness = 1.0f / 0.3f, minus_ten = -10.0f;
/* The bits of 2^(j/16), minus the contribution of j to n << 19. */
static const uint32_t power_bits[16] = {0x3f800000,
                                        0x3f85aac3 - 0x080000,
                                        0x3f8b95c2 - 0x100000,
                                        0x3f91c3d3 - 0x180000,
                                        0x3f9837f0 - 0x200000,
                                        0x3f9ef532 - 0x280000,
                                        0x3fa5fed7 - 0x300000,
                                        0x3fad583f - 0x380000,
                                        0x3fb504f3 - 0x400000,
                                        0x3fbd08a4 - 0x480000,
                                        0x3fc5672a - 0x500000,
                                        0x3fce248c - 0x580000,
                                        0x3fd744fd - 0x600000,
                                        0x3fe0ccdf - 0x680000,
                                        0x3feac0c7 - 0x700000,
                                        0x3ff5257d - 0x780000};

void sample_block_read(float *to, const float *from, uint32_t n, uint64_t allowed)
{
    for (uint32_t i = 0; i < n; i++) {
        const float x = from[i] >= -FLT_MAX ? from[i] : -INFINITY;
        to[i] = x > FLT_MAX ? FLT_MAX : x;
    }
    for (uint32_t i = n; i < SAMPLE_BLOCK; i++) to[i] = -INFINITY;
    for (uint64_t holes = ~allowed; holes; holes &= holes - 1)
        to[__builtin_ctzll(holes)] = -INFINITY;
}

/* ---- Comparisons, with eight lanes in a vector ---- */

typedef float floats __attribute__((vector_size(32), aligned(4)));
typedef int32_t ints __attribute__((vector_size(32)));
#define SELECT(is, a, b) ((floats)(((is) & (ints)(a)) | (~(is) & (ints)(b))))
#define BITS             ((ints){1, 2, 4, 8, 16, 32, 64, 128})
#define ALL(x)           ((floats){x, x, x, x, x, x, x, x})

INLINE float larger(float a, float b)
{
    return a > b ? a : b;
}

/* A comparison is false for NaN. */
INLINE float bound(const float *x, uint64_t allowed)
{
    floats max[2] = {ALL(-INFINITY), ALL(-INFINITY)};
    for (int i = 0; i < SAMPLE_BLOCK; i += 8) {
        floats v = *(const floats *)(x + i);
        if (allowed != UINT64_MAX)
            v = SELECT(((int32_t)(allowed >> i & 255) & BITS) == BITS, v, ALL(-INFINITY));
        max[i / 8 % 2] = SELECT(v > max[i / 8 % 2], v, max[i / 8 % 2]);
    }
    const floats m = SELECT(max[0] > max[1], max[0], max[1]);
    const float a = larger(larger(m[0], m[4]), larger(m[2], m[6]));
    const float b = larger(larger(m[1], m[5]), larger(m[3], m[7]));
    return larger(a, b) > FLT_MAX ? FLT_MAX : larger(a, b);
}

INLINE void bounds(const float *x, const uint64_t *allowed, uint32_t n, float *to)
{
    for (uint32_t b = 0; b < n; b++, x += SAMPLE_BLOCK)
        if (!allowed || allowed[b] == UINT64_MAX)
            to[b] = bound(x, UINT64_MAX);
        else
            to[b] = allowed[b] ? bound(x, allowed[b]) : -INFINITY;
}

INLINE uint64_t reach(const float *x, float threshold)
{
    ints bits[2] = {{0}, {0}}; /* lane l of a half has the bits of its elements l + 8 k */
    for (int i = 0; i < SAMPLE_BLOCK; i += 8)
        bits[i / 32] |= (*(const floats *)(x + i) >= ALL(threshold)) & (BITS << i % 32);
    uint32_t half[2] = {0, 0};
    for (int l = 0; l < 16; l++) half[l / 8] |= (uint32_t)bits[l / 8][l % 8];
    return half[0] | (uint64_t)half[1] << 32;
}

/* ---- Sums ---- */

/* Returns the weight exp((x - top) * scale); 0 if the distance is -87 or less. */
INLINE float weight_of(float x, float top, float scale, float *distance)
{
    const float d = *distance = (x - top) * scale;
    const float t = fmaf(d, sixteenths, rounder), f = fmaf(t - rounder, minus_sixteenth, d);
    const float p = fmaf(fmaf(f, 0.5f, slope), f, 1.0f);
    uint32_t n;
    memcpy(&n, &t, sizeof n);
    n = power_bits[n & 15] + (n << 19);
    float power;
    memcpy(&power, &n, sizeof power);
    const float weight = p * power; /* computed first: the compiler then needs no branch */
    return d > lowest ? weight : 0.0f;
}

INLINE void weigh(const float *x, float top, float scale, float *weight)
{
    float d;
    for (int i = 0; i < SAMPLE_BLOCK; i++) weight[i] = weight_of(x[i], top, scale, &d);
}

INLINE float fold(float lane[LANES])
{
    for (int half = LANES / 2; half > 0; half /= 2)
        for (int l = 0; l < half; l++) lane[l] += lane[l + half];
    return lane[0];
}

INLINE struct sample_block_sums sum_up(const float *x, float top, float scale,
                                       enum sample_block_kind kind)
{
    float sum[LANES] = {0}, second[LANES] = {0};
    uint32_t n[LANES] = {0};
    for (int i = 0; i < SAMPLE_BLOCK; i += LANES)
        for (int l = 0; l < LANES; l++) {
            float d;
            const float w = weight_of(x[i + l], top, scale, &d);
            if (kind == SAMPLE_MOMENTS) {
                d = x[i + l] > -INFINITY ? d : 0.0f;
                sum[l] += d;
                second[l] = fmaf(d, d, second[l]);
            } else {
                d = w > 0.0f ? d : 0.0f;
                sum[l] += w;
                second[l] += w * d;
            }
            n[l] += x[i + l] > -INFINITY;
        }
    if (kind == SAMPLE_WEIGHTS) return (struct sample_block_sums){.sum = fold(sum)};
    for (int l = 1; l < LANES; l++) n[0] += n[l];
    return (struct sample_block_sums){fold(sum), fold(second), n[0]};
}

INLINE float shape(const float *x, const struct sample_block_shape *s, float *weight)
{
    float sum[LANES] = {0}, unused;
    for (int i = 0; i < SAMPLE_BLOCK; i += LANES)
        for (int l = 0; l < LANES; l++) {
            const float p = weight_of(x[i + l], s->top, s->scale, &unused) * s->inverse;
            const float d = fabsf(p - s->target) * steepness;
            const float w = weight_of(d * d * minus_ten / (1.0f + d), 0.0f, 1.0f, &unused);
            weight[i + l] = x[i + l] > -INFINITY ? w : 0.0f;
            sum[l] += weight[i + l];
        }
    return fold(sum);
}

/* ---- Levels ---- */

#define SUM(level, target, name, kind)                                                             \
    target static struct sample_block_sums name##_##level(const float *x, float top, float scale)  \
    {                                                                                              \
        return sum_up(x, top, scale, kind);                                                        \
    }
#define KERNELS(level, target)                                                                     \
    target static void bounds_##level(const float *x, const uint64_t *allowed, uint32_t n,         \
                                      float *to)                                                   \
    {                                                                                              \
        bounds(x, allowed, n, to);                                                                 \
    }                                                                                              \
    target static uint64_t reach_##level(const float *x, float threshold)                          \
    {                                                                                              \
        return reach(x, threshold);                                                                \
    }                                                                                              \
    target static void weigh_##level(const float *x, float top, float scale, float *weight)        \
    {                                                                                              \
        weigh(x, top, scale, weight);                                                              \
    }                                                                                              \
    SUM(level, target, weights, SAMPLE_WEIGHTS)                                                    \
    SUM(level, target, entropy, SAMPLE_ENTROPY)                                                    \
    SUM(level, target, moments, SAMPLE_MOMENTS)                                                    \
    target static float shape_##level(const float *x, const struct sample_block_shape *s,          \
                                      float *weight)                                               \
    {                                                                                              \
        return shape(x, s, weight);                                                                \
    }                                                                                              \
    static const struct sample_block_kernels kernels_##level = {                                   \
        bounds_##level,                                                                            \
        reach_##level,                                                                             \
        weigh_##level,                                                                             \
        {weights_##level, entropy_##level, moments_##level},                                       \
        shape_##level}

KERNELS(scalar, );
#if defined(__x86_64__)
KERNELS(avx2, __attribute__((target("avx2,fma"))));
KERNELS(avx512, __attribute__((target("avx512f,avx512bw,avx512dq,avx512vl,avx2,fma"))));
#endif

const struct sample_block_kernels *sample_block_kernels(enum cpu_level level)
{
    static const void *const rows[CPU_LEVEL_COUNT] = {
        [CPU_SCALAR] = &kernels_scalar,
#if defined(__x86_64__)
        [CPU_AVX2] = &kernels_avx2,
        [CPU_AVX512] = &kernels_avx512,
#endif
    };
    return cpu_row(level, rows);
}

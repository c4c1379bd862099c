/* sample/block.c: arithmetic on blocks of 64 logits. See block.h. */
#include "sample/block.h"
#include "quant/quant.h"
#include <float.h>
#include <math.h>
#include <stdint.h>
#include <string.h>

enum { LANES = 16 };

#define INLINE static inline __attribute__((always_inline))
/* A tree stays one only where the compiler does not mix it with what feeds it. */
#define APART __attribute__((noinline))

static inline float larger(float a, float b)
{
    return a > b ? a : b;
}

/* A maximum has no rounding, so its order is free. */
float sample_block_largest(const float *x)
{
    float lane[LANES];
    for (int l = 0; l < LANES; l++)
        lane[l] = larger(larger(x[l], x[l + LANES]), larger(x[l + 2 * LANES], x[l + 3 * LANES]));
    for (int l = 0; l < 8; l++) lane[l] = larger(lane[l], lane[l + 8]);
    for (int l = 0; l < 4; l++) lane[l] = larger(lane[l], lane[l + 4]);
    return larger(larger(lane[0], lane[1]), larger(lane[2], lane[3]));
}

/* Infinity is rare and gets its own look. */
float sample_block_copy(float *restrict to, const float *restrict from)
{
    for (int i = 0; i < SAMPLE_BLOCK; i++) to[i] = from[i] > -INFINITY ? from[i] : -INFINITY;
    const float bound = sample_block_largest(to);
    if (!(bound > FLT_MAX)) return bound;
    for (int i = 0; i < SAMPLE_BLOCK; i++) to[i] = to[i] > FLT_MAX ? FLT_MAX : to[i];
    return FLT_MAX;
}

static APART float sum_of(const float *x)
{
    float lane[LANES];
    for (int l = 0; l < LANES; l++)
        lane[l] = (x[l] + x[l + LANES]) + (x[l + 2 * LANES] + x[l + 3 * LANES]);
    for (int l = 0; l < 8; l++) lane[l] += lane[l + 8];
    for (int l = 0; l < 4; l++) lane[l] += lane[l + 4];
    return (lane[0] + lane[1]) + (lane[2] + lane[3]);
}

/* exp(d) for d <= 0 as in exp.c, in float: the power of two comes from the low bits of d * log2(e)
 * rounded by a large addend. */
INLINE void weigh(const float *restrict x, float best, float scale, float *restrict weight,
                  float *restrict moment)
{
    const float round = 0x1.8p23f;
    for (int i = 0; i < SAMPLE_BLOCK; i++) {
        const float exact = (x[i] - best) * scale, d = exact > -87.0f ? exact : -87.0f;
        const float t = d * 0x1.715476p+0f + round, n = t - round;
        const float f = (d - n * 0x1.62ep-1f) - n * 0x1.0bfbe8p-15f;
        float sum = 1.0f / 5040;
        sum = sum * f + 1.0f / 720;
        sum = sum * f + 1.0f / 120;
        sum = sum * f + 1.0f / 24;
        sum = sum * f + 1.0f / 6;
        sum = sum * f + 0.5f;
        sum = sum * f + 1.0f;
        sum = sum * f + 1.0f;
        uint32_t bits;
        memcpy(&bits, &t, sizeof bits);
        bits = (bits + 127) << 23;
        float power;
        memcpy(&power, &bits, sizeof power);
        const float w = exact > -87.0f ? sum * power : 0.0f;
        weight[i] = w;
        moment[i] = w * d;
    }
}

INLINE struct sample_block_moments moments(const float *x, double best)
{
    enum { WIDE = 8 };
    double n[WIDE] = {0}, sum[WIDE] = {0}, squares[WIDE] = {0};
    for (int i = 0; i < SAMPLE_BLOCK; i += WIDE)
        for (int l = 0; l < WIDE; l++) {
            const double d = x[i + l] > -INFINITY ? (double)x[i + l] - best : 0.0;
            n[l] += x[i + l] > -INFINITY ? 1.0 : 0.0;
            sum[l] += d;
            squares[l] += d * d;
        }
    for (int half = WIDE / 2; half > 0; half /= 2)
        for (int l = 0; l < half; l++) {
            n[l] += n[l + half];
            sum[l] += sum[l + half];
            squares[l] += squares[l + half];
        }
    return (struct sample_block_moments){n[0], sum[0], squares[0]};
}

static struct sample_block_sums weigh_plain(const float *x, float best, float scale, float *weight)
{
    float moment[SAMPLE_BLOCK];
    weigh(x, best, scale, weight, moment);
    return (struct sample_block_sums){sum_of(weight), sum_of(moment)};
}

static struct sample_block_moments moments_plain(const float *x, double best)
{
    return moments(x, best);
}

static const struct sample_block_kernels plain = {weigh_plain, moments_plain};

#if defined(__x86_64__)
__attribute__((target("avx2"))) static struct sample_block_sums
weigh_avx2(const float *x, float best, float scale, float *weight)
{
    float moment[SAMPLE_BLOCK];
    weigh(x, best, scale, weight, moment);
    __builtin_ia32_vzeroupper(); /* the sums are SSE code */
    return (struct sample_block_sums){sum_of(weight), sum_of(moment)};
}

__attribute__((target("avx2"))) static struct sample_block_moments moments_avx2(const float *x,
                                                                                double best)
{
    const struct sample_block_moments m = moments(x, best);
    __builtin_ia32_vzeroupper();
    return m;
}

static const struct sample_block_kernels avx2 = {weigh_avx2, moments_avx2};
#endif

const struct sample_block_kernels *sample_block_kernels(bool any)
{
#if defined(__x86_64__)
    if (!any && quant_level_best() >= QUANT_AVX2) return &avx2;
#endif
    (void)any;
    return &plain;
}

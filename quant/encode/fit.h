/* quant/encode/fit.h: private to quant/: the search for scales and codes when weights are encoded.
 *
 * Least squares, elements weighted by (root mean square of the super-block) + |x|: large weights do
 * more harm when they are wrong, but small ones are many. Plain float arithmetic in a fixed order,
 * so the bytes do not depend on the machine. Super-blocks (or blocks) with an element that is not
 * finite get d = NaN and codes 0, so that it shows. */
#ifndef QUANT_ENCODE_FIT_H
#define QUANT_ENCODE_FIT_H

#include "quant/codebook.h"
#include "quant/types.h"
#include <math.h>

enum { FIT_LEN = 256, QUANT_FIT_AT_ONCE = 512, FIT_NAN = 0x7e00 };

/* The values of a code before it is scaled: the integers low .. high, or a codebook of 16 in
 * ascending order (low and high then are its ends). Code 0 is low. */
struct quant_fit_grid {
    int low, high;
    const int8_t *codebook; /* NULL: integers */
    /* Scales that are tried: those that put the largest element at high + first + i * step or at
     * low - first - i * step, i < n_trials. */
    int n_trials;
    float first, step;
};

static const struct quant_fit_grid quant_fit_iq4 = {.low = -127,
                                                    .high = 113,
                                                    .codebook = quant_codebook_iq4,
                                                    .n_trials = 6,
                                                    .first = -9.0f,
                                                    .step = 4.0f};

/* Codes 0 .. max_code with a minimum. */
struct quant_fit_min_form {
    int max_code, max_scale; /* of the scales of sub-blocks */
    bool bounded;            /* x ~ scale * code - min, with min not negative */
    /* Scales that are tried: what the elements span is max_code + more steps, and code 0 is `low`
     * steps (of max_code) above the least. */
    int n_trials;
    const struct quant_fit_trial {
        float low, more;
    } * trial;
};

static const struct quant_fit_trial quant_fit_bounded[19] = {
    {0, -0.9f}, {0, -0.8f}, {0, -0.7f}, {0, -0.6f}, {0, -0.5f}, {0, -0.4f}, {0, -0.3f},
    {0, -0.2f}, {0, -0.1f}, {0, 0},     {0, 0.1f},  {0, 0.2f},  {0, 0.3f},  {0, 0.4f},
    {0, 0.5f},  {0, 0.6f},  {0, 0.7f},  {0, 0.8f},  {0, 0.9f}};
/* Ends of the range: those of the data, or inside by up to a step and a half. Then fewer codes than
 * there are: elements that lie on a grid already, as those of a file of four or five bits do, are
 * met exactly by a multiple of their own codes. */
static const struct quant_fit_trial quant_fit_free[15] = {
    {0, 0},         {0, 0.75f},   {0, 1.5f},     {0.75f, 0.75f}, {0.75f, 1.5f},
    {0.75f, 2.25f}, {1.5f, 1.5f}, {1.5f, 2.25f}, {1.5f, 3},      {0, -1},
    {0, -2},        {0, -3},      {0, -4},       {0, -5},        {0, -6}};
#define QUANT_FIT_BOUNDED .bounded = true, .n_trials = 19, .trial = quant_fit_bounded
#define QUANT_FIT_FREE    .n_trials = 15, .trial = quant_fit_free

/* A copy of n elements, and their weights as described above, times importance[n] where that is not
 * NULL; false when an element is not finite.
 * What no scale of half precision can reach is cut down, so that no sum overflows. */
bool quant_fit_prepare(int n, const float *in, const float *importance, float *x, float *w);

/* Sums are made in so many lanes, so that a compiler can use vectors without changing the result.
 */
enum { QUANT_FIT_LANES = 8 };

static inline float quant_fit_sum(const float lane[QUANT_FIT_LANES])
{
    return ((lane[0] + lane[4]) + (lane[2] + lane[6])) +
           ((lane[1] + lane[5]) + (lane[3] + lane[7]));
}

#define QUANT_FIT_SHIFT 0x1.8p23f /* floats of this size are whole: adding it rounds, to even */

/* The integer nearest to v, from low to high, of at most 2^22 in size; NaN gives low. */
static inline float quant_fit_integer(float v, float low, float high)
{
    v = v > low ? v : low;
    v = v < high ? v : high;
    return (v + QUANT_FIT_SHIFT) - QUANT_FIT_SHIFT;
}

/* A scale that half precision can hold: above its range, the largest. */
uint16_t quant_fit_half(float scale);

/* 1 / scale, or 0 where that has no finite value. */
static inline float quant_fit_inverse(float scale)
{
    const float inverse = 1.0f / scale;
    return fabsf(inverse) < INFINITY ? inverse : 0.0f;
}

/* w[n] in proportion to importance[n], the largest 1 and none 0; all 1 where that is NULL, or has
 * no finite value above 0. */
QUANT_INLINE void quant_fit_weights(int n, const float *importance, float *w)
{
    const float floor = 1e-6f;
    int32_t bits = 0; /* of the largest: numbers above 0 are in the order of their bits */
    for (int i = 0; importance && i < n; i++) {
        const int32_t one = (int32_t)quant_bits_of(importance[i]);
        bits = one > bits ? one : bits;
    }
    const float inverse = bits < 0x7f800000 ? quant_fit_inverse(quant_float_of((uint32_t)bits)) : 0;
    for (int i = 0; i < n; i++) {
        w[i] = inverse > 0.0f ? importance[i] * inverse : 1.0f;
        w[i] = w[i] > floor ? w[i] : floor;
    }
}

/* A super-block as the file keeps it, before the bits are packed. */
struct quant_fit_super {
    uint16_t d, dmin;
    int16_t scale[16];  /* less the file's offset, if it has one */
    uint8_t min[16];    /* used with minima only */
    uint8_t q[FIT_LEN]; /* number in the grid */
};

/* Scale and minimum of a block as the file keeps them. */
struct quant_scales {
    uint16_t d, m; /* binary16 */
};

/* The searches, for each level with the same result. */
struct quant_fit {
    /* n blocks of `len` (QUANT_FIT_AT_ONCE elements at most): x ~ d * value. The error is weighted
     * as described above, without by_size by the importance alone. A block with an element that is
     * not finite gets d = NaN. */
    void (*blocks)(const struct quant_fit_grid *grid, int len, bool by_size, int n, const float *in,
                   const float *importance, uint16_t *d, uint8_t *code);
    /* n blocks of 32, 16 at most: x ~ d * code + m, by the importance alone. */
    void (*blocks_with_min)(const struct quant_fit_min_form *form, int n, const float *in,
                            const float *importance, struct quant_scales *scales, uint8_t *code);
    /* x ~ d * scale * value, with scales from min_scale (negative) to -min_scale - 1. */
    void (*super)(const struct quant_fit_grid *grid, int sub_len, int min_scale, const float *in,
                  const float *importance, struct quant_fit_super *out);
    /* x ~ d * scale * code - dmin * min. */
    void (*super_with_min)(const struct quant_fit_min_form *form, int sub_len, const float *in,
                           const float *importance, struct quant_fit_super *out);
};
extern const struct quant_fit quant_fit_scalar, quant_fit_avx2, quant_fit_avx512;

/* Encoders of a type by NAME_encode_at(fit, k, in, importance, row), for each level. */
#define QUANT_FIT_ENCODE(NAME)                                                                     \
    static void NAME##_encode_by(int64_t k, const float *in, const float *importance, void *row)   \
    {                                                                                              \
        NAME##_encode_at(&quant_fit_scalar, k, in, importance, row);                               \
    }                                                                                              \
    QUANT_ENCODE_ALONE(NAME)                                                                       \
    QUANT_FIT_ENCODE_X86(NAME)

#if defined(__x86_64__)
#define QUANT_FIT_ENCODE_LEVEL(NAME, LEVEL, TARGET)                                                \
    TARGET static void NAME##_encode_by_##LEVEL(int64_t k, const float *in,                        \
                                                const float *importance, void *row)                \
    {                                                                                              \
        NAME##_encode_at(&quant_fit_##LEVEL, k, in, importance, row);                              \
    }                                                                                              \
    static void NAME##_encode_##LEVEL(int64_t k, const float *in, void *row)                       \
    {                                                                                              \
        NAME##_encode_by_##LEVEL(k, in, NULL, row);                                                \
    }
#define QUANT_FIT_ENCODE_X86(NAME)                                                                 \
    QUANT_FIT_ENCODE_LEVEL(NAME, avx2, CPU_TARGET_AVX2)                                            \
    QUANT_FIT_ENCODE_LEVEL(NAME, avx512, CPU_TARGET_AVX512)
#else
#define QUANT_FIT_ENCODE_X86(NAME)
#endif

/* Members of struct quant_kernel. */
#define QUANT_FIT_MEMBERS(NAME, LEVEL)                                                             \
    .encode = NAME##_encode_##LEVEL, .encode_by = NAME##_encode_by_##LEVEL

#endif

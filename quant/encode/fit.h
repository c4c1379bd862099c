/* quant/encode/fit.h: private to quant/: the search for scales and codes that encoders share.
 *
 * Scales minimize the sum of squared errors, each weighted by the importance of the element.
 * Without importance the weight is (root mean square of the super-block) + |x|: errors of large
 * weights do more harm, but small weights are more frequent. The arithmetic is that of floats in a
 * fixed order, so the bytes do not depend on the machine. Super-blocks (or blocks) with an element
 * that is not finite get d = NaN and codes 0, so that the error is visible. */
#pragma once

#include "quant/codebook.h"
#include "quant/types.h"
#include <math.h>

enum { FIT_LEN = 256, QUANT_FIT_AT_ONCE = 512, FIT_NAN = 0x7e00 };

/* The values of a code before it is scaled: the integers low .. high, or a codebook in ascending
 * order (low and high then are its ends). Code 0 is low. */
struct quant_fit_grid {
    int low, high;
    const int8_t *codebook; /* n_values, padded to 16 or more; NULL: integers */
    int n_values;           /* at most QUANT_FIT_BOOK */
    int shift;       /* not 0: a sub-block of a super-block may add it to the book's values */
    bool odd_scale;  /* the scales of sub-blocks are odd numbers */
    bool few_scales; /* of super-blocks with their own d: it is first that which suits all scales */
    /* Of super-blocks with their own d, with importance: d is this many times the best one for the
     * codes; 0: it is the best one. */
    float gain;
    /* Trial scale i of n_trials: the largest element is at high + first + i * step, or at low -
     * first
     * - i * step. */
    int n_trials;
    float first, step;
};

enum { QUANT_FIT_BOOK = 64 };

static const struct quant_fit_grid quant_fit_iq4 = {.low = -127,
                                                    .high = 113,
                                                    .codebook = quant_codebook_iq4,
                                                    .n_values = 16,
                                                    .n_trials = 6,
                                                    .first = -9.0f,
                                                    .step = 4.0f};

/* Codes 0 .. max_code with a minimum. */
struct quant_fit_min_form {
    int max_code, max_scale; /* of the scales of sub-blocks */
    bool bounded;            /* x ~ scale * code - min, with min not negative */
    /* Trial scales: the range of the elements is max_code + more codes wide, and code 0 is
     * low / max_code of the range above the smallest element. */
    int n_trials;
    const struct quant_fit_trial {
        float low, more;
    } * trial;
};

static const struct quant_fit_trial quant_fit_bounded[19] = {
    {0, -0.9f}, {0, -0.8f}, {0, -0.7f}, {0, -0.6f}, {0, -0.5f}, {0, -0.4f}, {0, -0.3f},
    {0, -0.2f}, {0, -0.1f}, {0, 0},     {0, 0.1f},  {0, 0.2f},  {0, 0.3f},  {0, 0.4f},
    {0, 0.5f},  {0, 0.6f},  {0, 0.7f},  {0, 0.8f},  {0, 0.9f}};
/* The first nine trials have ranges that end at the ends of the data, or up to 1.5 codes inside.
 * The others use fewer codes than there are: elements that already are on a grid (from a file of
 * four or five bits) are represented exactly by multiples of those codes. */
static const struct quant_fit_trial quant_fit_free[15] = {
    {0, 0},         {0, 0.75f},   {0, 1.5f},     {0.75f, 0.75f}, {0.75f, 1.5f},
    {0.75f, 2.25f}, {1.5f, 1.5f}, {1.5f, 2.25f}, {1.5f, 3},      {0, -1},
    {0, -2},        {0, -3},      {0, -4},       {0, -5},        {0, -6}};
#define QUANT_FIT_BOUNDED .bounded = true, .n_trials = 19, .trial = quant_fit_bounded
#define QUANT_FIT_FREE    .n_trials = 15, .trial = quant_fit_free

/* Copies n elements to x and their weights as described above (importance may be NULL) to w; with
 * by_size an importance is multiplied by the weight without it. False when an element is not
 * finite. Clamps elements that no half-precision scale can reach, so that no sum overflows. */
bool quant_fit_prepare(int n, const float *in, const float *importance, bool by_size, float *x,
                       float *w);

/* Sums have this many lanes, so that a compiler can vectorize them with the same result. */
enum { QUANT_FIT_LANES = 8 };

static inline float quant_fit_sum(const float lane[QUANT_FIT_LANES])
{
    return ((lane[0] + lane[4]) + (lane[2] + lane[6])) +
           ((lane[1] + lane[5]) + (lane[3] + lane[7]));
}

#define QUANT_FIT_SHIFT 0x1.8p23f /* floats of this magnitude are integers: adding it rounds */

/* The integer nearest to v, clamped to low .. high (magnitudes at most 2^22); NaN gives low. */
static inline float quant_fit_integer(float v, float low, float high)
{
    v = v > low ? v : low;
    v = v < high ? v : high;
    return (v + QUANT_FIT_SHIFT) - QUANT_FIT_SHIFT;
}

/* The scale in half precision; above its range, the largest. */
uint16_t quant_fit_half(float scale);

/* The d for which n (at most 16) scales, rounded to the integers min_scale .. -min_scale - 1, are
 * nearest to the exact ones. Of the sums of errors of sub-blocks, each its sum of w * value^2 times
 * the squared difference of its scales, the least is taken. gain: scale^2 times that sum. */
float quant_fit_find_d(int min_scale, int n, float largest, const float *scale, const float *gain);

/* 1 / scale, or 0 if that is not finite. */
static inline float quant_fit_inverse(float scale)
{
    const float inverse = 1.0f / scale;
    return fabsf(inverse) < INFINITY ? inverse : 0.0f;
}

/* Sets w[n] in proportion to importance[n]: the largest is 1, the smallest at least 1e-6. All are 1
 * if importance is NULL or has no finite value above 0. */
QUANT_INLINE void quant_fit_weights(int n, const float *importance, float *w)
{
    const float floor = 1e-6f;
    int32_t bits = 0; /* of the largest: bits of positive floats are in the order of their values */
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

/* The fields of a super-block, before their bits are packed. */
struct quant_fit_super {
    uint16_t d, dmin;
    int16_t scale[16];  /* without the file's offset, if any */
    uint8_t min[16];    /* only in types with minima */
    uint8_t q[FIT_LEN]; /* codes: indices of the grid's values */
    uint16_t bits;      /* bit s: the values of sub-block s are shifted */
    /* Of `super`: the exact scale of largest magnitude, NaN if an element is not finite; the error,
     * and two sums whose quotient is the best d for the codes. */
    float largest, error, up, down;
};

/* Scale and minimum of a block as in the file. */
struct quant_scales {
    uint16_t d, m; /* binary16 */
};

/* The searches at one level; the result is the same at all levels. in: the elements, importance: a
 * weight for each, or NULL. */
struct quant_fit {
    /* n blocks of `len` (at most QUANT_FIT_AT_ONCE elements): x ~ d * value. Weights are as
     * described above with by_size, otherwise 1 without importance. A block with an element that
     * is not finite gets d = NaN. */
    void (*blocks)(const struct quant_fit_grid *grid, int len, bool by_size, int n, const float *in,
                   const float *importance, uint16_t *d, uint8_t *code);
    /* n blocks of 32, at most 16: x ~ d * code + m, weights 1 without importance. */
    void (*blocks_with_min)(const struct quant_fit_min_form *form, int n, const float *in,
                            const float *importance, struct quant_scales *scales, uint8_t *code);
    /* x ~ d * scale * value, with scales from min_scale (negative) to -min_scale - 1, or -min_scale
     * if they are odd. row_d: d of the whole row; NULL: it is found and rounded to binary16. */
    void (*super)(const struct quant_fit_grid *grid, int sub_len, int min_scale, const float *row_d,
                  const float *in, const float *importance, struct quant_fit_super *out);
    /* x ~ d * scale * code - dmin * min. */
    void (*super_with_min)(const struct quant_fit_min_form *form, int sub_len, const float *in,
                           const float *importance, struct quant_fit_super *out);
};
extern const struct quant_fit quant_fit_scalar, quant_fit_avx2, quant_fit_avx512, quant_fit_neon;

/* Encodes k elements of a type whose blocks are a scale and codes of `len` elements. pack writes a
 * block of `bytes`. */
typedef void quant_fit_pack(const uint8_t *code, uint16_t d, uint8_t *block);
QUANT_INLINE void quant_fit_encode(const struct quant_fit *to, const struct quant_fit_grid *grid,
                                   int len, int bytes, quant_fit_pack *pack, int64_t k,
                                   const float *in, const float *importance, void *row)
{
    uint8_t *out = row;
    for (int64_t at = 0; at < k; at += QUANT_FIT_AT_ONCE) {
        const int n = (int)(k - at < QUANT_FIT_AT_ONCE ? k - at : QUANT_FIT_AT_ONCE) / len;
        uint16_t d[QUANT_FIT_AT_ONCE / 32];
        uint8_t code[QUANT_FIT_AT_ONCE];
        to->blocks(grid, len, true, n, in + at, importance ? importance + at : NULL, d, code);
        for (int b = 0; b < n; b++, out += bytes) pack(code + b * len, d[b], out);
    }
}

/* A type with super-blocks: of one of two searches, `super` and `super_with_min`. */
struct quant_fit_form {
    const struct quant_fit_grid *grid;
    int sub_len, min_scale;                  /* min_scale: with a grid */
    const struct quant_fit_min_form *minima; /* instead of a grid */
    size_t block_bytes, header_bytes;        /* header: d of a row, binary16 (2) or binary32 (4) */
    /* Writes the fields to a block of zeros. */
    void (*pack)(const struct quant_fit_super *fit, void *block);
    /* Changes codes that the type cannot represent; d: of the row. NULL: none. */
    void (*correct)(struct quant_fit_super *fit, float d, const float *in, const float *importance);
};
/* Encodes k elements, a multiple of FIT_LEN, as a row of blocks. */
void quant_fit_supers(const struct quant_fit *to, const struct quant_fit_form *form, int64_t k,
                      const float *in, const float *importance, void *row);

/* The grid of the ternary types. */
static const struct quant_fit_grid quant_fit_ternary = {
    .low = -1, .high = 1, .n_trials = 4, .first = 0.0f, .step = 0.75f};

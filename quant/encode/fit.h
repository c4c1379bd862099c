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

enum { FIT_LEN = 256, FIT_NAN = 0x7e00 };

/* The values of a code before it is scaled: the integers low .. high, or a codebook of
 * 16 in ascending order (low and high then are its ends). */
struct quant_fit_grid {
    int low, high;
    const int8_t *codebook; /* NULL: integers */
    int search; /* steps to each side that the scale which spans the elements is varied by */
    float step; /* in the grid's unit */
};

static const struct quant_fit_grid quant_fit_iq4 = {
    .low = -127, .high = 113, .codebook = quant_codebook_iq4, .search = 4, .step = 2.0f};

/* The number of the value of the grid that is nearest to x[i] * inverse; code 0 is `low`. */
void quant_fit_codes(const struct quant_fit_grid *grid, int n, const float *x, float inverse,
                     uint8_t *code);

/* The scale s that makes the weighted sum of (x - s * value)^2 small; n is 16 or 32. */
float quant_fit_scale(const struct quant_fit_grid *grid, int n, const float *x, const float *w);

/* The scale of x ~ scale * value with the integers low .. high as values, of up to FIT_LEN
 * elements, and their codes (value - low), under the scale as the file rounds it. */
uint16_t quant_fit_block(int n, int low, int high, const float *in, const float *importance,
                         uint8_t *code);

/* A copy of n elements, and their weights as described above, times importance[n] where that is not
 * NULL; false when an element is not finite.
 * What no scale of half precision can reach is cut down, so that no sum overflows. */
bool quant_fit_prepare(int n, const float *in, const float *importance, float *x, float *w);

/* w[n] in proportion to importance[n], the largest 1 and none 0; all 1 where that is NULL, or has
 * no finite value above 0. */
void quant_fit_weights(int n, const float *importance, float *w);

/* Sums are made in so many lanes, so that a compiler can use vectors without changing the result.
 */
enum { QUANT_FIT_LANES = 8 };

static inline float quant_fit_sum(const float lane[QUANT_FIT_LANES])
{
    return ((lane[0] + lane[4]) + (lane[2] + lane[6])) +
           ((lane[1] + lane[5]) + (lane[3] + lane[7]));
}

/* The integer nearest to v, from low to high, of at most 2^22 in size; NaN gives low. */
static inline float quant_fit_integer(float v, float low, float high)
{
    const float shift = 0x1.8p23f; /* floats of this size are whole: adding it rounds, to even */
    v = v > low ? v : low;
    v = v < high ? v : high;
    return (v + shift) - shift;
}

/* A scale that half precision can hold: above its range, the largest. */
uint16_t quant_fit_half(float scale);

/* 1 / scale, or 0 where that has no finite value. */
float quant_fit_inverse(float scale);

/* A super-block as the file keeps it, before the bits are packed. */
struct quant_fit_super {
    uint16_t d, dmin;
    int16_t scale[16];  /* less the file's offset, if it has one */
    uint8_t min[16];    /* used with minima only */
    uint8_t q[FIT_LEN]; /* number in the grid */
};

/* x ~ d * scale * value, with scales from min_scale (negative) to -min_scale - 1. */
void quant_fit_super(const struct quant_fit_grid *grid, int sub_len, int min_scale, const float *in,
                     const float *importance, struct quant_fit_super *out);

/* x ~ d * scale * code - dmin * min, codes from 0 to max_code, scales and minima to max_scale. */
void quant_fit_super_with_min(int sub_len, int max_code, int max_scale, const float *in,
                              const float *importance, struct quant_fit_super *out);

#endif

/* sample/block.h: arithmetic on blocks of 64 logits, for passes over a whole vocabulary. Private to
 * sample/.
 *
 * Three versions that give the same bits: plain C, which is the specification, AVX2 and AVX-512.
 * Every element is computed by itself; sums have 16 lanes (element i adds to lane i mod 16, in
 * ascending order) that are folded by halves. In all of them NaN and -infinity are impossible ids.
 */
#ifndef SAMPLE_BLOCK_H
#define SAMPLE_BLOCK_H

#include "quant/quant.h"
#include <stdint.h>

enum { SAMPLE_BLOCK = 64 }; /* logits: those of one word of a mask */

struct sample_block_sums {
    float total;  /* of the weights */
    float moment; /* of weight * distance, the distance being (x - best) * scale */
    uint32_t n;   /* possible ids */
};
struct sample_block_moments {
    float sum, squares; /* of x - centre, over the possible ids */
    uint32_t n;
};

/* Copies what is at least `bar`, infinity as the largest number; -infinity in place of the rest. */
typedef void sample_block_keep_fn(float *to, const float *from, float bar);
/* The largest of x[64] among the ids whose bit is set; -infinity when none is possible. */
typedef float sample_block_bound_fn(const float *x, uint64_t allowed);
/* The same of each of n blocks x[n][64], allowed[n] (NULL: all). */
typedef void sample_block_bounds_fn(const float *x, const uint64_t *allowed, uint32_t n,
                                    float *bound);
/* How many of x[64] are at least `bar`. */
typedef uint32_t sample_block_count_fn(const float *x, float bar);
/* weight[64] = exp((x - best) * scale), scale >= 0, no x above best; 0 below e^-87. Relative error
 * below 1e-6. */
typedef void sample_block_weigh_fn(const float *x, float best, float scale, float *weight);
/* Sums of the same weights; of all, or the total only. */
typedef struct sample_block_sums sample_block_sums_fn(const float *x, float best, float scale);
typedef float sample_block_total_fn(const float *x, float best, float scale);
/* Infinite or NaN where squares of floats are. */
typedef struct sample_block_moments sample_block_moments_fn(const float *x, float centre);

struct sample_block_kernels {
    sample_block_keep_fn *keep;
    sample_block_bound_fn *bound;
    sample_block_bounds_fn *bounds;
    sample_block_count_fn *count;
    sample_block_weigh_fn *weigh;
    sample_block_sums_fn *sums;
    sample_block_total_fn *total;
    sample_block_moments_fn *moments;
};
/* Of the best version that is no better than `most` and that this machine has. */
const struct sample_block_kernels *sample_block_kernels(enum quant_level most);

#endif

/* sample/block.h: arithmetic on blocks of 64 logits, for passes over a whole vocabulary. Private to
 * sample/.
 *
 * Plain loops with a fixed order of operations, which compilers make vectors of; compiled a second
 * time for AVX2. Both give the same bits: every element is computed by itself, and sums are trees
 * over a fixed number of lanes. */
#ifndef SAMPLE_BLOCK_H
#define SAMPLE_BLOCK_H

#include <stdbool.h>

enum { SAMPLE_BLOCK = 64 }; /* logits: those of one word of a mask */

/* The largest of x[64]. */
float sample_block_largest(const float *x);

/* Copies x[64] with NaN as -infinity and infinity as the largest number; returns the largest. */
float sample_block_copy(float *restrict to, const float *restrict from);

struct sample_block_sums {
    float total;  /* of the weights */
    float moment; /* of weight * distance */
};
struct sample_block_moments {
    double n, sum, squares; /* of x - best, over those above -infinity */
};

/* weight[64] = exp((x - best) * scale), scale >= 0, no x above best; 0 below e^-87. Relative error
 * below 1e-6. */
typedef struct sample_block_sums sample_block_weigh_fn(const float *x, float best, float scale,
                                                       float *weight);
typedef struct sample_block_moments sample_block_moments_fn(const float *x, double best);

struct sample_block_kernels {
    sample_block_weigh_fn *weigh;
    sample_block_moments_fn *moments;
};
/* For any machine, or the best for this one. */
const struct sample_block_kernels *sample_block_kernels(bool any);

#endif

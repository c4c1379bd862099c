/* sample/block.h: arithmetic on blocks of 64 logits, for passes over a whole vocabulary. Private to
 * sample/.
 *
 * Three versions return the same bits: plain C, which is the specification, AVX2 and AVX-512. Each
 * element is computed independently. A sum has 16 lanes: element i is added to lane i mod 16, in
 * ascending order; at the end the upper half of the lanes is added to the lower half, until one is
 * left. NaN and -infinity mark impossible ids. */
#ifndef SAMPLE_BLOCK_H
#define SAMPLE_BLOCK_H

#include "quant/quant.h"
#include <stdint.h>

enum { SAMPLE_BLOCK = 64 }; /* logits of a block: the ids of one word of a mask */

/* The sums over those ids of a block with x >= min_logit. `distance` is (x - top) * scale. */
enum sample_block_sum {
    SAMPLE_WEIGHTS, /* sum: weights exp(distance) */
    SAMPLE_ENTROPY, /* sum: as SAMPLE_WEIGHTS; second: sum of weight * distance */
    SAMPLE_MOMENTS, /* sum: distances; second: their squares; both infinite or NaN on float overflow
                     */
    SAMPLE_BLOCK_SUMS
};
struct sample_block_sums { /* outputs: [blocks]; SAMPLE_WEIGHTS has only `sum` */
    float *sum, *second;
    uint32_t *n; /* number of ids */
};

/* The contract of all kernels: no x is above `top`, scale >= 0, and `min_logit` is a number; with
 * -FLT_MAX every possible id counts. */

/* Copies logits >= `threshold`, infinity as the largest number; other logits become -infinity. */
typedef void sample_block_keep_fn(float *to, const float *from, float threshold);
/* Returns the largest of x[64] among the ids whose bit is set; -infinity if none is possible. */
typedef float sample_block_bound_fn(const float *x, uint64_t allowed);
/* Writes the bound of each of n blocks x[n][64] with the bits allowed[n] (NULL: all). */
typedef void sample_block_bounds_fn(const float *x, const uint64_t *allowed, uint32_t n,
                                    float *bound);
/* _count returns how many of x[64] are >= `threshold`; _reach returns a word whose bit i is set if
 * x[i] is. */
typedef uint32_t sample_block_count_fn(const float *x, float threshold);
typedef uint64_t sample_block_reach_fn(const float *x, float threshold);
/* Computes weight[64] = exp(distance), with a relative error below 1e-6; 0 for ids with x <
 * min_logit and below e^-87. */
typedef void sample_block_weigh_fn(const float *x, float top, float scale, float min_logit,
                                   float *weight);
/* Computes the sums of n blocks x[n][64], each relative to its own top[n]. */
typedef void sample_block_sum_fn(const float *x, const float *top, uint32_t n, float scale,
                                 float min_logit, struct sample_block_sums to);
/* Adaptive-p: computes weight[64] = exp(-10 d^2 / (1 + d)) for ids with x >= min_logit, 0 for the
 * rest, where p = exp(distance) * inverse and d = abs(p - target) / 0.3. Returns the sum of the
 * weights. */
struct sample_block_shape {
    float top, scale, min_logit, inverse, target;
};
typedef float sample_block_shape_fn(const float *x, const struct sample_block_shape *shape,
                                    float *weight);

struct sample_block_kernels {
    sample_block_keep_fn *keep;
    sample_block_bound_fn *bound;
    sample_block_bounds_fn *bounds;
    sample_block_count_fn *count;
    sample_block_reach_fn *reach;
    sample_block_weigh_fn *weigh;
    sample_block_sum_fn *sum[SAMPLE_BLOCK_SUMS];
    sample_block_shape_fn *shape;
};
/* Returns the kernels of a level, which the machine must support. */
const struct sample_block_kernels *sample_block_kernels(enum cpu_level level);

#endif

/* sample/block.h: arithmetic on blocks of 64 logits, for passes over a whole vocabulary. Private to
 * sample/.
 *
 * Three versions that give the same bits: plain C, which is the specification, AVX2 and AVX-512.
 * Every element is computed by itself; sums have 16 lanes (element i adds to lane i mod 16, in
 * ascending order) that are folded by halves. NaN and -infinity mark impossible ids in all of
 * them. */
#ifndef SAMPLE_BLOCK_H
#define SAMPLE_BLOCK_H

#include "quant/quant.h"
#include <stdint.h>

enum { SAMPLE_BLOCK = 64 }; /* logits of a block: one word of a mask */

/* The sums over the ids of a block that count, those with x >= min_logit. `distance` is (x - top) *
 * scale. */
enum sample_block_sum {
    SAMPLE_WEIGHTS, /* sum: weights exp(distance) */
    SAMPLE_ENTROPY, /* sum: as SAMPLE_WEIGHTS; second: sum of weight * distance */
    SAMPLE_MOMENTS, /* sum: distances; second: their squares; both infinite or NaN on float overflow
                     */
    SAMPLE_BLOCK_SUMS
};
struct sample_block_sums { /* outputs: [blocks]; SAMPLE_WEIGHTS has only `sum` */
    float *sum, *second;
    uint32_t *n; /* ids */
};

/* For all kernels: no x is above `top`, scale >= 0, and `min_logit` is a number; -FLT_MAX makes
 * every possible id count. */

/* Copies logits >= `threshold`, infinity as the largest number; stores -infinity for the others. */
typedef void sample_block_keep_fn(float *to, const float *from, float threshold);
/* The largest of x[64] among the ids whose bit is set; -infinity if none is possible. */
typedef float sample_block_bound_fn(const float *x, uint64_t allowed);
/* As above for n blocks x[n][64] and allowed[n] (NULL: all). */
typedef void sample_block_bounds_fn(const float *x, const uint64_t *allowed, uint32_t n,
                                    float *bound);
/* The number of x[64] that are >= `threshold`; and a word with bit i set if x[i] is. */
typedef uint32_t sample_block_count_fn(const float *x, float threshold);
typedef uint64_t sample_block_reach_fn(const float *x, float threshold);
/* weight[64] = exp(distance); 0 for ids that do not count and below e^-87. Relative error below
 * 1e-6. */
typedef void sample_block_weigh_fn(const float *x, float top, float scale, float min_logit,
                                   float *weight);
/* The sums of n blocks x[n][64], each relative to its own top[n]. */
typedef void sample_block_sum_fn(const float *x, const float *top, uint32_t n, float scale,
                                 float min_logit, struct sample_block_sums to);
/* Adaptive-p: with p = exp(distance) * inverse and d = abs(p - target) / 0.3, weight[64] =
 * exp(-10 d^2 / (1 + d)) of the ids that count, 0 for the rest; returns their sum. */
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
/* The kernels of a level, which the machine must run. */
const struct sample_block_kernels *sample_block_kernels(enum cpu_level level);

#endif

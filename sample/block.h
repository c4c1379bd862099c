/* sample/block.h: arithmetic on blocks of 64 logits, for passes over a whole vocabulary. Private to
 * sample/.
 *
 * Each level has the same code, compiled for it, and so the same bits. Each element is computed
 * independently. A sum has 16 lanes: element i is added to lane i mod 16, in ascending order; at
 * the end the upper half of the lanes is added to the lower half, until one is left. */
#pragma once

#include "base/cpu.h"
#include <stdint.h>

enum { SAMPLE_BLOCK = 64 }; /* logits of a block: the ids of one word of a mask */

/* Copies n <= 64 logits of the ids whose bit is set: infinity as the largest number. All others of
 * to[64], and NaN, become -infinity: impossible ids. */
void sample_block_read(float *to, const float *from, uint32_t n, uint64_t allowed);

/* The sums over the possible ids of a block. `distance` is (x - top) * scale. */
enum sample_block_kind {
    SAMPLE_WEIGHTS, /* sum: weights exp(distance) */
    SAMPLE_ENTROPY, /* sum: as SAMPLE_WEIGHTS; second: sum of weight * distance */
    SAMPLE_MOMENTS, /* sum: distances; second: their squares; both infinite or NaN on float overflow
                     */
    SAMPLE_BLOCK_KINDS
};
struct sample_block_sums { /* SAMPLE_WEIGHTS has only `sum` */
    float sum, second;
    uint32_t n; /* number of ids */
};

/* The contract of the kernels: impossible ids of x[64] have -infinity or NaN, no x is above `top`,
 * which is finite, and scale >= 0. The exception is _bounds. */

/* Computes for n blocks x[n][64] of any numbers the largest of the ids whose bit in allowed[n]
 * (NULL: all) is set, infinity as the largest number; -infinity if none is possible. */
typedef void sample_block_bounds_fn(const float *x, const uint64_t *allowed, uint32_t n,
                                    float *bound);
/* Returns a word whose bit i is set if x[i] >= threshold. */
typedef uint64_t sample_block_reach_fn(const float *x, float threshold);
/* Computes weight[64] = exp(distance), with a relative error below 1e-6; 0 for impossible ids and
 * below e^-87. */
typedef void sample_block_weigh_fn(const float *x, float top, float scale, float *weight);
typedef struct sample_block_sums sample_block_sum_fn(const float *x, float top, float scale);
/* Adaptive-p: computes weight[64] = exp(-10 d^2 / (1 + d)), 0 for impossible ids, where p =
 * exp(distance) * inverse and d = abs(p - target) / 0.3. Returns the sum of the weights. */
struct sample_block_shape {
    float top, scale, inverse, target;
};
typedef float sample_block_shape_fn(const float *x, const struct sample_block_shape *shape,
                                    float *weight);

struct sample_block_kernels {
    sample_block_bounds_fn *bounds;
    sample_block_reach_fn *reach;
    sample_block_weigh_fn *weigh;
    sample_block_sum_fn *sum[SAMPLE_BLOCK_KINDS];
    sample_block_shape_fn *shape;
};
/* Returns the kernels of a level, which the machine must support. */
const struct sample_block_kernels *sample_block_kernels(enum cpu_level level);

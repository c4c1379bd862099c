/* engine/gpu/device/gpu_element.h: device code: elements of tensors, and the elementwise functions:
 * engine/cpu/isa/vec_math.inc with vectors of one element. */
#pragma once

#include "engine/gpu/device/gpu_ops.h"
#include "quant/gpu/dialect.h"
#include <math.h>
#include <string.h>

/* ---- Elements ---- */

struct engine_gpu_index {
    int64_t i[4];
};

/* The index of element n, counted along rows. */
static inline struct engine_gpu_index gpu_index(const struct engine_gpu_tensor *t, int64_t n)
{
    struct engine_gpu_index at = {{n, 0, 0, 0}};
    for (int d = 0; d < 3 && at.i[d] >= t->ne[d]; d++) {
        const int64_t all = at.i[d];
        if (all <= UINT32_MAX) { /* divisions of 64 bits take five times as long */
            at.i[d] = (uint32_t)all % (uint32_t)t->ne[d];
            at.i[d + 1] = (uint32_t)all / (uint32_t)t->ne[d];
        } else {
            at.i[d] = all % t->ne[d];
            at.i[d + 1] = all / t->ne[d];
        }
    }
    return at;
}

/* i, below 2^31, modulo ne. */
static inline uint32_t gpu_wrap(int64_t i, int64_t ne)
{
    return (uint32_t)i < (uint32_t)ne ? (uint32_t)i : (uint32_t)i % (uint32_t)ne;
}

/* The address of an element, which wraps around. */
static inline char *gpu_at(const struct engine_gpu_tensor *t, const struct engine_gpu_index *at)
{
    char *data = t->data;
    for (int d = 0; d < 4; d++) data += gpu_wrap(at->i[d], t->ne[d]) * t->nb[d];
    return data;
}

static inline float gpu_float(const struct engine_gpu_tensor *t, const struct engine_gpu_index *at)
{
    return *(const float *)(const void *)gpu_at(t, at);
}

/* Element i of the row that begins at `row`, an address in t; it wraps around. */
static inline float gpu_row_float(const struct engine_gpu_tensor *t, const char *row, int64_t i)
{
    return *(const float *)(const void *)(row + gpu_wrap(i, t->ne[0]) * t->nb[0]);
}

static inline int64_t gpu_thread_of_grid(void)
{
    return (int64_t)gpu_block() * ENGINE_GPU_THREADS + gpu_thread();
}

static inline int64_t gpu_warp_of_grid(void)
{
    return (int64_t)gpu_block() * ENGINE_GPU_WARPS + gpu_warp();
}

/* Sixteen lanes have a row. */
static inline int64_t gpu_half_of_grid(void)
{
    return 2 * gpu_warp_of_grid() + gpu_lane() / 16;
}

/* Whether this block, of n_threads threads, only loads weights; it does so. */
static inline bool gpu_loads_ahead(const struct engine_gpu_ahead *p, int n_threads)
{
    enum { SECTOR = 32 };
    if (!p->bytes || gpu_block() < p->first_block) return false;
    const int64_t first = (gpu_block() - p->first_block) * ENGINE_GPU_AHEAD_BYTES;
    for (int i = SECTOR * gpu_thread(); i < ENGINE_GPU_AHEAD_BYTES && first + i < p->bytes;
         i += SECTOR * n_threads)
        gpu_prefetch(p->at + first + i);
    return true;
}

/* ---- Functions of one variable ---- */

#define VEC_FN static inline
typedef float v16;
typedef bool m16;

VEC_FN uint32_t v_bits(v16 x)
{
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    return bits;
}

VEC_FN v16 v_of_bits(uint32_t bits)
{
    v16 x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

#define GPU_V(name, parameters, result)                                                            \
    VEC_FN v16 v_##name parameters                                                                 \
    {                                                                                              \
        return result;                                                                             \
    }
GPU_V(set, (float x), x)
GPU_V(add, (v16 a, v16 b), a + b)
GPU_V(sub, (v16 a, v16 b), a - b)
GPU_V(mul, (v16 a, v16 b), a *b)
GPU_V(div, (v16 a, v16 b), a / b)
GPU_V(sqrt, (v16 a), sqrtf(a))
GPU_V(fma, (v16 a, v16 b, v16 c), fmaf(a, b, c))
GPU_V(max, (v16 a, v16 b), a > b ? a : b)
GPU_V(min, (v16 a, v16 b), a < b ? a : b)
GPU_V(pick, (m16 m, v16 yes, v16 no), m ? yes : no)
GPU_V(or, (v16 a, v16 b), v_of_bits(v_bits(a) | v_bits(b)))
GPU_V(and_bits, (v16 a, uint32_t b), v_of_bits(v_bits(a) & b))
GPU_V(xor_bits, (v16 a, uint32_t b), v_of_bits(v_bits(a) ^ b))
GPU_V(add_bits, (v16 a, v16 b), v_of_bits(v_bits(a) + v_bits(b)))
GPU_V(shl_bits, (v16 a, int n), v_of_bits(v_bits(a) << n))

VEC_FN m16 v_lt(v16 a, v16 b)
{
    return a < b;
}

#include "engine/cpu/isa/vec_math.inc"

/* ---- Reductions of sixteen lanes (engine/cpu/isa/vec.h); all lanes of the warp call them ---- */

static inline float gpu_sum_tree(float sum)
{
    for (int h = 8; h; h /= 2) sum += v_of_bits(gpu_shuffle_xor(v_bits(sum), h));
    return sum;
}

static inline float gpu_max_tree(float m)
{
    for (int h = 8; h; h /= 2) {
        const float other = v_of_bits(gpu_shuffle_xor(v_bits(m), h));
        m = other > m ? other : m;
    }
    return m;
}

/* x = exp(x - m), and their sum; lane l has the elements l, l + 16 .. */
static inline float gpu_exp_row(float *x, int64_t n, float m)
{
    float sum = 0.0f;
    for (int64_t i = gpu_lane() % 16; i < n; i += 16) {
        x[i] = v_exp(x[i] - m);
        sum += x[i];
    }
    return gpu_sum_tree(sum);
}

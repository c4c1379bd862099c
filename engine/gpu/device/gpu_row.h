/* engine/gpu/device/gpu_row.h: device code: a row by a warp: its norm, its rotation, and its codes
 * in a cache of int16 groups, for the kernels of these ops and for the one that does all. */
#pragma once

#include "engine/gpu/device/gpu_keys.h"
#include "quant/half.h"

/* ---- Norms ---- */

static inline float gpu_add_to(float sum, float y, float mean, bool squares)
{
    const float z = mean == 0.0f ? y : fmaf(y, 1.0f, -mean);
    return squares ? fmaf(z, z, sum) : sum + z;
}

/* The sum of the squares of x - mean over n elements, or of the elements themselves; `x` is the
 * first, and they are `step` bytes apart. */
static inline float gpu_sum_of(const char *x, int64_t step, int64_t n, float mean, bool squares)
{
    float sum = 0.0f;
    for (int64_t i = gpu_lane() % 16; i < n; i += 16)
        sum = gpu_add_to(sum, *(const float *)(const void *)(x + i * step), mean, squares);
    return gpu_sum_tree(sum);
}

/* What the n elements of a row are multiplied by. */
static inline float gpu_norm_factor(enum engine_gpu_norm_kind kind, float eps, int64_t n,
                                    float squares)
{
    const float length = sqrtf(squares);
    return 1.0f / (kind != ENGINE_GPU_L2_NORM ? sqrtf(squares / (float)n + eps)
                   : length < eps             ? eps
                                              : length);
}

/* An element without weight and bias. */
static inline float gpu_normed(enum engine_gpu_norm_kind kind, float x, float mean, float factor)
{
    return (kind == ENGINE_GPU_NORM ? fmaf(x, 1.0f, -mean) : x) * factor;
}

/* ---- Rotation ---- */

/* The first or second element of the pair a, b. */
static inline float gpu_rotated(float a, float b, float cosine, float sine, bool is_first)
{
    return is_first ? fmaf(a, cosine, -(b * sine)) : fmaf(b, cosine, a * sine);
}

/* ---- Storing ---- */

static inline float gpu_stored(float x, bool bfloat)
{
    return bfloat ? quant_bfloat_to_float(quant_float_to_bfloat(x))
                  : quant_half_to_float(quant_float_to_half(x));
}

/* Stores a row of d elements, `step` bytes apart, in a slot of a head, whose groups begin at
 * `groups`, group_bytes apart. Nothing if there is no such slot. */
static inline void gpu_store_row(const char *x, int64_t step, int64_t d, char *groups,
                                 int64_t group_bytes, int64_t n_slots, int32_t slot, bool values,
                                 bool bfloat)
{
    if (slot < 0 || slot >= n_slots) return;
    uint32_t largest = 0;
    float factor;
    for (int64_t i = gpu_lane(); i < d; i += GPU_WARP) {
        const uint32_t bits =
            attn_magnitude_bits(gpu_stored(*(const float *)(const void *)(x + i * step), bfloat));
        largest = bits > largest ? bits : largest;
    }
    const float scale =
        gpu_scale_of_warp(largest, values ? ENGINE_ATTN_VALUE : ENGINE_ATTN_KEY, &factor);
    char *group = groups + slot / ENGINE_ATTN_GROUP * group_bytes, *codes = attn_bytes(group);
    const int64_t r = slot % ENGINE_ATTN_GROUP;
    for (int64_t i = gpu_lane(); i < d; i += GPU_WARP)
        attn_store(
            codes + (values ? attn_value_at(d, r, i) : attn_key_at(r, i)),
            values ? attn_value_low(d) : ATTN_KEY_LOW,
            attn_code(gpu_stored(*(const float *)(const void *)(x + i * step), bfloat), factor));
    if (gpu_lane() != 0) return;
    engine_attn_scales(group)[r] = scale;
    for (int64_t i = d; !values && i % ENGINE_ATTN_UNIT; i++)
        attn_store(codes + attn_key_at(r, i), ATTN_KEY_LOW, 0);
}

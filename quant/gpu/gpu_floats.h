/* quant/gpu/gpu_floats.h: device code: the elements of float types of weights, and the sums of
 * their 16 lanes (quant/quant.h), for gpu_gemv.c and gpu_tile_float.c. */
#pragma once

#include "quant/act.h"
#include "quant/float/bf16.h"
#include "quant/float/nvfp4.h"
#include "quant/gpu/dialect.h"
#include "quant/half.h"

/* Element i of a row. */
typedef float float_element(const uint8_t *row, int64_t i);

/* Of rows whose elements are at multiples of their size. */
QUANT_INLINE float f32_aligned(const uint8_t *row, int64_t i)
{
    return ((const float *)(const void *)row)[i];
}

QUANT_INLINE float f16_aligned(const uint8_t *row, int64_t i)
{
    return quant_half_to_float(((const uint16_t *)(const void *)row)[i]);
}

QUANT_INLINE float bf16_aligned(const uint8_t *row, int64_t i)
{
    return quant_bfloat_to_float(((const uint16_t *)(const void *)row)[i]);
}

/* Of any rows. */
QUANT_INLINE float f32_bytes(const uint8_t *row, int64_t i)
{
    return quant_float_of(quant_load32(row + 4 * i));
}

QUANT_INLINE float f16_bytes(const uint8_t *row, int64_t i)
{
    return quant_half_to_float(quant_load16(row + 2 * i));
}

QUANT_INLINE float bf16_bytes(const uint8_t *row, int64_t i)
{
    return quant_bfloat_to_float(quant_load16(row + 2 * i));
}

/* Element 16s + l of a block: the nibbles of bytes 0 to 7 low, then high. */
QUANT_INLINE float nvfp4_bytes(const uint8_t *row, int64_t i)
{
    const uint8_t *block = row + i / NVFP4_LEN * NVFP4_BYTES;
    const int s = (int)(i % NVFP4_LEN / NVFP4_SUB_LEN), l = (int)(i % NVFP4_SUB_LEN);
    const int nibble = block[4 + 8 * s + l % 8] >> (l < 8 ? 0 : 4) & 15;
    return nvfp4_half_scale(block[s]) * (float)quant_e2m1[nibble];
}

/* A type: its elements, with the bytes of one (1: they need no alignment). is_bf16: pairs of
 * elements, and columns, are those of BF16. */
struct float_type {
    float_element *aligned, *bytes;
    int size;
    bool is_bf16;
};

static const struct float_type f32_type = {f32_aligned, f32_bytes, 4, false},
                               f16_type = {f16_aligned, f16_bytes, 2, false},
                               bf16_type = {bf16_aligned, bf16_bytes, 2, true},
                               nvfp4_type = {nvfp4_bytes, nvfp4_bytes, 1, false};

/* The sum of lane l. In BF16 it has the pairs l, l + 16, ..; the odd element of a pair comes first;
 * elements past k are zero. */
QUANT_INLINE float float_sum(const struct float_type *type, bool is_aligned, int64_t k,
                             const uint8_t *row, const struct quant_act *a, int l)
{
    float_element *element = is_aligned ? type->aligned : type->bytes;
    float sum = 0.0f;
    if (!type->is_bf16) {
        for (int64_t i = l; i < k; i += 16) sum = fmaf(element(row, i), a->f32[i], sum);
        return sum;
    }
    for (int64_t first = 2 * l; first < quant_act_round_up(k, 32); first += 32) {
        for (int64_t i = first + 1; i >= first; i--) {
            const float w = i < k ? element(row, i) : 0.0f;
            sum = bf16_step(w, i < k ? quant_bfloat_to_float(a->bf16[i]) : 0.0f, sum);
        }
    }
    return sum;
}

/* The tree over the sums of 16 lanes of a warp. */
QUANT_INLINE float float_tree(float sum)
{
    for (int h = 8; h; h /= 2) sum += quant_float_of(gpu_shuffle_xor(quant_bits_of(sum), h));
    return sum;
}

/* quant/gpu/gpu_floats.h: device code: the elements of float types of weights, and the sums of
 * their 16 lanes (quant/quant.h), for gpu_gemv.c and gpu_tile_float.c. */
#pragma once

#include "quant/act.h"
#include "quant/float/bf16.h"
#include "quant/float/nvfp4.h"
#include "quant/gpu/dialect.h"
#include "quant/half.h"

/* Element i of a row. is_aligned: elements are at multiples of their size; otherwise bytes are
 * read. */
typedef float float_element(const uint8_t *row, int64_t i, bool is_aligned);

QUANT_INLINE uint16_t element16(const uint8_t *row, int64_t i, bool is_aligned)
{
    return is_aligned ? ((const uint16_t *)(const void *)row)[i] : quant_load16(row + 2 * i);
}

QUANT_INLINE float f32_element(const uint8_t *row, int64_t i, bool is_aligned)
{
    return is_aligned ? ((const float *)(const void *)row)[i]
                      : quant_float_of(quant_load32(row + 4 * i));
}

QUANT_INLINE float f16_element(const uint8_t *row, int64_t i, bool is_aligned)
{
    return quant_half_to_float(element16(row, i, is_aligned));
}

QUANT_INLINE float bf16_element(const uint8_t *row, int64_t i, bool is_aligned)
{
    return quant_bfloat_to_float(element16(row, i, is_aligned));
}

/* Element 16s + l of a block: the nibbles of bytes 0 to 7 low, then high. */
QUANT_INLINE float nvfp4_element(const uint8_t *row, int64_t i, bool is_aligned)
{
    (void)is_aligned;
    const uint8_t *block = row + i / NVFP4_LEN * NVFP4_BYTES;
    const int s = (int)(i % NVFP4_LEN / NVFP4_SUB_LEN), l = (int)(i % NVFP4_SUB_LEN);
    const int nibble = block[4 + 8 * s + l % 8] >> (l < 8 ? 0 : 4) & 15;
    return nvfp4_half_scale(block[s]) * (float)quant_e2m1[nibble];
}

/* A type: its elements, with the bytes of one (1: they need no alignment). is_bf16: pairs of
 * elements, and columns, are those of BF16. */
struct float_type {
    float_element *element;
    int bytes;
    bool is_bf16;
};

static const struct float_type f32_type = {f32_element, 4, false},
                               f16_type = {f16_element, 2, false},
                               bf16_type = {bf16_element, 2, true},
                               nvfp4_type = {nvfp4_element, 1, false};

/* The sum of lane l. In BF16 it has the pairs l, l + 16, ..; the odd element of a pair comes first;
 * elements past k are zero. */
QUANT_INLINE float float_sum(const struct float_type *type, bool is_aligned, int64_t k,
                             const uint8_t *row, const struct quant_act *a, int l)
{
    float sum = 0.0f;
    if (!type->is_bf16) {
        for (int64_t i = l; i < k; i += 16)
            sum = fmaf(type->element(row, i, is_aligned), a->f32[i], sum);
        return sum;
    }
    for (int64_t first = 2 * l; first < quant_act_round_up(k, 32); first += 32) {
        for (int64_t i = first + 1; i >= first; i--) {
            const float w = i < k ? type->element(row, i, is_aligned) : 0.0f;
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

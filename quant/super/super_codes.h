/* quant/super/super_codes.h: private to quant/: the AVX2 kernels of super-block types without
 * minima whose codes are, or can be converted to, small signed numbers: the I-quants with grids and
 * the ternary types.
 *
 * A type file has three functions in addition to its scalar expand:
 *
 *     head(block)         the 16 bits of d
 *     scales(block)       16-bit sub-scales: of sub-block 2g in lane g of the lower half, 2g + 1 in
 *                         lane g of the upper (types with sub-blocks of 32: both the same)
 *     codes(block, s)     32 signed codes, elements 32s ... 32s + 31
 *
 * and SUPER_CODES(NAME, FACTOR) makes NAME_gemv_avx2 and NAME_unpack_avx2 of them; FACTOR, a power
 * of two, is what d is multiplied by. Other levels inherit these. */
#ifndef QUANT_SUPER_SUPER_CODES_H
#define QUANT_SUPER_SUPER_CODES_H

#include "quant/super/grid_tables.h"
#include "quant/super/super_x86.h"

/* Code i of a grid's entry, negative where bit i of `signs` is set, above `offset`. */
static inline uint8_t super_grid_code(uint64_t entry, int signs, int i, int offset)
{
    const int magnitude = (int)(entry >> 8 * i & 0xff);
    return (uint8_t)(offset + (signs >> i & 1 ? -magnitude : magnitude));
}

#if defined(__x86_64__)

typedef uint16_t super_codes_head(const void *block);
typedef __m256i super_codes_scales(const void *block);
typedef __m256i super_codes_of(const void *block, int s);

/* v, negative where the bit of its element is set. */
SUPER_AVX2 __m256i super_negate(__m256i v, uint32_t signs)
{
    const __m256i place =
        _mm256_setr_epi64x(0, 0x0101010101010101, 0x0202020202020202, 0x0303030303030303);
    const __m256i bit = _mm256_set1_epi64x((int64_t)0x8040201008040201);
    __m256i bytes = _mm256_shuffle_epi8(_mm256_set1_epi32((int32_t)signs), place);
    __m256i mask = _mm256_cmpeq_epi8(_mm256_and_si256(bytes, bit), bit);
    return _mm256_sub_epi8(_mm256_xor_si256(v, mask), mask);
}

/* Four times seven sign bits to four bytes. */
static inline uint32_t super_signs7(uint32_t bits)
{
    return quant_signs7[bits & 127] | (uint32_t)quant_signs7[bits >> 7 & 127] << 8 |
           (uint32_t)quant_signs7[bits >> 14 & 127] << 16 |
           (uint32_t)quant_signs7[bits >> 21 & 127] << 24;
}

/* Eight bytes of four-bit numbers n, one for each 16 elements (of 32: four bytes), to 2n + 1. */
SUPER_AVX2 __m256i super_odd_scales(__m128i nibbles, bool by_32)
{
    __m128i low = _mm_and_si128(nibbles, _mm_set1_epi8(15));
    __m128i high = _mm_and_si128(_mm_srli_epi16(nibbles, 4), _mm_set1_epi8(15));
    if (by_32) low = high = _mm_unpacklo_epi8(low, high);
    __m256i both = _mm256_set_m128i(_mm_cvtepu8_epi16(high), _mm_cvtepu8_epi16(low));
    return _mm256_add_epi16(_mm256_add_epi16(both, both), _mm256_set1_epi16(1));
}

SUPER_AVX2 __m256i super_codes_isum(const struct super_input *in, super_codes_head *head,
                                    super_codes_scales *scales, super_codes_of *codes)
{
    const __m256i scale = scales(in->block);
    __m256i acc[2] = {_mm256_setzero_si256(), _mm256_setzero_si256()};
    EACH (s, 8) {
        __m256i value = codes(in->block, s);
        __m256i x = _mm256_loadu_si256((const __m256i *)(in->q + 32 * s));
        /* vpmaddubsw takes one side unsigned. 2 * 127 * 127 <= INT16_MAX. */
        __m256i products = _mm256_maddubs_epi16(_mm256_abs_epi8(value), _mm256_sign_epi8(x, value));
        acc[s % 2] = super_mad(acc[s % 2], products, super_scale_pair(scale, s));
    }
    in->group->d[in->j] = head(in->block);
    return _mm256_add_epi32(acc[0], acc[1]);
}

/* The scales of one row, in pairs of sub-blocks of 16 (8 pairs) or 32 (4 pairs). */
SUPER_AVX2 void super_codes_scales_store(__m256i scales, int sub_len, int r,
                                         struct quant_panel256 *out)
{
    uint32_t pair[8];
    __m128i even = _mm256_castsi256_si128(scales), odd = _mm256_extracti128_si256(scales, 1);
    if (sub_len == 16) {
        _mm_storeu_si128((__m128i *)pair, _mm_unpacklo_epi16(even, odd));
        _mm_storeu_si128((__m128i *)(pair + 4), _mm_unpackhi_epi16(even, odd));
    } else {
        _mm_storeu_si128((__m128i *)pair, even);
    }
    EACH (p, 128 / sub_len) memcpy(out->scale[p][r], &pair[p], sizeof pair[p]);
}

SUPER_AVX2 void super_codes_unpack(const struct quant_type *type, float factor,
                                   super_codes_head *head, super_codes_scales *scales,
                                   super_codes_of *codes, int64_t first, int64_t n_blocks,
                                   const void *const row[QUANT_PANEL_ROWS],
                                   struct quant_panel256 *out)
{
    const __m256i offset = _mm256_set1_epi8((char)type->panel.offset);
    for (int64_t b = first; b < first + n_blocks; b++, out++) {
        for (int r = 0; r < QUANT_PANEL_ROWS; r += 8) {
            uint8_t code[8][SUPER_LEN];
            const void *from[8];
            for (int i = 0; i < 8; i++) {
                const void *block = (const char *)row[r + i] + (size_t)b * type->block_bytes;
                from[i] = code[i];
                out->d[r + i] = _cvtsh_ss(head(block)) * factor;
                out->m[r + i] = 0.0f;
                super_codes_scales_store(scales(block), type->panel.sub_len, r + i, out);
                EACH (s, 8)
                    _mm256_storeu_si256((__m256i *)(code[i] + 32 * s),
                                        _mm256_add_epi8(codes(block, s), offset));
            }
            for (int i = 0; i < SUPER_LEN / 16; i++) {
                __m256i v[4];
                super_rows_load(from, 16 * i, v);
                EACH (j, 4) _mm256_storeu_si256((__m256i *)out->q[4 * i + j][r], v[j]);
            }
        }
    }
}

#define SUPER_CODES(NAME, FACTOR)                                                                  \
    SUPER_AVX2 __m256i NAME##_isum(const struct super_input *in)                                   \
    {                                                                                              \
        return super_codes_isum(in, NAME##_head, NAME##_scales, NAME##_codes);                     \
    }                                                                                              \
    CPU_TARGET_AVX2 static void NAME##_gemv_avx2(int64_t k, const struct quant_rows *rows,         \
                                                 const struct quant_act *a, float *out)            \
    {                                                                                              \
        const struct super_kernel kernel = {.isum = NAME##_isum, .factor = (FACTOR)};              \
        super_gemv(&quant_type_##NAME, &kernel, k, rows, a, out);                                  \
    }                                                                                              \
    CPU_TARGET_AVX2 static void NAME##_unpack_avx2(                                                \
        int64_t first, int64_t n_blocks, const void *const row[QUANT_PANEL_ROWS], void *panel)     \
    {                                                                                              \
        super_codes_unpack(&quant_type_##NAME, (FACTOR), NAME##_head, NAME##_scales, NAME##_codes, \
                           first, n_blocks, row, panel);                                           \
    }

#define SUPER_CODES_VECTORS(NAME)                                                                  \
    [CPU_AVX2] = {                                                                                 \
        .decode = NAME##_decode_avx2, .unpack = NAME##_unpack_avx2, .gemv = NAME##_gemv_avx2},
#else
#define SUPER_CODES_VECTORS(NAME)
#endif

/* Members of struct quant_type. */
#define SUPER_CODES_MEMBERS(NAME)                                                                  \
    .block_len = SUPER_LEN, .block_bytes = sizeof(struct NAME##_block), .act = &quant_act_q8_256,  \
    .dot = NAME##_dot,                                                                             \
    .kernel = {                                                                                    \
        [CPU_SCALAR] = {.decode = NAME##_decode, .unpack = NAME##_unpack, .gemv = NAME##_gemv},    \
        SUPER_CODES_VECTORS(NAME)}

#endif

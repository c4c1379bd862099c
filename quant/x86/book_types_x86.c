/* quant/x86/book_types_x86.c: the kernels of the super-block types of quant/super/book_types.c for
 * x86-64. */
#include "quant/super/iq2_k.h"
#include "quant/super/iq2_kl.h"
#include "quant/super/iq2_ks.h"
#include "quant/super/iq3_k.h"
#include "quant/super/iq3_ks.h"
#include "quant/super/iq4_k.h"
#include "quant/super/iq4_ks.h"
#include "quant/super/iq4_kss.h"
#include "quant/super/iq5_k.h"
#include "quant/super/iq5_ks.h"
#include "quant/super/iq6_k.h"
#include "quant/x86/super_book.h"
#include "quant/x86/types_x86.h"

/* A type's block as `w`. */
#define BLOCK(NAME) const struct NAME##_block *w = block

/* ---- Bits of 16 sub-blocks ---- */

#define BITS_16(NAME)                                                                              \
    SUPER_AVX2 __m128i NAME##_bits(const void *block)                                              \
    {                                                                                              \
        BLOCK(NAME);                                                                               \
        return book_bits_16(w->bits);                                                              \
    }
BITS_16(iq2_k)
BITS_16(iq3_k)
BITS_16(iq4_k)
BITS_16(iq5_k)
BITS_16(iq6_k)

/* ---- Scales ---- */

SUPER_AVX2 __m128i iq2_k_scales(const void *block)
{
    BLOCK(iq2_k);
    return _mm_sub_epi8(book_nibbles_16(w->scale), _mm_set1_epi8(8));
}

SUPER_AVX2 __m128i iq3_k_scales(const void *block)
{
    BLOCK(iq3_k);
    __m128i n = book_nibbles_16(w->scale), minus = book_bits_16(w->sign);
    __m128i scale = _mm_add_epi8(_mm_add_epi8(n, n), _mm_set1_epi8(1));
    return _mm_sub_epi8(_mm_xor_si128(scale, minus), minus);
}

SUPER_AVX2 __m128i iq4_k_scales(const void *block)
{
    BLOCK(iq4_k);
    return book_scales_6(w->scale_low, w->scale_high);
}

SUPER_AVX2 __m128i iq5_k_scales(const void *block)
{
    BLOCK(iq5_k);
    return book_scales_6(w->scale_low, w->scale_high);
}

SUPER_AVX2 __m128i iq6_k_scales(const void *block)
{
    BLOCK(iq6_k);
    return _mm_loadu_si128((const __m128i *)w->scale);
}

SUPER_AVX2 __m128i iq2_ks_scales(const void *block)
{
    BLOCK(iq2_ks);
    return book_scales_5(book_nibbles_8(w->scale), w->bits >> 8);
}

SUPER_AVX2 __m128i iq2_ks_bits(const void *block)
{
    BLOCK(iq2_ks);
    return book_twice(book_bits_16(w->bits));
}

SUPER_AVX2 __m128i iq3_ks_scales(const void *block)
{
    BLOCK(iq3_ks);
    return book_scales_5(book_nibbles_of_8(w->scale), w->bits);
}

SUPER_AVX2 __m128i iq3_ks_bits(const void *block)
{
    BLOCK(iq3_ks);
    return book_twice(book_bits_16(w->bits >> 8));
}

#define SCALES_7(NAME)                                                                             \
    SUPER_AVX2 __m128i NAME##_scales(const void *block)                                            \
    {                                                                                              \
        BLOCK(NAME);                                                                               \
        return book_scales_7(_mm_loadl_epi64((const __m128i *)w->scale));                          \
    }                                                                                              \
    SUPER_AVX2 __m128i NAME##_bits(const void *block)                                              \
    {                                                                                              \
        BLOCK(NAME);                                                                               \
        return book_bits_7(_mm_loadl_epi64((const __m128i *)w->scale));                            \
    }
SCALES_7(iq4_ks)
SCALES_7(iq5_ks)

/* The eight bytes of lowest bits of 64 words. */
SUPER_AVX2 __m128i iq4_kss_bytes(const void *block)
{
    BLOCK(iq4_kss);
    uint32_t part[2];
    EACH (i, 2) {
        __m256i v[2];
        EACH (j, 2)
            v[j] = _mm256_slli_epi16(
                _mm256_loadu_si256((const __m256i *)(w->word + 32 * i + 16 * j)), 15);
        __m256i both = _mm256_permute4x64_epi64(_mm256_packs_epi16(v[0], v[1]), 0xd8);
        part[i] = (uint32_t)_mm256_movemask_epi8(both);
    }
    return _mm_set_epi32(0, 0, (int32_t)part[1], (int32_t)part[0]);
}

SUPER_AVX2 __m128i iq4_kss_scales(const void *block)
{
    return book_scales_7(iq4_kss_bytes(block));
}

SUPER_AVX2 __m128i iq4_kss_bits(const void *block)
{
    return book_bits_7(iq4_kss_bytes(block));
}

SUPER_AVX2 __m128i iq2_kl_scales(const void *block)
{
    BLOCK(iq2_kl);
    __m128i six = _mm_or_si128(book_nibbles_of_8(w->scale_low), book_twos(w->scale_high));
    return book_twice(_mm_sub_epi8(six, _mm_set1_epi8(32)));
}

/* ---- Values and codes ---- */

/* Defines the values from the indices INDEX of elements 32s .. 32s + 31. */
#define VALUES_OF(NAME, BOOK, N, INDEX)                                                            \
    SUPER_AVX2 __m256i NAME##_values(const void *block, int s)                                     \
    {                                                                                              \
        BLOCK(NAME);                                                                               \
        return book_lookup((BOOK), (N), (INDEX));                                                  \
    }

/* Defines the codes, too, from the indices INDEX_512 of order[i]. */
#define VALUES(NAME, BOOK, N, INDEX, INDEX_512)                                                    \
    VALUES_OF(NAME, BOOK, N, INDEX)                                                                \
    SUPER_AVX512 void NAME##_codes(const uint8_t *const two[2], __m512i code[8])                   \
    {                                                                                              \
        __m512i one[2][4];                                                                         \
        EACH (h, 2) {                                                                              \
            const struct NAME##_block *w = (const void *)two[h];                                   \
            EACH (i, 4)                                                                            \
                one[h][i] = book_lookup_512((BOOK), (N), NAME##_layout.panel.offset, (INDEX_512)); \
        }                                                                                          \
        book_chains(one[0], one[1], code);                                                         \
    }

/* Codes of nibbles in the order of nibble_16: 32-bit words are ordered before they are split. */
SUPER_AVX512 void iq4_codes(__m512i q[4], __m512i code[8])
{
    book_transpose(q);
    EACH (c, 2)
        EACH (j, 4)
            code[4 * c + j] =
                book_lookup_512(quant_codebook_iq4, 16, 128, super_bits_avx512(q[j], 4 * c, 15));
}

#define CODES_NIBBLE_16(NAME)                                                                      \
    SUPER_AVX512 void NAME##_codes(const uint8_t *const two[2], __m512i code[8])                   \
    {                                                                                              \
        __m512i q[4];                                                                              \
        EACH (i, 4)                                                                                \
            q[i] = _mm512_loadu_si512(((const struct NAME##_block *)(const void *)two[i / 2])->q + \
                                      64 * (i % 2));                                               \
        iq4_codes(q, code);                                                                        \
    }

VALUES(iq2_k, quant_codebook_iq2, 16, book_pairs_avx2(w->q, s, 0), book_pairs_512(w->q, i))
VALUES(iq2_ks, quant_codebook_iq2, 16, book_pairs_avx2(w->q, s, 0), book_pairs_512(w->q, i))
#define THREE     _mm256_or_si256(book_pairs_avx2(w->q, s, 0), book_bit_avx2(w->high, s, 2))
#define THREE_512 _mm512_or_si512(book_pairs_512(w->q, i), book_bit_pairs_512(w->high, i, 2))
VALUES(iq3_k, quant_codebook_iq3, 16, THREE, THREE_512)
VALUES(iq3_ks, quant_codebook_iq3, 16, THREE, THREE_512)
VALUES_OF(iq4_k, quant_codebook_iq4, 16, book_nibbles_16_avx2(w->q, s))
VALUES_OF(iq4_ks, quant_codebook_iq4, 16, book_nibbles_16_avx2(w->q, s))
CODES_NIBBLE_16(iq4_k)
CODES_NIBBLE_16(iq4_ks)
#define FIVE     _mm256_or_si256(book_nibbles_32_avx2(w->q, s), book_bit_avx2(w->high, s, 4))
#define FIVE_512 _mm512_or_si512(book_nibbles_512(w->q, i), book_bit_nibbles_512(w->high, i, 4))
VALUES(iq5_k, quant_codebook_iq5, 32, FIVE, FIVE_512)
VALUES(iq5_ks, quant_codebook_iq5, 32, FIVE, FIVE_512)

/* Bits 5 and 4 of the indices of code[i]: two of book_pair in the lower half, the next two but one
 * in the upper. */
SUPER_AVX512 __m512i iq6_k_high(const uint8_t *high, int i)
{
    const int g = i % 2 * 2; /* bits g and g + 4 of each byte, to bit 4 */
    __m512i both = super_broadcast_32(high + i / 2 * 32);
    both = _mm512_rorv_epi32(both, super_set_halves((28 + g) % 32, g));
    return _mm512_and_si512(both, _mm512_set1_epi8(0x30));
}

VALUES(iq6_k, quant_codebook_iq6, 64,
       _mm256_or_si256(book_nibbles_32_avx2(w->q, s), book_pairs_avx2(w->high, s, 4)),
       _mm512_or_si512(book_nibbles_512(w->q, i), iq6_k_high(w->high, i)))

/* Undoes the exclusive or of the words of IQ4_KSS. */
SUPER_AVX2 __m256i iq4_kss_values(const void *block, int s)
{
    BLOCK(iq4_kss);
    __m128i v = _mm_loadu_si128((const __m128i *)(w->word + 8 * s));
    v = _mm_and_si128(v, _mm_set1_epi16((int16_t)0xfffe));
    v = _mm_xor_si128(v, _mm_srli_epi16(v, 1));
    uint8_t q[16];
    _mm_storeu_si128((__m128i *)q, v);
    return book_lookup(quant_codebook_iq4, 16, book_nibbles_16_avx2(q, 0));
}

SUPER_AVX512 void iq4_kss_codes(const uint8_t *const two[2], __m512i code[8])
{
    __m512i q[4];
    EACH (i, 4) {
        const struct iq4_kss_block *w = (const void *)two[i / 2];
        __m512i v = _mm512_loadu_si512(w->word + 32 * (i % 2));
        v = _mm512_and_si512(v, _mm512_set1_epi16((int16_t)0xfffe));
        q[i] = _mm512_xor_si512(v, _mm512_srli_epi16(v, 1));
    }
    iq4_codes(q, code);
}

/* Pairs of values for 16 indices: the first of each pair and the second in turn. */
SUPER_AVX2 __m256i iq2_kl_values(const void *block, int s)
{
    BLOCK(iq2_kl);
    __m128i low = _mm_loadu_si128((const __m128i *)(w->q + s / 2 * 16));
    __m256i both = super_bits(_mm256_castsi128_si256(low), s % 2 * 4, 15);
    __m256i high = _mm256_castsi128_si256(_mm_loadu_si128((const __m128i *)w->high));
    both = _mm256_or_si256(both, super_bits(high, s - 4, 16));
    __m128i first = _mm256_castsi256_si128(book_lookup(quant_codebook_kl[0], 32, both));
    __m128i second = _mm256_castsi256_si128(book_lookup(quant_codebook_kl[1], 32, both));
    return _mm256_set_m128i(_mm_unpackhi_epi8(first, second), _mm_unpacklo_epi8(first, second));
}

SUPER_AVX512 void iq2_kl_codes(const uint8_t *const two[2], __m512i code[8])
{
    const int offset = iq2_kl_layout.panel.offset;
    const __m512i move = _mm512_setr_epi32(28, 28, 28, 28, 30, 30, 30, 30, 0, 0, 0, 0, 2, 2, 2, 2);
    __m512i one[2][4];
    EACH (h, 2) {
        const struct iq2_kl_block *w = (const void *)two[h];
        const __m512i high = _mm512_broadcast_i32x4(_mm_loadu_si128((const __m128i *)w->high));
        EACH (n, 2) { /* bits 2b + n of 128-bit lane b, to bit 4 */
            __m512i fifth = _mm512_rorv_epi32(high, _mm512_add_epi32(move, _mm512_set1_epi32(n)));
            __m512i index = super_put_bits(fifth, 16, book_nibbles_512(w->q, n));
            __m512i first = book_lookup_512(quant_codebook_kl[0], 32, offset, index);
            __m512i second = book_lookup_512(quant_codebook_kl[1], 32, offset, index);
            one[h][2 * n] = _mm512_unpacklo_epi8(first, second);
            one[h][2 * n + 1] = _mm512_unpackhi_epi8(first, second);
        }
    }
    book_chains(one[0], one[1], code);
}

/* ---- Lanes of unpacking ---- */

#define LANES(NAME)                                                                                \
    SUPER_VBMI void NAME##_lanes(const void *const row[QUANT_PANEL_ROWS], int64_t at, int g,       \
                                 int half, __m512i high[4], __m512i index[8])
#define OFFSET(NAME, member) (at + (int64_t)offsetof(struct NAME##_block, member))

#define LANES_NIBBLE_16(NAME)                                                                      \
    LANES(NAME)                                                                                    \
    {                                                                                              \
        (void)high;                                                                                \
        super_rows_load_avx512(row, OFFSET(NAME, q) + 32 * g + 16 * half, index);                  \
        EACH (i, 4) index[4 + i] = _mm512_srli_epi16(index[i], 4);                                 \
    }
#define LANES_FIVE(NAME)                                                                           \
    LANES(NAME)                                                                                    \
    {                                                                                              \
        __m512i v[4];                                                                              \
        super_rows_load_avx512(row, OFFSET(NAME, q) + 32 * g + 16 * half, v);                      \
        if (g == 0) super_rows_load_avx512(row, OFFSET(NAME, high) + 16 * half, high);             \
        book_lanes_join(v, high, 2 * g - 4, 2 * g - 3, index);                                     \
    }

/* Pairs are in the order of nibble_32, too. */
LANES(iq3_k)
{
    __m512i v[4];
    super_rows_load_avx512(row, OFFSET(iq3_k, q) + g / 2 * 32 + 16 * half, v);
    if (g == 0) super_rows_load_avx512(row, OFFSET(iq3_k, high) + 16 * half, high);
    EACH (j, 2)
        EACH (i, 4)
            index[4 * j + i] = super_put_bits(super_move_avx512(high[i], 2 * g + j - 2), 4,
                                              super_bits_avx512(v[i], g % 2 * 4 + 2 * j, 3));
}

LANES_NIBBLE_16(iq4_k)
LANES_NIBBLE_16(iq4_ks)
LANES_FIVE(iq5_k)
LANES_FIVE(iq5_ks)

LANES(iq6_k)
{
    __m512i v[4];
    super_rows_load_avx512(row, OFFSET(iq6_k, q) + 32 * g + 16 * half, v);
    if (g % 2 == 0) super_rows_load_avx512(row, OFFSET(iq6_k, high) + 16 * g + 16 * half, high);
    book_lanes_join(v, high, g % 2 * 4 - 4, g % 2 * 4 - 2, index);
}

BOOK_UNPACK_VBMI(iq3_k, super_book_iq3, 16, false)
BOOK_UNPACK_VBMI(iq4_k, super_book_iq4, 16, true)
BOOK_UNPACK_VBMI(iq4_ks, super_book_iq4, 16, true)
BOOK_UNPACK_VBMI(iq5_k, super_book_iq5, 32, false)
BOOK_UNPACK_VBMI(iq5_ks, super_book_iq5, 32, false)
BOOK_UNPACK_VBMI(iq6_k, super_book_iq6, 64, false)

/* ---- Kernels ---- */

BOOK_KERNELS_BY_ONE(iq2_k, super_codes_first, iq2_k_bits, 5, book_order_pair, false)
BOOK_FUNCTIONS_BY_ONE(iq3_k, super_codes_first, iq3_k_bits, 4, book_order_pair, false)
BOOK_TABLE(iq3_k, [CPU_AVX512BF16] = {BOOK_MEMBERS_VBMI(iq3_k)})
BOOK_FUNCTIONS(iq4_k, super_codes_first, iq4_k_bits, 4, book_order_nibble_16, book_heads_6, false)

/* iq4_k_codes with VBMI: VPERMB ignores the two highest bits of an index, and the table has four
 * copies of the values, so that the bits above a nibble need no mask. A multiplication shifts,
 * because Zen has other ports for multiplications than for shifts and lookups. */
SUPER_VBMI void iq4_k_codes_vbmi(const uint8_t *const two[2], __m512i code[8])
{
    const __m512i values = _mm512_add_epi8(
        _mm512_broadcast_i32x4(_mm_loadu_si128((const __m128i *)quant_codebook_iq4)),
        _mm512_set1_epi8(-128));
    const size_t at = offsetof(struct iq4_k_block, q);
    __m512i q[4];
    EACH (i, 4) q[i] = _mm512_loadu_si512(two[i / 2] + at + 64 * (i % 2));
    book_transpose(q);
    EACH (j, 4) {
        const __m512i high = _mm512_mulhi_epu16(q[j], _mm512_set1_epi16(1 << 12)); /* >> 4 */
        code[j] = _mm512_permutexvar_epi8(q[j], values);
        code[4 + j] = _mm512_permutexvar_epi8(high, values);
    }
}

SUPER_VBMI void iq4_k_products_vbmi(int n, const uint8_t *const block[SUPER_STEP],
                                    const struct super_column *c, struct super_step *step)
{
    const struct book_kernel kernel = {book_heads_6_vbmi, iq4_k_codes_vbmi, &book_order_nibble_16,
                                       super_book_iq4.shift, false};
    book_products(n, &iq4_k_layout, &kernel, block, c, step);
}

/* On rows that are read one by one. Streams and lists have the loop without VBMI: each loop is 4 KB
 * of code. */
CPU_TARGET_AVX512BF16 static void iq4_k_gemv_vbmi(int64_t k, const struct quant_rows *rows,
                                                  const struct quant_act *a, float *out)
{
    if (rows->order != QUANT_ROWS_SINGLE)
        iq4_k_gemv_avx512(k, rows, a, out);
    else
        super_gemv_steps(1, 1, &iq4_k_layout, iq4_k_prepare, iq4_k_products_vbmi, k, rows, a, &out);
}

BOOK_TABLE(iq4_k, [CPU_AVX512BF16] = {BOOK_MEMBERS_VBMI(iq4_k), .gemv = iq4_k_gemv_vbmi})
BOOK_FUNCTIONS(iq5_k, super_codes_first, iq5_k_bits, 2, book_order_nibble_32, book_heads_6, false)
BOOK_TABLE(iq5_k, [CPU_AVX512BF16] = {BOOK_MEMBERS_VBMI(iq5_k)})
BOOK_FUNCTIONS_BY_ONE(iq6_k, super_codes_first, iq6_k_bits, 1, book_order_nibble_32, false)
BOOK_TABLE(iq6_k, [CPU_AVX512BF16] = {BOOK_MEMBERS_VBMI(iq6_k)})
BOOK_KERNELS_BY_ONE(iq2_ks, NULL, iq2_ks_bits, 5, book_order_pair, false)
BOOK_KERNELS_BY_ONE(iq3_ks, NULL, iq3_ks_bits, 4, book_order_pair, false)
BOOK_FUNCTIONS(iq4_ks, NULL, iq4_ks_bits, 4, book_order_nibble_16, book_heads_7, true)
BOOK_TABLE(iq4_ks, [CPU_AVX512BF16] = {BOOK_MEMBERS_VBMI(iq4_ks)})
BOOK_FUNCTIONS(iq5_ks, NULL, iq5_ks_bits, 2, book_order_nibble_32, book_heads_7, false)
BOOK_TABLE(iq5_ks, [CPU_AVX512BF16] = {BOOK_MEMBERS_VBMI(iq5_ks)})
BOOK_KERNELS_BY_ONE(iq4_kss, NULL, iq4_kss_bits, 4, book_order_nibble_16, true)
BOOK_KERNELS_BY_ONE(iq2_kl, NULL, NULL, 0, book_order_kl, true)

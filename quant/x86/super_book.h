/* quant/x86/super_book.h: private to quant/: the x86 kernels of the super-block types whose codes
 * are values of a book (quant/super/book.h).
 *
 * A type has four functions:
 *
 *     scales(block)        16 signed bytes: the scale of each 16 elements
 *     bits(block)          16 bytes: -1 where the sub-block's bit is set, otherwise 0; NULL: no bits
 *     values(block, s)     the values of elements 32s .. 32s + 31 without the bits' shift
 *     codes(block, code)   the values plus the form's offset, all 256 as unsigned bytes, in the
 *                          order of one of the tables below
 *
 * and BOOK_KERNELS defines its kernels. A shift is the same for all elements of a sub-block, so a
 * product adds it by the sums of activations, as it subtracts the offset. */
#ifndef QUANT_X86_SUPER_BOOK_H
#define QUANT_X86_SUPER_BOOK_H

#include "quant/super/book.h"
#include "quant/x86/super_codes.h"

typedef __m128i book_bytes(const void *block);
typedef void book_codes(const void *block, __m512i code[4]);

/* order[i][l]: the 16 elements (their number, times 16) of 128-bit lane l of code[i]. */
typedef uint8_t book_order[4][4];
static const book_order book_order_nibble_16 = {
    {0, 2, 4, 6}, {1, 3, 5, 7}, {8, 10, 12, 14}, {9, 11, 13, 15}};
static const book_order book_order_nibble_32 = {
    {0, 1, 4, 5}, {2, 3, 6, 7}, {8, 9, 12, 13}, {10, 11, 14, 15}};
static const book_order book_order_pair = {
    {0, 1, 8, 9}, {2, 3, 10, 11}, {4, 5, 12, 13}, {6, 7, 14, 15}};
static const book_order book_order_kl = {
    {0, 4, 8, 12}, {1, 5, 9, 13}, {2, 6, 10, 14}, {3, 7, 11, 15}};
static const book_order book_order_plain = {
    {0, 1, 2, 3}, {4, 5, 6, 7}, {8, 9, 10, 11}, {12, 13, 14, 15}};

struct book_kernel {
    book_bytes *scales, *bits;
    book_codes *codes;
    const book_order *order;
    int shift;
    bool pairs; /* code[0] and code[1] are of the same sub-blocks of 32, as are code[2] and [3] */
};

/* ---- Scales and bits ---- */

/* Each of the first eight bytes twice. */
SUPER_AVX2 __m128i book_twice(__m128i eight)
{
    return _mm_unpacklo_epi8(eight, eight);
}

/* Byte i is -1 if bit i of the word is set, otherwise 0. */
SUPER_AVX2 __m128i book_bits_16(uint16_t word)
{
    const __m128i bit = _mm_set1_epi64x((int64_t)0x8040201008040201);
    const __m128i place = _mm_setr_epi8(0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 1, 1, 1, 1);
    __m128i bytes = _mm_shuffle_epi8(_mm_cvtsi32_si128(word), place);
    return _mm_cmpeq_epi8(_mm_and_si128(bytes, bit), bit);
}

/* The low and the high nibbles of 8 bytes, in turn. */
SUPER_AVX2 __m128i book_nibbles_16(const uint8_t *at)
{
    __m128i v = _mm_loadl_epi64((const __m128i *)at);
    return _mm_and_si128(_mm_unpacklo_epi8(v, _mm_srli_epi16(v, 4)), _mm_set1_epi8(15));
}

/* The low and the high nibbles of 4 bytes, in turn. */
SUPER_AVX2 __m128i book_nibbles_8(const uint8_t *at)
{
    __m128i v = _mm_cvtsi32_si128((int)quant_load32(at));
    return _mm_and_si128(_mm_unpacklo_epi8(v, _mm_srli_epi16(v, 4)), _mm_set1_epi8(15));
}

/* The low nibbles of 4 bytes, then the high ones. */
SUPER_AVX2 __m128i book_nibbles_of_8(const uint8_t *at)
{
    __m128i v = _mm_cvtsi32_si128((int)quant_load32(at));
    return _mm_and_si128(_mm_unpacklo_epi32(v, _mm_srli_epi16(v, 4)), _mm_set1_epi8(15));
}

/* The 2-bit numbers of 4 bytes, from the lowest, times 16. */
SUPER_AVX2 __m128i book_twos(uint32_t bytes)
{
    __m128i v = _mm_cvtepu8_epi32(_mm_cvtsi32_si128((int)bytes));
    v = _mm_or_si128(v, _mm_slli_epi32(v, 6));
    v = _mm_or_si128(v, _mm_slli_epi32(v, 12));
    return _mm_and_si128(_mm_slli_epi32(v, 4), _mm_set1_epi8(0x30));
}

/* nibble + 16 * bit, minus 16, of eight scales, each twice. */
SUPER_AVX2 __m128i book_scales_5(__m128i nibbles, uint16_t bits)
{
    __m128i high = _mm_andnot_si128(book_bits_16(bits), _mm_set1_epi8(16)); /* 16 if not set */
    return book_twice(_mm_sub_epi8(nibbles, high));
}

/* Scales of IQ4_K and IQ5_K. */
SUPER_AVX2 __m128i book_scales_6(const uint8_t low[8], const uint8_t high[4])
{
    __m128i six = _mm_or_si128(book_nibbles_16(low), book_twos(quant_load32(high)));
    return _mm_sub_epi8(six, _mm_set1_epi8(32));
}

/* Scales and bits of IQ4_KS and IQ5_KS. */
SUPER_AVX2 __m128i book_scales_7(__m128i bytes)
{
    __m128i seven = _mm_and_si128(bytes, _mm_set1_epi8((char)254));
    return book_twice(_mm_sub_epi8(seven, _mm_set1_epi8(127)));
}

SUPER_AVX2 __m128i book_bits_7(__m128i bytes)
{
    const __m128i one = _mm_set1_epi8(1);
    return book_twice(_mm_cmpeq_epi8(_mm_and_si128(bytes, one), one));
}

/* ---- Values ---- */

/* Values of n (16, 32 or 64) for the lower bits of each byte, which are below n. */
SUPER_AVX2 __m256i book_lookup(const int8_t *value, int n, __m256i index)
{
    __m256i found[4];
    EACH (i, n / 16) {
        __m256i part =
            _mm256_broadcastsi128_si256(_mm_loadu_si128((const __m128i *)(value + 16 * i)));
        found[i] = _mm256_shuffle_epi8(part, index);
    }
    /* The bit that selects is moved to the highest of the byte. */
    EACH (i, n / 32)
        found[2 * i] =
            _mm256_blendv_epi8(found[2 * i], found[2 * i + 1], _mm256_slli_epi16(index, 3));
    return n == 64 ? _mm256_blendv_epi8(found[0], found[2], _mm256_slli_epi16(index, 2)) : found[0];
}

/* The same plus the offset, of 64 bytes. */
SUPER_AVX512 __m512i book_lookup_512(const int8_t *value, int n, int offset, __m512i index)
{
    __m512i found[4];
    EACH (i, n / 16) {
        __m512i part = _mm512_broadcast_i32x4(_mm_loadu_si128((const __m128i *)(value + 16 * i)));
        part = _mm512_add_epi8(part, _mm512_set1_epi8((char)offset));
        found[i] = _mm512_shuffle_epi8(part, index);
    }
    const __mmask64 odd = _mm512_test_epi8_mask(index, _mm512_set1_epi8(16));
    EACH (i, n / 32) found[2 * i] = _mm512_mask_mov_epi8(found[2 * i], odd, found[2 * i + 1]);
    if (n < 64) return found[0];
    return _mm512_mask_mov_epi8(found[0], _mm512_test_epi8_mask(index, _mm512_set1_epi8(32)),
                                found[2]);
}

/* Indices of elements 32s .. 32s + 31 of each plane. */
SUPER_AVX2 __m256i book_nibbles_16_avx2(const uint8_t *q, int s)
{
    __m256i both = _mm256_broadcastsi128_si256(_mm_loadu_si128((const __m128i *)(q + 16 * s)));
    __m256i moved = _mm256_srlv_epi32(both, _mm256_setr_epi32(0, 0, 0, 0, 4, 4, 4, 4));
    return _mm256_and_si256(moved, _mm256_set1_epi8(15));
}

SUPER_AVX2 __m256i book_nibbles_32_avx2(const uint8_t *q, int s)
{
    __m256i bytes = _mm256_loadu_si256((const __m256i *)(q + s / 2 * 32));
    return super_bits(bytes, s % 2 * 4, 15);
}

/* (Moved to the left by `up`.) */
SUPER_AVX2 __m256i book_pairs_avx2(const uint8_t *q, int s, int up)
{
    __m256i bytes = _mm256_loadu_si256((const __m256i *)(q + s / 4 * 32));
    return super_bits(bytes, s % 4 * 2 - up, 3 << up);
}

SUPER_AVX2 __m256i book_bit_avx2(const uint8_t *high, int s, int up)
{
    return super_bits(_mm256_loadu_si256((const __m256i *)high), s - up, 1 << up);
}

/* Indices of code[i] in the order of each plane. */
SUPER_AVX512 __m512i book_nibbles_512(const uint8_t *q, int i)
{
    return super_bits_avx512(_mm512_loadu_si512(q + i / 2 * 64), i % 2 * 4, 15);
}

/* In the order of pairs. */
SUPER_AVX512 __m512i book_pairs_512(const uint8_t *q, int i)
{
    return super_bits_avx512(_mm512_loadu_si512(q), 2 * i, 3);
}

/* Bits of book_bit for code[i] in the order of pairs, and of nibble_32. */
SUPER_AVX512 __m512i book_bit_pairs_512(const uint8_t *high, int i, int up)
{
    __m512i both = _mm512_rorv_epi32(super_broadcast_32(high),
                                     super_set_halves((32 + i - up) % 32, (36 + i - up) % 32));
    return _mm512_and_si512(both, _mm512_set1_epi8((char)(1 << up)));
}

SUPER_AVX512 __m512i book_bit_nibbles_512(const uint8_t *high, int i, int up)
{
    const int s = i / 2 * 4 + i % 2; /* of the lower half; s + 2 of the upper */
    __m512i both = _mm512_rorv_epi32(super_broadcast_32(high),
                                     super_set_halves((32 + s - up) % 32, (34 + s - up) % 32));
    return _mm512_and_si512(both, _mm512_set1_epi8((char)(1 << up)));
}

/* ---- Kernels ---- */

/* 16 bytes as words, in the order of super_scale_pair. */
SUPER_AVX2 __m256i book_even_odd(__m128i bytes)
{
    return _mm256_cvtepi8_epi16(_mm_shuffle_epi8(
        bytes, _mm_setr_epi8(0, 2, 4, 6, 8, 10, 12, 14, 1, 3, 5, 7, 9, 11, 13, 15)));
}

/* `shift` for each of elements 32s .. 32s + 31 whose bit is set. */
SUPER_AVX2 __m256i book_shifts(__m128i bits, int shift, int s)
{
    const __m256i place =
        _mm256_set_m128i(_mm_set1_epi8((char)(2 * s + 1)), _mm_set1_epi8((char)(2 * s)));
    __m256i set = _mm256_shuffle_epi8(_mm256_broadcastsi128_si256(bits), place);
    return _mm256_and_si256(set, _mm256_set1_epi8((char)shift));
}

SUPER_AVX2 __m256i book_isum(const struct super_input *in, book_bytes *scales, book_bytes *bits,
                             super_codes_of *values)
{
    const __m128i bytes = scales(in->block);
    const __m256i scale = book_even_odd(bytes);
    __m256i acc[2] = {_mm256_setzero_si256(), _mm256_setzero_si256()};
    if (bits)
        acc[0] = super_mad_sums(acc[0], book_even_odd(_mm_and_si128(bytes, bits(in->block))),
                                in->sums, in->j);
    EACH (s, 8) {
        __m256i value = values(in->block, s);
        __m256i x = _mm256_loadu_si256((const __m256i *)(in->q + 32 * s));
        /* VPMADDUBSW has one unsigned operand. 2 * 127 * 127 <= INT16_MAX. */
        __m256i products = _mm256_maddubs_epi16(_mm256_abs_epi8(value), _mm256_sign_epi8(x, value));
        acc[s % 2] = super_mad(acc[s % 2], products, super_scale_pair(scale, s));
    }
    return _mm256_add_epi32(acc[0], acc[1]);
}

/* Fills the column in the order of the codes, and its sums of two super-blocks each. */
SUPER_AVX512 void book_column(const book_order *order, const int8_t *const q[SUPER_STEP],
                              const int16_t *const sum[SUPER_STEP], struct super_column *c)
{
    for (int j = 0; j < SUPER_STEP; j++) {
        for (int i = 0; i < 16; i++)
            memcpy((int8_t *)&c->x[j][i / 4] + i % 4 * 16, q[j] + 16 * (*order)[i / 4][i % 4], 16);
        memcpy((int16_t *)&c->sum[j / 2] + j % 2 * 16, sum[j], 32);
    }
}

/* Scales times (shift where the bit is set, minus the offset), of two super-blocks. */
SUPER_AVX512 __m512i book_starts(const struct super_layout *layout,
                                 const struct book_kernel *kernel, __m128i one, __m128i other,
                                 const uint8_t *const block[2])
{
    const __m512i scale = _mm512_cvtepi8_epi16(_mm256_set_m128i(other, one));
    const __m512i less = _mm512_mullo_epi16(scale, _mm512_set1_epi16(layout->panel.offset));
    if (!kernel->bits) return _mm512_sub_epi16(_mm512_setzero_si512(), less);
    one = _mm_and_si128(one, kernel->bits(block[0]));
    other = _mm_and_si128(other, kernel->bits(block[1]));
    const __m512i set = _mm512_cvtepi8_epi16(_mm256_set_m128i(other, one));
    return _mm512_sub_epi16(_mm512_mullo_epi16(set, _mm512_set1_epi16((int16_t)kernel->shift)),
                            less);
}

/* Indices that give each lane of code[i] its scale of 16. */
SUPER_AVX512 __m512i book_places(const book_order *order, int i)
{
    const uint8_t *at = (*order)[i];
    return _mm512_setr_epi32(at[0], at[0], at[0], at[0], at[1], at[1], at[1], at[1], at[2], at[2],
                             at[2], at[2], at[3], at[3], at[3], at[3]);
}

/* Adds the products of a super-block with n columns to acc. */
SUPER_AVX512 void book_multiply(int n, const struct book_kernel *kernel, __m128i scales,
                                const void *block, const struct super_column *c, int j,
                                __m512i acc[SUPER_COLUMNS])
{
    const __m512i scale = _mm512_cvtepi8_epi32(scales), zero = _mm512_setzero_si512();
    __m512i code[4];
    kernel->codes(block, code);
    EACH (m, n) acc[m] = zero;
    EACH (i, 4) {
        if (kernel->pairs && i % 2 != 0) continue;
        const __m512i four = _mm512_permutexvar_epi32(book_places(kernel->order, i), scale);
        EACH (m, n) {
            __m512i products = _mm512_dpbusd_epi32(zero, code[i], c[m].x[j][i]);
            if (kernel->pairs)
                products = _mm512_dpbusd_epi32(products, code[i + 1], c[m].x[j][i + 1]);
            acc[m] = _mm512_add_epi32(acc[m], _mm512_mullo_epi32(products, four));
        }
    }
}

/* isum of the four super-blocks of a step, for n columns. */
SUPER_AVX512 void book_products(int n, const struct super_layout *layout,
                                const struct book_kernel *kernel,
                                const uint8_t *const block[SUPER_STEP],
                                const struct super_column *c, struct super_step *step)
{
    /* Orders the lanes so that every 128 bits have two of each super-block. */
    const __m512i lanes = _mm512_setr_epi32(0, 1, 8, 9, 2, 3, 10, 11, 4, 5, 12, 13, 6, 7, 14, 15);
    EACH (p, 2) {
        const uint8_t *const two[2] = {block[2 * p], block[2 * p + 1]};
        const __m128i one = kernel->scales(two[0]), other = kernel->scales(two[1]);
        const __m512i start = book_starts(layout, kernel, one, other, two);
        __m512i a[SUPER_COLUMNS], b[SUPER_COLUMNS];
        book_multiply(n, kernel, one, two[0], c, 2 * p, a);
        book_multiply(n, kernel, other, two[1], c, 2 * p + 1, b);
        EACH (m, n) {
            const __m512i sums = _mm512_add_epi32(_mm512_unpacklo_epi64(a[m], b[m]),
                                                  _mm512_unpackhi_epi64(a[m], b[m]));
            const __m512i less = _mm512_madd_epi16(start, c[m].sum[p]);
            step[m].isum[p] = _mm512_add_epi32(sums, _mm512_permutexvar_epi32(lanes, less));
        }
    }
    if (layout->header_bytes) return;
    const __m128i d = _mm_setr_epi16(
        (int16_t)quant_load16(block[0]), (int16_t)quant_load16(block[1]),
        (int16_t)quant_load16(block[2]), (int16_t)quant_load16(block[3]), 0, 0, 0, 0);
    EACH (m, n) step[m].d = d;
}

/* Defines the kernels of a type from NAME_scales, NAME_values and NAME_codes. HEAD: of
 * super_codes_unpack; BITS: NAME_bits or NULL; SHIFT: the book's; ORDER and PAIRS: of NAME_codes.
 */
#define BOOK_KERNELS(NAME, HEAD, BITS, SHIFT, ORDER, PAIRS)                                        \
    SUPER_DECODE_AVX2(NAME)                                                                        \
    SUPER_AVX2 __m256i NAME##_even_odd(const void *block)                                          \
    {                                                                                              \
        return book_even_odd(NAME##_scales(block));                                                \
    }                                                                                              \
    SUPER_AVX2 __m256i NAME##_shifted(const void *block, int s)                                    \
    {                                                                                              \
        book_bytes *const bits = BITS;                                                             \
        const __m256i value = NAME##_values(block, s);                                             \
        return bits ? _mm256_add_epi8(value, book_shifts(bits(block), (SHIFT), s)) : value;        \
    }                                                                                              \
    SUPER_AVX2 void NAME##_sums(const int16_t *const sum[SUPER_GROUP], struct super_sums *sums)    \
    {                                                                                              \
        super_sums_even_odd(sum, (SHIFT), sums);                                                   \
    }                                                                                              \
    SUPER_AVX2 __m256i NAME##_isum(const struct super_input *in)                                   \
    {                                                                                              \
        if (!NAME##_layout.header_bytes) in->group->d[in->j] = quant_load16(in->block);            \
        return book_isum(in, NAME##_scales, BITS, NAME##_values);                                  \
    }                                                                                              \
    CPU_TARGET_AVX2 static void NAME##_unpack_avx2(                                                \
        int64_t first, int64_t n_blocks, const void *const row[QUANT_PANEL_ROWS], void *panel)     \
    {                                                                                              \
        super_codes_unpack(&NAME##_layout, 1.0f, HEAD, NAME##_even_odd, NAME##_shifted, first,     \
                           n_blocks, row, panel);                                                  \
    }                                                                                              \
    SUPER_AVX512 void NAME##_prepare(const int8_t *const q[SUPER_STEP],                            \
                                     const int16_t *const sum[SUPER_STEP], struct super_column *c) \
    {                                                                                              \
        book_column(&(ORDER), q, sum, c);                                                          \
    }                                                                                              \
    SUPER_AVX512 void NAME##_products(int n, const uint8_t *const block[SUPER_STEP],               \
                                      const struct super_column *c, struct super_step *step)       \
    {                                                                                              \
        const struct book_kernel kernel = {NAME##_scales, BITS,    NAME##_codes,                   \
                                           &(ORDER),      (SHIFT), (PAIRS)};                       \
        book_products(n, &NAME##_layout, &kernel, block, c, step);                                 \
    }                                                                                              \
    SUPER_GEMV(NAME, NAME##_sums, NULL, NAME##_isum, NAME##_prepare, NAME##_products)              \
    SUPER_GEMV_PAIR(NAME, NAME##_prepare, NAME##_products)                                         \
    const struct quant_kernel quant_x86_##NAME[CPU_LEVEL_COUNT] = {                                \
        [CPU_AVX2] = {SUPER_MEMBERS_AVX2(NAME)},                                                   \
        [CPU_AVX512] = {SUPER_GEMV_MEMBERS(NAME)},                                                 \
    };

#endif

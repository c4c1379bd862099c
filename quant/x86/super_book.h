/* quant/x86/super_book.h: private to quant/: the x86 kernels of the super-block types whose codes
 * are values of a book (quant/super/book.h).
 *
 * A type has four functions:
 *
 *     scales(block)        16 signed bytes: the scale of each 16 elements
 *     bits(block)          16 bytes: -1 where the sub-block's bit is set, otherwise 0; NULL: no bits
 *     values(block, s)     the values of elements 32s .. 32s + 31 without the bits' shift
 *     codes(two, code)     the values plus the form's offset as unsigned bytes, of two super-blocks
 *                          in one of the orders below
 *
 * and BOOK_KERNELS defines its kernels. A shift is the same for all elements of a sub-block, so a
 * product adds it by the sums of activations, as it subtracts the offset.
 *
 * With AVX-512 the codes of super-blocks a and b are in eight registers: chain 0 (code[0] to [3])
 * and chain 1 (code[4] to [7]). Dword j of 128-bit lane l of all registers of a chain belongs to
 * one sub-block of 16, so the products of a chain are added up before they are multiplied by a
 * scale:
 *
 *     dword of lane l      3               2               1               0
 *     of chain c           b order[c+2][l] b order[c][l]   a order[c+2][l] a order[c][l]
 *
 * Register j of a chain has dword j of each of these sub-blocks. */
#pragma once

#include "quant/super/book.h"
#include "quant/x86/super_codes.h"

typedef __m128i book_bytes(const void *block);
typedef void book_codes(const uint8_t *const two[2], __m512i code[8]);

/* order[i][l]: see above. */
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
static const book_order book_order_halves = {
    {0, 4, 8, 12}, {2, 6, 10, 14}, {1, 5, 9, 13}, {3, 7, 11, 15}};

/* The heads of four super-blocks, 0 to 3. */
struct book_heads {
    __m512i scales; /* 16 bytes of super-block j in 128-bit lane j */
    __mmask64 bits; /* bit 16j + s: that of sub-block s of super-block j */
    __m128i d;      /* binary16, in types without a header */
};
typedef void book_heads_of(const uint8_t *const block[SUPER_STEP], struct book_heads *heads);

struct book_kernel {
    book_heads_of *heads;
    book_codes *codes;
    const book_order *order;
    int shift;
    bool one_scale; /* both chains have the scales of chain 0 */
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

/* Values plus the offset, of 64 bytes. */
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

/* ---- Products, AVX-512 ---- */

/* Transposes the dwords of each 128-bit lane: dword i of v[j] becomes dword j of v[i]. */
SUPER_AVX512 void book_transpose(__m512i v[4])
{
    const __m512i a = _mm512_unpacklo_epi32(v[0], v[1]), b = _mm512_unpacklo_epi32(v[2], v[3]);
    const __m512i c = _mm512_unpackhi_epi32(v[0], v[1]), d = _mm512_unpackhi_epi32(v[2], v[3]);
    v[0] = _mm512_unpacklo_epi64(a, b);
    v[1] = _mm512_unpackhi_epi64(a, b);
    v[2] = _mm512_unpacklo_epi64(c, d);
    v[3] = _mm512_unpackhi_epi64(c, d);
}

/* Makes two chains of the registers of super-blocks a and b, which have order[i] in [i]. */
SUPER_AVX512 void book_chains(const __m512i a[4], const __m512i b[4], __m512i chains[8])
{
    EACH (c, 2) {
        __m512i *chain = chains + 4 * c;
        chain[0] = a[c];
        chain[1] = a[c + 2];
        chain[2] = b[c];
        chain[3] = b[c + 2];
        book_transpose(chain);
    }
}

/* Heads from the functions of one super-block. */
SUPER_AVX512 void book_heads_by_one(const struct super_layout *layout, book_bytes *scales,
                                    book_bytes *bits, const uint8_t *const block[SUPER_STEP],
                                    struct book_heads *heads)
{
    __m128i scale[SUPER_STEP], set[SUPER_STEP];
    EACH (j, SUPER_STEP) {
        scale[j] = scales(block[j]);
        set[j] = bits ? bits(block[j]) : _mm_setzero_si128();
    }
    heads->scales = super_join_16(scale);
    heads->bits = bits ? _mm512_movepi8_mask(super_join_16(set)) : 0;
    heads->d = _mm_setzero_si128();
    if (!layout->header_bytes)
        heads->d = _mm_setr_epi16((int16_t)quant_load16(block[0]), (int16_t)quant_load16(block[1]),
                                  (int16_t)quant_load16(block[2]), (int16_t)quant_load16(block[3]),
                                  0, 0, 0, 0);
}

/* d of four super-blocks, from the first two bytes of each lane. */
SUPER_AVX512 __m128i book_heads_d(__m512i heads)
{
    const __m512i first = _mm512_setr_epi32(0, 4, 8, 12, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0);
    return super_split_words(_mm512_castsi512_si128(_mm512_permutexvar_epi32(first, heads)));
}

/* The bits of 16 sub-blocks, from bytes 2 and 3 of each lane. */
SUPER_AVX512 __mmask64 book_heads_bits(__m512i heads)
{
    const __m512i place =
        _mm512_broadcast_i32x4(_mm_setr_epi8(2, 2, 2, 2, 2, 2, 2, 2, 3, 3, 3, 3, 3, 3, 3, 3));
    return _mm512_test_epi8_mask(_mm512_shuffle_epi8(heads, place),
                                 _mm512_set1_epi64((int64_t)0x8040201008040201));
}

/* The low and the high nibbles in turn of the eight bytes from byte `at` on of each lane. */
SUPER_AVX512 __m512i book_heads_nibbles(__m512i heads, int at)
{
    const __m128i twice = _mm_setr_epi8(0, 0, 1, 1, 2, 2, 3, 3, 4, 4, 5, 5, 6, 6, 7, 7);
    const __m512i v = _mm512_shuffle_epi8(
        heads, _mm512_broadcast_i32x4(_mm_add_epi8(twice, _mm_set1_epi8((char)at))));
    const __m512i low = _mm512_and_si512(v, _mm512_set1_epi16(15));
    return _mm512_ternarylogic_epi32(_mm512_srli_epi16(v, 4), _mm512_set1_epi16(0xf00), low, 0xea);
}

/* book_scales_6 of blocks that begin as those of IQ4_K and IQ5_K. */
SUPER_AVX512 void book_heads_6(const uint8_t *const block[SUPER_STEP], struct book_heads *heads)
{
    const __m512i v = super_heads_avx512(block, 0);
    const __m512i four =
        _mm512_broadcast_i32x4(_mm_setr_epi8(4, 4, 4, 4, 5, 5, 5, 5, 6, 6, 6, 6, 7, 7, 7, 7));
    __m512i twos = _mm512_shuffle_epi8(v, four); /* bits 2j + 1, 2j of byte j are moved to 5, 4 */
    twos = _mm512_maskz_mov_epi8(0x1111111111111111, twos);
    twos = _mm512_or_si512(twos, _mm512_slli_epi32(twos, 6));
    twos = _mm512_or_si512(_mm512_slli_epi32(twos, 4), _mm512_slli_epi32(twos, 16));
    const __m512i six = super_put_bits(twos, 0x30, book_heads_nibbles(v, 8));
    heads->scales = _mm512_sub_epi8(six, _mm512_set1_epi8(32));
    heads->bits = book_heads_bits(v);
    heads->d = book_heads_d(v);
}

/* As book_heads_6, with VBMI: a byte of VPMULTISHIFTQB is any eight adjacent bits of its qword.
 * `low`: nibble i of bytes 8 to 15 in bits 3 to 0; `high`: pair i of bytes 4 to 7 in 5 and 4. */
SUPER_VBMI void book_heads_6_vbmi(const uint8_t *const block[SUPER_STEP], struct book_heads *heads)
{
    const __m512i v = super_heads_avx512(block, 0);
    const __m512i four = _mm512_broadcast_i32x4(
        _mm_setr_epi8(0, 4, 8, 12, 16, 20, 24, 28, 32, 36, 40, 44, 48, 52, 56, 60));
    const __m512i two = _mm512_broadcast_i32x4(
        _mm_setr_epi8(28, 30, 32, 34, 36, 38, 40, 42, 44, 46, 48, 50, 52, 54, 56, 58));
    const __m512i low = _mm512_multishift_epi64_epi8(four, _mm512_unpackhi_epi64(v, v));
    const __m512i high = _mm512_multishift_epi64_epi8(two, _mm512_unpacklo_epi64(v, v));
    const __m512i fifteen = _mm512_set1_epi8(15);
    __m512i six = _mm512_ternarylogic_epi32(fifteen, low, high, 0xca); /* low where fifteen is 1 */
    six = _mm512_and_si512(six, _mm512_set1_epi8(63));
    heads->scales = _mm512_sub_epi8(six, _mm512_set1_epi8(32));
    heads->bits = book_heads_bits(v);
    heads->d = book_heads_d(v);
}

/* book_scales_7 and book_bits_7 of blocks that begin as those of IQ4_KS and IQ5_KS. */
SUPER_AVX512 void book_heads_7(const uint8_t *const block[SUPER_STEP], struct book_heads *heads)
{
    const __m512i v = super_heads_avx512(block, 0), twice = _mm512_unpacklo_epi8(v, v);
    const __m512i seven = _mm512_and_si512(twice, _mm512_set1_epi8((char)254));
    heads->scales = _mm512_sub_epi8(seven, _mm512_set1_epi8(127));
    heads->bits = _mm512_test_epi8_mask(twice, _mm512_set1_epi8(1));
    heads->d = _mm_setzero_si128();
}

/* The places of scales, of super-blocks a and b as 32 words, that give each dword of the chains the
 * scale of chain 0 (lower word) and that of chain 1. */
SUPER_AVX512 __m512i book_places(const book_order *order)
{
    int16_t place[32];
    for (int i = 0; i < 16; i++)
        EACH (c, 2) place[2 * i + c] = (int16_t)((*order)[c + i % 2 * 2][i / 4] + i % 4 / 2 * 16);
    return _mm512_loadu_si512(place);
}

/* Fills the column in the order of the codes, and its sums in the order of their scales. */
SUPER_AVX512 void book_column(const book_order *order, const int8_t *const q[SUPER_STEP],
                              const int16_t *const sum[SUPER_STEP], struct super_column *c)
{
    for (int p = 0; p < 2; p++) {
        __m512i from[2][4];
        int16_t sums[32];
        for (int h = 0; h < 2; h++) {
            for (int i = 0; i < 16; i++)
                memcpy((int8_t *)&from[h][i / 4] + i % 4 * 16,
                       q[2 * p + h] + 16 * (*order)[i / 4][i % 4], 16);
            memcpy(sums + 16 * h, sum[2 * p + h], 32);
        }
        book_chains(from[0], from[1], c->x[2 * p]);
        c->sum[p] = _mm512_permutexvar_epi16(book_places(order), _mm512_loadu_si512(sums));
    }
}

/* isum of the four super-blocks of a step, for n columns. */
SUPER_AVX512 void book_products(int n, const struct super_layout *layout,
                                const struct book_kernel *kernel,
                                const uint8_t *const block[SUPER_STEP],
                                const struct super_column *column, struct super_step *step)
{
    const __m512i places = book_places(kernel->order), zero = _mm512_setzero_si512();
    const __m512i less = _mm512_set1_epi16((int16_t)-layout->panel.offset);
    const __m512i shifted = _mm512_set1_epi16((int16_t)(kernel->shift - layout->panel.offset));
    struct book_heads heads;
    kernel->heads(block, &heads);
    EACH (p, 2) {
        const __m256i bytes = p == 0 ? _mm512_castsi512_si256(heads.scales)
                                     : _mm512_extracti64x4_epi64(heads.scales, 1);
        const __mmask32 bits = (__mmask32)(heads.bits >> 32 * p);
        const __m512i plain = _mm512_cvtepi8_epi16(bytes);
        const __m512i scale = _mm512_permutexvar_epi16(places, plain);
        const __m512i start = _mm512_permutexvar_epi16(
            places, _mm512_mullo_epi16(plain, _mm512_mask_blend_epi16(bits, less, shifted)));
        const __m512i first = _mm512_srai_epi32(_mm512_slli_epi32(scale, 16), 16);
        const __m512i second = _mm512_srai_epi32(scale, 16);
        __m512i code[8];
        kernel->codes(block + 2 * p, code);
        EACH (m, n) {
            const __m512i *x = column[m].x[2 * p];
            __m512i chain[2] = {zero, zero};
            EACH (j, 4)
                EACH (c, 2) chain[c] = _mm512_dpbusd_epi32(chain[c], code[4 * c + j], x[4 * c + j]);
            __m512i isum;
            if (kernel->one_scale)
                isum = _mm512_mullo_epi32(_mm512_add_epi32(chain[0], chain[1]), first);
            else
                isum = _mm512_add_epi32(_mm512_mullo_epi32(chain[0], first),
                                        _mm512_mullo_epi32(chain[1], second));
            step[m].isum[p] = _mm512_dpwssd_epi32(isum, start, column[m].sum[p]);
        }
    }
    EACH (m, n) step[m].d = heads.d;
}

/* ---- Unpacking with VBMI: rows are lanes ---- */

/* Indices, in the lower six bits of bytes, of the words of two sub-blocks of 16 rows, whose blocks
 * begin `at` bytes after row[r]; g < 4, half < 2. Bits above those that the book has are arbitrary.
 *
 *     order         index[0] to [3]: sub-block     index[4] to [7]
 *     nibble_16     4g + 2 half                    4g + 2 half + 1
 *     nibble_32     4g + half                      4g + half + 2
 *
 * `high`: bits that later g need, too. */
typedef void book_lanes(const void *const row[QUANT_PANEL_ROWS], int64_t at, int g, int half,
                        __m512i high[4], __m512i index[8]);

/* The nibbles of v, below bits of `high` that are moved right by `low` or `up`. */
SUPER_AVX512 void book_lanes_join(const __m512i v[4], const __m512i high[4], int low, int up,
                                  __m512i index[8])
{
    const __m512i nibble = _mm512_set1_epi8(15);
    EACH (i, 4) {
        index[i] = _mm512_ternarylogic_epi32(nibble, v[i], super_move_avx512(high[i], low), 0xca);
        index[4 + i] = _mm512_ternarylogic_epi32(nibble, _mm512_srli_epi16(v[i], 4),
                                                 super_move_avx512(high[i], up), 0xca);
    }
}

/* Stores the scales of 16 rows, 16 bytes each, as pairs of words. */
SUPER_AVX512 void book_scales_put(const void *const scales[QUANT_PANEL_ROWS], int sub_len,
                                  struct quant_panel256 *out)
{
    /* Bytes 0 and 1 of each row, or 0 and 2, become the upper ones of words. */
    const __m512i place = _mm512_broadcast_i32x4(
        sub_len == 16 ? _mm_setr_epi8(-1, 0, -1, 1, -1, 4, -1, 5, -1, 8, -1, 9, -1, 12, -1, 13)
                      : _mm_setr_epi8(-1, 0, -1, 2, -1, 4, -1, 6, -1, 8, -1, 10, -1, 12, -1, 14));
    const int pairs = 32 / sub_len; /* in four bytes */
    __m512i v[4];
    super_rows_load_avx512(scales, 0, v);
    EACH (i, 4)
        EACH (h, pairs) {
            const __m512i two =
                _mm512_shuffle_epi8(h == 0 ? v[i] : _mm512_srli_epi32(v[i], 16), place);
            _mm512_storeu_si512(out->scale[pairs * i + h], _mm512_srai_epi16(two, 8));
        }
}

/* The values plus the offset of n indices, in copies. */
SUPER_AVX512 __m512i book_table(const int8_t *value, int n, int offset)
{
    __m512i table = n == 16   ? _mm512_broadcast_i32x4(_mm_loadu_si128((const __m128i *)value))
                    : n == 32 ? _mm512_broadcast_i64x4(_mm256_loadu_si256((const __m256i *)value))
                              : _mm512_loadu_si512(value);
    return _mm512_add_epi8(table, _mm512_set1_epi8((char)offset));
}

/* Unpacks types of n values. One VPERMB looks 64 indices up; it ignores
 * their two highest bits. */
SUPER_VBMI void book_unpack_vbmi(const struct super_layout *layout, book_bytes *scales,
                                 book_bytes *bits, const struct super_book *book, int n,
                                 bool nibble_16, book_lanes *lanes, int64_t first, int64_t n_blocks,
                                 const void *const row[QUANT_PANEL_ROWS],
                                 struct quant_panel256 *out)
{
    const __m512i table = book_table(book->value, n, layout->panel.offset);
    const __m512i shift = _mm512_set1_epi8((char)book->shift);
    for (int64_t b = first; b < first + n_blocks; b++, out++) {
        const int64_t at = (int64_t)layout->header_bytes + b * (int64_t)layout->block_bytes;
        const void *scale_at[QUANT_PANEL_ROWS];
        uint8_t scale[QUANT_PANEL_ROWS][16];
        uint16_t set[QUANT_PANEL_ROWS];
        _Pragma("GCC unroll 1") for (int r = 0; r < QUANT_PANEL_ROWS; r++)
        {
            const void *block = super_block_at(layout, row[r], b);
            _mm_storeu_si128((__m128i *)scale[r], scales(block));
            set[r] = _mm_movepi8_mask(bits(block));
            out->d[r] =
                layout->header_bytes ? super_row_d(layout, row[r]) : _cvtsh_ss(quant_load16(block));
            scale_at[r] = scale[r];
        }
        book_scales_put(scale_at, layout->panel.sub_len, out);
        _mm512_storeu_ps(out->m, _mm512_setzero_ps());
        const __m256i sets = _mm256_loadu_si256((const __m256i *)set);
        for (int half = 0; half < 2; half++) {
            __m512i high[4];
            EACH (g, 4) {
                __m512i index[8];
                lanes(row, at, g, half, high, index);
                EACH (j, 2) {
                    const int s = 4 * g + (nibble_16 ? 2 * half + j : half + 2 * j);
                    const __mmask16 shifted =
                        _mm256_test_epi16_mask(sets, _mm256_set1_epi16((int16_t)(1 << s)));
                    EACH (i, 4) {
                        const __m512i code = _mm512_permutexvar_epi8(index[4 * j + i], table);
                        _mm512_storeu_si512(out->q[4 * s + i],
                                            _mm512_mask_add_epi32(code, shifted, code, shift));
                    }
                }
            }
        }
    }
}

/* Defines NAME_unpack_vbmi from NAME_scales, NAME_bits and NAME_lanes. */
#define BOOK_UNPACK_VBMI(NAME, BOOK, N, NIBBLE_16)                                                 \
    QUANT_UNPACK_AT(NAME##_unpack_vbmi, CPU_TARGET_AVX512BF16,                                     \
                    book_unpack_vbmi(&NAME##_layout, NAME##_scales, NAME##_bits, &(BOOK), (N),     \
                                     (NIBBLE_16), NAME##_lanes, first, n_blocks, row, panel))
#define BOOK_MEMBERS_VBMI(NAME) .unpack = NAME##_unpack_vbmi, .panel = &NAME##_layout.panel

/* Defines the functions of a type from NAME_scales, NAME_values and NAME_codes. HEAD: of
 * super_codes_unpack; BITS: NAME_bits or NULL; SHIFT: the book's; ORDER: of NAME_codes; HEADS: a
 * function that reads four super-blocks; ONE_SCALE: of struct book_kernel. */
#define BOOK_FUNCTIONS(NAME, HEAD, BITS, SHIFT, ORDER, HEADS, ONE_SCALE)                           \
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
    QUANT_UNPACK_AT(NAME##_unpack_avx2, CPU_TARGET_AVX2,                                           \
                    super_codes_unpack(&NAME##_layout, 1.0f, HEAD, NAME##_even_odd,                \
                                       NAME##_shifted, first, n_blocks, row, panel))               \
    SUPER_AVX512 void NAME##_prepare(const int8_t *const q[SUPER_STEP],                            \
                                     const int16_t *const sum[SUPER_STEP], struct super_column *c) \
    {                                                                                              \
        book_column(&(ORDER), q, sum, c);                                                          \
    }                                                                                              \
    SUPER_AVX512 void NAME##_products(int n, const uint8_t *const block[SUPER_STEP],               \
                                      const struct super_column *c, struct super_step *step)       \
    {                                                                                              \
        const struct book_kernel kernel = {HEADS, NAME##_codes, &(ORDER), (SHIFT), (ONE_SCALE)};   \
        book_products(n, &NAME##_layout, &kernel, block, c, step);                                 \
    }                                                                                              \
    SUPER_GEMV(NAME, NAME##_sums, NULL, NAME##_isum, NAME##_prepare, NAME##_products)              \
    SUPER_GEMV_PAIR(NAME, NAME##_prepare, NAME##_products)

/* Defines its kernels; further rows may follow. */
#define BOOK_TABLE(NAME, ...)                                                                      \
    const struct quant_kernel quant_x86_##NAME[CPU_LEVEL_COUNT] = {                                \
        [CPU_AVX2] = {SUPER_MEMBERS_AVX2(NAME)},                                                   \
        [CPU_AVX512] = {SUPER_GEMV_MEMBERS(NAME)},                                                 \
        __VA_ARGS__};

#define BOOK_KERNELS(NAME, HEAD, BITS, SHIFT, ORDER, HEADS, ONE_SCALE)                             \
    BOOK_FUNCTIONS(NAME, HEAD, BITS, SHIFT, ORDER, HEADS, ONE_SCALE)                               \
    BOOK_TABLE(NAME, )

/* Define them with heads that are read one by one. */
#define BOOK_FUNCTIONS_BY_ONE(NAME, HEAD, BITS, SHIFT, ORDER, ONE_SCALE)                           \
    SUPER_AVX512 void NAME##_heads_by_one(const uint8_t *const block[SUPER_STEP],                  \
                                          struct book_heads *heads)                                \
    {                                                                                              \
        book_heads_by_one(&NAME##_layout, NAME##_scales, BITS, block, heads);                      \
    }                                                                                              \
    BOOK_FUNCTIONS(NAME, HEAD, BITS, SHIFT, ORDER, NAME##_heads_by_one, ONE_SCALE)

#define BOOK_KERNELS_BY_ONE(NAME, HEAD, BITS, SHIFT, ORDER, ONE_SCALE)                             \
    BOOK_FUNCTIONS_BY_ONE(NAME, HEAD, BITS, SHIFT, ORDER, ONE_SCALE)                               \
    BOOK_TABLE(NAME, )

/* quant/x86/trellis_types_x86.c: the kernels of IQ1_KT to IQ4_KT (quant/super/trellis.h) for
 * x86-64: those of the types with books, with generated values. */
#include "quant/super/iq1_kt.h"
#include "quant/super/iq2_kt.h"
#include "quant/super/iq3_kt.h"
#include "quant/super/iq4_kt.h"
#include "quant/x86/super_book.h"
#include "quant/x86/types_x86.h"

/* A type's block as `w`. */
#define BLOCK(NAME) const struct NAME##_block *w = block

/* Powers of the factor, from the first. */
#define P1 ((int32_t)TRELLIS_FACTOR)
#define P2 ((int32_t)(TRELLIS_FACTOR * TRELLIS_FACTOR))
#define P3 ((int32_t)(TRELLIS_FACTOR * (uint32_t)P2))
#define P4 ((int32_t)(TRELLIS_FACTOR * (uint32_t)P3))
#define P5 ((int32_t)(TRELLIS_FACTOR * (uint32_t)P4))
#define P6 ((int32_t)(TRELLIS_FACTOR * (uint32_t)P5))
#define P7 ((int32_t)(TRELLIS_FACTOR * (uint32_t)P6))
#define P8 ((int32_t)(TRELLIS_FACTOR * (uint32_t)P7))

/* ---- Scales ---- */

SUPER_AVX2 __m128i trellis_book(__m128i index)
{
    return book_twice(
        _mm_shuffle_epi8(_mm_loadu_si128((const __m128i *)quant_codebook_iq4), index));
}

SUPER_AVX2 __m128i iq1_kt_scales(const void *block)
{
    BLOCK(iq1_kt);
    __m128i bytes = _mm_loadl_epi64((const __m128i *)w->scale);
    return trellis_book(_mm_and_si128(bytes, _mm_set1_epi8(15)));
}

SUPER_AVX2 __m128i iq2_kt_scales(const void *block)
{
    BLOCK(iq2_kt);
    return trellis_book(book_nibbles_of_8(w->scale));
}

SUPER_AVX2 __m128i iq3_kt_scales(const void *block)
{
    BLOCK(iq3_kt);
    return book_twice(book_nibbles_of_8(w->scale));
}

SUPER_AVX2 __m128i iq4_kt_scales(const void *block)
{
    BLOCK(iq4_kt);
    __m256i head = _mm256_srli_epi32(_mm256_loadu_si256((const __m256i *)w->head), 1);
    head = _mm256_and_si256(head, _mm256_set1_epi32(127));
    __m128i eight =
        _mm_packs_epi32(_mm256_castsi256_si128(head), _mm256_extracti128_si256(head, 1));
    return book_twice(_mm_sub_epi8(_mm_packs_epi16(eight, eight), _mm_set1_epi8(64)));
}

/* ---- Values, AVX2 ---- */

/* The sums of the bytes of eight generated numbers. */
SUPER_AVX2 __m256i trellis_sums(__m256i starts, __m256i powers)
{
    __m256i six =
        _mm256_and_si256(_mm256_mullo_epi32(starts, powers), _mm256_set1_epi32(0x3f3f3f3f));
    __m256i pairs = _mm256_maddubs_epi16(six, _mm256_set1_epi8(1));
    return _mm256_madd_epi16(pairs, _mm256_set1_epi16(1));
}

/* 32 values from the sums of each eight. */
SUPER_AVX2 __m256i trellis_join(const __m256i sum[4])
{
    __m256i bytes =
        _mm256_packus_epi16(_mm256_packs_epi32(sum[0], sum[1]), _mm256_packs_epi32(sum[2], sum[3]));
    bytes = _mm256_permutevar8x32_epi32(bytes, _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7));
    return _mm256_sub_epi8(bytes, _mm256_set1_epi8(126));
}

#define VALUES_8(NAME)                                                                             \
    SUPER_AVX2 __m256i NAME##_generated(const void *block, int s)                                  \
    {                                                                                              \
        BLOCK(NAME);                                                                               \
        const __m256i powers = _mm256_setr_epi32(P1, P2, P3, P4, P5, P6, P7, P8);                  \
        __m256i sum[4];                                                                            \
        EACH (g, 4)                                                                                \
            sum[g] = trellis_sums(_mm256_set1_epi32((int32_t)NAME##_start(w, 4 * s + g)), powers); \
        return trellis_join(sum);                                                                  \
    }
VALUES_8(iq1_kt)
VALUES_8(iq2_kt)
VALUES_8(iq3_kt)
#define iq1_kt_values iq1_kt_generated
#define iq2_kt_values iq2_kt_generated

SUPER_AVX2 __m256i iq3_kt_values(const void *block, int s)
{
    BLOCK(iq3_kt);
    const __m256i size = _mm256_abs_epi8(iq3_kt_generated(block, s));
    const __m256i minus = _mm256_sub_epi8(_mm256_setzero_si256(), book_bit_avx2(w->sign, s, 0));
    return _mm256_sub_epi8(_mm256_xor_si256(size, minus), minus);
}

SUPER_AVX2 __m256i iq4_kt_values(const void *block, int s)
{
    BLOCK(iq4_kt);
    const __m256i powers = _mm256_setr_epi32(P1, P2, P3, P4, P1, P2, P3, P4);
    __m256i sum[4];
    EACH (g, 4) {
        const int32_t one = (int32_t)iq4_kt_start(w, 8 * s + 2 * g),
                      other = (int32_t)iq4_kt_start(w, 8 * s + 2 * g + 1);
        sum[g] = trellis_sums(_mm256_set_m128i(_mm_set1_epi32(other), _mm_set1_epi32(one)), powers);
    }
    return trellis_join(sum);
}

/* ---- Codes, AVX-512 ---- */

/* The sums of the bytes of 16 generated numbers, plus 2: the codes. */
SUPER_AVX512 __m512i trellis_sums_512(__m512i starts, __m512i powers)
{
    const __m512i six =
        _mm512_and_si512(_mm512_mullo_epi32(starts, powers), _mm512_set1_epi32(0x3f3f3f3f));
    return _mm512_dpbusd_epi32(_mm512_set1_epi32(TRELLIS_OFFSET - 126), six, _mm512_set1_epi8(1));
}

/* Codes of 64 elements: dword j of code[i] is in 128-bit lane i of part[j % 4]. */
SUPER_AVX512 __m512i trellis_join_512(const __m512i part[4])
{
    return _mm512_packus_epi16(_mm512_packs_epi32(part[0], part[1]),
                               _mm512_packs_epi32(part[2], part[3]));
}

/* Codes from 16 starts of groups of 4. */
SUPER_AVX512 __m512i trellis_codes_4(__m512i starts)
{
    const __m512i powers = _mm512_broadcast_i32x4(_mm_setr_epi32(P1, P2, P3, P4));
    const __m512i part[4] = {trellis_sums_512(_mm512_shuffle_epi32(starts, 0x00), powers),
                             trellis_sums_512(_mm512_shuffle_epi32(starts, 0x55), powers),
                             trellis_sums_512(_mm512_shuffle_epi32(starts, 0xaa), powers),
                             trellis_sums_512(_mm512_shuffle_epi32(starts, 0xff), powers)};
    return trellis_join_512(part);
}

/* Codes from the numbers of groups of 8. */
SUPER_AVX512 void trellis_codes_8(__m512i numbers, __m512i code[4])
{
    const __m512i first = _mm512_broadcast_i32x4(_mm_setr_epi32(P1, P2, P3, P4));
    const __m512i later = _mm512_broadcast_i32x4(_mm_setr_epi32(P5, P6, P7, P8));
    EACH (i, 4) {
        __m512i starts = i / 2 ? _mm512_cvtepu16_epi32(_mm512_extracti64x4_epi64(numbers, 1))
                               : _mm512_cvtepu16_epi32(_mm512_castsi512_si256(numbers));
        starts = _mm512_add_epi32(starts, _mm512_set1_epi32(TRELLIS_FIRST));
        const __m512i place = _mm512_setr_epi32(0, 0, 0, 0, 2, 2, 2, 2, 4, 4, 4, 4, 6, 6, 6, 6);
        const __m512i from = _mm512_add_epi32(place, _mm512_set1_epi32(i % 2 * 8));
        const __m512i even = _mm512_permutexvar_epi32(from, starts);
        const __m512i odd =
            _mm512_permutexvar_epi32(_mm512_add_epi32(from, _mm512_set1_epi32(1)), starts);
        const __m512i part[4] = {trellis_sums_512(even, first), trellis_sums_512(even, later),
                                 trellis_sums_512(odd, first), trellis_sums_512(odd, later)};
        code[i] = trellis_join_512(part);
    }
}

SUPER_AVX512 void iq2_kt_plain(const void *block, __m512i code[4])
{
    BLOCK(iq2_kt);
    trellis_codes_8(_mm512_loadu_si512(w->low), code);
}

SUPER_AVX512 void iq3_kt_plain(const void *block, __m512i code[4])
{
    BLOCK(iq3_kt);
    const __m512i middle = _mm512_set1_epi8((char)TRELLIS_OFFSET);
    trellis_codes_8(_mm512_loadu_si512(w->low), code);
    EACH (i, 4) {
        const __m512i bit = super_set_halves(0x01010101 << 2 * i, (int)(0x02020202u << 2 * i));
        const __mmask64 minus = _mm512_test_epi8_mask(super_broadcast_32(w->sign), bit);
        const __m512i size = _mm512_abs_epi8(_mm512_sub_epi8(code[i], middle));
        code[i] = _mm512_mask_sub_epi8(_mm512_add_epi8(middle, size), minus, middle, size);
    }
}

SUPER_AVX512 void iq1_kt_plain(const void *block, __m512i code[4])
{
    BLOCK(iq1_kt);
    const __m512i low = _mm512_cvtepu8_epi16(_mm256_loadu_si256((const __m256i *)w->low));
    const __m256i high = _mm256_cvtepu8_epi16(_mm_loadu_si128((const __m128i *)w->high));
    const __m512i top = _mm512_inserti64x4(_mm512_castsi256_si512(_mm256_slli_epi16(high, 8)),
                                           _mm256_slli_epi16(high, 4), 1);
    /* Bit 12: group i has bit 4 + i % 4 of byte i / 4. */
    const __m512i bytes = _mm512_cvtepu8_epi64(_mm_loadl_epi64((const __m128i *)w->scale));
    const __m128i place = _mm_set_epi64x((int64_t)0x8008800880088008, (int64_t)0x8000800080008000);
    const __m512i four = _mm512_shuffle_epi8(bytes, _mm512_broadcast_i32x4(place));
    const __mmask32 set = _mm512_test_epi16_mask(four, _mm512_set1_epi64(0x0080004000200010));
    __m512i number = _mm512_or_si512(low, _mm512_and_si512(top, _mm512_set1_epi16(0x0f00)));
    number = _mm512_mask_add_epi16(number, set, number, _mm512_set1_epi16(0x1000));
    trellis_codes_8(number, code);
}

#define CODES_8(NAME)                                                                              \
    SUPER_AVX512 void NAME##_codes(const uint8_t *const two[2], __m512i code[8])                   \
    {                                                                                              \
        __m512i one[2][4];                                                                         \
        EACH (h, 2) NAME##_plain(two[h], one[h]);                                                  \
        book_chains(one[0], one[1], code);                                                         \
    }
CODES_8(iq1_kt)
CODES_8(iq2_kt)
CODES_8(iq3_kt)

/* Chain c has sub-blocks 2l + c of both super-blocks in 128-bit lane l, and register j of it groups
 * j and j + 4 of each: starts are ordered, so that codes need not be. */
SUPER_AVX512 void iq4_kt_codes(const uint8_t *const two[2], __m512i code[8])
{
    const __m512i shift = _mm512_setr_epi32(0, 0, 0, 0, 0, 0, 0, 0, 4, 4, 4, 4, 4, 4, 4, 4);
    __m512i low[2], high[2], head[2];
    EACH (h, 2) {
        const struct iq4_kt_block *w = (const void *)two[h];
        low[h] = _mm512_loadu_si512(w->low);
        high[h] = _mm512_and_si512(_mm512_srlv_epi32(super_broadcast_32(w->high), shift),
                                   _mm512_set1_epi8(15));
        head[h] = _mm512_castsi256_si512(_mm256_loadu_si256((const __m256i *)w->head));
    }
    EACH (c, 2) { /* eight bytes of a, eight of b in each lane */
        const __m512i lows =
            c == 0 ? _mm512_unpacklo_epi64(low[0], low[1]) : _mm512_unpackhi_epi64(low[0], low[1]);
        const __m512i highs = c == 0 ? _mm512_unpacklo_epi64(high[0], high[1])
                                     : _mm512_unpackhi_epi64(high[0], high[1]);
        const __m512i place = _mm512_add_epi32(
            _mm512_setr_epi32(0, 0, 16, 16, 2, 2, 18, 18, 4, 4, 20, 20, 6, 6, 22, 22),
            _mm512_set1_epi32(c));
        const __m512i heads = _mm512_permutex2var_epi32(head[0], place, head[1]);
        const __m512i more = _mm512_slli_epi32(_mm512_and_si512(heads, _mm512_set1_epi32(1)), 15);
        const __m512i first = _mm512_add_epi32(more, _mm512_set1_epi32(TRELLIS_FIRST));
        EACH (j, 4) {
            /* Bytes j, j + 4, j + 8 and j + 12 of a lane, each to the first or second of a dword.
             */
            const int32_t at = (int32_t)0x80808000 + j, above = (int32_t)0x80800080 + (j << 8);
            const __m512i to0 = _mm512_broadcast_i32x4(_mm_setr_epi32(at, at + 4, at + 8, at + 12));
            const __m512i to1 = _mm512_broadcast_i32x4(
                _mm_setr_epi32(above, above + 0x400, above + 0x800, above + 0xc00));
            /* Bits 10 + 3g .. 8 + 3g to 14 .. 12. */
            const __m512i move = _mm512_broadcast_i32x4(_mm_setr_epi32(
                (28 + 3 * j) % 32, (40 + 3 * j) % 32, (28 + 3 * j) % 32, (40 + 3 * j) % 32));
            __m512i number =
                _mm512_or_si512(_mm512_shuffle_epi8(lows, to0), _mm512_shuffle_epi8(highs, to1));
            number = _mm512_ternarylogic_epi32(_mm512_rorv_epi32(heads, move),
                                               _mm512_set1_epi32(0x7000), number, 0xea);
            code[4 * c + j] = trellis_codes_4(_mm512_add_epi32(number, first));
        }
    }
}

/* ---- Kernels ---- */

BOOK_KERNELS_BY_ONE(iq1_kt, NULL, NULL, 0, book_order_plain, false)
BOOK_KERNELS_BY_ONE(iq2_kt, NULL, NULL, 0, book_order_plain, false)
BOOK_KERNELS_BY_ONE(iq3_kt, NULL, NULL, 0, book_order_plain, false)
BOOK_KERNELS_BY_ONE(iq4_kt, NULL, NULL, 0, book_order_halves, false)

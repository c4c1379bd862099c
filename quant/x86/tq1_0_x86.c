/* quant/x86/tq1_0_x86.c: the kernels of TQ1_0 (quant/super/tq1_0.h) for x86-64. */
#include "quant/super/tq1_0.h"
#include "quant/x86/super_codes.h"
#include "quant/x86/types_x86.h"

SUPER_DECODE_AVX2(tq1_0)

QUANT_INLINE uint16_t tq1_0_head(const void *block)
{
    const struct tq1_0_block *w = block;
    return w->d;
}

SUPER_AVX2 __m256i tq1_0_scales(const void *block)
{
    (void)block;
    return _mm256_set1_epi16(1);
}

/* One digit minus 1 of each of 32 bytes; 16-bit lane i of `power` is the power of 3 for two bytes.
 */
SUPER_AVX2 __m256i tq1_0_digits(__m256i bytes, __m256i power)
{
    const __m256i low = _mm256_set1_epi16(0xff), three = _mm256_set1_epi16(3);
    __m256i even = _mm256_mullo_epi16(_mm256_and_si256(bytes, low), power);
    __m256i odd = _mm256_mullo_epi16(_mm256_srli_epi16(bytes, 8), power);
    even = _mm256_srli_epi16(_mm256_mullo_epi16(_mm256_and_si256(even, low), three), 8);
    odd = _mm256_mullo_epi16(_mm256_and_si256(odd, low), three);
    __m256i digits = _mm256_blendv_epi8(odd, even, low);
    return _mm256_sub_epi8(digits, _mm256_set1_epi8(1));
}

SUPER_AVX2 __m256i tq1_0_codes(const void *block, int s)
{
    const struct tq1_0_block *w = block;
    if (s < 5)
        return tq1_0_digits(_mm256_loadu_si256((const __m256i *)w->q),
                            _mm256_set1_epi16(tq1_0_powers[s]));
    __m128i bytes = _mm_loadu_si128((const __m128i *)(w->q + 32));
    if (s < 7)
        return tq1_0_digits(_mm256_broadcastsi128_si256(bytes),
                            _mm256_set_m128i(_mm_set1_epi16(tq1_0_powers[2 * (s - 5) + 1]),
                                             _mm_set1_epi16(tq1_0_powers[2 * (s - 5)])));
    __m128i high = _mm_set1_epi32((int)quant_load32(w->high));
    return tq1_0_digits(_mm256_set_m128i(high, bytes),
                        _mm256_set_m128i(_mm_setr_epi16(1, 1, 3, 3, 9, 9, 27, 27),
                                         _mm_set1_epi16(tq1_0_powers[4])));
}

/* Powers of 3 in both 16-bit halves. */
enum { P0 = 0x00010001, P1 = 3 * P0, P2 = 9 * P0, P3 = 27 * P0, P4 = 81 * P0 };

/* One digit of each of 64 bytes. */
SUPER_AVX512 __m512i tq1_0_digits_avx512(__m512i bytes, __m512i power)
{
    const __m512i one = _mm512_set1_epi8(1);
    const __m512i upper = _mm512_set1_epi16((int16_t)0xff00);
    __m512i odd = _mm512_mullo_epi16(_mm512_and_si512(bytes, upper), power);
    __m512i scaled = _mm512_ternarylogic_epi32(_mm512_mullo_epi16(bytes, power), upper, odd, 0xb8);
    /* The digit is at least 1 from 86 on and 2 from 171 on: 3 * 86 >= 256, 3 * 171 >= 2 * 256. */
    __m512i digits =
        _mm512_maskz_mov_epi8(_mm512_cmpge_epu8_mask(scaled, _mm512_set1_epi8(86)), one);
    return _mm512_mask_add_epi8(digits, _mm512_cmpge_epu8_mask(scaled, _mm512_set1_epi8((char)171)),
                                digits, one);
}

SUPER_AVX512 void tq1_0_bytes(const void *block, struct super_codes_bytes *to)
{
    const struct tq1_0_block *w = block;
    __m512i first = super_broadcast_32(w->q);
    __m512i second = _mm512_broadcast_i32x4(_mm_loadu_si128((const __m128i *)(w->q + 32)));
    __m512i high = _mm512_set1_epi32((int32_t)quant_load32(w->high));
    /* Elements 128 .. 159 are the last digits of the first 32 bytes, the last 16 elements the
     * digits of `high`. */
    __m512i bytes[4] = {first, first, _mm512_mask_blend_epi64(0x0f, second, first),
                        _mm512_mask_blend_epi64(0xc0, second, high)};
    const __m512i power[4] = {
        super_set_halves(P0, P1), super_set_halves(P2, P3),
        _mm512_setr_epi32(P4, P4, P4, P4, P4, P4, P4, P4, P0, P0, P0, P0, P1, P1, P1, P1),
        _mm512_setr_epi32(P2, P2, P2, P2, P3, P3, P3, P3, P4, P4, P4, P4, P0, P1, P2, P3)};
    EACH (i, 4) to->code[i] = tq1_0_digits_avx512(bytes[i], power[i]);
}

SUPER_CODES(tq1_0, tq1_0_head, 1.0f)
SUPER_CODES_512(AVX512, tq1_0, tq1_0_head, 1.0f, NULL, TQ1_0_OFFSET)

const struct quant_kernel quant_x86_tq1_0[CPU_LEVEL_COUNT] = {
    [CPU_AVX2] = {SUPER_CODES_AVX2(tq1_0)},
    [CPU_AVX512] = {.gemv = tq1_0_gemv_512},
};

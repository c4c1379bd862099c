/* quant/x86/iq2_s_x86.c: the kernels of IQ2_S (quant/super/iq2_s.h) for x86-64. */
#include "quant/super/iq2_s.h"
#include "quant/x86/super_codes.h"
#include "quant/x86/types_x86.h"

SUPER_DECODE_AVX2(iq2_s)

SUPER_AVX2 __m256i iq2_s_scales(const void *block)
{
    const struct iq2_s_block *w = block;
    return super_odd_scales(_mm_loadl_epi64((const __m128i *)w->scale), false);
}

SUPER_AVX2 __m256i iq2_s_codes(const void *block, int s)
{
    return super_negate(super_grid_entries(iq2_s_entry, block, s), iq2_s_signs(block, s));
}

/* Indices for VPSHUFB: Z makes both bytes of a word zero; Z | n * PLACE has byte n in the upper
 * one. */
enum { Z = 0x00800080, PLACE = 0x01000100 };

SUPER_VBMI void iq2_s_bytes(const void *block, struct super_codes_bytes *to)
{
    const struct iq2_s_block *w = block;
    int64_t eight;
    memcpy(&eight, w->high, sizeof eight);
    /* Moves byte i / 4 to the upper half of word i, and its two bits to bits 8 and 9. */
    const __m512i place =
        _mm512_setr_epi32(Z, Z, Z | PLACE, Z | PLACE, Z | 2 * PLACE, Z | 2 * PLACE, Z | 3 * PLACE,
                          Z | 3 * PLACE, Z | 4 * PLACE, Z | 4 * PLACE, Z | 5 * PLACE, Z | 5 * PLACE,
                          Z | 6 * PLACE, Z | 6 * PLACE, Z | 7 * PLACE, Z | 7 * PLACE);
    const __m512i shift = _mm512_set1_epi64(0x0006000400020000);
    __m512i high = _mm512_shuffle_epi8(_mm512_set1_epi64(eight), place);
    high = _mm512_and_si512(_mm512_srlv_epi16(high, shift), _mm512_set1_epi16(0x300));
    __m512i low = _mm512_cvtepu8_epi16(_mm256_loadu_si256((const __m256i *)w->q));
    super_grid_codes_2(quant_numbers_iq2_s, 1024, _mm512_or_si512(low, high), to->code);
    memcpy(to->negative, w->sign, sizeof to->negative);
}

SUPER_CODES(iq2_s, super_codes_first, 0.125f)
SUPER_CODES_512(AVX512BF16, iq2_s, super_codes_first, 0.125f, iq2_s_scales, 0)

const struct quant_kernel quant_x86_iq2_s[CPU_LEVEL_COUNT] = {
    [CPU_AVX2] = {SUPER_CODES_AVX2(iq2_s)},
    [CPU_AVX512BF16] = {.gemv = iq2_s_gemv_512},
};

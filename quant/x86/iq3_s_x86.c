/* quant/x86/iq3_s_x86.c: the kernels of IQ3_S (quant/super/iq3_s.h) for x86-64. */
#include "quant/super/iq3_s.h"
#include "quant/x86/super_codes.h"
#include "quant/x86/types_x86.h"

SUPER_DECODE_AVX2(iq3_s)

SUPER_AVX2 __m256i iq3_s_scales(const void *block)
{
    const struct iq3_s_block *w = block;
    return super_odd_scales(_mm_cvtsi32_si128((int)quant_load32(w->scale)), true);
}

SUPER_AVX2 __m256i iq3_s_codes(const void *block, int s)
{
    return super_negate(super_grid_entries(iq3_s_entry, block, s), iq3_s_signs(block, s));
}

SUPER_VBMI void iq3_s_bytes(const void *block, struct super_codes_bytes *to)
{
    const struct iq3_s_block *w = block;
    const __m512i top = _mm512_set1_epi16(256);
    __m512i numbers[2];
    EACH (i, 2) {
        __mmask32 high = _cvtu32_mask32(quant_load32(w->high + 4 * i));
        __m512i low = _mm512_cvtepu8_epi16(_mm256_loadu_si256((const __m256i *)(w->q + 32 * i)));
        numbers[i] = _mm512_mask_add_epi16(low, high, low, top);
    }
    super_grid_codes_3(quant_numbers_iq3_s, 512, numbers, 0x0f0d0b0907050301, to->code);
    memcpy(to->negative, w->sign, sizeof to->negative);
}

SUPER_CODES(iq3_s, super_codes_first, 1.0f)
SUPER_CODES_512(AVX512BF16, iq3_s, super_codes_first, 1.0f, iq3_s_scales, 0)

const struct quant_kernel quant_x86_iq3_s[CPU_LEVEL_COUNT] = {
    [CPU_AVX2] = {SUPER_CODES_AVX2(iq3_s)},
    [CPU_AVX512BF16] = {.gemv = iq3_s_gemv_512},
};

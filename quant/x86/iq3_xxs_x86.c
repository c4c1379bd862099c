/* quant/x86/iq3_xxs_x86.c: the kernels of IQ3_XXS (quant/super/iq3_xxs.h) for x86-64. */
#include "quant/super/iq3_xxs.h"
#include "quant/x86/super_codes.h"
#include "quant/x86/types_x86.h"

SUPER_DECODE_AVX2(iq3_xxs)

SUPER_AVX2 __m256i iq3_xxs_scales(const void *block)
{
    const struct iq3_xxs_block *w = block;
    return super_tail_scales(_mm256_loadu_si256((const __m256i *)w->tail));
}

SUPER_AVX2 __m256i iq3_xxs_codes(const void *block, int s)
{
    return super_negate(super_grid_entries(iq3_xxs_entry, block, s), iq3_xxs_signs(block, s));
}

SUPER_VBMI void iq3_xxs_bytes(const void *block, struct super_codes_bytes *to)
{
    const struct iq3_xxs_block *w = block;
    __m512i numbers[2];
    EACH (i, 2)
        numbers[i] = _mm512_cvtepu8_epi16(_mm256_loadu_si256((const __m256i *)(w->q + 32 * i)));
    super_grid_codes_3(quant_numbers_iq3_xxs, 256, numbers, 0x3e342c241c140c04, to->code);
    super_tail_signs_store(_mm256_loadu_si256((const __m256i *)w->tail), to->negative);
}

SUPER_CODES(iq3_xxs, super_codes_first, 0.25f)
SUPER_CODES_512(AVX512BF16, iq3_xxs, super_codes_first, 0.25f, iq3_xxs_scales, 0)

const struct quant_kernel quant_x86_iq3_xxs[CPU_LEVEL_COUNT] = {
    [CPU_AVX2] = {SUPER_CODES_AVX2(iq3_xxs)},
    [CPU_AVX512BF16] = {.gemv = iq3_xxs_gemv_512},
};

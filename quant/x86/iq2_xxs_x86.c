/* quant/x86/iq2_xxs_x86.c: the kernels of IQ2_XXS (quant/super/iq2_xxs.h) for x86-64. */
#include "quant/super/iq2_xxs.h"
#include "quant/x86/super_codes.h"
#include "quant/x86/types_x86.h"

SUPER_DECODE_AVX2(iq2_xxs)

SUPER_AVX2 __m256i iq2_xxs_tails(const struct iq2_xxs_block *w)
{
    __m256 low = _mm256_loadu_ps((const float *)(const void *)w->sub);
    __m256 high = _mm256_loadu_ps((const float *)(const void *)(w->sub + 4));
    __m256i tails = _mm256_castps_si256(_mm256_shuffle_ps(low, high, 0xdd));
    return _mm256_permute4x64_epi64(tails, 0xd8);
}

SUPER_AVX2 __m256i iq2_xxs_scales(const void *block)
{
    return super_tail_scales(iq2_xxs_tails(block));
}

SUPER_AVX2 __m256i iq2_xxs_codes(const void *block, int s)
{
    return super_negate(super_grid_entries(iq2_xxs_entry, block, s), iq2_xxs_signs(block, s));
}

SUPER_VBMI void iq2_xxs_bytes(const void *block, struct super_codes_bytes *to)
{
    const struct iq2_xxs_block *w = block;
    __m256i numbers = _mm512_cvtepi64_epi32(_mm512_loadu_si512(w->sub));
    super_grid_codes_2(quant_numbers_iq2_xxs, 256, _mm512_cvtepu8_epi16(numbers), to->code);
    super_tail_signs_store(iq2_xxs_tails(w), to->negative);
}

SUPER_CODES(iq2_xxs, super_codes_first, 0.125f)
SUPER_CODES_512(AVX512BF16, iq2_xxs, super_codes_first, 0.125f, iq2_xxs_scales, 0)

const struct quant_kernel quant_x86_iq2_xxs[CPU_LEVEL_COUNT] = {
    [CPU_AVX2] = {SUPER_CODES_AVX2(iq2_xxs)},
    [CPU_AVX512BF16] = {.gemv = iq2_xxs_gemv_512},
};

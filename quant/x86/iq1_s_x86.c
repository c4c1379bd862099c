/* quant/x86/iq1_s_x86.c: the kernels of IQ1_S (quant/super/iq1_s.h) for x86-64. */
#include "quant/super/iq1_s.h"
#include "quant/x86/super_codes.h"
#include "quant/x86/types_x86.h"

SUPER_DECODE_AVX2(iq1_s)

SUPER_AVX2 __m256i iq1_s_scales(const void *block)
{
    const struct iq1_s_block *w = block;
    __m128i high = _mm_srli_epi16(_mm_loadu_si128((const __m128i *)w->high), 12);
    __m128i scale = _mm_and_si128(high, _mm_set1_epi16(7));
    scale = _mm_add_epi16(_mm_add_epi16(scale, scale), _mm_set1_epi16(1));
    return _mm256_broadcastsi128_si256(scale);
}

SUPER_AVX2 __m256i iq1_s_codes(const void *block, int s)
{
    const struct iq1_s_block *w = block;
    const int shift = quant_load16(w->high[s]) & 0x8000 ? -1 : 1;
    return _mm256_add_epi8(super_grid_entries(iq1_s_entry, block, s),
                           _mm256_set1_epi8((char)shift));
}

SUPER_CODES(iq1_s, super_codes_first, 0.125f)

const struct quant_kernel quant_x86_iq1_s[CPU_LEVEL_COUNT] = {
    [CPU_AVX2] = {SUPER_CODES_AVX2(iq1_s)},
};

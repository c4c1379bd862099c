/* quant/x86/iq1_m_x86.c: the kernels of IQ1_M (quant/super/iq1_m.h) for x86-64. */
#include "quant/super/iq1_m.h"
#include "quant/x86/super_codes.h"
#include "quant/x86/types_x86.h"

SUPER_DECODE_AVX2(iq1_m)

SUPER_AVX2 __m256i iq1_m_scales(const void *block)
{
    const struct iq1_m_block *w = block;
    uint16_t scale[2][8];
    EACH (s, 16)
        scale[s % 2][s / 2] = (uint16_t)(2 * (quant_load16(w->scale[s / 4]) >> s % 4 * 3 & 7) + 1);
    return _mm256_loadu_si256((const __m256i *)scale);
}

SUPER_AVX2 __m256i iq1_m_codes(const void *block, int s)
{
    const struct iq1_m_block *w = block;
    /* Selects bit 3 of a nibble for the eight bytes of its entry: set if the shift is -1. */
    __m256i high = _mm256_set1_epi16((int16_t)quant_load16(w->high + 2 * s));
    __m256i down =
        _mm256_and_si256(high, _mm256_setr_epi64x(0x0008000800080008, 0x0080008000800080,
                                                  0x0800080008000800, -0x7fff7fff7fff8000));
    __m256i up = _mm256_cmpeq_epi16(down, _mm256_setzero_si256()); /* -1: up */
    __m256i shift = _mm256_sub_epi8(_mm256_set1_epi8(-1), _mm256_add_epi8(up, up));
    return _mm256_add_epi8(super_grid_entries(iq1_m_entry, block, s), shift);
}

SUPER_CODES(iq1_m, iq1_m_head, 0.125f)

const struct quant_kernel quant_x86_iq1_m[CPU_LEVEL_COUNT] = {
    [CPU_AVX2] = {SUPER_CODES_AVX2(iq1_m)},
};

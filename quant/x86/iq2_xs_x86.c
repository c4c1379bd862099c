/* quant/x86/iq2_xs_x86.c: the kernels of IQ2_XS (quant/super/iq2_xs.h) for x86-64. */
#include "quant/super/iq2_xs.h"
#include "quant/x86/super_codes.h"
#include "quant/x86/types_x86.h"

SUPER_DECODE_AVX2(iq2_xs)

SUPER_AVX2 __m256i iq2_xs_scales(const void *block)
{
    const struct iq2_xs_block *w = block;
    return super_odd_scales(_mm_loadl_epi64((const __m128i *)w->scale), false);
}

SUPER_AVX2 __m256i iq2_xs_codes(const void *block, int s)
{
    return super_negate(super_grid_entries(iq2_xs_entry, block, s), iq2_xs_signs(block, s));
}

SUPER_VBMI void iq2_xs_bytes(const void *block, struct super_codes_bytes *to)
{
    const struct iq2_xs_block *w = block;
    __m512i q = _mm512_loadu_si512(w->q);
    __m256i sevens = _mm512_cvtepi16_epi8(_mm512_srli_epi16(q, 9));
    super_grid_codes_2(quant_numbers_iq2_xs, 512, _mm512_and_si512(q, _mm512_set1_epi16(511)),
                       to->code);
    super_signs_store(sevens, to->negative);
}

SUPER_CODES(iq2_xs, super_codes_first, 0.125f)
SUPER_CODES_512(AVX512BF16, iq2_xs, super_codes_first, 0.125f, iq2_xs_scales, 0)

const struct quant_kernel quant_x86_iq2_xs[CPU_LEVEL_COUNT] = {
    [CPU_AVX2] = {SUPER_CODES_AVX2(iq2_xs)},
    [CPU_AVX512BF16] = {.gemv = iq2_xs_gemv_512},
};

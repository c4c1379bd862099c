/* quant/x86/tq2_0_x86.c: the kernels of TQ2_0 (quant/super/tq2_0.h) for x86-64. */
#include "quant/super/tq2_0.h"
#include "quant/x86/super_codes.h"
#include "quant/x86/types_x86.h"

SUPER_DECODE_AVX2(tq2_0)

QUANT_INLINE uint16_t tq2_0_head(const void *block)
{
    const struct tq2_0_block *w = block;
    return w->d;
}

SUPER_AVX2 __m256i tq2_0_scales(const void *block)
{
    (void)block;
    return _mm256_set1_epi16(1);
}

SUPER_AVX2 __m256i tq2_0_codes(const void *block, int s)
{
    const struct tq2_0_block *w = block;
    __m256i bytes = _mm256_loadu_si256((const __m256i *)(w->q + s / 4 * 32));
    return _mm256_sub_epi8(super_bits(bytes, s % 4 * 2, 3), _mm256_set1_epi8(1));
}

SUPER_AVX512 void tq2_0_bytes(const void *block, struct super_codes_bytes *to)
{
    const struct tq2_0_block *w = block;
    EACH (i, 4) {
        __m512i bytes = super_broadcast_32(w->q + i / 2 * 32);
        bytes = _mm512_srlv_epi32(bytes, super_set_halves(i % 2 * 4, i % 2 * 4 + 2));
        to->code[i] = _mm512_and_si512(bytes, _mm512_set1_epi8(3));
    }
}

SUPER_CODES(tq2_0, tq2_0_head, 1.0f)
SUPER_CODES_512(AVX512, tq2_0, tq2_0_head, 1.0f, NULL, TQ2_0_OFFSET)

const struct quant_kernel quant_x86_tq2_0[CPU_LEVEL_COUNT] = {
    [CPU_AVX2] = {SUPER_CODES_AVX2(tq2_0)},
    [CPU_AVX512] = {.gemv = tq2_0_gemv_512},
};

/* quant/x86/q2_0_x86.c: the kernels of Q2_0 (quant/block32/q2_0.h) for x86-64. */
#include "quant/block32/q2_0.h"
#include "quant/x86/long_block_x86.h"

/* Repeats each byte four times, then shifts the code's bits down. */
CPU_TARGET_AVX2 QUANT_INLINE __m256i q2_0_codes_avx2(const uint8_t *block, int s)
{
    const __m256i place = _mm256_setr_epi32(0, 0x01010101, 0x02020202, 0x03030303, 0x04040404,
                                            0x05050505, 0x06060606, 0x07070707);
    int64_t eight;
    memcpy(&eight, block + 2 + 8 * s, sizeof eight);
    __m256i bytes = _mm256_shuffle_epi8(_mm256_set1_epi64x(eight), place);
    __m256i pairs = _mm256_blend_epi16(bytes, _mm256_srli_epi16(bytes, 4), 0xaa);
    const __m256i odd = _mm256_set1_epi16((int16_t)0xff00);
    pairs = _mm256_blendv_epi8(pairs, _mm256_srli_epi16(pairs, 2), odd);
    return _mm256_and_si256(pairs, _mm256_set1_epi8(3));
}

/* Each lane has a byte in its lowest bits; moves the byte's four bit pairs to the lowest bits of
 * the lane's four bytes. */
CPU_TARGET_AVX512 QUANT_INLINE __m512i q2_0_codes_avx512(const uint8_t *block, int s)
{
    __m512i v = _mm512_cvtepu8_epi32(_mm_loadu_si128((const __m128i *)(block + 2) + s));
    v = _mm512_or_si512(v, _mm512_slli_epi32(v, 6));
    v = _mm512_or_si512(v, _mm512_slli_epi32(v, 12));
    return _mm512_and_si512(v, _mm512_set1_epi8(3));
}

QUANT_LONG_X86(q2_0)

const struct quant_kernel quant_x86_q2_0[CPU_LEVEL_COUNT] = {
    [CPU_AVX2] = {QUANT_LONG_AVX2(q2_0)},
    [CPU_AVX512] = {.gemv = q2_0_gemv_avx512},
};

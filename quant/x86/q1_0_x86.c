/* quant/x86/q1_0_x86.c: the kernels of Q1_0 (quant/block32/q1_0.h) for x86-64. */
#include "quant/block32/q1_0.h"
#include "quant/x86/long_block_x86.h"

CPU_TARGET_AVX2 QUANT_INLINE __m256i q1_0_codes_avx2(const uint8_t *block, int s)
{
    const __m256i place =
        _mm256_setr_epi64x(0, 0x0101010101010101, 0x0202020202020202, 0x0303030303030303);
    const __m256i bit = _mm256_set1_epi64x((int64_t)0x8040201008040201);
    __m256i bytes = _mm256_shuffle_epi8(_mm256_set1_epi32(quant_load32(block + 2 + 4 * s)), place);
    __m256i set = _mm256_cmpeq_epi8(_mm256_and_si256(bytes, bit), bit);
    return _mm256_and_si256(set, _mm256_set1_epi8(2));
}

CPU_TARGET_AVX512 QUANT_INLINE __m512i q1_0_codes_avx512(const uint8_t *block, int s)
{
    uint64_t bits;
    memcpy(&bits, block + 2 + 8 * s, sizeof bits);
    return _mm512_maskz_set1_epi8(_cvtu64_mask64(bits), 2);
}

QUANT_LONG_X86(q1_0)
QUANT_ENCODE_AT(q1_0, q1_0_encode_avx2, CPU_TARGET_AVX2)
QUANT_ENCODE_AT(q1_0, q1_0_encode_avx512, CPU_TARGET_AVX512)

const struct quant_kernel quant_x86_q1_0[CPU_LEVEL_COUNT] = {
    [CPU_AVX2] = {QUANT_LONG_AVX2(q1_0), .encode = q1_0_encode_avx2},
    [CPU_AVX512] = {.gemv = q1_0_gemv_avx512, .encode = q1_0_encode_avx512},
};

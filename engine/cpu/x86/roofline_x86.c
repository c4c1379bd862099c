/* engine/cpu/x86/roofline_x86.c: the loops of engine/cpu/roofline.c for x86-64. */
#include "base/unroll.h"
#include "engine/cpu/x86/kernels_x86.h"
#include <immintrin.h>

CPU_TARGET_AVX2 static uint64_t fold_avx2(const __m256i sum[4])
{
    __m256i all =
        _mm256_xor_si256(_mm256_xor_si256(sum[0], sum[1]), _mm256_xor_si256(sum[2], sum[3]));
    return (uint64_t)_mm256_extract_epi64(all, 0) ^ (uint64_t)_mm256_extract_epi64(all, 3);
}

CPU_TARGET_AVX2 static uint64_t read_avx2(const uint64_t *data, size_t bytes)
{
    __m256i sum[4] = {0};
    const __m256i *v = (const __m256i *)data;
    for (size_t i = 0; i < bytes / sizeof *v; i += 4)
        for (size_t l = 0; l < 4; l++)
            sum[l] = _mm256_xor_si256(sum[l], _mm256_loadu_si256(v + i + l));
    return fold_avx2(sum);
}

/* Reads four address streams: faster on some processors, slower on others. */
CPU_TARGET_AVX2 static uint64_t read_strided_avx2(const uint64_t *data, size_t bytes)
{
    __m256i sum[4] = {0};
    const __m256i *v = (const __m256i *)data;
    const size_t quarter = bytes / sizeof *v / 4;
    for (size_t i = 0; i < quarter; i += 2)
        for (size_t s = 0; s < 4; s++)
            for (size_t l = 0; l < 2; l++)
                sum[s] = _mm256_xor_si256(sum[s], _mm256_loadu_si256(v + s * quarter + i + l));
    return fold_avx2(sum);
}

/* The compiler cannot merge steps across the empty statement, which may change the accumulator. The
 * loops over accumulators are unrolled to keep these in registers; in memory they halve the rate.
 */
CPU_TARGET_AVX2 static int32_t multiply_avx2(int32_t seed)
{
    __m256i sum[ENGINE_ROOFLINE_CHAINS];
    const __m256i a = _mm256_set1_epi32(seed), ones = _mm256_set1_epi16(1);
    EACH (c, ENGINE_ROOFLINE_CHAINS) sum[c] = _mm256_set1_epi32(c);
    for (int i = 0; i < ENGINE_ROOFLINE_STEPS; i++) {
        EACH (c, ENGINE_ROOFLINE_CHAINS) {
            __m256i pairs = _mm256_maddubs_epi16(a, sum[c]);
            sum[c] = _mm256_add_epi32(sum[c], _mm256_madd_epi16(pairs, ones));
            __asm__("" : "+x"(sum[c]));
        }
    }
    __m256i all = _mm256_setzero_si256();
    EACH (c, ENGINE_ROOFLINE_CHAINS) all = _mm256_add_epi32(all, sum[c]);
    return _mm256_extract_epi32(all, 0);
}

/* In assembly, because older compilers do not have the intrinsic of AVX-VNNI. */
CPU_TARGET_AVX2 static int32_t multiply_avxvnni(int32_t seed)
{
    __m256i sum[ENGINE_ROOFLINE_CHAINS];
    const __m256i a = _mm256_set1_epi32(seed), b = _mm256_set1_epi32(seed + 1);
    EACH (c, ENGINE_ROOFLINE_CHAINS) sum[c] = _mm256_set1_epi32(c);
    for (int i = 0; i < ENGINE_ROOFLINE_STEPS; i++)
        EACH (c, ENGINE_ROOFLINE_CHAINS)
            __asm__("%{vex%} vpdpbusd %2, %1, %0" : "+x"(sum[c]) : "x"(a), "x"(b));
    __m256i all = _mm256_setzero_si256();
    EACH (c, ENGINE_ROOFLINE_CHAINS) all = _mm256_add_epi32(all, sum[c]);
    return _mm256_extract_epi32(all, 0);
}

CPU_TARGET_AVX512 static int32_t multiply_avx512(int32_t seed)
{
    __m512i sum[ENGINE_ROOFLINE_CHAINS];
    const __m512i a = _mm512_set1_epi32(seed), b = _mm512_set1_epi32(seed + 1);
    EACH (c, ENGINE_ROOFLINE_CHAINS) sum[c] = _mm512_set1_epi32(c);
    for (int i = 0; i < ENGINE_ROOFLINE_STEPS; i++) {
        EACH (c, ENGINE_ROOFLINE_CHAINS) {
            sum[c] = _mm512_dpbusd_epi32(sum[c], a, b);
            __asm__("" : "+v"(sum[c]));
        }
    }
    __m512i all = _mm512_setzero_si512();
    EACH (c, ENGINE_ROOFLINE_CHAINS) all = _mm512_add_epi32(all, sum[c]);
    return _mm512_cvtsi512_si32(all);
}

const struct engine_roofline_loops engine_roofline_avx2 = {
    .read = {read_avx2, read_strided_avx2}, .multiply = multiply_avx2, .lanes = 32};
const struct engine_roofline_loops engine_roofline_avxvnni = {
    .read = {read_avx2, read_strided_avx2}, .multiply = multiply_avxvnni, .lanes = 32};
const struct engine_roofline_loops engine_roofline_avx512 = {
    .read = {read_avx2, read_strided_avx2}, .multiply = multiply_avx512, .lanes = 64};

/* quant/x86/nvfp4_x86.c: the kernels of NVFP4 (quant/float/nvfp4.h) for x86-64. */
#include "quant/float/nvfp4.h"
#include "quant/x86/lanes_x86.h"
#include "quant/x86/types_x86.h"

CPU_TARGET_AVX2 QUANT_INLINE void decode_sub_avx2(const uint8_t *q, float scale, float *out)
{
    __m128i bytes = _mm_loadl_epi64((const __m128i *)q);
    __m128i both = _mm_unpacklo_epi64(bytes, _mm_srli_epi16(bytes, 4));
    __m128i value = _mm_shuffle_epi8(_mm_loadu_si128((const __m128i *)quant_e2m1),
                                     _mm_and_si128(both, _mm_set1_epi8(15)));
    const __m256 d = _mm256_set1_ps(scale);
    __m256 low = _mm256_cvtepi32_ps(_mm256_cvtepi8_epi32(value));
    __m256 high = _mm256_cvtepi32_ps(_mm256_cvtepi8_epi32(_mm_srli_si128(value, 8)));
    _mm256_storeu_ps(out, _mm256_mul_ps(d, low));
    _mm256_storeu_ps(out + 8, _mm256_mul_ps(d, high));
}

CPU_TARGET_AVX2 static void decode_avx2(int64_t first, int64_t n, const void *row, float *out)
{
    const uint8_t *block = (const uint8_t *)row + first / NVFP4_LEN * NVFP4_BYTES;
    for (int64_t b = 0; b < n / NVFP4_LEN; b++, block += NVFP4_BYTES)
        for (int s = 0; s < NVFP4_LEN / NVFP4_SUB_LEN; s++, out += NVFP4_SUB_LEN)
            decode_sub_avx2(block + 4 + 8 * s, nvfp4_half_scale(block[s]), out);
}

CPU_TARGET_AVX2 static void gemv_avx2(int64_t k, const struct quant_rows *rows,
                                      const struct quant_act *a, float *out)
{
    for (int64_t r = 0; r < rows->n; r++) {
        const char *row = (const char *)rows->w + (size_t)r * rows->row_bytes;
        __m256 low = _mm256_setzero_ps(), high = _mm256_setzero_ps();
        for (int64_t first = 0; first < k; first += NVFP4_AT_ONCE) {
            const int64_t n = k - first < NVFP4_AT_ONCE ? k - first : NVFP4_AT_ONCE;
            float w[NVFP4_AT_ONCE];
            quant_prefetch_single(row + first / NVFP4_LEN * NVFP4_BYTES + QUANT_SINGLE_DISTANCE,
                                  (size_t)(n / NVFP4_LEN) * NVFP4_BYTES, rows->prefetch.to_l1);
            decode_avx2(first, n, row, w);
            for (int64_t i = 0; i < n; i += 16) {
                const float *x = a->f32 + first + i;
                low = _mm256_fmadd_ps(_mm256_loadu_ps(w + i), _mm256_loadu_ps(x), low);
                high = _mm256_fmadd_ps(_mm256_loadu_ps(w + i + 8), _mm256_loadu_ps(x + 8), high);
            }
        }
        out[r] = quant_tree_avx2(_mm256_add_ps(low, high));
    }
}

/* Applies nvfp4_half_scale to the scales of four blocks; sub-block s of block b is lane 4b + s. */
CPU_TARGET_AVX512 QUANT_INLINE __m512 half_scales_avx512(const uint8_t *block)
{
    int32_t four[4];
    for (int b = 0; b < 4; b++) memcpy(&four[b], block + b * NVFP4_BYTES, sizeof four[b]);
    const __m512i e = _mm512_cvtepu8_epi32(_mm_loadu_si128((const __m128i *)four));
    const __m512i bits = _mm512_and_si512(e, _mm512_set1_epi32(0x7f));
    const __m512i normal =
        _mm512_add_epi32(_mm512_slli_epi32(bits, 20), _mm512_set1_epi32(119 << 23));
    const __mmask16 small = _mm512_cmplt_epi32_mask(bits, _mm512_set1_epi32(8));
    const __mmask16 none = _mm512_cmpeq_epi32_mask(e, _mm512_set1_epi32(0x7f));
    const __m512 d = _mm512_mask_mul_ps(_mm512_castsi512_ps(normal), small,
                                        _mm512_cvtepi32_ps(bits), _mm512_set1_ps(0x1p-10f));
    return _mm512_mask_mov_ps(d, none, _mm512_setzero_ps());
}

/* Sixteen elements; the permutation uses the lower four bits of an index. */
CPU_TARGET_AVX512 QUANT_INLINE __m512 decode_sub_avx512(const uint8_t *q, __m512 d)
{
    const __m512 value = _mm512_setr_ps(0.0f, 1.0f, 2.0f, 3.0f, 4.0f, 6.0f, 8.0f, 12.0f, 0.0f,
                                        -1.0f, -2.0f, -3.0f, -4.0f, -6.0f, -8.0f, -12.0f);
    const __m128i bytes = _mm_loadl_epi64((const __m128i *)q);
    const __m128i both = _mm_unpacklo_epi64(bytes, _mm_srli_epi16(bytes, 4));
    return _mm512_mul_ps(d, _mm512_permutexvar_ps(_mm512_cvtepu8_epi32(both), value));
}

/* Adds the products of n blocks, at most four, of each of two rows. */
CPU_TARGET_AVX512 QUANT_INLINE void add_blocks_avx512(const uint8_t *const block[2], int n,
                                                      const float *x, __m512 lanes[2])
{
    __m512 scales[2];
    uint8_t tail[2][4 * NVFP4_BYTES];
    const uint8_t *from[2];
    EACH (r, 2) {
        from[r] = block[r];
        if (n < 4) from[r] = memcpy(tail[r], block[r], (size_t)(n * NVFP4_BYTES));
        if (n < 4) memset(tail[r] + n * NVFP4_BYTES, 0, (size_t)((4 - n) * NVFP4_BYTES));
        scales[r] = half_scales_avx512(from[r]);
    }
    EACH (s, 16) {
        if (s / 4 >= n) break;
        const __m512 column = _mm512_loadu_ps(x + NVFP4_SUB_LEN * s);
        EACH (r, 2) {
            const __m512 d = _mm512_permutexvar_ps(_mm512_set1_epi32(s), scales[r]);
            const uint8_t *q = from[r] + s / 4 * NVFP4_BYTES + 4 + s % 4 * 8;
            lanes[r] = _mm512_fmadd_ps(decode_sub_avx512(q, d), column, lanes[r]);
        }
    }
}

/* Two rows at a time, because the additions to the lanes of one row form a dependent chain. */
CPU_TARGET_AVX512 static void gemv_avx512(int64_t k, const struct quant_rows *rows,
                                          const struct quant_act *a, float *out)
{
    for (int64_t r = 0; r < rows->n; r += 2) {
        const int64_t last = r + 1 < rows->n ? r + 1 : r;
        const uint8_t *row[2] = {(const uint8_t *)rows->w + (size_t)r * rows->row_bytes,
                                 (const uint8_t *)rows->w + (size_t)last * rows->row_bytes};
        __m512 lanes[2] = {_mm512_setzero_ps(), _mm512_setzero_ps()};
        const float *x = a->f32;
        int64_t left = k / NVFP4_LEN;
        for (; left >= 4; left -= 4, x += NVFP4_AT_ONCE) {
            EACH (i, 2)
                quant_prefetch_single((const char *)row[i] + QUANT_SINGLE_DISTANCE, 4 * NVFP4_BYTES,
                                      rows->prefetch.to_l1);
            add_blocks_avx512(row, 4, x, lanes);
            EACH (i, 2) row[i] += 4 * NVFP4_BYTES;
        }
        if (left > 0) add_blocks_avx512(row, (int)left, x, lanes);
        out[r] = quant_tree_avx512(lanes[0]);
        out[last] = quant_tree_avx512(lanes[1]);
    }
}
QUANT_ENCODE_AT(nvfp4, nvfp4_encode_avx2, CPU_TARGET_AVX2)
QUANT_ENCODE_AT(nvfp4, nvfp4_encode_avx512, CPU_TARGET_AVX512)

const struct quant_kernel quant_x86_nvfp4[CPU_LEVEL_COUNT] = {
    [CPU_AVX2] = {.decode = decode_avx2, .gemv = gemv_avx2, .encode = nvfp4_encode_avx2},
    [CPU_AVX512] = {.gemv = gemv_avx512, .encode = nvfp4_encode_avx512},
};

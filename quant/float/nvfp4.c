/* quant/float/nvfp4.c: NVFP4: four-bit floats (E2M1) with an 8-bit float scale (UE4M3) for each 16
 * elements; 4.5 bits per weight.
 *
 *      byte  0                4                                       36
 *            | scale[4]       | qs[4][8]                              |
 *
 *      qs[s][i]: high nibble: element 16s + 8 + i, low nibble: element 16s + i; bit 3 is the sign
 *      x = scale[s] / 2 * quant_e2m1[nibble]
 *
 * quant_e2m1 is E2M1 doubled; nibble 8 ("minus zero") is 0. UE4M3: bits 3 to 6 are the exponent,
 * with bias 7; a number with exponent 0 is its mantissa times 2^-9. 0x7f is 0; bit 7 is ignored
 * otherwise, so 0xff is a number. The scales have too wide a range for integer sums, so columns are
 * floats (quant_act_f32), and products decode some elements of a row at a time. Source of the
 * layout: the GGUF format as its reference implementation writes it. */
#include "quant/encode/e2m1.h"
#include "quant/float/lanes.h"
#include <math.h>

enum { LEN = 64, SUB_LEN = 16, BYTES = 36, AT_ONCE = 4 * LEN };

/* Half of a scale. The bits of a normal number are moved to the exponent and mantissa of a float;
 * 119 is the difference of the biases minus 1, for the half. */
static inline float half_scale(uint8_t e)
{
    const uint32_t bits = e & 0x7f;
    if (e == 0x7f) return 0.0f;
    if (bits < 8) return (float)bits * 0x1p-10f;
    return quant_float_of((bits << 20) + (119u << 23));
}

QUANT_INLINE void decode_blocks(int64_t first, int64_t n, const void *row, float *out)
{
    const uint8_t *block = (const uint8_t *)row + first / LEN * BYTES;
    for (int64_t b = 0; b < n / LEN; b++, block += BYTES, out += LEN) {
        for (int s = 0; s < LEN / SUB_LEN; s++) {
            const float d = half_scale(block[s]);
            const uint8_t *q = block + 4 + 8 * s;
            for (int i = 0; i < 8; i++) {
                out[SUB_LEN * s + i] = d * (float)quant_e2m1[q[i] & 15];
                out[SUB_LEN * s + 8 + i] = d * (float)quant_e2m1[q[i] >> 4];
            }
        }
    }
}

static void decode_scalar(int64_t first, int64_t n, const void *row, float *out)
{
    decode_blocks(first, n, row, out);
}

/* Computes the errors for the scale that puts the largest element at the largest code and for
 * adjacent scales, and uses the one with the smallest error. Elements that are not finite have no
 * code: they become the largest value, like elements beyond the largest scale. */
QUANT_INLINE void encode_sub(const float *in, const float *importance, uint8_t *scale, uint8_t q[8])
{
    float x[SUB_LEN], w[SUB_LEN], largest = 0.0f, best = INFINITY;
    uint8_t code[SUB_LEN];
    quant_fit_weights(SUB_LEN, importance, w);
    for (int i = 0; i < SUB_LEN; i++) {
        x[i] = fabsf(in[i]) <= 0x1p30f ? in[i] : copysignf(0x1p30f, in[i]);
        largest = fabsf(x[i]) > largest ? fabsf(x[i]) : largest;
    }
    /* The largest scale below the one that is needed, from the bits of the float if it is normal.
     */
    const int64_t below = ((int64_t)quant_bits_of(largest / 12.0f) - (119 << 23)) >> 20;
    int middle = below > 0x7e ? 0x7e : below > 8 ? (int)below : 1;
    while (middle < 0x7e && 12.0f * half_scale((uint8_t)middle) < largest) middle++;
    *scale = 0;
    for (int e = middle - 2; e <= middle + 4; e++) {
        if (e < 1 || e > 0x7e) continue;
        const float error = quant_e2m1_error(SUB_LEN, x, w, half_scale((uint8_t)e));
        if (!(error < best)) continue;
        best = error;
        *scale = (uint8_t)e;
    }
    quant_e2m1_codes(SUB_LEN, x, half_scale(*scale), code);
    for (int i = 0; i < 8; i++) q[i] = (uint8_t)(code[i] | code[8 + i] << 4);
}

QUANT_INLINE void nvfp4_encode_at(int64_t k, const float *in, const float *importance, void *row)
{
    uint8_t *block = row;
    for (int64_t b = 0; b < k / LEN; b++, block += BYTES)
        for (int s = 0; s < LEN / SUB_LEN; s++) {
            const int64_t at = b * LEN + s * SUB_LEN;
            encode_sub(in + at, importance ? importance + at : NULL, &block[s], block + 4 + 8 * s);
        }
}

QUANT_ENCODE_AT(nvfp4, nvfp4_encode, )

static float dot(int64_t k, const void *row, const struct quant_act *a)
{
    float lane[16] = {0};
    for (int64_t first = 0; first < k; first += LEN) {
        float w[LEN];
        decode_blocks(first, LEN, row, w);
        for (int i = 0; i < LEN; i++) lane[i % 16] = fmaf(w[i], a->f32[first + i], lane[i % 16]);
    }
    return quant_lanes_tree(lane);
}

static void gemv_scalar(int64_t k, const struct quant_rows *rows, const struct quant_act *a,
                        float *out)
{
    quant_gemv_by_dot(dot, k, rows, a, out);
}

#if defined(__x86_64__)
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
    const uint8_t *block = (const uint8_t *)row + first / LEN * BYTES;
    for (int64_t b = 0; b < n / LEN; b++, block += BYTES)
        for (int s = 0; s < LEN / SUB_LEN; s++, out += SUB_LEN)
            decode_sub_avx2(block + 4 + 8 * s, half_scale(block[s]), out);
}

CPU_TARGET_AVX2 static void gemv_avx2(int64_t k, const struct quant_rows *rows,
                                      const struct quant_act *a, float *out)
{
    for (int64_t r = 0; r < rows->n; r++) {
        const char *row = (const char *)rows->w + (size_t)r * rows->row_bytes;
        __m256 low = _mm256_setzero_ps(), high = _mm256_setzero_ps();
        for (int64_t first = 0; first < k; first += AT_ONCE) {
            const int64_t n = k - first < AT_ONCE ? k - first : AT_ONCE;
            float w[AT_ONCE];
            quant_prefetch_single(row + first / LEN * BYTES + QUANT_SINGLE_DISTANCE,
                                  (size_t)(n / LEN) * BYTES, rows->prefetch.to_l1);
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

/* Applies half_scale to the scales of four blocks; sub-block s of block b is lane 4b + s. */
CPU_TARGET_AVX512 QUANT_INLINE __m512 half_scales_avx512(const uint8_t *block)
{
    int32_t four[4];
    for (int b = 0; b < 4; b++) memcpy(&four[b], block + b * BYTES, sizeof four[b]);
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
    uint8_t tail[2][4 * BYTES];
    const uint8_t *from[2];
    EACH (r, 2) {
        from[r] = block[r];
        if (n < 4) from[r] = memcpy(tail[r], block[r], (size_t)(n * BYTES));
        if (n < 4) memset(tail[r] + n * BYTES, 0, (size_t)((4 - n) * BYTES));
        scales[r] = half_scales_avx512(from[r]);
    }
    EACH (s, 16) {
        if (s / 4 >= n) break;
        const __m512 column = _mm512_loadu_ps(x + SUB_LEN * s);
        EACH (r, 2) {
            const __m512 d = _mm512_permutexvar_ps(_mm512_set1_epi32(s), scales[r]);
            const uint8_t *q = from[r] + s / 4 * BYTES + 4 + s % 4 * 8;
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
        int64_t left = k / LEN;
        for (; left >= 4; left -= 4, x += AT_ONCE) {
            EACH (i, 2)
                quant_prefetch_single((const char *)row[i] + QUANT_SINGLE_DISTANCE, 4 * BYTES,
                                      rows->prefetch.to_l1);
            add_blocks_avx512(row, 4, x, lanes);
            EACH (i, 2) row[i] += 4 * BYTES;
        }
        if (left > 0) add_blocks_avx512(row, (int)left, x, lanes);
        out[r] = quant_tree_avx512(lanes[0]);
        out[last] = quant_tree_avx512(lanes[1]);
    }
}
#endif

const struct quant_type quant_type_nvfp4 = {
    .name = "NVFP4",
    .id = QUANT_NVFP4,
    .block_len = LEN,
    .block_bytes = BYTES,
    .act = &quant_act_f32,
    .dot = dot,
    .kernel =
        {
            [CPU_SCALAR] = {.decode = decode_scalar, .encode = nvfp4_encode, .gemv = gemv_scalar},
#if defined(__x86_64__)
            [CPU_AVX2] = {.decode = decode_avx2, .gemv = gemv_avx2},
            [CPU_AVX512] = {.gemv = gemv_avx512},
#endif
        },
};

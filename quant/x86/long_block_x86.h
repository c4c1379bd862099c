/* quant/x86/long_block_x86.h: private to quant/: x86 kernels of the types of
 * quant/block32/long_block.h.
 *
 * QUANT_LONG_X86(NAME) generates them from NAME_form and
 *
 *     NAME_codes_avx2(block, s)   the codes of elements 32s .. 32s + 31
 *     NAME_codes_avx512(block, s) the codes of elements 64s .. 64s + 63 */
#pragma once

#include "quant/block32/long_block.h"
#include "quant/stream.h"
#include "quant/x86/types_x86.h"
#include <immintrin.h>

typedef __m256i quant_long_codes_avx2(const uint8_t *block, int s);

/* Lane j is the sum of the lanes of v[j]. */
CPU_TARGET_AVX2 QUANT_INLINE __m256i quant_long_lane_sums(const __m256i v[8])
{
    __m256i low = _mm256_hadd_epi32(_mm256_hadd_epi32(v[0], v[1]), _mm256_hadd_epi32(v[2], v[3]));
    __m256i high = _mm256_hadd_epi32(_mm256_hadd_epi32(v[4], v[5]), _mm256_hadd_epi32(v[6], v[7]));
    return _mm256_add_epi32(_mm256_permute2x128_si256(low, high, 0x20),
                            _mm256_permute2x128_si256(low, high, 0x31));
}

/* A step multiplies eight blocks of 32 (fewer at the end of a row), whose values v (quant/quant.h)
 * fill one register. */
CPU_TARGET_AVX2 QUANT_INLINE void quant_long_gemv_avx2(struct quant_long_form form,
                                                       quant_long_codes_avx2 *codes, int64_t k,
                                                       const struct quant_rows *rows,
                                                       const struct quant_act *a, float *out)
{
    const int per_block = (int)(form.len / 32);
    for (int64_t r = 0; r < rows->n; r++) {
        const uint8_t *row = (const uint8_t *)rows->w + (size_t)r * rows->row_bytes;
        float acc = 0.0f;
        for (int64_t b = 0; b < k / 32; b += 8) {
            const int n = k / 32 - b < 8 ? (int)(k / 32 - b) : 8;
            __m256i v[8];
            float d[8] = {0}, da[8] = {0}, term[8];
            int32_t sum[8] = {0};
            quant_prefetch_single((const char *)quant_long_at(form, row, 32 * b) +
                                      QUANT_SINGLE_DISTANCE,
                                  (size_t)(8 / per_block * form.bytes), rows->prefetch.to_l1);
            for (int j = 0; j < 8; j++) {
                v[j] = _mm256_setzero_si256();
                if (j >= n) continue;
                const uint8_t *block = quant_long_at(form, row, 32 * (b + j));
                __m256i x = _mm256_loadu_si256((const __m256i *)(a->q + 32 * (b + j)));
                __m256i products = _mm256_maddubs_epi16(codes(block, (int)(b + j) % per_block), x);
                v[j] = _mm256_madd_epi16(products, _mm256_set1_epi16(1));
                d[j] = _cvtsh_ss(quant_load16(block));
                da[j] = a->d[b + j];
                sum[j] = form.offset * a->sum[b + j];
            }
            __m256i isum =
                _mm256_sub_epi32(quant_long_lane_sums(v), _mm256_loadu_si256((const __m256i *)sum));
            __m256 scale = _mm256_mul_ps(_mm256_loadu_ps(d), _mm256_loadu_ps(da));
            _mm256_storeu_ps(term, _mm256_mul_ps(scale, _mm256_cvtepi32_ps(isum)));
            for (int j = 0; j < n; j++) acc += term[j];
        }
        out[r] = acc;
    }
}

CPU_TARGET_AVX2 QUANT_INLINE void quant_long_unpack_avx2(struct quant_long_form form,
                                                         quant_long_codes_avx2 *codes,
                                                         int64_t first, int64_t n_blocks,
                                                         const void *const row[QUANT_PANEL_ROWS],
                                                         struct quant_panel32 *p)
{
    for (int64_t b = first; b < first + n_blocks; b++, p++) {
        for (int r = 0; r < QUANT_PANEL_ROWS; r++) {
            const uint8_t *block = quant_long_at(form, row[r], 32 * b);
            uint8_t code[32];
            _mm256_storeu_si256((__m256i *)code, codes(block, (int)(b % (form.len / 32))));
            p->d[r] = _cvtsh_ss(quant_load16(block));
            p->m[r] = 0.0f;
            for (int i = 0; i < 8; i++) memcpy(p->q[i][r], code + 4 * i, 4);
        }
    }
}

CPU_TARGET_AVX2 QUANT_INLINE void quant_long_decode_avx2(struct quant_long_form form,
                                                         quant_long_codes_avx2 *codes,
                                                         int64_t first, int64_t n, const void *row,
                                                         float *out)
{
    for (int64_t i = first; i < first + n; i += 32, out += 32) {
        const uint8_t *block = quant_long_at(form, row, i);
        const __m256 d = _mm256_set1_ps(_cvtsh_ss(quant_load16(block)));
        uint8_t code[32];
        _mm256_storeu_si256((__m256i *)code, codes(block, (int)(i % form.len / 32)));
        for (int j = 0; j < 32; j += 8) {
            __m256i c = _mm256_cvtepu8_epi32(_mm_loadl_epi64((const __m128i *)(code + j)));
            c = _mm256_sub_epi32(c, _mm256_set1_epi32(form.offset));
            _mm256_storeu_ps(out + j, _mm256_mul_ps(d, _mm256_cvtepi32_ps(c)));
        }
    }
}

/* ---- One column, AVX-512: four rows at a time, sixteen blocks of 32 per step ---- */

typedef __m512i quant_long_codes_avx512(const uint8_t *block, int s);

/* Computes v of n blocks of 32, at most sixteen, from block b of the column and `at` of a row; the
 * other lanes are unused. */
CPU_TARGET_AVX512 QUANT_INLINE __m512 quant_long_values(struct quant_long_form form,
                                                        quant_long_codes_avx512 *codes,
                                                        const uint8_t *at,
                                                        const struct quant_act *a, int64_t b, int n)
{
    const __m512i ones = _mm512_set1_epi16(1),
                  lane = _mm512_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
    const int per_block = (int)(form.len / 32);
    const __mmask16 live = (__mmask16)((1u << n) - 1);
    uint16_t d[8] = {0};
    __m512i v[8];
    EACH (j, 8) {
        v[j] = _mm512_setzero_si512();
        if (2 * j >= n) continue;
        const uint8_t *block = at + 2 * j / per_block * form.bytes;
        const __m512i x = _mm512_loadu_si512(a->q + 32 * b + 64 * j);
        v[j] = _mm512_dpbusd_epi32(v[j], codes(block, j % (per_block / 2)), x);
        d[2 * j / per_block] = quant_load16(block);
    }
    /* Reduces sums of four products to sums of a quarter of a block; they fit 16 bits because codes
     * are below 4. */
    EACH (i, 4) v[i] = _mm512_madd_epi16(_mm512_packs_epi32(v[2 * i], v[2 * i + 1]), ones);
    EACH (i, 2) v[i] = _mm512_madd_epi16(_mm512_packs_epi32(v[2 * i], v[2 * i + 1]), ones);
    const __m512i sums = _mm512_add_epi32(_mm512_shuffle_i64x2(v[0], v[1], 0x88),
                                          _mm512_shuffle_i64x2(v[0], v[1], 0xdd));
    const __m512i order = _mm512_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7, 8, 12, 9, 13, 10, 14, 11, 15);
    const __m512i less =
        _mm512_mullo_epi32(_mm512_cvtepi16_epi32(_mm256_maskz_loadu_epi16(live, a->sum + b)),
                           _mm512_set1_epi32(form.offset));
    const __m512i isum = _mm512_sub_epi32(_mm512_permutexvar_epi32(order, sums), less);
    const __m256 heads =
        _mm256_cvtph_ps(_mm_setr_epi16((int16_t)d[0], (int16_t)d[1], (int16_t)d[2], (int16_t)d[3],
                                       (int16_t)d[4], (int16_t)d[5], (int16_t)d[6], (int16_t)d[7]));
    const __m512 of_block = _mm512_permutexvar_ps(_mm512_srli_epi32(lane, per_block == 2 ? 1 : 2),
                                                  _mm512_castps256_ps512(heads));
    const __m512 scale = _mm512_mul_ps(of_block, _mm512_maskz_loadu_ps(live, a->d + b));
    return _mm512_mul_ps(scale, _mm512_cvtepi32_ps(isum));
}

/* Adds the first n of sixteen v of each of four rows to acc in their order; lane r is row r. */
CPU_TARGET_AVX512 QUANT_INLINE __m128 quant_long_add(__m128 acc, const __m512 v[4], int n)
{
    const __m512 a0 = _mm512_unpacklo_ps(v[0], v[1]), a1 = _mm512_unpackhi_ps(v[0], v[1]);
    const __m512 b0 = _mm512_unpacklo_ps(v[2], v[3]), b1 = _mm512_unpackhi_ps(v[2], v[3]);
    float of[4][16]; /* [i]: blocks i, 4 + i, 8 + i and 12 + i */
    _mm512_storeu_ps(of[0], _mm512_shuffle_ps(a0, b0, 0x44));
    _mm512_storeu_ps(of[1], _mm512_shuffle_ps(a0, b0, 0xee));
    _mm512_storeu_ps(of[2], _mm512_shuffle_ps(a1, b1, 0x44));
    _mm512_storeu_ps(of[3], _mm512_shuffle_ps(a1, b1, 0xee));
    for (int i = 0; i < n; i++) acc = _mm_add_ps(acc, _mm_loadu_ps(of[i % 4] + i / 4 * 4));
    return acc;
}

CPU_TARGET_AVX512 QUANT_INLINE __m128 quant_long_step(struct quant_long_form form,
                                                      quant_long_codes_avx512 *codes,
                                                      const uint8_t *const row[4],
                                                      const struct quant_act *a, int64_t b, int n,
                                                      __m128 acc)
{
    __m512 v[4];
    EACH (i, 4) v[i] = quant_long_values(form, codes, quant_long_at(form, row[i], 32 * b), a, b, n);
    return quant_long_add(acc, v, n);
}

CPU_TARGET_AVX512 QUANT_INLINE void quant_long_gemv_avx512(struct quant_long_form form,
                                                           quant_long_codes_avx512 *codes,
                                                           int64_t k, const struct quant_rows *rows,
                                                           const struct quant_act *a, float *out)
{
    for (int64_t r = 0; r < rows->n; r += 4) {
        const uint8_t *row[4];
        float sum[4];
        for (int64_t i = 0; i < 4; i++) {
            const int64_t at = r + i < rows->n ? r + i : rows->n - 1;
            row[i] = (const uint8_t *)rows->w + (size_t)at * rows->row_bytes;
        }
        __m128 acc = _mm_setzero_ps();
        int64_t b = 0;
        for (; b + 16 <= k / 32; b += 16) {
            for (int i = 0; i < 4; i++)
                quant_prefetch_single((const char *)quant_long_at(form, row[i], 32 * b) +
                                          QUANT_SINGLE_DISTANCE,
                                      (size_t)(512 / form.len * form.bytes), rows->prefetch.to_l1);
            acc = quant_long_step(form, codes, row, a, b, 16, acc);
        }
        if (b < k / 32) acc = quant_long_step(form, codes, row, a, b, (int)(k / 32 - b), acc);
        _mm_storeu_ps(sum, acc);
        for (int64_t i = 0; i < 4 && r + i < rows->n; i++) out[r + i] = sum[i];
    }
}

#define QUANT_LONG_X86(NAME)                                                                       \
    QUANT_GEMV_AT(NAME##_gemv_avx512, CPU_TARGET_AVX512,                                           \
                  quant_long_gemv_avx512(NAME##_form, NAME##_codes_avx512, k, rows, a, out))       \
    QUANT_DECODE_AT(NAME##_decode_avx2, CPU_TARGET_AVX2,                                           \
                    quant_long_decode_avx2(NAME##_form, NAME##_codes_avx2, first, n, row, out))    \
    QUANT_GEMV_AT(NAME##_gemv_avx2, CPU_TARGET_AVX2,                                               \
                  quant_long_gemv_avx2(NAME##_form, NAME##_codes_avx2, k, rows, a, out))           \
    QUANT_UNPACK_AT(                                                                               \
        NAME##_unpack_avx2, CPU_TARGET_AVX2,                                                       \
        quant_long_unpack_avx2(NAME##_form, NAME##_codes_avx2, first, n_blocks, row, panel))

/* Members of the row of AVX2. */
#define QUANT_LONG_AVX2(NAME)                                                                      \
    .decode = NAME##_decode_avx2, .unpack = NAME##_unpack_avx2, .panel = &NAME##_panel,            \
    .gemv = NAME##_gemv_avx2

/* quant/q5_1.c: Q5_1: blocks of 32 five-bit codes with a scale and a minimum; 6 bits per weight.
 *
 *      byte  0     2     4         8                      24
 *            | d   | m   | qh[4]   | qs[16]               |     d, m: binary16, little-endian
 *
 *      qs[i]:  high nibble: low four bits of element 16 + i, low nibble: of element i
 *      qh:     as a little-endian 32-bit number, bit i is the fifth bit of element i
 *      x = d * code + m,   code 0 .. 31
 *
 * Source of the layout: the GGUF format as its reference implementation writes it. */
#include "quant/block32.h"
#include <math.h>

struct block {
    uint16_t d, m;
    uint8_t qh[4];
    uint8_t qs[16];
};
_Static_assert(sizeof(struct block) == 24, "Q5_1 block");

static void block_codes(const struct block *block, uint8_t code[32])
{
    uint32_t high;
    memcpy(&high, block->qh, sizeof high);
    for (int i = 0; i < 16; i++) {
        code[i] = (uint8_t)((block->qs[i] & 15) | (high >> i & 1) << 4);
        code[i + 16] = (uint8_t)(block->qs[i] >> 4 | (high >> (i + 16) & 1) << 4);
    }
}

static struct block block_at(const void *row, int64_t b)
{
    struct block block;
    memcpy(&block, (const char *)row + (size_t)b * sizeof block, sizeof block);
    return block;
}

static void decode_scalar(int64_t k, const void *row, float *out)
{
    for (int64_t b = 0; b < k / 32; b++) {
        struct block block = block_at(row, b);
        float d = quant_f16_to_f32(block.d), m = quant_f16_to_f32(block.m);
        uint8_t code[32];
        block_codes(&block, code);
        for (int i = 0; i < 32; i++) out[32 * b + i] = d * (float)code[i] + m;
    }
}

static void encode(int64_t k, const float *in, void *row)
{
    for (int64_t b = 0; b < k / 32; b++) {
        uint8_t code[32];
        struct quant_scales scales = quant_encode_with_min(in + 32 * b, 31, code);
        struct block block = {.d = scales.d, .m = scales.m};
        uint32_t high = 0;
        for (int i = 0; i < 16; i++) block.qs[i] = (uint8_t)((code[i] & 15) | code[i + 16] << 4);
        for (int i = 0; i < 32; i++) high |= (uint32_t)(code[i] >> 4) << i;
        memcpy(block.qh, &high, sizeof high);
        memcpy((char *)row + (size_t)b * sizeof block, &block, sizeof block);
    }
}

static float dot(int64_t k, const void *row, const struct quant_act *a)
{
    float acc = 0.0f;
    for (int64_t b = 0; b < k / 32; b++) {
        struct block block = block_at(row, b);
        uint8_t code[32];
        block_codes(&block, code);
        float isum = (float)quant_sum32(code, 0, a->q + 32 * b);
        float t = quant_f16_to_f32(block.m) * a->s[b];
        acc += fmaf(quant_f16_to_f32(block.d) * a->d[b], isum, t);
    }
    return acc;
}

static void gemv_scalar(int64_t k, const void *w, size_t row_bytes, int64_t n_rows,
                        const struct quant_act *a, float *out)
{
    quant_gemv_by_dot(dot, k, w, row_bytes, n_rows, a, out);
}

static void unpack_scalar(int64_t n_blocks, const void *const row[QUANT_PANEL_ROWS], void *panel)
{
    struct quant_panel32 *p = panel;
    for (int64_t b = 0; b < n_blocks; b++) {
        for (int r = 0; r < QUANT_PANEL_ROWS; r++) {
            struct block block = block_at(row[r], b);
            uint8_t code[32];
            block_codes(&block, code);
            p[b].d[r] = quant_f16_to_f32(block.d);
            p[b].m[r] = quant_f16_to_f32(block.m);
            quant_panel32_put(&p[b], r, code);
        }
    }
}

#if defined(__x86_64__)

static const struct quant_gemv_form gemv_form = {
    .block_bytes = sizeof(struct block), .offset = 0, .has_min = true, .narrow = 1};

QUANT_TARGET_AVX2 static void decode_avx2(int64_t k, const void *row, float *out)
{
    for (int64_t b = 0; b < k / 32; b++) {
        const uint8_t *at = (const uint8_t *)row + (size_t)b * sizeof(struct block);
        __m256i codes = quant_codes_avx2(at + offsetof(struct block, qs));
        codes = _mm256_or_si256(
            codes, quant_fifth_of_32_avx2(quant_load32(at + offsetof(struct block, qh))));
        quant_decode32_avx2(gemv_form, codes, quant_load16(at), quant_load16(at + 2), out + 32 * b);
    }
}

QUANT_TARGET_AVX2 QUANT_INLINE __m256i sums_avx2(const uint8_t *even, const uint8_t *odd,
                                                 __m256i q_low, __m256i q_high)
{
    const __m256i nibble = _mm256_set1_epi8(15);
    __m256i qs = quant_pair_avx2(even + 8, odd + 8);
    __m256i qh = _mm256_set_m128i(_mm_set1_epi32(quant_load32(odd + 4)),
                                  _mm_set1_epi32(quant_load32(even + 4)));
    __m256i low = _mm256_and_si256(qs, nibble);
    __m256i high = _mm256_and_si256(_mm256_srli_epi16(qs, 4), nibble);
    low = _mm256_or_si256(low, quant_bits_to_16_avx2(qh, 0));
    high = _mm256_or_si256(high, quant_bits_to_16_avx2(qh, 2));
    low = _mm256_maddubs_epi16(low, q_low);
    high = _mm256_maddubs_epi16(high, q_high);
    /* At most 4 * 31 * 127: sixteen bits hold it. */
    return _mm256_madd_epi16(_mm256_add_epi16(low, high), _mm256_set1_epi16(1));
}

QUANT_TARGET_AVX2 static void gemv_avx2(int64_t k, const void *w, size_t row_bytes, int64_t n_rows,
                                        const struct quant_act *a, float *out)
{
    quant_gemv(gemv_form, sums_avx2, quant_scales_avx2, k, w, row_bytes, n_rows, a, out);
}

QUANT_TARGET_AVX2 static void unpack_avx2(int64_t n_blocks, const void *const row[QUANT_PANEL_ROWS],
                                          void *panel)
{
    struct quant_panel32 *p = panel;
    const uint8_t *at[QUANT_PANEL_ROWS];
    memcpy(at, row, sizeof at);
    for (int64_t b = 0; b < n_blocks; b++, p++) {
        for (int r = 0; r < QUANT_PANEL_ROWS; r += 8) {
            __m256i t[4], q[8];
            _mm256_store_ps(p->d + r, _mm256_cvtph_ps(quant_row_words_avx2(at + r, 0)));
            _mm256_store_ps(p->m + r, _mm256_cvtph_ps(quant_row_words_avx2(at + r, 2)));
            quant_transpose_avx2(at + r, 8, t);
            quant_nibbles_avx2(t, q);
            quant_fifth_bits_avx2(quant_row_dwords_avx2(at + r, 4), q);
            quant_put_avx2(p, r, q);
        }
        for (int r = 0; r < QUANT_PANEL_ROWS; r++) at[r] += sizeof(struct block);
    }
}

QUANT_TARGET_AVX512 QUANT_INLINE __m256i sums_avx512(const uint8_t *even, const uint8_t *odd,
                                                     __m256i q_low, __m256i q_high)
{
    const __m256i nibble = _mm256_set1_epi8(15);
    __m256i qs = quant_pair_avx2(even + 8, odd + 8);
    __m256i qh = _mm256_set_m128i(_mm_set1_epi32(quant_load32(odd + 4)),
                                  _mm_set1_epi32(quant_load32(even + 4)));
    __m256i low = quant_add_fifth_avx512(_mm256_and_si256(qs, nibble), qh, 0);
    __m256i high =
        quant_add_fifth_avx512(_mm256_and_si256(_mm256_srli_epi16(qs, 4), nibble), qh, 2);
    return _mm256_dpbusd_epi32(_mm256_dpbusd_epi32(_mm256_setzero_si256(), low, q_low), high,
                               q_high);
}

QUANT_TARGET_AVX512 static void gemv_avx512(int64_t k, const void *w, size_t row_bytes,
                                            int64_t n_rows, const struct quant_act *a, float *out)
{
    quant_gemv(gemv_form, sums_avx512, quant_scales_avx2, k, w, row_bytes, n_rows, a, out);
}

QUANT_TARGET_AVX512 static void unpack_avx512(int64_t n_blocks,
                                              const void *const row[QUANT_PANEL_ROWS], void *panel)
{
    struct quant_panel32 *p = panel;
    const uint8_t *at[QUANT_PANEL_ROWS];
    memcpy(at, row, sizeof at);
    for (int64_t b = 0; b < n_blocks; b++, p++) {
        __m512i t[4], q[8];
        __m512 d, m;
        quant_split_scales_avx512(
            quant_join_avx512(quant_row_dwords_avx2(at, 0), quant_row_dwords_avx2(at + 8, 0)), &d,
            &m);
        _mm512_store_ps(p->d, d);
        _mm512_store_ps(p->m, m);
        quant_transpose_avx512(at, 8, t);
        quant_nibbles_avx512(t, q);
        quant_fifth_bits_avx512(
            quant_join_avx512(quant_row_dwords_avx2(at, 4), quant_row_dwords_avx2(at + 8, 4)), q);
        quant_put_avx512(p, q);
        for (int r = 0; r < QUANT_PANEL_ROWS; r++) at[r] += sizeof(struct block);
    }
}

#endif

const struct quant_type quant_type_q5_1 = {
    .name = "Q5_1",
    .id = QUANT_Q5_1,
    .block_len = 32,
    .block_bytes = sizeof(struct block),
    .act = QUANT_ACT_Q8_32,
    .panel = {.block = 1, .sub_len = 32, .offset = 0, .max_code = 31, .has_min = true},
    .encode = encode,
    .dot = dot,
    .kernel =
        {
            [QUANT_SCALAR] = {.decode = decode_scalar,
                              .unpack = unpack_scalar,
                              .gemv = gemv_scalar},
#if defined(__x86_64__)
            [QUANT_AVX2] = {.decode = decode_avx2, .unpack = unpack_avx2, .gemv = gemv_avx2},
            [QUANT_AVX512] = {.unpack = unpack_avx512, .gemv = gemv_avx512},
#endif
        },
};

/* quant/q4_0.c: Q4_0: blocks of 32 four-bit codes with a scale; 4.5 bits per weight.
 *
 *      byte  0     2                      18
 *            | d   | qs[16]               |     d: binary16, little-endian
 *
 *      qs[i]:  high nibble: code of element 16 + i, low nibble: code of element i
 *      x = d * (code - 8),   code 0 .. 15
 *
 * Source of the layout: the GGUF format as its reference implementation writes it. */
#include "quant/block32.h"

struct block {
    uint16_t d;
    uint8_t qs[16];
};
_Static_assert(sizeof(struct block) == 18, "Q4_0 block");

enum { OFFSET = 8 };

static void block_codes(const struct block *block, uint8_t code[32])
{
    for (int i = 0; i < 16; i++) {
        code[i] = block->qs[i] & 15;
        code[i + 16] = block->qs[i] >> 4;
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
        float d = quant_f16_to_f32(block.d);
        uint8_t code[32];
        block_codes(&block, code);
        for (int i = 0; i < 32; i++) out[32 * b + i] = d * (float)(code[i] - OFFSET);
    }
}

static void encode(int64_t k, const float *in, void *row)
{
    for (int64_t b = 0; b < k / 32; b++) {
        uint8_t code[32];
        struct block block = {.d = quant_encode_symmetric(in + 32 * b, OFFSET, code).d};
        for (int i = 0; i < 16; i++) block.qs[i] = (uint8_t)(code[i] | code[i + 16] << 4);
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
        float isum = (float)quant_sum32(code, OFFSET, a->q + 32 * b);
        acc += quant_f16_to_f32(block.d) * a->d[b] * isum;
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
            p[b].m[r] = 0.0f;
            quant_panel32_put(&p[b], r, code);
        }
    }
}

#if defined(__x86_64__)

static const struct quant_gemv_form gemv_form = {
    .block_bytes = sizeof(struct block), .offset = OFFSET, .has_min = false, .narrow = 2};

QUANT_TARGET_AVX2 static void decode_avx2(int64_t k, const void *row, float *out)
{
    for (int64_t b = 0; b < k / 32; b++) {
        const uint8_t *at = (const uint8_t *)row + (size_t)b * sizeof(struct block);
        __m256i codes = quant_codes_avx2(at + offsetof(struct block, qs));
        quant_decode32_avx2(gemv_form, codes, quant_load16(at), 0, out + 32 * b);
    }
}

QUANT_TARGET_AVX2 QUANT_INLINE __m256i sums_avx2(const uint8_t *even, const uint8_t *odd,
                                                 __m256i q_low, __m256i q_high)
{
    const __m256i nibble = _mm256_set1_epi8(15);
    __m256i qs = quant_pair_avx2(even + 2, odd + 2);
    __m256i low = _mm256_maddubs_epi16(_mm256_and_si256(qs, nibble), q_low);
    __m256i high = _mm256_maddubs_epi16(_mm256_and_si256(_mm256_srli_epi16(qs, 4), nibble), q_high);
    /* At most 4 * 15 * 127: sixteen bits hold it. */
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
            _mm256_store_ps(p->m + r, _mm256_setzero_ps());
            quant_transpose_avx2(at + r, 2, t);
            quant_nibbles_avx2(t, q);
            quant_put_avx2(p, r, q);
        }
        for (int r = 0; r < QUANT_PANEL_ROWS; r++) at[r] += sizeof(struct block);
    }
}

/* Four blocks are 36 words: 0 to 31 are read at byte 0, 4 to 35 at byte 8. */
enum { SECOND = 8 };

QUANT_TARGET_AVX512 QUANT_INLINE __m256i sums_avx512(const uint8_t *even, const uint8_t *odd,
                                                     __m256i q_low, __m256i q_high)
{
    const __m256i nibble = _mm256_set1_epi8(15);
    __m256i qs = quant_pair_avx2(even + 2, odd + 2);
    __m256i sum = _mm256_dpbusd_epi32(_mm256_setzero_si256(), _mm256_and_si256(qs, nibble), q_low);
    return _mm256_dpbusd_epi32(sum, _mm256_and_si256(_mm256_srli_epi16(qs, 4), nibble), q_high);
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
        __m256i d = _mm256_set_m128i(quant_row_words_avx2(at + 8, 0), quant_row_words_avx2(at, 0));
        _mm512_store_ps(p->d, _mm512_cvtph_ps(d));
        _mm512_store_ps(p->m, _mm512_setzero_ps());
        quant_transpose_avx512(at, 2, t);
        quant_nibbles_avx512(t, q);
        quant_put_avx512(p, q);
        for (int r = 0; r < QUANT_PANEL_ROWS; r++) at[r] += sizeof(struct block);
    }
}

#endif

const struct quant_type quant_type_q4_0 = {
    .name = "Q4_0",
    .id = QUANT_Q4_0,
    .block_len = 32,
    .block_bytes = sizeof(struct block),
    .act = QUANT_ACT_Q8_32,
    .panel = {.block = 1, .sub_len = 32, .offset = OFFSET, .max_code = 15},
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

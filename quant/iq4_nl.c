/* quant/iq4_nl.c: IQ4_NL: blocks of 32 four-bit codes into a book of 16 values, with a scale.
 *
 * value = d * book[code]. 4.5 bits a weight. "Codes" below, in panels too, are book[code] + 128.
 * Called through the type table only. */
#include "quant/block32.h"
#include "quant/book.h"

struct iq4_nl_block {
    uint16_t d;            /* half precision */
    uint8_t q[16];         /* byte l: element l low, element 16 + l high */
} __attribute__((packed)); /* blocks lie at any alignment */
_Static_assert(sizeof(struct iq4_nl_block) == 18, "the size in the file");

enum { OFFSET = 128, MAX_CODE = 113 + OFFSET };

SUPER_INLINE void iq4_nl_expand(const struct iq4_nl_block *w, uint8_t code[32])
{
    for (int l = 0; l < 16; l++) {
        code[l] = (uint8_t)(book_iq4[w->q[l] & 15] + OFFSET);
        code[16 + l] = (uint8_t)(book_iq4[w->q[l] >> 4] + OFFSET);
    }
}

SUPER_INLINE void iq4_nl_decode_any(int64_t k, const void *row, float *out)
{
    const struct iq4_nl_block *w = row;
    for (int64_t b = 0; b < k / 32; b++) {
        float d = quant_f16_to_f32(w[b].d);
        uint8_t code[32];
        iq4_nl_expand(&w[b], code);
        for (int i = 0; i < 32; i++) out[32 * b + i] = d * (float)(code[i] - OFFSET);
    }
}

static void iq4_nl_decode(int64_t k, const void *row, float *out)
{
    iq4_nl_decode_any(k, row, out);
}

static void iq4_nl_encode(int64_t k, const float *in, void *row)
{
    struct iq4_nl_block *out = row;
    for (int64_t b = 0; b < k / 32; b++, in += 32, out++) {
        float x[32], weight[32];
        uint8_t code[32] = {0};
        if (quant_fit_prepare(32, in, x, weight)) {
            out->d = quant_fit_half(quant_fit_scale(&book_iq4_grid, 32, x, weight));
            quant_fit_codes(&book_iq4_grid, 32, x, quant_fit_inverse(quant_f16_to_f32(out->d)),
                            code);
        } else {
            out->d = FIT_NAN;
        }
        for (int l = 0; l < 16; l++) out->q[l] = (uint8_t)(code[l] | code[16 + l] << 4);
    }
}

static float iq4_nl_dot(int64_t k, const void *row, const struct quant_act *a)
{
    const struct iq4_nl_block *w = row;
    float acc = 0.0f;
    for (int64_t b = 0; b < k / 32; b++) {
        uint8_t code[32];
        iq4_nl_expand(&w[b], code);
        float isum = (float)quant_sum32(code, OFFSET, a->q + 32 * b);
        acc += quant_f16_to_f32(w[b].d) * a->d[b] * isum;
    }
    return acc;
}

static void iq4_nl_gemv(int64_t k, const void *w, size_t row_bytes, int64_t n_rows,
                        const struct quant_act *a, float *out)
{
    quant_gemv_by_dot(iq4_nl_dot, k, w, row_bytes, n_rows, a, out);
}

static void iq4_nl_unpack(int64_t n_blocks, const void *const row[QUANT_PANEL_ROWS], void *panel)
{
    struct quant_panel32 *out = panel;
    for (int64_t b = 0; b < n_blocks; b++) {
        for (int r = 0; r < QUANT_PANEL_ROWS; r++) {
            const struct iq4_nl_block *w = (const struct iq4_nl_block *)row[r] + b;
            uint8_t code[32];
            iq4_nl_expand(w, code);
            out[b].d[r] = quant_f16_to_f32(w->d);
            out[b].m[r] = 0.0f;
            quant_panel32_put(&out[b], r, code);
        }
    }
}

#if defined(__x86_64__)
QUANT_TARGET_AVX2 static void iq4_nl_decode_avx2(int64_t k, const void *row, float *out)
{
    iq4_nl_decode_any(k, row, out);
}

QUANT_TARGET_AVX2 static void
iq4_nl_unpack_avx2(int64_t n_blocks, const void *const row[QUANT_PANEL_ROWS], void *panel)
{
    struct quant_panel32 *out = panel;
    __m256i book = _mm256_add_epi8(book_load_avx2(book_iq4), _mm256_set1_epi8((char)OFFSET));
    const uint8_t *at[QUANT_PANEL_ROWS];
    memcpy(at, row, sizeof at);
    for (int64_t b = 0; b < n_blocks; b++, out++) {
        for (int r = 0; r < QUANT_PANEL_ROWS; r += 8) {
            __m256i t[4], code[8];
            _mm256_store_ps(out->d + r, _mm256_cvtph_ps(quant_row_words_avx2(at + r, 0)));
            _mm256_store_ps(out->m + r, _mm256_setzero_ps());
            quant_transpose_avx2(at + r, offsetof(struct iq4_nl_block, q), t);
            quant_nibbles_avx2(t, code);
            for (int i = 0; i < 8; i++) code[i] = _mm256_shuffle_epi8(book, code[i]);
            quant_put_avx2(out, r, code);
        }
        for (int r = 0; r < QUANT_PANEL_ROWS; r++) at[r] += sizeof(struct iq4_nl_block);
    }
}

/* The products of a pair fill their 16 bits, so each half is widened alone. */
QUANT_TARGET_AVX2 QUANT_INLINE __m256i iq4_nl_sums_avx2(const uint8_t *even, const uint8_t *odd,
                                                        __m256i q_low, __m256i q_high)
{
    const __m256i one = _mm256_set1_epi16(1);
    __m256i book = book_load_avx2(book_iq4), sizes = _mm256_abs_epi8(book);
    __m256i q = quant_pair_avx2(even + 2, odd + 2);
    __m256i low = book_products_avx2(book, sizes, super_bits(q, 0, 15), q_low);
    __m256i high = book_products_avx2(book, sizes, super_bits(q, 4, 15), q_high);
    return _mm256_add_epi32(_mm256_madd_epi16(low, one), _mm256_madd_epi16(high, one));
}

QUANT_TARGET_AVX2 static void iq4_nl_gemv_avx2(int64_t k, const void *w, size_t row_bytes,
                                               int64_t n_rows, const struct quant_act *a,
                                               float *out)
{
    const struct quant_gemv_form form = {.block_bytes = sizeof(struct iq4_nl_block)};
    quant_gemv(form, iq4_nl_sums_avx2, quant_scales_avx2, k, w, row_bytes, n_rows, a, out);
}

/* Codes unsigned as in panels: here there is a multiply-add of unsigned bytes to 32 bits, and the
 * shell subtracts the offset's share. */
QUANT_TARGET_AVX512 QUANT_INLINE __m256i iq4_nl_sums_avx512(const uint8_t *even, const uint8_t *odd,
                                                            __m256i q_low, __m256i q_high)
{
    __m256i book = _mm256_add_epi8(book_load_avx2(book_iq4), _mm256_set1_epi8((char)OFFSET));
    __m256i q = quant_pair_avx2(even + 2, odd + 2);
    __m256i low = _mm256_shuffle_epi8(book, super_bits(q, 0, 15));
    __m256i high = _mm256_shuffle_epi8(book, super_bits(q, 4, 15));
    __m256i sum = _mm256_dpbusd_epi32(_mm256_setzero_si256(), low, q_low);
    return _mm256_dpbusd_epi32(sum, high, q_high);
}

QUANT_TARGET_AVX512 static void iq4_nl_gemv_avx512(int64_t k, const void *w, size_t row_bytes,
                                                   int64_t n_rows, const struct quant_act *a,
                                                   float *out)
{
    const struct quant_gemv_form form = {.block_bytes = sizeof(struct iq4_nl_block),
                                         .offset = OFFSET};
    quant_gemv(form, iq4_nl_sums_avx512, quant_scales_avx2, k, w, row_bytes, n_rows, a, out);
}
#endif

const struct quant_type quant_type_iq4_nl = {
    .name = "IQ4_NL",
    .id = QUANT_IQ4_NL,
    .block_len = 32,
    .block_bytes = sizeof(struct iq4_nl_block),
    .act = QUANT_ACT_Q8_32,
    .panel = {.block = 1, .sub_len = 32, .offset = OFFSET, .max_code = MAX_CODE},
    .encode = iq4_nl_encode,
    .dot = iq4_nl_dot,
    .kernel =
        {
            [QUANT_SCALAR] = {.decode = iq4_nl_decode,
                              .unpack = iq4_nl_unpack,
                              .gemv = iq4_nl_gemv},
#if defined(__x86_64__)
            [QUANT_AVX2] = {.decode = iq4_nl_decode_avx2,
                            .unpack = iq4_nl_unpack_avx2,
                            .gemv = iq4_nl_gemv_avx2},
            [QUANT_AVX512] = {.gemv = iq4_nl_gemv_avx512},
#endif
        },
};

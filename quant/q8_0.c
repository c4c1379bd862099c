/* quant/q8_0.c: Q8_0: blocks of 32 signed bytes with a scale; 8.5 bits per weight.
 *
 *      byte  0     2                                  34
 *            | d   | qs[32]                           |     d: binary16, little-endian
 *
 *      x = d * qs[i]
 *
 * Panels hold the bytes plus 128, because the multiply instructions want one side unsigned.
 * Source of the layout: the GGUF format as its reference implementation writes it. */
#include "quant/block32.h"
#include <math.h>

struct block {
    uint16_t d;
    int8_t qs[32];
};
_Static_assert(sizeof(struct block) == 34, "Q8_0 block");

enum { OFFSET = 128 };

static void block_codes(const struct block *block, uint8_t code[32])
{
    for (int i = 0; i < 32; i++) code[i] = (uint8_t)(block->qs[i] + OFFSET);
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
        for (int i = 0; i < 32; i++) out[32 * b + i] = d * (float)block.qs[i];
    }
}

/* One block: the largest element goes to 127. A block with an element that is not finite gets
 * d = NaN, so that it shows; scales beyond the range of binary16 are cut to its largest. */
static struct block encode_block(const float *x)
{
    struct block block = {0};
    uint32_t largest = 0;

    for (int i = 0; i < 32; i++) {
        uint32_t bits = quant_bits_of(x[i]) & 0x7fffffff;
        if (bits > largest) largest = bits;
    }
    if (largest >= 0x7f800000) {
        block.d = 0x7e00;
        return block;
    }
    float d = quant_float_of(largest) / 127.0f;
    block.d = quant_f32_to_f16(d < 65504.0f ? d : 65504.0f);
    /* The nearest codes under the scale that the file will hold. */
    d = quant_f16_to_f32(block.d);
    for (int i = 0; i < 32 && d != 0.0f; i++) {
        float q = x[i] / d;
        q = q > 127.0f ? 127.0f : q < -127.0f ? -127.0f : q;
        block.qs[i] = (int8_t)lrintf(q);
    }
    return block;
}

static void encode(int64_t k, const float *in, void *row)
{
    for (int64_t b = 0; b < k / 32; b++) {
        struct block block = encode_block(in + 32 * b);
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

/* AVX2 takes the sign of the weight over to the activation, so its codes have no offset. */
static const struct quant_gemv_form gemv_form_avx2 = {.block_bytes = sizeof(struct block)};
static const struct quant_gemv_form gemv_form = {.block_bytes = sizeof(struct block),
                                                 .offset = OFFSET};

QUANT_TARGET_AVX2 static void decode_avx2(int64_t k, const void *row, float *out)
{
    for (int64_t b = 0; b < k / 32; b++) {
        const uint8_t *at = (const uint8_t *)row + (size_t)b * sizeof(struct block);
        __m256i codes = _mm256_loadu_si256((const __m256i *)(at + offsetof(struct block, qs)));
        codes = _mm256_xor_si256(codes, _mm256_set1_epi8(-128));
        quant_decode32_avx2(gemv_form, codes, quant_load16(at), 0, out + 32 * b);
    }
}

QUANT_TARGET_AVX2 QUANT_INLINE __m256i sums_avx2(const uint8_t *even, const uint8_t *odd,
                                                 __m256i q_low, __m256i q_high)
{
    const __m256i ones = _mm256_set1_epi16(1);
    __m256i low = quant_pair_avx2(even + 2, odd + 2);
    __m256i high = quant_pair_avx2(even + 18, odd + 18);
    /* |w| * (q with the sign of w), in pairs: at most 2 * 128 * 127, just within sixteen bits. */
    low = _mm256_maddubs_epi16(_mm256_abs_epi8(low), _mm256_sign_epi8(q_low, low));
    high = _mm256_maddubs_epi16(_mm256_abs_epi8(high), _mm256_sign_epi8(q_high, high));
    return _mm256_add_epi32(_mm256_madd_epi16(low, ones), _mm256_madd_epi16(high, ones));
}

QUANT_TARGET_AVX2 static void gemv_avx2(int64_t k, const void *w, size_t row_bytes, int64_t n_rows,
                                        const struct quant_act *a, float *out)
{
    quant_gemv(gemv_form_avx2, sums_avx2, quant_scales_avx2, k, w, row_bytes, n_rows, a, out);
}

QUANT_TARGET_AVX2 static void unpack_avx2(int64_t n_blocks, const void *const row[QUANT_PANEL_ROWS],
                                          void *panel)
{
    struct quant_panel32 *p = panel;
    const uint8_t *at[QUANT_PANEL_ROWS];
    memcpy(at, row, sizeof at);
    for (int64_t b = 0; b < n_blocks; b++, p++) {
        for (int r = 0; r < QUANT_PANEL_ROWS; r += 8) {
            __m256i q[8];
            _mm256_store_ps(p->d + r, _mm256_cvtph_ps(quant_row_words_avx2(at + r, 0)));
            _mm256_store_ps(p->m + r, _mm256_setzero_ps());
            quant_transpose_avx2(at + r, 2, q);
            quant_transpose_avx2(at + r, 18, q + 4);
            for (int i = 0; i < 8; i++) q[i] = _mm256_xor_si256(q[i], _mm256_set1_epi8(-128));
            quant_put_avx2(p, r, q);
        }
        for (int r = 0; r < QUANT_PANEL_ROWS; r++) at[r] += sizeof(struct block);
    }
}

QUANT_TARGET_AVX512 QUANT_INLINE __m256i sums_avx512(const uint8_t *even, const uint8_t *odd,
                                                     __m256i q_low, __m256i q_high)
{
    const __m256i flip = _mm256_set1_epi8(-128);
    __m256i low = _mm256_xor_si256(quant_pair_avx2(even + 2, odd + 2), flip);
    __m256i high = _mm256_xor_si256(quant_pair_avx2(even + 18, odd + 18), flip);
    __m256i sum = _mm256_dpbusd_epi32(_mm256_setzero_si256(), low, q_low);
    return _mm256_dpbusd_epi32(sum, high, q_high);
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
        __m512i q[8];
        __m256i d = _mm256_set_m128i(quant_row_words_avx2(at + 8, 0), quant_row_words_avx2(at, 0));
        _mm512_store_ps(p->d, _mm512_cvtph_ps(d));
        _mm512_store_ps(p->m, _mm512_setzero_ps());
        quant_transpose_avx512(at, 2, q);
        quant_transpose_avx512(at, 18, q + 4);
        for (int i = 0; i < 8; i++) q[i] = _mm512_xor_si512(q[i], _mm512_set1_epi8(-128));
        quant_put_avx512(p, q);
        for (int r = 0; r < QUANT_PANEL_ROWS; r++) at[r] += sizeof(struct block);
    }
}

#endif

const struct quant_type quant_type_q8_0 = {
    .name = "Q8_0",
    .id = QUANT_Q8_0,
    .block_len = 32,
    .block_bytes = sizeof(struct block),
    .act = QUANT_ACT_Q8_32,
    .panel = {.block = 1, .sub_len = 32, .offset = OFFSET, .max_code = 255},
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

/* quant/block32/q2_0.c: Q2_0: 2-bit codes with one scale for 64 elements; 2.25 bits per weight.
 *
 *      byte  0     2                      18
 *            | d   | qs[16]               |     d: binary16, little-endian
 *
 *      qs[i / 4] bits 2(i % 4), 2(i % 4) + 1: code of element i
 *      x = d * (code - 1),   code 0 .. 3
 *
 * Source of the layout: the GGUF format as its reference implementation writes it. */
#include "quant/block32/long_block.h"
#include "quant/encode/fit.h"

enum { LEN = 64, BYTES = 18, OFFSET = 1, MAX_CODE = 3 };

static const struct quant_long_form q2_0_form = {.len = LEN, .bytes = BYTES, .offset = OFFSET};

static inline uint8_t q2_0_code(const uint8_t *block, int i)
{
    return block[2 + i / 4] >> i % 4 * 2 & 3;
}

#if defined(__x86_64__)
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
#endif

QUANT_LONG_KERNELS(q2_0)

static const struct quant_fit_grid q2_0_grid = {
    .low = -1, .high = 2, .n_trials = 3, .first = 0.5f, .step = 1.0f};

QUANT_INLINE void q2_0_pack(const uint8_t *code, uint16_t d, uint8_t *block)
{
    memcpy(block, &d, sizeof d);
    for (int i = 0; i < LEN; i += 4)
        block[2 + i / 4] =
            (uint8_t)(code[i] | code[i + 1] << 2 | code[i + 2] << 4 | code[i + 3] << 6);
}

static void q2_0_encode(const struct quant_search *search, int64_t k, const float *in,
                        const float *importance, void *row)
{
    quant_fit_encode(search->fit, &q2_0_grid, LEN, BYTES, q2_0_pack, k, in, importance, row);
}

const struct quant_type quant_type_q2_0 = {
    .name = "Q2_0",
    .id = QUANT_Q2_0,
    .block_len = LEN,
    .block_bytes = BYTES,
    .panel = {.sub_len = 32, .offset = OFFSET, .max_code = MAX_CODE},
    QUANT_LONG_MEMBERS(q2_0),
};

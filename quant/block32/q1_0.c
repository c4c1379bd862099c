/* quant/block32/q1_0.c: Q1_0: signs with one scale for 128 elements; 1.125 bits per weight.
 *
 *      byte  0     2                      18
 *            | d   | bit[16]              |     d: binary16, little-endian
 *
 *      bit[i / 8] bit i % 8: element i is d, otherwise -d
 *
 * A code is twice the bit. Source of the layout: the GGUF format as its reference implementation
 * writes it. */
#include "quant/block32/long_block.h"
#include "quant/encode/fit.h"
#include <math.h>

enum { LEN = 128, BYTES = 18, OFFSET = 1, MAX_CODE = 2 };

static const struct quant_long_form q1_0_form = {.len = LEN, .bytes = BYTES, .offset = OFFSET};

static inline uint8_t q1_0_code(const uint8_t *block, int i)
{
    return (uint8_t)((block[2 + i / 8] >> i % 8 & 1) * 2);
}

#if defined(__x86_64__)
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
#endif

QUANT_LONG_KERNELS(q1_0)

QUANT_INLINE void q1_0_encode_at(int64_t k, const float *in, const float *importance, void *row)
{
    uint8_t *out = row;
    for (int64_t b = 0; b < k / LEN; b++, out += BYTES) {
        const float *x = in + b * LEN;
        float w[LEN], wx[QUANT_FIT_LANES] = {0}, ww[QUANT_FIT_LANES] = {0};
        bool finite = true;
        quant_fit_weights(LEN, importance ? importance + b * LEN : NULL, w);
        for (int i = 0; i < LEN; i += 8) {
            uint8_t bits = 0;
            for (int l = 0; l < 8; l++) {
                wx[l] += w[i + l] * fabsf(x[i + l]);
                ww[l] += w[i + l];
                finite &= fabsf(x[i + l]) < INFINITY;
            }
            for (int l = 0; l < 8; l++) bits |= (uint8_t)((x[i + l] >= 0.0f) << l);
            out[2 + i / 8] = bits;
        }
        const float mean = quant_fit_sum(wx) / quant_fit_sum(ww);
        const uint16_t d = finite ? quant_fit_half(mean) : FIT_NAN;
        memcpy(out, &d, sizeof d);
    }
}

QUANT_ENCODE_AT(q1_0, q1_0_encode, )

const struct quant_type quant_type_q1_0 = {
    .name = "Q1_0",
    .id = QUANT_Q1_0,
    .block_len = LEN,
    .block_bytes = BYTES,
    .panel = {.sub_len = 32, .offset = OFFSET, .max_code = MAX_CODE},
    QUANT_LONG_MEMBERS(q1_0),
};

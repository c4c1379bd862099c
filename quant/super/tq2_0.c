/* quant/super/tq2_0.c: TQ2_0: super-blocks of 256 ternary weights, 2-bit codes with one scale; 2.06
 * bits per weight.
 *
 *      byte  0                64    66
 *            | q[64]          | d   |     d: binary16, little-endian
 *
 *      q[32h + l]:     bits 2g + 1, 2g: code of element 128h + 32g + l, l < 32, g < 4
 *      x = d * (code - 1),   code 0 .. 3 (encoders write 0 .. 2) */
#include "quant/encode/fit.h"
#include "quant/super/super_codes.h"

struct tq2_0_block {
    uint8_t q[64];
    uint16_t d;
} __attribute__((packed)); /* blocks may be unaligned */
_Static_assert(sizeof(struct tq2_0_block) == 66, "the size in the file");

enum { OFFSET = 1, MAX_CODE = 3 };

QUANT_INLINE void tq2_0_expand(const void *row, int64_t b, struct super_parts *p)
{
    const struct tq2_0_block *w = (const struct tq2_0_block *)row + b;
    p->d = quant_f16_to_f32(w->d);
    p->m = 0.0f;
    for (int s = 0; s < 8; s++) p->scale[s] = 1;
    for (int i = 0; i < SUPER_LEN; i++) p->q[i] = w->q[i / 128 * 32 + i % 32] >> i / 32 % 4 * 2 & 3;
}

SUPER_KERNELS(tq2_0)

QUANT_INLINE void tq2_0_pack(const uint8_t *code, uint16_t d, uint8_t *block)
{
    struct tq2_0_block *out = (struct tq2_0_block *)(void *)block;
    for (int i = 0; i < 64; i++, code += i == 32 ? 96 : 0)
        out->q[i] = (uint8_t)(code[i] | code[i + 32] << 2 | code[i + 64] << 4 | code[i + 96] << 6);
    out->d = d;
}

static void tq2_0_encode(const struct quant_search *search, int64_t k, const float *in,
                         const float *importance, void *row)
{
    quant_fit_encode(search->fit, &quant_fit_ternary, SUPER_LEN, sizeof(struct tq2_0_block),
                     tq2_0_pack, k, in, importance, row);
}

#if defined(__x86_64__)
QUANT_INLINE uint16_t tq2_0_head(const void *block)
{
    const struct tq2_0_block *w = block;
    return w->d;
}

SUPER_AVX2 __m256i tq2_0_scales(const void *block)
{
    (void)block;
    return _mm256_set1_epi16(1);
}

SUPER_AVX2 __m256i tq2_0_codes(const void *block, int s)
{
    const struct tq2_0_block *w = block;
    __m256i bytes = _mm256_loadu_si256((const __m256i *)(w->q + s / 4 * 32));
    return _mm256_sub_epi8(super_bits(bytes, s % 4 * 2, 3), _mm256_set1_epi8(1));
}

SUPER_AVX512 void tq2_0_bytes(const void *block, struct super_codes_bytes *to)
{
    const struct tq2_0_block *w = block;
    EACH (i, 4) {
        __m512i bytes = super_broadcast_32(w->q + i / 2 * 32);
        bytes = _mm512_srlv_epi32(bytes, super_set_halves(i % 2 * 4, i % 2 * 4 + 2));
        to->code[i] = _mm512_and_si512(bytes, _mm512_set1_epi8(3));
    }
}

SUPER_CODES(tq2_0, tq2_0_head, 1.0f)
SUPER_CODES_512(AVX512, tq2_0, tq2_0_head, 1.0f, NULL, OFFSET)
#endif

const struct quant_type quant_type_tq2_0 = {
    .name = "TQ2_0",
    .id = QUANT_TQ2_0,
    .panel = {.sub_len = 32, .offset = OFFSET, .max_code = MAX_CODE},
    SUPER_CODES_MEMBERS(tq2_0, SUPER_CODES_AVX2(tq2_0) SUPER_CODES_LEVEL(AVX512, tq2_0)),
};

/* quant/super/tq1_0.c: TQ1_0: super-blocks of 256 ternary weights, five per byte, with one
 * scale; 1.69 bits per weight.
 *
 *      byte  0             48          52    54
 *            | q[48]       | high[4]   | d   |     d: binary16, little-endian
 *
 *      element i       0 .. 159           160 .. 239           240 .. 255
 *      byte            q[i % 32]          q[32 + i % 16]       high[i % 4]
 *      digit           i / 32             (i - 160) / 16       (i - 240) / 4
 *
 *      x = d * (digit - 1)
 *
 * A byte is a fraction of 256 with five digits of base 3: digit n is (byte * 3^n modulo 256) * 3 /
 * 256, rounded down. */
#include "quant/encode/fit.h"
#include "quant/super/super_codes.h"

struct tq1_0_block {
    uint8_t q[48], high[4];
    uint16_t d;
} __attribute__((packed)); /* blocks may be unaligned */
_Static_assert(sizeof(struct tq1_0_block) == 54, "the size in the file");

enum { OFFSET = 1, MAX_CODE = 2 };

static const uint8_t powers[5] = {1, 3, 9, 27, 81};

static inline uint8_t digit_of(uint8_t byte, int n)
{
    return (uint8_t)((uint8_t)(byte * powers[n]) * 3 >> 8);
}

/* The smallest byte with the given n digits, which are codes `stride` elements apart. */
QUANT_INLINE uint8_t byte_of(const uint8_t *code, int n, int stride)
{
    int number = 0;
    for (int i = 0; i < 5; i++) number = 3 * number + (i < n ? code[i * stride] : 0);
    return (uint8_t)((number * 256 + 242) / 243);
}

QUANT_INLINE void tq1_0_expand(const void *row, int64_t b, struct super_parts *p)
{
    const struct tq1_0_block *w = (const struct tq1_0_block *)row + b;
    p->d = quant_f16_to_f32(w->d);
    p->m = 0.0f;
    for (int s = 0; s < 8; s++) p->scale[s] = 1;
    for (int i = 0; i < 160; i++) p->q[i] = digit_of(w->q[i % 32], i / 32);
    for (int i = 0; i < 80; i++) p->q[160 + i] = digit_of(w->q[32 + i % 16], i / 16);
    for (int i = 0; i < 16; i++) p->q[240 + i] = digit_of(w->high[i % 4], i / 4);
}

SUPER_KERNELS(tq1_0)

QUANT_INLINE void tq1_0_pack(const uint8_t *code, uint16_t d, uint8_t *block)
{
    struct tq1_0_block *out = (struct tq1_0_block *)(void *)block;
    for (int i = 0; i < 32; i++) out->q[i] = byte_of(code + i, 5, 32);
    for (int i = 0; i < 16; i++) out->q[32 + i] = byte_of(code + 160 + i, 5, 16);
    for (int i = 0; i < 4; i++) out->high[i] = byte_of(code + 240 + i, 4, 4);
    out->d = d;
}

static void tq1_0_encode(const struct quant_search *search, int64_t k, const float *in,
                         const float *importance, void *row)
{
    quant_fit_encode(search->fit, &quant_fit_ternary, SUPER_LEN, sizeof(struct tq1_0_block),
                     tq1_0_pack, k, in, importance, row);
}

#if defined(__x86_64__)
QUANT_INLINE uint16_t tq1_0_head(const void *block)
{
    const struct tq1_0_block *w = block;
    return w->d;
}

SUPER_AVX2 __m256i tq1_0_scales(const void *block)
{
    (void)block;
    return _mm256_set1_epi16(1);
}

/* One digit minus 1 of each of 32 bytes; 16-bit lane i of `power` is the power of 3 for two bytes.
 */
SUPER_AVX2 __m256i tq1_0_digits(__m256i bytes, __m256i power)
{
    const __m256i low = _mm256_set1_epi16(0xff), three = _mm256_set1_epi16(3);
    __m256i even = _mm256_mullo_epi16(_mm256_and_si256(bytes, low), power);
    __m256i odd = _mm256_mullo_epi16(_mm256_srli_epi16(bytes, 8), power);
    even = _mm256_srli_epi16(_mm256_mullo_epi16(_mm256_and_si256(even, low), three), 8);
    odd = _mm256_mullo_epi16(_mm256_and_si256(odd, low), three);
    __m256i digits = _mm256_blendv_epi8(odd, even, low);
    return _mm256_sub_epi8(digits, _mm256_set1_epi8(1));
}

SUPER_AVX2 __m256i tq1_0_codes(const void *block, int s)
{
    const struct tq1_0_block *w = block;
    if (s < 5)
        return tq1_0_digits(_mm256_loadu_si256((const __m256i *)w->q),
                            _mm256_set1_epi16(powers[s]));
    __m128i bytes = _mm_loadu_si128((const __m128i *)(w->q + 32));
    if (s < 7)
        return tq1_0_digits(_mm256_broadcastsi128_si256(bytes),
                            _mm256_set_m128i(_mm_set1_epi16(powers[2 * (s - 5) + 1]),
                                             _mm_set1_epi16(powers[2 * (s - 5)])));
    __m128i high = _mm_set1_epi32((int)quant_load32(w->high));
    return tq1_0_digits(
        _mm256_set_m128i(high, bytes),
        _mm256_set_m128i(_mm_setr_epi16(1, 1, 3, 3, 9, 9, 27, 27), _mm_set1_epi16(powers[4])));
}

/* Powers of 3 in both 16-bit halves. */
enum { P0 = 0x00010001, P1 = 3 * P0, P2 = 9 * P0, P3 = 27 * P0, P4 = 81 * P0 };

/* One digit of each of 64 bytes. */
SUPER_AVX512 __m512i tq1_0_digits_avx512(__m512i bytes, __m512i power)
{
    const __m512i one = _mm512_set1_epi8(1);
    const __m512i upper = _mm512_set1_epi16((int16_t)0xff00);
    __m512i odd = _mm512_mullo_epi16(_mm512_and_si512(bytes, upper), power);
    __m512i scaled = _mm512_ternarylogic_epi32(_mm512_mullo_epi16(bytes, power), upper, odd, 0xb8);
    /* The digit is at least 1 from 86 on and 2 from 171 on: 3 * 86 >= 256, 3 * 171 >= 2 * 256. */
    __m512i digits =
        _mm512_maskz_mov_epi8(_mm512_cmpge_epu8_mask(scaled, _mm512_set1_epi8(86)), one);
    return _mm512_mask_add_epi8(digits, _mm512_cmpge_epu8_mask(scaled, _mm512_set1_epi8((char)171)),
                                digits, one);
}

SUPER_AVX512 void tq1_0_bytes(const void *block, struct super_codes_bytes *to)
{
    const struct tq1_0_block *w = block;
    __m512i first = super_broadcast_32(w->q);
    __m512i second = _mm512_broadcast_i32x4(_mm_loadu_si128((const __m128i *)(w->q + 32)));
    __m512i high = _mm512_set1_epi32((int32_t)quant_load32(w->high));
    /* Elements 128 .. 159 are the last digits of the first 32 bytes, the last 16 elements the
     * digits of `high`. */
    __m512i bytes[4] = {first, first, _mm512_mask_blend_epi64(0x0f, second, first),
                        _mm512_mask_blend_epi64(0xc0, second, high)};
    const __m512i power[4] = {
        super_set_halves(P0, P1), super_set_halves(P2, P3),
        _mm512_setr_epi32(P4, P4, P4, P4, P4, P4, P4, P4, P0, P0, P0, P0, P1, P1, P1, P1),
        _mm512_setr_epi32(P2, P2, P2, P2, P3, P3, P3, P3, P4, P4, P4, P4, P0, P1, P2, P3)};
    EACH (i, 4) to->code[i] = tq1_0_digits_avx512(bytes[i], power[i]);
}

SUPER_CODES(tq1_0, tq1_0_head, 1.0f)
SUPER_CODES_512(AVX512, tq1_0, tq1_0_head, 1.0f, NULL, OFFSET)
#endif

const struct quant_type quant_type_tq1_0 = {
    .name = "TQ1_0",
    .id = QUANT_TQ1_0,
    .panel = {.sub_len = 32, .offset = OFFSET, .max_code = MAX_CODE},
    SUPER_CODES_MEMBERS(tq1_0, SUPER_CODES_AVX2(tq1_0) SUPER_CODES_LEVEL(AVX512, tq1_0)),
};

/* quant/x86/grid_types_x86.c: the kernels of the types with grids (quant/super/grid_types.c) for
 * x86-64. */
#include "quant/super/iq1_m.h"
#include "quant/super/iq1_s.h"
#include "quant/super/iq2_s.h"
#include "quant/super/iq2_xs.h"
#include "quant/super/iq2_xxs.h"
#include "quant/super/iq3_s.h"
#include "quant/super/iq3_xxs.h"
#include "quant/x86/super_codes.h"
#include "quant/x86/types_x86.h"

/* Types whose entries are magnitudes with signs: from NAME_scales, NAME_bytes and the header. */
#define SIGNED_GRID(NAME, FACTOR)                                                                  \
    SUPER_DECODE_AVX2(NAME)                                                                        \
    SUPER_AVX2 __m256i NAME##_codes(const void *block, int s)                                      \
    {                                                                                              \
        return super_negate(super_grid_entries(NAME##_entry, block, s), NAME##_signs(block, s));   \
    }                                                                                              \
    SUPER_CODES(NAME, super_codes_first, FACTOR)                                                   \
    SUPER_CODES_512(AVX512BF16, NAME, super_codes_first, FACTOR, NAME##_scales, 0)                 \
    const struct quant_kernel quant_x86_##NAME[CPU_LEVEL_COUNT] = {                                \
        [CPU_AVX2] = {SUPER_CODES_AVX2(NAME)},                                                     \
        [CPU_AVX512BF16] = {.gemv = NAME##_gemv_512},                                              \
    };

/* Types whose entries are shifted by an eighth: from NAME_scales and NAME_codes. */
#define SHIFTED_GRID(NAME, HEAD, FACTOR)                                                           \
    SUPER_DECODE_AVX2(NAME)                                                                        \
    SUPER_CODES(NAME, HEAD, FACTOR)                                                                \
    const struct quant_kernel quant_x86_##NAME[CPU_LEVEL_COUNT] = {                                \
        [CPU_AVX2] = {SUPER_CODES_AVX2(NAME)},                                                     \
    };

SUPER_AVX2 __m256i iq2_xxs_tails(const struct iq2_xxs_block *w)
{
    __m256 low = _mm256_loadu_ps((const float *)(const void *)w->sub);
    __m256 high = _mm256_loadu_ps((const float *)(const void *)(w->sub + 4));
    __m256i tails = _mm256_castps_si256(_mm256_shuffle_ps(low, high, 0xdd));
    return _mm256_permute4x64_epi64(tails, 0xd8);
}

SUPER_AVX2 __m256i iq2_xxs_scales(const void *block)
{
    return super_tail_scales(iq2_xxs_tails(block));
}

SUPER_VBMI void iq2_xxs_bytes(const void *block, struct super_codes_bytes *to)
{
    const struct iq2_xxs_block *w = block;
    __m256i numbers = _mm512_cvtepi64_epi32(_mm512_loadu_si512(w->sub));
    super_grid_codes_2(quant_numbers_iq2_xxs, 256, _mm512_cvtepu8_epi16(numbers), to->code);
    super_tail_signs_store(iq2_xxs_tails(w), to->negative);
}

SIGNED_GRID(iq2_xxs, 0.125f)

SUPER_AVX2 __m256i iq2_xs_scales(const void *block)
{
    const struct iq2_xs_block *w = block;
    return super_odd_scales(_mm_loadl_epi64((const __m128i *)w->scale), false);
}

SUPER_VBMI void iq2_xs_bytes(const void *block, struct super_codes_bytes *to)
{
    const struct iq2_xs_block *w = block;
    __m512i q = _mm512_loadu_si512(w->q);
    __m256i sevens = _mm512_cvtepi16_epi8(_mm512_srli_epi16(q, 9));
    super_grid_codes_2(quant_numbers_iq2_xs, 512, _mm512_and_si512(q, _mm512_set1_epi16(511)),
                       to->code);
    super_signs_store(sevens, to->negative);
}

SIGNED_GRID(iq2_xs, 0.125f)

SUPER_AVX2 __m256i iq2_s_scales(const void *block)
{
    const struct iq2_s_block *w = block;
    return super_odd_scales(_mm_loadl_epi64((const __m128i *)w->scale), false);
}

/* Indices for VPSHUFB: Z makes both bytes of a word zero; Z | n * PLACE has byte n in the upper
 * one. */
enum { Z = 0x00800080, PLACE = 0x01000100 };

SUPER_VBMI void iq2_s_bytes(const void *block, struct super_codes_bytes *to)
{
    const struct iq2_s_block *w = block;
    int64_t eight;
    memcpy(&eight, w->high, sizeof eight);
    /* Moves byte i / 4 to the upper half of word i, and its two bits to bits 8 and 9. */
    const __m512i place =
        _mm512_setr_epi32(Z, Z, Z | PLACE, Z | PLACE, Z | 2 * PLACE, Z | 2 * PLACE, Z | 3 * PLACE,
                          Z | 3 * PLACE, Z | 4 * PLACE, Z | 4 * PLACE, Z | 5 * PLACE, Z | 5 * PLACE,
                          Z | 6 * PLACE, Z | 6 * PLACE, Z | 7 * PLACE, Z | 7 * PLACE);
    const __m512i shift = _mm512_set1_epi64(0x0006000400020000);
    __m512i high = _mm512_shuffle_epi8(_mm512_set1_epi64(eight), place);
    high = _mm512_and_si512(_mm512_srlv_epi16(high, shift), _mm512_set1_epi16(0x300));
    __m512i low = _mm512_cvtepu8_epi16(_mm256_loadu_si256((const __m256i *)w->q));
    super_grid_codes_2(quant_numbers_iq2_s, 1024, _mm512_or_si512(low, high), to->code);
    memcpy(to->negative, w->sign, sizeof to->negative);
}

SIGNED_GRID(iq2_s, 0.125f)

SUPER_AVX2 __m256i iq3_xxs_scales(const void *block)
{
    const struct iq3_xxs_block *w = block;
    return super_tail_scales(_mm256_loadu_si256((const __m256i *)w->tail));
}

SUPER_VBMI void iq3_xxs_bytes(const void *block, struct super_codes_bytes *to)
{
    const struct iq3_xxs_block *w = block;
    __m512i numbers[2];
    EACH (i, 2)
        numbers[i] = _mm512_cvtepu8_epi16(_mm256_loadu_si256((const __m256i *)(w->q + 32 * i)));
    super_grid_codes_3(quant_numbers_iq3_xxs, 256, numbers, 0x3e342c241c140c04, to->code);
    super_tail_signs_store(_mm256_loadu_si256((const __m256i *)w->tail), to->negative);
}

SIGNED_GRID(iq3_xxs, 0.25f)

SUPER_AVX2 __m256i iq3_s_scales(const void *block)
{
    const struct iq3_s_block *w = block;
    return super_odd_scales(_mm_cvtsi32_si128((int)quant_load32(w->scale)), true);
}

SUPER_VBMI void iq3_s_bytes(const void *block, struct super_codes_bytes *to)
{
    const struct iq3_s_block *w = block;
    const __m512i top = _mm512_set1_epi16(256);
    __m512i numbers[2];
    EACH (i, 2) {
        __mmask32 high = _cvtu32_mask32(quant_load32(w->high + 4 * i));
        __m512i low = _mm512_cvtepu8_epi16(_mm256_loadu_si256((const __m256i *)(w->q + 32 * i)));
        numbers[i] = _mm512_mask_add_epi16(low, high, low, top);
    }
    super_grid_codes_3(quant_numbers_iq3_s, 512, numbers, 0x0f0d0b0907050301, to->code);
    memcpy(to->negative, w->sign, sizeof to->negative);
}

SIGNED_GRID(iq3_s, 1.0f)

SUPER_AVX2 __m256i iq1_s_scales(const void *block)
{
    const struct iq1_s_block *w = block;
    __m128i high = _mm_srli_epi16(_mm_loadu_si128((const __m128i *)w->high), 12);
    __m128i scale = _mm_and_si128(high, _mm_set1_epi16(7));
    scale = _mm_add_epi16(_mm_add_epi16(scale, scale), _mm_set1_epi16(1));
    return _mm256_broadcastsi128_si256(scale);
}

SUPER_AVX2 __m256i iq1_s_codes(const void *block, int s)
{
    const struct iq1_s_block *w = block;
    const int shift = quant_load16(w->high[s]) & 0x8000 ? -1 : 1;
    return _mm256_add_epi8(super_grid_entries(iq1_s_entry, block, s),
                           _mm256_set1_epi8((char)shift));
}

SHIFTED_GRID(iq1_s, super_codes_first, 0.125f)

SUPER_AVX2 __m256i iq1_m_scales(const void *block)
{
    const struct iq1_m_block *w = block;
    uint16_t scale[2][8];
    EACH (s, 16)
        scale[s % 2][s / 2] = (uint16_t)(2 * (quant_load16(w->scale[s / 4]) >> s % 4 * 3 & 7) + 1);
    return _mm256_loadu_si256((const __m256i *)scale);
}

SUPER_AVX2 __m256i iq1_m_codes(const void *block, int s)
{
    const struct iq1_m_block *w = block;
    /* Selects bit 3 of a nibble for the eight bytes of its entry: set if the shift is -1. */
    __m256i high = _mm256_set1_epi16((int16_t)quant_load16(w->high + 2 * s));
    __m256i down =
        _mm256_and_si256(high, _mm256_setr_epi64x(0x0008000800080008, 0x0080008000800080,
                                                  0x0800080008000800, -0x7fff7fff7fff8000));
    __m256i up = _mm256_cmpeq_epi16(down, _mm256_setzero_si256()); /* -1: up */
    __m256i shift = _mm256_sub_epi8(_mm256_set1_epi8(-1), _mm256_add_epi8(up, up));
    return _mm256_add_epi8(super_grid_entries(iq1_m_entry, block, s), shift);
}

SHIFTED_GRID(iq1_m, iq1_m_head, 0.125f)

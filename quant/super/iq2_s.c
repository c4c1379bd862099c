/* quant/super/iq2_s.c: IQ2_S: super-blocks of 256 with a grid of 1024 times 8 magnitudes, a sign
 * bit per element, and 16 sub-blocks of 16 with 4-bit scales; 2.56 bits per weight.
 *
 *      byte  0     2            34           66          74           82
 *            | d   | q[32]      | sign[32]   | high[8]   | scale[8]   |     d: binary16
 *
 *      q[i]:           bits 7 .. 0 of entry i, elements 8i .. 8i + 7
 *      high[i / 4]:    bits 2(i % 4) + 1, 2(i % 4): bits 9 and 8 of entry i
 *      sign[i / 8]:    bit i % 8: element i is negative
 *      scale[i]:       high nibble: scale of sub-block 2i + 1, low nibble: of 2i
 *      x = d / 8 * (2 * scale + 1) * sign * quant_grid_iq2_s[entry]
 *
 * The codes in panels are sign * grid + 64. */
#include "quant/encode/grid_fit.h"
#include "quant/super/super_codes.h"

struct iq2_s_block {
    uint16_t d;
    uint8_t q[32], sign[32], high[8], scale[8];
} __attribute__((packed)); /* blocks may be unaligned */
_Static_assert(sizeof(struct iq2_s_block) == 82, "the size in the file");

enum { OFFSET = 64, MAX_CODE = 107 };

/* The entry of elements 8i .. 8i + 7. */
static inline uint64_t iq2_s_entry(const void *block, int i)
{
    const struct iq2_s_block *w = block;
    return quant_grid_iq2_s[w->q[i] | (w->high[i / 4] >> i % 4 * 2 & 3) << 8];
}

/* The sign bits of elements 32s .. 32s + 31. */
static inline uint32_t iq2_s_signs(const void *block, int s)
{
    const struct iq2_s_block *w = block;
    return quant_load32(w->sign + 4 * s);
}

QUANT_INLINE void iq2_s_expand(const void *row, int64_t b, struct super_parts *p)
{
    const struct iq2_s_block *w = (const struct iq2_s_block *)row + b;
    p->d = quant_f16_to_f32(w->d) * 0.125f;
    p->m = 0.0f;
    for (int s = 0; s < 16; s++)
        p->scale[s] = (int16_t)(2 * (w->scale[s / 2] >> s % 2 * 4 & 15) + 1);
    super_grid_expand(iq2_s_entry, iq2_s_signs, OFFSET, w, p->q);
}

SUPER_KERNELS(iq2_s)

static const struct quant_grid_form iq2_s_form = {
    QUANT_GRID_IQ2, .n_entries = 1024, .grid8 = quant_grid_iq2_s, .signs = QUANT_GRID_SIGNS_FREE,
    .sub_len = 16,
};

static void iq2_s_pack(const struct quant_grid_fit *fit, struct iq2_s_block *out)
{
    memset(out, 0, sizeof *out);
    out->d = fit->d;
    memcpy(out->sign, fit->sign, sizeof out->sign);
    for (int i = 0; i < 32; i++) {
        out->q[i] = (uint8_t)fit->entry[i];
        out->high[i / 4] |= (uint8_t)(fit->entry[i] >> 8 << i % 4 * 2);
    }
    for (int s = 0; s < 16; s++) out->scale[s / 2] |= (uint8_t)(fit->scale[s] << s % 2 * 4);
}

SUPER_GRID_ENCODE(iq2_s)

#if defined(__x86_64__)
SUPER_AVX2 __m256i iq2_s_scales(const void *block)
{
    const struct iq2_s_block *w = block;
    return super_odd_scales(_mm_loadl_epi64((const __m128i *)w->scale), false);
}

SUPER_AVX2 __m256i iq2_s_codes(const void *block, int s)
{
    return super_negate(super_grid_entries(iq2_s_entry, block, s), iq2_s_signs(block, s));
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

SUPER_CODES(iq2_s, super_codes_first, 0.125f)
SUPER_CODES_512(AVX512BF16, iq2_s, super_codes_first, 0.125f, iq2_s_scales, 0)
#endif

const struct quant_type quant_type_iq2_s = {
    .name = "IQ2_S",
    .id = QUANT_IQ2_S,
    .panel = {.sub_len = 16, .offset = OFFSET, .max_code = MAX_CODE},
    SUPER_CODES_MEMBERS(iq2_s, SUPER_CODES_AVX2(iq2_s) SUPER_CODES_LEVEL(AVX512BF16, iq2_s)),
};

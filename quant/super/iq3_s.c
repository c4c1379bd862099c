/* quant/super/iq3_s.c: IQ3_S: super-blocks of 256 with a grid of 512 times 4 magnitudes, a sign bit
 * per element, and 8 sub-blocks of 32 with 4-bit scales; 3.44 bits per weight.
 *
 *      byte  0     2            66          74           106         110
 *            | d   | q[64]      | high[8]   | sign[32]   | scale[4]  |     d: binary16
 *
 *      q[8s + j]:      bits 7 .. 0 of the entry of elements 32s + 4j .. 32s + 4j + 3, j < 8
 *      high[s]:        bit j: bit 8 of that entry
 *      sign[i / 8]:    bit i % 8: element i is negative
 *      scale[i]:       high nibble: scale of sub-block 2i + 1, low nibble: of 2i
 *      x = d * (2 * scale + 1) * sign * quant_grid_iq3_s[entry]
 *
 * The codes in panels are sign * grid + 16. */
#include "quant/encode/grid_fit.h"
#include "quant/super/super_codes.h"

struct iq3_s_block {
    uint16_t d;
    uint8_t q[64], high[8], sign[32], scale[4];
} __attribute__((packed)); /* blocks may be unaligned */
_Static_assert(sizeof(struct iq3_s_block) == 110, "the size in the file");

enum { OFFSET = 16, MAX_CODE = 31 };

/* The two entries of elements 8i .. 8i + 7. */
static inline uint64_t iq3_s_entry(const void *block, int i)
{
    const struct iq3_s_block *w = block;
    const int high = w->high[i / 4] >> i % 4 * 2;
    const uint32_t first = quant_grid_iq3_s[w->q[2 * i] | (high & 1) << 8];
    const uint32_t second = quant_grid_iq3_s[w->q[2 * i + 1] | (high >> 1 & 1) << 8];
    return first | (uint64_t)second << 32;
}

/* The sign bits of elements 32s .. 32s + 31. */
static inline uint32_t iq3_s_signs(const void *block, int s)
{
    const struct iq3_s_block *w = block;
    return quant_load32(w->sign + 4 * s);
}

QUANT_INLINE void iq3_s_expand(const void *row, int64_t b, struct super_parts *p)
{
    const struct iq3_s_block *w = (const struct iq3_s_block *)row + b;
    p->d = quant_f16_to_f32(w->d);
    p->m = 0.0f;
    for (int s = 0; s < 8; s++)
        p->scale[s] = (int16_t)(2 * (w->scale[s / 2] >> s % 2 * 4 & 15) + 1);
    super_grid_expand(iq3_s_entry, iq3_s_signs, OFFSET, w, p->q);
}

SUPER_KERNELS(iq3_s)

static const struct quant_grid_form iq3_s_form = {
    QUANT_GRID_IQ3,
    .n_entries = 512,
    .grid4 = quant_grid_iq3_s,
    .factor = 1.0f,
    .level = {1, 3, 5, 7, 9, 11, 13, 15},
    .signs = QUANT_GRID_SIGNS_FREE,
};

static void iq3_s_pack(const struct quant_grid_fit *fit, struct iq3_s_block *out)
{
    memset(out, 0, sizeof *out);
    out->d = fit->d;
    memcpy(out->sign, fit->sign, sizeof out->sign);
    for (int i = 0; i < 64; i++) {
        out->q[i] = (uint8_t)fit->entry[i];
        out->high[i / 8] |= (uint8_t)(fit->entry[i] >> 8 << i % 8);
    }
    for (int s = 0; s < 8; s++) out->scale[s / 2] |= (uint8_t)(fit->scale[s] << s % 2 * 4);
}

SUPER_GRID_ENCODE(iq3_s)

#if defined(__x86_64__)
SUPER_AVX2 __m256i iq3_s_scales(const void *block)
{
    const struct iq3_s_block *w = block;
    return super_odd_scales(_mm_cvtsi32_si128((int)quant_load32(w->scale)), true);
}

SUPER_AVX2 __m256i iq3_s_codes(const void *block, int s)
{
    return super_negate(super_grid_entries(iq3_s_entry, block, s), iq3_s_signs(block, s));
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

SUPER_CODES(iq3_s, super_codes_first, 1.0f)
SUPER_CODES_512(AVX512BF16, iq3_s, super_codes_first, 1.0f, iq3_s_scales, 0)
#endif

const struct quant_type quant_type_iq3_s = {
    .name = "IQ3_S",
    .id = QUANT_IQ3_S,
    .panel = {.sub_len = 32, .offset = OFFSET, .max_code = MAX_CODE},
    SUPER_CODES_MEMBERS(iq3_s, SUPER_CODES_AVX2(iq3_s) SUPER_CODES_LEVEL(AVX512BF16, iq3_s)),
};

/* quant/super/iq2_xs.c: IQ2_XS: super-blocks of 256 with a grid of 512 times 8 magnitudes, seven
 * sign bits per 8 elements, and 16 sub-blocks of 16 with 4-bit scales; 2.31 bits per weight.
 *
 *      byte  0     2                   66           74
 *            | d   | q[32] (16-bit)    | scale[8]   |     d: binary16, little-endian as q
 *
 *      q[i]:           bits 8 .. 0: entry of elements 8i .. 8i + 7
 *                      bits 15 .. 9: the signs of the first seven of these elements; the eighth
 *                      makes the number of negative elements even
 *      scale[i]:       high nibble: scale of sub-block 2i + 1, low nibble: of 2i
 *      x = d / 8 * (2 * scale + 1) * sign * quant_grid_iq2_xs[entry]
 *
 * The codes in panels are sign * grid + 64. */
#include "quant/encode/grid_fit.h"
#include "quant/super/super_codes.h"

struct iq2_xs_block {
    uint16_t d;
    uint8_t q[32][2], scale[8];
} __attribute__((packed)); /* blocks may be unaligned */
_Static_assert(sizeof(struct iq2_xs_block) == 74, "the size in the file");

enum { OFFSET = 64, MAX_CODE = 107 };

/* The entry of elements 8i .. 8i + 7. */
static inline uint64_t iq2_xs_entry(const void *block, int i)
{
    const struct iq2_xs_block *w = block;
    return quant_grid_iq2_xs[quant_load16(w->q[i]) & 511];
}

/* The sign bits of elements 32s .. 32s + 31. */
static inline uint32_t iq2_xs_signs(const void *block, int s)
{
    const struct iq2_xs_block *w = block;
    uint32_t signs = 0;
    for (int j = 0; j < 4; j++)
        signs |= (uint32_t)quant_signs7[quant_load16(w->q[4 * s + j]) >> 9] << 8 * j;
    return signs;
}

QUANT_INLINE void iq2_xs_expand(const void *row, int64_t b, struct super_parts *p)
{
    const struct iq2_xs_block *w = (const struct iq2_xs_block *)row + b;
    p->d = quant_f16_to_f32(w->d) * 0.125f;
    p->m = 0.0f;
    for (int s = 0; s < 16; s++)
        p->scale[s] = (int16_t)(2 * (w->scale[s / 2] >> s % 2 * 4 & 15) + 1);
    super_grid_expand(iq2_xs_entry, iq2_xs_signs, OFFSET, w, p->q);
}

SUPER_KERNELS(iq2_xs)

static const struct quant_grid_form iq2_xs_form = {
    QUANT_GRID_IQ2, .n_entries = 512, .grid8 = quant_grid_iq2_xs, .signs = QUANT_GRID_SIGNS_EVEN,
    .sub_len = 16,
};

static void iq2_xs_pack(const struct quant_grid_fit *fit, struct iq2_xs_block *out)
{
    memset(out, 0, sizeof *out);
    out->d = fit->d;
    for (int i = 0; i < 32; i++) {
        const uint16_t q = (uint16_t)(fit->entry[i] | (fit->sign[i] & 127) << 9);
        memcpy(out->q[i], &q, sizeof q);
    }
    for (int s = 0; s < 16; s++) out->scale[s / 2] |= (uint8_t)(fit->scale[s] << s % 2 * 4);
}

SUPER_GRID_ENCODE(iq2_xs)

#if defined(__x86_64__)
SUPER_AVX2 __m256i iq2_xs_scales(const void *block)
{
    const struct iq2_xs_block *w = block;
    return super_odd_scales(_mm_loadl_epi64((const __m128i *)w->scale), false);
}

SUPER_AVX2 __m256i iq2_xs_codes(const void *block, int s)
{
    return super_negate(super_grid_entries(iq2_xs_entry, block, s), iq2_xs_signs(block, s));
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

SUPER_CODES(iq2_xs, super_codes_first, 0.125f)
SUPER_CODES_512(AVX512BF16, iq2_xs, super_codes_first, 0.125f, iq2_xs_scales, 0)
#endif

const struct quant_type quant_type_iq2_xs = {
    .name = "IQ2_XS",
    .id = QUANT_IQ2_XS,
    .panel = {.sub_len = 16, .offset = OFFSET, .max_code = MAX_CODE},
    SUPER_CODES_MEMBERS(iq2_xs, SUPER_CODES_AVX2(iq2_xs) SUPER_CODES_LEVEL(AVX512BF16, iq2_xs)),
};

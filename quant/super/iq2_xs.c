/* quant/super/iq2_xs.c: IQ2_XS: a grid of 512 times 8 magnitudes, signs in sevens, 16 sub-blocks of
 * 16 with 4-bit scales.
 *
 * value = d / 8 * (2 * scale + 1) * +-grid. 2.31 bits a weight. The eighth sign of 8 elements makes
 * the number of negative ones even. Panels hold the code + 64.
 * Called through the type table only. */
#include "quant/encode/grid_fit.h"
#include "quant/super/super_codes.h"

struct iq2_xs_block {
    uint16_t d; /* half precision */
    uint8_t q[32]
             [2]; /* little-endian, of elements 8i ... 8i + 7: bits 0 ... 8 the entry, 9 ... 15 */
                  /* their signs */
    uint8_t scale[8];      /* scale[i]: of sub-block 2i low, 2i + 1 high */
} __attribute__((packed)); /* blocks lie at any alignment */
_Static_assert(sizeof(struct iq2_xs_block) == 74, "the size in the file");

enum { OFFSET = 64, MAX_CODE = 107 };

/* The entry of elements 32s + 8j ... 32s + 8j + 7. */
static inline uint64_t iq2_xs_entry(const struct iq2_xs_block *w, int s, int j)
{
    return quant_grid_iq2_xs[quant_load16(w->q[4 * s + j]) & 511];
}

/* The signs of elements 32s ... 32s + 31. */
static inline uint32_t iq2_xs_signs(const struct iq2_xs_block *w, int s)
{
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
    for (int i = 0; i < SUPER_LEN; i++)
        p->q[i] = super_grid_code(iq2_xs_entry(w, i / 32, i / 8 % 4),
                                  (int)(iq2_xs_signs(w, i / 32) >> i % 32 / 8 * 8), i % 8, OFFSET);
}

SUPER_KERNELS(iq2_xs)

static const struct quant_grid_form iq2_xs_form = {
    .n_levels = 3,
    .level = {8, 25, 43},
    .n_scales = 7,
    .first = 0.75f,
    .ratio = 1.18f,
    .factor = 0.125f,
    .max_scale = 15,
    .n_entries = 512,
    .entry_len = 8,
    .grid8 = quant_grid_iq2_xs,
    .signs = QUANT_GRID_SIGNS_EVEN,
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
QUANT_INLINE uint16_t iq2_xs_head(const void *block)
{
    return quant_load16(block);
}

SUPER_AVX2 __m256i iq2_xs_scales(const void *block)
{
    const struct iq2_xs_block *w = block;
    return super_odd_scales(_mm_loadl_epi64((const __m128i *)w->scale), false);
}

SUPER_AVX2 __m256i iq2_xs_codes(const void *block, int s)
{
    const struct iq2_xs_block *w = block;
    uint64_t entry[4];
    EACH (j, 4) entry[j] = iq2_xs_entry(w, s, j);
    return super_negate(_mm256_loadu_si256((const __m256i *)entry), iq2_xs_signs(w, s));
}

SUPER_CODES(iq2_xs, 0.125f)
#endif

const struct quant_type quant_type_iq2_xs = {
    .name = "IQ2_XS",
    .id = QUANT_IQ2_XS,
    .panel = {.sub_len = 16, .offset = OFFSET, .max_code = MAX_CODE},
    .encode = iq2_xs_encode,
    .encode_by = iq2_xs_encode_by,
    SUPER_CODES_MEMBERS(iq2_xs),
};

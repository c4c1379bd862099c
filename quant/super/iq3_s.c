/* quant/super/iq3_s.c: IQ3_S: a grid of 512 times 4 magnitudes, signs of their own, 8 sub-blocks of
 * 32 with 4-bit scales.
 *
 * value = d * (2 * scale + 1) * +-grid. 3.44 bits a weight. Panels hold the code + 16. Called
 * through the type table only. */
#include "quant/encode/grid_fit.h"
#include "quant/super/super_codes.h"

struct iq3_s_block {
    uint16_t d;       /* half precision */
    uint8_t q[64];    /* q[8s + j]: low bits of the entry of elements 32s + 4j ... 32s + 4j + 3 */
    uint8_t high[8];  /* high[s] bit j: bit 8 of that entry's number */
    uint8_t sign[32]; /* sign[i / 8] bit i % 8: element i is negative */
    uint8_t scale[4]; /* scale[i]: of sub-block 2i low, 2i + 1 high */
} __attribute__((packed)); /* blocks lie at any alignment */
_Static_assert(sizeof(struct iq3_s_block) == 110, "the size in the file");

enum { OFFSET = 16, MAX_CODE = 31 };

static inline uint32_t iq3_s_entry(const struct iq3_s_block *w, int s, int j)
{
    return quant_grid_iq3_s[w->q[8 * s + j] | (w->high[s] >> j & 1) << 8];
}

QUANT_INLINE void iq3_s_expand(const void *row, int64_t b, struct super_parts *p)
{
    const struct iq3_s_block *w = (const struct iq3_s_block *)row + b;
    p->d = quant_f16_to_f32(w->d);
    p->m = 0.0f;
    for (int s = 0; s < 8; s++)
        p->scale[s] = (int16_t)(2 * (w->scale[s / 2] >> s % 2 * 4 & 15) + 1);
    for (int i = 0; i < SUPER_LEN; i++)
        p->q[i] = super_grid_code(iq3_s_entry(w, i / 32, i / 4 % 8),
                                  w->sign[i / 8] >> i % 8 / 4 * 4, i % 4, OFFSET);
}

SUPER_KERNELS(iq3_s)

static const struct quant_grid_form iq3_s_form = {
    .n_scales = 7,
    .first = 0.85f,
    .ratio = 1.08f,
    .max_scale = 15,
    .sub_len = 32,
    .entry_len = 4,
    .n_levels = 8,
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
QUANT_INLINE uint16_t iq3_s_head(const void *block)
{
    return quant_load16(block);
}

SUPER_AVX2 __m256i iq3_s_scales(const void *block)
{
    const struct iq3_s_block *w = block;
    return super_odd_scales(_mm_cvtsi32_si128((int)quant_load32(w->scale)), true);
}

SUPER_AVX2 __m256i iq3_s_codes(const void *block, int s)
{
    const struct iq3_s_block *w = block;
    uint32_t entry[8];
    EACH (j, 8) entry[j] = iq3_s_entry(w, s, j);
    return super_negate(_mm256_loadu_si256((const __m256i *)entry), quant_load32(w->sign + 4 * s));
}

SUPER_CODES(iq3_s, 1.0f)
#endif

const struct quant_type quant_type_iq3_s = {
    .name = "IQ3_S",
    .id = QUANT_IQ3_S,
    .panel = {.sub_len = 32, .offset = OFFSET, .max_code = MAX_CODE},
    .encode = iq3_s_encode,
    .encode_by = iq3_s_encode_by,
    SUPER_CODES_MEMBERS(iq3_s),
};

/* quant/super/iq3_xxs.c: IQ3_XXS: a grid of 256 times 4 magnitudes, signs in sevens, 8 sub-blocks
 * of 32 with 4-bit scales.
 *
 * value = d / 4 * (2 * scale + 1) * +-grid. 3.06 bits a weight. The eighth sign of 8 elements makes
 * the number of negative ones even. Panels hold the code + 64. Called through the type table only.
 */
#include "quant/encode/grid_fit.h"
#include "quant/super/super_codes.h"

struct iq3_xxs_block {
    uint16_t d;         /* half precision */
    uint8_t q[64];      /* q[i]: the entry of elements 4i ... 4i + 3 */
    uint8_t tail[8][4]; /* little-endian: bits 7j ... 7j + 6: signs of elements 32s + 8j ... + 6; */
                        /* bits 28 ... 31: the scale */
} __attribute__((packed)); /* blocks lie at any alignment */
_Static_assert(sizeof(struct iq3_xxs_block) == 98, "the size in the file");

enum { OFFSET = 64, MAX_CODE = 126 };

QUANT_INLINE void iq3_xxs_expand(const void *row, int64_t b, struct super_parts *p)
{
    const struct iq3_xxs_block *w = (const struct iq3_xxs_block *)row + b;
    p->d = quant_f16_to_f32(w->d) * 0.25f;
    p->m = 0.0f;
    for (int s = 0; s < 8; s++) {
        const uint32_t tail = quant_load32(w->tail[s]);
        p->scale[s] = (int16_t)(2 * (tail >> 28) + 1);
        for (int i = 0; i < 32; i++)
            p->q[32 * s + i] = super_grid_code(
                quant_grid_iq3_xxs[w->q[8 * s + i / 4]],
                quant_signs7[tail >> i / 8 * 7 & 127] >> i % 8 / 4 * 4, i % 4, OFFSET);
    }
}

SUPER_KERNELS(iq3_xxs)

static const struct quant_grid_form iq3_xxs_form = {
    .n_scales = 7,
    .first = 0.85f,
    .ratio = 1.08f,
    .max_scale = 15,
    .sub_len = 32,
    .entry_len = 4,
    .n_levels = 8,
    .n_entries = 256,
    .grid4 = quant_grid_iq3_xxs,
    .factor = 0.25f,
    .level = {4, 12, 20, 28, 36, 44, 52, 62},
    .signs = QUANT_GRID_SIGNS_EVEN,
};

static void iq3_xxs_pack(const struct quant_grid_fit *fit, struct iq3_xxs_block *out)
{
    memset(out, 0, sizeof *out);
    out->d = fit->d;
    for (int i = 0; i < 64; i++) out->q[i] = (uint8_t)fit->entry[i];
    for (int s = 0; s < 8; s++) {
        uint32_t tail = (uint32_t)fit->scale[s] << 28;
        for (int j = 0; j < 4; j++) tail |= (uint32_t)(fit->sign[4 * s + j] & 127) << 7 * j;
        memcpy(out->tail[s], &tail, sizeof tail);
    }
}

SUPER_GRID_ENCODE(iq3_xxs)

#if defined(__x86_64__)
QUANT_INLINE uint16_t iq3_xxs_head(const void *block)
{
    return quant_load16(block);
}

SUPER_AVX2 __m256i iq3_xxs_scales(const void *block)
{
    const struct iq3_xxs_block *w = block;
    __m256i tail = _mm256_srli_epi32(_mm256_loadu_si256((const __m256i *)w->tail), 28);
    __m256i scale = _mm256_permute4x64_epi64(_mm256_packus_epi32(tail, tail), 0x88);
    return _mm256_add_epi16(_mm256_add_epi16(scale, scale), _mm256_set1_epi16(1));
}

SUPER_AVX2 __m256i iq3_xxs_codes(const void *block, int s)
{
    const struct iq3_xxs_block *w = block;
    uint32_t entry[8];
    EACH (j, 8) entry[j] = quant_grid_iq3_xxs[w->q[8 * s + j]];
    return super_negate(_mm256_loadu_si256((const __m256i *)entry),
                        super_signs7(quant_load32(w->tail[s])));
}

SUPER_CODES(iq3_xxs, 0.25f)
#endif

const struct quant_type quant_type_iq3_xxs = {
    .name = "IQ3_XXS",
    .id = QUANT_IQ3_XXS,
    .panel = {.sub_len = 32, .offset = OFFSET, .max_code = MAX_CODE},
    .encode = iq3_xxs_encode,
    .encode_by = iq3_xxs_encode_by,
    SUPER_CODES_MEMBERS(iq3_xxs),
};

/* quant/super/iq2_xxs.c: IQ2_XXS: a grid of 256 times 8 magnitudes, signs in sevens, 8 sub-blocks
 * of 32 with 4-bit scales.
 *
 * value = d / 8 * (2 * scale + 1) * +-grid. 2.06 bits a weight. The eighth sign of 8 elements makes
 * the number of negative ones even. Panels hold the code + 64.
 * Called through the type table only. */
#include "quant/encode/grid_fit.h"
#include "quant/super/super_codes.h"

struct iq2_xxs_block {
    uint16_t d; /* half precision */
    struct {
        uint8_t q[4];    /* q[j]: the entry of elements 32s + 8j ... 32s + 8j + 7 */
        uint8_t tail[4]; /* little-endian: bits 7j ... 7j + 6: their signs; 28 ... 31: the scale */
    } sub[8];
} __attribute__((packed)); /* blocks lie at any alignment */
_Static_assert(sizeof(struct iq2_xxs_block) == 66, "the size in the file");

enum { OFFSET = 64, MAX_CODE = 107 };

/* The entry of elements 32s + 8j ... 32s + 8j + 7. */
static inline uint64_t iq2_xxs_entry(const struct iq2_xxs_block *w, int s, int j)
{
    return quant_grid_iq2_xxs[w->sub[s].q[j]];
}

/* The signs of elements 32s ... 32s + 31. */
static inline uint32_t iq2_xxs_signs(const struct iq2_xxs_block *w, int s)
{
    return super_signs7(quant_load32(w->sub[s].tail));
}

QUANT_INLINE void iq2_xxs_expand(const void *row, int64_t b, struct super_parts *p)
{
    const struct iq2_xxs_block *w = (const struct iq2_xxs_block *)row + b;
    p->d = quant_f16_to_f32(w->d) * 0.125f;
    p->m = 0.0f;
    for (int s = 0; s < 8; s++)
        p->scale[s] = (int16_t)(2 * (quant_load32(w->sub[s].tail) >> 28) + 1);
    for (int i = 0; i < SUPER_LEN; i++)
        p->q[i] = super_grid_code(iq2_xxs_entry(w, i / 32, i / 8 % 4),
                                  (int)(iq2_xxs_signs(w, i / 32) >> i % 32 / 8 * 8), i % 8, OFFSET);
}

SUPER_KERNELS(iq2_xxs)

static const struct quant_grid_form iq2_xxs_form = {
    .n_levels = 3,
    .level = {8, 25, 43},
    .n_scales = 7,
    .first = 0.75f,
    .ratio = 1.18f,
    .factor = 0.125f,
    .max_scale = 15,
    .n_entries = 256,
    .entry_len = 8,
    .grid8 = quant_grid_iq2_xxs,
    .signs = QUANT_GRID_SIGNS_EVEN,
    .sub_len = 32,
};

static void iq2_xxs_pack(const struct quant_grid_fit *fit, struct iq2_xxs_block *out)
{
    memset(out, 0, sizeof *out);
    out->d = fit->d;
    for (int s = 0; s < 8; s++) {
        uint32_t tail = (uint32_t)fit->scale[s] << 28;
        for (int j = 0; j < 4; j++) {
            out->sub[s].q[j] = (uint8_t)fit->entry[4 * s + j];
            tail |= (uint32_t)(fit->sign[4 * s + j] & 127) << 7 * j;
        }
        memcpy(out->sub[s].tail, &tail, sizeof tail);
    }
}

SUPER_GRID_ENCODE(iq2_xxs)

#if defined(__x86_64__)
QUANT_INLINE uint16_t iq2_xxs_head(const void *block)
{
    return quant_load16(block);
}

SUPER_AVX2 __m256i iq2_xxs_scales(const void *block)
{
    const struct iq2_xxs_block *w = block;
    uint16_t scale[8];
    EACH (s, 8) scale[s] = (uint16_t)(2 * (quant_load32(w->sub[s].tail) >> 28) + 1);
    return _mm256_broadcastsi128_si256(_mm_loadu_si128((const __m128i *)scale));
}

SUPER_AVX2 __m256i iq2_xxs_codes(const void *block, int s)
{
    const struct iq2_xxs_block *w = block;
    uint64_t entry[4];
    EACH (j, 4) entry[j] = iq2_xxs_entry(w, s, j);
    return super_negate(_mm256_loadu_si256((const __m256i *)entry), iq2_xxs_signs(w, s));
}

SUPER_CODES(iq2_xxs, 0.125f)
#endif

const struct quant_type quant_type_iq2_xxs = {
    .name = "IQ2_XXS",
    .id = QUANT_IQ2_XXS,
    .panel = {.sub_len = 32, .offset = OFFSET, .max_code = MAX_CODE},
    .encode = iq2_xxs_encode,
    .encode_by = iq2_xxs_encode_by,
    SUPER_CODES_MEMBERS(iq2_xxs),
};

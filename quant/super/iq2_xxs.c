/* quant/super/iq2_xxs.c: IQ2_XXS: super-blocks of 256 with a grid of 256 times 8 magnitudes, seven
 * sign bits per 8 elements, and 8 sub-blocks of 32 with 4-bit scales; 2.06 bits per weight.
 *
 *      byte  0     2                              66
 *            | d   | sub[8]: q[4], tail (32-bit)  |     d: binary16, little-endian as tail
 *
 *      sub[s].q[j]:    entry of elements 32s + 8j .. 32s + 8j + 7, j < 4
 *      sub[s].tail:    bits 7j + 6 .. 7j: the signs of the first seven of these elements; the
 *                      eighth makes the number of negative elements even
 *                      bits 31 .. 28: scale of sub-block s
 *      x = d / 8 * (2 * scale + 1) * sign * quant_grid_iq2_xxs[entry]
 *
 * The codes in panels are sign * grid + 64. */
#include "quant/encode/grid_fit.h"
#include "quant/super/super_codes.h"

struct iq2_xxs_block {
    uint16_t d;
    struct {
        uint8_t q[4], tail[4];
    } sub[8];
} __attribute__((packed)); /* blocks may be unaligned */
_Static_assert(sizeof(struct iq2_xxs_block) == 66, "the size in the file");

enum { OFFSET = 64, MAX_CODE = 107 };

/* The entry of elements 8i .. 8i + 7. */
static inline uint64_t iq2_xxs_entry(const void *block, int i)
{
    const struct iq2_xxs_block *w = block;
    return quant_grid_iq2_xxs[w->sub[i / 4].q[i % 4]];
}

/* The sign bits of elements 32s .. 32s + 31. */
static inline uint32_t iq2_xxs_signs(const void *block, int s)
{
    const struct iq2_xxs_block *w = block;
    return super_signs7(quant_load32(w->sub[s].tail));
}

QUANT_INLINE void iq2_xxs_expand(const void *row, int64_t b, struct super_parts *p)
{
    const struct iq2_xxs_block *w = (const struct iq2_xxs_block *)row + b;
    p->d = quant_f16_to_f32(w->d) * 0.125f;
    p->m = 0.0f;
    for (int s = 0; s < 8; s++)
        p->scale[s] = (int16_t)(2 * (quant_load32(w->sub[s].tail) >> 28) + 1);
    super_grid_expand(iq2_xxs_entry, iq2_xxs_signs, OFFSET, w, p->q);
}

SUPER_KERNELS(iq2_xxs)

static const struct quant_grid_form iq2_xxs_form = {
    QUANT_GRID_IQ2, .n_entries = 256, .grid8 = quant_grid_iq2_xxs, .signs = QUANT_GRID_SIGNS_EVEN,
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

SUPER_AVX2 __m256i iq2_xxs_codes(const void *block, int s)
{
    return super_negate(super_grid_entries(iq2_xxs_entry, block, s), iq2_xxs_signs(block, s));
}

SUPER_VBMI void iq2_xxs_bytes(const void *block, struct super_codes_bytes *to)
{
    const struct iq2_xxs_block *w = block;
    __m256i numbers = _mm512_cvtepi64_epi32(_mm512_loadu_si512(w->sub));
    super_grid_codes_2(quant_numbers_iq2_xxs, 256, _mm512_cvtepu8_epi16(numbers), to->code);
    super_tail_signs_store(iq2_xxs_tails(w), to->negative);
}

SUPER_CODES(iq2_xxs, super_codes_first, 0.125f)
SUPER_CODES_512(AVX512BF16, iq2_xxs, super_codes_first, 0.125f, iq2_xxs_scales, 0)
#endif

const struct quant_type quant_type_iq2_xxs = {
    .name = "IQ2_XXS",
    .id = QUANT_IQ2_XXS,
    .panel = {.sub_len = 32, .offset = OFFSET, .max_code = MAX_CODE},
    SUPER_CODES_MEMBERS(iq2_xxs, SUPER_CODES_AVX2(iq2_xxs) SUPER_CODES_LEVEL(AVX512BF16, iq2_xxs)),
};

/* quant/super/iq3_xxs.c: IQ3_XXS: super-blocks of 256 with a grid of 256 times 4 magnitudes, seven
 * sign bits per 8 elements, and 8 sub-blocks of 32 with 4-bit scales; 3.06 bits per weight.
 *
 *      byte  0     2            66                  98
 *            | d   | q[64]      | tail[8] (32-bit)  |     d: binary16, little-endian as tail
 *
 *      q[i]:           entry of elements 4i .. 4i + 3
 *      tail[s]:        bits 7j + 6 .. 7j: the signs of elements 32s + 8j .. 32s + 8j + 6; the sign
 *                      of the next element makes the number of negative elements even
 *                      bits 31 .. 28: scale of sub-block s
 *      x = d / 4 * (2 * scale + 1) * sign * quant_grid_iq3_xxs[entry]
 *
 * The codes in panels are sign * grid + 64. */
#include "quant/encode/grid_fit.h"
#include "quant/super/super_codes.h"

struct iq3_xxs_block {
    uint16_t d;
    uint8_t q[64], tail[8][4];
} __attribute__((packed)); /* blocks may be unaligned */
_Static_assert(sizeof(struct iq3_xxs_block) == 98, "the size in the file");

enum { OFFSET = 64, MAX_CODE = 126 };

/* The two entries of elements 8i .. 8i + 7. */
static inline uint64_t iq3_xxs_entry(const void *block, int i)
{
    const struct iq3_xxs_block *w = block;
    return quant_grid_iq3_xxs[w->q[2 * i]] | (uint64_t)quant_grid_iq3_xxs[w->q[2 * i + 1]] << 32;
}

/* The sign bits of elements 32s .. 32s + 31. */
static inline uint32_t iq3_xxs_signs(const void *block, int s)
{
    const struct iq3_xxs_block *w = block;
    return super_signs7(quant_load32(w->tail[s]));
}

QUANT_INLINE void iq3_xxs_expand(const void *row, int64_t b, struct super_parts *p)
{
    const struct iq3_xxs_block *w = (const struct iq3_xxs_block *)row + b;
    p->d = quant_f16_to_f32(w->d) * 0.25f;
    p->m = 0.0f;
    for (int s = 0; s < 8; s++) p->scale[s] = (int16_t)(2 * (quant_load32(w->tail[s]) >> 28) + 1);
    super_grid_expand(iq3_xxs_entry, iq3_xxs_signs, OFFSET, w, p->q);
}

SUPER_KERNELS(iq3_xxs)

static const struct quant_grid_form iq3_xxs_form = {
    QUANT_GRID_IQ3,
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
SUPER_AVX2 __m256i iq3_xxs_scales(const void *block)
{
    const struct iq3_xxs_block *w = block;
    return super_tail_scales(_mm256_loadu_si256((const __m256i *)w->tail));
}

SUPER_AVX2 __m256i iq3_xxs_codes(const void *block, int s)
{
    return super_negate(super_grid_entries(iq3_xxs_entry, block, s), iq3_xxs_signs(block, s));
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

SUPER_CODES(iq3_xxs, super_codes_first, 0.25f)
SUPER_CODES_512(AVX512BF16, iq3_xxs, super_codes_first, 0.25f, iq3_xxs_scales, 0)
#endif

const struct quant_type quant_type_iq3_xxs = {
    .name = "IQ3_XXS",
    .id = QUANT_IQ3_XXS,
    .panel = {.sub_len = 32, .offset = OFFSET, .max_code = MAX_CODE},
    SUPER_CODES_MEMBERS(iq3_xxs, SUPER_CODES_AVX2(iq3_xxs) SUPER_CODES_LEVEL(AVX512BF16, iq3_xxs)),
};

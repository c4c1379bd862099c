/* quant/super/iq1_m.c: IQ1_M: super-blocks of 256 with the grid of IQ1_S, a shift for each 8
 * elements, and 16 sub-blocks of 16 with 3-bit scales; 1.75 bits per weight.
 *
 *      byte  0             32              48                  56
 *            | q[32]       | high[16]      | scale[4] (16-bit) |
 *
 *      q[i]:           bits 7 .. 0 of entry i, elements 8i .. 8i + 7
 *      high[i / 2]:    high nibble for odd i, low nibble for even i
 *                      bits 2 .. 0: bits 10 .. 8 of entry i
 *                      bit 3: its shift: -1 if set, otherwise +1
 *      scale[i]:       bits 3j + 2 .. 3j: scale of sub-block 4i + j, j < 4
 *                      bits 15 .. 12: bits 4i + 3 .. 4i of d (binary16)
 *      x = d / 8 * (2 * scale + 1) * (quant_grid_iq1[entry] + shift)
 *
 * Numbers are little-endian. The codes in panels are grid + shift + 16. */
#include "quant/encode/grid_fit.h"
#include "quant/super/super_codes.h"

struct iq1_m_block {
    uint8_t q[32], high[16], scale[4][2];
} __attribute__((packed)); /* blocks may be unaligned */
_Static_assert(sizeof(struct iq1_m_block) == 56, "the size in the file");

enum { OFFSET = 16, MAX_CODE = 25 };

/* Nibble i of `high`. */
static inline int iq1_m_high(const struct iq1_m_block *w, int i)
{
    return w->high[i / 2] >> i % 2 * 4 & 15;
}

/* The entry of elements 8i .. 8i + 7. */
static inline uint64_t iq1_m_entry(const void *block, int i)
{
    const struct iq1_m_block *w = block;
    return quant_grid_iq1[w->q[i] | (iq1_m_high(w, i) & 7) << 8];
}

/* The bits of d. */
static inline uint16_t iq1_m_head(const void *block)
{
    const struct iq1_m_block *w = block;
    int d = 0;
    for (int i = 0; i < 4; i++) d |= quant_load16(w->scale[i]) >> 12 << 4 * i;
    return (uint16_t)d;
}

QUANT_INLINE void iq1_m_expand(const void *row, int64_t b, struct super_parts *p)
{
    const struct iq1_m_block *w = (const struct iq1_m_block *)row + b;
    p->d = quant_f16_to_f32(iq1_m_head(w)) * 0.125f;
    p->m = 0.0f;
    for (int s = 0; s < 16; s++)
        p->scale[s] = (int16_t)(2 * (quant_load16(w->scale[s / 4]) >> s % 4 * 3 & 7) + 1);
    for (int i = 0; i < SUPER_LEN; i++) {
        const int shift = iq1_m_high(w, i / 8) & 8 ? -1 : 1;
        p->q[i] = (uint8_t)(OFFSET + shift + (int8_t)(iq1_m_entry(w, i / 8) >> i % 8 * 8 & 0xff));
    }
}

SUPER_KERNELS(iq1_m)

static const struct quant_grid_form iq1_m_form = {
    QUANT_GRID_IQ1,
    .sub_len = 16,
    .shift_len = 8,
};

static void iq1_m_pack(const struct quant_grid_fit *fit, struct iq1_m_block *out)
{
    memset(out, 0, sizeof *out);
    for (int i = 0; i < 32; i++) {
        const int high = fit->entry[i] >> 8 | fit->down[i] << 3;
        out->q[i] = (uint8_t)fit->entry[i];
        out->high[i / 2] |= (uint8_t)(high << i % 2 * 4);
    }
    for (int i = 0; i < 4; i++) {
        uint16_t scale = (uint16_t)((fit->d >> 4 * i & 15) << 12);
        for (int j = 0; j < 4; j++) scale |= (uint16_t)(fit->scale[4 * i + j] << 3 * j);
        memcpy(out->scale[i], &scale, sizeof scale);
    }
}

SUPER_GRID_ENCODE(iq1_m)

#if defined(__x86_64__)
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

SUPER_CODES(iq1_m, iq1_m_head, 0.125f)
#endif

const struct quant_type quant_type_iq1_m = {
    .name = "IQ1_M",
    .id = QUANT_IQ1_M,
    .panel = {.sub_len = 16, .offset = OFFSET, .max_code = MAX_CODE},
    SUPER_CODES_MEMBERS(iq1_m, SUPER_CODES_AVX2(iq1_m)),
};

/* quant/super/iq1_s.c: IQ1_S: super-blocks of 256 with a grid of 2048 times 8 of -1, 0 and 1, and 8
 * sub-blocks of 32 with 3-bit scales and a common shift; 1.56 bits per weight.
 *
 *      byte  0     2             34                  50
 *            | d   | q[32]       | high[8] (16-bit)  |     d: binary16
 *
 *      q[4s + j]:      bits 7 .. 0 of the entry of elements 32s + 8j .. 32s + 8j + 7, j < 4
 *      high[s]:        bits 3j + 2 .. 3j: bits 10 .. 8 of that entry
 *                      bits 14 .. 12: scale of sub-block s
 *                      bit 15: its shift: -1 if set, otherwise +1
 *      x = d / 8 * (2 * scale + 1) * (quant_grid_iq1[entry] + shift)
 *
 * Numbers are little-endian. The format's grid has -1, 0 and 1 and a shift of 1/8; the table here
 * has 8 times these. The codes in panels are grid + shift + 16. */
#include "quant/encode/grid_fit.h"
#include "quant/super/super_codes.h"

struct iq1_s_block {
    uint16_t d;
    uint8_t q[32], high[8][2];
} __attribute__((packed)); /* blocks may be unaligned */
_Static_assert(sizeof(struct iq1_s_block) == 50, "the size in the file");

enum { OFFSET = 16, MAX_CODE = 25 };

/* The entry of elements 8i .. 8i + 7. */
static inline uint64_t iq1_s_entry(const void *block, int i)
{
    const struct iq1_s_block *w = block;
    return quant_grid_iq1[w->q[i] | (quant_load16(w->high[i / 4]) >> i % 4 * 3 & 7) << 8];
}

QUANT_INLINE void iq1_s_expand(const void *row, int64_t b, struct super_parts *p)
{
    const struct iq1_s_block *w = (const struct iq1_s_block *)row + b;
    p->d = quant_f16_to_f32(w->d) * 0.125f;
    p->m = 0.0f;
    for (int s = 0; s < 8; s++) {
        const int high = quant_load16(w->high[s]), shift = high & 0x8000 ? -1 : 1;
        p->scale[s] = (int16_t)(2 * (high >> 12 & 7) + 1);
        for (int i = 0; i < 32; i++)
            p->q[32 * s + i] =
                (uint8_t)(OFFSET + shift +
                          (int8_t)(iq1_s_entry(w, 4 * s + i / 8) >> i % 8 * 8 & 0xff));
    }
}

SUPER_KERNELS(iq1_s)

static const struct quant_grid_form iq1_s_form = {
    QUANT_GRID_IQ1,
    .sub_len = 32,
    .shift_len = 32,
};

static void iq1_s_pack(const struct quant_grid_fit *fit, struct iq1_s_block *out)
{
    memset(out, 0, sizeof *out);
    out->d = fit->d;
    for (int s = 0; s < 8; s++) {
        uint16_t high = (uint16_t)(fit->scale[s] << 12 | fit->down[4 * s] << 15);
        for (int j = 0; j < 4; j++) {
            out->q[4 * s + j] = (uint8_t)fit->entry[4 * s + j];
            high |= (uint16_t)(fit->entry[4 * s + j] >> 8 << 3 * j);
        }
        memcpy(out->high[s], &high, sizeof high);
    }
}

SUPER_GRID_ENCODE(iq1_s)

#if defined(__x86_64__)
SUPER_AVX2 __m256i iq1_s_scales(const void *block)
{
    const struct iq1_s_block *w = block;
    __m128i high = _mm_srli_epi16(_mm_loadu_si128((const __m128i *)w->high), 12);
    __m128i scale = _mm_and_si128(high, _mm_set1_epi16(7));
    scale = _mm_add_epi16(_mm_add_epi16(scale, scale), _mm_set1_epi16(1));
    return _mm256_broadcastsi128_si256(scale);
}

SUPER_AVX2 __m256i iq1_s_codes(const void *block, int s)
{
    const struct iq1_s_block *w = block;
    const int shift = quant_load16(w->high[s]) & 0x8000 ? -1 : 1;
    return _mm256_add_epi8(super_grid_entries(iq1_s_entry, block, s),
                           _mm256_set1_epi8((char)shift));
}

SUPER_CODES(iq1_s, super_codes_first, 0.125f)
#endif

const struct quant_type quant_type_iq1_s = {
    .name = "IQ1_S",
    .id = QUANT_IQ1_S,
    .panel = {.sub_len = 32, .offset = OFFSET, .max_code = MAX_CODE},
    SUPER_CODES_MEMBERS(iq1_s, SUPER_CODES_AVX2(iq1_s)),
};

/* quant/gpu/gpu_parts.h: device code: the codes and scales of a part of a block of weights, in
 * shared memory, for the types of QUANT_GPU_STAGED. Codes are four in each word.
 *
 * A part has 64 elements of a super-block, or the 32 of a block of 32. */
#pragma once

#include "quant/act.h"
#include "quant/block32/iq4_nl.h"
#include "quant/block32/mxfp4.h"
#include "quant/block32/q4_0.h"
#include "quant/block32/q4_1.h"
#include "quant/block32/q5_0.h"
#include "quant/block32/q5_1.h"
#include "quant/block32/q8_0.h"
#include "quant/gpu/dialect.h"
#include "quant/gpu/gpu_quant.h"
#include "quant/half.h"
#include "quant/super/iq1_m.h"
#include "quant/super/iq1_s.h"
#include "quant/super/iq2_s.h"
#include "quant/super/iq2_xs.h"
#include "quant/super/iq2_xxs.h"
#include "quant/super/iq3_s.h"
#include "quant/super/iq3_xxs.h"
#include "quant/super/iq4_xs.h"
#include "quant/super/q2_k.h"
#include "quant/super/q3_k.h"
#include "quant/super/q4_k.h"
#include "quant/super/q5_k.h"
#include "quant/super/q6_k.h"
#if defined(__NVPTX__) /* device code has no linker */
#include "quant/half.c"
#include "quant/super/grid_tables.c"
#endif

/* ---- Words of codes ---- */

/* Reads n little-endian words at any address in shared memory; also touches the word after them. */
QUANT_INLINE void read_words(const uint8_t *at, int n, uint32_t *words)
{
    const int offset = (int)((uintptr_t)at & 3);
    const uint32_t *aligned = (const uint32_t *)(const void *)(at - offset);
    uint32_t low = aligned[0];
    for (int i = 0; i < n; i++) {
        const uint32_t high = aligned[i + 1];
        words[i] = gpu_funnel(low, high, 8 * offset);
        low = high;
    }
}

/* As read_words, at a multiple of 16. */
QUANT_INLINE void read_aligned_words(const uint8_t *at, int n, uint32_t *words)
{
    const uint32_t *from = __builtin_assume_aligned(at, 16);
    for (int i = 0; i < n; i++) words[i] = from[i];
}

/* Bit 4 of the bytes of word i, from bit 4i + j of `bits` for byte j. */
QUANT_INLINE uint32_t fifth_bits(uint32_t bits, int i)
{
    return ((bits >> 4 * i & 15) * 0x00204081 & 0x01010101) << 4;
}

/* The entries of a table of 16 bytes that the low nibbles of the bytes of `codes` choose. */
QUANT_INLINE uint32_t look_up(const int8_t table[16], uint32_t codes)
{
    uint32_t t[4];
    memcpy(t, table, sizeof t);
    /* Nibbles of 4 bytes side by side, without their bit 3, which then chooses the half. */
    const uint32_t c = codes | codes >> 4, n = (c & 255) | (c >> 8 & 0xff00);
    const uint32_t low = gpu_choose(t[0], t[1], n & 0x7777),
                   high = gpu_choose(t[2], t[3], n & 0x7777);
    return gpu_choose(low, high, 0x3210 | (n >> 1 & 0x4444));
}

/* ---- Blocks of 32 ---- */

QUANT_INLINE bool is_signed32(struct quant_form32 form)
{
    return form.bytes || form.codebook;
}

/* Reads the codes of a block: minus form.offset if they are signed. */
QUANT_INLINE void codes32(struct quant_form32 form, const uint8_t *at, uint32_t code[8])
{
    if (form.bytes) {
        read_words(at + form.codes, 8, code);
        return;
    }
    read_words(at + form.codes, 4, code);
    GPU_EACH (i, 4) {
        code[4 + i] = code[i] >> 4 & 0x0f0f0f0f;
        code[i] &= 0x0f0f0f0f;
    }
    if (form.fifth) {
        uint32_t bits;
        read_words(at + form.fifth, 1, &bits);
        GPU_EACH (i, 8) code[i] |= fifth_bits(bits, i);
    }
    if (!form.codebook) return;
    GPU_EACH (i, 8) code[i] = look_up(form.codebook, code[i]);
}

QUANT_INLINE float scale32(struct quant_form32 form, const uint8_t *at)
{
    return form.e8m0 ? quant_e8m0(*at) : quant_load_half(at);
}

/* ---- Super-blocks ---- */

/* 64 codes, 32 of them from element `first` of the super-block on, then 32 from `second`; scales
 * and minima of their sub-blocks, 2 or 4. */
struct gpu_codes {
    uint32_t code[16];
    int scale[4], min[4];
};
typedef void part_of(const uint8_t *at, int part, bool aligned, struct gpu_codes *out);

/* A type: how its blocks are read. */
struct super_type {
    const struct super_layout *layout;
    int offset;     /* of codes; SIGNED: codes are signed */
    bool is_halved; /* part 2h + t is a quarter of each half of elements 128h .. 128h + 127 */
    bool may_align; /* `aligned` parts are those of blocks at multiples of 16; never in others */
    part_of *part;  /* NULL: grid_part of id */
    int d, dmin;    /* their bytes in the block */
    enum quant_id id;
};
enum { SIGNED = -1 };

QUANT_INLINE int first_of_part(const struct super_type *type, int part)
{
    return type->is_halved ? 128 * (part / 2) + 32 * (part % 2) : 64 * part;
}

QUANT_INLINE int second_of_part(const struct super_type *type, int part)
{
    return first_of_part(type, part) + (type->is_halved ? 64 : 32);
}

QUANT_INLINE float d_of_super(const struct super_type *type, const uint8_t *at)
{
    const bool is_iq1_m = !type->part && type->id == QUANT_IQ1_M;
    const float d = quant_half_to_float(is_iq1_m ? iq1_m_head(at) : quant_load16(at + type->d));
    if (type->part) return d;
    return type->id == QUANT_IQ3_S ? d : type->id == QUANT_IQ3_XXS ? d * 0.25f : d * 0.125f;
}

/* Minus dmin; only in types with minima. */
QUANT_INLINE float m_of_super(const struct super_type *type, const uint8_t *at)
{
    return -quant_half_to_float(quant_load16(at + type->dmin));
}

/* The scales of Q4_K and Q5_K: of sub-blocks 2 * part and 2 * part + 1. */
QUANT_INLINE void k_scales_of_part(const uint32_t scale[3], int part, struct gpu_codes *out)
{
    GPU_EACH (half, 2) {
        const int s = 2 * part + half, j = 8 * (s % 4), first = scale[0] >> j & 255,
                  second = scale[1] >> j & 255, third = scale[2] >> j & 255;
        out->scale[half] = s < 4 ? first & 63 : (third & 15) | (first >> 6) << 4;
        out->min[half] = s < 4 ? second & 63 : third >> 4 | (second >> 6) << 4;
    }
}

QUANT_INLINE void q4_k_part(const uint8_t *at, int part, bool aligned, struct gpu_codes *out)
{
    const struct q4_k_block *w = (const struct q4_k_block *)at;
    uint32_t head[4], q[8];
    if (aligned) {
        read_aligned_words(at, 4, head);
        read_aligned_words(w->q + 32 * part, 8, q);
    } else {
        read_words(at, 4, head);
        read_words(w->q + 32 * part, 8, q);
    }
    k_scales_of_part(head + 1, part, out);
    GPU_EACH (i, 16) out->code[i] = q[i % 8] >> 4 * (i / 8) & 0x0f0f0f0f;
}

QUANT_INLINE void q5_k_part(const uint8_t *at, int part, bool aligned, struct gpu_codes *out)
{
    const struct q5_k_block *w = (const struct q5_k_block *)at;
    uint32_t head[4], q[8], high[8];
    if (aligned) {
        read_aligned_words(at, 4, head);
        read_aligned_words(w->q + 32 * part, 8, q);
        read_aligned_words(w->high, 8, high);
    } else {
        read_words(at, 4, head);
        read_words(w->q + 32 * part, 8, q);
        read_words(w->high, 8, high);
    }
    k_scales_of_part(head + 1, part, out);
    GPU_EACH (i, 16)
        out->code[i] = (q[i % 8] >> 4 * (i / 8) & 0x0f0f0f0f) |
                       (high[i % 8] >> (2 * part + i / 8) & 0x01010101) << 4;
}

/* Codes g = t and t + 2 of half h. */
QUANT_INLINE void q6_k_part(const uint8_t *at, int part, bool aligned, struct gpu_codes *out)
{
    (void)aligned;
    const struct q6_k_block *w = (const struct q6_k_block *)at;
    const int h = part / 2, t = part % 2;
    uint32_t low[8], high[8];
    read_words(w->low + 64 * h + 32 * t, 8, low);
    read_words(w->high + 32 * h, 8, high);
    GPU_EACH (i, 16)
        out->code[i] = (low[i % 8] >> 4 * (i / 8) & 0x0f0f0f0f) |
                       (high[i % 8] >> 2 * (t + i / 8 * 2) & 0x03030303) << 4;
    GPU_EACH (s, 4) out->scale[s] = w->scale[8 * h + 2 * t + s / 2 * 4 + s % 2];
}

/* Q2_K and Q3_K: part 2h + t has the codes g = 2t and 2t + 1 of the bytes of half h. */
QUANT_INLINE void q2_k_part(const uint8_t *at, int part, bool aligned, struct gpu_codes *out)
{
    (void)aligned;
    const struct q2_k_block *w = (const struct q2_k_block *)at;
    const int h = part / 2, t = part % 2;
    uint32_t q[8];
    read_words(w->q + 32 * h, 8, q);
    GPU_EACH (i, 16) out->code[i] = q[i % 8] >> 2 * (2 * t + i / 8) & 0x03030303;
    GPU_EACH (s, 4) {
        out->scale[s] = w->scale[4 * part + s] & 15;
        out->min[s] = w->scale[4 * part + s] >> 4;
    }
}

QUANT_INLINE void q3_k_part(const uint8_t *at, int part, bool aligned, struct gpu_codes *out)
{
    (void)aligned;
    const struct q3_k_block *w = (const struct q3_k_block *)at;
    const int h = part / 2, t = part % 2;
    uint32_t q[8], high[8];
    read_words(w->q + 32 * h, 8, q);
    read_words(w->high, 8, high);
    GPU_EACH (i, 16) {
        const int g = 2 * t + i / 8;
        out->code[i] = (q[i % 8] >> 2 * g & 0x03030303) | (high[i % 8] >> (4 * h + g) & 0x01010101)
                                                              << 2;
    }
    GPU_EACH (s, 4) {
        const int n = 4 * part + s, low = w->scale[n % 8] >> n / 8 * 4 & 15;
        out->scale[s] = (low | (w->scale[8 + n % 4] >> n / 4 * 2 & 3) << 4) - 32;
    }
}

QUANT_INLINE void iq4_xs_part(const uint8_t *at, int part, bool aligned, struct gpu_codes *out)
{
    (void)aligned;
    const struct iq4_xs_block *w = (const struct iq4_xs_block *)at;
    const int high = quant_load16(&w->scale_high) >> 4 * part;
    uint32_t q[8];
    read_words(w->q + 32 * part, 8, q);
    GPU_EACH (i, 16)
        out->code[i] =
            look_up(quant_codebook_iq4, q[i / 8 * 4 + i % 4] >> i / 4 % 2 * 4 & 0x0f0f0f0f);
    GPU_EACH (s, 2)
        out->scale[s] = ((w->scale_low[part] >> 4 * s & 15) | (high >> 2 * s & 3) << 4) - 32;
}

/* ---- Super-blocks with a grid: QUANT_GPU_GRIDS ---- */

/* Four magnitudes, none of them 0, with signs from bits 0 to 3. */
QUANT_INLINE uint32_t with_signs(uint32_t magnitudes, uint32_t bits)
{
    const uint32_t negative = (bits & 15) * 0x00204081 & 0x01010101;
    return (magnitudes ^ negative * 255) + negative;
}

/* Eight sign bits from the first seven: the number of set bits is even. */
QUANT_INLINE uint32_t eight_signs(uint32_t bits)
{
    bits &= 127;
    return bits | (uint32_t)(__builtin_popcount(bits) & 1) << 7;
}

QUANT_INLINE uint32_t signs_of_tail(uint32_t tail)
{
    return eight_signs(tail) | eight_signs(tail >> 7) << 8 | eight_signs(tail >> 14) << 16 |
           eight_signs(tail >> 21) << 24;
}

/* Writes the eight magnitudes of an entry. */
QUANT_INLINE void write_entry(uint64_t entry, uint32_t *words)
{
    words[0] = (uint32_t)entry;
    words[1] = (uint32_t)(entry >> 32);
}

/* Scales from four bits of each sub-block. */
QUANT_INLINE void grid_scales(uint32_t nibbles, struct gpu_codes *out)
{
    GPU_EACH (s, 4) out->scale[s] = (int)(2 * (nibbles >> 4 * s & 15) + 1);
}

/* An entry of IQ1 with a shift: -1 or 1 is added to each byte, which is -8, 0 or 8. */
QUANT_INLINE void write_shifted(uint64_t entry, bool is_negative, uint32_t *words)
{
    const uint32_t shift = is_negative ? 0u - 0x01010101 : 0x01010101;
    write_entry(entry ^ 0x8080808080808080, words);
    GPU_EACH (i, 2) words[i] = (words[i] + shift) ^ 0x80808080;
}

QUANT_INLINE void iq1_s_part(const uint8_t *at, int part, struct gpu_codes *out)
{
    const struct iq1_s_block *w = (const struct iq1_s_block *)at;
    uint32_t q[2], high;
    read_words(w->q + 8 * part, 2, q);
    read_words(w->high[2 * part], 1, &high);
    GPU_EACH (i, 8) {
        const uint32_t of_sub = high >> i / 4 * 16;
        write_shifted(
            quant_grid_iq1[(q[i / 4] >> i % 4 * 8 & 255) | (of_sub >> i % 4 * 3 & 7) << 8],
            of_sub & 0x8000, out->code + 2 * i);
    }
    grid_scales((high >> 12 & 7) | (high >> 28 & 7) << 4, out);
}

QUANT_INLINE void iq1_m_part(const uint8_t *at, int part, struct gpu_codes *out)
{
    const struct iq1_m_block *w = (const struct iq1_m_block *)at;
    const uint32_t scale = quant_load16(w->scale[part]);
    uint32_t q[2], high;
    read_words(w->q + 8 * part, 2, q);
    read_words(w->high + 4 * part, 1, &high);
    GPU_EACH (i, 8) {
        const uint32_t of_entry = high >> 4 * i;
        write_shifted(quant_grid_iq1[(q[i / 4] >> i % 4 * 8 & 255) | (of_entry & 7) << 8],
                      of_entry & 8, out->code + 2 * i);
    }
    GPU_EACH (s, 4) out->scale[s] = (int)(2 * (scale >> 3 * s & 7) + 1);
}

/* Part `part` of a block; sub_len: of the type of id. */
QUANT_INLINE void grid_part(enum quant_id id, int sub_len, const uint8_t *at, int part,
                            struct gpu_codes *out)
{
    uint32_t q[4], sign[2];
    if (sub_len == 32 && id == QUANT_IQ1_S) {
        iq1_s_part(at, part, out);
        return;
    }
    if (sub_len == 16 && id == QUANT_IQ1_M) {
        iq1_m_part(at, part, out);
        return;
    }
    if (sub_len == 32 && id == QUANT_IQ2_XXS) {
        const struct iq2_xxs_block *w = (const struct iq2_xxs_block *)at;
        read_words(w->sub[2 * part].q, 4, q);
        GPU_EACH (i, 8)
            write_entry(quant_grid_iq2_xxs[q[i / 4 * 2] >> i % 4 * 8 & 255], out->code + 2 * i);
        GPU_EACH (half, 2) sign[half] = signs_of_tail(q[2 * half + 1]);
        grid_scales(q[1] >> 28 | q[3] >> 28 << 4, out);
    } else if (sub_len == 32 && id == QUANT_IQ3_XXS) {
        const struct iq3_xxs_block *w = (const struct iq3_xxs_block *)at;
        uint32_t tail[2];
        read_words(w->q + 16 * part, 4, q);
        read_words(w->tail[2 * part], 2, tail);
        GPU_EACH (i, 16) out->code[i] = quant_grid_iq3_xxs[q[i / 4] >> i % 4 * 8 & 255];
        GPU_EACH (half, 2) sign[half] = signs_of_tail(tail[half]);
        grid_scales(tail[0] >> 28 | tail[1] >> 28 << 4, out);
    } else if (sub_len == 32) {
        const struct iq3_s_block *w = (const struct iq3_s_block *)at;
        const uint32_t high = quant_load16(w->high + 2 * part);
        read_words(w->q + 16 * part, 4, q);
        read_words(w->sign + 8 * part, 2, sign);
        GPU_EACH (i, 16)
            out->code[i] = quant_grid_iq3_s[(q[i / 4] >> i % 4 * 8 & 255) | (high >> i & 1) << 8];
        grid_scales(w->scale[part], out);
    } else if (id == QUANT_IQ2_XS) {
        const struct iq2_xs_block *w = (const struct iq2_xs_block *)at;
        read_words(w->q[8 * part], 4, q);
        sign[0] = sign[1] = 0;
        GPU_EACH (i, 8) {
            const uint32_t entry = q[i / 2] >> i % 2 * 16;
            write_entry(quant_grid_iq2_xs[entry & 511], out->code + 2 * i);
            sign[i / 4] |= eight_signs(entry >> 9) << i % 4 * 8;
        }
        grid_scales(quant_load16(w->scale + 2 * part), out);
    } else {
        const struct iq2_s_block *w = (const struct iq2_s_block *)at;
        const uint32_t high = quant_load16(w->high + 2 * part);
        read_words(w->q + 8 * part, 2, q);
        read_words(w->sign + 8 * part, 2, sign);
        GPU_EACH (i, 8)
            write_entry(quant_grid_iq2_s[(q[i / 4] >> i % 4 * 8 & 255) | (high >> 2 * i & 3) << 8],
                        out->code + 2 * i);
        grid_scales(quant_load16(w->scale + 2 * part), out);
    }
    GPU_EACH (i, 16) out->code[i] = with_signs(out->code[i], sign[i / 8] >> i % 8 * 4);
}

/* Part `part` of the block at `at`. */
QUANT_INLINE void codes_of_part(const struct super_type *type, const uint8_t *at, int part,
                                bool aligned, struct gpu_codes *out)
{
    if (type->part)
        type->part(at, part, aligned, out);
    else
        grid_part(type->id, type->layout->panel.sub_len, at, part, out);
}

/* The types with a grid of one sub_len, which have one kernel. */
static const struct super_layout grid_32_layout = {.panel = {.sub_len = 32}},
                                 grid_16_layout = {.panel = {.sub_len = 16}};
#define GRID_TYPE(NAME, ID)                                                                        \
    {                                                                                              \
        &NAME##_layout, SIGNED, false, false, NULL, 0, 0, ID                                       \
    }

#define SUPER_TYPE(NAME, OFFSET, HALVED, MAY_ALIGN, DMIN)                                          \
    static const struct super_type NAME##_type = {                                                 \
        &NAME##_layout, OFFSET,        HALVED,                                                     \
        MAY_ALIGN,      NAME##_part,   offsetof(struct NAME##_block, d),                           \
        DMIN,           QUANT_ID_COUNT};
SUPER_TYPE(q2_k, 0, false, false, offsetof(struct q2_k_block, dmin))
SUPER_TYPE(q3_k, 4, false, false, 0)
SUPER_TYPE(q4_k, 0, false, true, offsetof(struct q4_k_block, dmin))
SUPER_TYPE(q5_k, 0, false, true, offsetof(struct q5_k_block, dmin))
SUPER_TYPE(q6_k, 32, true, false, 0)
SUPER_TYPE(iq4_xs, SIGNED, false, false, 0)

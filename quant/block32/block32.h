/* quant/block32/block32.h: private to quant/: scale search and scalar kernels, shared by the types
 * with blocks of 32.
 *
 * The header of a type (q4_0.h) describes it by a struct quant_form32: the positions of its bits
 * and the values of its codes. Kernels, here and in the folders of instruction sets, are inlined
 * with a constant form, so each is one loop without branches on the form. */
#pragma once

#include "quant/encode/fit.h"
#include "quant/types.h"
#include <math.h>

/* Writes the codes of x ~ d * code, with the largest element at 127 or -127, and returns d as
 * binary16: NaN if an element is not finite, the largest number if the scale is above the range.
 * Codes are rounded with d before it is converted to binary16, ties away from zero, which gives the
 * bytes of llama-quantize; the squared error is less than 1 % above that with the stored scale. */
QUANT_INLINE uint16_t quant_encode_bytes(const float x[32], int8_t code[32])
{
    uint32_t largest = 0;
    float at[32];
    for (int i = 0; i < 32; i++) {
        const uint32_t bits = quant_bits_of(x[i]) & 0x7fffffff;
        largest = bits > largest ? bits : largest;
    }
    memset(code, 0, 32);
    if (largest >= 0x7f800000) return FIT_NAN;
    const float d = quant_float_of(largest) / 127.0f, inverse = quant_fit_inverse(d);
    for (int i = 0; i < 32; i++) {
        const float scaled = x[i] * inverse, magnitude = fabsf(scaled);
        const float even = quant_fit_integer(magnitude, 0.0f, 127.0f);
        at[i] = copysignf(magnitude - even == 0.5f ? even + 1.0f : even, scaled);
    }
    for (int i = 0; i < 32; i++) code[i] = (int8_t)(int)at[i];
    return quant_fit_half(d);
}

/* ---- The form of a type ---- */

/* A block, and the value of an element:
 *
 *     x = d * (code - offset) + m,     code 0 .. max_code
 *
 * d is at byte 0, as binary16 or as E8M0; m, binary16, at byte 2, in types that have it. */
struct quant_form32 {
    size_t block_bytes;
    int codes;              /* offset of the nibbles: code i low, code 16 + i high in byte i */
    int fifth;              /* offset of the fifth bits: bit i adds 16 to code i; 0: none */
    int top;                /* offset of bits 5 and 4 (quant_add_top_bits); 0: none */
    const int8_t *codebook; /* code = codebook[nibble] + offset; NULL: the nibble */
    bool bytes;             /* 32 signed bytes instead of nibbles: code = byte + offset (128) */
    bool e8m0;              /* d is the byte e: 2^(e - 128) */
    bool has_min;
    int offset, max_code;
    /* How scales are searched, except in types whose encoder does that itself: `with_min` in types
     * with a minimum, `grid` in others. */
    const struct quant_fit_grid *grid;
    const struct quant_fit_min_form *with_min;
};

static inline float quant_load_half(const uint8_t *at)
{
    return quant_f16_to_f32(quant_load16(at));
}

/* 2^(e - 128), which is subnormal for e = 0 and 1. */
static inline float quant_e8m0(uint8_t e)
{
    return quant_float_of(e < 2 ? 0x00200000u << e : (uint32_t)(e - 1) << 23);
}

/* Nibbles: code i low, code 16 + i high in byte i. */
static inline void quant_split_nibbles(const uint8_t byte[16], uint8_t code[32])
{
    for (int i = 0; i < 16; i++) {
        code[i] = byte[i] & 15;
        code[16 + i] = byte[i] >> 4;
    }
}

static inline void quant_join_nibbles(const uint8_t code[32], uint8_t byte[16])
{
    for (int i = 0; i < 16; i++) byte[i] = (uint8_t)((code[i] & 15) | code[16 + i] << 4);
}

/* The fifth bits of codes: bit i of the little-endian number at `at` belongs to code i. */
static inline void quant_add_fifth_bits(const uint8_t *at, uint8_t code[32])
{
    const uint32_t bits = quant_load32(at);
    for (int i = 0; i < 32; i++) code[i] |= (uint8_t)((bits >> i & 1) << 4);
}

static inline void quant_put_fifth_bits(const uint8_t code[32], uint8_t *at)
{
    uint32_t bits = 0;
    for (int i = 0; i < 32; i++) bits |= (uint32_t)(code[i] >> 4 & 1) << i;
    memcpy(at, &bits, sizeof bits);
}

/* Bits 5 and 4 of codes: those of codes l, 16 + l, 8 + l and 24 + l in byte l, from bit 0. */
static inline void quant_add_top_bits(const uint8_t at[8], uint8_t code[32])
{
    for (int i = 0; i < 32; i++)
        code[i] |= (uint8_t)((at[i % 8] >> (i / 16 * 2 + i / 8 % 2 * 4) & 3) << 4);
}

static inline void quant_put_top_bits(const uint8_t code[32], uint8_t at[8])
{
    memset(at, 0, 8);
    for (int i = 0; i < 32; i++)
        at[i % 8] |= (uint8_t)(code[i] >> 4 << (i / 16 * 2 + i / 8 % 2 * 4));
}

/* ---- Scalar kernels (quant/quant.h has the arithmetic) ---- */

/* One block, unpacked from the file's bytes. */
struct quant_block32 {
    float d, m; /* m: only in types with minima */
    uint8_t code[32];
};

QUANT_INLINE void quant_read32(struct quant_form32 form, const uint8_t *at,
                               struct quant_block32 *block)
{
    block->d = form.e8m0 ? quant_e8m0(*at) : quant_load_half(at);
    if (form.has_min) block->m = quant_load_half(at + 2);
    if (form.bytes) {
        for (int i = 0; i < 32; i++) block->code[i] = at[form.codes + i] ^ 128;
        return;
    }
    quant_split_nibbles(at + form.codes, block->code);
    if (form.fifth) quant_add_fifth_bits(at + form.fifth, block->code);
    if (form.top) quant_add_top_bits(at + form.top, block->code);
    if (!form.codebook) return;
    for (int i = 0; i < 32; i++)
        block->code[i] = (uint8_t)(form.codebook[block->code[i]] + form.offset);
}

QUANT_INLINE void quant_decode32(struct quant_form32 form, int64_t first, int64_t n,
                                 const void *row, float *out)
{
    const uint8_t *at = (const uint8_t *)row + (size_t)(first / 32) * form.block_bytes;
    for (int64_t b = 0; b < n / 32; b++, at += form.block_bytes, out += 32) {
        struct quant_block32 block;
        quant_read32(form, at, &block);
        for (int i = 0; i < 32; i++) {
            out[i] = block.d * (float)(block.code[i] - form.offset);
            if (form.has_min) out[i] += block.m;
        }
    }
}

enum { QUANT_BLOCKS_AT_ONCE = QUANT_FIT_AT_ONCE / 32 };

/* Writes n blocks, at most QUANT_BLOCKS_AT_ONCE. */
QUANT_INLINE void quant_write32(const struct quant_fit *to, struct quant_form32 form, int n,
                                const float *in, const float *importance, uint8_t *at)
{
    struct quant_scales with_min[QUANT_BLOCKS_AT_ONCE];
    uint16_t d[QUANT_BLOCKS_AT_ONCE];
    uint8_t code[QUANT_FIT_AT_ONCE];
    if (form.has_min)
        to->blocks_with_min(form.with_min, n, in, importance, with_min, code);
    else
        to->blocks(form.grid, 32, form.codebook != NULL, n, in, importance, d, code);
    for (int b = 0; b < n; b++, at += form.block_bytes) {
        if (form.has_min)
            memcpy(at, &with_min[b], sizeof with_min[b]);
        else
            memcpy(at, &d[b], sizeof d[b]);
        quant_join_nibbles(code + 32 * b, at + form.codes);
        if (form.fifth) quant_put_fifth_bits(code + 32 * b, at + form.fifth);
        if (form.top) quant_put_top_bits(code + 32 * b, at + form.top);
    }
}

QUANT_INLINE void quant_encode32(const struct quant_fit *to, struct quant_form32 form, int64_t k,
                                 const float *in, const float *importance, void *row)
{
    uint8_t *at = row;
    const int64_t step = QUANT_BLOCKS_AT_ONCE;
    for (int64_t b = 0; b < k / 32; b += step, at += step * (int64_t)form.block_bytes)
        quant_write32(to, form, (int)(k / 32 - b < step ? k / 32 - b : step), in + 32 * b,
                      importance ? importance + 32 * b : NULL, at);
}

/* v of block b of a row and a column. */
QUANT_INLINE float quant_term32(struct quant_form32 form, const void *row, int64_t b,
                                const struct quant_act *a)
{
    struct quant_block32 block;
    int isum = 0;
    quant_read32(form, (const uint8_t *)row + b * (int64_t)form.block_bytes, &block);
    for (int i = 0; i < 32; i++) isum += (block.code[i] - form.offset) * a->q[32 * b + i];
    const float scale = block.d * a->d[b];
    return form.has_min ? fmaf(scale, (float)isum, block.m * a->s[b]) : scale * (float)isum;
}

QUANT_INLINE float quant_dot32(struct quant_form32 form, int64_t k, const void *row,
                               const struct quant_act *a)
{
    float acc = 0.0f;
    for (int64_t b = 0; b < k / 32; b++) acc += quant_term32(form, row, b, a);
    return acc;
}

QUANT_INLINE void quant_unpack32(struct quant_form32 form, int64_t first, int64_t n_blocks,
                                 const void *const row[QUANT_PANEL_ROWS], void *panel)
{
    struct quant_panel32 *p = panel;
    for (int64_t b = 0; b < n_blocks; b++, p++) {
        for (int r = 0; r < QUANT_PANEL_ROWS; r++) {
            struct quant_block32 block;
            quant_read32(form, (const uint8_t *)row[r] + (size_t)(first + b) * form.block_bytes,
                         &block);
            p->d[r] = block.d;
            p->m[r] = form.has_min ? block.m : 0.0f;
            for (int i = 0; i < 8; i++) memcpy(p->q[i][r], block.code + 4 * i, 4);
        }
    }
}

/* ---- Members of a type's file ---- */

/* Defines the scalar kernels of a type from NAME_form. */
#define QUANT_BLOCK32_KERNELS(NAME)                                                                \
    QUANT_DECODE_AT(NAME##_decode, , quant_decode32(NAME##_form, first, n, row, out))              \
    static float NAME##_dot(int64_t k, const void *row, const struct quant_act *a)                 \
    {                                                                                              \
        return quant_dot32(NAME##_form, k, row, a);                                                \
    }                                                                                              \
    QUANT_GEMV_BY_DOT(NAME)                                                                        \
    QUANT_UNPACK_AT(NAME##_unpack, , quant_unpack32(NAME##_form, first, n_blocks, row, panel))

/* Defines NAME_encode by the search of the form. */
#define QUANT_BLOCK32_ENCODE(NAME)                                                                 \
    static void NAME##_encode(const struct quant_search *search, int64_t k, const float *in,       \
                              const float *importance, void *row)                                  \
    {                                                                                              \
        quant_encode32(search->fit, NAME##_form, k, in, importance, row);                          \
    }
/* Defines NAME_encode_at from NAME_write(in, importance, block). */
#define QUANT_BLOCK32_ENCODE_EACH(NAME)                                                            \
    QUANT_INLINE void NAME##_encode_at(int64_t k, const float *in, const float *importance,        \
                                       void *row)                                                  \
    {                                                                                              \
        uint8_t *at = row;                                                                         \
        for (int64_t b = 0; b < k / 32; b++, at += NAME##_form.block_bytes)                        \
            NAME##_write(in + 32 * b, importance ? importance + 32 * b : NULL, at);                \
    }

/* Members of struct quant_type. */
#define QUANT_BLOCK32_MEMBERS(NAME)                                                                \
    .block_len = 32, .block_bytes = sizeof(struct NAME##_block), .act = &quant_act_q8_32,          \
    .dot = NAME##_dot,                                                                             \
    .scalar = {.decode = NAME##_decode,                                                            \
               .encode = NAME##_encode,                                                            \
               .unpack = NAME##_unpack,                                                            \
               .panel = &NAME##_panel,                                                             \
               .gemv = NAME##_gemv}
/* Defines the scalar kernels and the row of a type. */
#define QUANT_BLOCK32_TYPE(NAME, ID)                                                               \
    QUANT_BLOCK32_KERNELS(NAME)                                                                    \
    const struct quant_type quant_type_##NAME = {                                                  \
        .name = #ID, .id = QUANT_##ID, QUANT_BLOCK32_MEMBERS(NAME)};

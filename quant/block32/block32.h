/* quant/block32/block32.h: private to quant/: what the types with blocks of 32 share: the search
 * for scales when encoding, and the shells of all kernels, into which a type file puts only how its
 * own bits become codes and scales (those of vectors: quant/block32/block32_x86.h).
 *
 * The shells are always inlined with the type's functions as constant arguments, so each kernel
 * comes out as one straight loop and nothing is called through a pointer. */
#ifndef QUANT_BLOCK32_BLOCK32_H
#define QUANT_BLOCK32_BLOCK32_H

#include "quant/types.h"
#include <math.h>

/* ---- Encoding (quant/block32/block32.c) ---- */

/* Scale and minimum of 32 elements as the file keeps them. */
struct quant_scales {
    uint16_t d, m; /* binary16 */
};

/* x ~ d * (code - offset) with codes 0 .. 2 * offset - 1; offset 8 or 16. Writes the codes. A block
 * with an element that is not finite gets d = NaN, so that it shows. */
struct quant_scales quant_encode_symmetric(const float x[32], int offset, uint8_t code[32]);

/* x ~ d * code + m with codes 0 .. max_code. NaN as above. */
struct quant_scales quant_encode_with_min(const float x[32], int max_code, uint8_t code[32]);

/* ---- Scalar kernels (quant/quant.h has the arithmetic) ---- */

/* What the shells know of a type. */
struct quant_form32 {
    size_t block_bytes;
    int offset;   /* of the codes: the code minus the true value */
    bool has_min; /* x = d * (code - offset) + m, else without m */
    bool bytes;   /* codes lie as bytes in the order of elements; else as nibbles, 0 to 15 low */
    int narrow;   /* gemv: how often sums of eight products may be doubled and still fit 16 bits */
};

/* One block, out of the file's bytes. */
struct quant_block32 {
    float d, m; /* m only where there are minima */
    uint8_t code[32];
};
typedef void quant_read32(const uint8_t *at, struct quant_block32 *block);

/* One block of the file for x[32]. */
typedef void quant_write32(const float x[32], uint8_t *at);

QUANT_INLINE void quant_decode32(struct quant_form32 form, quant_read32 *read, int64_t k,
                                 const void *row, float *out)
{
    const uint8_t *at = row;
    for (int64_t b = 0; b < k / 32; b++, at += form.block_bytes, out += 32) {
        struct quant_block32 block;
        read(at, &block);
        for (int i = 0; i < 32; i++) {
            out[i] = block.d * (float)(block.code[i] - form.offset);
            if (form.has_min) out[i] += block.m;
        }
    }
}

QUANT_INLINE void quant_encode32(struct quant_form32 form, quant_write32 *write, int64_t k,
                                 const float *in, void *row)
{
    uint8_t *at = row;
    for (int64_t b = 0; b < k / 32; b++, at += form.block_bytes) write(in + 32 * b, at);
}

QUANT_INLINE float quant_dot32(struct quant_form32 form, quant_read32 *read, int64_t k,
                               const void *row, const struct quant_act *a)
{
    const uint8_t *at = row;
    float acc = 0.0f;
    for (int64_t b = 0; b < k / 32; b++, at += form.block_bytes) {
        struct quant_block32 block;
        int isum = 0;
        read(at, &block);
        for (int i = 0; i < 32; i++) isum += (block.code[i] - form.offset) * a->q[32 * b + i];
        const float scale = block.d * a->d[b];
        acc += form.has_min ? fmaf(scale, (float)isum, block.m * a->s[b]) : scale * (float)isum;
    }
    return acc;
}

QUANT_INLINE void quant_unpack32(struct quant_form32 form, quant_read32 *read, int64_t n_blocks,
                                 const void *const row[QUANT_PANEL_ROWS], void *panel)
{
    struct quant_panel32 *p = panel;
    for (int64_t b = 0; b < n_blocks; b++, p++) {
        for (int r = 0; r < QUANT_PANEL_ROWS; r++) {
            struct quant_block32 block;
            read((const uint8_t *)row[r] + (size_t)b * form.block_bytes, &block);
            p->d[r] = block.d;
            p->m[r] = form.has_min ? block.m : 0.0f;
            for (int i = 0; i < 8; i++) memcpy(p->q[i][r], block.code + 4 * i, 4);
        }
    }
}

static inline uint16_t quant_load16(const uint8_t *at)
{
    uint16_t v;
    memcpy(&v, at, sizeof v);
    return v;
}

static inline int quant_load32(const uint8_t *at)
{
    int v;
    memcpy(&v, at, sizeof v);
    return v;
}

/* The scale of a block, as most types have it: binary16 at its first byte. */
static inline float quant_scale32(const uint8_t *at)
{
    return quant_f16_to_f32(quant_load16(at));
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
    const uint32_t bits = (uint32_t)quant_load32(at);
    for (int i = 0; i < 32; i++) code[i] |= (uint8_t)((bits >> i & 1) << 4);
}

static inline void quant_put_fifth_bits(const uint8_t code[32], uint8_t *at)
{
    uint32_t bits = 0;
    for (int i = 0; i < 32; i++) bits |= (uint32_t)(code[i] >> 4 & 1) << i;
    memcpy(at, &bits, sizeof bits);
}

#endif

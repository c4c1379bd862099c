/* quant/block32/long_block.h: private to quant/: types whose blocks have one scale for a multiple
 * of 32 elements. They are multiplied as consecutive blocks of 32 with the same scale
 * (quant_act_q8_32).
 *
 * The header of a type (q1_0.h) defines a struct quant_long_form and
 *
 *     NAME_code(block, i)         the code of element i, 0 to 3; value = d * (code - offset)
 *
 * QUANT_LONG_TYPE(NAME, ID) generates its scalar kernels and its row. */
#pragma once

#include "quant/block32/block32.h"

/* d, binary16, is at byte 0. */
struct quant_long_form {
    int64_t len, bytes; /* sizes of a block; len is a multiple of 32 */
    int offset;
};

typedef uint8_t quant_long_code(const uint8_t *block, int i);

/* The block of element i of a row. */
QUANT_INLINE const uint8_t *quant_long_at(struct quant_long_form form, const void *row, int64_t i)
{
    return (const uint8_t *)row + i / form.len * form.bytes;
}

QUANT_INLINE void quant_long_decode(struct quant_long_form form, quant_long_code *code,
                                    int64_t first, int64_t n, const void *row, float *out)
{
    for (int64_t i = 0; i < n; i++) {
        const uint8_t *block = quant_long_at(form, row, first + i);
        const int c = code(block, (int)((first + i) % form.len));
        out[i] = quant_load_half(block) * (float)(c - form.offset);
    }
}

/* v of 32 elements of a row and a column. */
QUANT_INLINE float quant_long_term(struct quant_long_form form, quant_long_code *code,
                                   const void *row, int64_t b, const struct quant_act *a)
{
    const uint8_t *block = quant_long_at(form, row, 32 * b);
    int isum = 0;
    for (int64_t i = 32 * b; i < 32 * b + 32; i++)
        isum += (code(block, (int)(i % form.len)) - form.offset) * a->q[i];
    return quant_load_half(block) * a->d[b] * (float)isum;
}

QUANT_INLINE float quant_long_dot(struct quant_long_form form, quant_long_code *code, int64_t k,
                                  const void *row, const struct quant_act *a)
{
    float acc = 0.0f;
    for (int64_t b = 0; b < k / 32; b++) acc += quant_long_term(form, code, row, b, a);
    return acc;
}

QUANT_INLINE void quant_long_unpack(struct quant_long_form form, quant_long_code *code,
                                    int64_t first, int64_t n_blocks,
                                    const void *const row[QUANT_PANEL_ROWS],
                                    struct quant_panel32 *p)
{
    for (int64_t b = first; b < first + n_blocks; b++, p++) {
        for (int r = 0; r < QUANT_PANEL_ROWS; r++) {
            const uint8_t *block = quant_long_at(form, row[r], 32 * b);
            p->d[r] = quant_load_half(block);
            p->m[r] = 0.0f;
            for (int i = 0; i < 32; i++)
                p->q[i / 4][r][i % 4] = code(block, (int)((32 * b + i) % form.len));
        }
    }
}

#define QUANT_LONG_KERNELS(NAME)                                                                   \
    QUANT_DECODE_AT(NAME##_decode, ,                                                               \
                    quant_long_decode(NAME##_form, NAME##_code, first, n, row, out))               \
    static float NAME##_dot(int64_t k, const void *row, const struct quant_act *a)                 \
    {                                                                                              \
        return quant_long_dot(NAME##_form, NAME##_code, k, row, a);                                \
    }                                                                                              \
    QUANT_GEMV_BY_DOT(NAME)                                                                        \
    QUANT_UNPACK_AT(NAME##_unpack, ,                                                               \
                    quant_long_unpack(NAME##_form, NAME##_code, first, n_blocks, row, panel))

/* The scalar kernels of a type and its row. */
#define QUANT_LONG_TYPE(NAME, ID)                                                                  \
    QUANT_LONG_KERNELS(NAME)                                                                       \
    const struct quant_type quant_type_##NAME = {.name = #ID,                                      \
                                                 .id = QUANT_##ID,                                 \
                                                 .block_len = ID##_LEN,                            \
                                                 .block_bytes = ID##_BYTES,                        \
                                                 .act = &quant_act_q8_32,                          \
                                                 .dot = NAME##_dot,                                \
                                                 .scalar = {.decode = NAME##_decode,               \
                                                            .encode = NAME##_encode,               \
                                                            .unpack = NAME##_unpack,               \
                                                            .panel = &NAME##_panel,                \
                                                            .gemv = NAME##_gemv}};

/* quant/float/lanes.h: private to quant/: what the float types share: elements of two bytes, the
 * tree that reduces 16 lanes, the row. */
#pragma once

#include "quant/types.h"

/* The canonical sum of 16 lanes (quant/quant.h). */
static inline float quant_lanes_tree(float lane[16])
{
    for (int h = 8; h >= 1; h /= 2)
        for (int i = 0; i < h; i++) lane[i] += lane[i + h];
    return lane[0];
}

static inline uint16_t quant_element16(const void *row, int64_t i)
{
    return quant_load16((const char *)row + 2 * i);
}

/* Defines the row of a type from NAME_decode, NAME_encode and NAME_dot. */
#define QUANT_FLOAT_TYPE(NAME, ID, LEN, BYTES, ACT)                                                \
    QUANT_GEMV_BY_DOT(NAME)                                                                        \
    const struct quant_type quant_type_##NAME = {                                                  \
        .name = #ID,                                                                               \
        .id = QUANT_##ID,                                                                          \
        .block_len = (LEN),                                                                        \
        .block_bytes = (BYTES),                                                                    \
        .act = &quant_act_##ACT,                                                                   \
        .dot = NAME##_dot,                                                                         \
        .scalar = {.decode = NAME##_decode, .encode = NAME##_encode, .gemv = NAME##_gemv},         \
    };

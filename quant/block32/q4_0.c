/* quant/block32/q4_0.c: the scalar kernels of Q4_0 and its row. Layout: quant/block32/q4_0.h. */
#include "quant/block32/q4_0.h"

QUANT_BLOCK32_ENCODE(q4_0)
QUANT_BLOCK32_KERNELS(q4_0)

const struct quant_type quant_type_q4_0 = {
    .name = "Q4_0",
    .id = QUANT_Q4_0,
    QUANT_BLOCK32_MEMBERS(q4_0),
};

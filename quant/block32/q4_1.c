/* quant/block32/q4_1.c: the scalar kernels of Q4_1 and its row. Layout: quant/block32/q4_1.h. */
#include "quant/block32/q4_1.h"

QUANT_BLOCK32_ENCODE(q4_1)
QUANT_BLOCK32_KERNELS(q4_1)

const struct quant_type quant_type_q4_1 = {
    .name = "Q4_1",
    .id = QUANT_Q4_1,
    QUANT_BLOCK32_MEMBERS(q4_1),
};

/* quant/block32/q5_1.c: the scalar kernels of Q5_1 and its row. Layout: quant/block32/q5_1.h. */
#include "quant/block32/q5_1.h"

QUANT_BLOCK32_ENCODE(q5_1)
QUANT_BLOCK32_KERNELS(q5_1)

const struct quant_type quant_type_q5_1 = {
    .name = "Q5_1",
    .id = QUANT_Q5_1,
    QUANT_BLOCK32_MEMBERS(q5_1),
};

/* quant/block32/q5_0.c: the scalar kernels of Q5_0 and its row. Layout: quant/block32/q5_0.h. */
#include "quant/block32/q5_0.h"

QUANT_BLOCK32_ENCODE(q5_0)
QUANT_BLOCK32_KERNELS(q5_0)

const struct quant_type quant_type_q5_0 = {
    .name = "Q5_0",
    .id = QUANT_Q5_0,
    QUANT_BLOCK32_MEMBERS(q5_0),
};

/* quant/block32/q6_0.c: the scalar kernels of Q6_0 and its row. Layout: quant/block32/q6_0.h. */
#include "quant/block32/q6_0.h"

QUANT_BLOCK32_ENCODE(q6_0)
QUANT_BLOCK32_KERNELS(q6_0)

const struct quant_type quant_type_q6_0 = {
    .name = "Q6_0",
    .id = QUANT_Q6_0,
    QUANT_BLOCK32_MEMBERS(q6_0),
};

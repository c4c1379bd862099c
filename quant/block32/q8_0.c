/* quant/block32/q8_0.c: the scalar kernels of Q8_0 and its row. Layout: quant/block32/q8_0.h. */
#include "quant/block32/q8_0.h"

QUANT_ENCODE_AT(q8_0, q8_0_encode, )
QUANT_BLOCK32_KERNELS(q8_0)

const struct quant_type quant_type_q8_0 = {
    .name = "Q8_0",
    .id = QUANT_Q8_0,
    QUANT_BLOCK32_MEMBERS(q8_0),
};

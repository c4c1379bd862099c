/* quant/block32/q8_1.c: the scalar kernels of Q8_1 and its row. Layout: quant/block32/q8_1.h. */
#include "quant/block32/q8_1.h"

QUANT_ENCODE_AT(q8_1, q8_1_encode, )
QUANT_BLOCK32_KERNELS(q8_1)

const struct quant_type quant_type_q8_1 = {
    .name = "Q8_1",
    .id = QUANT_Q8_1,
    QUANT_BLOCK32_MEMBERS(q8_1),
};

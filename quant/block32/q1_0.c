/* quant/block32/q1_0.c: the encoder of Q1_0, its scalar kernels and its row. Layout:
 * quant/block32/q1_0.h. */
#include "quant/block32/q1_0.h"

QUANT_ENCODE_AT(q1_0, q1_0_encode, )

QUANT_LONG_KERNELS(q1_0)

const struct quant_type quant_type_q1_0 = {
    .name = "Q1_0",
    .id = QUANT_Q1_0,
    .block_len = Q1_0_LEN,
    .block_bytes = Q1_0_BYTES,
    QUANT_LONG_MEMBERS(q1_0),
};

/* quant/block32/iq4_nl.c: the scalar kernels of IQ4_NL and its row. Layout:
 * quant/block32/iq4_nl.h. */
#include "quant/block32/iq4_nl.h"

QUANT_BLOCK32_ENCODE(iq4_nl)
QUANT_BLOCK32_KERNELS(iq4_nl)

const struct quant_type quant_type_iq4_nl = {
    .name = "IQ4_NL",
    .id = QUANT_IQ4_NL,
    QUANT_BLOCK32_MEMBERS(iq4_nl),
};

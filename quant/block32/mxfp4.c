/* quant/block32/mxfp4.c: the scalar kernels of MXFP4 and its row. Layout: quant/block32/mxfp4.h. */
#include "quant/block32/mxfp4.h"

QUANT_ENCODE_AT(mxfp4, mxfp4_encode, )
QUANT_BLOCK32_KERNELS(mxfp4)

const struct quant_type quant_type_mxfp4 = {
    .name = "MXFP4",
    .id = QUANT_MXFP4,
    QUANT_BLOCK32_MEMBERS(mxfp4),
};

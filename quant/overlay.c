/* quant/overlay.c: puts the kernels of a level over those of its parent. */
#include "quant/types.h"

void quant_overlay_type(const struct quant_kernel *from, struct quant_kernel *to)
{
    if (from->decode) to->decode = from->decode;
    if (from->encode) to->encode = from->encode;
    if (from->unpack) {
        to->unpack = from->unpack;
        to->panel = from->panel;
    }
    if (from->gemv) {
        to->gemv = from->gemv;
        to->rows_per_step = from->rows_per_step > 0 ? from->rows_per_step : 1;
        to->reads_lists = from->reads_lists;
        to->gemv_few = from->gemv_few;
        to->few_columns = from->few_columns > 0 ? from->few_columns : 1;
    }
}

void quant_overlay_act(const struct quant_act_kernel *from, struct quant_kernels *to)
{
    for (int form = 0; form < QUANT_ACT_FORMS; form++)
        if (from->quantize[form]) to->quantize[form] = from->quantize[form];
}

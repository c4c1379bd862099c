/* quant/x86/quant_x86.c: puts the kernels for x86-64 into the table. */
#include "quant/x86/types_x86.h"

#define BY_ID(ID, NAME) [QUANT_##ID] = quant_x86_##NAME,
static const struct quant_kernel *const by_id[QUANT_ID_COUNT] = {QUANT_X86_TYPES(BY_ID)};

void quant_x86_overlay(struct quant_kernels *kernels, enum cpu_level level)
{
    for (uint32_t id = 0; id < QUANT_ID_COUNT; id++)
        if (by_id[id]) quant_overlay_type(&by_id[id][level], &kernels->type[id]);
    quant_overlay_act(&quant_x86_act[level], kernels);
    if (level == CPU_AVX2) quant_x86_columns_fill(kernels);
    if (level == CPU_AVX512) quant_x86_add_rows_fill(kernels);
    if (level == CPU_AVX2) kernels->search = &quant_search_avx2;
    if (level == CPU_AVX512) kernels->search = &quant_search_avx512;
}

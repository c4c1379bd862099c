/* quant/arm/quant_arm.c: puts the kernels for 64-bit ARM into the table. */
#include "quant/arm/types_arm.h"

void quant_arm_overlay(struct quant_kernels *kernels, enum cpu_level level)
{
    static const struct quant_kernel *const rows[CPU_LEVEL_COUNT] = {[CPU_NEON] = quant_arm_neon,
                                                                     [CPU_DOTPROD] =
                                                                         quant_arm_dotprod,
                                                                     [CPU_I8MM] = quant_arm_i8mm};
    for (uint32_t id = 0; id < QUANT_ID_COUNT; id++)
        quant_overlay_type(&rows[level][id], &kernels->type[id]);
    if (level != CPU_NEON) return;
    for (uint32_t id = 0; id < QUANT_ID_COUNT; id++)
        quant_overlay_type(&quant_arm_floats[id], &kernels->type[id]);
    quant_overlay_act(&quant_arm_act, kernels);
    kernels->search = &quant_search_neon;
}

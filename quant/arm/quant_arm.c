/* quant/arm/quant_arm.c: puts the kernels for 64-bit ARM into the table: none so far, so each level
 * has the scalar ones. */
#include "quant/types.h"

void quant_arm_overlay(struct quant_kernels *kernels, enum cpu_level level)
{
    (void)kernels;
    (void)level;
}

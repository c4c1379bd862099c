/* quant/arm/types_i8mm.c: the kernels of types that are compiled for I8MM. */
#define ARM_ROWS quant_arm_i8mm
#include "quant/arm/types_arm.inc"

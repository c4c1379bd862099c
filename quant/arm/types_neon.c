/* quant/arm/types_neon.c: the kernels of types that are compiled for NEON. */
#define ARM_ROWS quant_arm_neon
#include "quant/arm/types_arm.inc"

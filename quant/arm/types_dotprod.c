/* quant/arm/types_dotprod.c: the kernels of types that are compiled for DOTPROD. */
#define ARM_ROWS quant_arm_dotprod
#include "quant/arm/types_arm.inc"

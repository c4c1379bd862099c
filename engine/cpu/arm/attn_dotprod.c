/* engine/cpu/arm/attn_dotprod.c: the kernels of attention that are compiled for DOTPROD. */
#define ARM_ATTN engine_attn_dotprod
#include "engine/cpu/arm/attn_arm.inc"

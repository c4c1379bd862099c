/* engine/cpu/arm/attn_i8mm.c: the kernels of attention that are compiled for I8MM. */
#define ARM_ATTN engine_attn_i8mm
#include "engine/cpu/arm/attn_arm.inc"

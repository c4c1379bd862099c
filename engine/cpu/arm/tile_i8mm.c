/* engine/cpu/arm/tile_i8mm.c: the tile kernels of quantized products for I8MM. */
#define ARM_TILE engine_tile_i8mm
#include "engine/cpu/arm/tile_arm.inc"

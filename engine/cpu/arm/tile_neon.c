/* engine/cpu/arm/tile_neon.c: the tile kernels of quantized products for NEON. */
#define ARM_TILE engine_tile_neon
#include "engine/cpu/arm/tile_arm.inc"

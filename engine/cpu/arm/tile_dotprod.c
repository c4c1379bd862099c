/* engine/cpu/arm/tile_dotprod.c: the tile kernels of quantized products for DOTPROD. */
#define ARM_TILE engine_tile_dotprod
#include "engine/cpu/arm/tile_arm.inc"

/* engine/cpu/arm/tile_neon.c: the kernels that are compiled for NEON: tiles of quantized products,
 * and the loops that measure the machine. */
#define ARM_TILE     engine_tile_neon
#define ARM_ROOFLINE engine_roofline_neon
#include "engine/cpu/arm/tile_arm.inc"
/* After it, whose functions it uses. */
#include "engine/cpu/arm/roofline_arm.inc"

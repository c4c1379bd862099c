/* engine/cpu/arm/tile_i8mm.c: the kernels that are compiled for I8MM: tiles of quantized products,
 * and the loops that measure the machine. */
#define ARM_TILE     engine_tile_i8mm
#define ARM_ROOFLINE engine_roofline_i8mm
#include "engine/cpu/arm/tile_arm.inc"
/* After it, whose functions it uses. */
#include "engine/cpu/arm/roofline_arm.inc"

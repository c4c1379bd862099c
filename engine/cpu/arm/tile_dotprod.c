/* engine/cpu/arm/tile_dotprod.c: the kernels that are compiled for DOTPROD: tiles of quantized
 * products, and the loops that measure the machine. */
#define ARM_TILE     engine_tile_dotprod
#define ARM_ROOFLINE engine_roofline_dotprod
#include "engine/cpu/arm/tile_arm.inc"
/* After it, whose functions it uses. */
#include "engine/cpu/arm/roofline_arm.inc"

/* engine/cpu/arm/isa_arm.c: the kernels for 64-bit ARM by level: none so far, so each level has the
 * scalar ones. */
#include "engine/cpu/isa/isa.h"

const struct engine_isa engine_isa_arm = {.few_columns = 0};

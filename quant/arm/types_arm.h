/* quant/arm/types_arm.h: private to quant/arm/: the kernels of types and activation forms for
 * 64-bit ARM, by level. */
#pragma once

#include "quant/types.h"

/* By id; a level has the kernels that its instructions change. */
extern const struct quant_kernel quant_arm_neon[QUANT_ID_COUNT], quant_arm_dotprod[QUANT_ID_COUNT],
    quant_arm_i8mm[QUANT_ID_COUNT], quant_arm_floats[QUANT_ID_COUNT];
/* Eight bytes, 1 or -1 where the bit of quant_signs7 is set. */
extern const uint64_t quant_arm_signs7[128];
extern const struct quant_act_kernel quant_arm_act;
extern const struct quant_search quant_search_neon;

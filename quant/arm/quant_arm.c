/* quant/arm/quant_arm.c: puts the kernels for 64-bit ARM into the table. */
#include "quant/arm/types_arm.h"

#define BYTE(N, I) ((uint64_t)((N) >> (I)&1 ? 0xff : 1) << 8 * (I))
#define PARITY(N)  (0x6996 >> (((N) ^ (N) >> 4) & 15) & 1)
#define SIGNS(N)                                                                                   \
    (BYTE(N, 0) | BYTE(N, 1) | BYTE(N, 2) | BYTE(N, 3) | BYTE(N, 4) | BYTE(N, 5) | BYTE(N, 6) |    \
     BYTE((N) | PARITY(N) << 7, 7))
#define SIGNS4(N)  SIGNS(N), SIGNS((N) + 1), SIGNS((N) + 2), SIGNS((N) + 3)
#define SIGNS16(N) SIGNS4(N), SIGNS4((N) + 4), SIGNS4((N) + 8), SIGNS4((N) + 12)
const uint64_t quant_arm_signs7[128] = {SIGNS16(0),  SIGNS16(16), SIGNS16(32), SIGNS16(48),
                                        SIGNS16(64), SIGNS16(80), SIGNS16(96), SIGNS16(112)};

void quant_arm_overlay(struct quant_kernels *kernels, enum cpu_level level)
{
    static const struct quant_kernel *const rows[CPU_LEVEL_COUNT] = {[CPU_NEON] = quant_arm_neon,
                                                                     [CPU_DOTPROD] =
                                                                         quant_arm_dotprod,
                                                                     [CPU_I8MM] = quant_arm_i8mm};
    for (uint32_t id = 0; id < QUANT_ID_COUNT; id++)
        quant_overlay_type(&rows[level][id], &kernels->type[id]);
    if (level != CPU_NEON) return;
    for (uint32_t id = 0; id < QUANT_ID_COUNT; id++)
        quant_overlay_type(&quant_arm_floats[id], &kernels->type[id]);
    quant_overlay_act(&quant_arm_act, kernels);
    kernels->search = &quant_search_neon;
}

/* engine/cpu/arm/isa_arm.c: the kernels for 64-bit ARM by level. */
#include "engine/cpu/arm/kernels_arm.h"

const struct engine_isa engine_isa_arm = {
    .vec = {[CPU_NEON] = engine_vec_fill_neon},
    .tile = {[CPU_NEON] = &engine_tile_neon,
             [CPU_DOTPROD] = &engine_tile_dotprod,
             [CPU_I8MM] = &engine_tile_i8mm},
    .attn = {[CPU_NEON] = &engine_attn_neon,
             [CPU_DOTPROD] = &engine_attn_dotprod,
             [CPU_I8MM] = &engine_attn_i8mm},
    .roofline = {[CPU_NEON] = &engine_roofline_neon,
                 [CPU_DOTPROD] = &engine_roofline_dotprod,
                 [CPU_I8MM] = &engine_roofline_i8mm},
};

/* engine/cpu/x86/isa_x86.c: the kernels for x86-64 by level. */
#include "engine/cpu/x86/kernels_x86.h"

const struct engine_isa engine_isa_x86 = {
    .vec = {[CPU_AVX2] = engine_vec_fill_avx2, [CPU_AVX512] = engine_vec_fill_avx512},
    .attn = {[CPU_AVX2] = &engine_attn_avx2, [CPU_AVX512] = &engine_attn_avx512},
    .tile = {[CPU_AVX2] = &engine_tile_avx2,
             [CPU_AVXVNNI] = &engine_tile_avxvnni,
             [CPU_AVX512] = &engine_tile_avx512,
             [CPU_AVX512BF16] = &engine_tile_avx512bf16},
    .tile_many = {[CPU_AMX] = &engine_tile_amx},
    .few_columns = 12, /* with fewer, folding the rows costs more than AMX gains */
    .roofline = {[CPU_AVX2] = &engine_roofline_avx2,
                 [CPU_AVXVNNI] = &engine_roofline_avxvnni,
                 [CPU_AVX512] = &engine_roofline_avx512},
};

/* engine/cpu/isa/attn.c: selects the attention kernels of a level. */
#include "engine/cpu/isa/attn.h"

const struct engine_attn *engine_attn_table(enum cpu_level level)
{
    static const void *const rows[CPU_LEVEL_COUNT] = {
        [CPU_SCALAR] = &engine_attn_scalar,
#if defined(__x86_64__)
        [CPU_AVX2] = &engine_attn_avx2,
        [CPU_AVX512] = &engine_attn_avx512,
#endif
    };
    return cpu_row(level, rows);
}

/* engine/isa/attend.c: the attention kernels of a level. */
#include "engine/isa/attend.h"

const struct engine_attend *engine_attend_table(enum cpu_level level)
{
    static const void *const rows[CPU_LEVEL_COUNT] = {
        [CPU_SCALAR] = &engine_attend_scalar,
#if defined(__x86_64__)
        [CPU_AVX2] = &engine_attend_avx2,
        [CPU_AVX512] = &engine_attend_avx512,
#endif
    };
    return cpu_row(level, rows);
}

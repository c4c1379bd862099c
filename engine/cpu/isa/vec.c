/* engine/cpu/isa/vec.c: fills the table of float primitives for a level. */
#include "engine/cpu/isa/vec_levels.h"

void engine_vec_init(struct engine_vec *vec, enum cpu_level level)
{
    static void (*const fill[CPU_LEVEL_COUNT])(struct engine_vec *) = {
        [CPU_SCALAR] = engine_vec_fill_scalar,
#if defined(__x86_64__)
        [CPU_AVX2] = engine_vec_fill_avx2,
        [CPU_AVX512] = engine_vec_fill_avx512,
#endif
    };
    enum cpu_level path[CPU_LEVEL_COUNT];
    const int n = cpu_path(level, path);
    for (int i = 0; i < n; i++)
        if (fill[path[i]]) fill[path[i]](vec);
}

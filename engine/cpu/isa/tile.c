/* engine/cpu/isa/tile.c: selects the tile kernels of a level. */
#include "engine/cpu/isa/tile.h"

const struct engine_tile *engine_tile_table(enum cpu_level level)
{
    static const void *const rows[CPU_LEVEL_COUNT] = {
        [CPU_SCALAR] = &engine_tile_scalar,
#if defined(__x86_64__)
        [CPU_AVX2] = &engine_tile_avx2,
        [CPU_AVXVNNI] = &engine_tile_avxvnni,
        [CPU_AVX512] = &engine_tile_avx512,
        [CPU_AVX512BF16] = &engine_tile_avx512bf16,
#endif
    };
    return cpu_row(level, rows);
}

/* With fewer columns, folding the rows costs more than AMX gains. */
enum { AMX_COLS = 12 };

const struct engine_tile *engine_tile_product_table(enum cpu_level level, int64_t max_columns)
{
    const bool wants_amx = cpu_has(level, CPU_AMX) && max_columns > AMX_COLS;
#if defined(__x86_64__)
    if (wants_amx) return &engine_tile_amx;
#else
    (void)wants_amx;
#endif
    return engine_tile_table(level);
}

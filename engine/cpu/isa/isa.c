/* engine/cpu/isa/isa.c: selects the kernels of a level. */
#include "engine/cpu/isa/isa.h"

const struct engine_isa *engine_isa_here(void)
{
#if defined(__x86_64__)
    return &engine_isa_x86;
#elif defined(__aarch64__)
    return &engine_isa_arm;
#else
    static const struct engine_isa none;
    return &none;
#endif
}

void engine_vec_init(struct engine_vec *vec, enum cpu_level level)
{
    const struct engine_isa *isa = engine_isa_here();
    enum cpu_level path[CPU_LEVEL_COUNT];
    const int n = cpu_path(level, path);
    engine_vec_fill_scalar(vec);
    for (int i = 1; i < n; i++)
        if (isa->vec[path[i]]) isa->vec[path[i]](vec);
}

const struct engine_attn *engine_attn_table(enum cpu_level level)
{
    const struct engine_attn *attn = cpu_row(level, engine_isa_here()->attn);
    return attn ? attn : &engine_attn_scalar;
}

const struct engine_tile *engine_tile_table(enum cpu_level level)
{
    const struct engine_tile *tile = cpu_row(level, engine_isa_here()->tile);
    return tile ? tile : &engine_tile_scalar;
}

const struct engine_tile *engine_tile_product_table(enum cpu_level level, int64_t max_columns)
{
    const struct engine_isa *isa = engine_isa_here();
    const struct engine_tile *tile =
        max_columns > isa->few_columns ? cpu_row(level, isa->tile_many) : NULL;
    return tile ? tile : engine_tile_table(level);
}

/* engine/cpu/isa/isa.h: the kernels of each level, by table. Scalar kernels are in this folder;
 * each folder of an instruction set (engine/cpu/x86/, engine/cpu/arm/) has the others, and one
 * struct engine_isa. */
#pragma once

#include "engine/cpu/isa/attn.h"
#include "engine/cpu/isa/tile.h"
#include "engine/cpu/isa/vec.h"

/* [level]: NULL where a level has its parent's. */
struct engine_isa {
    void (*vec[CPU_LEVEL_COUNT])(struct engine_vec *vec); /* replaces entries */
    const void *attn[CPU_LEVEL_COUNT];                    /* struct engine_attn */
    const void *tile[CPU_LEVEL_COUNT];                    /* struct engine_tile */
    /* struct engine_tile, for quantized products with more than few_columns columns. */
    const void *tile_many[CPU_LEVEL_COUNT];
    int64_t few_columns;
    const void *roofline[CPU_LEVEL_COUNT]; /* struct engine_roofline_loops */
};
extern const struct engine_isa engine_isa_x86, engine_isa_arm;

/* That of this machine, empty on machines without a folder. */
const struct engine_isa *engine_isa_here(void);

/* Every entry. */
void engine_vec_fill_scalar(struct engine_vec *vec);

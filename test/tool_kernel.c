/* test/tool_kernel.c: calls one kernel, for programs that trace its instructions (scripts/arm-mca).
 *
 *     tool_kernel WHAT TYPE BLOCKS     WHAT: gemv, tile or scores (TYPE: any)
 *
 * gemv multiplies the rows of a step, tile 16 rows by a column panel, scores six queries by BLOCKS
 * groups of keys of 64 elements. Prints the addresses of main and of the kernel. */
#include "engine/cpu/isa/attn.h"
#include "engine/cpu/isa/tile.h"
#include "test/support.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_BLOCKS = 64, MOST_BYTES = 1 << 20 };

static char *memory(void)
{
    char *m = aligned_alloc(64, MOST_BYTES);
    if (!m) exit(1);
    memset(m, 0, MOST_BYTES);
    return m;
}

static void call(const struct quant_kernel *kernel, const struct quant_type *type, bool is_gemv,
                 int64_t n)
{
    const struct engine_tile *tile = engine_tile_table(cpu_level_best());
    const int64_t k = n * type->act->block_len;
    const struct quant_act_parts parts = quant_act_parts(type->act, k);
    const struct quant_act a = quant_act_at(&parts, memory());
    const struct quant_rows rows = {.w = memory(),
                                    .row_bytes = (size_t)quant_row_size(type, k),
                                    .n = 1,
                                    .order = QUANT_ROWS_ADJACENT};
    static struct engine_tile_sums sums;
    static float result[ENGINE_TILE_MAX_COLS][QUANT_PANEL_ROWS];
    float *out[ENGINE_TILE_MAX_COLS];
    for (int c = 0; c < ENGINE_TILE_MAX_COLS; c++) out[c] = result[c];
    const struct engine_tile_to to = {.sums = &sums,
                                      .first = true,
                                      .last = true,
                                      .n_rows = QUANT_PANEL_ROWS,
                                      .n_cols = tile->cols,
                                      .out = out};
    if (is_gemv)
        kernel->gemv(k, &rows, &a, result[0]);
    else if (type->act->layout == QUANT_LAYOUT_32)
        tile->panel32(kernel->panel, n, memory(), memory(), &to);
    else
        tile->panel256(kernel->panel, n, memory(), memory(), &to);
}

static void *kernel_of(const struct quant_kernel *kernel, const struct quant_type *type,
                       bool is_gemv)
{
    const struct engine_tile *tile = engine_tile_table(cpu_level_best());
    if (is_gemv) return (void *)kernel->gemv;
    return type->act->layout == QUANT_LAYOUT_32 ? (void *)tile->panel32 : (void *)tile->panel256;
}

static void call_scores(int64_t n)
{
    static struct engine_attn_tile tile = {.n_rows = ENGINE_ATTN_ROWS};
    static float offset[ENGINE_ATTN_KEYS];
    static int16_t query[64];
    for (int r = 0; r < ENGINE_ATTN_ROWS; r++) tile.query[r] = query;
    engine_attn_table(cpu_level_best())->scores(64, 0, n, memory(), offset, &tile);
}

int main(int argc, char **argv)
{
    static struct quant_kernels kernels;
    const int64_t n = argc == 4 ? atoi(argv[3]) : 0;
    const struct quant_type *type = argc == 4 ? quant_type_by_name(argv[2]) : NULL;
    if (!type || !type->act || n < 1 || n > MOST_BLOCKS) return 1;
    const bool scores = strcmp(argv[1], "scores") == 0, is_gemv = strcmp(argv[1], "gemv") == 0;
    quant_kernels_init(&kernels, cpu_level_best());
    const struct quant_kernel *kernel = &kernels.type[type->id];
    printf("%p %p\n", (void *)main,
           scores ? (void *)engine_attn_table(cpu_level_best())->scores
                  : kernel_of(kernel, type, is_gemv));
    fflush(stdout);
    if (scores)
        call_scores(n);
    else
        call(kernel, type, is_gemv, n);
    return 0;
}

/* engine/cpu/isa/tile_columns.c: packs quantized columns in interleaved column panels, for the
 * tables whose panels have ENGINE_TILE_COLS columns. */
#include "engine/cpu/isa/tile.h"

/* Pointers to q of the columns of a panel, from element `at` on; zeros for a missing column. */
static void columns_q(const struct quant_act *a, int n, int64_t at,
                      const int8_t *q[ENGINE_TILE_COLS])
{
    static const int8_t zeros[256];
    for (int c = 0; c < ENGINE_TILE_COLS; c++) q[c] = c < n ? a[c].q + at : zeros;
}

void engine_tile_columns32(const struct engine_tile *tile, int64_t first, int64_t n_blocks,
                           const struct quant_act *a, int n, void *to)
{
    struct engine_cols32 *block = to;
    const int8_t *q[ENGINE_TILE_COLS];
    for (int64_t b = first; b < first + n_blocks; b++, block++) {
        columns_q(a, n, 32 * b, q);
        tile->interleave(8, q, block->q);
        for (int c = 0; c < n; c++) {
            block->d[c] = a[c].d[b];
            block->s[c] = a[c].s[b];
            block->minus_sum[c] = -a[c].sum[b];
        }
    }
}

void engine_tile_columns256(const struct engine_tile *tile, int64_t first, int64_t n_blocks,
                            const struct quant_act *a, int n, void *to)
{
    struct engine_cols256 *block = to;
    const int8_t *q[ENGINE_TILE_COLS];
    for (int64_t b = first; b < first + n_blocks; b++, block++) {
        columns_q(a, n, 256 * b, q);
        tile->interleave(64, q, block->q);
        for (int c = 0; c < n; c++) {
            const int16_t *sum = a[c].sum + 16 * b;
            block->d[c] = a[c].d[b];
            for (int i = 0; i < 16; i++) block->sum16[i / 2][c][i % 2] = sum[i];
            for (int i = 0; i < 8; i++)
                block->sum32[i / 2][c][i % 2] = (int16_t)(sum[2 * i] + sum[2 * i + 1]);
        }
    }
    if (tile->measure) tile->measure(n_blocks, to);
}

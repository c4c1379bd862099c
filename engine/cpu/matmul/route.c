/* clang-format off */
/* engine/cpu/matmul/route.c: selects how each product is computed.
 *
 * All routes but blas give the same bits (quant/quant.h), so the choice affects only speed. The
 * first row of the table that applies determines the route of each weight and gemm of a node
 * (matmul.h); `columns` are the gemm's. The code of the routes is in route_*.c.
 *
 *   route        when                                   how, and why
 *   -----------  -------------------------------------  ------------------------------------------
 *   blas         OpenBLAS allowed, plain F32 matrices,  OpenBLAS, a share of the rows each worker;
 *                2^22 floats of activations or more     gives up bit-identity
 *   active       2 columns or fewer, results that are   gemv on the rows whose results are not zero,
 *                known to be zero                       where they are; on all rows of a block of
 *                                                       which more than a third is active
 *   gemv-strided no gemm has more than 2 columns, no    the type's gemv on rows of the file, those of a
 *                gate, processor prefetches strided     step evenly in the whole weight: few long
 *                rows (cpu_prefetch)                    address streams
 *   gemv         2 columns or fewer, or as many as the  the type's gemv on runs of rows, by some columns
 *                type's gemv_few multiplies, floats of  at once or column by column: decoding a token
 *                strided rows 16; or BF16, if the level reads weights once
 *                has no tile for it
 *   packed       floats, more than 16 columns, or BF16  rows and columns packed in bundles, tiles of
 *                that no tile reads in place; if the    48 rows by 8 columns: one load of a row serves
 *                level has such a tile                  8 columns
 *   rows         other floats                           rows in place, or decoded to F32, by
 *                                                       columns in place
 *   panels-k     no gemm has more than 16 columns; or   panels of 16 rows, 512 elements of k at a
 *                super-blocks of 256, with two 512-bit  time: panels of a tile fit the L1 cache;
 *                ports                                  sums are in memory, at no cost there
 *   panels       other quantized types                  panels of 16 rows over all of k: sums are in
 *                                                       registers, panels in the L2 cache
 *
 * matmul_run.c and route_*.c run the routes, matmul_layout.c has the sizes of blocks. */
/* clang-format on */
#include "engine/cpu/matmul/route.h"
#include "engine/cpu/matmul/matmul.h"

static const char *const names[ENGINE_ROUTE_COUNT] = {
    [ENGINE_ROUTE_BLAS] = "blas",     [ENGINE_ROUTE_GEMV_STRIDED] = "gemv-strided",
    [ENGINE_ROUTE_GEMV] = "gemv",     [ENGINE_ROUTE_PACKED] = "packed",
    [ENGINE_ROUTE_ROWS] = "rows",     [ENGINE_ROUTE_PANELS_K] = "panels-k",
    [ENGINE_ROUTE_PANELS] = "panels", [ENGINE_ROUTE_ACTIVE] = "active",
};

const char *engine_route_name(enum engine_route route)
{
    return names[route];
}

enum engine_route engine_route_of(const struct engine_route_facts *f,
                                  const struct quant_act_form *act, int few, int64_t columns)
{
    enum { IN_PLACE_COLS = 2 * ENGINE_TILE_COLS };
    const struct engine_tile *tile = f->tile;
    if (f->blas) return ENGINE_ROUTE_BLAS;
    if (f->active && columns <= ENGINE_MATMUL_GEMV_COLS) return ENGINE_ROUTE_ACTIVE;
    if (engine_route_gemv_only(f->max_columns) && !f->gated && !f->adjacent_rows)
        return ENGINE_ROUTE_GEMV_STRIDED;
    if (engine_matmul_by_floats(act) && few > ENGINE_MATMUL_GEMV_COLS && !f->adjacent_rows)
        few = IN_PLACE_COLS;
    if (columns <= ENGINE_MATMUL_GEMV_COLS || columns <= few) return ENGINE_ROUTE_GEMV;
    switch (act->layout) {
    case QUANT_LAYOUT_BF16:
        if (tile->packed_bf16 && (columns > IN_PLACE_COLS || !tile->bf16))
            return ENGINE_ROUTE_PACKED;
        return tile->bf16 ? ENGINE_ROUTE_ROWS : ENGINE_ROUTE_GEMV;
    case QUANT_LAYOUT_F32:
        return columns > IN_PLACE_COLS && tile->packed_f32 ? ENGINE_ROUTE_PACKED
                                                           : ENGINE_ROUTE_ROWS;
    default:
        return engine_route_k_blocks(act->layout, f->max_columns, f->dual_512)
                   ? ENGINE_ROUTE_PANELS_K
                   : ENGINE_ROUTE_PANELS;
    }
}

bool engine_route_gemv_only(int64_t max_columns)
{
    return max_columns <= ENGINE_MATMUL_GEMV_COLS;
}

bool engine_route_k_blocks(enum quant_layout layout, int64_t max_columns, bool dual_512)
{
    if (layout == QUANT_LAYOUT_F32 || layout == QUANT_LAYOUT_BF16) return false;
    return max_columns <= 2 * ENGINE_TILE_COLS || (dual_512 && layout == QUANT_LAYOUT_256);
}

/* Whether OpenBLAS may compute this product: large, of plain float matrices. */
static bool suits_blas(const struct engine_cpu *e, const struct engine_matmul *p)
{
    const struct engine_tensor *x = p->x;
    if (!e->blas || p->ids || p->up || p->active ||
        p->n_rows_x * p->k < ENGINE_MATMUL_BLAS_FLOATS || x->ne[2] * x->ne[3] != 1 ||
        x->nb[0] != (int64_t)sizeof(float) || x->nb[1] % 4)
        return false;
    for (int i = 0; i < p->n_w; i++)
        if (p->w[i]->type->id != QUANT_F32 || (uintptr_t)p->w[i]->data % 4 || p->w[i]->nb[1] % 4)
            return false;
    return true;
}

struct engine_route_facts engine_route_facts(const struct engine_cpu *e,
                                             const struct engine_matmul *p)
{
    return (struct engine_route_facts){
        .max_columns = p->max_columns,
        .gated = p->up != NULL,
        .active = p->active != NULL,
        .blas = suits_blas(e, p),
        .adjacent_rows = e->quant.prefetch.adjacent_rows,
        .dual_512 = e->quant.dual_512,
        .tile = p->tile,
    };
}

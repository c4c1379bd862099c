/* engine/cpu/matmul/route_panels.c: routes panels and panels-k: quantized weight rows are unpacked
 * into row panels, which tiles multiply by column panels. The inner loops are in
 * engine/cpu/isa/tile_*.c and quant/. */
#include "engine/cpu/matmul/route_block.h"

/* A set is the row panels of one K-block for some rows of a block; together they fit a cache. With
 * a gate, the panels of the gate's rows (`gate_stride` rows) precede those of the up projection. */
struct panel_set {
    const struct engine_matmul_block *block;
    int64_t row, n_rows, gate_stride;
    int64_t n_packed, tile; /* rows of all panels of the set; rows per tile */
    struct engine_matmul_k_block k_block;
    bool last;                      /* last K-block */
    const char *columns;            /* the K-block of the block's first column panel */
    int64_t col_panel_bytes;        /* distance to the same K-block of the next column panel */
    struct route_prefetch prefetch; /* weights after these rows */
    int64_t ahead_bytes;            /* of each stream, which a tile prefetches */
};

/* Elements of 16 rows that a step unpacks, at least a block: few, because prefetches are
 * distributed over these steps. */
enum { UNPACK_ELEMENTS = 64 };

static int64_t blocks_at_once(const struct quant_type *type)
{
    return engine_max(UNPACK_ELEMENTS, type->block_len) / type->act->block_len;
}

static int64_t unpack_steps(const struct panel_set *p)
{
    const int64_t once = blocks_at_once(p->block->type);
    const int64_t n_panels = p->gate_stride / QUANT_PANEL_ROWS * route_sides(p->block);
    return n_panels * ((p->k_block.n_blocks + once - 1) / once);
}

static void unpack_folded(const struct engine_tile *tile, const struct quant_kernel *kernel,
                          int64_t block, const char *const row[QUANT_PANEL_ROWS], char *to)
{
    _Alignas(64) struct quant_panel256 panel;
    kernel->unpack(block, 1, (const void *const *)row, &panel);
    tile->fold256(kernel->panel, &panel, to);
}

/* Unpacks 16 rows, of which n exist; the last one is repeated for missing ones. Returns the address
 * of the next panel. */
static char *unpack_panel(const struct engine_tile *tile, struct panel_set *p, const char *w,
                          int64_t n, char *to)
{
    const struct quant_type *type = p->block->type;
    const int64_t once = blocks_at_once(type);
    const char *row[QUANT_PANEL_ROWS];
    for (int64_t i = 0; i < QUANT_PANEL_ROWS; i++)
        row[i] = w + engine_min(i, n - 1) * p->block->row_bytes;
    for (int64_t b = 0; b < p->k_block.n_blocks; b += once) {
        const int64_t some = engine_min(once, p->k_block.n_blocks - b);
        route_prefetch_step(&p->prefetch);
        if (tile->fold256 && type->act->layout == QUANT_LAYOUT_256)
            unpack_folded(tile, p->block->kernel, p->k_block.first + b, row, to);
        else
            p->block->kernel->unpack(p->k_block.first + b, some, (const void *const *)row, to);
        to += some * engine_matmul_panel_bytes(tile, type);
    }
    return to;
}

static void unpack_set(const struct engine_tile *tile, struct panel_set *p, char *to)
{
    const struct engine_matmul_block *b = p->block;
    for (int side = 0; side < route_sides(b); side++) {
        const char *w = route_side(b, side) + p->row * b->row_bytes;
        for (int64_t r = 0; r < p->n_rows; r += QUANT_PANEL_ROWS)
            to = unpack_panel(tile, p, w + r * b->row_bytes, p->n_rows - r, to);
    }
}

/* The bytes of each stream that a tile prefetches: none with many columns, because then prefetching
 * columns is more important (tile_avx512.c). */
static int64_t ahead_bytes(const struct engine_matmul_run *run, const struct panel_set *p)
{
    enum { FEW_COLS = 2 * ENGINE_TILE_COLS };
    if (!run->task->cpu->quant.prefetch.streams || !run->tile->prefetches || p->block->n > FEW_COLS)
        return 0;
    return p->k_block.n_blocks * (p->block->type->act->layout == QUANT_LAYOUT_256
                                      ? ENGINE_TILE_AHEAD_256
                                      : ENGINE_TILE_AHEAD_32);
}

/* Multiplies the set's rows from `at` on, as many as a tile has, by a column panel. */
static void multiply_tile(const struct engine_matmul_run *run, struct panel_set *p, int64_t at,
                          int64_t col_panel)
{
    const struct engine_matmul_block *b = p->block;
    const int64_t cols = run->tile->cols, i = col_panel * cols, sides = route_sides(b);
    const int64_t panel = at / QUANT_PANEL_ROWS;
    const int64_t panel_bytes = p->k_block.n_blocks * engine_matmul_panel_bytes(run->tile, b->type);
    const void *w = run->local + panel * panel_bytes;
    const void *x = p->columns + col_panel * p->col_panel_bytes;
    struct engine_tile_sums *sums = (struct engine_tile_sums *)(run->local + run->p->sums_at);
    /* Without prefetches, stores to many pages would wait for address translation. With few columns
     * memory bandwidth is the limit, and prefetches of results would use some of it. */
    const bool prefetch_out = run->dst->nb[1] >= QUANT_PAGE && b->n > ENGINE_TILE_COLS;
    float *out[ENGINE_TILE_MAX_COLS];
    const struct engine_tile_to to = {
        .sums = sums + (col_panel * sides + panel % sides) * (cols / ENGINE_TILE_COLS),
        .first = p->k_block.first == 0,
        .last = p->last,
        .n_rows = (int)engine_min(p->tile, p->n_packed - at),
        .n_cols = (int)engine_min(cols, b->n - i),
        .out = out,
        .ahead = route_prefetch_tile(&p->prefetch, p->ahead_bytes),
    };
    if (to.last) route_outputs(run, b, i, to.n_cols, p->row + at, p->gate_stride, at, out);
    for (int j = 0; to.last && prefetch_out && j < to.n_cols; j++)
        quant_prefetch_written(route_out(b, i + j, p->row + at / sides),
                               (size_t)(to.n_rows / sides) * sizeof(float));
    if (b->type->act->layout == QUANT_LAYOUT_256)
        run->tile->panel256(b->kernel->panel, p->k_block.n_blocks, w, x, &to);
    else
        run->tile->panel32(b->kernel->panel, p->k_block.n_blocks, w, x, &to);
}

/* Multiplies the whole set by a column panel. */
static void multiply_set(const struct engine_matmul_run *run, struct panel_set *p,
                         int64_t col_panel)
{
    const struct engine_matmul_block *b = p->block;
    const int64_t cols = run->tile->cols, i = col_panel * cols;
    for (int64_t at = 0; at < p->n_packed; at += p->tile) multiply_tile(run, p, at, col_panel);
    if (p->last)
        route_glu(run, b, i, engine_min(cols, b->n - i), p->row, p->gate_stride, p->n_rows);
}

/* clang-format off */
/* Unpacks the row panels of a set, then multiplies them, while they are in cache, by all column panels.
 *
 *   route      rows of a set                     in the L1 cache       sums between K-blocks
 *   panels-k   one tile's                        row panels            in memory
 *   panels     the block's, or, with few         a column panel (row   in registers: one K-block
 *              columns, one tile's               panels: L2)
 *
 * The multiplication also prefetches the weights after the set, which this worker most likely reads
 * next: 16 rows are more address streams than hardware prefetchers can follow, and unpacking, unlike
 * multiplying, would wait for memory. */
/* clang-format on */
void engine_route_panels_run(const struct engine_matmul_run *run,
                             const struct engine_matmul_block *b)
{
    enum { FEW_COLS = 32 };
    const struct engine_matmul_act *act = &run->p->act[b->type->act->index];
    const int n_panels = engine_matmul_panels(&run->task->cpu->quant, b->type);
    const bool whole_block = b->route == ENGINE_ROUTE_PANELS && b->n > FEW_COLS;
    const int64_t few = (n_panels + route_sides(b) - 1) / route_sides(b) * QUANT_PANEL_ROWS;
    const int64_t rows = whole_block ? b->n_rows : few;
    const int64_t n_col_panels = engine_matmul_col_panels(run->p, b->n);
    for (int64_t r = 0; r < b->n_rows; r += rows) {
        const int64_t n_rows = engine_min(rows, b->n_rows - r);
        const int64_t gate_stride = engine_round_up(n_rows, QUANT_PANEL_ROWS);
        struct panel_set p = {.block = b,
                              .row = r,
                              .n_rows = n_rows,
                              .gate_stride = gate_stride,
                              .n_packed = b->up ? 2 * gate_stride : n_rows,
                              .tile = n_panels * QUANT_PANEL_ROWS};
        for (int64_t s = 0; s < act->k_block_count; s++) {
            p.k_block = engine_matmul_k_block(act, run->p->k, s);
            p.last = s == act->k_block_count - 1;
            p.columns = engine_matmul_k_block_at(run, b->type->act, b->col_panel, p.k_block);
            p.col_panel_bytes = p.k_block.n_blocks * act->block_bytes;
            p.ahead_bytes = ahead_bytes(run, &p);
            p.prefetch = route_prefetch(
                run, b, r + rows, rows, s, act->k_block_count, unpack_steps(&p) + n_col_panels,
                p.ahead_bytes * n_col_panels * ((p.n_packed + p.tile - 1) / p.tile));
            unpack_set(run->tile, &p, run->local);
            for (int64_t col_panel = 0; col_panel < n_col_panels; col_panel++) {
                route_prefetch_step(&p.prefetch);
                multiply_set(run, &p, col_panel);
            }
        }
    }
}

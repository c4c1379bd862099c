/* engine/cpu/matmul/matmul_layout.c: the parts of a product that depend only on shapes and the
 * number of threads: the sizes of M-, N- and K-blocks, and the layout of scratch (matmul.h). */
#include "base/size.h"
#include "engine/cpu/matmul/matmul.h"
#include "engine/graph_internal.h"
#include <string.h>

/* Maximum bytes of one worker's panels (or packed, or decoded rows) without K-blocks: half of a
 * typical L2 cache. */
enum { PANEL_BUDGET = 384 * 1024 };
/* Weight bytes per block if memory bandwidth is the limit, and blocks per worker for load balance:
 * with many columns a block takes long, and at the end of a product all workers wait for the last
 * one. If there are more than DECODE_MANY_BLOCKS, they are longer, up to STREAM_MOST bytes, because
 * gemv reorders the column for each block. */
enum { STREAM_BUDGET = 96 * 1024, STREAM_MOST = 384 * 1024 };
enum { DECODE_BLOCKS_PER_WORKER = 6, DECODE_MANY_BLOCKS = 32, PREFILL_BLOCKS_PER_WORKER = 24 };
/* Rows of a step of gemv of floats: an adapter's first factor may have only 16 rows. */
enum { DECODE_FLOAT_ROWS = 4 };
/* The minimum number of columns of an N-block: with fewer, unpacking the weights for each N-block
 * costs more time than is saved. */
enum { N_BLOCK_COLS = 128 };
/* If x has at most this many elements, every worker converts all of x: cheaper than a barrier. */
enum { COPY_ELEMENTS = 16 * 1024 };

/* ---- Layout of scratch ---- */

/* Bytes of 16 rows of w, unpacked or packed. */
static int64_t panel_bytes(const struct engine_matmul *p, const struct engine_tensor *w)
{
    if (engine_matmul_by_floats(w->type->act))
        return QUANT_PANEL_ROWS * engine_round_up(w->ne[0], 32) * (int64_t)sizeof(float);
    return w->ne[0] / w->type->act->block_len * engine_matmul_panel_bytes(p->tile, w->type);
}

static bool by_k_blocks(const struct engine_matmul *p, const struct quant_act_form *form)
{
    return engine_route_k_blocks(form->layout, p->max_columns, p->dual_512);
}

static void act_layout(const struct engine_matmul *p, struct engine_matmul_act *act,
                       const struct quant_act_form *form)
{
    const int64_t k = p->k;
    act->form = form;
    act->parts = quant_act_parts(form, k);
    if (engine_matmul_by_floats(form)) {
        act->col_panel_bytes = p->tile->cols * engine_round_up(k, 32) * (int64_t)sizeof(float);
        return;
    }
    act->block_bytes =
        form->layout == QUANT_LAYOUT_256 ? p->tile->cols256_bytes : p->tile->cols32_bytes;
    act->col_panel_bytes = k / form->block_len * act->block_bytes;
    act->k_block_count = 1;
    if (by_k_blocks(p, form)) act->k_block_count = (k + p->tile->k_block - 1) / p->tile->k_block;
}

/* Rows of an M-block (with a gate: of each side): as many as fit the cache, but few enough that
 * there are blocks for all workers. `n_rows` is the largest number of rows of a weight. The result
 * applies to all weights, because workers divide blocks by number, so blocks must take about the
 * same time.
 */
static int64_t m_block_rows(const struct engine_matmul *p, const struct engine_tensor *w,
                            int64_t n_rows, int n_threads)
{
    int64_t row = quant_row_size(w->type, w->ne[0]);
    int64_t per_worker = p->gemv_only ? DECODE_BLOCKS_PER_WORKER : PREFILL_BLOCKS_PER_WORKER;
    const int64_t all_rows = n_rows * p->max_gemms * p->n_block_count;
    int64_t max_rows = all_rows / (n_threads * per_worker);
    const int sides = engine_matmul_sides(p);
    int64_t unit = QUANT_PANEL_ROWS;
    if (p->gemv_only && !p->active) { /* of active rows few are read */
        const int64_t many = all_rows / (n_threads * DECODE_MANY_BLOCKS);
        max_rows = engine_min(max_rows,
                              engine_max(STREAM_BUDGET / row, engine_min(STREAM_MOST / row, many)));
        if (engine_matmul_by_floats(w->type->act)) unit = DECODE_FLOAT_ROWS;
    } else if (!p->gemv_only && !by_k_blocks(p, w->type->act)) {
        max_rows =
            engine_min(max_rows, QUANT_PANEL_ROWS * (PANEL_BUDGET / panel_bytes(p, w)) / sides);
    }
    if (!p->gemv_only && engine_matmul_by_floats(w->type->act))
        unit = ENGINE_TILE_FLOAT_ROWS / (p->max_columns > 2 * ENGINE_TILE_COLS ? sides : 2);
    else if (!p->gemv_only && engine_matmul_by_pairs(w->type))
        unit = ENGINE_TILE_PANELS / sides * QUANT_PANEL_ROWS;
    return unit * engine_max(1, max_rows / unit);
}

/* Sets the offsets of the columns and column panels of a form, beginning at *at. */
static bool act_place(struct engine_matmul *p, struct engine_matmul_act *act, int64_t *at)
{
    uint64_t columns, col_panels; /* bytes */
    if (!base_mul((uint64_t)p->n_rows_x, (uint64_t)(act->in_place ? 0 : act->parts.bytes),
                  &columns) ||
        !base_mul((uint64_t)p->max_col_panels, (uint64_t)act->col_panel_bytes, &col_panels) ||
        columns > INT64_MAX / 16 || col_panels > INT64_MAX / 16)
        return false;
    act->columns = *at;
    act->col_panels = act->columns + (int64_t)columns;
    *at = act->col_panels + (p->gemv_only ? 0 : engine_round_up((int64_t)col_panels, 64));
    return true;
}

/* Bytes of the row panels, or packed or decoded rows, that a worker has at a time. */
static int64_t rows_bytes(const struct engine_matmul *p, const struct engine_tensor *w,
                          int64_t rows)
{
    if (by_k_blocks(p, w->type->act))
        return ENGINE_TILE_PANELS * (p->tile->k_block / w->type->act->block_len) *
               engine_matmul_panel_bytes(p->tile, w->type);
    const int64_t unit =
        engine_matmul_by_floats(w->type->act) ? ENGINE_TILE_FLOAT_ROWS : QUANT_PANEL_ROWS;
    return engine_matmul_sides(p) * engine_round_up(rows, unit) / QUANT_PANEL_ROWS *
           panel_bytes(p, w);
}

bool engine_matmul_layout(struct engine_matmul *p, const struct engine_tensor *dst, int n_threads,
                          enum cpu_level level, bool dual_512)
{
    *p = (struct engine_matmul){0};
    const struct engine_product product = engine_product_of(dst);
    p->x = product.x;
    p->ids = product.ids;
    p->up = product.up;
    p->active = product.active;
    p->columns = product.columns;
    p->n_w = product.n_w;
    memcpy(p->w, product.w, sizeof p->w);
    p->k = p->x->ne[0];
    p->n_rows_x = engine_tensor_rows(p->x);
    p->n_cols = engine_tensor_rows(dst);
    int64_t n_matrices = p->w[0]->ne[2] * p->w[0]->ne[3];
    p->max_gemms = engine_min(n_matrices, p->n_cols);
    const int64_t max_cols = p->ids ? p->n_cols : p->n_cols / n_matrices;
    const int cols = (p->tile = engine_tile_product_table(level, max_cols))->cols;
    p->max_col_panels = p->n_cols / cols + p->max_gemms;
    p->max_columns = max_cols;
    p->gemv_only = engine_route_gemv_only(max_cols);
    p->dual_512 = dual_512;
    p->copy_per_worker = p->n_rows_x * p->k <= COPY_ELEMENTS;
    p->n_block_count = p->ids ? 1 : engine_max(1, engine_min(n_threads, max_cols / N_BLOCK_COLS));
    const int sides = engine_matmul_sides(p);
    int64_t longest = 0, gate_floats = 0;
    for (int i = 0; i < p->n_w; i++) longest = engine_max(longest, p->w[i]->ne[1]);
    for (int i = 0; i < p->n_w; i++) {
        const struct engine_tensor *w = p->w[i];
        p->m_block_rows[i] = m_block_rows(p, w, longest, n_threads);
        p->m_block_count[i] = (w->ne[1] + p->m_block_rows[i] - 1) / p->m_block_rows[i];
        p->m_blocks_per_gemm += p->m_block_count[i];
        if (!p->gemv_only)
            p->sums_at = engine_max(p->sums_at, rows_bytes(p, w, p->m_block_rows[i]));
        if (p->active)
            p->sums_at = engine_max(p->sums_at,
                                    ENGINE_MATMUL_ACTIVE_ROWS * quant_row_size(w->type, w->ne[0]));
        if (p->up) gate_floats = sides * engine_matmul_gate_stride(p->m_block_rows[i]);
        struct engine_matmul_act *act = &p->act[w->type->act->index];
        if (!act->form) act_layout(p, act, w->type->act);
        act->in_place =
            w->type->act->element == p->x->type && p->x->nb[0] == (int64_t)p->x->type->block_bytes;
    }
    /* A row of x that is not contiguous is gathered into the memory of the row panels, which are
     * unpacked later. */
    p->sums_at = engine_round_up(engine_max(p->sums_at, p->k * (int64_t)sizeof(float)), 64);
    const int64_t col_panels = p->gemv_only ? 0 : (max_cols / cols + 1) / p->n_block_count + 1;
    p->gate_at = p->sums_at + sides * col_panels * (cols / ENGINE_TILE_COLS) *
                                  (int64_t)sizeof(struct engine_tile_sums);
    p->worker_bytes = p->gate_at + cols * gate_floats * (int64_t)sizeof(float);

    p->gemms_at = 64;
    p->columns_at = p->gemms_at +
                    engine_round_up(p->max_gemms * (int64_t)sizeof(struct engine_matmul_gemm), 64);
    p->starts_at = p->columns_at +
                   engine_round_up(p->n_cols * (int64_t)sizeof(struct engine_matmul_column), 64);
    int64_t at = p->starts_at + (p->ids ? engine_round_up((n_matrices + 1) * 8, 64) : 0);
    for (int i = 0; i < ENGINE_MATMUL_FORMS; i++)
        if (!act_place(p, &p->act[i], &at)) return false;
    p->shared_bytes = at;
    return true;
}

int64_t engine_matmul_scratch(const struct engine_matmul *p, int n_threads)
{
    return p->shared_bytes * (p->copy_per_worker ? n_threads : 1) + p->worker_bytes * n_threads;
}

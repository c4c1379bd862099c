/* engine/cpu/matmul/matmul_run.c: runs a product on every worker.
 *
 * Phase 1: each row of x is converted to the activation forms of the weights (floats are not
 * copied), and a table lists the columns of each gemm. Phase 2: columns of gemms on routes other
 * than gemv are interleaved or packed in column panels. If each row of x is in one column panel,
 * phases 1 and 2 are combined. Phase 3: workers claim blocks, each an M-block by an N-block, from
 * the pool and run them by their route. With many columns each worker has a separate N-block:
 * most of the data that it reads, here and in the ops that divide rows, is then in its caches.
 * If x is small, every worker converts all of it, without a barrier.
 *
 * This file has the table and the schedule. matmul_pack.c writes columns and column panels,
 * route_*.c compute blocks, and matmul_op.c has checked the shapes. */
#include "engine/cpu/matmul/matmul_run.h"
#include "engine/cpu/matmul/blas.h"
#include <math.h>
#include <string.h>

/* ---- Phase 1: the table ---- */

/* One gemm for each matrix of the batch, with its rows of x. */
static void table_by_batch(struct engine_matmul_run *run)
{
    const struct engine_tensor *x = run->p->x, *w = run->p->w[0], *dst = run->dst;
    int64_t per2 = x->ne[2] / w->ne[2], per3 = x->ne[3] / w->ne[3], column = 0;
    for (int64_t b3 = 0; b3 < w->ne[3]; b3++) {
        for (int64_t b2 = 0; b2 < w->ne[2]; b2++) {
            run->gemms[run->header->n_gemms++] = (struct engine_matmul_gemm){
                .first = column, .n = per2 * per3 * x->ne[1], .batch2 = b2, .batch3 = b3};
            for (int64_t i = 0; i < per2 * per3 * x->ne[1]; i++) {
                int64_t i1 = i % x->ne[1], i2 = b2 * per2 + i / x->ne[1] % per2,
                        i3 = b3 * per3 + i / x->ne[1] / per2;
                run->columns[column++] = (struct engine_matmul_column){
                    .x_row = (i3 * x->ne[2] + i2) * x->ne[1] + i1,
                    .out = dst->data + i1 * dst->nb[1] + i2 * dst->nb[2] + i3 * dst->nb[3]};
            }
        }
    }
}

static void fill_nan(float *row, int64_t n)
{
    for (int64_t i = 0; i < n; i++) row[i] = NAN;
}

/* One gemm for each expert that is in the ids, with its columns: a counting sort of the ids. Other
 * experts have no gemm, and their weights are not read. */
static void table_by_id(struct engine_matmul_run *run)
{
    const struct engine_tensor *ids = run->p->ids, *w = run->p->w[0], *dst = run->dst;
    int64_t n_experts = w->ne[2], *start = (int64_t *)(run->shared + run->p->starts_at);
    memset(start, 0, (size_t)(n_experts + 1) * sizeof(*start));
    for (int pass = 0; pass < 2; pass++) {
        for (int64_t t = 0; t < ids->ne[1]; t++) {
            const int32_t *id = (const int32_t *)(ids->data + t * ids->nb[1]);
            for (int64_t u = 0; u < ids->ne[0]; u++) {
                char *out = dst->data + u * dst->nb[1] + t * dst->nb[2];
                bool valid = id[u] >= 0 && id[u] < n_experts;
                if (valid && pass == 0) start[id[u] + 1]++;
                if (valid && pass == 1)
                    run->columns[start[id[u]]++] = (struct engine_matmul_column){
                        .x_row = t * run->p->x->ne[1] + u % run->p->x->ne[1], .out = out};
                if (!valid && pass == 1 && run->task->worker->ith == 0)
                    fill_nan((float *)out, dst->ne[0]);
            }
        }
        for (int64_t e = 0; pass == 0 && e < n_experts; e++) {
            if (start[e + 1] > 0)
                run->gemms[run->header->n_gemms++] =
                    (struct engine_matmul_gemm){.first = start[e], .n = start[e + 1], .batch2 = e};
            start[e + 1] += start[e];
        }
    }
}

static void build_table(struct engine_matmul_run *run)
{
    *run->header = (struct engine_matmul_header){0};
    if (run->p->ids)
        table_by_id(run);
    else
        table_by_batch(run);
    for (int64_t j = 0; j < run->header->n_gemms; j++) {
        struct engine_matmul_gemm *gemm = &run->gemms[j];
        gemm->col_panel = run->header->n_col_panels;
        if (gemm->n > ENGINE_MATMUL_GEMV_COLS)
            run->header->n_col_panels += engine_matmul_col_panels(run->p, gemm->n);
    }
}

/* ---- Phase 3: blocks ---- */

/* Block i of weight `which`: its rows and its start. On route gemv-strided the rows_per_step rows
 * of a step are evenly spaced in the whole weight. */
static struct engine_matmul_block block_rows_at(const struct engine_matmul_run *run, int which,
                                                int64_t i, int64_t columns, int64_t *first)
{
    const struct engine_matmul *p = run->p;
    const struct engine_tensor *w = p->w[which];
    const struct quant_kernel *kernel = &run->task->cpu->quant.type[w->type->id];
    struct engine_matmul_block c = {.type = w->type, .kernel = kernel, .row_bytes = w->nb[1]};
    c.route = engine_route_of(&run->facts, w->type->act, kernel->few_columns, columns);
    if (c.route == ENGINE_ROUTE_GEMV_STRIDED) {
        const int64_t n = p->m_block_count[which];
        c.row_stride = w->ne[1] / kernel->rows_per_step;
        *first = c.row_stride * i / n;
        c.n_rows = c.row_stride * (i + 1) / n - *first;
        c.rest_at = c.row_stride * kernel->rows_per_step - *first;
        c.rest = i == n - 1 ? w->ne[1] - c.row_stride * kernel->rows_per_step : 0;
    } else {
        *first = i * p->m_block_rows[which];
        c.n_rows = w->ne[1] - *first;
        if (c.n_rows > p->m_block_rows[which]) c.n_rows = p->m_block_rows[which];
    }
    return c;
}

/* Returns block `index`. Block numbers ascend, from the outermost loop to the innermost, by
 * N-block, gemm, weight and row. An N-block consists of whole column panels and is never empty. */
static struct engine_matmul_block block_at(const struct engine_matmul_run *run, int64_t index)
{
    const struct engine_matmul *p = run->p;
    const int64_t per_n_block = run->header->n_gemms * p->m_blocks_per_gemm,
                  n_block = index / per_n_block;
    const struct engine_matmul_gemm *gemm = &run->gemms[index % per_n_block / p->m_blocks_per_gemm];
    const int64_t n_col_panels = engine_matmul_col_panels(p, gemm->n), cols = p->tile->cols;
    const int64_t from = n_block * n_col_panels / p->n_block_count,
                  to = (n_block + 1) * n_col_panels / p->n_block_count;
    const int64_t end = engine_min(to * cols, gemm->n);
    int64_t i = index % p->m_blocks_per_gemm, column = 0, first;
    int which = 0;
    while (i >= p->m_block_count[which]) {
        i -= p->m_block_count[which];
        column += p->w[which++]->ne[1];
    }
    const struct engine_tensor *w = p->w[which];
    struct engine_matmul_block c = block_rows_at(run, which, i, gemm->n, &first);
    const struct engine_tensor *up = p->up;
    c.w = w->data + gemm->batch2 * w->nb[2] + gemm->batch3 * w->nb[3] + first * w->nb[1];
    if (up)
        c.up = up->data + gemm->batch2 * up->nb[2] + gemm->batch3 * up->nb[3] + first * up->nb[1];
    c.out_offset = (column + first) * (int64_t)sizeof(float);
    c.n = end - from * cols;
    c.col_panel = gemm->col_panel + from;
    c.columns = run->columns + gemm->first + from * cols;
    return c;
}

/* ---- All phases ---- */

enum { COL_PANELS_PER_WORKER = 4 };

static void prepare_alone(struct engine_matmul_run *run)
{
    build_table(run);
    for (int64_t i = 0; i < run->p->n_rows_x; i++) engine_matmul_convert(run, i);
    for (int64_t i = 0; i < run->header->n_col_panels; i++)
        engine_matmul_col_panel_build(run, i, false);
}

/* If there are enough column panels for all workers, a worker converts the rows of a panel and
 * interleaves them immediately: otherwise some rows would be in another core's cache. With experts
 * a row may be in several column panels. */
static void prepare_col_panels(struct engine_matmul_run *run)
{
    const struct engine_worker *worker = run->task->worker;
    engine_pool_barrier(worker); /* the table is complete */
    const int64_t n_col_panels = run->header->n_col_panels;
    for (int64_t i; (i = engine_pool_take(worker, n_col_panels)) < n_col_panels;)
        engine_matmul_col_panel_build(run, i, true);
    engine_pool_barrier(worker);
}

static void prepare_together(struct engine_matmul_run *run)
{
    const struct engine_worker *worker = run->task->worker;
    if (worker->ith == 0) build_table(run);
    const int64_t n_gemms = run->p->w[0]->ne[2] * run->p->w[0]->ne[3];
    const int64_t n_cols = run->p->n_rows_x / n_gemms; /* columns per gemm, without experts */
    if (!run->p->ids && n_cols > ENGINE_MATMUL_GEMV_COLS &&
        n_cols * n_gemms >= COL_PANELS_PER_WORKER * run->tile->cols * worker->nth) {
        prepare_col_panels(run);
        return;
    }
    for (int64_t i; (i = engine_pool_claim(worker, 1)) < run->p->n_rows_x;)
        engine_matmul_convert(run, i);
    engine_pool_barrier(worker);
    if (run->header->n_col_panels == 0) return; /* no work was claimed since the barrier */
    for (int64_t i; (i = engine_pool_claim(worker, 1)) < run->header->n_col_panels;)
        engine_matmul_col_panel_build(run, i, false);
    engine_pool_barrier(worker);
}

/* Calls OpenBLAS once for each worker's share of the rows: it divides its operands into blocks and
 * packs them, which is inefficient for small pieces. */
static void run_blas(const struct engine_task *task, const struct engine_matmul *p,
                     const struct engine_tensor *dst)
{
    int64_t column = 0;
    for (int i = 0; i < p->n_w; column += p->w[i++]->ne[1]) {
        const struct engine_tensor *w = p->w[i];
        const int64_t first = w->ne[1] * task->worker->ith / task->worker->nth;
        const int64_t end = w->ne[1] * (task->worker->ith + 1) / task->worker->nth;
        engine_blas_product(task->cpu->blas, p->x->ne[1], end - first, p->k,
                            (const float *)p->x->data, p->x->nb[1] / 4,
                            (const float *)(w->data + first * w->nb[1]), w->nb[1] / 4,
                            (float *)dst->data + column + first, dst->nb[1] / 4);
    }
}

static void (*const by_route[ENGINE_ROUTE_COUNT])(const struct engine_matmul_run *run,
                                                  const struct engine_matmul_block *b) = {
    [ENGINE_ROUTE_GEMV_STRIDED] = engine_route_gemv_strided_run,
    [ENGINE_ROUTE_ACTIVE] = engine_route_active_run,
    [ENGINE_ROUTE_GEMV] = engine_route_gemv_run,
    [ENGINE_ROUTE_PACKED] = engine_route_packed_run,
    [ENGINE_ROUTE_ROWS] = engine_route_rows_run,
    [ENGINE_ROUTE_PANELS_K] = engine_route_panels_run,
    [ENGINE_ROUTE_PANELS] = engine_route_panels_run,
};

static void call_observer(const struct engine_task *task, const struct engine_matmul *p)
{
    const struct engine_observer *observer = task->observer;
    for (int i = 0; i < p->n_w + (p->up != NULL); i++) {
        const struct engine_product_inputs inputs = {
            .w = i < p->n_w ? p->w[i] : p->up, .x = p->x, .ids = p->ids};
        observer->product(observer->user, task->worker, &inputs);
    }
}

void engine_matmul_run(const struct engine_task *task, struct engine_tensor *dst)
{
    struct engine_matmul product;
    const struct engine_worker *worker = task->worker;
    const struct quant_kernels *quant = &task->cpu->quant;
    if (!engine_matmul_layout(&product, dst, worker->nth, quant->level, quant->dual_512))
        return; /* cannot happen: the plan has computed the same layout */
    if (task->observer) call_observer(task, &product);
    const struct engine_route_facts facts = engine_route_facts(task->cpu, &product);
    if (facts.blas) {
        run_blas(task, &product, dst);
        return;
    }
    int64_t copies = product.copy_per_worker ? worker->nth : 1;
    struct engine_matmul_run run = {
        .task = task,
        .p = &product,
        .facts = facts,
        .tile = product.tile,
        .dst = dst,
        .shared =
            task->scratch + (product.copy_per_worker ? worker->ith * product.shared_bytes : 0),
        .local = task->scratch + copies * product.shared_bytes + worker->ith * product.worker_bytes,
    };
    run.header = (struct engine_matmul_header *)run.shared;
    run.gemms = (struct engine_matmul_gemm *)(run.shared + product.gemms_at);
    run.columns = (struct engine_matmul_column *)(run.shared + product.columns_at);
    if (product.copy_per_worker)
        prepare_alone(&run);
    else
        prepare_together(&run);
    if (product.columns && engine_route_columns_run(&run)) return;
    int64_t total = run.header->n_gemms * product.m_blocks_per_gemm * product.n_block_count;
    if (run.tile->begin) run.tile->begin();
    for (int64_t i; (i = engine_pool_take(worker, total)) < total;) {
        const struct engine_matmul_block block = block_at(&run, i);
        by_route[block.route](&run, &block);
        if (product.active) engine_route_active_clear(&run, &block);
    }
    if (run.tile->end) run.tile->end();
}

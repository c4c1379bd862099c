/* engine/cpu/matmul/matmul_pack.c: converts rows of x to the forms that the routes read (phase 1 of
 * matmul_run.c), and interleaves or packs them in column panels (phase 2); also packs float rows of
 * weights. */
#include "engine/cpu/matmul/matmul_run.h"
#include <string.h>

/* ---- Columns ---- */

/* The start of a row of x; its elements are nb[0] apart. */
static char *x_row_at(const struct engine_matmul_run *run, int64_t x_row)
{
    const struct engine_tensor *x = run->p->x;
    const int64_t i1 = x_row % x->ne[1], i2 = x_row / x->ne[1] % x->ne[2];
    const int64_t i3 = x_row / x->ne[1] / x->ne[2];
    return x->data + i1 * x->nb[1] + i2 * x->nb[2] + i3 * x->nb[3];
}

static char *column_at(const struct engine_matmul_run *run, const struct engine_matmul_act *act,
                       int64_t x_row)
{
    if (act->in_place) return x_row_at(run, x_row);
    return run->shared + act->columns + x_row * act->parts.bytes;
}

struct quant_act engine_matmul_column_act(const struct engine_matmul_run *run,
                                          const struct quant_act_form *form, int64_t x_row)
{
    const struct engine_matmul_act *act = &run->p->act[form->index];
    return quant_act_at(&act->parts, column_at(run, act, x_row));
}

void engine_matmul_convert(const struct engine_matmul_run *run, int64_t x_row)
{
    const struct engine_matmul *p = run->p;
    const struct engine_tensor *x = p->x;
    const struct quant_kernels *quant = &run->task->cpu->quant;
    const char *from = x_row_at(run, x_row);
    const float *row = (const float *)from;
    if (x->nb[0] != (int64_t)sizeof(float)) {
        float *gathered = (float *)run->local;
        for (int64_t i = 0; i < p->k; i++) gathered[i] = *(const float *)(from + i * x->nb[0]);
        row = gathered;
    }
    for (int i = 0; i < ENGINE_MATMUL_FORMS; i++) {
        const struct engine_matmul_act *act = &p->act[i];
        if (!act->form || act->in_place) continue;
        const struct quant_act to = quant_act_at(&act->parts, column_at(run, act, x_row));
        quant->quantize[i](p->k, row, &to);
    }
}

/* ---- Column panels ---- */

char *engine_matmul_floats_at(const struct engine_matmul_run *run,
                              const struct quant_act_form *form, int64_t col_panel, int64_t column)
{
    const struct engine_matmul_act *act = &run->p->act[form->index];
    return run->shared + act->col_panels + col_panel * act->col_panel_bytes +
           act->col_panel_bytes / run->tile->cols * column;
}

void *engine_matmul_k_block_at(const struct engine_matmul_run *run,
                               const struct quant_act_form *form, int64_t col_panel,
                               struct engine_matmul_k_block k_block)
{
    const struct engine_matmul_act *act = &run->p->act[form->index];
    const int64_t at = k_block.first * run->p->max_col_panels + col_panel * k_block.n_blocks;
    return run->shared + act->col_panels + at * act->block_bytes;
}

const struct engine_tile_packed *engine_matmul_packed(const struct engine_matmul_run *run,
                                                      const struct quant_act_form *form)
{
    return form->layout == QUANT_LAYOUT_BF16 ? run->tile->packed_bf16 : run->tile->packed_f32;
}

int64_t engine_matmul_packed_steps(const struct engine_matmul_run *run,
                                   const struct engine_tile_packed *packed)
{
    return (run->p->k + 31) / 32 * (32 / packed->step_len);
}

void engine_matmul_pack_rows(const struct engine_matmul_run *run, const struct quant_type *type,
                             const char *const row[8], float fill, int n, float *to)
{
    enum { WORDS = ENGINE_TILE_PACK_WORDS };
    const struct engine_tile_packed *packed = engine_matmul_packed(run, type->act);
    const struct quant_kernel *kernel = &run->task->cpu->quant.type[type->id];
    const bool pairs = type->act->layout == QUANT_LAYOUT_BF16;
    const int64_t k = run->p->k, n_steps = engine_matmul_packed_steps(run, packed);
    for (int64_t at = 0, some; at < k; at += some) {
        float word[8][WORDS];
        some = engine_min(pairs ? 2 * WORDS : WORDS, k - at);
        const int64_t padded = engine_round_up(some, 32);
        for (int r = 0; r < 8; r++) {
            if (pairs) {
                memset(word[r] + padded / 2 - 16, 0, 16 * sizeof(float));
                memcpy(word[r], row[r] + 2 * at, 2 * (size_t)some);
                continue;
            }
            kernel->decode(at, some, row[r], word[r]);
            for (int64_t i = some; i < padded; i++) word[r][i] = fill;
        }
        packed->pack(padded / (pairs ? 32 : 16), (const float(*)[WORDS])word, n_steps * n, n,
                     to + at / packed->step_len * n);
    }
}

/* Packs a column panel of n columns of floats, in whole bundles. */
static void pack_columns(const struct engine_matmul_run *run, const struct engine_matmul_act *act,
                         int64_t col_panel, const struct engine_matmul_column *column, int64_t n)
{
    for (int64_t first = 0; first < n; first += ENGINE_TILE_COLS) {
        const char *row[ENGINE_TILE_COLS];
        for (int c = 0; c < ENGINE_TILE_COLS; c++)
            row[c] = column_at(run, act, column[engine_min(first + c, n - 1)].x_row);
        engine_matmul_pack_rows(run, act->form->element, row, 0.0f, ENGINE_TILE_COLS,
                                (float *)engine_matmul_floats_at(run, act->form, col_panel, first));
    }
}

/* The gemm of a column panel: the last one whose panels begin at or before it. */
static const struct engine_matmul_gemm *gemm_of_col_panel(const struct engine_matmul_run *run,
                                                          int64_t col_panel)
{
    int64_t lo = 0, hi = run->header->n_gemms;
    while (hi - lo > 1) {
        int64_t mid = (lo + hi) / 2;
        if (run->gemms[mid].col_panel <= col_panel)
            lo = mid;
        else
            hi = mid;
    }
    return &run->gemms[lo];
}

void engine_matmul_col_panel_build(const struct engine_matmul_run *run, int64_t col_panel,
                                   bool convert)
{
    const struct engine_matmul_gemm *gemm = gemm_of_col_panel(run, col_panel);
    const int64_t first = (col_panel - gemm->col_panel) * run->tile->cols;
    const int n = (int)engine_min(run->tile->cols, gemm->n - first);
    const struct engine_matmul_column *column = run->columns + gemm->first + first;
    for (int c = 0; convert && c < n; c++) engine_matmul_convert(run, column[c].x_row);
    for (int i = 0; i < ENGINE_MATMUL_FORMS; i++) {
        const struct engine_matmul_act *act = &run->p->act[i];
        const struct quant_act_form *form = act->form;
        if (!form) continue;
        if (engine_matmul_by_floats(form)) {
            if (engine_route_of(&run->facts, form, 1, gemm->n) == ENGINE_ROUTE_PACKED)
                pack_columns(run, act, col_panel, column, n);
            continue;
        }
        struct quant_act a[ENGINE_TILE_MAX_COLS];
        for (int c = 0; c < n; c++) a[c] = engine_matmul_column_act(run, form, column[c].x_row);
        for (int64_t b = 0; b < act->k_block_count; b++) {
            const struct engine_matmul_k_block k_block = engine_matmul_k_block(act, run->p->k, b);
            void *to = engine_matmul_k_block_at(run, form, col_panel, k_block);
            if (n < run->tile->cols) memset(to, 0, (size_t)(k_block.n_blocks * act->block_bytes));
            (form->layout == QUANT_LAYOUT_256 ? run->tile->columns256 : run->tile->columns32)(
                run->tile, k_block.first, k_block.n_blocks, a, n, to);
        }
    }
}

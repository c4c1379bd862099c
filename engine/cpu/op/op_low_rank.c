/* engine/cpu/op/op_low_rank.c: the op add_low_rank: the second factor of a low-rank update of a
 * product. The first factor is a product as any other (matmul/).
 *
 * Arithmetic: s = scale * factor; out = y; for ascending j: out = fmaf(b[j], fmaf(z[j], s, 0),
 * out). A row with scale 0 is a copy of y. A unit of work is a range of panels of 64 outputs by a
 * range of rows, for which B is decoded once. */
#include "engine/cpu/op/op_rows.h"
#include "engine/graph_internal.h"
#include "engine/op_sources.h"
#include "engine/ops.h"
#include <math.h>
#include <string.h>

enum {
    PANEL = ENGINE_LOW_RANK_PANEL,
    UNIT_FLOATS = 4096, /* of decoded panels, unless one panel has more */
    UNIT_PANELS = 4,
    UNIT_ROWS = 32
};

/* How a node is divided into units. */
struct division {
    int64_t rank, panels, unit_panels, panel_units; /* panel_units: units that cover all panels */
    int64_t rows, unit_rows, row_units;
};

static struct division divide(const struct engine_tensor *dst)
{
    const struct engine_tensor *b = dst->src[ENGINE_LOW_RANK_B];
    const bool by_id = dst->src[ENGINE_LOW_RANK_IDS];
    struct division d = {.rank = b->ne[1], .panels = b->ne[2], .rows = engine_tensor_rows(dst)};
    d.unit_panels =
        engine_max(1, engine_min(UNIT_PANELS, UNIT_FLOATS / (PANEL * engine_max(d.rank, 1))));
    d.panel_units = (d.panels + d.unit_panels - 1) / d.unit_panels;
    d.unit_rows = by_id ? 1 : UNIT_ROWS; /* rows of different experts have different panels */
    d.row_units = (d.rows + d.unit_rows - 1) / d.unit_rows;
    return d;
}

static int64_t low_rank_scratch(const struct engine_tensor *dst, int n_threads)
{
    const struct division d = divide(dst);
    return engine_scratch_bytes(n_threads, 2, d.unit_panels * d.rank * PANEL);
}

/* Returns the expert of a row; -1: out of range. */
static int64_t expert_of(const struct engine_tensor *dst, int64_t i1, int64_t i2)
{
    const struct engine_tensor *ids = dst->src[ENGINE_LOW_RANK_IDS];
    int32_t id = 0;
    if (ids) memcpy(&id, ids->data + i2 * ids->nb[1] + i1 * ids->nb[0], sizeof id);
    return id >= 0 && id < dst->src[ENGINE_LOW_RANK_B]->ne[3] ? id : -1;
}

static float scale_of(const struct engine_tensor *dst, int64_t t)
{
    float scale;
    memcpy(&scale, dst->src[ENGINE_LOW_RANK_SCALE]->data + t * (int64_t)sizeof scale, sizeof scale);
    return scale;
}

/* Panels of a unit: as they are in memory, or decoded. */
struct panels {
    const float *floats;
    const uint16_t *halves; /* F16; NULL: floats */
    bool once;              /* few rows read them, so they come from memory, not from a cache */
};

/* F16 panels are decoded only for several rows: for one row a copy would cost more. */
enum { FEW_ROWS = 4 };

static struct panels panels_of(const struct engine_task *task, const struct engine_tensor *b,
                               const char *data, int64_t n, int64_t rows, float *buffer)
{
    if (engine_tensor_is(b, QUANT_F32))
        return (struct panels){(const float *)(const void *)data, NULL, rows < FEW_ROWS};
    if (engine_tensor_is(b, QUANT_F16) && rows < FEW_ROWS)
        return (struct panels){NULL, (const uint16_t *)(const void *)data, true};
    task->cpu->quant.type[b->type->id].decode(0, n, data, buffer);
    return (struct panels){buffer, NULL, false};
}

/* Computes n outputs from `first` on of one row; b: their panels. */
static void low_rank_row(const struct engine_vec *vec, struct engine_tensor *dst, int64_t row,
                         int64_t first, int64_t n, const struct panels *b, float *factor)
{
    const struct engine_tensor *y = dst->src[ENGINE_LOW_RANK_Y], *z = dst->src[ENGINE_LOW_RANK_Z];
    const int64_t i1 = row % dst->ne[1], i2 = row / dst->ne[1], r = z->ne[0];
    const float scale = scale_of(dst, dst->src[ENGINE_LOW_RANK_IDS] ? i2 : row);
    const float *in = (const float *)(const void *)engine_row_data(y, i1, i2, 0) + first;
    float *out = (float *)(void *)(dst->data + i1 * dst->nb[1] + i2 * dst->nb[2]) + first;
    if (in != out) memcpy(out, in, (size_t)n * sizeof *out);
    if (scale == 0.0f) return;
    vec->scale(r, (const float *)(const void *)engine_row_data(z, i1, i2, 0),
               scale * dst->params.low_rank, 0.0f, factor);
    if (b->halves)
        vec->low_rank_half(n, r, factor, b->halves, b->once, out);
    else
        vec->low_rank(n, r, factor, b->floats, b->once, out);
}

static void low_rank_unit(const struct engine_task *task, struct engine_tensor *dst,
                          const struct division *d, int64_t unit)
{
    const struct engine_tensor *b = dst->src[ENGINE_LOW_RANK_B];
    const int64_t panel = unit % d->panel_units * d->unit_panels, first = panel * PANEL;
    const int64_t panels = engine_min(d->unit_panels, d->panels - panel);
    const int64_t n = engine_min(panels * PANEL, dst->ne[0] - first);
    const int64_t row = unit / d->panel_units * d->unit_rows;
    const int64_t end = engine_min(row + d->unit_rows, d->rows);
    const int64_t expert = expert_of(dst, row % dst->ne[1], row / dst->ne[1]);
    const int64_t floats = d->unit_panels * d->rank * PANEL;
    if (expert < 0) {
        float *out = (float *)(void *)(dst->data + row * dst->nb[1]) + first;
        for (int64_t i = 0; i < n; i++) out[i] = NAN;
        return;
    }
    const struct panels used =
        panels_of(task, b, b->data + expert * b->nb[3] + panel * b->nb[2], panels * d->rank * PANEL,
                  end - row, engine_scratch_buffer(task, floats, 0));
    for (int64_t r = row; r < end; r++)
        low_rank_row(&task->cpu->vec, dst, r, first, n, &used,
                     engine_scratch_buffer(task, floats, 1));
}

static void low_rank_run(const struct engine_task *task, struct engine_tensor *dst)
{
    const struct division d = divide(dst);
    int64_t first;
    const int64_t last = engine_task_rows(task, d.row_units * d.panel_units, &first);
    for (int64_t unit = first; unit < last; unit++) low_rank_unit(task, dst, &d, unit);
}

ENGINE_CPU_ROWS_OP(add_low_rank, low_rank_scratch, low_rank_run);

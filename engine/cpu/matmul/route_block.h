/* engine/cpu/matmul/route_block.h: functions for a block that the route_*.c files share: addresses
 * of results, the gate-up epilogue, prefetching the next weights. */
#pragma once

#include "engine/cpu/matmul/matmul_run.h"
#include "quant/stream.h"

/* The address of result `row` of the block for its column `column`. */
static inline float *route_out(const struct engine_matmul_block *b, int64_t column, int64_t row)
{
    return (float *)(b->columns[column].out + b->out_offset) + row;
}

/* ---- The gate-up epilogue ---- */

static inline int route_sides(const struct engine_matmul_block *b)
{
    return b->up ? 2 : 1;
}

static inline const char *route_side(const struct engine_matmul_block *b, int side)
{
    return side == 0 ? b->w : b->up;
}

/* The address in scratch of gate and up of column j of a column panel: [side][gate_stride]. */
static inline float *route_gate(const struct engine_matmul_run *run, int64_t gate_stride, int64_t j)
{
    return (float *)(run->local + run->p->gate_at) + 2 * gate_stride * j;
}

/* Sets the addresses of a kernel's results for columns i .. i + n_cols - 1 of the block: result
 * `row`, or, before a gate-up epilogue, element `at` of [side][gate_stride] in scratch. */
static inline void route_outputs(const struct engine_matmul_run *run,
                                 const struct engine_matmul_block *b, int64_t i, int64_t n_cols,
                                 int64_t row, int64_t gate_stride, int64_t at, float **out)
{
    for (int64_t j = 0; j < n_cols; j++)
        out[j] = b->up ? route_gate(run, gate_stride, j) + at : route_out(b, i + j, row);
}

/* Stores act(gate) * up of n_rows rows in scratch as the results from `row` on; no effect on a
 * block without a gate. */
static inline void route_glu(const struct engine_matmul_run *run,
                             const struct engine_matmul_block *b, int64_t i, int64_t n_cols,
                             int64_t row, int64_t gate_stride, int64_t n_rows)
{
    for (int64_t j = 0; b->up && j < n_cols; j++) {
        const float *gate = route_gate(run, gate_stride, j);
        run->task->cpu->vec.glu[run->dst->params.unary](n_rows, gate, gate + gate_stride,
                                                        route_out(b, i + j, row));
    }
}

/* ---- Prefetch ---- */

/* Prefetches weights that are read later, a share in each step: each side in address order or, with
 * cpu_prefetch.streams, four streams alternately, which begin at equal distances in the rows, or in
 * those of each side. */
enum { ROUTE_STREAMS = 4 };
struct route_prefetch {
    struct engine_tile_ahead ahead;
    int n_near, n_far;   /* streams, or sides: n_near * n_far */
    int64_t left, share; /* in bytes, per stream or side */
    bool to_l1;          /* of struct cpu_prefetch */
};

/* Returns a prefetch of part `part` of n_parts of the n_rows rows that begin at the block's row r,
 * in n_steps steps, without `tiles` bytes of each stream, which tiles prefetch. */
static inline struct route_prefetch route_prefetch(const struct engine_matmul_run *run,
                                                   const struct engine_matmul_block *b, int64_t r,
                                                   int64_t n_rows, int64_t part, int64_t n_parts,
                                                   int64_t n_steps, int64_t tiles)
{
    const struct cpu_prefetch *policy = &run->task->cpu->quant.prefetch;
    const int n_streams = policy->streams ? ROUTE_STREAMS / route_sides(b) : 1;
    const int64_t stride =
        n_rows * b->row_bytes / n_streams; /* from a stream of a side to the next */
    const int64_t from = stride * part / n_parts, to = stride * (part + 1) / n_parts;
    const int64_t by_steps = engine_max(0, to - from - tiles);
    return (struct route_prefetch){
        .ahead = {.at = b->w + r * b->row_bytes + from,
                  .near = stride,
                  .far = b->up ? (int64_t)((uintptr_t)b->up - (uintptr_t)b->w) : 2 * stride},
        .n_near = policy->streams ? 2 : 1,
        .n_far = policy->streams ? 2 : route_sides(b),
        .left = to - from,
        .share = engine_round_up((by_steps + n_steps - 1) / n_steps, 64),
        .to_l1 = policy->to_l1,
    };
}

static inline void route_prefetch_step(struct route_prefetch *a)
{
    const int64_t bytes = engine_max(0, engine_min(a->left, a->share));
    for (int f = 0; f < a->n_far; f++)
        for (int n = 0; n < a->n_near; n++) {
            const char *at = a->ahead.at + n * a->ahead.near + f * a->ahead.far;
            if (a->n_near > 1)
                quant_prefetch(at, (size_t)bytes);
            else
                quant_prefetch_single(at, (size_t)bytes, a->to_l1);
        }
    a->ahead.at += bytes;
    a->left -= bytes;
}

/* Returns the streams for a tile that prefetches the next `bytes` of each, and skips these bytes;
 * if there are none, `at` is NULL. */
static inline struct engine_tile_ahead route_prefetch_tile(struct route_prefetch *a, int64_t bytes)
{
    struct engine_tile_ahead ahead = a->ahead;
    if (bytes == 0 || a->left <= 0) ahead.at = NULL;
    a->ahead.at += bytes;
    a->left -= bytes;
    return ahead;
}

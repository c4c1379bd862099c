/* engine/cpu/op/op_move.c: ops that move rows: copy, cont, cast, get_rows, set_rows, concat,
 * repeat.
 *
 * Arithmetic: none if source and destination have the same type (bytes are copied). Otherwise the
 * source is decoded to float (exact, one rounding per element for block types) and encoded to the
 * destination's type (quant/quant.h). Rows for an index out of range are NaN (bits 0x7fc00000). */
#include "engine/cpu/op/op_rows.h"
#include "engine/ops.h"
#include <string.h>

/* ---- Copy, cast, cont ---- */

/* Same type: copies the piece's blocks unchanged. */
static void piece_move(struct engine_tensor *dst, const struct engine_tensor *src,
                       const struct engine_piece *at)
{
    int64_t block = dst->type->block_len, size = dst->type->block_bytes, n = at->n / block;
    const char *from =
        engine_row_data(src, at->i1, at->i2, at->i3) + at->first / block * src->nb[0];
    char *to = engine_row_data(dst, at->i1, at->i2, at->i3) + at->first / block * dst->nb[0];
    if (engine_tensor_row_contiguous(src) && engine_tensor_row_contiguous(dst)) {
        memmove(to, from, (size_t)(n * size));
        return;
    }
    for (int64_t j = 0; j < n; j++)
        memcpy(to + j * dst->nb[0], from + j * src->nb[0], (size_t)size);
}

/* Copies source 0 into all of dst, which has the same shape. */
static void copy_run(const struct engine_task *task, struct engine_tensor *dst)
{
    float *buffer_in = engine_scratch_buffer(task, ENGINE_PIECE, 0),
          *buffer_out = engine_scratch_buffer(task, ENGINE_PIECE, 1);
    const struct engine_tensor *src = dst->src[0];
    for (int64_t p, last = engine_task_rows(task, engine_pieces(dst), &p); p < last; p++) {
        struct engine_piece at = engine_piece_at(dst, p);
        if (src->type == dst->type) {
            piece_move(dst, src, &at);
        } else {
            const float *x = engine_piece_load(task->cpu, src, &at, buffer_in);
            engine_piece_store(task->cpu, dst, &at, x, buffer_out);
        }
    }
}

ENGINE_CPU_ROWS_OP(copy, engine_scratch_pieces, copy_run);
ENGINE_CPU_ROWS_OP(cast, engine_scratch_pieces, copy_run);

/* ---- Rows by index ---- */

static int32_t index_at(const struct engine_tensor *ids, int64_t i0, int64_t i1, int64_t i2)
{
    int32_t id;
    memcpy(&id, engine_row_data(ids, i1, i2, 0) + i0 * ids->nb[0], sizeof id);
    return id;
}

static void fill_nan(float *out, int64_t n)
{
    for (int64_t i = 0; i < n; i++) out[i] = __builtin_nanf("");
}

/* The piece's numbers of a table of I32. */
static void get_numbers(const struct engine_tensor *table, const struct engine_piece *at,
                        int32_t id, int32_t *out)
{
    if (id < 0 || id >= table->ne[1])
        memset(out, -1, (size_t)at->n * sizeof *out);
    else
        memcpy(out, engine_row_data(table, id, at->i2, at->i3) + at->first * (int64_t)sizeof *out,
               (size_t)at->n * sizeof *out);
}

static void get_rows_run(const struct engine_task *task, struct engine_tensor *dst)
{
    const struct engine_tensor *table = dst->src[0];
    float *buffer = engine_scratch_buffer(task, ENGINE_PIECE, 0);
    for (int64_t p, last = engine_task_rows(task, engine_pieces(dst), &p); p < last; p++) {
        struct engine_piece at = engine_piece_at(dst, p);
        float *out = engine_piece_out(dst, &at);
        int32_t id = index_at(dst->src[1], at.i1, at.i2, at.i3);
        if (table->type->id == QUANT_I32) {
            get_numbers(table, &at, id, (int32_t *)(void *)out);
            continue;
        }
        if (id < 0 || id >= table->ne[1]) {
            fill_nan(out, at.n);
            continue;
        }
        struct engine_piece from = at;
        from.i1 = id;
        const float *x = engine_piece_load(task->cpu, table, &from, buffer);
        memcpy(out, x, (size_t)at.n * sizeof *out);
    }
}

ENGINE_CPU_ROWS_OP(get_rows, engine_scratch_pieces, get_rows_run);

/* Stores the row of `a` at the piece in row `id` of the same plane of the table. */
static void set_row(const struct engine_task *task, struct engine_tensor *table,
                    const struct engine_tensor *a, struct engine_piece at, int64_t id)
{
    float *buffer_in = engine_scratch_buffer(task, ENGINE_PIECE, 0),
          *buffer_out = engine_scratch_buffer(task, ENGINE_PIECE, 1);
    int64_t end = at.n;
    for (; at.first < end; at.first += ENGINE_PIECE) {
        at.n = end - at.first < ENGINE_PIECE ? end - at.first : ENGINE_PIECE;
        struct engine_piece to = at;
        to.i1 = id;
        const float *x = engine_piece_load(task->cpu, a, &at, buffer_in);
        engine_piece_store(task->cpu, table, &to, x, buffer_out);
    }
}

/* Worker i of n writes the target rows with (row + plane) modulo n = i, in the order of the ids: if
 * an id occurs twice, the table contains the later row, for any number of workers. */
static void set_rows_run(const struct engine_task *task, struct engine_tensor *dst)
{
    struct engine_tensor *table = dst->src[1];
    const struct engine_tensor *a = dst->src[0], *ids = dst->src[2];
    int64_t rows = engine_tensor_rows(a);
    for (int64_t r = 0; r < rows; r++) {
        struct engine_piece at = engine_row_at(a, r);
        int32_t id = index_at(ids, at.i1, at.i2, at.i3);
        if (id < 0 || id >= table->ne[1]) continue;
        if ((id + at.i2 + at.i3) % task->worker->nth != task->worker->ith) continue;
        set_row(task, table, a, at, id);
    }
}

ENGINE_CPU_ROWS_OP(set_rows, engine_scratch_pieces, set_rows_run);

/* ---- Concat, repeat: dst is contiguous F32 ---- */

/* Copies elements [from, from + n) of row (i1, i2, i3) of src to out, in pieces. */
static void row_into(const struct engine_task *task, const struct engine_tensor *src,
                     struct engine_piece at, float *out)
{
    float *buffer = engine_scratch_buffer(task, ENGINE_PIECE, 0);
    int64_t end = at.first + at.n;
    for (int64_t first = at.first; first < end; first += ENGINE_PIECE) {
        struct engine_piece part = at;
        part.first = first;
        part.n = end - first < ENGINE_PIECE ? end - first : ENGINE_PIECE;
        const float *x = engine_piece_load(task->cpu, src, &part, buffer);
        memcpy(out + (first - at.first), x, (size_t)part.n * sizeof *out);
    }
}

static void concat_run(const struct engine_task *task, struct engine_tensor *dst)
{
    const struct engine_tensor *a = dst->src[0], *b = dst->src[1];
    int dim = dst->params.concat;
    for (int64_t r, last = engine_task_rows(task, engine_tensor_rows(dst), &r); r < last; r++) {
        struct engine_piece at = engine_row_at(dst, r);
        float *out = engine_piece_out(dst, &at);
        if (dim == 0) {
            at.n = a->ne[0];
            row_into(task, a, at, out);
            at.n = b->ne[0];
            row_into(task, b, at, out + a->ne[0]);
            continue;
        }
        int64_t *along = dim == 1 ? &at.i1 : dim == 2 ? &at.i2 : &at.i3;
        bool second = *along >= a->ne[dim];
        if (second) *along -= a->ne[dim];
        row_into(task, second ? b : a, at, out);
    }
}

ENGINE_CPU_ROWS_OP(concat, engine_scratch_pieces, concat_run);

static void repeat_piece(const struct engine_vec *vec, const union engine_params *params, int64_t n,
                         const float *x, float *out)
{
    (void)vec;
    (void)params;
    memcpy(out, x, (size_t)n * sizeof *x);
}

ENGINE_CPU_PIECES_OP(repeat, repeat_piece)

/* engine/cpu/op/op_rows.c: rows and pieces of rows as floats. See engine/cpu/op/op_rows.h. */
#include "engine/cpu/op/op_rows.h"
#include <string.h>

/* ---- Dividing rows among workers ---- */

int64_t engine_task_rows(const struct engine_task *task, int64_t n, int64_t *first)
{
    int64_t share = n / task->worker->nth, rest = n % task->worker->nth, ith = task->worker->ith;
    *first = share * ith + (ith < rest ? ith : rest);
    return *first + share + (ith < rest ? 1 : 0);
}

static int64_t pieces_per_row(const struct engine_tensor *t)
{
    return (t->ne[0] + ENGINE_PIECE - 1) / ENGINE_PIECE;
}

int64_t engine_pieces(const struct engine_tensor *t)
{
    return engine_tensor_rows(t) * pieces_per_row(t);
}

struct engine_piece engine_row_at(const struct engine_tensor *t, int64_t row)
{
    int64_t plane = row / t->ne[1];
    return (struct engine_piece){.i1 = row % t->ne[1],
                                 .i2 = plane % t->ne[2],
                                 .i3 = plane / t->ne[2],
                                 .first = 0,
                                 .n = t->ne[0]};
}

struct engine_piece engine_piece_at(const struct engine_tensor *t, int64_t index)
{
    int64_t per_row = pieces_per_row(t);
    struct engine_piece at = engine_row_at(t, index / per_row);
    at.first = index % per_row * ENGINE_PIECE;
    at.n = t->ne[0] - at.first < ENGINE_PIECE ? t->ne[0] - at.first : ENGINE_PIECE;
    return at;
}

/* ---- Scratch buffers ---- */

static int64_t buffer_bytes(int64_t floats)
{
    return (floats * (int64_t)sizeof(float) + 63) / 64 * 64;
}

int64_t engine_scratch_bytes(int n_threads, int n_buffers, int64_t floats)
{
    /* A worker's share of a larger scratch is rounded down to a multiple of 64, hence 64 bytes
     * more. */
    return n_threads * (n_buffers * buffer_bytes(floats) + 64);
}

float *engine_scratch_buffer(const struct engine_task *task, int64_t floats, int i)
{
    /* A share depends only on the size of the whole scratch, not on the op: workers that have
     * advanced to the next node do not use buffers of a worker that is still at this one. */
    int64_t share = task->scratch_size / task->worker->nth / 64 * 64;
    return (float *)(void *)(task->scratch + task->worker->ith * share + i * buffer_bytes(floats));
}

int64_t engine_scratch_pieces(const struct engine_tensor *dst, int n_threads)
{
    (void)dst;
    return engine_scratch_bytes(n_threads, ENGINE_SCRATCH_BUFFERS, ENGINE_PIECE);
}

int64_t engine_scratch_rows(const struct engine_tensor *dst, int n_threads)
{
    return engine_scratch_bytes(n_threads, ENGINE_SCRATCH_BUFFERS, dst->src[0]->ne[0]);
}

/* ---- Loading ---- */

/* i modulo n; the comparison is faster than a division in the usual case. */
static int64_t wrapped(int64_t i, int64_t n)
{
    return i < n ? i : i % n;
}

char *engine_row_data(const struct engine_tensor *t, int64_t i1, int64_t i2, int64_t i3)
{
    return t->data + wrapped(i1, t->ne[1]) * t->nb[1] + wrapped(i2, t->ne[2]) * t->nb[2] +
           wrapped(i3, t->ne[3]) * t->nb[3];
}

/* Decodes elements [first, first + n) of a row into out. */
static void row_decode(const struct engine_cpu *e, const struct engine_tensor *t, const char *row,
                       int64_t first, int64_t n, float *out)
{
    const struct quant_type *type = t->type;
    if (engine_tensor_row_contiguous(t)) {
        e->quant.type[type->id].decode(first, n, row, out);
        return;
    }
    const char *at = row + first * t->nb[0]; /* blocks of one element */
    if (type->id == QUANT_F32) {
        for (int64_t j = 0; j < n; j++) memcpy(&out[j], at + j * t->nb[0], sizeof *out);
    } else {
        for (int64_t j = 0; j < n; j++)
            e->quant.type[type->id].decode(0, 1, at + j * t->nb[0], out + j);
    }
}

const float *engine_piece_load(const struct engine_cpu *e, const struct engine_tensor *t,
                               const struct engine_piece *at, float *buffer)
{
    const char *row = engine_row_data(t, at->i1, at->i2, at->i3);
    int64_t ne0 = t->ne[0];
    if (at->first + at->n <= ne0) {
        if (t->type->id == QUANT_F32 && engine_tensor_row_contiguous(t))
            return (const float *)(const void *)row + at->first;
        row_decode(e, t, row, at->first, at->n, buffer);
        return buffer;
    }
    if (ne0 == 1) {
        row_decode(e, t, row, 0, 1, buffer);
        for (int64_t j = 1; j < at->n; j++) buffer[j] = buffer[0];
        return buffer;
    }
    for (int64_t j = 0; j < at->n;) {
        int64_t first = (at->first + j) % ne0;
        int64_t n = at->n - j < ne0 - first ? at->n - j : ne0 - first;
        row_decode(e, t, row, first, n, buffer + j);
        j += n;
    }
    return buffer;
}

/* ---- Storing ---- */

float *engine_piece_out(const struct engine_tensor *dst, const struct engine_piece *at)
{
    char *row = dst->data + at->i1 * dst->nb[1] + at->i2 * dst->nb[2] + at->i3 * dst->nb[3];
    return (float *)(void *)row + at->first;
}

void engine_piece_store(const struct engine_cpu *e, struct engine_tensor *dst,
                        const struct engine_piece *at, const float *x, float *buffer)
{
    const struct quant_type *type = dst->type;
    char *row = engine_row_data(dst, at->i1, at->i2, at->i3);
    char *out = row + at->first / type->block_len * dst->nb[0];
    if (engine_tensor_row_contiguous(dst)) {
        if (type->id == QUANT_F32) {
            memmove(out, x, (size_t)at->n * sizeof *x);
        } else {
            quant_encode(&e->quant, type->id, at->n, x, NULL, out);
        }
        return;
    }
    quant_encode(&e->quant, type->id, at->n, x, NULL, buffer);
    for (int64_t j = 0; j < at->n; j++)
        memcpy(out + j * dst->nb[0], (const char *)buffer + j * type->block_bytes,
               type->block_bytes);
}

/* ---- Elementwise ---- */

void engine_pieces_map(const struct engine_task *task, struct engine_tensor *dst,
                       void (*f)(const struct engine_vec *vec, const union engine_params *params,
                                 int64_t n, const float *x, float *out))
{
    float *buffer = engine_scratch_buffer(task, ENGINE_PIECE, 0);
    for (int64_t p, last = engine_task_rows(task, engine_pieces(dst), &p); p < last; p++) {
        struct engine_piece at = engine_piece_at(dst, p);
        const float *x = engine_piece_load(task->cpu, dst->src[0], &at, buffer);
        f(&task->cpu->vec, &dst->params, at.n, x, engine_piece_out(dst, &at));
    }
}

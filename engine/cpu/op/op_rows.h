/* engine/cpu/op/op_rows.h: access to tensors of any type, stride and repetition as rows, or pieces
 * of rows, of contiguous floats. Private to op_*.c.
 *
 * A piece is n elements of one row, from `first` on. Elementwise ops divide pieces of at most
 * ENGINE_PIECE elements among workers, so that all workers compute parts of one long row; ops that
 * need a whole row at once divide rows. A source of contiguous floats is used in place; any other
 * is gathered or decoded into a buffer in the worker's part of the scratch. */
#pragma once

#include "engine/cpu/cpu_op.h"

enum {
    ENGINE_PIECE = 4096,       /* a multiple of every type's block */
    ENGINE_SCRATCH_BUFFERS = 3 /* maximum buffers of an elementwise op */
};

struct engine_piece {
    int64_t i1, i2, i3; /* the row */
    int64_t first, n;   /* its elements first .. first + n - 1 */
};

/* The number of pieces of t, and piece `index` of t, 0 <= index < engine_pieces(t). */
int64_t engine_pieces(const struct engine_tensor *t);
struct engine_piece engine_piece_at(const struct engine_tensor *t, int64_t index);
struct engine_piece engine_row_at(const struct engine_tensor *t, int64_t row); /* a whole row */

/* The first byte of t's row (i1, i2, i3); indexes past t's dimensions wrap around to 0. */
char *engine_row_data(const struct engine_tensor *t, int64_t i1, int64_t i2, int64_t i3);

/* The piece's n floats of t, which is repeated as needed: a pointer into t's memory, or to
 * buffer[n]. */
const float *engine_piece_load(const struct engine_cpu *e, const struct engine_tensor *t,
                               const struct engine_piece *at, float *buffer);

/* The address of the piece in a contiguous F32 tensor. */
float *engine_piece_out(const struct engine_tensor *dst, const struct engine_piece *at);

/* Writes the piece's n floats x to dst, of any type that encodes and any stride. buffer[n] is used
 * for strided rows. */
void engine_piece_store(const struct engine_cpu *e, struct engine_tensor *dst,
                        const struct engine_piece *at, const float *x, float *buffer);

/* Runs f on each of this worker's pieces of dst; x: the piece's floats of source 0, repeated as
 * needed; params: the node's parameters. */
void engine_pieces_map(const struct engine_task *task, struct engine_tensor *dst,
                       void (*f)(const struct engine_vec *vec, const union engine_params *params,
                                 int64_t n, const float *x, float *out));

/* Defines the row of an op that runs f on pieces. */
#define ENGINE_CPU_PIECES_OP(name, f)                                                              \
    static void name##_run(const struct engine_task *task, struct engine_tensor *dst)              \
    {                                                                                              \
        engine_pieces_map(task, dst, f);                                                           \
    }                                                                                              \
    ENGINE_CPU_ROWS_OP(name, engine_scratch_pieces, name##_run);

/* The scratch size for n_buffers buffers of `floats` floats per worker, and this worker's buffer
 * i. */
int64_t engine_scratch_bytes(int n_threads, int n_buffers, int64_t floats);
float *engine_scratch_buffer(const struct engine_task *task, int64_t floats, int i);

/* The scratch rules of elementwise ops and of ops that load whole rows of src[0]. */
int64_t engine_scratch_pieces(const struct engine_tensor *dst, int n_threads);
int64_t engine_scratch_rows(const struct engine_tensor *dst, int n_threads);

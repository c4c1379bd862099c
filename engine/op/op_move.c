/* engine/op/op_move.c: ops that move rows: copy, cont, cast, get_rows, set_rows, concat, repeat,
 * pad.
 *
 * Arithmetic: none if source and destination have the same type (bytes are copied). Otherwise the
 * source is decoded to float (exact, one rounding per element for block types) and encoded to the
 * destination's type (quant/quant.h). Rows for an index out of range are NaN (bits 0x7fc00000). */
#include "engine/graph_internal.h"
#include "engine/op/op_rows.h"
#include "engine/ops.h"
#include <string.h>

/* ---- Copy, cast, cont ---- */

static bool convertible(const struct engine_tensor *a, const struct engine_tensor *b)
{
    if (a->type == b->type) return a->type->header_bytes == 0; /* only blocks are copied */
    return engine_type_computes(a) && engine_type_stores(b);
}

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
    int64_t first, last;
    engine_task_rows(task, engine_pieces(dst), &first, &last);
    for (int64_t p = first; p < last; p++) {
        struct engine_piece at = engine_piece_at(dst, p);
        if (src->type == dst->type) {
            piece_move(dst, src, &at);
        } else {
            const float *x = engine_piece_load(task->engine, src, &at, buffer_in);
            engine_piece_store(task->engine, dst, &at, x, buffer_out);
        }
    }
}

static bool copy_shape(struct engine_tensor *dst, struct base_error *err)
{
    if (!engine_tensor_same_shape(dst->src[0], dst->src[1]))
        return engine_shape_fail(dst, err, "source and destination differ in shape");
    if (!convertible(dst->src[0], dst->src[1]))
        return engine_shape_fail(dst, err, "no conversion between these types");
    engine_dst_over(dst, dst->src[1]);
    return true;
}

static bool cast_shape(struct engine_tensor *dst, struct base_error *err)
{
    const struct engine_tensor *a = dst->src[0];
    engine_dst_like(dst, dst->params.cast, a);
    if (!dst->type || !convertible(a, dst))
        return engine_shape_fail(dst, err, "no conversion to this type");
    if (a->ne[0] % dst->type->block_len != 0)
        return engine_shape_fail(dst, err, "rows are not whole blocks of the new type");
    return true;
}

const struct engine_op engine_op_copy =
    ENGINE_ROWS_OP("copy", 2, copy_shape, engine_scratch_pieces, copy_run);
const struct engine_op engine_op_cast =
    ENGINE_ROWS_OP("cast", 1, cast_shape, engine_scratch_pieces, copy_run);

struct engine_tensor *engine_cast(struct engine_graph *g, struct engine_tensor *a,
                                  enum quant_id type)
{
    return engine_graph_node(g, &engine_op_cast, &a, 1, &(union engine_params){.cast = type});
}

struct engine_tensor *engine_cont(struct engine_graph *g, struct engine_tensor *a)
{
    if (a && engine_tensor_contiguous(a)) return a;
    return engine_cast(g, a, a ? a->type->id : QUANT_F32);
}

struct engine_tensor *engine_copy(struct engine_graph *g, struct engine_tensor *a,
                                  struct engine_tensor *dst)
{
    if (a && dst && !engine_tensor_same_shape(a, dst))
        a = engine_reshape(g, engine_cont(g, a), ENGINE_DIMS, dst->ne);
    struct engine_tensor *src[] = {a, dst};
    return engine_graph_node(g, &engine_op_copy, src, 2, NULL);
}

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

/* table [B3][B2][n][E], ids [B3][B2][T] give [B3][B2][T][E]. */
static bool get_rows_shape(struct engine_tensor *dst, struct base_error *err)
{
    const struct engine_tensor *table = dst->src[0], *ids = dst->src[1];
    if (!engine_tensor_is(ids, QUANT_I32)) return engine_shape_fail(dst, err, "ids must be I32");
    if (!engine_type_computes(table))
        return engine_shape_fail(dst, err, "no arithmetic for this type");
    if (ids->ne[1] != table->ne[2] || ids->ne[2] != table->ne[3] || ids->ne[3] != 1)
        return engine_shape_fail(dst, err, "ids must be one list for each table");
    engine_dst_shape(dst, QUANT_F32, table->ne[0], ids->ne[0], ids->ne[1], ids->ne[2]);
    return true;
}

static void get_rows_run(const struct engine_task *task, struct engine_tensor *dst)
{
    const struct engine_tensor *table = dst->src[0];
    float *buffer = engine_scratch_buffer(task, ENGINE_PIECE, 0);
    int64_t first, last;
    engine_task_rows(task, engine_pieces(dst), &first, &last);
    for (int64_t p = first; p < last; p++) {
        struct engine_piece at = engine_piece_at(dst, p);
        float *out = engine_piece_out(dst, &at);
        int32_t id = index_at(dst->src[1], at.i1, at.i2, at.i3);
        if (id < 0 || id >= table->ne[1]) {
            fill_nan(out, at.n);
            continue;
        }
        struct engine_piece from = at;
        from.i1 = id;
        const float *x = engine_piece_load(task->engine, table, &from, buffer);
        memcpy(out, x, (size_t)at.n * sizeof *out);
    }
}

const struct engine_op engine_op_get_rows =
    ENGINE_ROWS_OP("get_rows", 2, get_rows_shape, engine_scratch_pieces, get_rows_run);

struct engine_tensor *engine_get_rows(struct engine_graph *g, struct engine_tensor *table,
                                      struct engine_tensor *ids)
{
    struct engine_tensor *src[] = {table, ids};
    return engine_graph_node(g, &engine_op_get_rows, src, 2, NULL);
}

/* table [B3][B2][n][E], a [B3][B2][T][E], ids [B3 or 1][B2 or 1][T]. */
static bool set_rows_shape(struct engine_tensor *dst, struct base_error *err)
{
    struct engine_tensor *table = dst->src[1];
    const struct engine_tensor *a = dst->src[0], *ids = dst->src[2];
    if (!engine_tensor_is(ids, QUANT_I32)) return engine_shape_fail(dst, err, "ids must be I32");
    if (!engine_type_computes(a) || !engine_type_stores(table))
        return engine_shape_fail(dst, err, "no arithmetic for this type");
    if (a->ne[0] != table->ne[0] || a->ne[2] != table->ne[2] || a->ne[3] != table->ne[3])
        return engine_shape_fail(dst, err, "rows do not fit the table");
    if (ids->ne[0] != a->ne[1] || a->ne[2] % ids->ne[1] != 0 || a->ne[3] % ids->ne[2] != 0 ||
        ids->ne[3] != 1)
        return engine_shape_fail(dst, err, "there must be one id for each row");
    engine_dst_over(dst, table);
    return true;
}

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
        const float *x = engine_piece_load(task->engine, a, &at, buffer_in);
        engine_piece_store(task->engine, table, &to, x, buffer_out);
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

const struct engine_op engine_op_set_rows =
    ENGINE_ROWS_OP("set_rows", 3, set_rows_shape, engine_scratch_pieces, set_rows_run);

struct engine_tensor *engine_set_rows(struct engine_graph *g, struct engine_tensor *table,
                                      struct engine_tensor *a, struct engine_tensor *ids)
{
    struct engine_tensor *src[] = {a, table, ids};
    return engine_graph_node(g, &engine_op_set_rows, src, 3, NULL);
}

/* ---- Concat, repeat, pad: dst is contiguous F32 ---- */

static bool concat_shape(struct engine_tensor *dst, struct base_error *err)
{
    const struct engine_tensor *a = dst->src[0], *b = dst->src[1];
    int dim = dst->params.concat;
    if (!engine_type_computes(a) || !engine_type_computes(b))
        return engine_shape_fail(dst, err, "no arithmetic for this type");
    if (dim < 0 || dim >= ENGINE_DIMS) return engine_shape_fail(dst, err, "no such dimension");
    engine_dst_like(dst, QUANT_F32, a);
    for (int d = 0; d < ENGINE_DIMS; d++)
        if (d != dim && a->ne[d] != b->ne[d])
            return engine_shape_fail(dst, err, "the other dimensions differ");
    if (__builtin_add_overflow(a->ne[dim], b->ne[dim], &dst->ne[dim]))
        return engine_shape_fail(dst, err, "too large");
    return true;
}

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
        const float *x = engine_piece_load(task->engine, src, &part, buffer);
        memcpy(out + (first - at.first), x, (size_t)part.n * sizeof *out);
    }
}

static void concat_run(const struct engine_task *task, struct engine_tensor *dst)
{
    const struct engine_tensor *a = dst->src[0], *b = dst->src[1];
    int dim = dst->params.concat;
    int64_t first, last;
    engine_task_rows(task, engine_tensor_rows(dst), &first, &last);
    for (int64_t r = first; r < last; r++) {
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

const struct engine_op engine_op_concat =
    ENGINE_ROWS_OP("concat", 2, concat_shape, engine_scratch_pieces, concat_run);

struct engine_tensor *engine_concat(struct engine_graph *g, struct engine_tensor *a,
                                    struct engine_tensor *b, int dim)
{
    struct engine_tensor *src[] = {a, b};
    return engine_graph_node(g, &engine_op_concat, src, 2, &(union engine_params){.concat = dim});
}

/* Only the shape of source 1 is used. */
static bool repeat_shape(struct engine_tensor *dst, struct base_error *err)
{
    if (!engine_type_computes(dst->src[0]))
        return engine_shape_fail(dst, err, "no arithmetic for this type");
    if (!engine_tensor_can_repeat(dst->src[0], dst->src[1]))
        return engine_shape_fail(dst, err, "the first does not repeat over the second");
    engine_dst_like(dst, QUANT_F32, dst->src[1]);
    return true;
}

static void repeat_piece(const struct engine_vec *vec, const union engine_params *params, int64_t n,
                         const float *x, float *out)
{
    (void)vec;
    (void)params;
    memcpy(out, x, (size_t)n * sizeof *x);
}

static void repeat_run(const struct engine_task *task, struct engine_tensor *dst)
{
    engine_pieces_map(task, dst, repeat_piece);
}

const struct engine_op engine_op_repeat =
    ENGINE_ROWS_OP("repeat", 2, repeat_shape, engine_scratch_pieces, repeat_run);

struct engine_tensor *engine_repeat(struct engine_graph *g, struct engine_tensor *a,
                                    struct engine_tensor *like)
{
    struct engine_tensor *src[] = {a, like};
    return engine_graph_node(g, &engine_op_repeat, src, 2, NULL);
}

static bool pad_shape(struct engine_tensor *dst, struct base_error *err)
{
    const struct engine_tensor *a = dst->src[0];
    if (!engine_type_computes(a)) return engine_shape_fail(dst, err, "no arithmetic for this type");
    engine_dst_like(dst, QUANT_F32, a);
    for (int d = 0; d < ENGINE_DIMS; d++)
        if (dst->params.pad[d] < 0 ||
            __builtin_add_overflow(a->ne[d], dst->params.pad[d], &dst->ne[d]))
            return engine_shape_fail(dst, err, "impossible padding");
    return true;
}

static void pad_run(const struct engine_task *task, struct engine_tensor *dst)
{
    const struct engine_tensor *a = dst->src[0];
    int64_t first, last;
    engine_task_rows(task, engine_tensor_rows(dst), &first, &last);
    for (int64_t r = first; r < last; r++) {
        struct engine_piece at = engine_row_at(dst, r);
        float *out = engine_piece_out(dst, &at);
        int64_t filled = 0;
        if (at.i1 < a->ne[1] && at.i2 < a->ne[2] && at.i3 < a->ne[3]) {
            filled = at.n = a->ne[0];
            row_into(task, a, at, out);
        }
        memset(out + filled, 0, (size_t)(dst->ne[0] - filled) * sizeof *out);
    }
}

const struct engine_op engine_op_pad =
    ENGINE_ROWS_OP("pad", 1, pad_shape, engine_scratch_pieces, pad_run);

struct engine_tensor *engine_pad(struct engine_graph *g, struct engine_tensor *a,
                                 const int64_t *after)
{
    return engine_graph_node(
        g, &engine_op_pad, &a, 1,
        &(union engine_params){.pad = {after[0], after[1], after[2], after[3]}});
}

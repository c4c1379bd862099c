/* engine/graph/graph_move.c: the ops that move data: copy, cast, get_rows, set_rows, concat,
 * repeat: rows, shape rules and builders. Their arithmetic on the CPU, which is the
 * specification: engine/cpu/op/op_move.c. */
#include "engine/graph_internal.h"
#include "engine/ops.h"

/* ---- Copy, cast, cont ---- */

static bool convertible(const struct engine_tensor *a, const struct engine_tensor *b)
{
    if (a->type == b->type) return a->type->header_bytes == 0; /* only blocks are copied */
    return engine_type_computes(a) && engine_type_stores(b);
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

const struct engine_op engine_op_copy = {"copy", .n_src = 2, .shape = copy_shape};
const struct engine_op engine_op_cast = {"cast", .n_src = 1, .shape = cast_shape};

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
    return ENGINE_NODE(g, &engine_op_copy, a, dst);
}

/* ---- Rows by index ---- */

/* table [B3][B2][n][E], ids [B3][B2][T] give [B3][B2][T][E]. */
static bool get_rows_shape(struct engine_tensor *dst, struct base_error *err)
{
    const struct engine_tensor *table = dst->src[0], *ids = dst->src[1];
    if (!engine_tensor_is(ids, QUANT_I32)) return engine_shape_fail(dst, err, "ids must be I32");
    const bool whole = engine_tensor_is(table, QUANT_I32);
    if (!whole && !engine_type_computes(table))
        return engine_shape_fail(dst, err, "no arithmetic for this type");
    if (whole && !engine_tensor_row_contiguous(table))
        return engine_shape_fail(dst, err, "rows of numbers must be contiguous");
    if (ids->ne[1] != table->ne[2] || ids->ne[2] != table->ne[3] || ids->ne[3] != 1)
        return engine_shape_fail(dst, err, "ids must be one list for each table");
    engine_dst_shape(dst, whole ? QUANT_I32 : QUANT_F32, table->ne[0], ids->ne[0], ids->ne[1],
                     ids->ne[2]);
    return true;
}

const struct engine_op engine_op_get_rows = {"get_rows", .n_src = 2, .shape = get_rows_shape};

struct engine_tensor *engine_get_rows(struct engine_graph *g, struct engine_tensor *table,
                                      struct engine_tensor *ids)
{
    return ENGINE_NODE(g, &engine_op_get_rows, table, ids);
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

const struct engine_op engine_op_set_rows = {"set_rows", .n_src = 3, .shape = set_rows_shape};

struct engine_tensor *engine_set_rows(struct engine_graph *g, struct engine_tensor *table,
                                      struct engine_tensor *a, struct engine_tensor *ids)
{
    return ENGINE_NODE(g, &engine_op_set_rows, a, table, ids);
}

/* ---- Concat, repeat: dst is contiguous F32 ---- */

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

const struct engine_op engine_op_concat = {"concat", .n_src = 2, .shape = concat_shape};

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

const struct engine_op engine_op_repeat = {"repeat", .n_src = 2, .shape = repeat_shape};

struct engine_tensor *engine_repeat(struct engine_graph *g, struct engine_tensor *a,
                                    struct engine_tensor *like)
{
    return ENGINE_NODE(g, &engine_op_repeat, a, like);
}

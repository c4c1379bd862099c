/* engine/op/op_codes.c: rows into a cache of codes, which attention reads as it is
 * (engine/graph.h).
 */
#include "engine/graph_internal.h"
#include "engine/isa/attend.h"
#include "engine/op/op_rows.h"
#include "engine/ops.h"

_Static_assert((int)ENGINE_CODES_GROUP == (int)ENGINE_ATTEND_GROUP, "the groups of attention");
_Static_assert((int)ENGINE_CODES_ALIGN == (int)ENGINE_ATTEND_SUB, "the sub-blocks of attention");

enum { PARAM_WHAT, PARAM_AS };

int64_t engine_codes_bytes(enum engine_codes what, int64_t size)
{
    return what == ENGINE_CODES_KEYS ? engine_attend_key_bytes(size)
                                     : engine_attend_value_bytes(size);
}

/* x [KH][T][D], cache [KH][groups][bytes], cells [T]. */
static bool set_codes_shape(struct engine_tensor *dst, struct base_error *err)
{
    struct engine_tensor *cache = dst->src[1];
    const struct engine_tensor *x = dst->src[0], *cells = dst->src[2];
    const struct quant_type *as = quant_type_by_id((enum quant_id)dst->param[PARAM_AS].i);
    const enum engine_codes what = (enum engine_codes)dst->param[PARAM_WHAT].i;
    if (!engine_tensor_is(x, QUANT_F32) || !engine_tensor_is(cells, QUANT_I32))
        return engine_shape_fail(dst, err, "rows must be F32 and cells I32");
    if (!as || as->act == QUANT_ACT_NONE || x->ne[0] % as->block_len)
        return engine_shape_fail(dst, err, "rows cannot be rounded to this type");
    if (!engine_tensor_is(cache, QUANT_I8) || cache->ne[0] != engine_codes_bytes(what, x->ne[0]) ||
        !engine_tensor_row_contiguous(cache))
        return engine_shape_fail(dst, err, "not a cache of codes of such rows");
    if (x->ne[2] != cache->ne[2] || x->ne[3] != 1 || cache->ne[3] != 1)
        return engine_shape_fail(dst, err, "rows do not fit the cache");
    if (cells->ne[0] != x->ne[1] || cells->ne[1] != 1 || cells->ne[2] != 1 || cells->ne[3] != 1)
        return engine_shape_fail(dst, err, "there must be one cell for each row");
    engine_dst_over(dst, cache);
    return true;
}

enum { ROOM_ROW, ROOM_ROUNDED, ROOM_CODES, ROOMS };

static int64_t set_codes_scratch(const struct engine_tensor *dst, int n_threads)
{
    return engine_rooms_bytes(n_threads, ROOMS, dst->src[0]->ne[0] + 1);
}

/* One row of x into its cell; rooms: ROOMS of this worker. */
static void set_row(const struct engine_task *task, struct engine_tensor *dst, int64_t cell,
                    struct engine_piece at)
{
    const struct quant_type *as = quant_type_by_id((enum quant_id)dst->param[PARAM_AS].i);
    const struct engine_tensor *x = dst->src[0];
    const int64_t d = x->ne[0];
    float *rounded = engine_room(task, d + 1, ROOM_ROUNDED);
    int16_t *codes = (int16_t *)(void *)engine_room(task, d + 1, ROOM_CODES);
    const float *row = engine_piece_load(task->engine, x, &at, engine_room(task, d + 1, ROOM_ROW));
    char *group = dst->data + cell / ENGINE_ATTEND_GROUP * dst->nb[1] + at.i2 * dst->nb[2];
    if (as->id == QUANT_F16)
        task->engine->vec.f32_to_f16(d, row, (uint16_t *)(void *)codes);
    else
        as->encode(d, row, codes);
    task->engine->quant.type[as->id].decode(d, codes, rounded);
    const struct engine_attend *attend = engine_attend_table(task->engine->quant.level);
    if (dst->param[PARAM_WHAT].i == ENGINE_CODES_KEYS) {
        const float scale = attend->row(d, rounded, ENGINE_ATTEND_KEY, codes);
        engine_attend_key_put(d, codes, scale, group, cell % ENGINE_ATTEND_GROUP);
    } else {
        const float scale = attend->row(d, rounded, ENGINE_ATTEND_VALUE, codes);
        engine_attend_value_put(d, codes, scale, group, cell % ENGINE_ATTEND_GROUP);
    }
}

/* A row goes to every line of its group, which may have left the caches since the last one came:
 * all are asked for at once, because stores alone would wait for one after the other. */
static void fetch_groups(const struct engine_tensor *dst, int64_t cell)
{
    for (int64_t head = 0; head < dst->ne[2]; head++) {
        const char *group = dst->data + cell / ENGINE_ATTEND_GROUP * dst->nb[1] + head * dst->nb[2];
        for (int64_t i = 0; i < dst->ne[0]; i += 64) __builtin_prefetch(group + i, 1);
    }
}

/* A worker takes tokens that follow one another, those whose rows it has computed. */
static void set_codes_run(const struct engine_task *task, struct engine_tensor *dst)
{
    const struct engine_tensor *x = dst->src[0], *cells = dst->src[2];
    const int64_t n_cells = dst->ne[1] * ENGINE_ATTEND_GROUP;
    int64_t first, last;
    engine_task_rows(task, x->ne[1], &first, &last);
    for (int64_t t = first; t < last; t++) {
        const int32_t cell = *(const int32_t *)(const void *)(cells->data + t * cells->nb[0]);
        if (cell < 0 || cell >= n_cells) continue;
        fetch_groups(dst, cell);
        for (int64_t head = 0; head < x->ne[2]; head++)
            set_row(task, dst, cell, engine_row_at(x, head * x->ne[1] + t));
    }
}

const struct engine_op engine_op_set_codes =
    ENGINE_ROWS_OP("set_codes", 3, set_codes_shape, set_codes_scratch, set_codes_run);

struct engine_tensor *engine_set_codes(struct engine_graph *g, enum engine_codes what,
                                       struct engine_tensor *cache, struct engine_tensor *x,
                                       struct engine_tensor *cells, enum quant_id as)
{
    struct engine_tensor *src[] = {x, cache, cells};
    union engine_param param[] = {{.i = what}, {.i = as}};
    return engine_graph_node(g, &engine_op_set_codes, src, 3, param, 2);
}

/* engine/graph/graph_kv.c: set_kv_q16, which stores rows in an int16-quantized KV cache
 * (engine/graph.h): rows, shape rules and builders. Their arithmetic on the CPU, which is the
 * specification: engine/cpu/op/op_kv_q16.c. */
#include "engine/graph_internal.h"
#include "engine/kv.h"
#include "engine/ops.h"

/* x [KH][T][D], cache [KH][groups][bytes], slots [T]. */
static bool set_kv_q16_shape(struct engine_tensor *dst, struct base_error *err)
{
    struct engine_tensor *cache = dst->src[1];
    const struct engine_tensor *x = dst->src[0], *slots = dst->src[2];
    const struct quant_type *as = quant_type_by_id(dst->params.set_kv_q16.as);
    const enum engine_kv_q16 what = dst->params.set_kv_q16.what;
    if (!engine_tensor_is(x, QUANT_F32) || !engine_tensor_is(slots, QUANT_I32))
        return engine_shape_fail(dst, err, "rows must be F32 and slots I32");
    struct engine_kv_form form;
    struct base_error unused = BASE_ERROR_INIT;
    if (!as || !engine_kv_form(cache->place, what, as, (uint32_t)x->ne[0], &form, &unused))
        return engine_shape_fail(dst, err, "rows cannot be rounded to this type");
    if (!form.is_coded || cache->type != form.type || cache->ne[0] != form.elements ||
        !engine_tensor_row_contiguous(cache))
        return engine_shape_fail(dst, err, "not an int16 cache of such rows");
    if (x->ne[2] != cache->ne[2] || x->ne[3] != 1 || cache->ne[3] != 1)
        return engine_shape_fail(dst, err, "rows do not fit the cache");
    if (slots->ne[0] != x->ne[1] || slots->ne[1] != 1 || slots->ne[2] != 1 || slots->ne[3] != 1)
        return engine_shape_fail(dst, err, "there must be one slot for each row");
    engine_dst_over(dst, cache);
    return true;
}

const struct engine_op engine_op_set_kv_q16 = {"set_kv_q16", .n_src = 3, .shape = set_kv_q16_shape};

struct engine_tensor *engine_set_kv_q16(struct engine_graph *g, enum engine_kv_q16 what,
                                        struct engine_tensor *cache, struct engine_tensor *x,
                                        struct engine_tensor *slots, enum quant_id as)
{
    struct engine_tensor *src[] = {x, cache, slots};
    return engine_graph_node(g, &engine_op_set_kv_q16, src, 3,
                             &(union engine_params){.set_kv_q16 = {what, as}});
}

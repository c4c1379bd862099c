/* engine/cpu/matmul/matmul_op.c: products of weights with activations as ops of the CPU: scratch
 * and route. Weights are used in place (mapped files, views, permuted intermediates). */
#include "engine/cpu/matmul/matmul.h"
#include "engine/ops.h"

/* The maximum of the levels that this machine runs and of both values of dual_512. Levels differ
 * only where the best one has wider column panels. */
static int64_t product_scratch(const struct engine_tensor *dst, int n_threads)
{
    const enum cpu_level level[] = {cpu_level_best(), CPU_SCALAR};
    int64_t max_bytes = 0;
    int n_levels = 1;
    for (int i = 0; i < n_levels; i++)
        for (int dual = 0; dual < 2; dual++) {
            struct engine_matmul p;
            if (!engine_matmul_layout(&p, dst, n_threads, level[i], dual))
                return INT64_MAX; /* the planner rejects this size */
            max_bytes = engine_max(max_bytes, engine_matmul_scratch(&p, n_threads));
            if (p.tile->cols > ENGINE_TILE_COLS) n_levels = 2;
        }
    return max_bytes;
}

/* The name of the route of the first weight for the average number of columns of a gemm. */
static const char *product_route(const struct engine_cpu *e, const struct engine_tensor *dst)
{
    struct engine_matmul p;
    if (!engine_matmul_layout(&p, dst, engine_pool_threads(e->pool), e->quant.level,
                              e->quant.dual_512))
        return NULL;
    if (p.columns)
        return p.n_cols > ENGINE_MATMUL_GEMV_COLS * p.max_gemms ? "rows" : "columns or rows";
    const struct engine_route_facts facts = engine_route_facts(e, &p);
    const int64_t columns = (p.n_cols + p.max_gemms - 1) / p.max_gemms;
    const struct quant_type *type = p.w[0]->type;
    return engine_route_name(
        engine_route_of(&facts, type->act, e->quant.type[type->id].few_columns, columns));
}

#define PRODUCT_OP(name_)                                                                          \
    const struct engine_cpu_op engine_cpu_op_##name_ = {.op = &engine_op_##name_,                  \
                                                        .split = ENGINE_SPLIT_OWN,                 \
                                                        .scratch = product_scratch,                \
                                                        .run = engine_matmul_run,                  \
                                                        .route = product_route}
PRODUCT_OP(mul_mat);
PRODUCT_OP(mul_mat_id);
PRODUCT_OP(mul_mat_glu);
PRODUCT_OP(mul_mat_id_glu);
PRODUCT_OP(mul_mat_active);
PRODUCT_OP(mul_mat_id_active);
PRODUCT_OP(mul_mat_columns);
PRODUCT_OP(mul_mat_id_columns);

/* engine/gpu/gpu_products.c: products whose columns have matrices of their own (struct
 * quant_gpu_matrices): those of experts, and of batches; products of which some results are zero;
 * and sums of rows of float weights. */
#include "engine/gpu/gpu_arguments.h"
#include "engine/gpu/gpu_product.h"
#include "engine/op_sources.h"
#include "engine/ops.h"

/* Whether the rows of t are at equal distances, in all its matrices. */
static bool is_even(const struct engine_tensor *t)
{
    return engine_tensor_row_contiguous(t) && t->ne[3] == 1 &&
           (t->ne[1] == 1 || t->ne[2] == 1 || t->nb[2] == t->ne[1] * t->nb[1]);
}

/* Of such a tensor. */
static struct engine_gpu_lines rows_of(const struct engine_tensor *t)
{
    return (struct engine_gpu_lines){t->data, t->ne[1] == 1 ? t->nb[2] : t->nb[1],
                                     t->ne[1] * t->ne[2]};
}

static int64_t bytes_of_copy(const struct engine_tensor *x)
{
    return is_even(x) ? 0 : (engine_tensor_elements(x) + 15) / 16 * 64;
}

/* Copies x to the scratch if its rows are not at equal distances. */
static struct engine_gpu_lines even_rows(struct engine_gpu *gpu, const struct engine_tensor *x,
                                         char *scratch)
{
    if (is_even(x)) return rows_of(x);
    const int64_t row = x->ne[0] * (int64_t)sizeof(float);
    struct engine_gpu_map arguments = {.a = engine_gpu_tensor_of(x), .f = ENGINE_GPU_COPY};
    arguments.out = arguments.a;
    arguments.out.data = scratch;
    arguments.out.nb[0] = sizeof(float);
    for (int i = 1; i < ENGINE_DIMS; i++)
        arguments.out.nb[i] = arguments.out.nb[i - 1] * arguments.out.ne[i - 1];
    engine_gpu_start(gpu, ENGINE_GPU_KERNEL_MAP, engine_gpu_map_blocks(&arguments.out), &arguments);
    return (struct engine_gpu_lines){scratch, row, x->ne[1] * x->ne[2]};
}

static int64_t bytes_of_columns(const struct engine_product *p)
{
    const struct quant_act_form *form = p->w[0]->type->act;
    const int64_t n = quant_gpu_converts(form) ? p->x->ne[1] * p->x->ne[2] : 0;
    return n * quant_act_parts(form, p->x->ne[0]).bytes;
}

static struct engine_gpu_groups groups_at(char *at, int64_t n_columns)
{
    int32_t *columns = (int32_t *)(void *)at;
    return (struct engine_gpu_groups){(struct quant_gpu_group *)(void *)(columns + n_columns),
                                      columns};
}

static int64_t bytes_of_groups(const struct engine_tensor *w, int64_t n_columns)
{
    const struct quant_gpu_matrices by = {.ids = &(const int32_t){0}, .per = 1, .n = w->ne[2]};
    return n_columns * (int64_t)sizeof(int32_t) +
           quant_gpu_tiles_across(&by, n_columns) * (int64_t)sizeof(struct quant_gpu_group);
}

static void start_groups(struct engine_gpu *gpu, const struct quant_gpu_matrices *by,
                         int64_t n_columns, const struct engine_gpu_groups *to)
{
    const struct engine_gpu_group_columns arguments = {*by, n_columns, to->columns, to->groups};
    const struct engine_gpu_grid grid = {(uint32_t)by->n + 1, 1, ENGINE_GPU_THREADS,
                                         ENGINE_GPU_WARPS * sizeof(int32_t)};
    engine_gpu_launch(gpu, gpu->op[ENGINE_GPU_KERNEL_GROUP_COLUMNS], &grid, &arguments);
}

/* Whether the next step multiplies the same rows with the same matrices of another weight, as gate
 * and up do. */
static bool repeats(const struct engine_gpu *gpu, const struct engine_product *p)
{
    const struct engine_tensor *next = gpu->n_rest > 0 ? gpu->rest->node : NULL;
    if (!p->ids || !quant_gpu_converts(p->w[0]->type->act) || !next ||
        (next->op != &engine_op_mul_mat_id && next->op != &engine_op_mul_mat_id_active))
        return false;
    const struct engine_product q = engine_product_of(next);
    return q.x == p->x && q.ids == p->ids && q.w[0]->type == p->w[0]->type &&
           q.w[0]->ne[2] == p->w[0]->ne[2];
}

/* Multiplies the rows of x, each by.repeat times, with matrices of w. Scratch: a copy of x, its
 * columns, their groups; not computed again if the node before left them. */
static void multiply(struct engine_gpu *gpu, const struct engine_tensor *node,
                     struct quant_gpu_matrices by, char *scratch)
{
    const struct engine_product p = engine_product_of(node);
    const struct engine_tensor *w = p.w[0];
    const struct engine_gpu_lines out = rows_of(node);
    char *to = scratch + bytes_of_copy(p.x);
    by.n = w->ne[2];
    by.bytes = w->nb[2];
    const struct engine_gpu_groups groups = groups_at(to + bytes_of_columns(&p), out.n);
    struct quant_gpu_columns columns = engine_gpu_columns_at(w->type->act, w->ne[0], to);
    if (gpu->left_for != node) {
        columns = engine_gpu_columns(gpu, even_rows(gpu, p.x, scratch), w->ne[0], w->type->act, to);
        if (by.ids && engine_gpu_multiplies_tiles(w, out.n)) start_groups(gpu, &by, out.n, &groups);
    }
    gpu->left_for = repeats(gpu, &p) ? gpu->rest->node : NULL;
    engine_gpu_multiply(gpu, w, columns, by, &groups, out);
}

static bool supports(const struct engine_tensor *node)
{
    const struct engine_product p = engine_product_of(node);
    return p.n_w == 1 && !p.up && p.w[0]->type->act && engine_tensor_row_contiguous(p.w[0]) &&
           engine_tensor_is(p.x, QUANT_F32) && p.x->ne[3] == 1 && p.w[0]->ne[3] == 1 &&
           rows_of(node).n <= ENGINE_GPU_MAX_COLUMNS && (!p.ids || p.ids->nb[0] == sizeof(int32_t));
}

static int64_t scratch(const struct engine_tensor *node)
{
    const struct engine_product p = engine_product_of(node);
    const int64_t n = rows_of(node).n;
    const bool has_groups = p.ids && engine_gpu_multiplies_tiles(p.w[0], n);
    return bytes_of_copy(p.x) + bytes_of_columns(&p) +
           (has_groups ? bytes_of_groups(p.w[0], n) : 0);
}

/* x[T][1 or U], ids [T][U]. */
static void mul_mat_id_launch(struct engine_gpu *gpu, const struct engine_tensor *node,
                              char *scratch_)
{
    const struct engine_product p = engine_product_of(node);
    const struct quant_gpu_matrices by = {
        .ids = (const int32_t *)(const void *)p.ids->data,
        .per = p.ids->ne[0],
        .stride = p.ids->nb[1] / (int64_t)sizeof(int32_t),
        .repeat = p.x->ne[1] == 1 ? p.ids->ne[0] : 1,
    };
    multiply(gpu, node, by, scratch_);
}

const struct engine_gpu_op engine_gpu_op_mul_mat_id = {.op = &engine_op_mul_mat_id,
                                                       .supports = supports,
                                                       .scratch = scratch,
                                                       .launch = mul_mat_id_launch};

/* Each matrix of w has as many consecutive matrices of x. */
static void mul_mat_batch_launch(struct engine_gpu *gpu, const struct engine_tensor *node,
                                 char *scratch_)
{
    const struct engine_product p = engine_product_of(node);
    const struct quant_gpu_matrices by = {.per = p.x->ne[1] * (p.x->ne[2] / p.w[0]->ne[2]),
                                          .repeat = 1};
    multiply(gpu, node, by, scratch_);
}

const struct engine_gpu_op engine_gpu_op_mul_mat_batch = {.op = &engine_op_mul_mat,
                                                          .supports = supports,
                                                          .scratch = scratch,
                                                          .launch = mul_mat_batch_launch};

/* ---- Results that are zero where `active` is ---- */

static void clear(struct engine_gpu *gpu, const struct engine_tensor *node)
{
    struct engine_gpu_map arguments = {.out = engine_gpu_tensor_of(node), .f = ENGINE_GPU_CLEAR};
    arguments.a = arguments.out;
    arguments.b = engine_gpu_tensor_of(engine_product_of(node).active);
    engine_gpu_start(gpu, ENGINE_GPU_KERNEL_MAP, engine_gpu_map_blocks(&arguments.out), &arguments);
}

static void mul_mat_active_launch(struct engine_gpu *gpu, const struct engine_tensor *node,
                                  char *scratch_)
{
    mul_mat_batch_launch(gpu, node, scratch_);
    clear(gpu, node);
}

const struct engine_gpu_op engine_gpu_op_mul_mat_active = {.op = &engine_op_mul_mat_active,
                                                           .supports = supports,
                                                           .scratch = scratch,
                                                           .launch = mul_mat_active_launch};

static void mul_mat_id_active_launch(struct engine_gpu *gpu, const struct engine_tensor *node,
                                     char *scratch_)
{
    mul_mat_id_launch(gpu, node, scratch_);
    clear(gpu, node);
}

const struct engine_gpu_op engine_gpu_op_mul_mat_id_active = {.op = &engine_op_mul_mat_id_active,
                                                              .supports = supports,
                                                              .scratch = scratch,
                                                              .launch = mul_mat_id_active_launch};

/* ---- Sums of rows of float weights ---- */

static bool float_type(const struct engine_tensor *w, enum engine_gpu_float *out)
{
    *out = engine_tensor_is(w, QUANT_F16)    ? ENGINE_GPU_F16
           : engine_tensor_is(w, QUANT_BF16) ? ENGINE_GPU_BF16
                                             : ENGINE_GPU_F32;
    return *out != ENGINE_GPU_F32 || engine_tensor_is(w, QUANT_F32);
}

static bool transposed_supports(const struct engine_tensor *node)
{
    enum engine_gpu_float type;
    return float_type(node->src[1], &type);
}

static void transposed_launch(struct engine_gpu *gpu, const struct engine_tensor *node,
                              char *scratch_)
{
    (void)scratch_;
    struct engine_gpu_float_rows arguments = {.out = engine_gpu_tensor_of(node),
                                              .w = engine_gpu_tensor_of(node->src[1]),
                                              .x = engine_gpu_tensor_of(node->src[0])};
    (void)float_type(node->src[1], &arguments.type);
    engine_gpu_start(gpu, ENGINE_GPU_KERNEL_MUL_MAT_TRANSPOSED,
                     engine_gpu_map_blocks(&arguments.out), &arguments);
}

const struct engine_gpu_op engine_gpu_op_mul_mat_transposed = {.op = &engine_op_mul_mat_transposed,
                                                               .supports = transposed_supports,
                                                               .launch = transposed_launch};

static bool low_rank_supports(const struct engine_tensor *node)
{
    enum engine_gpu_float type;
    return float_type(node->src[ENGINE_LOW_RANK_B], &type);
}

static void low_rank_launch(struct engine_gpu *gpu, const struct engine_tensor *node,
                            char *scratch_)
{
    (void)scratch_;
    const struct engine_tensor *b = node->src[ENGINE_LOW_RANK_B];
    struct engine_gpu_float_rows arguments = {
        .out = engine_gpu_tensor_of(node),
        .w = engine_gpu_tensor_of(b),
        .x = engine_gpu_tensor_of(node->src[ENGINE_LOW_RANK_Z]),
        .y = engine_gpu_tensor_of(node->src[ENGINE_LOW_RANK_Y]),
        .scale = engine_gpu_tensor_of(node->src[ENGINE_LOW_RANK_SCALE]),
        .ids = engine_gpu_tensor_of(node->src[ENGINE_LOW_RANK_IDS]),
        .factor = node->params.low_rank,
    };
    (void)float_type(b, &arguments.type);
    engine_gpu_start(gpu, ENGINE_GPU_KERNEL_ADD_LOW_RANK, engine_gpu_map_blocks(&arguments.out),
                     &arguments);
}

const struct engine_gpu_op engine_gpu_op_add_low_rank = {
    .op = &engine_op_add_low_rank, .supports = low_rank_supports, .launch = low_rank_launch};

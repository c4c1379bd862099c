/* engine/gpu/gpu_mul_mat.c: products of weights with columns: converts the columns to the type's
 * activation form in scratch, unless that is floats, and multiplies each column by all rows. */
#include "engine/gpu/gpu_product.h"
#include "engine/graph_internal.h"
#include "engine/op_sources.h"
#include "engine/ops.h"
#include "engine/plan.h"

static bool is_matrix(const struct engine_tensor *t)
{
    return t->ne[2] == 1 && t->ne[3] == 1 && engine_tensor_row_contiguous(t);
}

static bool supports(const struct engine_tensor *node)
{
    const struct engine_product p = engine_product_of(node);
    bool ok = engine_tensor_is(p.x, QUANT_F32) && is_matrix(p.x) && is_matrix(node);
    for (int i = 0; i < p.n_w; i++) ok = ok && p.w[i]->type->act && is_matrix(p.w[i]);
    return ok;
}

static int64_t scratch(const struct engine_tensor *node)
{
    const struct engine_product p = engine_product_of(node);
    int64_t bytes = 0;
    for (int i = 0; i < p.n_w; i++) {
        const struct quant_act_form *form = p.w[i]->type->act;
        const struct quant_act_parts parts = quant_act_parts(form, p.x->ne[0]);
        if (quant_gpu_converts(form) && parts.bytes > bytes) bytes = parts.bytes;
    }
    return bytes * p.x->ne[1];
}

static int64_t least(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

struct quant_gpu_columns engine_gpu_columns_at(const struct quant_act_form *form, int64_t k,
                                               char *to)
{
    const struct quant_act_parts parts = quant_act_parts(form, k);
    return (struct quant_gpu_columns){quant_act_at(&parts, to), parts.bytes};
}

/* Returns the weights of a product from byte `gpu->ahead` on, at most `most` bytes of one matrix.
 */
static struct engine_gpu_ahead weights_ahead(struct engine_gpu *gpu,
                                             const struct engine_tensor *node, int64_t most)
{
    const struct engine_product p = engine_product_of(node);
    int64_t skip = gpu->ahead;
    for (int i = 0; i < p.n_w; i++) {
        const int64_t bytes = p.w[i]->nb[1] * p.w[i]->ne[1], left = bytes - skip;
        if (left > 0) {
            const int64_t n = left < most ? left : most;
            gpu->ahead += n;
            return (struct engine_gpu_ahead){p.w[i]->data + skip, n, 0};
        }
        skip -= bytes;
    }
    return (struct engine_gpu_ahead){.bytes = 0};
}

struct engine_gpu_ahead engine_gpu_load_ahead(struct engine_gpu *gpu, struct engine_gpu_grid *grid)
{
    enum { STEPS = 8, COLUMNS = 4 };
    struct engine_gpu_ahead out = {.bytes = 0};
    int i = 0;
    while (i < gpu->n_rest && i < STEPS && gpu->rest[i].node->op != &engine_op_mul_mat) i++;
    if (i == gpu->n_rest || i == STEPS || grid->y > 1) return out;
    const struct engine_tensor *node = gpu->rest[i].node;
    if (!supports(node) || engine_product_of(node).x->ne[1] > COLUMNS) return out;
    if (gpu->ahead_of != node) gpu->ahead = 0;
    gpu->ahead_of = node;
    out = weights_ahead(gpu, node, gpu->facts.cache / 4);
    out.first_block = grid->x;
    grid->x += (uint32_t)((out.bytes + ENGINE_GPU_AHEAD_BYTES - 1) / ENGINE_GPU_AHEAD_BYTES);
    return out;
}

struct engine_gpu_converted
engine_gpu_convert_for_next(struct engine_gpu *gpu, const struct engine_tensor *x, char *scratch_)
{
    const struct engine_gpu_converted none = {.block = 0};
    const struct engine_tensor *next = gpu->n_rest > 0 ? gpu->rest->node : NULL;
    if (!next || next->op != &engine_op_mul_mat || !supports(next)) return none;
    const struct engine_product p = engine_product_of(next);
    const struct quant_act_form *form = p.w[0]->type->act;
    if (p.x != x || !form->sum_len) return none; /* not in blocks */
    gpu->converted = x;
    return (struct engine_gpu_converted){engine_gpu_columns_at(form, x->ne[0], scratch_),
                                         form->block_len};
}

int64_t engine_gpu_converted_bytes(const struct engine_tensor *x)
{
    int64_t bytes = 0;
    for (int i = 0; i < QUANT_ACT_FORMS; i++) {
        const struct quant_act_form *form = quant_act_forms[i];
        if (!form->sum_len || x->ne[0] % form->block_len) continue;
        const struct quant_act_parts parts = quant_act_parts(form, x->ne[0]);
        if (parts.bytes > bytes) bytes = parts.bytes;
    }
    return (bytes * x->ne[1] + 63) / 64 * 64;
}

struct quant_gpu_columns engine_gpu_columns(struct engine_gpu *gpu, struct engine_gpu_lines x,
                                            int64_t k, const struct quant_act_form *form, char *to)
{
    const struct quant_act_parts parts = quant_act_parts(form, k);
    if (!quant_gpu_converts(form))
        return (struct quant_gpu_columns){{.f32 = (float *)(void *)x.at}, x.bytes};
    for (int64_t c = 0; c < x.n; c += ENGINE_GPU_COLUMNS_AT_ONCE) {
        const struct quant_gpu_quantize arguments = {
            .k = k,
            .x_stride = x.bytes / (int64_t)sizeof(float),
            .x = (const float *)(const void *)(x.at + c * x.bytes),
            .to = {quant_act_at(&parts, to + c * parts.bytes), parts.bytes},
        };
        const struct engine_gpu_grid grid = {quant_gpu_quantize_blocks(form, k),
                                             (uint32_t)least(x.n - c, ENGINE_GPU_COLUMNS_AT_ONCE),
                                             QUANT_GPU_THREADS, 0};
        engine_gpu_launch(gpu, gpu->quantize[form->index], &grid, &arguments);
    }
    return engine_gpu_columns_at(form, k, to);
}

static struct quant_gpu_gemv gemv_of(const struct engine_tensor *w,
                                     struct quant_gpu_columns columns, struct engine_gpu_lines out)
{
    return (struct quant_gpu_gemv){
        .id = w->type->id,
        .block_bytes = (int)w->type->block_bytes,
        .k = w->ne[0],
        .n_rows = w->ne[1],
        .row_bytes = w->nb[1],
        .out_stride = out.bytes / (int64_t)sizeof(float),
        .w = (const uint8_t *)w->data,
        .a = columns,
        .out = (float *)(void *)out.at,
    };
}

/* The blocks of the grid for n rows. */
typedef uint32_t blocks_of_rows(const struct quant_gpu_tile *tile, int64_t n);

static uint32_t gemv_blocks(const struct quant_gpu_tile *tile, int64_t n)
{
    return quant_gpu_gemv_blocks(&tile->gemv.shape, n);
}

static uint32_t tile_blocks(const struct quant_gpu_tile *tile, int64_t n)
{
    return quant_gpu_tiles(&tile->gemv.by, n, tile->n_columns);
}

/* Divides a grid among the rows of all matrices; returns its blocks. */
static uint32_t divide_grid(struct quant_gpu_tile *tile, blocks_of_rows *of_rows)
{
    struct quant_gpu_gemv *gemv = &tile->gemv;
    uint32_t blocks = of_rows(tile, gemv->n_rows);
    for (int i = 0; i < QUANT_GPU_MORE && gemv->more[i].n_rows; i++) {
        gemv->more[i].block = blocks;
        blocks += of_rows(tile, gemv->more[i].n_rows);
    }
    return blocks;
}

/* Starts products of columns one by one, with the rows of w and those that `more` has. With `by`
 * the number of a column, among all, decides about its matrix, so all are one start. */
static void start_gemv(struct engine_gpu *gpu, const struct engine_tensor *w,
                       struct quant_gpu_tile *tile)
{
    struct quant_gpu_gemv *gemv = &tile->gemv;
    int64_t n_rows = gemv->n_rows;
    for (int i = 0; i < QUANT_GPU_MORE; i++) n_rows += gemv->more[i].n_rows;
    gemv->shape = quant_gpu_gemv_shape(w->type, w->ne[0], n_rows);
    const uint32_t blocks = divide_grid(tile, gemv_blocks);
    const int at_once = gemv->by.per ? ENGINE_GPU_MAX_COLUMNS : ENGINE_GPU_COLUMNS_AT_ONCE;
    for (int64_t c = 0; c < tile->n_columns; c += at_once) {
        const struct engine_gpu_grid grid = {blocks, (uint32_t)least(tile->n_columns - c, at_once),
                                             32 * (uint32_t)gemv->shape.warps, gemv->shape.shared};
        const int64_t next = at_once * gemv->out_stride;
        engine_gpu_launch(gpu, gpu->gemv[w->type->id], &grid, gemv);
        gemv->a.first = quant_gpu_column(&gemv->a, at_once);
        gemv->out += next;
        for (int i = 0; i < QUANT_GPU_MORE; i++)
            if (gemv->more[i].n_rows) gemv->more[i].out += next;
    }
}

/* Starts products in tiles if there are many columns. */
static void start_product(struct engine_gpu *gpu, const struct engine_tensor *w,
                          struct quant_gpu_tile *tile)
{
    if (!engine_gpu_multiplies_tiles(w, tile->n_columns)) {
        start_gemv(gpu, w, tile);
        return;
    }
    const struct engine_gpu_grid grid = {divide_grid(tile, tile_blocks), 1, QUANT_GPU_TILE_THREADS,
                                         quant_gpu_tile_bytes(w->type)};
    engine_gpu_launch(gpu, gpu->tile[w->type->id], &grid, tile);
}

bool engine_gpu_multiplies_tiles(const struct engine_tensor *w, int64_t n)
{
    return quant_gpu_lanes(w->type->id) && n >= QUANT_GPU_TILE_LEAST &&
           n >= w->ne[2] * QUANT_GPU_TILE_LEAST_EACH;
}

void engine_gpu_multiply(struct engine_gpu *gpu, const struct engine_tensor *w,
                         struct quant_gpu_columns columns, struct quant_gpu_matrices by,
                         const struct engine_gpu_groups *groups, struct engine_gpu_lines out)
{
    struct quant_gpu_tile tile = {gemv_of(w, columns, out), out.n, groups->groups, groups->columns};
    tile.gemv.by = by;
    start_product(gpu, w, &tile);
}

/* Multiplies with weights from number `first` on, in one start if they are alike; returns how many.
 */
static int multiply_some(struct engine_gpu *gpu, const struct engine_product *p, int first,
                         struct quant_gpu_columns columns, struct engine_gpu_lines *out)
{
    const struct engine_tensor *w = p->w[first];
    struct quant_gpu_tile tile = {gemv_of(w, columns, *out), out->n, NULL, NULL};
    out->at += w->ne[1] * (int64_t)sizeof(float);
    if (quant_gpu_has_float_tile(w->type, &tile.gemv) && out->n >= QUANT_GPU_TILE_LEAST) {
        const struct engine_gpu_grid grid = {quant_gpu_float_tiles(w->ne[1], out->n), 1,
                                             QUANT_GPU_FLOAT_THREADS,
                                             sizeof(struct quant_gpu_float_memory)};
        engine_gpu_launch(gpu, gpu->float_tile, &grid, &tile);
        return 1;
    }
    int n = 1;
    for (; n <= QUANT_GPU_MORE && first + n < p->n_w; n++) {
        const struct engine_tensor *next = p->w[first + n];
        if (next->type != w->type || next->nb[1] != w->nb[1]) break;
        tile.gemv.more[n - 1] = (struct quant_gpu_rows){.w = (const uint8_t *)next->data,
                                                        .out = (float *)(void *)out->at,
                                                        .n_rows = next->ne[1]};
        out->at += next->ne[1] * (int64_t)sizeof(float);
    }
    start_product(gpu, w, &tile);
    return n;
}

static void launch(struct engine_gpu *gpu, const struct engine_tensor *node, char *scratch_)
{
    const struct engine_product p = engine_product_of(node);
    const struct engine_gpu_lines x = {p.x->data, p.x->nb[1], p.x->ne[1]};
    struct engine_gpu_lines out = {node->data, node->nb[1], p.x->ne[1]};
    struct quant_gpu_columns columns = {0};
    for (int i = 0; i < p.n_w;) {
        const struct quant_act_form *form = p.w[i]->type->act;
        if (i == 0 && gpu->converted == p.x)
            columns = engine_gpu_columns_at(form, p.x->ne[0], scratch_);
        else if (i == 0 || form != p.w[i - 1]->type->act)
            columns = engine_gpu_columns(gpu, x, p.x->ne[0], form, scratch_);
        i += multiply_some(gpu, &p, i, columns, &out);
    }
    gpu->converted = NULL;
}

const struct engine_gpu_op engine_gpu_op_mul_mat = {
    .op = &engine_op_mul_mat, .supports = supports, .scratch = scratch, .launch = launch};

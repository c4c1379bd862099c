/* engine/tensor.c: shapes, strides and sizes of tensors, and their text in errors.
 *
 * Called by every file of engine/ and by models/ for weights. Sizes are checked once, when a tensor
 * is made; the functions that compute them rely on that. */
#include "engine/tensor.h"
#include "base/size.h"
#include "engine/graph_internal.h"
#include <stdio.h>
#include <string.h>

bool engine_tensor_layout(struct engine_tensor *t)
{
    uint64_t bytes = t->type->block_bytes;
    t->nb[0] = (int64_t)bytes;
    for (int d = 0; d < ENGINE_DIMS; d++) {
        if (t->ne[d] <= 0) return false;
        const uint64_t units = (uint64_t)t->ne[d];
        const bool fits =
            d == 0 ? quant_row_bytes(t->type, units, &bytes) : base_mul(bytes, units, &bytes);
        if (!fits || bytes > INT64_MAX) return false;
        if (d + 1 < ENGINE_DIMS) t->nb[d + 1] = (int64_t)bytes;
    }
    /* The number of elements must fit, too: some types store several elements per byte. */
    uint64_t elements = 1;
    for (int d = 0; d < ENGINE_DIMS; d++)
        if (!base_mul(elements, (uint64_t)t->ne[d], &elements)) return false;
    return elements <= INT64_MAX;
}

bool engine_tensor_init(struct engine_tensor *t, const struct quant_type *type, int n_dims,
                        const int64_t *ne, void *data, const char *name, struct base_error *err)
{
    *t = (struct engine_tensor){.type = type, .data = data};
    snprintf(t->name, sizeof t->name, "%s", name ? name : "");
    for (int d = 0; d < ENGINE_DIMS; d++) t->ne[d] = d < n_dims ? ne[d] : 1;
    if (type && n_dims >= 1 && n_dims <= ENGINE_DIMS && engine_tensor_layout(t)) return true;
    char shape[ENGINE_SHAPE_SIZE];
    return base_fail_at(err, BASE_MODEL, t->name, -1, "impossible shape %s of type %s",
                        engine_tensor_shape(t, shape), type ? type->name : "(none)");
}

int64_t engine_tensor_elements(const struct engine_tensor *t)
{
    return t->ne[0] * t->ne[1] * t->ne[2] * t->ne[3];
}

int64_t engine_tensor_rows(const struct engine_tensor *t)
{
    return t->ne[1] * t->ne[2] * t->ne[3];
}

int64_t engine_tensor_bytes(const struct engine_tensor *t)
{
    int64_t bytes = (int64_t)t->type->header_bytes + (int64_t)t->type->block_bytes +
                    (t->ne[0] / t->type->block_len - 1) * t->nb[0];
    for (int d = 1; d < ENGINE_DIMS; d++) bytes += (t->ne[d] - 1) * t->nb[d];
    return bytes;
}

bool engine_tensor_row_contiguous(const struct engine_tensor *t)
{
    return t->nb[0] == (int64_t)t->type->block_bytes || t->ne[0] == (int64_t)t->type->block_len;
}

bool engine_tensor_contiguous(const struct engine_tensor *t)
{
    if (!engine_tensor_row_contiguous(t)) return false;
    int64_t expected = quant_row_size(t->type, t->ne[0]);
    for (int d = 1; d < ENGINE_DIMS; d++) {
        if (t->ne[d] != 1 && t->nb[d] != expected) return false;
        expected *= t->ne[d];
    }
    return true;
}

bool engine_tensor_same_shape(const struct engine_tensor *a, const struct engine_tensor *b)
{
    return memcmp(a->ne, b->ne, sizeof a->ne) == 0;
}

bool engine_tensor_can_repeat(const struct engine_tensor *small, const struct engine_tensor *big)
{
    for (int d = 0; d < ENGINE_DIMS; d++)
        if (big->ne[d] % small->ne[d] != 0) return false;
    return true;
}

const char *engine_tensor_shape(const struct engine_tensor *t, char out[ENGINE_SHAPE_SIZE])
{
    int top = ENGINE_DIMS - 1;
    while (top > 0 && t->ne[top] == 1) top--;
    int used = 0;
    for (int d = top; d >= 0; d--)
        used +=
            snprintf(out + used, ENGINE_SHAPE_SIZE - (size_t)used, "[%lld]", (long long)t->ne[d]);
    return out;
}

/* engine/cpu/op/op_view.c: view, reshape, permute, cols: tensors in the memory of
 * another tensor.
 *
 * Views compute nothing; a view is its shape, strides and offset, checked once against its memory
 * (engine_graph_view). */
#include "engine/graph_internal.h"
#include "engine/ops.h"

const struct engine_op engine_op_view = {.name = "view", .is_view = true, .n_src = 1};
const struct engine_op engine_op_reshape = {.name = "reshape", .is_view = true, .n_src = 1};
const struct engine_op engine_op_permute = {.name = "permute", .is_view = true, .n_src = 1};

struct engine_tensor *engine_view(struct engine_graph *g, struct engine_tensor *a, int n_dims,
                                  const int64_t *ne, const int64_t *nb, int64_t offset)
{
    return engine_graph_view(g, &engine_op_view, a, n_dims, ne, nb, offset);
}

struct engine_tensor *engine_cols(struct engine_graph *g, struct engine_tensor *a, int64_t first,
                                  int64_t n)
{
    if (!a) return engine_graph_fail(g, "cols: source 0 is missing");
    if (first < 0 || n < 1 || n > a->ne[0] || first > a->ne[0] - n ||
        first % a->type->block_len != 0)
        return engine_graph_fail(g, "cols: %lld columns from %lld of %s with %lld", (long long)n,
                                 (long long)first, a->name, (long long)a->ne[0]);
    int64_t ne[] = {n, a->ne[1], a->ne[2], a->ne[3]};
    return engine_graph_view(g, &engine_op_view, a, ENGINE_DIMS, ne, a->nb,
                             first / a->type->block_len * a->nb[0]);
}

/* ---- Permutations ---- */

struct engine_tensor *engine_permute(struct engine_graph *g, struct engine_tensor *a, int d0,
                                     int d1, int d2, int d3)
{
    if (!a) return engine_graph_fail(g, "permute: source 0 is missing");
    int to[] = {d0, d1, d2, d3};
    int64_t ne[ENGINE_DIMS] = {0}, nb[ENGINE_DIMS] = {0};
    for (int d = 0; d < ENGINE_DIMS; d++) {
        if (to[d] < 0 || to[d] >= ENGINE_DIMS || ne[to[d]] != 0)
            return engine_graph_fail(g, "permute: %d %d %d %d is no order of dimensions", d0, d1,
                                     d2, d3);
        ne[to[d]] = a->ne[d];
        nb[to[d]] = a->nb[d];
    }
    if (d0 != 0 && a->type->block_len != 1)
        return engine_graph_fail(g, "permute: blocks of %s cannot be divided", a->type->name);
    return engine_graph_view(g, &engine_op_permute, a, ENGINE_DIMS, ne, nb, 0);
}

/* ---- Reshape ---- */

/* Finds strides of dimensions v that visit the elements of a (in units of blocks, dimensions u,
 * strides nb) in the same order. Both lists are divided into the shortest groups with equal
 * products; the dimensions of an old group must be contiguous. */
static bool reshape_strides(const int64_t *u, const int64_t *nb, const int64_t *v, int64_t *out)
{
    int i = 0, j = 0;
    while (i < ENGINE_DIMS && j < ENGINE_DIMS) {
        int first_i = i, first_j = j;
        int64_t size_u = u[i++], size_v = v[j++];
        while (size_u != size_v) {
            if (size_u < size_v ? i == ENGINE_DIMS : j == ENGINE_DIMS) return false;
            if (size_u < size_v) {
                size_u *= u[i++];
            } else {
                size_v *= v[j++];
            }
        }
        /* The stride of a dimension of one element is irrelevant, so start from the first longer
         * one. */
        while (first_i + 1 < i && u[first_i] == 1) first_i++;
        int64_t step = nb[first_i];
        for (int k = first_i, last = first_i; k + 1 < i; k++) {
            if (u[k + 1] == 1) continue;
            if (nb[k + 1] != nb[last] * u[last]) return false;
            last = k + 1;
        }
        for (int k = first_j; k < j; k++) {
            out[k] = step;
            step *= v[k];
        }
    }
    for (; j < ENGINE_DIMS; j++)
        out[j] = j ? out[j - 1] * v[j - 1] : nb[0]; /* dimensions of one element */
    return true;
}

struct engine_tensor *engine_reshape(struct engine_graph *g, struct engine_tensor *a, int n_dims,
                                     const int64_t *ne)
{
    if (!a) return engine_graph_fail(g, "reshape: source 0 is missing");
    if (n_dims < 1 || n_dims > ENGINE_DIMS)
        return engine_graph_fail(g, "reshape: %d dimensions", n_dims);
    int64_t block = a->type->block_len, u[ENGINE_DIMS], v[ENGINE_DIMS], nb[ENGINE_DIMS];
    uint64_t count = 1;
    for (int d = 0; d < ENGINE_DIMS; d++) {
        u[d] = a->ne[d];
        v[d] = d < n_dims ? ne[d] : 1;
        if (v[d] < 1 || (uint64_t)v[d] > (uint64_t)INT64_MAX / count) count = 0;
        if (count == 0) break;
        count *= (uint64_t)v[d];
    }
    if (count != (uint64_t)engine_tensor_elements(a) || v[0] % block != 0)
        return engine_graph_fail(g, "reshape: %s with %lld elements does not have the new shape",
                                 a->name, (long long)engine_tensor_elements(a));
    int64_t full[] = {v[0], v[1], v[2], v[3]};
    u[0] /= block;
    v[0] /= block;
    if (!reshape_strides(u, a->nb, v, nb))
        return engine_graph_fail(g, "reshape: the rows of %s are not contiguous", a->name);
    return engine_graph_view(g, &engine_op_reshape, a, ENGINE_DIMS, full, nb, 0);
}

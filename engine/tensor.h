/* engine/tensor.h: a tensor: type, shape, byte strides, and the op and sources that compute it.
 *
 * Views, permutes, slices and reshapes use the memory of another tensor without a copy: every op
 * supports strides. In comments, shapes are [ne3][ne2][ne1][ne0], slowest first, as in C arrays;
 * elements along ne[0] are contiguous. */
#pragma once

#include "base/error.h"
#include "engine/op_params.h"
#include "engine/place.h"
#include "quant/quant.h"

enum { ENGINE_DIMS = 4, ENGINE_MAX_SRC = 10, ENGINE_NAME_SIZE = 48 };

struct engine_op; /* engine/op.h: a row of the op table */

struct engine_tensor {
    const struct quant_type *type;
    int64_t ne[ENGINE_DIMS];    /* elements */
    int64_t nb[ENGINE_DIMS];    /* byte strides; nb[0] is the block's size */
    const struct engine_op *op; /* NULL: a leaf (weight or input) */
    union engine_params params; /* of the op */
    struct engine_tensor *src[ENGINE_MAX_SRC];
    struct engine_tensor *view_of;    /* the tensor whose memory it uses, or NULL */
    int64_t view_offset;              /* bytes from that tensor's data */
    const struct engine_place *place; /* of its memory; NULL: place 0 */
    char *data;     /* an address in its place: set by the planner, the model or the view */
    bool is_output; /* its data is valid until the next run */
    struct engine_tensor *copy; /* of an output in another place: its copy in place 0 */
    char name[ENGINE_NAME_SIZE];
};

/* Fills *t as a contiguous leaf over `data` (may be NULL). False: BASE_MODEL with the name when the
 * shape is not positive, not whole blocks, or its bytes do not fit 63 bits. */
bool engine_tensor_init(struct engine_tensor *t, const struct quant_type *type, int n_dims,
                        const int64_t *ne, void *data, const char *name, struct base_error *err);

static inline int engine_tensor_place(const struct engine_tensor *t)
{
    return t->place ? t->place->index : 0;
}

int64_t engine_tensor_elements(const struct engine_tensor *t);
int64_t engine_tensor_rows(const struct engine_tensor *t);  /* ne1 * ne2 * ne3 */
int64_t engine_tensor_bytes(const struct engine_tensor *t); /* from first byte to end of last */
bool engine_tensor_contiguous(const struct engine_tensor *t);
bool engine_tensor_row_contiguous(const struct engine_tensor *t); /* nb[0] is the element's size */
bool engine_tensor_same_shape(const struct engine_tensor *a, const struct engine_tensor *b);
bool engine_tensor_can_repeat(const struct engine_tensor *small, const struct engine_tensor *big);

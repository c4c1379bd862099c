/* models/block/product.c: the products of a model's weights. No other file of models/ multiplies a
 * weight, so that what belongs to one (scale, bias) is added here. See blocks.h. */
#include "models/block/blocks.h"

static struct engine_tensor *add_bias(const struct model_builder *b, const struct model_linear *l,
                                      struct engine_tensor *x)
{
    return l->bias ? engine_add(b->g, x, l->bias) : x;
}

static struct engine_tensor *apply_scale(const struct model_builder *b,
                                         const struct model_linear *l, struct engine_tensor *x)
{
    return l->scale ? engine_mul(b->g, x, l->scale) : x;
}

/* Applies the scale and bias of a linear to its product. */
static struct engine_tensor *finish(const struct model_builder *b, const struct model_linear *l,
                                    enum model_linear_role role, struct engine_tensor *x)
{
    if (role == MODEL_IN_MIXER) return add_bias(b, l, apply_scale(b, l, x));
    x = add_bias(b, l, x);
    return b->params->arch->ffn.scales ? apply_scale(b, l, x) : x;
}

void model_linears(const struct model_builder *b, const struct model_linear *whole,
                   const struct model_linear *const *l, const uint32_t *size, int n,
                   struct engine_tensor *x, const char *name, enum model_linear_role role,
                   struct engine_tensor **out)
{
    struct engine_tensor *weight[MODEL_LINEARS_MAX];
    for (int i = 0; i < n; i++) weight[i] = l[i]->weight;
    x = whole && whole->weight ? model_linear_as(b, whole, role, x)
                               : engine_mul_mat_cat(b->g, weight, n, x);
    x = model_named(b, x, name);
    for (int i = 0, column = 0; i < n; column += (int)size[i++])
        out[i] = finish(b, l[i], role, engine_cols(b->g, x, column, size[i]));
}

struct engine_tensor *model_linear_as(const struct model_builder *b, const struct model_linear *l,
                                      enum model_linear_role role, struct engine_tensor *x)
{
    x = l->columns ? engine_mul_mat_columns(b->g, l->weight, l->columns, x)
                   : engine_mul_mat(b->g, l->weight, x);
    return finish(b, l, role, x);
}

struct engine_tensor *model_linear(const struct model_builder *b, const struct model_linear *l,
                                   struct engine_tensor *x)
{
    return model_linear_as(b, l, MODEL_IN_MIXER, x);
}

struct engine_tensor *model_linear_active(const struct model_builder *b,
                                          const struct model_linear *l, struct engine_tensor *x,
                                          struct engine_tensor *active)
{
    return finish(b, l, MODEL_IN_FFN, engine_mul_mat_active(b->g, l->weight, x, active));
}

struct engine_tensor *model_linear_of(const struct model_builder *b, struct engine_tensor *weight,
                                      struct engine_tensor *x)
{
    const struct model_linear l = {.weight = weight};
    return model_linear(b, &l, x);
}

/* Gathers the rows of the chosen experts from a table with one row per expert: [n][U][columns]. */
static struct engine_tensor *rows_of_chosen(const struct model_builder *b,
                                            struct engine_tensor *table, int64_t columns,
                                            struct engine_tensor *ids)
{
    if (!ids) return NULL;
    const int64_t used = ids->ne[0], n = ids->ne[1];
    struct engine_tensor *list =
        engine_reshape(b->g, engine_cont(b->g, ids), 1, (int64_t[]){used * n});
    table =
        engine_reshape(b->g, table, 2, (int64_t[]){columns, table->ne[0] * table->ne[1] / columns});
    return engine_reshape(b->g, engine_get_rows(b->g, table, list), 3,
                          (int64_t[]){columns, used, n});
}

struct engine_tensor *model_linear_id(const struct model_builder *b, const struct model_linear *l,
                                      struct engine_tensor *x, struct engine_tensor *ids,
                                      struct engine_tensor *active)
{
    x = active ? engine_mul_mat_id_active(b->g, l->weight, x, ids, active)
               : engine_mul_mat_id(b->g, l->weight, x, ids);
    if (l->scale && b->params->arch->ffn.scales)
        x = engine_mul(b->g, x, rows_of_chosen(b, l->scale, 1, ids));
    if (l->bias) x = engine_add(b->g, x, rows_of_chosen(b, l->bias, l->bias->ne[0], ids));
    return x;
}

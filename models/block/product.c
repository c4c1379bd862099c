/* models/block/product.c: the products of a model's weights. No other file of models/ multiplies a
 * weight or reads rows of one, so that what belongs to it (scale, bias, adapters) is added here.
 * See blocks.h. */
#include "models/block/blocks.h"

static struct engine_tensor *add_bias(const struct model_builder *b, const struct model_linear *l,
                                      struct engine_tensor *x)
{
    return l->bias ? engine_add(b->g, x, l->bias) : x;
}

static struct engine_tensor *apply_scale(const struct model_builder *b,
                                         const struct model_linear *l, struct engine_tensor *x)
{
    struct engine_tensor *scale = l->of_run ? l->of_run[b->kv_layer] : l->scale;
    return scale ? engine_mul(b->g, x, scale) : x;
}

struct engine_tensor *model_linear_finish(const struct model_builder *b,
                                          const struct model_linear *l, enum model_linear_role role,
                                          struct engine_tensor *x)
{
    if (role == MODEL_IN_MIXER) return add_bias(b, l, apply_scale(b, l, x));
    x = add_bias(b, l, x);
    return b->params->arch->ffn.scales ? apply_scale(b, l, x) : x;
}

/* ---- Adapters ---- */

struct engine_tensor *model_adapters_begin(struct model_builder *b,
                                           const struct model_adapter_set *set)
{
    const int64_t n = b->n_tokens;
    if (set->count == 0) return NULL;
    struct engine_tensor *scales =
        engine_input(b->g, QUANT_F32, 2, (int64_t[]){n, set->count}, "adapters");
    b->adapters = set;
    for (uint32_t i = 0; i < set->count; i++)
        b->adapter_scale[i] =
            engine_view(b->g, scales, 1, &n, NULL, i * n * (int64_t)sizeof(float));
    return scales;
}

static struct engine_tensor *select(const struct model_builder *b, uint32_t i,
                                    struct engine_tensor *rows)
{
    struct engine_tensor *scale = b->adapter_scale[i];
    if (!rows || !scale) return scale;
    scale = engine_reshape(b->g, scale, 2, (int64_t[]){1, scale->ne[0]});
    return engine_reshape(b->g, engine_get_rows(b->g, scale, rows), 1, rows->ne);
}

void model_adapters_select(struct model_builder *b, struct engine_tensor *rows)
{
    for (uint32_t i = 0; b->adapters && i < b->adapters->count; i++)
        b->adapter_scale[i] = select(b, i, rows);
}

void model_adapters_refuse(const struct model_builder *b, const struct engine_tensor *weight)
{
    for (uint32_t i = 0; b->adapters && i < b->adapters->count; i++) {
        struct model_adapter_part *part = model_adapter_part_of(b->adapters, i, weight, false);
        if (part) part->refused = true;
    }
}

/* Returns the scales of adapter i for n tokens: all, or those that continue after the mixer. */
static struct engine_tensor *scale_of(const struct model_builder *b, uint32_t i, int64_t n)
{
    const bool all = !b->adapter_scale[i] || n == b->adapter_scale[i]->ne[0];
    return select(b, i, all ? NULL : b->out_rows);
}

/* Adds to y[0 .. n - 1], the products of n weights with x, what each adapter adds to them; the
 * first factors of one adapter are one product. */
static void adapt(const struct model_builder *b, struct engine_tensor *const *weight, int n,
                  struct engine_tensor *x, struct engine_tensor **y)
{
    for (uint32_t i = 0; b->adapters && x && i < b->adapters->count; i++) {
        struct model_adapter_part *part[MODEL_LINEARS_MAX];
        struct engine_tensor *first[MODEL_LINEARS_MAX], *z;
        int place[MODEL_LINEARS_MAX], found = 0;
        for (int k = 0; k < n; k++) {
            part[found] = model_adapter_part_of(b->adapters, i, weight[k], false);
            if (!part[found]) continue;
            /* A part of the tensor, or a matrix for each head. */
            part[found]->refused |= weight[k]->view_of || weight[k]->ne[2] != 1;
            if (part[found]->refused) continue;
            first[found] = &part[found]->a;
            place[found++] = k;
        }
        if (found == 0) continue;
        z = engine_mul_mat_cat(b->g, first, found, x);
        for (int k = 0, column = 0; k < found; column += (int)part[k++]->a.ne[1])
            y[place[k]] = engine_add_low_rank(
                b->g, y[place[k]], engine_cols(b->g, z, column, part[k]->a.ne[1]), &part[k]->b,
                scale_of(b, i, x->ne[1] * x->ne[2]), part[k]->factor, NULL);
    }
}

/* Adds the adapters of an expert product y = W x, whose experts are ids. */
static struct engine_tensor *adapt_id(const struct model_builder *b, struct engine_tensor *weight,
                                      struct engine_tensor *x, struct engine_tensor *ids,
                                      struct engine_tensor *y)
{
    for (uint32_t i = 0; b->adapters && x && i < b->adapters->count; i++) {
        struct model_adapter_part *part = model_adapter_part_of(b->adapters, i, weight, false);
        if (!part) continue;
        y = engine_add_low_rank(b->g, y, engine_mul_mat_id(b->g, &part->a, x, ids), &part->b,
                                scale_of(b, i, x->ne[2]), part->factor, ids);
    }
    return y;
}

struct engine_tensor *model_rows_of(const struct model_builder *b, struct engine_tensor *table,
                                    struct engine_tensor *ids)
{
    struct engine_tensor *x = engine_get_rows(b->g, table, ids);
    for (uint32_t i = 0; b->adapters && i < b->adapters->count; i++) {
        struct model_adapter_part *part = model_adapter_part_of(b->adapters, i, table, true);
        if (!part) continue;
        struct engine_tensor *a = &part->a;
        if (table->view_of) /* a part of the rows */
            a = engine_view(b->g, a, 2, (int64_t[]){a->ne[0], table->ne[1]}, NULL,
                            table->view_offset / table->nb[1] * a->nb[1]);
        x = engine_add_low_rank(b->g, x, engine_get_rows(b->g, a, ids), &part->b,
                                b->adapter_scale[i], part->factor, NULL);
    }
    return x;
}

/* ---- Products ---- */

void model_linears(const struct model_builder *b, const struct model_linear *whole,
                   const struct model_linear *const *l, const uint32_t *size, int n,
                   struct engine_tensor *x, const char *name, enum model_linear_role role,
                   struct engine_tensor **out)
{
    struct engine_tensor *weight[MODEL_LINEARS_MAX], *y;
    const bool fused = whole && whole->weight;
    for (int i = 0; i < n; i++) weight[i] = l[i]->weight;
    y = fused ? model_linear_as(b, whole, role, x) : engine_mul_mat_cat(b->g, weight, n, x);
    y = model_named(b, y, name);
    for (int i = 0, column = 0; i < n; column += (int)size[i++])
        out[i] = model_linear_finish(b, l[i], role, engine_cols(b->g, y, column, size[i]));
    if (!fused) adapt(b, weight, n, x, out);
}

struct engine_tensor *model_linear_as(const struct model_builder *b, const struct model_linear *l,
                                      enum model_linear_role role, struct engine_tensor *x)
{
    struct engine_tensor *y = l->transposed ? engine_mul_mat_transposed(b->g, l->weight, x)
                              : l->columns  ? engine_mul_mat_columns(b->g, l->weight, l->columns, x)
                                            : engine_mul_mat(b->g, l->weight, x);
    y = model_linear_finish(b, l, role, y);
    if (l->transposed) model_adapters_refuse(b, l->weight);
    adapt(b, &l->weight, 1, x, &y);
    return y;
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
    struct engine_tensor *y =
        model_linear_finish(b, l, MODEL_IN_FFN, engine_mul_mat_active(b->g, l->weight, x, active));
    adapt(b, &l->weight, 1, x, &y);
    return y;
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
    struct engine_tensor *y = active ? engine_mul_mat_id_active(b->g, l->weight, x, ids, active)
                              : l->columns
                                  ? engine_mul_mat_id_columns(b->g, l->weight, l->columns, x, ids)
                                  : engine_mul_mat_id(b->g, l->weight, x, ids);
    if (l->scale && b->params->arch->ffn.scales)
        y = engine_mul(b->g, y, rows_of_chosen(b, l->scale, 1, ids));
    if (l->bias) y = engine_add(b->g, y, rows_of_chosen(b, l->bias, l->bias->ne[0], ids));
    return adapt_id(b, l->weight, x, ids, y);
}

struct engine_tensor *model_switched_add(const struct model_builder *b,
                                         const struct model_switched *s, struct engine_tensor *x,
                                         struct engine_tensor *y)
{
    if (!s->a.weight || !x || !y) return y;
    const int64_t n = x->ne[1];
    struct engine_tensor *ids = b->inputs.adapter;
    if (n != b->n_tokens) ids = model_wanted_rows(b, ids);
    x = engine_reshape(b->g, x, 3, (int64_t[]){x->ne[0], 1, n});
    x = model_linear_id(b, &s->b, model_linear_id(b, &s->a, x, ids, NULL), ids, NULL);
    return engine_add(b->g, y, engine_reshape(b->g, x, 2, (int64_t[]){y->ne[0], n}));
}

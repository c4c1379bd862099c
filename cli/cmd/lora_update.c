/* cli/cmd/lora_update.c: what adapters add to the rows of weights. See cli/cmd/lora_update.h. */
#include "cli/cmd/lora_update.h"
#include "base/size.h"
#include "engine/engine.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { NAME = 160 };

bool cli_lora_open(struct cli_lora *l, const struct cli_values *values,
                   const struct gguf_file *model, struct base_error *err)
{
    struct engine_options o = engine_options_default();
    o.n_threads = 1;
    o.plan_only = true;
    l->file = model;
    if (values->request.generate.lora.count == 0)
        return base_fail(err, BASE_USAGE, "no adapter: name one with --lora FILE");
    l->engine = engine_new(&o, err);
    l->model = l->engine ? model_open(model, l->engine, NULL, err) : NULL;
    if (!l->model || !cli_adapters_open(&l->adapters, values, l->model, err)) return false;
    for (uint32_t i = 0; i < model_adapter_count(l->model); i++)
        if (model_adapter_facts(l->model, i)->n_invocation > 0)
            return base_fail_at(err, BASE_USAGE, l->adapters.item[i].path, -1,
                                "is an activated adapter, which acts from its invocation on: it "
                                "cannot be merged");
    return true;
}

void cli_lora_close(struct cli_lora *l)
{
    model_close(l->model);
    engine_free(l->engine);
    cli_adapters_close(&l->adapters);
}

/* Finds a factor of t; `factor` is 'a' or 'b'. */
static const struct gguf_tensor *find_factor(const struct cli_adapter *a,
                                             const struct gguf_tensor *t, char factor)
{
    char name[NAME];
    snprintf(name, sizeof name, "%.*s.lora_%c", t->name.size < 128 ? (int)t->name.size : 128,
             t->name.data, factor);
    return gguf_tensor_find(a->file, name);
}

/* Returns the tensor's rows as floats, times `scale`; NULL without memory. */
static float *read_rows(const struct gguf_tensor *t, float scale)
{
    const uint64_t rows = t->ne[1] * t->ne[2], n = rows * t->ne[0];
    uint64_t bytes;
    float *x = base_mul(n, sizeof *x, &bytes) ? malloc(bytes) : NULL;
    for (uint64_t i = 0; x && i < rows; i++)
        t->type->scalar.decode(0, (int64_t)t->ne[0], (const char *)t->data + i * (t->size / rows),
                               x + i * t->ne[0]);
    for (uint64_t i = 0; x && i < n; i++) x[i] *= scale;
    return x;
}

/* Returns x[rows][columns], which may be NULL, with rows and columns exchanged; NULL without
 * memory. */
static float *transposed(const float *x, uint64_t rows, uint64_t columns)
{
    float *y = x ? malloc(rows * columns * sizeof *y) : NULL;
    for (uint64_t i = 0; y && i < rows; i++)
        for (uint64_t k = 0; k < columns; k++) y[k * rows + i] = x[i * columns + k];
    return y;
}

/* Fails for a tensor with a scale; that of a router's weights is the scale of its input. */
static bool check_scale(const struct cli_lora *l, const struct gguf_tensor *t,
                        struct base_error *err)
{
    static const char end[] = "weight", router[] = "ffn_gate_inp.weight";
    const struct gguf_str name = t->name;
    char scale[NAME];
    if (name.size < sizeof end || name.size > 128 ||
        (name.size >= sizeof router - 1 &&
         !memcmp(name.data + name.size - sizeof router + 1, router, sizeof router - 1)))
        return true;
    snprintf(scale, sizeof scale, "%.*sscale", (int)(name.size - sizeof end + 1), name.data);
    return !gguf_tensor_find(l->file, scale) ||
           base_fail_at(err, BASE_MODEL, scale, -1,
                        "an adapter cannot be merged into weights that have a scale of their own");
}

bool cli_lora_read(const struct cli_lora *l, const struct gguf_tensor *t, struct cli_lora_update *u,
                   struct base_error *err)
{
    *u = (struct cli_lora_update){.columns = t->ne[0], .per_matrix = t->ne[1]};
    for (uint32_t i = 0; i < l->adapters.count; i++) {
        const struct cli_adapter *item = &l->adapters.item[i];
        const struct gguf_tensor *a = find_factor(item, t, 'a'), *b = find_factor(item, t, 'b');
        if (!a || !b) continue;
        if (!check_scale(l, t, err)) return false;
        struct cli_lora_part *part = &u->part[u->n++];
        const float alpha = model_adapter_facts(l->model, i)->alpha;
        const float scale = item->scale * (alpha != 0.0f ? alpha / (float)b->ne[0] : 1.0f);
        const bool is_table = a->ne[1] == t->ne[1] && a->ne[0] == b->ne[0];
        float *other = is_table ? read_rows(b, 1.0f) : NULL;
        part->rank = b->ne[0];
        part->left = read_rows(is_table ? a : b, scale);
        part->right = is_table ? transposed(other, b->ne[1], b->ne[0]) : read_rows(a, 1.0f);
        free(other);
        if (!part->left || !part->right)
            return base_fail(err, BASE_NO_MEMORY, "not enough memory for an adapter");
    }
    return true;
}

void cli_lora_update_free(struct cli_lora_update *u)
{
    for (uint32_t i = 0; i < u->n; i++) {
        free(u->part[i].left);
        free(u->part[i].right);
    }
    u->n = 0;
}

void cli_lora_add(const struct cli_lora_update *u, const struct engine_vec *vec, uint64_t row,
                  float *x)
{
    for (uint32_t i = 0; i < u->n; i++) {
        const struct cli_lora_part *part = &u->part[i];
        const float *left = part->left + row * part->rank;
        const float *right = part->right + row / u->per_matrix * part->rank * u->columns;
        for (uint64_t k = 0; k < part->rank; k++)
            vec->mad((int64_t)u->columns, right + k * u->columns, left[k], x);
    }
}

bool cli_lora_unties(const struct cli_lora *l)
{
    const struct gguf_tensor *t = l->file ? gguf_tensor_find(l->file, "token_embd.weight") : NULL;
    if (!t || gguf_tensor_find(l->file, "output.weight")) return false;
    for (uint32_t i = 0; i < l->adapters.count; i++)
        if (find_factor(&l->adapters.item[i], t, 'a')) return true;
    return false;
}

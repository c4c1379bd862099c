/* test/support_adapter.c: adapters for tests. See test/support_adapter.h. */
#include "test/support_adapter.h"
#include "test/support_gguf.h"
#include "test/support_model.h"
#include "test/support_row.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { NAME = 128, FILES_MAX = 8 };

static bool has_word(const char *words, const char *name)
{
    char copy[1024], *rest = NULL;
    snprintf(copy, sizeof copy, "%s", words);
    for (char *word = strtok_r(copy, " ", &rest); word; word = strtok_r(NULL, " ", &rest))
        if (strstr(name, word)) return true;
    return false;
}

static void name_of(const struct gguf_tensor *t, const char *end, char name[NAME])
{
    snprintf(name, NAME, "%.*s%s", (int)t->name.size, t->name.data, end);
}

static bool is_table(const struct gguf_tensor *t)
{
    char name[NAME];
    name_of(t, "", name);
    return has_word("token_embd. position_embd.", name) && !strstr(name, "blk.");
}

static bool wants(const struct support_adapter *a, const struct gguf_tensor *t)
{
    char name[NAME];
    name_of(t, "", name);
    const size_t n = strlen(name);
    return t->n_dims >= 2 && t->type->scalar.decode && n > 7 &&
           strcmp(name + n - 7, ".weight") == 0 && !strstr(name, "norm") &&
           (!a->only || has_word(a->only, name)) && (!a->without || !has_word(a->without, name));
}

/* The shapes of the factors: of a table the first one has a row for each of its rows. */
static void shapes(const struct gguf_tensor *t, uint64_t rank, uint64_t a[3], uint64_t b[3])
{
    const bool table = is_table(t);
    a[0] = table ? rank : t->ne[0];
    a[1] = table ? t->ne[1] : rank;
    b[0] = rank;
    b[1] = table ? t->ne[0] : t->ne[1];
    a[2] = b[2] = t->ne[2];
}

static uint64_t count(const uint64_t ne[3])
{
    return ne[0] * ne[1] * ne[2];
}

static float *decoded(const struct gguf_tensor *t)
{
    const uint64_t n = count(t->ne) * t->ne[3], rows = n / t->ne[0], bytes = t->size / rows;
    float *x = calloc(n, sizeof *x);
    for (uint64_t i = 0; x && i < rows; i++)
        t->type->scalar.decode(0, (int64_t)t->ne[0], (const char *)t->data + i * bytes,
                               x + i * t->ne[0]);
    return x;
}

static double size_of(const struct gguf_tensor *t)
{
    float *x = decoded(t);
    double sum = 0;
    const uint64_t n = count(t->ne) * t->ne[3];
    for (uint64_t i = 0; i < n; i++) sum += (double)x[i] * (double)x[i];
    free(x);
    return sqrt(sum / (double)n);
}

static bool write_factor(struct gguf_writer *w, const struct quant_type *type, const uint64_t ne[3],
                         float size, struct sample_random *random, struct base_error *err)
{
    const uint64_t n = count(ne), bytes = n / type->block_len * type->block_bytes;
    float *x = calloc(n, sizeof *x);
    void *data = malloc(bytes);
    bool ok = x && data;
    for (uint64_t i = 0; ok && i < n; i++)
        x[i] = size * ((float)(int32_t)sample_random_u32(random) * 0x1p-31f);
    if (ok) support_row_fill(type, (int64_t)n, x, data);
    ok = ok && gguf_writer_data(w, data, bytes, err);
    free(x);
    free(data);
    return ok;
}

static void write_keys(struct gguf_writer *w, const struct support_adapter *a,
                       const struct gguf_file *model)
{
    uint32_t ids[64], n = 0;
    const char *rest = a->invocation;
    gguf_writer_copy_kv(w, gguf_kv_find(model, "general.architecture"));
    gguf_writer_str(w, "general.type", "adapter", 7);
    gguf_writer_str(w, "adapter.type", "lora", 4);
    if (a->alpha != 0.0f) gguf_writer_f32(w, "adapter.lora.alpha", a->alpha);
    for (char *end; rest && *rest && n < 64; rest = end)
        ids[n++] = (uint32_t)strtoul(rest, &end, 10);
    if (n) gguf_writer_array(w, "adapter.alora.invocation_tokens", GGUF_U32, ids, n);
}

bool support_adapter_write(const struct support_adapter *a, const char *model, const char *path,
                           struct base_error *err)
{
    struct gguf_file *file = gguf_open(model, err);
    struct gguf_writer *w = file ? gguf_writer_new(err) : NULL;
    struct sample_random random = support_model_random(a->seed);
    uint64_t ne[2][3];
    char name[NAME];
    if (w) write_keys(w, a, file);
    for (uint64_t i = 0; w && i < gguf_tensor_count(file); i++) {
        const struct gguf_tensor *t = gguf_tensor_at(file, i);
        if (!wants(a, t)) continue;
        shapes(t, a->rank, ne[0], ne[1]);
        for (int k = 0; k < 2; k++) {
            name_of(t, k ? ".lora_b" : ".lora_a", name);
            gguf_writer_tensor(w, (struct gguf_str){name, strlen(name)}, a->type, t->n_dims, ne[k]);
        }
    }
    bool ok = w && gguf_writer_begin(w, path, err);
    for (uint64_t i = 0; ok && i < gguf_tensor_count(file); i++) {
        const struct gguf_tensor *t = gguf_tensor_at(file, i);
        if (!wants(a, t)) continue;
        shapes(t, a->rank, ne[0], ne[1]);
        const double scale = a->alpha != 0.0f ? (double)a->alpha / a->rank : 1.0;
        const double size = size_of(t) / sqrt(a->rank) / scale;
        ok = write_factor(w, a->type, ne[0], 1.0f, &random, err) &&
             write_factor(w, a->type, ne[1], (float)size, &random, err);
    }
    ok = ok && gguf_writer_end(w, err);
    gguf_writer_free(w);
    gguf_close(file);
    return ok;
}

/* ---- Merging ---- */

/* The scale that multiplies the product of t (experts: each), or NULL; the caller frees it. */
static float *scale_of(const struct gguf_file *model, const struct gguf_tensor *t)
{
    char name[NAME];
    name_of(t, "", name);
    if (strstr(name, "ffn_gate_inp.")) return NULL; /* its scale is that of the router's input */
    snprintf(name, sizeof name, "%.*s.scale", (int)t->name.size - 7, t->name.data);
    const struct gguf_tensor *scale = gguf_tensor_find(model, name);
    return scale ? decoded(scale) : NULL;
}

/* Adds scale * alpha / r * B A to x, the weights of t. */
static bool add_update(const struct gguf_file *model, const struct gguf_file *adapter,
                       const struct gguf_tensor *t, double scale, double *x)
{
    char name[NAME];
    float alpha = 0;
    name_of(t, ".lora_a", name);
    const struct gguf_tensor *ta = gguf_tensor_find(adapter, name);
    name_of(t, ".lora_b", name);
    const struct gguf_tensor *tb = gguf_tensor_find(adapter, name);
    if (!ta || !tb) return false;
    const uint64_t rank = tb->ne[0], n0 = t->ne[0], n1 = t->ne[1];
    const bool table = is_table(t);
    float *a = decoded(ta), *b = decoded(tb), *divisor = scale_of(model, t);
    gguf_get_f32(adapter, "adapter.lora.alpha", &alpha, NULL);
    if (alpha != 0.0f) scale *= (double)alpha / (double)rank;
    for (uint64_t d = 0; d < t->ne[2]; d++)
        for (uint64_t i = 0; i < n1; i++)
            for (uint64_t j = 0; j < n0; j++) {
                double sum = 0;
                for (uint64_t k = 0; k < rank; k++)
                    sum += table ? (double)a[i * rank + k] * (double)b[j * rank + k]
                                 : (double)a[(d * rank + k) * n0 + j] *
                                       (double)b[(d * n1 + i) * rank + k];
                x[(d * n1 + i) * n0 + j] += scale * sum / (divisor ? (double)divisor[d] : 1.0);
            }
    free(divisor);
    free(a);
    free(b);
    return true;
}

static bool write_merged(struct gguf_writer *w, const struct gguf_file *model,
                         struct gguf_file *const *adapter, const float *scale, int n,
                         const struct gguf_tensor *t, struct base_error *err)
{
    if (!t->type->scalar.decode) return gguf_writer_data(w, t->data, t->size, err); /* integers */
    const uint64_t size = count(t->ne) * t->ne[3];
    float *x = decoded(t);
    double *sum = calloc(size, sizeof *sum);
    for (uint64_t i = 0; i < size; i++) sum[i] = (double)x[i];
    for (int i = 0; i < n; i++) add_update(model, adapter[i], t, (double)scale[i], sum);
    for (uint64_t i = 0; i < size; i++) x[i] = (float)sum[i];
    const bool ok = gguf_writer_data(w, x, size * sizeof *x, err);
    free(x);
    free(sum);
    return ok;
}

bool support_adapter_merge(const char *model, const char *const *adapter, const float *scale, int n,
                           const char *path, struct base_error *err)
{
    struct gguf_file *file = gguf_open(model, err), *other[FILES_MAX] = {0};
    struct gguf_writer *w = file ? gguf_writer_new(err) : NULL;
    const struct quant_type *f32 = quant_type_by_id(QUANT_F32);
    bool ok = w != NULL;
    for (int i = 0; ok && i < n; i++) ok = (other[i] = gguf_open(adapter[i], err)) != NULL;
    const bool tied = ok && !gguf_tensor_find(file, "output.weight") &&
                      !gguf_tensor_find(file, "cls.output.weight");
    const struct gguf_tensor *table = ok ? gguf_tensor_find(file, "token_embd.weight") : NULL;
    const uint64_t tensors = ok ? gguf_tensor_count(file) : 0;
    if (ok) gguf_writer_copy_metadata(w, file);
    for (uint64_t i = 0; i < tensors; i++) {
        const struct gguf_tensor *t = gguf_tensor_at(file, i);
        gguf_writer_tensor(w, t->name, t->type->scalar.decode ? f32 : t->type, t->n_dims, t->ne);
    }
    if (tied) gguf_writer_tensor(w, (struct gguf_str){"output.weight", 13}, f32, 2, table->ne);
    ok = ok && gguf_writer_begin(w, path, err);
    for (uint64_t i = 0; ok && i < tensors; i++)
        ok = write_merged(w, file, other, scale, n, gguf_tensor_at(file, i), err);
    if (ok && tied) ok = write_merged(w, file, NULL, NULL, 0, table, err);
    ok = ok && gguf_writer_end(w, err);
    gguf_writer_free(w);
    for (int i = 0; i < n; i++) gguf_close(other[i]);
    gguf_close(file);
    return ok;
}

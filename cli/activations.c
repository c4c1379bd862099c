/* cli/activations.c: counts of activations. See cli/activations.h. */
#include "cli/activations.h"
#include "engine/tensor.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char type[] = "activations";

static void name_of(uint32_t layer, char name[32])
{
    snprintf(name, 32, "blk.%u.ffn.active", layer);
}

static bool allocate(struct cli_activations *a, uint32_t n_layers, struct base_error *err)
{
    *a = (struct cli_activations){.n_layers = n_layers};
    a->layer = calloc(n_layers + 1, sizeof *a->layer);
    return a->layer || base_fail(err, BASE_NO_MEMORY, "not enough memory for activations");
}

static bool add_layer(struct cli_activations *a, uint32_t layer, uint64_t n, struct base_error *err)
{
    if (n > INT32_MAX || a->n + n > INT32_MAX)
        return base_fail(err, BASE_USAGE, "too many activations");
    a->layer[layer] = (struct cli_activations_layer){(uint32_t)n, calloc(n + 1, sizeof(int32_t))};
    a->n += n;
    return a->layer[layer].count ||
           base_fail(err, BASE_NO_MEMORY, "not enough memory for activations");
}

void cli_activations_free(struct cli_activations *a)
{
    for (uint32_t i = 0; a->layer && i < a->n_layers; i++) free(a->layer[i].count);
    free(a->layer);
    free(a->hot);
    free(a->order);
    free(a->row);
    free(a->is_hot);
    *a = (struct cli_activations){0};
}

/* ---- Counting ---- */

/* Each worker counts a range of the elements that the last product of a layer reads. */
static void see_product(void *user, const struct engine_worker *worker,
                        const struct engine_product_inputs *in)
{
    struct cli_activations *a = user;
    const struct engine_tensor *x = in->x;
    uint32_t layer;
    int end = 0;
    if (sscanf(in->w->name, "blk.%u.ffn_down%n", &layer, &end) != 1 || end == 0 ||
        layer >= a->n_layers || a->layer[layer].n != x->ne[0])
        return;
    const int64_t first = x->ne[0] * worker->ith / worker->nth;
    const int64_t last = x->ne[0] * (worker->ith + 1) / worker->nth;
    int32_t *count = a->layer[layer].count;
    for (int64_t r = 0; r < x->ne[1]; r++) {
        const float *row = (const float *)(const void *)(x->data + r * x->nb[1]);
        for (int64_t i = first; i < last; i++) count[i] += row[i] != 0.0f && count[i] < INT32_MAX;
    }
}

bool cli_activations_begin(struct cli_activations *a, const struct gguf_file *model,
                           uint32_t n_layers, struct base_error *err)
{
    if (!allocate(a, n_layers, err)) return false;
    for (uint64_t i = 0; i < gguf_tensor_count(model); i++) {
        const struct gguf_tensor *t = gguf_tensor_at(model, i);
        char name[32], end[16];
        uint32_t layer;
        snprintf(name, sizeof name, "%.*s", t->name.size < 31 ? (int)t->name.size : 31,
                 t->name.data);
        if (sscanf(name, "blk.%u.ffn_%15s", &layer, end) != 2 || layer >= n_layers) continue;
        const bool down = strcmp(end, "down.weight") == 0;
        if (!down && strcmp(end, "down_t.weight") != 0) continue;
        if (!a->layer[layer].count && !add_layer(a, layer, t->ne[down ? 0 : 1], err)) return false;
    }
    a->observer = (struct engine_observer){see_product, a};
    return a->n > 0 || base_fail(err, BASE_USAGE,
                                 "the model has no feed-forward network whose activations count");
}

bool cli_activations_write(const struct cli_activations *a, struct gguf_writer *w, const char *path,
                           struct base_error *err)
{
    char name[32];
    gguf_writer_str(w, "general.type", type, sizeof type - 1);
    for (uint32_t i = 0; i < a->n_layers; i++) {
        const uint64_t ne = a->layer[i].n;
        name_of(i, name);
        if (ne)
            gguf_writer_tensor(w, (struct gguf_str){name, strlen(name)},
                               quant_type_by_id(QUANT_I32), 1, &ne);
    }
    bool ok = gguf_writer_begin(w, path, err);
    for (uint32_t i = 0; ok && i < a->n_layers; i++)
        if (a->layer[i].n)
            ok = gguf_writer_data(w, a->layer[i].count, a->layer[i].n * sizeof(int32_t), err);
    return ok && gguf_writer_end(w, err);
}

/* ---- Reading ---- */

struct ranked {
    int32_t count;
    uint32_t at; /* among the elements of all layers */
};

static int by_count(const void *a, const void *b)
{
    const struct ranked *x = a, *y = b;
    if (x->count != y->count) return x->count < y->count ? 1 : -1;
    return (x->at > y->at) - (x->at < y->at);
}

static bool rank(struct cli_activations *a, struct base_error *err)
{
    struct ranked *all = calloc(a->n + 1, sizeof *all);
    a->hot = calloc(a->n_layers + 1, sizeof *a->hot);
    a->order = calloc(a->n + 1, sizeof *a->order);
    a->row = calloc(a->n + 1, sizeof *a->row);
    a->is_hot = calloc(a->n + 1, sizeof *a->is_hot);
    if (!all || !a->hot || !a->order || !a->row || !a->is_hot) {
        free(all);
        return base_fail(err, BASE_NO_MEMORY, "not enough memory for activations");
    }
    uint32_t n = 0;
    for (uint32_t i = 0; i < a->n_layers; i++)
        for (uint32_t k = 0; k < a->layer[i].n; k++, n++)
            all[n] = (struct ranked){a->layer[i].count[k], n};
    qsort(all, n, sizeof *all, by_count);
    for (uint32_t i = 0; i < n; i++) a->order[i] = all[i].at;
    free(all);
    return true;
}

static bool read_layers(struct cli_activations *a, const struct gguf_file *file,
                        struct base_error *err)
{
    struct gguf_str is = {NULL, 0};
    uint64_t n_known = 0;
    if (!gguf_get_str(file, "general.type", &is, err)) return false;
    if (!is.data || !gguf_str_is(is, type))
        return base_fail(err, BASE_USAGE, "no counts of activations (imatrix --activations)");
    for (uint32_t i = 0; i < a->n_layers; i++) {
        char name[32];
        name_of(i, name);
        const struct gguf_tensor *t = gguf_tensor_find(file, name);
        if (!t) continue;
        if (t->type->id != QUANT_I32 || t->n_dims != 1)
            return base_fail(err, BASE_USAGE, "%s is no list of counts", name);
        if (!add_layer(a, i, t->ne[0], err)) return false;
        memcpy(a->layer[i].count, t->data, t->ne[0] * sizeof(int32_t));
        n_known++;
    }
    if (n_known < gguf_tensor_count(file))
        return base_fail(err, BASE_USAGE, "counts of a model with other layers");
    return a->n > 0 || base_fail(err, BASE_USAGE, "has no counts");
}

bool cli_activations_read(struct cli_activations *a, const char *path, uint32_t n_layers,
                          struct base_error *err)
{
    *a = (struct cli_activations){0};
    struct gguf_file *file = gguf_open(path, err);
    const bool ok = file && allocate(a, n_layers, err) && read_layers(a, file, err) && rank(a, err);
    gguf_close(file);
    if (!ok && err->code == BASE_MODEL) err->code = BASE_USAGE; /* the file is not a model */
    if (!ok) base_error_set_file(err, path);
    return ok;
}

void cli_activations_choose(struct cli_activations *a, uint32_t first, double share)
{
    uint32_t before = 0, base = 0, *at = a->row;
    for (uint32_t i = 0; i < first && i < a->n_layers; i++) before += a->layer[i].n;
    uint64_t n_hot = (uint64_t)(share * (double)(a->n - before) + 0.5);
    memset(a->is_hot, 0, a->n);
    for (uint64_t i = 0; i < a->n && n_hot > 0; i++) {
        if (a->order[i] < before) continue;
        a->is_hot[a->order[i]] = true;
        n_hot--;
    }
    for (uint32_t i = 0; i < a->n_layers; base += a->layer[i++].n) {
        struct model_hot *hot = &a->hot[i];
        *hot = (struct model_hot){.n = i < first ? 0 : a->layer[i].n, .row = at};
        for (int pass = 0; pass < 2; pass++)
            for (uint32_t k = 0; k < hot->n; k++) {
                if (a->is_hot[base + k] != (pass == 0)) continue;
                *at++ = k;
                hot->n_hot += pass == 0;
            }
    }
}

/* cli/cmd/cmd_imatrix.c: `infer imatrix`: collects an importance matrix: the mean squares of the
 * inputs of weight matrices over a text.
 *
 * An observer of the engine's products adds up the squares of the inputs of each weight matrix.
 * Each worker has a range of columns and adds the rows in order, so the sums do not depend on the
 * number of threads. */
#include "cli/cmd/imatrix_combine.h"
#include "cli/cmd/imatrix_statistics.h"
#include "cli/imatrix.h"
#include "cli/input.h"
#include "cli/load.h"
#include "cli/options.h"
#include "cli/output_files.h"
#include "cli/sandbox.h"
#include "cli/system.h"
#include "engine/cpu/pool.h"
#include "engine/tensor.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The sums of the inputs of the matrices of one tensor. */
struct tensor_sums {
    const struct gguf_tensor *tensor;
    uint64_t n_matrices, matrix_bytes;
    double *sum;     /* [n_matrices][ne0] */
    uint64_t *count; /* [n_matrices] */
    bool by_expert;  /* each matrix has its own inputs */
};

struct imatrix {
    struct cli_values *values;
    struct cli_model model;
    struct text_ids ids;
    uint32_t chunk;
    uint64_t n_chunks;
    struct tensor_sums *item; /* [n_items], sorted by address */
    uint64_t n_items;
    struct engine_observer observer;
    struct cli_activations active; /* --activations */
};

/* ---- Collecting ---- */

/* Returns the item whose tensor data contains `at`; NULL if there is none. */
static struct tensor_sums *item_at(const struct imatrix *m, const char *at)
{
    uint64_t low = 0, high = m->n_items;
    while (low < high) { /* binary search for the first item that begins after `at` */
        const uint64_t middle = low + (high - low) / 2;
        if ((const char *)m->item[middle].tensor->data <= at)
            low = middle + 1;
        else
            high = middle;
    }
    if (low == 0) return NULL;
    struct tensor_sums *item = &m->item[low - 1];
    return at < (const char *)item->tensor->data + item->tensor->size ? item : NULL;
}

/* Adds one row of inputs to a matrix: the columns from `first` to `end`. */
static void add_row(struct tensor_sums *c, uint64_t matrix, const char *row, int64_t first,
                    int64_t end)
{
    double *sum = c->sum + matrix * c->tensor->ne[0];
    const float *x = (const float *)row;
    for (int64_t i = first; i < end; i++) sum[i] += (double)x[i] * (double)x[i];
    if (first == 0) c->count[matrix]++;
}

static uint64_t matrix_of(const struct tensor_sums *c, const char *at)
{
    return (uint64_t)(at - (const char *)c->tensor->data) / c->matrix_bytes;
}

/* Returns the item of expert `id` of a stack. In old files each expert is a tensor,
 * "ffn_up.E.weight": the stack is bound in the file, where the address leads to the expert's
 * tensor, or as a copy, whose name is that of the first expert. */
static struct tensor_sums *expert_at(const struct imatrix *m, const struct engine_tensor *w,
                                     int32_t id, uint64_t *matrix)
{
    static const char first[] = ".0.weight";
    const char *at = w->data + id * w->nb[2];
    struct tensor_sums *c = item_at(m, at);
    const size_t size = strlen(w->name), end = sizeof first - 1;
    *matrix = c ? matrix_of(c, at) : 0;
    if (c || size <= end || strcmp(w->name + size - end, first) != 0) return c;
    char name[ENGINE_NAME_SIZE + 16];
    snprintf(name, sizeof name, "%.*s.%d.weight", (int)(size - end), w->name, id);
    const struct gguf_tensor *expert = gguf_tensor_find(m->model.file, name);
    return expert ? item_at(m, expert->data) : NULL;
}

static void add_experts(const struct imatrix *m, const struct engine_product_inputs *in,
                        int64_t first, int64_t end)
{
    const struct engine_tensor *x = in->x, *ids = in->ids;
    for (int64_t t = 0; t < ids->ne[1]; t++) {
        const int32_t *id = (const int32_t *)(ids->data + t * ids->nb[1]);
        for (int64_t u = 0; u < ids->ne[0]; u++) {
            uint64_t matrix;
            struct tensor_sums *c =
                id[u] >= 0 && id[u] < in->w->ne[2] ? expert_at(m, in->w, id[u], &matrix) : NULL;
            if (!c || in->w->ne[0] != (int64_t)c->tensor->ne[0]) continue;
            if (first == 0) c->by_expert = true;
            add_row(c, matrix, x->data + u % x->ne[1] * x->nb[1] + t * x->nb[2], first, end);
        }
    }
}

static void add_batches(const struct imatrix *m, const struct engine_product_inputs *in,
                        int64_t first, int64_t end)
{
    const struct engine_tensor *x = in->x, *w = in->w;
    const int64_t per2 = x->ne[2] / w->ne[2], per3 = x->ne[3] / w->ne[3];
    for (int64_t i3 = 0; i3 < x->ne[3]; i3++)
        for (int64_t i2 = 0; i2 < x->ne[2]; i2++) {
            const char *at = w->data + i2 / per2 * w->nb[2] + i3 / per3 * w->nb[3];
            struct tensor_sums *c = item_at(m, at);
            if (!c || w->ne[0] != (int64_t)c->tensor->ne[0]) continue;
            for (int64_t i1 = 0; i1 < x->ne[1]; i1++)
                add_row(c, matrix_of(c, at),
                        x->data + i1 * x->nb[1] + i2 * x->nb[2] + i3 * x->nb[3], first, end);
        }
}

static void see_product(void *user, const struct engine_worker *worker,
                        const struct engine_product_inputs *in)
{
    if (in->transposed) return; /* an input weighs a row, whose elements are equally important */
    const struct imatrix *m = user;
    const int64_t first = in->w->ne[0] * worker->ith / worker->nth;
    const int64_t end = in->w->ne[0] * (worker->ith + 1) / worker->nth;
    if (first == end) return;
    if (in->ids)
        add_experts(m, in, first, end);
    else
        add_batches(m, in, first, end);
}

static int by_address(const void *a, const void *b)
{
    const char *x = ((const struct tensor_sums *)a)->tensor->data;
    const char *y = ((const struct tensor_sums *)b)->tensor->data;
    return (x > y) - (x < y);
}

/* Returns whether to collect a tensor: matrices of layers, and the output matrix only with the
 * option. */
static bool is_collected(const struct imatrix *m, const struct gguf_tensor *t)
{
    return t->n_dims >= 2 && t->type->act &&
           (gguf_str_begins(t->name, "blk.") ||
            (m->values->process_output && gguf_str_is(t->name, "output.weight")));
}

static bool make_items(struct imatrix *m, struct base_error *err)
{
    const struct gguf_file *file = m->model.file;
    if (m->values->activations) {
        const uint32_t n_layers = model_facts(m->model.model)->n_layer;
        if (!cli_activations_begin(&m->active, file, n_layers, err)) return false;
        engine_set_observer(m->model.engine, &m->active.observer);
        return true;
    }
    m->item = calloc(gguf_tensor_count(file) + 1, sizeof *m->item);
    if (!m->item) return base_fail(err, BASE_NO_MEMORY, "not enough memory for a list of tensors");
    for (uint64_t i = 0; i < gguf_tensor_count(file); i++) {
        const struct gguf_tensor *t = gguf_tensor_at(file, i);
        if (!is_collected(m, t)) continue;
        struct tensor_sums *c = &m->item[m->n_items++];
        c->tensor = t;
        c->n_matrices = t->ne[2] * t->ne[3];
        c->matrix_bytes = t->size / c->n_matrices;
        c->sum = calloc(c->n_matrices * t->ne[0], sizeof *c->sum);
        c->count = calloc(c->n_matrices, sizeof *c->count);
        if (!c->sum || !c->count)
            return base_fail(err, BASE_NO_MEMORY, "not enough memory for the sums");
    }
    qsort(m->item, m->n_items, sizeof *m->item, by_address);
    m->observer = (struct engine_observer){see_product, m};
    engine_set_observer(m->model.engine, &m->observer);
    return true;
}

static bool eval_all(struct imatrix *m, struct base_error *err)
{
    bool ok = true;
    cli_model_progress_tokens(&m->model, "evaluating", m->n_chunks * m->chunk);
    for (uint64_t i = 0; ok && i < m->n_chunks; i++) {
        model_session_truncate(m->model.session, 0);
        /* All positions have logits, because otherwise the last layer computes only keys and
         * values. */
        ok = model_eval(m->model.session, m->ids.id + i * m->chunk, m->chunk, MODEL_LOGITS_ALL,
                        NULL, NULL, err);
        if (ok && m->values->verbose)
            cli_note("chunk %llu of %llu", (unsigned long long)i + 1,
                     (unsigned long long)m->n_chunks);
    }
    cli_progress_end();
    return ok;
}

/* ---- Writing ---- */

/* Returns the sums of a tensor. Each expert's matrix has a count; otherwise all matrices of a
 * tensor share one, even in a stack. */
static struct cli_imatrix_sums sums_of(const struct tensor_sums *c)
{
    return (struct cli_imatrix_sums){.name = c->tensor->name,
                                     .sum = c->sum,
                                     .count = c->count,
                                     .len = c->by_expert ? c->tensor->ne[0]
                                                         : c->tensor->ne[0] * c->n_matrices,
                                     .n_counts = c->by_expert ? c->n_matrices : 1};
}

static bool was_used(const struct tensor_sums *c)
{
    for (uint64_t i = 0; i < c->n_matrices; i++)
        if (c->count[i]) return true;
    return false;
}

static struct gguf_str text_name(const char *name)
{
    return (struct gguf_str){name ? name : "-", strlen(name ? name : "-")};
}

/* Names the matrices without inputs: of layers that only draft tokens, of experts that no token was
 * routed to. quantize has no weights of errors for them. */
static void note_unused(const struct imatrix *m)
{
    struct cli_imatrix_names names = {0};
    for (uint64_t i = 0; i < m->n_items; i++)
        if (!was_used(&m->item[i])) cli_imatrix_names_add(&names, m->item[i].tensor->name);
    if (names.count)
        cli_note("%llu of %llu matrices had no inputs and get no entry: %s",
                 (unsigned long long)names.count, (unsigned long long)m->n_items, names.text);
}

/* Writes the sums. The output is open since before the text was evaluated; the sums are declared
 * here. */
static bool write_sums(struct imatrix *m, struct gguf_writer *w, struct base_error *err)
{
    struct cli_imatrix_sums *items = calloc(m->n_items + 1, sizeof *items);
    uint64_t n = 0;
    if (!items) return base_fail(err, BASE_NO_MEMORY, "not enough memory for a list of tensors");
    for (uint64_t i = 0; i < m->n_items; i++)
        if (was_used(&m->item[i])) items[n++] = sums_of(&m->item[i]);
    qsort(items, n, sizeof *items, cli_imatrix_by_name);
    struct gguf_str sets[CLI_LIST_MAX] = {text_name(m->values->ids)};
    const size_t n_texts = m->values->texts.count;
    for (size_t i = 0; i < n_texts; i++) sets[i] = text_name(m->values->texts.item[i]);
    cli_imatrix_announce(w, items, n, sets, n_texts ? n_texts : 1, (uint32_t)m->n_chunks, m->chunk);
    const bool ok = gguf_writer_begin(w, m->values->output, err) &&
                    cli_imatrix_write(w, items, n, err) && gguf_writer_end(w, err);
    free(items);
    return ok;
}

/* ---- The command ---- */

/* Appends the ids of a text, and the number of its chunks: whole ones only, but for the only text.
 */
static bool read_text(struct imatrix *m, struct base_error *err)
{
    struct cli_values *v = m->values;
    const uint32_t n_vocab = model_facts(m->model.model)->n_vocab;
    v->file = v->texts.count ? v->texts.item[0] : NULL;
    if (!cli_chunks_read(v, m->model.tokenizer, n_vocab, &m->ids, err) ||
        !cli_chunks_cut(v, &m->ids, &m->chunk, &m->n_chunks, err))
        return false;
    cli_chunks_begin(v, m->model.tokenizer, &m->ids, m->chunk, m->n_chunks);
    return true;
}

/* Reads several texts. Each is cut into chunks by itself; --chunks limits their sum. */
static bool read_texts(struct imatrix *m, struct base_error *err)
{
    struct cli_values *v = m->values;
    const uint32_t n_vocab = model_facts(m->model.model)->n_vocab;
    for (size_t i = 0; i < m->values->texts.count; i++) {
        struct text_ids ids = TEXT_IDS_INIT;
        v->file = m->values->texts.item[i];
        bool ok = cli_chunks_read(v, m->model.tokenizer, n_vocab, &ids, err);
        uint64_t n = ids.count / m->chunk;
        if (ok && n == 0)
            cli_note("%s has %zu tokens, less than a chunk: it is not read", v->file, ids.count);
        if (v->chunks > 0 && m->n_chunks + n > (uint64_t)v->chunks)
            n = (uint64_t)v->chunks - m->n_chunks;
        if (ok) cli_chunks_begin(v, m->model.tokenizer, &ids, m->chunk, n);
        for (uint64_t k = 0; ok && k < n * m->chunk; k++)
            ok = text_ids_add(&m->ids, ids.id[k], err);
        m->n_chunks += n;
        text_ids_free(&ids);
        if (!ok) return false;
    }
    return m->n_chunks > 0 ||
           base_fail(err, BASE_USAGE, "no text has a chunk of %u tokens (--chunk)", m->chunk);
}

static bool open_all(struct imatrix *m, struct base_error *err)
{
    const struct cli_values *v = m->values;
    if (!v->no_sandbox) cli_sandbox_limit(v->output);
    if (!cli_model_open_file(&m->model, v, err) || !cli_model_open_tokenizer(&m->model, err) ||
        !cli_model_open_weights(&m->model, v, err))
        return false;
    m->chunk = (uint32_t)v->chunk;
    if (!(v->texts.count > 1 ? read_texts(m, err) : read_text(m, err))) return false;
    return make_items(m, err) && cli_model_open_session(&m->model, v, 1, m->chunk, err);
}

static bool cmd_imatrix(struct cli_values *values, struct base_error *err)
{
    if (values->statistics) return cli_imatrix_statistics(values, err);
    if (!values->output)
        return base_fail_at(err, BASE_USAGE, "--output", -1, "needs a file for the matrix");
    if (values->combine.count) return cli_imatrix_combine(values, err);
    struct imatrix m = {.values = values};
    bool ok = open_all(&m, err);
    if (ok && values->verbose) cli_model_note(&m.model);
    struct gguf_writer *w = ok ? gguf_writer_new(err) : NULL;
    ok = w && cli_output_claim(gguf_writer_output(w), values->output, values, m.model.file, err);
    if (ok && !values->no_sandbox) cli_sandbox_close(CLI_SANDBOX_FILES);
    ok = ok && eval_all(&m, err);
    if (ok) note_unused(&m);
    ok = ok && (values->activations ? cli_activations_write(&m.active, w, values->output, err)
                                    : write_sums(&m, w, err));
    if (w) ok = cli_output_close(gguf_writer_output(w), ok, err);
    gguf_writer_free(w);
    for (uint64_t i = 0; i < m.n_items; i++) {
        free(m.item[i].sum);
        free(m.item[i].count);
    }
    free(m.item);
    cli_activations_free(&m.active);
    text_ids_free(&m.ids);
    cli_model_close(&m.model);
    return ok;
}

const struct cli_command cli_command_imatrix = {
    .name = "imatrix",
    .usage = "infer imatrix [-m MODEL] -f FILE -o OUT.gguf [options]",
    .effect = "collect an importance matrix from a text, for quantize",
    .about = "Evaluates a text in chunks and writes the sums of squares of the inputs of each\n"
             "matrix of the model, with experts separately: the importance matrix of\n"
             "quantize --imatrix, as GGUF. --combine adds up matrices of several texts.",
    .positional = "file",
    .takes = {"FILE"},
    .run = cmd_imatrix,
};

/* cli/cmd/imatrix_combine.c: the sum of importance matrices. See cli/cmd/imatrix_combine.h. */
#include "cli/cmd/imatrix_combine.h"
#include "base/interrupt.h"
#include "base/size.h"
#include "cli/imatrix.h"
#include "cli/output_files.h"
#include "cli/sandbox.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct combined {
    struct gguf_file *file[CLI_LIST_MAX]; /* open until the end: names point into them */
    struct cli_imatrix_sums *item;        /* [n], by name; the arrays are owned */
    uint64_t n;
    struct gguf_str sets[CLI_LIST_MAX]; /* names of the texts */
    uint64_t n_sets;
    uint32_t n_chunks, chunk;
};

static const char sums_end[] = ".in_sum2";

static uint64_t elements_of(const struct gguf_tensor *t)
{
    return t->ne[0] * t->ne[1] * t->ne[2] * t->ne[3]; /* the reader checked the product */
}

static float float_at(const struct gguf_tensor *t, uint64_t i)
{
    float value;
    memcpy(&value, (const char *)t->data + i * sizeof value, sizeof value);
    return value;
}

/* Adds the sums and counts of a tensor; allocates those of a new item. */
static bool add(struct cli_imatrix_sums *item, const struct gguf_tensor *sums,
                const struct gguf_tensor *counts, struct base_error *err)
{
    const uint64_t n = elements_of(sums), n_counts = elements_of(counts);
    if (!item->sum) {
        item->sum = calloc(n, sizeof *item->sum);
        item->count = calloc(n_counts, sizeof *item->count);
        item->n_counts = n_counts;
        item->len = n / n_counts;
    }
    if (!item->sum || !item->count)
        return base_fail(err, BASE_NO_MEMORY, "not enough memory for the sums");
    if (item->n_counts != n_counts || item->len * n_counts != n)
        return base_fail(err, BASE_USAGE, "%.*s has %llu values: a matrix of another model",
                         (int)item->name.size, item->name.data, (unsigned long long)n);
    double *sum = (double *)(uintptr_t)item->sum;
    uint64_t *count = (uint64_t *)(uintptr_t)item->count;
    for (uint64_t i = 0; i < n; i++) sum[i] += (double)float_at(sums, i);
    for (uint64_t i = 0; i < n_counts; i++) {
        const double value = (double)float_at(counts, i);
        if (!(value >= 0 && value < 0x1p53))
            return base_fail(err, BASE_USAGE, "%.*s: a count that is none", (int)item->name.size,
                             item->name.data);
        count[i] += (uint64_t)value;
    }
    return true;
}

/* Adds a file's tensors to the items before `n_old`, which are sorted, or as new items. */
static bool add_file(struct combined *c, const struct gguf_file *file, struct base_error *err)
{
    const uint64_t n_tensors = gguf_tensor_count(file), n_old = c->n, end = sizeof sums_end - 1;
    struct cli_imatrix_sums *more = base_resize(c->item, c->n + n_tensors + 1, sizeof *c->item);
    bool any = false;
    if (!more) return base_fail(err, BASE_NO_MEMORY, "not enough memory for a list of tensors");
    c->item = more;
    for (uint64_t i = 0; i < n_tensors; i++) {
        const struct gguf_tensor *sums = gguf_tensor_at(file, i);
        if (!gguf_str_ends(sums->name, sums_end)) continue;
        char name[256];
        const struct cli_imatrix_sums key = {.name = {sums->name.data, sums->name.size - end}};
        snprintf(name, sizeof name, "%.*s.counts", (int)key.name.size, key.name.data);
        const struct gguf_tensor *counts = gguf_tensor_find(file, name);
        if (!counts || counts->type->id != QUANT_F32 || sums->type->id != QUANT_F32 ||
            elements_of(counts) == 0 || elements_of(sums) % elements_of(counts) != 0)
            return base_fail(err, BASE_USAGE, "%.*s: sums and counts do not fit",
                             (int)key.name.size, key.name.data);
        struct cli_imatrix_sums *item =
            n_old ? bsearch(&key, c->item, n_old, sizeof key, cli_imatrix_by_name) : NULL;
        if (!item) {
            item = &c->item[c->n++];
            *item = key;
        }
        if (!add(item, sums, counts, err)) return false;
        any = true;
    }
    qsort(c->item, c->n, sizeof *c->item, cli_imatrix_by_name);
    return any || base_fail(err, BASE_USAGE, "not an importance matrix in GGUF form");
}

static bool read_facts(struct combined *c, const struct gguf_file *file, struct base_error *err)
{
    uint32_t n_chunks = 0;
    const struct gguf_kv *sets = gguf_kv_find(file, "imatrix.datasets");
    for (uint64_t i = 0; sets && sets->kind == GGUF_ARRAY && sets->item == GGUF_STRING &&
                         i < sets->count && c->n_sets < CLI_LIST_MAX;
         i++)
        c->sets[c->n_sets++] = gguf_array_str(file, sets, i);
    if (!gguf_get_u32(file, "imatrix.chunk_count", &n_chunks, err) ||
        !gguf_get_u32(file, "imatrix.chunk_size", &c->chunk, err))
        return false;
    c->n_chunks = n_chunks < UINT32_MAX - c->n_chunks ? c->n_chunks + n_chunks : UINT32_MAX;
    return true;
}

static bool read_all(struct combined *c, const struct cli_values *v, struct base_error *err)
{
    for (size_t i = 0; i < v->combine.count; i++) {
        const char *path = v->combine.item[i];
        c->file[i] = gguf_open(path, err);
        const bool ok = c->file[i] && add_file(c, c->file[i], err) &&
                        read_facts(c, c->file[i], err) && base_goes_on(err);
        if (!ok && err->code == BASE_MODEL) err->code = BASE_USAGE; /* the file is not a model */
        if (!ok) base_error_set_file(err, path);
        if (!ok) return false;
    }
    return true;
}

bool cli_imatrix_combine(const struct cli_values *values, struct base_error *err)
{
    struct combined c = {0};
    if (!values->no_sandbox) cli_sandbox_limit(values->output);
    bool ok = read_all(&c, values, err);
    struct gguf_writer *w = ok ? gguf_writer_new(err) : NULL;
    ok = w && cli_output_claim(gguf_writer_output(w), values->output, values, NULL, err);
    if (ok && !values->no_sandbox) cli_sandbox_close(CLI_SANDBOX_FILES);
    if (ok) cli_imatrix_announce(w, c.item, c.n, c.sets, c.n_sets, c.n_chunks, c.chunk);
    ok = ok && gguf_writer_begin(w, values->output, err) &&
         cli_imatrix_write(w, c.item, c.n, err) && gguf_writer_end(w, err);
    if (w) ok = cli_output_close(gguf_writer_output(w), ok, err);
    gguf_writer_free(w);
    for (uint64_t i = 0; i < c.n; i++) {
        free((void *)(uintptr_t)c.item[i].sum);
        free((void *)(uintptr_t)c.item[i].count);
    }
    free(c.item);
    for (size_t i = 0; i < values->combine.count; i++) gguf_close(c.file[i]);
    return ok;
}

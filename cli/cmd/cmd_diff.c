/* cli/cmd/cmd_diff.c: `infer diff`: compares two model files: keys, tensors, and decoded values of
 * tensors. Status 0: they are equal; 1: they differ. */
#include "cli/model_path.h"
#include "cli/options.h"
#include "cli/out/gguf_text.h"
#include "cli/progress.h"
#include "cli/sandbox.h"
#include "cli/system.h"
#include "engine/cpu/cpu_device.h"
#include "gguf/values.h"
#include <math.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

struct diff {
    const struct gguf_file *a, *b;
    struct engine_cpu *cpu;
    bool json, all;
    bool differ; /* a difference was found */
    bool listed; /* the current list has a line or JSON element */
    uint64_t n_equal, n_tensors;
    struct base_buffer out;
};

/* ---- Lists ---- */

/* Call this before each element: in text form it writes the title before the first one. */
static void begin_item(struct diff *d, const char *title)
{
    if (d->json)
        base_buffer_add_text(&d->out, d->listed ? ",\n" : "\n");
    else if (!d->listed)
        base_buffer_add_format(&d->out, "%s\n", title);
    d->listed = true;
}

static void add_count(struct diff *d, const char *name, uint64_t value)
{
    base_buffer_add_format(&d->out, ",\"%s\":%llu", name, (unsigned long long)value);
}

/* ---- Metadata ---- */

/* Returns whether a key is compared: not those about parts, because the split is not part of the
 * model. */
static bool is_compared(const struct gguf_kv *kv)
{
    return !gguf_str_begins(kv->key, "split.");
}

static void add_value(struct diff *d, const struct gguf_file *file, const struct gguf_kv *kv)
{
    if (kv)
        cli_gguf_add_typed(&d->out, d->json, file, kv);
    else if (d->json)
        base_buffer_add_text(&d->out, "null");
}

static bool is_equal_item(const struct diff *d, const struct gguf_kv *a, const struct gguf_kv *b,
                          uint64_t i)
{
    const uint32_t size = gguf_kind_size(a->item);
    if (size)
        return memcmp((const char *)a->data + i * size, (const char *)b->data + i * size, size) ==
               0;
    return gguf_str_compare(gguf_array_str(d->a, a, i), gguf_array_str(d->b, b, i)) == 0;
}

/* Compares two arrays of the same kind and length; adds the number of different items and the first
 * one. */
static void add_items(struct diff *d, const struct gguf_kv *a, const struct gguf_kv *b)
{
    uint64_t n = 0, first = 0;
    if (a->kind != GGUF_ARRAY || a->item != b->item || a->count != b->count ||
        a->item == GGUF_ARRAY)
        return;
    for (uint64_t i = a->count; i-- > 0;) {
        if (is_equal_item(d, a, b, i)) continue;
        first = i;
        n++;
    }
    if (n == 0) return;
    if (d->json) {
        add_count(d, "differing", n);
        add_count(d, "first_at", first);
        base_buffer_add_text(&d->out, ",\"first_a\":");
    } else {
        base_buffer_add_format(&d->out,
                               "; %llu items differ, the first is %llu: ", (unsigned long long)n,
                               (unsigned long long)first);
    }
    cli_gguf_add_item(&d->out, d->json, d->a, a, first);
    base_buffer_add_text(&d->out, d->json ? ",\"first_b\":" : " -> ");
    cli_gguf_add_item(&d->out, d->json, d->b, b, first);
}

/* Adds a key of both files, or of one file (the other is NULL). */
static void add_key(struct diff *d, const struct gguf_kv *a, const struct gguf_kv *b)
{
    const struct gguf_str key = a ? a->key : b->key;
    d->differ = true;
    begin_item(d, "Metadata");
    base_buffer_add_text(&d->out, d->json ? "{\"key\":" : !b ? "- " : !a ? "+ " : "! ");
    cli_gguf_add_string(&d->out, d->json, key, CLI_SHOWN_BYTES, false);
    base_buffer_add_text(&d->out, d->json ? ",\"a\":" : "  ");
    add_value(d, d->a, a);
    base_buffer_add_text(&d->out, d->json ? ",\"b\":" : a && b ? " -> " : "");
    add_value(d, d->b, b);
    if (a && b) add_items(d, a, b);
    base_buffer_add_text(&d->out, d->json ? "}" : "\n");
}

static bool diff_metadata(struct diff *d, struct base_error *err)
{
    d->listed = false;
    for (uint64_t i = 0; i < gguf_kv_count(d->a); i++) {
        const struct gguf_kv *a = gguf_kv_at(d->a, i), *b = gguf_kv_find_str(d->b, a->key);
        if (!base_goes_on(err)) return false;
        if (is_compared(a) && (!b || !gguf_kv_equal(a, b))) add_key(d, a, b);
    }
    for (uint64_t i = 0; i < gguf_kv_count(d->b); i++) {
        const struct gguf_kv *b = gguf_kv_at(d->b, i);
        if (is_compared(b) && !gguf_kv_find_str(d->a, b->key)) add_key(d, NULL, b);
    }
    return true;
}

/* ---- Tensors ---- */

struct bytes_job {
    const struct gguf_tensor *a, *b;
    atomic_bool differ;
};

static void compare_bytes(const struct engine_worker *w, void *user)
{
    struct bytes_job *j = user;
    const int64_t units = (int64_t)((j->a->size + GGUF_BYTE_UNIT - 1) / GGUF_BYTE_UNIT);
    for (int64_t u; (u = engine_pool_claim(w, 1)) < units && !base_interrupted();) {
        const uint64_t at = (uint64_t)u * GGUF_BYTE_UNIT, left = j->a->size - at;
        const uint64_t n = left < GGUF_BYTE_UNIT ? left : GGUF_BYTE_UNIT;
        if (atomic_load(&j->differ)) return;
        if (memcmp((const char *)j->a->data + at, (const char *)j->b->data + at, n) != 0)
            atomic_store(&j->differ, true);
    }
}

struct values_job {
    const struct quant_kernels *kernels;
    const struct gguf_tensor *a, *b;
    int64_t units;
    struct gguf_difference *unit; /* [units] */
};

static void compare_values(const struct engine_worker *w, void *user)
{
    struct values_job *j = user;
    for (int64_t u; (u = engine_pool_claim(w, 1)) < j->units && !base_interrupted();) {
        j->unit[u] = gguf_compare_unit(j->kernels, j->a, j->b, (uint64_t)u);
        cli_progress_add(j->a->size / (uint64_t)j->units);
    }
}

static bool measure(struct diff *d, const struct gguf_tensor *a, const struct gguf_tensor *b,
                    struct gguf_difference *sum, struct base_error *err)
{
    struct values_job job = {
        .kernels = &d->cpu->quant, .a = a, .b = b, .units = (int64_t)gguf_unit_count(a)};
    job.unit = calloc((size_t)job.units, sizeof *job.unit);
    if (!job.unit) return base_fail(err, BASE_NO_MEMORY, "not enough memory to compare tensors");
    engine_pool_run(d->cpu->pool, compare_values, &job);
    *sum = (struct gguf_difference){0};
    for (int64_t u = 0; u < job.units; u++) gguf_difference_join(sum, &job.unit[u]);
    free(job.unit);
    return base_goes_on(err);
}

static bool is_same_shape(const struct gguf_tensor *a, const struct gguf_tensor *b)
{
    return memcmp(a->ne, b->ne, sizeof a->ne) == 0;
}

static void add_shape(struct diff *d, const struct gguf_tensor *t)
{
    cli_gguf_add_shape(&d->out, t->ne, t->n_dims, ", ");
}

static void add_element(struct diff *d, const struct gguf_tensor *t, uint64_t index)
{
    uint64_t at[GGUF_MAX_DIMS];
    gguf_element_at(t, index, at);
    cli_gguf_add_shape(&d->out, at, t->n_dims, ", ");
}

/* Adds type and shape of a tensor of one file as JSON; null if it is NULL. */
static void add_facts(struct diff *d, const char *name, const struct gguf_tensor *t)
{
    base_buffer_add_format(&d->out, ",\"%s\":", name);
    if (!t) {
        base_buffer_add_text(&d->out, "null");
        return;
    }
    base_buffer_add_format(&d->out, "{\"type\":\"%s\",\"shape\":", t->type->name);
    add_shape(d, t);
    base_buffer_add_text(&d->out, "}");
}

/* Returns the error relative to the root mean square of a, or infinity. */
static double relative(const struct gguf_difference *x)
{
    return x->error == 0 ? 0 : sqrt(x->error / x->norm);
}

static void add_difference(struct diff *d, const struct gguf_tensor *t,
                           const struct gguf_difference *x)
{
    const double rms = relative(x);
    struct base_buffer *out = &d->out;
    if (d->json) {
        if (isfinite(rms))
            base_buffer_add_format(out, ",\"rms\":%.6g", rms);
        else
            base_buffer_add_text(out, ",\"rms\":null");
        base_buffer_add_format(out, ",\"max\":%.6g,\"max_at\":", x->max);
        add_element(d, t, x->max_at);
        add_count(d, "differing", x->differing);
        add_count(d, "without_number", x->without_number);
    } else if (x->differing == 0) {
        base_buffer_add_text(out, "  equal values");
    } else {
        base_buffer_add_format(out, "  relative RMS %.6g, largest difference %.6g at ", rms,
                               x->max);
        add_element(d, t, x->max_at);
        base_buffer_add_format(out, ", %llu values differ", (unsigned long long)x->differing);
        if (x->without_number)
            base_buffer_add_format(out, ", %llu of them infinite or NaN",
                                   (unsigned long long)x->without_number);
    }
}

/* Adds a tensor of one file or both. `x`: the difference of values; NULL if the bytes are equal or
 * it was not computed. */
static void add_tensor(struct diff *d, const struct gguf_tensor *a, const struct gguf_tensor *b,
                       bool equal, const struct gguf_difference *x)
{
    struct base_buffer *out = &d->out;
    begin_item(d, "Tensors");
    base_buffer_add_text(out, d->json ? "{\"name\":" : equal ? "= " : !b ? "- " : !a ? "+ " : "! ");
    cli_gguf_add_string(out, d->json, a ? a->name : b->name, CLI_SHOWN_BYTES, false);
    if (d->json) {
        add_facts(d, "a", a);
        add_facts(d, "b", b);
        base_buffer_add_format(out, ",\"equal\":%s", equal ? "true" : "false");
    } else {
        const struct gguf_tensor *first = a ? a : b;
        base_buffer_add_format(out, "  %s ", first->type->name);
        add_shape(d, first);
        if (a && b && (a->type != b->type || !is_same_shape(a, b))) {
            base_buffer_add_format(out, " -> %s ", b->type->name);
            add_shape(d, b);
        }
        if (equal) base_buffer_add_text(out, "  equal bytes");
    }
    if (x) add_difference(d, a, x);
    base_buffer_add_text(out, d->json ? "}" : "\n");
}

static bool diff_pair(struct diff *d, const struct gguf_tensor *a, const struct gguf_tensor *b,
                      struct base_error *err)
{
    struct gguf_difference x;
    const bool same = a->type == b->type && is_same_shape(a, b);
    struct bytes_job job = {.a = a, .b = b};
    if (same) engine_pool_run(d->cpu->pool, compare_bytes, &job);
    if (!base_goes_on(err)) return false;
    if (same && !atomic_load(&job.differ)) {
        d->n_equal++;
        if (d->json || d->all) add_tensor(d, a, b, true, NULL);
        return true;
    }
    d->differ = true;
    if (is_same_shape(a, b) && !measure(d, a, b, &x, err)) return false;
    add_tensor(d, a, b, false, is_same_shape(a, b) ? &x : NULL);
    return true;
}

static bool diff_tensors(struct diff *d, struct base_error *err)
{
    uint64_t bytes = 0;
    d->listed = false;
    for (uint64_t i = 0; i < gguf_tensor_count(d->a); i++) {
        const struct gguf_tensor *a = gguf_tensor_at(d->a, i),
                                 *b = gguf_tensor_find_str(d->b, a->name);
        d->n_tensors++;
        if (b && !diff_pair(d, a, b, err)) return false;
        bytes += a->size;
        cli_progress_set(bytes);
        d->differ |= !b;
        if (!b) add_tensor(d, a, NULL, false, NULL);
    }
    for (uint64_t i = 0; i < gguf_tensor_count(d->b); i++) {
        const struct gguf_tensor *b = gguf_tensor_at(d->b, i);
        if (gguf_tensor_find_str(d->a, b->name)) continue;
        d->n_tensors++;
        d->differ = true;
        add_tensor(d, NULL, b, false, NULL);
    }
    return true;
}

/* ---- The command ---- */

static bool diff(struct diff *d, struct base_error *err)
{
    if (d->json) {
        base_buffer_add_text(&d->out, "{");
        base_buffer_add_string(&d->out, "a", gguf_path(d->a));
        base_buffer_add_string(&d->out, "b", gguf_path(d->b));
        base_buffer_add_text(&d->out, ",\n\"metadata\":[");
    }
    if (!diff_metadata(d, err)) return false;
    if (d->json) base_buffer_add_text(&d->out, "],\n\"tensors\":[");
    cli_progress_begin("comparing", "bytes", cli_gguf_sum(d->a).bytes);
    const bool compared = diff_tensors(d, err);
    cli_progress_end();
    if (!compared || !gguf_check_unchanged(d->a, err) || !gguf_check_unchanged(d->b, err))
        return false;
    if (d->json)
        base_buffer_add_format(&d->out, "],\n\"equal\":%s}\n", d->differ ? "false" : "true");
    else
        base_buffer_add_format(&d->out, "%llu of %llu tensors have equal bytes\n",
                               (unsigned long long)d->n_equal, (unsigned long long)d->n_tensors);
    return cli_write_buffer(&d->out, err);
}

static bool cmd_diff(struct cli_values *values, struct base_error *err)
{
    struct diff d = {.json = values->json || strcmp(values->format, "json") == 0,
                     .all = values->all};
    struct engine_options o = engine_options_default();
    o.n_threads = (int)values->threads;
    if (!values->no_sandbox) cli_sandbox_limit(NULL);
    struct gguf_file *a = cli_model_open_path(values->argument[0], err);
    struct gguf_file *b = a ? cli_model_open_path(values->argument[1], err) : NULL;
    d.a = a;
    d.b = b;
    d.cpu = b ? engine_cpu_new(&o, err) : NULL;
    if (d.cpu && !values->no_sandbox) cli_sandbox_close(0);
    const bool ok = d.cpu && diff(&d, err);
    engine_cpu_free(d.cpu);
    base_buffer_free(&d.out);
    gguf_close(a);
    gguf_close(b);
    return ok && !d.differ; /* a difference is a result, not an error */
}

const struct cli_command cli_command_diff = {
    .name = "diff",
    .usage = "infer diff A.gguf B.gguf [options]",
    .effect = "show how two model files differ",
    .about = "Compares metadata and tensors: keys and tensors that one file lacks (- only in\n"
             "A, + only in B), other values, types and shapes (!), and for each tensor whose\n"
             "bytes differ the error of B from A once both are decoded: the root mean square\n"
             "relative to that of A, and the largest difference. How a file is split does not\n"
             "count. Status 0: equal; 1: different.",
    .min_arguments = 2,
    .max_arguments = 2,
    .takes = {"FILE", "FILE"},
    .run = cmd_diff,
};

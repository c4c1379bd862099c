/* test/support_graph.c: see test/support_graph.h. */
#include "test/support_graph.h"
#include "engine/gpu/gpu.h"
#include "engine/graph_internal.h"
#include "test/support.h"
#include "test/support_level.h"
#include "test/support_row.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { GUARD = 64, GUARD_BYTE = 0xA5 };

/* ---- Engines ---- */

static struct engine *engines[SUPPORT_ENGINES];

struct engine *const *support_engines(void)
{
    const struct {
        int threads;
        enum cpu_level level;
    } setup[SUPPORT_ENGINES] = {
        {1, CPU_SCALAR}, {1, cpu_level_best()}, {2, CPU_AVX2}, {3, CPU_AVX512}, {7, CPU_SCALAR}};
    for (int i = 0; i < SUPPORT_ENGINES && !engines[i]; i++) {
        struct base_error err = BASE_ERROR_INIT;
        struct engine_options options = engine_options_default();
        options.n_threads = setup[i].threads;
        support_level_runs(setup[i].level); /* if not, the engine uses the best available level */
        options.level = setup[i].level;
        engines[i] = engine_new(&options, &err);
        if (!engines[i]) fail_msg("engine: %s", err.text);
    }
    return engines;
}

static struct {
    struct engine_gpu *device;
    struct engine *engine;
    const struct engine_place *place;
    bool absent;
} gpu;

struct engine *support_gpu(const struct engine_place **place)
{
    struct base_error err = BASE_ERROR_INIT;
    struct engine_options options = engine_options_default();
    const char *library = getenv("INFER_TEST_GPU");
    options.n_threads = 1;
    if (!gpu.engine && !gpu.absent) {
        gpu.device = engine_gpu_open(&(struct engine_gpu_options){.library = library}, &err);
        gpu.absent = !gpu.device;
        gpu.engine = gpu.device ? engine_new(&options, &err) : NULL;
        if (gpu.engine)
            gpu.place = engine_add_place(gpu.engine, &engine_backend_gpu, gpu.device, &err);
        if (library && !gpu.place) fail_msg("%s: %s", library, err.text);
    }
    *place = gpu.place;
    return gpu.engine;
}

int support_engines_free(void **state)
{
    (void)state;
    engine_free(gpu.engine);
    engine_gpu_close(gpu.device);
    memset(&gpu, 0, sizeof gpu);
    for (int i = 0; i < SUPPORT_ENGINES; i++) {
        engine_free(engines[i]);
        engines[i] = NULL;
    }
    return 0;
}

/* ---- Sources ---- */

static void fill_random(struct support_leaf *leaf, uint64_t *seed)
{
    const struct quant_type *type = leaf->tensor.type;
    int64_t rows = engine_tensor_rows(&leaf->tensor), k = leaf->tensor.ne[0];
    if (!type->scalar.encode) return; /* integers remain zero */
    float *x = malloc((size_t)k * sizeof *x);
    assert_non_null(x);
    for (int64_t r = 0; r < rows; r++) {
        for (int64_t i = 0; i < k; i++) x[i] = support_random_float(seed);
        support_row_fill(type, k, x, leaf->tensor.data + r * leaf->tensor.nb[1]);
    }
    free(x);
}

static struct support_leaf *leaf_new(struct support_rig *rig, enum quant_id type, const int64_t *ne)
{
    struct base_error err = BASE_ERROR_INIT;
    assert_true(rig->n_leaves < SUPPORT_MAX_LEAVES);
    struct support_leaf *leaf = &rig->leaf[rig->n_leaves];
    char name[16];
    snprintf(name, sizeof name, "leaf%d", rig->n_leaves++);
    if (!engine_tensor_init(&leaf->tensor, quant_type_by_id(type), ENGINE_DIMS, ne, NULL, name,
                            &err))
        fail_msg("leaf: %s", err.text);
    leaf->bytes = (size_t)engine_tensor_bytes(&leaf->tensor);
    leaf->memory = aligned_alloc(GUARD, (leaf->bytes + 3 * GUARD - 1) / GUARD * GUARD);
    assert_non_null(leaf->memory);
    memset(leaf->memory, GUARD_BYTE, leaf->bytes + 2 * GUARD);
    leaf->tensor.data = leaf->memory + GUARD;
    memset(leaf->tensor.data, 0, leaf->bytes);
    return leaf;
}

void support_rig_move(struct support_rig *rig, const struct engine_place *place)
{
    struct base_error err = BASE_ERROR_INIT;
    for (int i = 0; i < rig->n_leaves; i++) {
        struct support_leaf *leaf = &rig->leaf[i];
        if (!engine_buffer_new(place, ENGINE_BUFFER_WEIGHTS, leaf->bytes, &leaf->buffer, &err))
            fail_msg("leaf: %s", err.text);
        engine_place_write(place, leaf->buffer.base, leaf->tensor.data, leaf->bytes);
        leaf->tensor.data = leaf->buffer.base;
        leaf->tensor.place = place;
    }
    for (int i = 0; i < rig->g->n_tensors; i++) {
        struct engine_tensor *t = &rig->g->tensors[i];
        if (t->view_of) t->place = t->view_of->place;
    }
}

struct engine_tensor *support_source(struct support_rig *rig, enum quant_id type, const int64_t *ne,
                                     enum support_form form)
{
    int64_t block = quant_type_by_id(type)->block_len;
    int64_t stored[] = {ne[0], ne[1], ne[2], ne[3]};
    if (form == SUPPORT_COLS) stored[0] += 3 * block;
    if (form == SUPPORT_SWAPPED) stored[1] = ne[2], stored[2] = ne[1];
    if (form == SUPPORT_TRANSPOSED) stored[0] = ne[1], stored[1] = ne[0];
    struct support_leaf *leaf = leaf_new(rig, type, stored);
    fill_random(leaf, &rig->seed);
    switch (form) {
    case SUPPORT_COLS:
        return engine_cols(rig->g, &leaf->tensor, 2 * block, ne[0]);
    case SUPPORT_SWAPPED:
        return engine_permute(rig->g, &leaf->tensor, 0, 2, 1, 3);
    case SUPPORT_TRANSPOSED:
        return engine_permute(rig->g, &leaf->tensor, 1, 0, 2, 3);
    default:
        return &leaf->tensor;
    }
}

struct engine_tensor *support_ids(struct support_rig *rig, int64_t n0, int64_t n1,
                                  const int32_t *ids)
{
    int64_t ne[] = {n0, n1, 1, 1};
    struct support_leaf *leaf = leaf_new(rig, QUANT_I32, ne);
    memcpy(leaf->tensor.data, ids, leaf->bytes);
    return &leaf->tensor;
}

void support_rig_init(struct support_rig *rig, struct engine *engine, uint64_t seed)
{
    struct base_error err = BASE_ERROR_INIT;
    *rig = (struct support_rig){.engine = engine, .seed = seed};
    rig->g = engine_graph_new(engine, 256, &err);
    if (!rig->g) fail_msg("graph: %s", err.text);
}

void support_rig_free(struct support_rig *rig)
{
    for (int i = 0; i < rig->n_leaves; i++) {
        const char *after = rig->leaf[i].memory + GUARD + rig->leaf[i].bytes;
        for (int k = 0; k < GUARD; k++) {
            assert_int_equal((unsigned char)rig->leaf[i].memory[k], GUARD_BYTE);
            assert_int_equal((unsigned char)after[k], GUARD_BYTE);
        }
        if (rig->leaf[i].buffer.base) engine_buffer_free(&rig->leaf[i].buffer);
        free(rig->leaf[i].memory);
    }
    engine_graph_free(rig->g);
}

/* ---- Reading ---- */

double support_at(const struct engine_tensor *t, int64_t i0, int64_t i1, int64_t i2, int64_t i3)
{
    const char *row =
        t->data + i1 % t->ne[1] * t->nb[1] + i2 % t->ne[2] * t->nb[2] + i3 % t->ne[3] * t->nb[3];
    i0 %= t->ne[0];
    int64_t block = t->type->block_len;
    const char *at = row + i0 / block * t->nb[0];
    if (t->type->id == QUANT_I32) {
        int32_t value;
        memcpy(&value, at, sizeof value);
        return value;
    }
    float values[256];
    t->type->scalar.decode(0, block, at, values);
    return values[i0 % block];
}

/* ---- Checks ---- */

/* True when both are NaN or the same number. */
static bool same(double got, double want)
{
    return got == want || (isnan(got) && isnan(want));
}

static void compare(const char *label, const struct support_rig *rig, const struct engine_tensor *t,
                    support_want want, const void *arg, double bar)
{
    double error = 0.0, norm = 0.0;
    for (int64_t r = 0; r < engine_tensor_rows(t); r++) {
        int64_t i[] = {0, r % t->ne[1], r / t->ne[1] % t->ne[2], r / t->ne[1] / t->ne[2]};
        for (i[0] = 0; i[0] < t->ne[0]; i[0]++) {
            double w = want(rig, t, arg, i), g = support_at(t, i[0], i[1], i[2], i[3]);
            if (same(g, w) || (bar == 0.0 && g == (double)(float)w)) {
                norm += isfinite(w) ? w * w : 0.0;
                continue;
            }
            if (bar == 0.0 || !isfinite(g) || !isfinite(w))
                fail_msg("%s: [%lld %lld %lld %lld] is %.9g, want %.9g", label, (long long)i[3],
                         (long long)i[2], (long long)i[1], (long long)i[0], g, w);
            error += (g - w) * (g - w);
            norm += w * w;
        }
    }
    if (error > bar * norm) fail_msg("%s: error %.3g, bar %.3g", label, error / norm, bar);
}

/* Whether the bytes are equal, or for F32 the floats, or both NaN. */
static bool same_bits(const struct quant_type *type, const char *a, const char *b, size_t bytes)
{
    const float *x = (const float *)(const void *)a, *y = (const float *)(const void *)b;
    bool ok = type->id == QUANT_F32 || memcmp(a, b, bytes) == 0;
    for (size_t i = 0; ok && type->id == QUANT_F32 && i < bytes / sizeof *x; i++)
        ok = memcmp(&x[i], &y[i], sizeof *x) == 0 || (isnan(x[i]) && isnan(y[i]));
    return ok;
}

/* The result on an engine, for the caller to free; place: of all nodes, NULL: place 0. Returns NULL
 * if the place lacks an op, which *err then has. */
static char *result_of(const char *label, support_build build, const void *arg,
                       struct engine *engine, const struct engine_place *place,
                       struct engine_tensor *result, struct base_error *err)
{
    struct support_rig rig;
    support_rig_init(&rig, engine, 42);
    if (place) engine_graph_set_place(rig.g, place);
    struct engine_tensor *t = engine_cont(rig.g, build(&rig, arg));
    engine_output(rig.g, t);
    if (place) support_rig_move(&rig, place);
    const bool planned = engine_graph_plan(rig.g, true, err);
    if (planned ? !engine_graph_run(rig.g, err) : !strstr(err->text, "no code on a "))
        fail_msg("%s: %s: %s", label, err->item, err->text);
    const size_t bytes = planned ? (size_t)engine_tensor_bytes(t) : 0;
    char *got = bytes ? malloc(bytes) : NULL;
    if (got && place && !t->copy) /* an output in a leaf's memory */
        engine_place_read(place, got, t->data, bytes);
    else if (got)
        memcpy(got, engine_output_data(t), bytes);
    if (t) *result = *t;
    support_rig_free(&rig);
    return got;
}

/* The result on a GPU has the bits of `first`; `must`: the GPU must have the ops. */
static void check_gpu(const char *label, support_build build, const void *arg, const char *first,
                      bool must)
{
    struct base_error err = BASE_ERROR_INIT;
    struct engine_tensor t;
    const struct engine_place *place;
    struct engine *engine = support_gpu(&place);
    char *got = engine ? result_of(label, build, arg, engine, place, &t, &err) : NULL;
    if (got && !same_bits(t.type, first, got, (size_t)engine_tensor_bytes(&t)))
        fail_msg("%s: a GPU gives other bits", label);
    if (engine && !got && must) fail_msg("%s: %s", label, err.text);
    free(got);
}

void support_check_gpu(const char *label, support_build build, const void *arg)
{
    struct base_error err = BASE_ERROR_INIT;
    struct engine_tensor t;
    char *first = result_of(label, build, arg, support_engines()[0], NULL, &t, &err);
    check_gpu(label, build, arg, first, true);
    free(first);
}

void support_check_op(const char *label, support_build build, support_want want, const void *arg,
                      double bar)
{
    char *first = NULL;
    for (int k = 0; k < SUPPORT_ENGINES; k++) {
        struct base_error err = BASE_ERROR_INIT;
        struct support_rig rig;
        support_rig_init(&rig, support_engines()[k], 42);
        struct engine_tensor *t = engine_cont(rig.g, build(&rig, arg));
        engine_output(rig.g, t);
        if (!engine_graph_plan(rig.g, true, &err) || !engine_graph_run(rig.g, &err))
            fail_msg("%s: %s: %s", label, err.item, err.text);
        size_t bytes = (size_t)engine_tensor_bytes(t);
        if (k == 0) {
            compare(label, &rig, t, want, arg, bar);
            first = malloc(bytes);
            assert_non_null(first);
            memcpy(first, t->data, bytes);
        } else if (memcmp(first, t->data, bytes) != 0) {
            fail_msg("%s: %d threads at level %s give other bits", label,
                     rig.engine->options.n_threads, cpu_level_name(rig.engine->options.level));
        }
        support_rig_free(&rig);
    }
    check_gpu(label, build, arg, first, false);
    free(first);
}

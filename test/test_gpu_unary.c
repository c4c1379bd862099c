/* test/test_gpu_unary.c: unary functions on a GPU (the fake driver of test/fake_cuda.h) give the
 * bits of the processor. scripts/gpu-check runs it on a GPU, with all 2^32 inputs: input i of a run
 * has the bits INFER_TEST_FIRST + i * INFER_TEST_STRIDE. */
#include "test/support.h"

#include "engine/gpu/gpu.h"
#include "engine/gpu/gpu_code.h"
#include "engine/graph.h"
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { FEW = 1 << 12, MANY = 1 << 22, FAR = 8209 /* between inputs on the fake driver */ };

struct pair {
    struct engine_tensor *here, *there;
};

/* x[i] has the bits first + i * step. */
static void fill(float *x, size_t n, uint64_t first, uint64_t step)
{
    for (size_t i = 0; i < n; i++) {
        const uint32_t bits = (uint32_t)(first + i * step);
        memcpy(&x[i], &bits, sizeof bits);
    }
}

/* NaN are equal as NaN. */
static void compare(const struct pair *p, int f, const float *x, size_t n)
{
    const float *here = engine_output_data(p->here), *there = engine_output_data(p->there);
    if (memcmp(here, there, n * sizeof *here) == 0) return;
    for (size_t i = 0; i < n; i++)
        if (memcmp(&here[i], &there[i], sizeof *here) != 0 && !(isnan(here[i]) && isnan(there[i])))
            fail_msg("function %d of %a: %a, on the GPU %a", f, (double)x[i], (double)here[i],
                     (double)there[i]);
}

static void unary_functions_give_the_bits_of_the_processor(void **state)
{
    const char *library = getenv("INFER_TEST_GPU"), *text = getenv("INFER_TEST_STRIDE"),
               *begin = getenv("INFER_TEST_FIRST");
    const uint64_t step = text ? strtoull(text, NULL, 10) : library ? 1 : FAR;
    const int64_t n = library ? MANY : FEW;
    struct base_error err = BASE_ERROR_INIT;
    struct engine_options options = engine_options_default();
    struct pair pair[ENGINE_UNARY_COUNT];
    (void)state;
    if (!library) options.n_threads = 1;
    struct engine_gpu *gpu = engine_gpu_open(
        &(struct engine_gpu_options){.library = library, .cache = library ? "/tmp" : NULL}, &err);
    if (!gpu) fail_msg("%s", err.text);
    struct engine *engine = engine_new(&options, &err);
    const struct engine_place *place = engine_add_place(engine, &engine_backend_gpu, gpu, &err);
    struct engine_graph *g = engine_graph_new(engine, 4 * ENGINE_UNARY_COUNT, &err);
    struct engine_tensor *x = engine_input(g, QUANT_F32, 1, &n, "x");
    for (int f = 0; f < ENGINE_UNARY_COUNT; f++) {
        engine_graph_set_place(g, place);
        engine_output(g, pair[f].there = engine_unary(g, x, (enum engine_unary)f));
        engine_graph_set_place(g, NULL);
        engine_output(g, pair[f].here = engine_unary(g, x, (enum engine_unary)f));
    }
    if (!engine_graph_plan(g, true, &err)) fail_msg("%s", err.text);
    uint64_t inputs = 0;
    for (uint64_t first = begin ? strtoull(begin, NULL, 10) : 0; first <= UINT32_MAX;
         first += (uint64_t)n * step, inputs += (uint64_t)n) {
        fill(engine_input_data(x), (size_t)n, first, step);
        if (!engine_graph_run(g, &err)) fail_msg("%s", err.text);
        for (int f = 0; f < ENGINE_UNARY_COUNT; f++)
            compare(&pair[f], f, engine_input_data(x), (size_t)n);
    }
    printf("%d functions, %" PRIu64 " inputs\n", ENGINE_UNARY_COUNT, inputs);
    engine_graph_free(g);
    engine_free(engine);
    engine_gpu_close(gpu);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(unary_functions_give_the_bits_of_the_processor),
    };
    size_t size;
    if (!engine_gpu_code(&size)) {
        printf("skipped: this build has no code for GPUs\n");
        return 0;
    }
    return cmocka_run_group_tests(tests, NULL, NULL);
}

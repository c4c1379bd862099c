/* test/test_gpu.c: GPUs as devices of places, on a fake driver (test/fake_cuda.h) whose memory the
 * host cannot access: memory, uploads, errors of the driver, and the folder of machine code. */
#include "test/support.h"

#include "base/checksum.h"
#include "base/interrupt.h"
#include "engine/gpu/gpu.h"
#include "engine/gpu/gpu_code.h"
#include "engine/graph_internal.h"
#include "test/fake_cuda.h"
#include "test/support_gpu.h"
#include "test/support_random.h"
#include "test/support_row.h"
#include <dirent.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum {
    K = 512,
    ROWS = 21,
    LONG = 1024 /* a row that a norm converts */
};

static void a_graph_that_runs_again_reads_its_new_inputs(void **state)
{
    struct rig rig = rig_new();
    struct base_error err = BASE_ERROR_INIT;
    uint64_t rng = 4;
    (void)state;
    struct weights w = weights_new(&rig, quant_type_by_id(QUANT_Q4_K), K, ROWS, &rng);
    struct engine_graph *g[2];
    struct engine_tensor *x[2], *y[2];
    for (int i = 0; i < 2; i++) {
        g[i] = engine_graph_new(rig.engine, 16, &err);
        x[i] = engine_input(g[i], QUANT_F32, 2, (int64_t[]){K, 1}, "x");
        engine_graph_set_place(g[i], &rig.engine->place[i]);
        y[i] = engine_mul_mat(g[i], i ? &w.there : &w.here, x[i]);
        y[i] = engine_add(g[i], y[i], y[i]);
        engine_graph_set_place(g[i], &rig.engine->place[0]);
        engine_output(g[i], y[i] = engine_add(g[i], y[i], y[i]));
        assert_true(engine_graph_plan(g[i], true, &err));
    }
    const int before = fake_cuda.graphs;
    for (int turn = 0; turn < 4; turn++) {
        for (int j = 0; j < K; j++)
            ((float *)engine_input_data(x[0]))[j] = ((float *)engine_input_data(x[1]))[j] =
                support_random_gauss(&rng);
        for (int i = 0; i < 2; i++) assert_true(engine_graph_run(g[i], &err));
        assert_memory_equal(engine_output_data(y[0]), engine_output_data(y[1]),
                            ROWS * sizeof(float));
    }
    assert_int_equal(fake_cuda.graphs - before, 3);
    for (int i = 0; i < 2; i++) engine_graph_free(g[i]);
    weights_free(&w);
    rig_free(&rig);
}

/* x -> there, x -> here, and both -> here: the copy of what the GPU computes, for which this
 * machine waits, follows what it computes itself. */
static void the_processor_computes_while_a_gpu_does(void **state)
{
    struct base_error err = BASE_ERROR_INIT;
    struct rig rig = rig_new();
    struct engine_graph *g = engine_graph_new(rig.engine, 16, &err);
    struct engine_tensor *x = engine_input(g, QUANT_F32, 1, (int64_t[]){K}, "x");
    (void)state;
    engine_graph_set_place(g, rig.place);
    struct engine_tensor *there = engine_add(g, x, x);
    engine_graph_set_place(g, NULL);
    struct engine_tensor *here = engine_mul(g, x, x);
    struct engine_tensor *sum = engine_add(g, there, here);
    engine_output(g, sum);
    assert_true(engine_graph_plan(g, true, &err));
    const struct engine_plan *plan = &g->plan;
    assert_int_equal(plan->n_segments, 3);
    assert_int_equal(plan->segments[1].n_copies, 0);
    assert_int_equal(plan->segments[1].n_steps, 1);
    assert_int_equal(plan->segments[2].n_copies, 1);
    assert_ptr_equal(plan->steps[plan->segments[2].first_step].node, sum);
    float *in = engine_input_data(x);
    for (int i = 0; i < K; i++) in[i] = (float)i;
    assert_true(engine_graph_run(g, &err));
    const float *out = engine_output_data(sum);
    for (int i = 0; i < K; i++) assert_true(out[i] == (float)(2 * i + i * i));
    engine_graph_free(g);
    rig_free(&rig);
}

static void a_buffer_reads_as_zeros_and_then_as_what_was_written(void **state)
{
    struct rig rig = rig_new();
    struct base_error err = BASE_ERROR_INIT;
    struct engine_buffer buffer;
    char got[1000], want[1000] = {0};
    (void)state;
    assert_true(engine_buffer_new(rig.place, ENGINE_BUFFER_STATE, sizeof got, &buffer, &err));
    memset(got, 1, sizeof got);
    engine_place_read(rig.place, got, buffer.base, sizeof got);
    assert_memory_equal(got, want, sizeof got);
    memset(want + 300, 7, 500);
    engine_place_write(rig.place, buffer.base + 300, want + 300, 500);
    engine_place_read(rig.place, got, buffer.base, sizeof got);
    assert_memory_equal(got, want, sizeof got);
    memset(got, 1, sizeof got);
    fake_cuda.fail = "cuMemcpyDtoHAsync_v2"; /* what cannot be read is zeros */
    engine_place_read(rig.place, got, buffer.base, sizeof got);
    fake_cuda.fail = NULL;
    memset(want, 0, sizeof want);
    assert_memory_equal(got, want, sizeof got);
    engine_buffer_free(&buffer);
    rig_free(&rig);
}

static void a_buffer_may_be_empty(void **state)
{
    struct rig rig = rig_new();
    struct base_error err = BASE_ERROR_INIT;
    struct engine_buffer buffer;
    (void)state;
    assert_true(engine_buffer_new(rig.place, ENGINE_BUFFER_STATE, 0, &buffer, &err));
    assert_int_equal(buffer.size, 0);
    engine_buffer_free(&buffer);
    rig_free(&rig);
}

static void a_buffer_that_cannot_be_cleared_is_an_error(void **state)
{
    struct rig rig = rig_new();
    struct base_error err = BASE_ERROR_INIT;
    struct engine_buffer buffer;
    (void)state;
    fake_cuda.fail = "cuMemsetD8Async";
    assert_false(engine_buffer_new(rig.place, ENGINE_BUFFER_STATE, 64, &buffer, &err));
    fake_cuda.fail = NULL;
    assert_string_equal(err.text, "the GPU's driver: cuMemsetD8Async: CUDA_ERROR_OTHER (999)");
    engine_buffer_free(&buffer);
    rig_free(&rig);
}

/* Uploads of odd sizes, whose bytes and the gaps between them are compared. */
enum { UPLOADS = 6, GAP = 64, MOST_BYTES = 20 << 20 };

struct uploads {
    struct engine_upload item[UPLOADS];
    struct engine_buffer buffer;
    char *from, *got;
};

static struct uploads uploads_new(const struct rig *rig)
{
    static const uint64_t sizes[UPLOADS] = {(13 << 20) + 5, 1, 1 << 20, 0, (2 << 20) - 1, 4096};
    struct base_error err = BASE_ERROR_INIT;
    struct uploads u = {.from = calloc(1, MOST_BYTES), .got = malloc(MOST_BYTES)};
    uint64_t at = 0, rng = 9;
    assert_true(engine_buffer_new(rig->place, ENGINE_BUFFER_WEIGHTS, MOST_BYTES, &u.buffer, &err));
    for (int i = 0; i < UPLOADS; i++, at += GAP) {
        u.item[i] = (struct engine_upload){u.buffer.base + at, u.from + at, sizes[i]};
        for (uint64_t end = at + sizes[i]; at < end; at++) u.from[at] = (char)support_random(&rng);
    }
    return u;
}

static void uploads_free(struct uploads *u)
{
    engine_buffer_free(&u->buffer);
    free(u->from);
    free(u->got);
}

static void weights_are_copied_by_all_threads_through_locked_memory(void **state)
{
    (void)state;
    for (int n_threads = 1; n_threads <= 3; n_threads++)
        for (int has_locked = 0; has_locked < 2; has_locked++) {
            struct rig rig = rig_with_threads(n_threads);
            struct base_error err = BASE_ERROR_INIT;
            struct uploads u = uploads_new(&rig);
            const int copies = fake_cuda.copies, locked = fake_cuda.locked;
            fake_cuda.fail_locked = !has_locked;
            assert_true(engine_place_upload(rig.engine, rig.place, u.item, UPLOADS, &err));
            assert_int_equal(fake_cuda.locked - locked, has_locked);
            /* Parts of a megabyte, or the uploads as they are. */
            assert_int_equal(fake_cuda.copies - copies, has_locked ? 14 + 1 + 1 + 2 + 1 : UPLOADS);
            engine_place_read(rig.place, u.got, u.buffer.base, MOST_BYTES);
            assert_memory_equal(u.got, u.from, MOST_BYTES);
            /* Not for small ones. */
            assert_true(engine_place_upload(rig.engine, rig.place, u.item + 1, UPLOADS - 1, &err));
            assert_int_equal(fake_cuda.locked - locked, has_locked);
            uploads_free(&u);
            rig_free(&rig);
        }
    fake_cuda.fail_locked = false;
}

static void a_failed_or_interrupted_copy_of_weights_is_an_error(void **state)
{
    (void)state;
    for (int has_locked = 0; has_locked < 2; has_locked++)
        for (int how = 0; how < 2; how++) {
            struct rig rig = rig_with_threads(2);
            struct base_error err = BASE_ERROR_INIT, again = BASE_ERROR_INIT;
            struct uploads u = uploads_new(&rig);
            fake_cuda.fail_locked = !has_locked;
            const int copies = fake_cuda.copies;
            if (how == 0) fake_cuda.fail_copy = copies + 5;
            if (how == 1) base_interrupt();
            assert_false(engine_place_upload(rig.engine, rig.place, u.item, UPLOADS, &err));
            base_interrupt_clear();
            assert_true(how == 0 || fake_cuda.copies == copies);
            assert_int_equal(err.code, how ? BASE_INTERRUPTED : BASE_FAILED);
            if (how == 0)
                assert_string_equal(err.text, "the GPU's driver: cuMemcpyHtoDAsync: "
                                              "CUDA_ERROR_ILLEGAL_ADDRESS (700)");
            /* A failed device stays so. */
            assert_int_equal(engine_place_upload(rig.engine, rig.place, u.item, UPLOADS, &again),
                             how);
            uploads_free(&u);
            rig_free(&rig);
        }
    fake_cuda.fail_locked = false;
    fake_cuda.fail_copy = 0;
}

static void the_host_cannot_read_a_gpus_memory(void **state)
{
    struct rig rig = rig_new();
    struct base_error err = BASE_ERROR_INIT;
    struct engine_buffer buffer;
    int status;
    (void)state;
    assert_true(engine_buffer_new(rig.place, ENGINE_BUFFER_GRAPH, 64, &buffer, &err));
    const pid_t child = fork();
    if (child == 0) {
        signal(SIGSEGV, SIG_DFL); /* cmocka handles it */
        _exit(*(volatile char *)buffer.base);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(status != 0);
    engine_buffer_free(&buffer);
    rig_free(&rig);
}

static void memory_that_a_gpu_lacks_is_an_error(void **state)
{
    struct rig rig = rig_new();
    struct base_error err = BASE_ERROR_INIT;
    struct engine_buffer buffer;
    (void)state;
    assert_false(
        engine_buffer_new(rig.place, ENGINE_BUFFER_STATE, fake_cuda.memory + 1, &buffer, &err));
    assert_int_equal(err.code, BASE_NO_MEMORY);
    assert_string_equal(err.text, "emulated GPU has no memory for 67108865 bytes");
    rig_free(&rig);
}

/* As many bytes as the driver takes: a large buffer has pages of its own. */
static void a_plan_counts_the_bytes_that_the_driver_takes(void **state)
{
    enum { MIB = 1 << 20 };
    struct engine_gpu_plan plan = {.total = 0};
    const struct engine_place place = {.backend = &engine_backend_gpu_plan, .device = &plan};
    struct engine_buffer small, large, more;
    struct base_error err = BASE_ERROR_INIT;
    (void)state;
    assert_true(engine_buffer_new(&place, ENGINE_BUFFER_STATE, 100, &small, &err));
    assert_int_equal(plan.total, 128);
    assert_true(engine_buffer_new(&place, ENGINE_BUFFER_WEIGHTS, 3 * MIB, &large, &err));
    assert_int_equal(plan.total, 4 * MIB + 128);
    assert_int_equal(plan.bytes[ENGINE_BUFFER_STATE], 100);
    assert_int_equal(plan.bytes[ENGINE_BUFFER_WEIGHTS], 3 * MIB);
    assert_true(large.base >= small.base + small.size);
    assert_false(engine_buffer_new(&place, ENGINE_BUFFER_STATE, UINT64_MAX / 2, &more, &err));
    assert_int_equal(err.code, BASE_NO_MEMORY);
    engine_buffer_free(&large);
    engine_buffer_free(&small);
    assert_int_equal(plan.total, 0);
    assert_int_equal(plan.bytes[ENGINE_BUFFER_WEIGHTS], 0);
}

/* After one failed call of the driver, this run and all later ones fail. */
static void an_error_of_the_driver_ends_a_run(void **state)
{
    (void)state;
    for (int launch = 0; launch < 2; launch++) {
        struct rig rig = rig_new();
        uint64_t rng = 3;
        float out[2 * ROWS];
        struct weights w = weights_new(&rig, quant_type_by_id(QUANT_F16), K, ROWS, &rng);
        if (launch)
            fake_cuda.fail_launch = fake_cuda.launches + 1;
        else
            fake_cuda.fail_copy = fake_cuda.copies + 1;
        for (int i = 0; i < 2; i++) {
            struct base_error err = BASE_ERROR_INIT;
            assert_false(multiply(&rig, &w, &w, true, 1, 1, out, &err));
            assert_int_equal(err.code, BASE_FAILED);
            assert_string_equal(err.text,
                                launch ? "the GPU's driver: cuLaunchKernel: CUDA_ERROR_OTHER (719)"
                                       : "the GPU's driver: cuMemcpyHtoDAsync: "
                                         "CUDA_ERROR_ILLEGAL_ADDRESS (700)");
        }
        weights_free(&w);
        rig_free(&rig);
        fake_cuda.fail_launch = fake_cuda.fail_copy = 0;
    }
}

/* A norm on the GPU, a product of it, which is on the GPU too, and a sum here; `weights` must
 * outlive the graph. */
static struct engine_graph *graph_of_norm(const struct rig *rig, struct weights *weights)
{
    struct base_error err = BASE_ERROR_INIT;
    uint64_t rng = 6;
    *weights = weights_new(rig, quant_type_by_id(QUANT_Q4_K), LONG, ROWS, &rng);
    struct engine_graph *g = engine_graph_new(rig->engine, 16, &err);
    struct engine_tensor *x = engine_input(g, QUANT_F32, 2, (int64_t[]){LONG, 1}, "x");
    engine_graph_set_place(g, rig->place);
    struct engine_tensor *y = engine_mul_mat(g, &weights->there, engine_rms_norm(g, x, 1e-5f));
    engine_graph_set_place(g, NULL);
    engine_output(g, engine_add(g, y, y));
    if (!engine_graph_plan(g, true, &err)) fail_msg("%s", err.text);
    for (int i = 0; i < LONG; i++) ((float *)engine_input_data(x))[i] = (float)(i % 7) - 3.0f;
    return g;
}

/* The second run makes a graph of the driver, the third one only starts it. */
static void a_function_that_fails_ends_all_runs(void **state)
{
    static const struct {
        const char *function;
        int run;
        const char *text;
    } rows[] = {
        {"cuStreamBeginCapture_v2", 2, "cuStreamBeginCapture"},
        {"cuStreamEndCapture", 2, "cuStreamEndCapture"},
        {"cuGraphInstantiate_v2", 2, "cuGraphInstantiate"},
        {"cuGraphLaunch", 2, "cuGraphLaunch"},
        {"cuGraphLaunch", 3, "cuGraphLaunch"},
        {"cuLaunchKernel", 1, "cuLaunchKernel"},
        {"cuStreamSynchronize", 1, "cuStreamSynchronize"},
        {"cuCtxSetCurrent", 1, "cuCtxSetCurrent"},
        {"cuMemcpyDtoHAsync_v2", 3, "cuMemcpyDtoHAsync"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct rig rig = rig_new();
        struct base_error err = BASE_ERROR_INIT;
        struct weights w;
        char want[100];
        struct engine_graph *g = graph_of_norm(&rig, &w);
        for (int run = 1; run < rows[i].run; run++) assert_true(engine_graph_run(g, &err));
        fake_cuda.fail = rows[i].function;
        assert_false(engine_graph_run(g, &err));
        fake_cuda.fail = NULL;
        snprintf(want, sizeof want, "the GPU's driver: %s: CUDA_ERROR_OTHER (999)", rows[i].text);
        assert_string_equal(err.text, want);
        const int launches = fake_cuda.launches, graphs = fake_cuda.graphs,
                  copies = fake_cuda.copies;
        err = BASE_ERROR_INIT;
        assert_false(engine_graph_run(g, &err));
        assert_string_equal(err.text, want);
        assert_int_equal(fake_cuda.launches, launches);
        assert_int_equal(fake_cuda.graphs, graphs);
        assert_int_equal(fake_cuda.copies, copies);
        engine_graph_free(g);
        weights_free(&w);
        rig_free(&rig);
    }
}

static void a_run_can_be_interrupted(void **state)
{
    struct rig rig = rig_new();
    struct base_error err = BASE_ERROR_INIT;
    struct weights w;
    (void)state;
    struct engine_graph *g = graph_of_norm(&rig, &w);
    const struct engine_segment *first = &g->plan.segments[0];
    assert_ptr_equal(first->place, rig.place);
    base_interrupt();
    assert_false(engine_backend_gpu.run(&g->plan, first, rig.engine, &err));
    assert_int_equal(err.code, BASE_INTERRUPTED);
    err = BASE_ERROR_INIT;
    assert_false(engine_graph_run(g, &err));
    base_interrupt_clear();
    assert_int_equal(err.code, BASE_INTERRUPTED);
    engine_graph_free(g);
    weights_free(&w);
    rig_free(&rig);
}

/* A norm's start has blocks that load weights of the next product: as many in each run. */
static void every_run_loads_weights_ahead(void **state)
{
    struct rig rig = rig_new();
    struct base_error err = BASE_ERROR_INIT;
    struct weights w;
    (void)state;
    struct engine_graph *g = graph_of_norm(&rig, &w);
    uint64_t blocks[3];
    for (int i = 0; i < 3; i++) {
        const uint64_t before = fake_cuda.blocks;
        assert_true(engine_graph_run(g, &err));
        blocks[i] = fake_cuda.blocks - before;
    }
    assert_true(blocks[0] > 2);
    assert_int_equal(blocks[1], blocks[0]);
    assert_int_equal(blocks[2], blocks[0]);
    engine_graph_free(g);
    weights_free(&w);
    rig_free(&rig);
}

/* Device code has indices of 31 bits. */
static void a_dimension_of_31_bits_cannot_be_on_a_gpu(void **state)
{
    struct rig rig = rig_new();
    struct base_error err = BASE_ERROR_INIT;
    (void)state;
    struct engine_graph *g = engine_graph_new(rig.engine, 8, &err);
    struct engine_tensor *x = engine_input(g, QUANT_F32, 1, (int64_t[]){4}, "x");
    struct engine_tensor *y = engine_input(g, QUANT_F32, 1, (int64_t[]){4}, "y");
    struct engine_tensor *sum = engine_add(g, x, y);
    struct engine_tensor *const tensors[] = {sum, x, y};
    for (int i = 0; i < 3; i++) {
        assert_non_null(engine_backend_gpu.row(sum));
        tensors[i]->ne[1] = INT64_C(1) << 31;
        assert_null(engine_backend_gpu.row(sum));
        tensors[i]->ne[1] = 1;
    }
    engine_graph_free(g);
    rig_free(&rig);
}

static void a_node_that_a_gpu_cannot_compute_is_an_error_of_the_plan(void **state)
{
    struct rig rig = rig_new();
    struct base_error err = BASE_ERROR_INIT;
    (void)state;
    struct engine_graph *g = engine_graph_new(rig.engine, 8, &err);
    struct engine_tensor *x = engine_input(g, QUANT_F32, 2, (int64_t[]){4, 4}, "x");
    engine_graph_set_place(g, rig.place);
    engine_output(g, engine_cast(g, x, QUANT_F16));
    assert_false(engine_graph_plan(g, true, &err));
    assert_string_equal(err.text, "no code on a gpu for this cast");
    engine_graph_free(g);
    rig_free(&rig);
}

static void a_missing_or_old_gpu_is_an_error(void **state)
{
    struct engine_gpu_options options = {.index = 0};
    struct engine_gpu_facts facts;
    struct base_error err[3] = {BASE_ERROR_INIT, BASE_ERROR_INIT, BASE_ERROR_INIT};
    (void)state;
    assert_true(engine_gpu_find(&options, &facts, &err[0]));
    assert_true(facts.free == facts.memory);
    assert_string_equal(facts.name, "emulated GPU");
    assert_int_equal(facts.major, 8);
    assert_int_equal(facts.driver, 12040);
    fake_cuda.major = 7;
    assert_null(engine_gpu_open(&options, &err[0]));
    fake_cuda.major = 8;
    assert_string_equal(err[0].text, "emulated GPU has compute capability 7.0, less than 8.0");
    options.index = 1;
    assert_null(engine_gpu_open(&options, &err[1]));
    assert_string_equal(err[1].text, "there is no GPU 1");
    options.library = "libnone.so.1";
    assert_null(engine_gpu_open(&options, &err[2]));
    assert_memory_equal(err[2].text, "no driver for a GPU (libnone.so.1", 33);
    for (int i = 0; i < 3; i++) assert_int_equal(err[i].code, BASE_USAGE);
    err[0] = BASE_ERROR_INIT;
    options.library = "libc.so.6";
    assert_null(engine_gpu_open(&options, &err[0]));
    assert_string_equal(err[0].text, "the driver for GPUs lacks cuInit: it is too old");
    assert_int_equal(fake_cuda.live, 0);
}

static void a_gpu_that_cannot_be_opened_is_an_error(void **state)
{
    static const struct {
        const char *function, *text;
    } rows[] = {
        {"cuInit", "no GPU that can be used (CUDA_ERROR_OTHER)"},
        {"cuDriverGetVersion", "the driver does not describe GPU 0"},
        {"cuDeviceGetName", "the driver does not describe GPU 0"},
        {"cuDeviceGetAttribute", "the driver does not describe GPU 0"},
        {"cuDeviceTotalMem_v2", "the driver does not describe GPU 0"},
        {"cuDevicePrimaryCtxRetain", "the GPU's driver: cuDevicePrimaryCtxRetain:"},
        {"cuStreamCreate", "the GPU's driver: cuStreamCreate:"},
        {"cuLinkCreate_v2", "the GPU's driver: cuLinkCreate:"},
        {"cuLinkAddData_v2", "the GPU's driver: cuLinkAddData:"},
        {"cuLinkComplete", "the GPU's driver: cuLinkComplete:"},
        {"cuModuleLoadData", "the GPU's driver: cuModuleLoadData:"},
        {"cuModuleGetFunction", "the GPU's driver: engine_gpu_map:"},
        {"cuFuncSetAttribute", "the GPU's driver: cuFuncSetAttribute:"},
    };
    const struct engine_gpu_options options = {.index = 0};
    struct engine_gpu_facts facts;
    struct base_error err;
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        err = BASE_ERROR_INIT;
        fake_cuda.fail = rows[i].function;
        assert_null(engine_gpu_open(&options, &err));
        assert_memory_equal(err.text, rows[i].text, strlen(rows[i].text));
        assert_int_equal(fake_cuda.live, 0);
    }
    err = BASE_ERROR_INIT;
    fake_cuda.fail = "cuMemGetInfo_v2";
    assert_false(engine_gpu_find(&options, &facts, &err));
    fake_cuda.fail = NULL;
    assert_string_equal(err.text, "the GPU's driver: cuMemGetInfo: CUDA_ERROR_OTHER (999)");
    assert_int_equal(fake_cuda.live, 0);
}

static void one_of_two_gpus_can_be_closed(void **state)
{
    struct base_error err = BASE_ERROR_INIT;
    struct engine_gpu *gpu[2];
    (void)state;
    fake_cuda.devices = 2;
    for (int i = 0; i < 2; i++) {
        gpu[i] = engine_gpu_open(&(struct engine_gpu_options){.index = i}, &err);
        if (!gpu[i]) fail_msg("%s", err.text);
    }
    const int both = fake_cuda.live;
    engine_gpu_close(gpu[0]);
    assert_int_equal(fake_cuda.live, both / 2);
    engine_gpu_close(gpu[1]);
    fake_cuda.devices = 1;
    assert_int_equal(fake_cuda.live, 0);
}

/* ---- Machine code ---- */

/* The number of times that opening and closing a GPU compiles. */
static int compiles(const char *cache)
{
    const int before = fake_cuda.links;
    engine_gpu_close(open_gpu(cache));
    assert_int_equal(fake_cuda.live, 0);
    return fake_cuda.links - before;
}

/* The path of the only file of a folder. */
static void only_file(const char *folder, char path[512])
{
    int n = 0;
    DIR *open = opendir(folder);
    assert_non_null(open);
    for (struct dirent *entry; (entry = readdir(open)) != NULL;) {
        if (entry->d_name[0] == '.') continue;
        snprintf(path, 512, "%s/%s", folder, entry->d_name);
        n++;
    }
    closedir(open);
    assert_int_equal(n, 1);
}

static void machine_code_is_compiled_once_for_a_folder(void **state)
{
    char folder[] = "/tmp/infer-gpu-XXXXXX", path[512];
    (void)state;
    assert_non_null(mkdtemp(folder));
    assert_int_equal(compiles(NULL), 1);
    assert_int_equal(compiles(NULL), 1);
    assert_int_equal(compiles(folder), 1);
    assert_int_equal(compiles(folder), 0);
    only_file(folder, path);
    /* Damaged, cut and empty files, and code that the driver refuses, are replaced. */
    for (int damage = 0; damage < 4; damage++) {
        const uint64_t checksum = base_checksum("x", 1, 0);
        FILE *file = fopen(path, damage ? "w" : "r+");
        assert_non_null(file);
        if (damage == 0) fseek(file, 60, SEEK_SET); /* where the driver reads nothing */
        if (damage == 3) fwrite(&checksum, sizeof checksum, 1, file);
        if (damage != 2) fputc('x', file);
        fclose(file);
        assert_int_equal(compiles(folder), 1);
        assert_int_equal(compiles(folder), 0);
    }
    only_file(folder, path);
    fake_cuda.major = 9; /* whose code is another file */
    assert_int_equal(compiles(folder), 1);
    fake_cuda.major = 8;
    assert_int_equal(compiles(folder), 0);
    remove(path);
    only_file(folder, path);
    remove(path);
    rmdir(folder);
    assert_int_equal(compiles(folder), 1); /* which is no folder now */
}

static void the_program_has_all_ptx(void **state)
{
    size_t size, texts = 0;
    struct base_error err = BASE_ERROR_INIT;
    char *ptx = engine_gpu_code_unpack(&size, &err);
    (void)state;
    assert_non_null(ptx);
    for (size_t at = 0; at < size; at += strlen(ptx + at) + 1, texts++) {
        assert_non_null(strstr(ptx + at, ".visible .entry "));
        assert_null(strstr(ptx + at, ".visible .func ")); /* the driver links the texts */
        assert_null(strstr(ptx + at, ".visible .global "));
    }
    assert_int_equal(texts, 17);
    free(ptx);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_graph_that_runs_again_reads_its_new_inputs),
        cmocka_unit_test(the_processor_computes_while_a_gpu_does),
        cmocka_unit_test(a_buffer_reads_as_zeros_and_then_as_what_was_written),
        cmocka_unit_test(weights_are_copied_by_all_threads_through_locked_memory),
        cmocka_unit_test(a_failed_or_interrupted_copy_of_weights_is_an_error),
        cmocka_unit_test(the_host_cannot_read_a_gpus_memory),
        cmocka_unit_test(a_buffer_may_be_empty),
        cmocka_unit_test(a_buffer_that_cannot_be_cleared_is_an_error),
        cmocka_unit_test(memory_that_a_gpu_lacks_is_an_error),
        cmocka_unit_test(a_plan_counts_the_bytes_that_the_driver_takes),
        cmocka_unit_test(an_error_of_the_driver_ends_a_run),
        cmocka_unit_test(a_function_that_fails_ends_all_runs),
        cmocka_unit_test(a_run_can_be_interrupted),
        cmocka_unit_test(every_run_loads_weights_ahead),
        cmocka_unit_test(a_dimension_of_31_bits_cannot_be_on_a_gpu),
        cmocka_unit_test(a_node_that_a_gpu_cannot_compute_is_an_error_of_the_plan),
        cmocka_unit_test(a_missing_or_old_gpu_is_an_error),
        cmocka_unit_test(a_gpu_that_cannot_be_opened_is_an_error),
        cmocka_unit_test(one_of_two_gpus_can_be_closed),
        cmocka_unit_test(machine_code_is_compiled_once_for_a_folder),
        cmocka_unit_test(the_program_has_all_ptx),
    };
    size_t size;
    if (!engine_gpu_code(&size)) {
        printf("skipped: this build has no code for GPUs\n");
        return 0;
    }
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* test/bench/bench_scaling.c: the measured inputs of scripts/scaling-model, as JSON lines:
 *
 *     {"barrier_threads": N, "barrier_ns": X, "best_ns": Y}   N threads' barrier, median and best
 *     {"shape": "8B", "layer": {...}, "around": {...}}
 *
 * The second kind counts the steps of a decode graph (one token, no sampling) of a llama of that
 * shape: per layer and around the layers, the steps, the barriers of the plan, the steps that
 * worker 0 runs alone, and their nanoseconds on this machine. Matrices are not read, so they need
 * no memory. */
#include "engine/cpu/cpu_op.h"
#include "engine/cpu/threads.h"
#include "engine/graph_internal.h"
#include "models/internal.h"
#include "test/bench/support_bench.h"
#include "test/support_gguf.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { VOCABULARY = 64, N_CTX = 512, ROUNDS = 31 };

static double now_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return 1e9 * (double)t.tv_sec + (double)t.tv_nsec;
}

_Noreturn static void die(const struct base_error *err)
{
    fprintf(stderr, "%s: %s\n", err->item, err->text);
    exit(1);
}

/* ---- Barriers ---- */

static void barrier_job(const struct engine_worker *w, void *data)
{
    const int *rounds = data;
    for (int i = 0; i < *rounds; i++) engine_pool_barrier(w);
}

/* If there is a processor for each thread, threads are bound: the kernel tends to put two threads
 * that synchronize often on one processor. */
static void measure_barrier(int n_threads)
{
    struct base_error err = BASE_ERROR_INIT;
    struct engine_cpus allowed;
    engine_cpus_allowed(&allowed);
    const bool pin = n_threads <= engine_cpus_count(&allowed);
    struct engine_pool *pool = engine_pool_new(n_threads, pin, &err);
    double took[ROUNDS];
    int rounds = 100;
    if (!pool) die(&err);
    engine_pool_run(pool, barrier_job, &rounds);
    for (int i = 0; i < ROUNDS; i++) {
        double start = now_ns();
        engine_pool_run(pool, barrier_job, &rounds);
        took[i] = (now_ns() - start) / rounds;
        rounds = took[i] < 5000 ? 2000 : 200;
    }
    const double middle = support_median(took, ROUNDS); /* sorts */
    printf("{\"barrier_threads\": %d, \"barrier_ns\": %.0f, \"best_ns\": %.0f}\n", n_threads,
           middle, took[0]);
    engine_pool_free(pool);
}

/* ---- Steps ---- */

struct shape {
    const char *name;
    uint32_t n_embd, n_head, n_head_kv, head_dim, n_ff;
};

static const struct shape shapes[] = {
    {"1B", 2048, 32, 8, 64, 8192},
    {"8B", 4096, 32, 8, 128, 14336},
    {"70B", 8192, 64, 8, 128, 28672},
};

struct count {
    int steps, barriers, alone;
    double alone_ns;
};

/* A weight of [rows][cols]; only vectors and embeddings have memory. */
static struct engine_tensor *weight(enum quant_id type, int64_t cols, int64_t rows)
{
    static char nothing[64]; /* only an address: the content is not read */
    struct base_error err = BASE_ERROR_INIT;
    struct engine_tensor *t = calloc(1, sizeof *t);
    void *data = type == QUANT_F32 ? calloc((size_t)(cols * rows), sizeof(float)) : nothing;
    if (!t || !data) exit(4);
    if (!engine_tensor_init(t, quant_type_by_id(type), 2, (int64_t[]){cols, rows}, data, "weight",
                            &err))
        die(&err);
    return t;
}

/* Opens a file with the keys of a llama of that shape and a tensor for each layer. */
static struct gguf_file *keys_of(const struct shape *s, uint32_t n_layer)
{
    struct base_error err = BASE_ERROR_INIT;
    const struct quant_type *f32 = quant_type_by_id(QUANT_F32);
    const struct {
        const char *key;
        uint32_t value;
    } numbers[] = {{"llama.context_length", N_CTX},
                   {"llama.block_count", n_layer},
                   {"llama.embedding_length", s->n_embd},
                   {"llama.feed_forward_length", s->n_ff},
                   {"llama.attention.head_count", s->n_head},
                   {"llama.attention.head_count_kv", s->n_head_kv},
                   {"llama.attention.key_length", s->head_dim},
                   {"llama.attention.value_length", s->head_dim}};
    char path[] = "/tmp/bench_scaling_XXXXXX";
    int fd = mkstemp(path);
    struct gguf_writer *w = gguf_writer_new(&err);
    float *row = calloc(s->n_embd, sizeof *row);
    if (fd < 0 || !w || !row) exit(4);
    close(fd);
    gguf_writer_str(w, "general.architecture", "llama", 5);
    gguf_writer_f32(w, "llama.attention.layer_norm_rms_epsilon", 1e-5f);
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++)
        gguf_writer_u32(w, numbers[i].key, numbers[i].value);
    for (uint32_t i = 0; i <= n_layer; i++) {
        char name[32];
        snprintf(name, sizeof name, i ? "layer.%u" : "token_embd.weight", i);
        gguf_writer_tensor(w, (struct gguf_str){name, strlen(name)}, f32, 2,
                           (uint64_t[]){s->n_embd, 1});
    }
    bool done = gguf_writer_begin(w, path, &err);
    for (uint32_t i = 0; done && i <= n_layer; i++)
        done = gguf_writer_data(w, row, s->n_embd * sizeof *row, &err);
    struct gguf_file *file = done && gguf_writer_end(w, &err) ? gguf_open(path, &err) : NULL;
    unlink(path);
    gguf_writer_free(w);
    free(row);
    if (!file) die(&err);
    return file;
}

/* Creates the weight of a row of the model: matrices in Q4_K, except the embeddings. */
static bool make_weight(void *user, const struct model_tensor_row *row, const char *prefix,
                        void *self)
{
    (void)user;
    const bool matrix = row->kind == MODEL_LINEAR && *prefix;
    if (row->need == MODEL_OPTIONAL && strcmp(row->name, "token_embd") != 0) return true;
    /* In vectors, norms and linears the pointer to the weight is the first member. */
    *(struct engine_tensor **)((char *)self + row->field - 1) =
        weight(matrix ? QUANT_Q4_K : QUANT_F32, model_row_size(self, row->inputs),
               model_row_size(self, row->outputs));
    return true;
}

/* The time of a step that only worker 0 runs. */
static double step_ns(const struct engine *engine, const struct engine_plan *plan,
                      const struct engine_step *step)
{
    const struct engine_worker lone = {.nth = 1};
    const struct engine_task task = {.worker = &lone,
                                     .cpu = engine->cpu,
                                     .scratch = plan->memory[0].scratch,
                                     .scratch_size = (int64_t)plan->memory[0].scratch_bytes};
    const struct engine_cpu_op *row = step->row;
    double took[ROUNDS];
    for (int i = 0; i < ROUNDS; i++) {
        double start = now_ns();
        for (int k = 0; k < 20; k++) row->run(&task, step->node);
        took[i] = (now_ns() - start) / 20;
    }
    return support_median(took, ROUNDS);
}

static struct count count_steps(struct engine *engine, const struct shape *s, uint32_t n_layer)
{
    struct base_error err = BASE_ERROR_INIT;
    const struct quant_type *f16 = quant_type_by_id(QUANT_F16);
    const struct model_state_options options = {
        .n_seq = 1, .n_ctx = N_CTX, .n_batch = 1, .type_k = f16, .type_v = f16};
    struct model m = {.engine = engine};
    struct model_state state;
    struct model_graph graph;
    struct count count = {0};
    struct gguf_file *file = keys_of(s, n_layer);
    if (!model_params_read(&m.params, file, &err)) die(&err);
    m.params.n_vocab = m.params.ends.n_vocab = VOCABULARY;
    model_rows_visit(&m.params, make_weight, NULL);
    if (!model_state_init(&state, &m.params, &options, &err) ||
        !model_graph_build(&graph, &m, &state, 1, 1, 1, 1, &err))
        die(&err);
    const struct engine_plan *plan = &graph.graph->plan;
    for (int i = 0; i < plan->n_steps; i++) {
        const struct engine_step *step = &plan->steps[i];
        count.steps++;
        count.barriers += step->barrier;
        count.alone += step->alone;
        if (step->alone) count.alone_ns += step_ns(engine, plan, step);
    }
    engine_graph_free(graph.graph);
    model_state_free(&state);
    model_params_free(&m.params);
    gguf_close(file);
    return count;
}

static void print_count(const char *name, struct count c)
{
    printf("\"%s\": {\"steps\": %d, \"barriers\": %d, \"alone\": %d, \"alone_ns\": %.0f}", name,
           c.steps, c.barriers, c.alone, c.alone_ns);
}

int main(void)
{
    static const int threads[] = {1, 2, 3, 4, 8, 16, 32};
    struct base_error err = BASE_ERROR_INIT;
    struct engine_options options = engine_options_default();
    for (size_t i = 0; i < sizeof threads / sizeof *threads; i++) measure_barrier(threads[i]);
    options.n_threads = 1;
    struct engine *engine = engine_new(&options, &err);
    if (!engine) die(&err);
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++) {
        /* The last layer differs (only rows with requested logits continue), so a middle layer is
         * the difference of two graphs. */
        struct count two = count_steps(engine, &shapes[i], 2);
        struct count three = count_steps(engine, &shapes[i], 3);
        struct count layer = {three.steps - two.steps, three.barriers - two.barriers,
                              three.alone - two.alone, three.alone_ns - two.alone_ns};
        struct count around = {two.steps - 2 * layer.steps, two.barriers - 2 * layer.barriers,
                               two.alone - 2 * layer.alone, two.alone_ns - 2 * layer.alone_ns};
        printf("{\"shape\": \"%s\", ", shapes[i].name);
        print_count("layer", layer);
        printf(", ");
        print_count("around", around);
        printf("}\n");
    }
    engine_free(engine);
    return 0;
}

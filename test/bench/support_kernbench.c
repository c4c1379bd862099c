/* test/bench/support_kernbench.c: one line per type and level: GB/s of file bytes that the kernels
 * read.
 *
 * The memory figure is printed with that of a plain read of the same buffer, measured alternately:
 * such figures drift on shared machines, so only their ratio is meaningful. */
#include "test/bench/support_kernbench.h"
#include "quant/quant.h"
#include "test/support_guard.h"
#include "test/support_level.h"
#include "test/support_random.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { CACHE_BYTES = 384 << 10, MAX_K = 4096, ROWS_PER_CALL = 64 };

/* Processor time, because other processes share the machine. */
static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

struct bench {
    uint8_t *memory;
    size_t memory_bytes;
    struct quant_panel256 *panel; /* also holds panel32, which is smaller */
    float *out;                   /* MAX_K, or the rows of a call */
    float *x;
    char *column; /* x in the form of a type */
    uint64_t sink;
};

static void *array(size_t bytes)
{
    void *p = aligned_alloc(64, (bytes + 127) / 64 * 64);
    if (!p) exit(1);
    memset(p, 0, (bytes + 127) / 64 * 64);
    return p;
}

/* GB/s of reading every line once. */
static double read_speed(struct bench *b)
{
    double start = now();
    uint64_t sum[8] = {0};
    for (size_t i = 0; i + 64 <= b->memory_bytes; i += 64) {
        uint64_t v[8];
        __builtin_prefetch(b->memory + i + 4096, 0, 2);
        memcpy(v, b->memory + i, sizeof v);
        for (int j = 0; j < 8; j++) sum[j] += v[j];
    }
    for (int j = 0; j < 8; j++) b->sink += sum[j];
    return (double)b->memory_bytes / (now() - start) / 1e9;
}

struct job {
    const struct quant_type *type;
    const struct quant_kernel *kernel;
    struct cpu_prefetch prefetch;
    struct quant_act act;
    int64_t k;
    size_t row_bytes;
};

static void run_gemv(struct bench *b, const struct job *job, size_t bytes)
{
    int64_t rows = (int64_t)(bytes / job->row_bytes);
    float *out = b->out;
    for (int64_t r = 0; r < rows; r += ROWS_PER_CALL) {
        int64_t n = rows - r < ROWS_PER_CALL ? rows - r : ROWS_PER_CALL;
        quant_gemv(job->kernel, job->prefetch, job->k, b->memory + (size_t)r * job->row_bytes,
                   job->row_bytes, n, 1, &job->act, &out);
    }
}

static void run_unpack(struct bench *b, const struct job *job, size_t bytes)
{
    int64_t rows = (int64_t)(bytes / job->row_bytes);
    for (int64_t r = 0; r + QUANT_PANEL_ROWS <= rows; r += QUANT_PANEL_ROWS) {
        const void *row[QUANT_PANEL_ROWS];
        for (int i = 0; i < QUANT_PANEL_ROWS; i++)
            row[i] = b->memory + (size_t)(r + i) * job->row_bytes;
        job->kernel->unpack(0, job->k / job->type->act->block_len, row, b->panel);
    }
}

static void run_decode(struct bench *b, const struct job *job, size_t bytes)
{
    for (size_t at = 0; at + job->row_bytes <= bytes; at += job->row_bytes)
        job->kernel->decode(0, job->k, b->memory + at, b->out);
}

typedef void run_fn(struct bench *b, const struct job *job, size_t bytes);

/* The best of several runs of about 3 ms. */
static double cache_speed(struct bench *b, const struct job *job, run_fn *run)
{
    double best = 0;
    run(b, job, CACHE_BYTES);
    for (int repeat = 0; repeat < 5; repeat++) {
        double start = now(), end = start;
        int64_t n = 0;
        for (; end - start < 0.003; n++, end = now()) run(b, job, CACHE_BYTES);
        double speed = (double)n * CACHE_BYTES / (end - start) / 1e9;
        if (speed > best) best = speed;
    }
    return best;
}

/* The best of five runs, and the best of five plain reads that alternate with them. */
static double memory_speed(struct bench *b, const struct job *job, double *read)
{
    double best = 0;
    *read = 0;
    for (int repeat = 0; repeat < 5; repeat++) {
        double plain = read_speed(b), start = now();
        run_gemv(b, job, b->memory_bytes);
        double speed = (double)b->memory_bytes / (now() - start) / 1e9;
        if (speed > best) best = speed;
        if (plain > *read) *read = plain;
    }
    return best;
}

static struct job job_new(const struct bench *b, const struct quant_type *type,
                          const struct quant_kernels *kernels, int64_t k)
{
    struct job job = {
        .type = type, .kernel = &kernels->type[type->id], .prefetch = kernels->prefetch, .k = k};
    const struct quant_act_parts parts = quant_act_parts(type->act, MAX_K);
    job.act = quant_act_at(&parts, b->column);
    kernels->quantize[type->act->index](MAX_K, b->x, &job.act);
    job.row_bytes = (size_t)quant_row_size(type, k);
    return job;
}

static void bench_type(struct bench *b, const struct quant_type *type,
                       const struct quant_kernels *kernels)
{
    struct job wide = job_new(b, type, kernels, 4096), narrow = job_new(b, type, kernels, 576);

    printf("%-7s %-11s %7.2f", type->name, cpu_level_name(kernels->level),
           cache_speed(b, &wide, run_gemv));
    if (narrow.k % type->block_len == 0)
        printf(" %7.2f", cache_speed(b, &narrow, run_gemv));
    else
        printf(" %7s", "-");
    if (kernels->level == CPU_SCALAR) {
        printf(" %7s %6s", "-", "-");
    } else {
        double read, speed = memory_speed(b, &wide, &read);
        printf(" %7.2f %5.0f%%", speed, 100 * speed / read);
    }
    if (wide.kernel->unpack)
        printf(" %7.2f", cache_speed(b, &wide, run_unpack));
    else
        printf(" %7s", "-");
    printf(" %7.2f\n", cache_speed(b, &wide, run_decode));
    fflush(stdout);
}

static void bench_act(struct bench *b, const struct quant_kernels *kernels)
{
    printf("%-11s", cpu_level_name(kernels->level));
    for (int i = 0; i < QUANT_ACT_FORMS; i++) {
        const struct quant_act_parts parts = quant_act_parts(quant_act_forms[i], MAX_K);
        const struct quant_act to = quant_act_at(&parts, b->column);
        double start = now(), end = start;
        int64_t n = 0;
        for (; end - start < 0.01; n++, end = now()) kernels->quantize[i](MAX_K, b->x, &to);
        printf(" %8.2f", (double)n * MAX_K * 4 / (end - start) / 1e9);
    }
    printf("\n");
}

int kernbench_run(uint64_t mib)
{
    struct bench b = {.memory_bytes = (size_t)mib << 20};
    uint64_t rng = 1;

    b.memory = array(b.memory_bytes);
    b.panel = array(sizeof(struct quant_panel256) * MAX_K / 256);
    b.out = array(MAX_K * 4);
    b.x = array(MAX_K * 4);
    b.column = array(MAX_K * 4);
    /* Weights whose half-precision numbers are small, never NaN: NaN would not be slower, but is
     * unrealistic. */
    for (size_t i = 0; i < b.memory_bytes; i++) b.memory[i] = (uint8_t)(i * 7 + i / 32) & 0x3f;
    for (int i = 0; i < MAX_K; i++) b.x[i] = support_random_gauss(&rng);

    printf("activations, GB/s of floats\n%-11s", "level");
    for (int i = 0; i < QUANT_ACT_FORMS; i++) printf(" %8s", quant_act_forms[i]->name);
    printf("\n");
    for (int level = CPU_SCALAR; support_level_next(&level); level++) {
        struct quant_kernels kernels;
        quant_kernels_init(&kernels, (enum cpu_level)level);
        bench_act(&b, &kernels);
    }
    printf(
        "\nweights, GB/s of file bytes: gemv from cache (k 4096, 576), from memory (and its share "
        "of a plain read), unpack, decode\n");
    printf("%-7s %-11s %7s %7s %7s %6s %7s %7s\n", "type", "level", "4096", "576", "memory",
           "share", "unpack", "decode");
    for (uint32_t id = 0; id < QUANT_ID_COUNT; id++) {
        const struct quant_type *type = quant_type_by_id(id);
        for (int level = CPU_SCALAR; support_level_next(&level); level++) {
            struct quant_kernels kernels;
            quant_kernels_init(&kernels, (enum cpu_level)level);
            if (type && type->act) bench_type(&b, type, &kernels);
        }
    }
    free(b.memory);
    free(b.panel);
    free(b.out);
    free(b.x);
    free(b.column);
    return b.sink == 42; /* so that the compiler keeps the reads */
}

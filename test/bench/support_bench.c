/* test/bench/support_bench.c: helpers of the measuring tools. See test/bench/support_bench.h. */
#include "test/bench/support_bench.h"
#include "quant/stream.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

double support_seconds(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

_Noreturn void support_die(const struct base_error *err)
{
    char text[512];
    fprintf(stderr, "%s\n", base_error_format(err, text, sizeof(text)));
    exit(1);
}

struct engine *support_engine(struct engine_options options, int n_threads)
{
    struct base_error err = BASE_ERROR_INIT;
    options.n_threads = n_threads;
    struct engine *e = engine_new(&options, &err);
    if (!e) support_die(&err);
    return e;
}

struct engine_tensor support_tensor(enum quant_id type, int n_dims, const int64_t *ne, void *data)
{
    struct engine_tensor t;
    struct base_error err = BASE_ERROR_INIT;
    if (!engine_tensor_init(&t, quant_type_by_id(type), n_dims, ne, data, "leaf", &err))
        support_die(&err);
    return t;
}

void *support_memory(size_t size)
{
    void *p = aligned_alloc(64, (size + 63) / 64 * 64);
    if (!p) exit(4);
    memset(p, 1, size);
    return p;
}

uint64_t support_read(const char *from, size_t bytes, bool to_l1)
{
    enum { LINE = 64, STEP = 8 * LINE };
    uint64_t sum = 0;
    for (size_t at = 0; at < bytes; at += STEP) {
        const size_t left = bytes - at, n = left < STEP ? left : STEP;
        quant_prefetch_translation(from + at + QUANT_SINGLE_DISTANCE, n);
        if (to_l1)
            quant_prefetch_once(from + at + QUANT_SINGLE_DISTANCE, n);
        else
            quant_prefetch(from + at + QUANT_SINGLE_DISTANCE, n);
        for (size_t i = 0; i + sizeof sum <= n; i += LINE) {
            uint64_t word;
            memcpy(&word, from + at + i, sizeof word);
            sum += word;
        }
    }
    return sum;
}

static int by_size(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

double support_median(double *x, size_t n)
{
    qsort(x, n, sizeof *x, by_size);
    return x[n / 2];
}

/* test/bench/bench_sample.c: the time of sampling per token, in microseconds.
 *
 * bench_sample [FILE N_VOCAB]: FILE holds float32 logits [rows][N_VOCAB], as `infer logits -o`
 * writes them. Without a file: 262,144 invented logits, a bell curve with some peaks, like those of
 * models. Prints a table; the history is 512 tokens in which sequences repeat. */
#include "sample/sample.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { ROWS = 8, CALLS = 200, HISTORY = 512 };

static double seconds(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static float *made_up(uint32_t n_vocab)
{
    struct sample_random r;
    float *logits = malloc((size_t)ROWS * n_vocab * sizeof *logits);
    sample_random_seed(&r, 1);
    for (uint32_t i = 0; logits && i < ROWS * n_vocab; i++) {
        double sum = -6.0;
        for (int k = 0; k < 12; k++) sum += sample_random_unit(&r);
        logits[i] = (float)(2.5 * sum) + (sample_random_u32(&r) % 4096 == 0 ? 6.0f : 0.0f);
    }
    for (uint32_t row = 0; logits && row < ROWS; row++)
        for (int k = 0; k < 8; k++)
            logits[(size_t)row * n_vocab + sample_random_u32(&r) % n_vocab] = 20.0f - (float)k;
    return logits;
}

static float *from_file(const char *path, uint32_t n_vocab, uint32_t *rows)
{
    FILE *f = fopen(path, "rb");
    float *logits = malloc((size_t)ROWS * n_vocab * sizeof *logits);
    size_t n = f && logits ? fread(logits, sizeof *logits * n_vocab, ROWS, f) : 0;
    if (f) fclose(f);
    *rows = (uint32_t)n;
    return logits;
}

static int compare(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return x < y ? -1 : x > y;
}

/* On a machine with other work the minimum is the best measure. */
static void print_row(const char *name, double *took, int n)
{
    qsort(took, (size_t)n, sizeof *took, compare);
    printf("%-44s %9.1f %9.1f %9.1f\n", name, took[0] * 1e6, took[n / 2] * 1e6, took[n - 1] * 1e6);
}

static void measure(const char *name, const struct sample_options *o, const float *logits,
                    uint32_t rows, uint32_t n_vocab, const uint64_t *mask)
{
    static double took[CALLS];
    struct base_error err = BASE_ERROR_INIT;
    struct sampler *s = sample_new(o, n_vocab, 4096, &err);
    if (!s) {
        printf("%-44s %s: %s\n", name, err.item, err.text);
        return;
    }
    for (int i = 0; i < HISTORY; i++) sample_accept(s, 1000 + i * i % 61);
    for (int i = 0; i < CALLS; i++) {
        const double start = seconds();
        if (mask) sample_restrict(s, mask);
        const int32_t id = sample_next(s, logits + (size_t)((uint32_t)i % rows) * n_vocab, &err);
        sample_accept(s, id);
        took[i] = seconds() - start;
    }
    print_row(name, took, CALLS);
    sample_free(s);
}

static void measure_all(const float *logits, uint32_t rows, uint32_t n_vocab, const uint64_t *mask)
{
    const struct sample_options standard = sample_options_default();
    struct sample_options open = standard, o;
    open.top_k = 0;
    open.top_p = 1;
    open.min_p = 0;
    measure("the default", &standard, logits, rows, n_vocab, NULL);
    measure("the default under a mask", &standard, logits, rows, n_vocab, mask);
    o = standard;
    o.temp = 0;
    measure("greedy", &o, logits, rows, n_vocab, NULL);
    o = standard;
    o.repeat_penalty = 1.1f;
    o.frequency_penalty = 0.1f;
    o.repeat_last_n = -1;
    measure("default, penalties over 512", &o, logits, rows, n_vocab, NULL);
    o.dry_multiplier = 0.8f;
    measure("default, penalties, DRY over 512", &o, logits, rows, n_vocab, NULL);
    o.top_n_sigma = 1;
    o.typical_p = 0.95f;
    o.xtc_probability = 0.5f;
    o.dynatemp_range = 0.3f;
    measure("everything with top-k 40", &o, logits, rows, n_vocab, NULL);
#define WITH(name, ...)                                                                            \
    do {                                                                                           \
        o = open;                                                                                  \
        __VA_ARGS__;                                                                               \
        measure(name, &o, logits, rows, n_vocab, NULL);                                            \
    } while (0)
    WITH("temperature only, whole vocabulary", (void)0);
    WITH("min-p 0.05 only", o.min_p = 0.05f);
    WITH("top-p 0.95 only", o.top_p = 0.95f);
    WITH("top-n-sigma 1 only", o.top_n_sigma = 1);
    WITH("typical 0.95 only", o.typical_p = 0.95f);
    WITH("XTC only", o.xtc_probability = 0.5f);
    WITH("dynamic temperature only", o.dynatemp_range = 0.3f);
    WITH("adaptive-p only", o.adaptive_target = 0.5f);
    WITH("min-p, adaptive-p", o.min_p = 0.05f; o.adaptive_target = 0.5f);
    WITH("mirostat 1", o.mirostat = 1);
    WITH("mirostat 2", o.mirostat = 2);
#undef WITH
    struct sample_logprob best[20];
    double took[20];
    for (int i = 0; i < 20; i++) {
        const double start = seconds();
        double of_id;
        sample_logprobs(cpu_level_best(), logits + (size_t)((uint32_t)i % rows) * n_vocab, n_vocab,
                        20, best, 0, &of_id);
        took[i] = seconds() - start;
    }
    print_row("sample_logprobs, 20 best", took, 20);
}

int main(int argc, char **argv)
{
    uint32_t n_vocab = 262144, rows = ROWS;
    if (argc > 2) n_vocab = (uint32_t)strtoul(argv[2], NULL, 10);
    float *logits = argc > 2 ? from_file(argv[1], n_vocab, &rows) : made_up(n_vocab);
    uint64_t *mask = malloc((n_vocab / 64 + 1) * sizeof *mask);
    if (!logits || !mask || rows == 0) {
        fprintf(stderr, "bench_sample: no logits\n");
        return 1;
    }
    for (uint32_t i = 0; i <= n_vocab / 64; i++) mask[i] = ~((uint64_t)0x8100040 << i % 37);
    printf("%-44s %9s %9s %9s\n", "microseconds per token", "least", "median", "worst");
    measure_all(logits, rows, n_vocab, mask);
    free(logits);
    free(mask);
    return 0;
}

/* test/bench/bench_read_ahead.c: what it gains that a sampler reads logits while the model makes
 * them.
 *
 * bench_read_ahead MODEL [TOKENS]: generates TOKENS (500) twice over with the default samplers, in
 * turn with a watch and without, and prints the median microseconds of evaluating and of choosing.
 * Token by token, because a machine changes within seconds. */
#include "models/model.h"
#include "sample/sample.h"
#include "test/bench/support_bench.h"
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum { N_CTX = 512, KEPT = 64 };

static double microseconds(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e6 + (double)t.tv_nsec * 1e-3;
}

static void begin(void *sampler, const float *logits)
{
    sample_begin(sampler, logits);
}

static void made(void *sampler, int64_t first, int64_t n)
{
    sample_made(sampler, (uint32_t)first, (uint32_t)n);
}

struct call {
    sample_part_fn *part;
    void *data;
};

static void job(const struct engine_worker *worker, void *data)
{
    const struct call *call = data;
    call->part(call->data, worker->ith, worker->nth);
}

static void on_pool(void *pool, sample_part_fn *part, void *data)
{
    engine_pool_run(pool, job, &(struct call){part, data});
}

int main(int argc, char **argv)
{
    struct base_error err = BASE_ERROR_INIT;
    const struct engine_options engine_options = engine_options_default();
    struct model_session_options session_options = model_session_options_default();
    struct sample_options sampling = sample_options_default();
    const size_t n = argc > 2 ? strtoul(argv[2], NULL, 10) : 500;
    double *took[2][2] = {{malloc(n * 8), malloc(n * 8)}, {malloc(n * 8), malloc(n * 8)}};
    session_options.n_ctx = N_CTX;
    struct gguf_file *file = argc > 1 ? gguf_open(argv[1], &err) : NULL;
    struct engine *engine = file ? engine_new(&engine_options, &err) : NULL;
    struct model *model = engine ? model_open(file, engine, &err) : NULL;
    struct model_session *s = model ? model_session_new(model, &session_options, &err) : NULL;
    if (engine) sampling.together_context = engine->pool;
    sampling.together = on_pool;
    struct sampler *sampler =
        s ? sample_new(&sampling, model_facts(model)->n_vocab, N_CTX, &err) : NULL;
    bool ok = sampler && n > 0 && took[0][0] && took[0][1] && took[1][0] && took[1][1];
    const struct model_watch watch = {begin, made, sampler};
    int32_t id = 2;
    for (size_t i = 0; ok && i < 2 * n; i++) {
        if (model_session_length(s) == N_CTX) model_session_truncate(s, KEPT);
        model_session_watch(s, i % 2 ? &watch : NULL);
        const double start = microseconds();
        ok = model_eval(s, &id, 1, MODEL_LOGITS_LAST, NULL, NULL, &err);
        const double middle = microseconds();
        if (ok) ok = (id = sample_next(sampler, model_last_logits(s), &err)) >= 0;
        took[i % 2][0][i / 2] = middle - start;
        took[i % 2][1][i / 2] = microseconds() - middle;
    }
    for (int i = 0; ok && i < 2; i++)
        printf("%-15s evaluate %8.1f us, choose %6.1f us\n", i ? "read ahead" : "read afterwards",
               support_median(took[i][0], n), support_median(took[i][1], n));
    if (!ok) fprintf(stderr, "bench_read_ahead MODEL [TOKENS]: %s\n", err.text);
    for (int i = 0; i < 4; i++) free(took[i / 2][i % 2]);
    sample_free(sampler);
    model_session_free(s);
    model_close(model);
    engine_free(engine);
    gguf_close(file);
    return ok ? 0 : 1;
}

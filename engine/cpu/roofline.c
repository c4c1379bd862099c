/* engine/cpu/roofline.c: microbenchmarks for the two limits of inference. See
 * engine/cpu/roofline.h. */
#include "engine/cpu/roofline.h"
#include "base/clock.h"
#include "base/interrupt.h"
#include "base/memory.h"
#include "base/os.h"
#include "engine/backend.h"
#include "engine/cpu/isa/isa.h"
#include <stdlib.h>

enum {
    PASSES = 6,
    PAGE = 4096,
    CHUNK = 1 << 20,         /* bytes that a thread claims at once */
    CLAIMS_PER_THREAD = 200, /* of the multiply loop, per pass */
};
#define BUFFER_BYTES     ((size_t)256 << 20)
#define MIN_BUFFER_BYTES ((size_t)16 << 20)

/* ---- Scalar loops ---- */

static uint64_t read_scalar(const uint64_t *data, size_t bytes)
{
    uint64_t sum[8] = {0};
    for (size_t i = 0; i < bytes / sizeof *data; i += 8)
        for (int l = 0; l < 8; l++) sum[l] ^= data[i + (size_t)l];
    return sum[0] ^ sum[1] ^ sum[2] ^ sum[3] ^ sum[4] ^ sum[5] ^ sum[6] ^ sum[7];
}

static int32_t multiply_scalar(int32_t seed)
{
    int32_t sum[ENGINE_ROOFLINE_CHAINS] = {0};
    for (int i = 0; i < ENGINE_ROOFLINE_STEPS; i++)
        for (int c = 0; c < ENGINE_ROOFLINE_CHAINS; c++)
            sum[c] += (uint8_t)(seed + i) * (int8_t)(seed + c);
    for (int c = 1; c < ENGINE_ROOFLINE_CHAINS; c++) sum[0] += sum[c];
    return sum[0];
}

static const struct engine_roofline_loops loops_scalar = {
    .read = {read_scalar, read_scalar}, .multiply = multiply_scalar, .lanes = 1};

static const struct engine_roofline_loops *loops_of(const struct engine_cpu *e)
{
    const struct engine_roofline_loops *loops =
        cpu_row(e->quant.level, engine_isa_here()->roofline);
    return loops ? loops : &loops_scalar;
}

/* Runs `work` PASSES times and returns the best rate; *pass is the number of the run. */
static double best_rate(struct engine_pool *pool, double work, int *pass,
                        void (*job)(const struct engine_worker *, void *), void *data)
{
    double best = 0;
    for (*pass = 0; *pass < PASSES && !base_interrupted(); ++*pass) {
        const double start = base_seconds();
        engine_pool_run(pool, job, data);
        const double rate = work / (base_seconds() - start);
        if (rate > best) best = rate;
    }
    return best;
}

/* ---- Reading ---- */

struct read_job {
    const uint64_t *data;
    size_t bytes;
    const struct engine_roofline_loops *loops;
    uint64_t *seen; /* [threads]: a result, so that the compiler cannot remove the reads */
    int pass;
};

static void read_all(const struct engine_worker *w, void *user)
{
    struct read_job *job = user;
    const int64_t total = (int64_t)(job->bytes / CHUNK);
    uint64_t seen = 0;
    for (int64_t c; (c = engine_pool_claim(w, 1)) < total && !base_interrupted();)
        seen ^= job->loops->read[job->pass % 2](job->data + (size_t)c * (CHUNK / sizeof *job->data),
                                                CHUNK);
    job->seen[w->ith] ^= seen;
}

uint64_t engine_roofline_bytes(void)
{
    const uint64_t half = base_memory_half(BUFFER_BYTES) / ENGINE_HUGE_PAGE * ENGINE_HUGE_PAGE;
    return half > MIN_BUFFER_BYTES ? half : MIN_BUFFER_BYTES;
}

double engine_roofline_bandwidth(struct engine_cpu *e, struct base_error *err)
{
    struct read_job job = {.bytes = (size_t)engine_roofline_bytes(), .loops = loops_of(e)};
    double best = 0;
    uint64_t *data = aligned_alloc(ENGINE_HUGE_PAGE, job.bytes);
    job.seen = calloc((size_t)engine_pool_threads(e->pool), sizeof *job.seen);
    if (!data || !job.seen) {
        base_fail(err, BASE_NO_MEMORY, "no memory to measure the bandwidth with");
        goto done;
    }
    /* Huge pages are read fastest, and mapped weights may use them. */
    base_os_huge_pages(data, job.bytes);
    /* Unwritten pages would all map the same page of zeros. */
    for (size_t i = 0; i < job.bytes / sizeof *data; i += PAGE / sizeof *data) data[i] = i;
    job.data = data;
    best = best_rate(e->pool, (double)job.bytes, &job.pass, read_all, &job);
done:
    free(data);
    free(job.seen);
    return best;
}

/* ---- Multiplying ---- */

struct multiply_job {
    const struct engine_roofline_loops *loops;
    int64_t claims;
    int32_t *seen; /* [threads] */
    int pass;
};

static void multiply_all(const struct engine_worker *w, void *user)
{
    struct multiply_job *job = user;
    int32_t seen = 0;
    for (int64_t c; (c = engine_pool_claim(w, 1)) < job->claims && !base_interrupted();)
        seen ^= job->loops->multiply((int32_t)c);
    job->seen[w->ith] ^= seen;
}

double engine_roofline_int8(struct engine_cpu *e)
{
    const int threads = engine_pool_threads(e->pool);
    struct multiply_job job = {loops_of(e), (int64_t)threads * CLAIMS_PER_THREAD, NULL, 0};
    job.seen = calloc((size_t)threads, sizeof *job.seen);
    if (!job.seen) return 0;
    const double work =
        (double)job.claims * ENGINE_ROOFLINE_STEPS * ENGINE_ROOFLINE_CHAINS * job.loops->lanes;
    const double best = best_rate(e->pool, work, &job.pass, multiply_all, &job);
    free(job.seen);
    return best;
}

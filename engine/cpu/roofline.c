/* engine/cpu/roofline.c: microbenchmarks for the two limits of inference. See
 * engine/cpu/roofline.h. */
#include "engine/cpu/roofline.h"
#include "base/clock.h"
#include "base/interrupt.h"
#include "base/memory.h"
#include "base/unroll.h"
#include "engine/backend.h"
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

enum {
    PASSES = 6,
    CHUNK = 1 << 20,         /* bytes that a thread claims at once */
    STEPS = 2000,            /* rounds of the multiply loop per claim */
    CHAINS = 12,             /* independent accumulators: enough to hide the latency */
    CLAIMS_PER_THREAD = 200, /* of the multiply loop, per pass */
};
#define BUFFER_BYTES     ((size_t)256 << 20)
#define MIN_BUFFER_BYTES ((size_t)16 << 20)

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
    uint64_t (*read[2])(const uint64_t *data, size_t bytes); /* used in even and in odd passes */
    uint64_t *seen; /* [threads]: a result, so that the compiler cannot remove the reads */
    int pass;
};

static uint64_t read_scalar(const uint64_t *data, size_t bytes)
{
    uint64_t sum[8] = {0};
    for (size_t i = 0; i < bytes / sizeof *data; i += 8)
        for (int l = 0; l < 8; l++) sum[l] ^= data[i + (size_t)l];
    return sum[0] ^ sum[1] ^ sum[2] ^ sum[3] ^ sum[4] ^ sum[5] ^ sum[6] ^ sum[7];
}

#if defined(__x86_64__)
CPU_TARGET_AVX2 static uint64_t fold_avx2(const __m256i sum[4])
{
    __m256i all =
        _mm256_xor_si256(_mm256_xor_si256(sum[0], sum[1]), _mm256_xor_si256(sum[2], sum[3]));
    return (uint64_t)_mm256_extract_epi64(all, 0) ^ (uint64_t)_mm256_extract_epi64(all, 3);
}

CPU_TARGET_AVX2 static uint64_t read_avx2(const uint64_t *data, size_t bytes)
{
    __m256i sum[4] = {0};
    const __m256i *v = (const __m256i *)data;
    for (size_t i = 0; i < bytes / sizeof *v; i += 4)
        for (size_t l = 0; l < 4; l++)
            sum[l] = _mm256_xor_si256(sum[l], _mm256_loadu_si256(v + i + l));
    return fold_avx2(sum);
}

/* Reads four address streams: faster on some processors, slower on others. */
CPU_TARGET_AVX2 static uint64_t read_strided_avx2(const uint64_t *data, size_t bytes)
{
    __m256i sum[4] = {0};
    const __m256i *v = (const __m256i *)data;
    const size_t quarter = bytes / sizeof *v / 4;
    for (size_t i = 0; i < quarter; i += 2)
        for (size_t s = 0; s < 4; s++)
            for (size_t l = 0; l < 2; l++)
                sum[s] = _mm256_xor_si256(sum[s], _mm256_loadu_si256(v + s * quarter + i + l));
    return fold_avx2(sum);
}
#endif

static void read_all(const struct engine_worker *w, void *user)
{
    struct read_job *job = user;
    const int64_t total = (int64_t)(job->bytes / CHUNK);
    uint64_t seen = 0;
    for (int64_t c; (c = engine_pool_claim(w, 1)) < total && !base_interrupted();)
        seen ^=
            job->read[job->pass % 2](job->data + (size_t)c * (CHUNK / sizeof *job->data), CHUNK);
    job->seen[w->ith] ^= seen;
}

double engine_roofline_bandwidth(struct engine_cpu *e, struct base_error *err)
{
    const size_t half =
        (size_t)base_memory_half(BUFFER_BYTES) / ENGINE_HUGE_PAGE * ENGINE_HUGE_PAGE;
    struct read_job job = {.bytes = half > MIN_BUFFER_BYTES ? half : MIN_BUFFER_BYTES,
                           .read = {read_scalar, read_scalar}};
    double best = 0;
    uint64_t *data = aligned_alloc(ENGINE_HUGE_PAGE, job.bytes);
    job.seen = calloc((size_t)engine_pool_threads(e->pool), sizeof *job.seen);
    if (!data || !job.seen) {
        base_fail(err, BASE_NO_MEMORY, "no memory to measure the bandwidth with");
        goto done;
    }
    /* Huge pages are read fastest, and mapped weights may use them. */
    (void)madvise(data, job.bytes, MADV_HUGEPAGE);
    memset(data, 0x5a, job.bytes); /* writes to each page, because unwritten pages all map the same
                                      page of zeros */
    job.data = data;
#if defined(__x86_64__)
    if (cpu_has(e->quant.level, CPU_AVX2)) {
        job.read[0] = read_avx2;
        job.read[1] = read_strided_avx2;
    }
#endif
    best = best_rate(e->pool, (double)job.bytes, &job.pass, read_all, &job);
done:
    free(data);
    free(job.seen);
    return best;
}

/* ---- Multiplying ---- */

struct multiply_job {
    int32_t (*multiply)(int32_t seed); /* STEPS * CHAINS * lanes multiply-adds */
    int64_t claims;
    int32_t *seen; /* [threads] */
    int pass;
};

static int32_t multiply_scalar(int32_t seed)
{
    int32_t sum[CHAINS] = {0};
    for (int i = 0; i < STEPS; i++)
        for (int c = 0; c < CHAINS; c++) sum[c] += (uint8_t)(seed + i) * (int8_t)(seed + c);
    for (int c = 1; c < CHAINS; c++) sum[0] += sum[c];
    return sum[0];
}

#if defined(__x86_64__)
/* The compiler cannot merge steps across the empty statement, which may change the accumulator. The
 * loops over accumulators are unrolled to keep these in registers; in memory they halve the rate.
 */
CPU_TARGET_AVX2 static int32_t multiply_avx2(int32_t seed)
{
    __m256i sum[CHAINS];
    const __m256i a = _mm256_set1_epi32(seed), ones = _mm256_set1_epi16(1);
    EACH (c, CHAINS) sum[c] = _mm256_set1_epi32(c);
    for (int i = 0; i < STEPS; i++) {
        EACH (c, CHAINS) {
            __m256i pairs = _mm256_maddubs_epi16(a, sum[c]);
            sum[c] = _mm256_add_epi32(sum[c], _mm256_madd_epi16(pairs, ones));
            __asm__("" : "+x"(sum[c]));
        }
    }
    __m256i all = _mm256_setzero_si256();
    EACH (c, CHAINS) all = _mm256_add_epi32(all, sum[c]);
    return _mm256_extract_epi32(all, 0);
}

/* In assembly, because older compilers do not have the intrinsic of AVX-VNNI. */
CPU_TARGET_AVX2 static int32_t multiply_avxvnni(int32_t seed)
{
    __m256i sum[CHAINS];
    const __m256i a = _mm256_set1_epi32(seed), b = _mm256_set1_epi32(seed + 1);
    EACH (c, CHAINS) sum[c] = _mm256_set1_epi32(c);
    for (int i = 0; i < STEPS; i++)
        EACH (c, CHAINS) __asm__("%{vex%} vpdpbusd %2, %1, %0" : "+x"(sum[c]) : "x"(a), "x"(b));
    __m256i all = _mm256_setzero_si256();
    EACH (c, CHAINS) all = _mm256_add_epi32(all, sum[c]);
    return _mm256_extract_epi32(all, 0);
}

CPU_TARGET_AVX512 static int32_t multiply_avx512(int32_t seed)
{
    __m512i sum[CHAINS];
    const __m512i a = _mm512_set1_epi32(seed), b = _mm512_set1_epi32(seed + 1);
    EACH (c, CHAINS) sum[c] = _mm512_set1_epi32(c);
    for (int i = 0; i < STEPS; i++) {
        EACH (c, CHAINS) {
            sum[c] = _mm512_dpbusd_epi32(sum[c], a, b);
            __asm__("" : "+v"(sum[c]));
        }
    }
    __m512i all = _mm512_setzero_si512();
    EACH (c, CHAINS) all = _mm512_add_epi32(all, sum[c]);
    return _mm512_cvtsi512_si32(all);
}
#endif

static void multiply_all(const struct engine_worker *w, void *user)
{
    struct multiply_job *job = user;
    int32_t seen = 0;
    for (int64_t c; (c = engine_pool_claim(w, 1)) < job->claims && !base_interrupted();)
        seen ^= job->multiply((int32_t)c);
    job->seen[w->ith] ^= seen;
}

double engine_roofline_int8(struct engine_cpu *e)
{
    const int threads = engine_pool_threads(e->pool);
    struct multiply_job job = {multiply_scalar, (int64_t)threads * CLAIMS_PER_THREAD, NULL, 0};
    double lanes = 1;
#if defined(__x86_64__)
    if (cpu_has(e->quant.level, CPU_AVX2)) {
        job.multiply = multiply_avx2;
        lanes = 32;
    }
    if (e->quant.level == CPU_AVXVNNI) job.multiply = multiply_avxvnni;
    if (cpu_has(e->quant.level, CPU_AVX512)) {
        job.multiply = multiply_avx512;
        lanes = 64;
    }
#endif
    job.seen = calloc((size_t)threads, sizeof *job.seen);
    if (!job.seen) return 0;
    const double work = (double)job.claims * STEPS * CHAINS * lanes;
    const double best = best_rate(e->pool, work, &job.pass, multiply_all, &job);
    free(job.seen);
    return best;
}

/* sample/logprob.c: the model's own log-probabilities, before any sampler.
 *
 * One pass over the vocabulary collects the best ids in the caller's array, as a heap with the
 * worst first; a second pass sums the weights. Errors of the logarithms are below 1e-6. */
#include "sample/block.h"
#include "sample/exp.h"
#include "sample/sample.h"
#include <float.h>
#include <math.h>
#include <string.h>

static bool before(struct sample_logprob a, struct sample_logprob b)
{
    return a.logprob > b.logprob || (a.logprob == b.logprob && a.id < b.id);
}

/* Restores a worst-first heap by moving the entry at i down. */
static void sink(struct sample_logprob *heap, uint32_t n, uint32_t i)
{
    struct sample_logprob moving = heap[i];
    for (;;) {
        uint64_t child = 2 * (uint64_t)i + 1;
        if (child >= n) break;
        if (child + 1 < n && before(heap[child], heap[child + 1])) child++;
        if (!before(moving, heap[child])) break;
        heap[i] = heap[child];
        i = (uint32_t)child;
    }
    heap[i] = moving;
}

/* Copies block b of the logits without NaN and infinity. */
static void read_block(const struct sample_block_kernels *kernels, const float *logits,
                       uint32_t n_vocab, uint32_t b, float x[SAMPLE_BLOCK])
{
    const uint32_t n = n_vocab - b * SAMPLE_BLOCK;
    const float *from = logits + (size_t)b * SAMPLE_BLOCK;
    float last[SAMPLE_BLOCK];
    if (n < SAMPLE_BLOCK) {
        for (int i = 0; i < SAMPLE_BLOCK; i++) last[i] = -INFINITY;
        memcpy(last, from, n * sizeof *from);
        from = last;
    }
    kernels->keep(x, from, -FLT_MAX);
}

static void heapify(struct sample_logprob *heap, uint32_t n)
{
    for (uint32_t i = n / 2; i-- > 0;) sink(heap, n, i);
}

/* Inserts the ids of a block into the heap of the best, with their logits in place of
 * logarithms. */
static uint32_t select_best(const float x[SAMPLE_BLOCK], uint32_t first, uint32_t k, uint32_t n,
                            struct sample_logprob *best)
{
    for (uint32_t i = 0; i < SAMPLE_BLOCK; i++) {
        const struct sample_logprob c = {(int32_t)(first + i), (double)x[i]};
        if (!(x[i] > -INFINITY) || (n == k && !before(c, best[0]))) continue;
        if (n < k) {
            best[n++] = c;
            if (n == k) heapify(best, n);
        } else {
            best[0] = c;
            sink(best, n, 0);
        }
    }
    return n;
}

uint32_t sample_logprobs(enum cpu_level level, const float *logits, uint32_t n_vocab, uint32_t k,
                         struct sample_logprob *best, int32_t id, double *of_id)
{
    const struct sample_block_kernels *kernels = sample_block_kernels(cpu_level_cap(level));
    const uint32_t n_blocks = (n_vocab + SAMPLE_BLOCK - 1) / SAMPLE_BLOCK;
    float x[SAMPLE_BLOCK], top = -INFINITY;
    uint32_t n = 0;
    for (uint32_t b = 0; b < n_blocks; b++) {
        read_block(kernels, logits, n_vocab, b, x);
        const float bound = kernels->bound(x, UINT64_MAX);
        if (bound > top) top = bound;
        if (k > 0 && bound > -INFINITY && (n < k || (double)bound > best[0].logprob))
            n = select_best(x, b * SAMPLE_BLOCK, k, n, best);
    }
    double sum = 0.0;
    for (uint32_t b = 0; top > -INFINITY && b < n_blocks; b++) {
        read_block(kernels, logits, n_vocab, b, x);
        float own;
        kernels->sum[SAMPLE_WEIGHTS](x, &top, 1, 1.0f, -FLT_MAX,
                                     (struct sample_block_sums){.sum = &own});
        sum += (double)own;
    }
    const double all = (double)top + sample_log(sum);
    if (of_id) *of_id = -INFINITY;
    if (of_id && id >= 0 && (uint32_t)id < n_vocab && logits[id] > -INFINITY)
        *of_id = (logits[id] < FLT_MAX ? (double)logits[id] : (double)FLT_MAX) - all;
    if (n < k) heapify(best, n);
    for (uint32_t end = n; end-- > 1;) { /* moves the worst to the end */
        struct sample_logprob worst = best[0];
        best[0] = best[end];
        best[end] = worst;
        sink(best, end, 0);
    }
    for (uint32_t i = 0; i < n; i++) best[i].logprob -= all;
    return n;
}

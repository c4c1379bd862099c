/* sample/logprob.c: the model's own log-probabilities, before any sampler.
 *
 * One pass over the vocabulary collects the best ids, sorted, in the caller's array; a second pass
 * sums the weights. Errors of the logarithms are below 1e-6. */
#include "base/elementary.h"
#include "sample/block.h"
#include "sample/sample.h"
#include <float.h>
#include <math.h>

static bool before(struct sample_logprob a, struct sample_logprob b)
{
    return a.logprob > b.logprob || (a.logprob == b.logprob && a.id < b.id);
}

/* Inserts the ids of a block into the sorted best[n], with their logits in place of logarithms.
 * Returns their new number, at most k. */
static uint32_t insert_best(const float x[SAMPLE_BLOCK], uint32_t first, uint32_t k, uint32_t n,
                            struct sample_logprob *best)
{
    for (uint32_t i = 0; i < SAMPLE_BLOCK; i++) {
        const struct sample_logprob c = {(int32_t)(first + i), (double)x[i]};
        if (!(x[i] > -INFINITY) || (n == k && !before(c, best[k - 1]))) continue;
        uint32_t at = n < k ? n++ : k - 1;
        for (; at > 0 && before(c, best[at - 1]); at--) best[at] = best[at - 1];
        best[at] = c;
    }
    return n;
}

static void read_block(const float *logits, uint32_t n_vocab, uint32_t b, float x[SAMPLE_BLOCK])
{
    const uint32_t rest = n_vocab - b * SAMPLE_BLOCK;
    sample_block_read(x, logits + (size_t)b * SAMPLE_BLOCK,
                      rest < SAMPLE_BLOCK ? rest : SAMPLE_BLOCK, UINT64_MAX);
}

uint32_t sample_logprobs(enum cpu_level level, const float *logits, uint32_t n_vocab, uint32_t k,
                         struct sample_logprob *best, int32_t id, double *of_id)
{
    const struct sample_block_kernels *kernels = sample_block_kernels(cpu_level_cap(level));
    const uint32_t n_blocks = (n_vocab + SAMPLE_BLOCK - 1) / SAMPLE_BLOCK;
    float x[SAMPLE_BLOCK], top = -INFINITY;
    uint32_t n = 0;
    for (uint32_t b = 0; b < n_blocks; b++) {
        float bound;
        read_block(logits, n_vocab, b, x);
        kernels->bounds(x, NULL, 1, &bound);
        if (bound > top) top = bound;
        if (k > 0 && bound > -INFINITY && (n < k || (double)bound > best[k - 1].logprob))
            n = insert_best(x, b * SAMPLE_BLOCK, k, n, best);
    }
    double sum = 0.0;
    for (uint32_t b = 0; top > -INFINITY && b < n_blocks; b++) {
        read_block(logits, n_vocab, b, x);
        sum += (double)kernels->sum[SAMPLE_WEIGHTS](x, top, 1.0f).sum;
    }
    const double all = (double)top + base_log(sum);
    if (of_id) *of_id = -INFINITY;
    if (of_id && id >= 0 && (uint32_t)id < n_vocab && logits[id] > -INFINITY)
        *of_id = (logits[id] < FLT_MAX ? (double)logits[id] : (double)FLT_MAX) - all;
    for (uint32_t i = 0; i < n; i++) best[i].logprob -= all;
    return n;
}

double sample_entropy(enum cpu_level level, const float *logits, uint32_t n_vocab)
{
    const struct sample_block_kernels *kernels = sample_block_kernels(cpu_level_cap(level));
    const uint32_t n_blocks = (n_vocab + SAMPLE_BLOCK - 1) / SAMPLE_BLOCK;
    float x[SAMPLE_BLOCK], top = -INFINITY, bound;
    double sum = 0.0, second = 0.0;
    for (uint32_t b = 0; b < n_blocks; b++) {
        read_block(logits, n_vocab, b, x);
        kernels->bounds(x, NULL, 1, &bound);
        if (bound > top) top = bound;
    }
    for (uint32_t b = 0; top > -INFINITY && b < n_blocks; b++) {
        read_block(logits, n_vocab, b, x);
        const struct sample_block_sums sums = kernels->sum[SAMPLE_ENTROPY](x, top, 1.0f);
        sum += (double)sums.sum;
        second += (double)sums.second;
    }
    return sum > 0.0 ? base_log(sum) - second / sum : 0.0;
}

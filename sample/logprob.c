/* sample/logprob.c: what the model itself said: log-probabilities before any sampler.
 *
 * Owns nothing. The caller's array serves as a heap, worst first, so that one pass over the
 * vocabulary finds the best. */
#include "sample/exp.h"
#include "sample/sample.h"
#include <float.h>
#include <math.h>

enum { LANES = 16 };

static bool before(struct sample_logprob a, struct sample_logprob b)
{
    return a.logprob > b.logprob || (a.logprob == b.logprob && a.id < b.id);
}

/* Lets the entry at i of a worst-first heap sink to its place. */
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

/* As everywhere in sample/: infinity is the largest number, NaN is impossible. */
static double number(float logit)
{
    if (!(logit > -INFINITY)) return -INFINITY;
    return logit > FLT_MAX ? (double)FLT_MAX : (double)logit;
}

/* The k best logits in the place of their logarithms, unsorted. */
static uint32_t select_best(const float *logits, uint32_t n_vocab, uint32_t k,
                            struct sample_logprob *best)
{
    uint32_t n = 0;
    for (uint32_t id = 0; k > 0 && id < n_vocab; id++) {
        struct sample_logprob c = {(int32_t)id, number(logits[id])};
        if (!(c.logprob > -INFINITY) || (n == k && !before(c, best[0]))) continue;
        if (n < k) {
            best[n++] = c;
            if (n == k)
                for (uint32_t i = n / 2; i-- > 0;) sink(best, n, i);
        } else {
            best[0] = c;
            sink(best, n, 0);
        }
    }
    if (n < k)
        for (uint32_t i = n / 2; i-- > 0;) sink(best, n, i);
    return n;
}

uint32_t sample_logprobs(const float *logits, uint32_t n_vocab, uint32_t k,
                         struct sample_logprob *best, int32_t id, double *of_id)
{
    double top = -INFINITY, lane[LANES] = {0}, sum = 0.0;
    for (uint32_t i = 0; i < n_vocab; i++)
        if (number(logits[i]) > top) top = number(logits[i]);
    if (top > -INFINITY)
        for (uint32_t i = 0; i < n_vocab; i++)
            lane[i % LANES] += sample_exp(number(logits[i]) - top);
    for (int l = 0; l < LANES; l++) sum += lane[l];
    const double all = top + sample_log(sum);
    if (of_id)
        *of_id = id >= 0 && (uint32_t)id < n_vocab && top > -INFINITY ? number(logits[id]) - all
                                                                      : -INFINITY;
    const uint32_t n = select_best(logits, n_vocab, k, best);
    for (uint32_t end = n; end-- > 1;) { /* the worst goes to the end */
        struct sample_logprob worst = best[0];
        best[0] = best[end];
        best[end] = worst;
        sink(best, end, 0);
    }
    for (uint32_t i = 0; i < n; i++) best[i].logprob -= all;
    return n;
}

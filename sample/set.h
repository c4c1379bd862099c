/* sample/set.h: the candidates of one call: the whole vocabulary in blocks, until a stage cuts it
 * to a list. Private to sample/. set.c has the order and the cuts, set_sums.c weights, sums and
 * draws.
 *
 * Candidates have a total order, by descending logit and then ascending id, so every rule has one
 * result, independent of the selection algorithm. Neither a vocabulary of 262,144 tokens nor a list
 * is sorted: the largest logit of each block decides which blocks are read, and partitions select.
 * Logits are finite; impossible ids have -infinity and are in no list.
 *
 * The probability of a candidate is exp((logit - best) / temp) divided by the sum over all
 * candidates. Temperature is one number until a rule needs the divided logits. */
#pragma once

#include "base/error.h"
#include "sample/block.h"
#include "sample/sample.h"

struct sample_candidate {
    float logit;
    int32_t id;
};
static inline bool sample_better(struct sample_candidate a, struct sample_candidate b)
{
    return (a.logit > b.logit) | ((a.logit == b.logit) & (a.id < b.id));
}

enum { SAMPLE_GROUP = 64 }; /* blocks per group; sums of blocks are added up by groups */

struct sample_set {
    uint32_t n_vocab, n_blocks, n_groups;
    const float *given;      /* [n_vocab]: the caller's logits */
    const uint64_t *allowed; /* [n_blocks]: the caller's mask, or NULL */
    float *logit;            /* [n_blocks * 64]: copies of blocks without impossible ids */
    bool *copied;            /* [n_blocks] */
    float *block_max; /* [n_groups * 64]: the largest logit of the block; -infinity: no candidate,
                       * and the copy is not up to date */
    double temp;
    const struct sample_block_kernels *kernels;

    /* The latest sums over the blocks: */
    float *group_max;    /* [n_groups]: the largest block_max of the group */
    float *block_sum;    /* [n_groups * 64]: weights relative to block_max */
    double *group_share; /* [n_groups]: weights relative to the best candidate */

    bool is_list;                  /* false: the candidates are all possible ids */
    struct sample_candidate *list; /* [n_vocab]: the candidates of a cut set, in any order */
    uint32_t n;                    /* their number */
};

bool sample_set_init(struct sample_set *set, uint32_t n_vocab, enum cpu_level level,
                     struct base_error *err);
void sample_set_free(struct sample_set *set);

/* Begins a call with logits[n_vocab] (NaN is impossible, infinity the largest number) and `allowed`
 * as in sample_restrict. Both must exist until the next call. */
void sample_set_load(struct sample_set *set, const float *logits, const uint64_t *allowed);

/* Returns the logits [64] of a block that has candidates; impossible ids have -infinity or NaN. */
const float *sample_set_block(struct sample_set *set, uint32_t b);

/* Returns the logit of an id, -infinity or NaN if it is impossible. Only for an uncut set. */
float sample_set_logit(struct sample_set *set, int32_t id);

/* Converts to float; overflow becomes the largest number, because infinity means "impossible". */
float sample_saturate(double logit);

/* Sets the logit of a candidate of an uncut set, -infinity to remove it. */
void sample_set_change(struct sample_set *set, int32_t id, float logit);

/* Sets the logit of every id in ids[n] (each occurs once) to the result of `change`. For a list,
 * `change` is called for every candidate and must return the logit of ids outside ids[]
 * unchanged. */
typedef float sample_change_fn(const void *state, int32_t id, float logit);
void sample_set_adjust(struct sample_set *set, const int32_t *ids, uint32_t n,
                       sample_change_fn *change, const void *state);

/* Returns the best candidate; its id is -1 if the set is empty. */
struct sample_candidate sample_set_best(struct sample_set *set);

/* -- cuts: the set becomes a list -- */

/* A set with more candidates than this remains the vocabulary, without the removed candidates,
 * whose draws are in the order of ids. */
enum { SAMPLE_LONG_LIST = 1024 };
void sample_set_keep_best(struct sample_set *set, uint32_t k);        /* all if there are fewer */
void sample_set_keep_above(struct sample_set *set, double threshold); /* logits >= threshold */

/* Puts the candidates with logits >= threshold at the beginning of the list and returns their
 * number. The set stays as it is until sample_set_keep_list makes it list[0..n), however many they
 * are. */
uint32_t sample_set_list(struct sample_set *set, double threshold);
void sample_set_keep_list(struct sample_set *set, uint32_t n);

/* Sorts the list of a cut set, the best candidate first. */
void sample_set_sort(struct sample_set *set);

/* Moves a candidate of list[n], n > 0, to its rank in an order, after those that precede it, and
 * returns its index. The order is the caller's or (NULL) the usual one. */
typedef bool sample_first_fn(const void *order, struct sample_candidate a,
                             struct sample_candidate b);
uint32_t sample_set_partition(struct sample_candidate *list, uint32_t n, sample_first_fn *first,
                              const void *order);

/* -- weights (set_sums.c) -- */

double sample_set_weight(const struct sample_set *set, float logit, float best);

/* Returns the sum of the weights of list[n]; they are float if there are more than 64. */
double sample_set_list_total(const struct sample_set *set, uint32_t n, float best);

/* Returns the index in list[n] of the first candidate at which the sum of weights relative to
 * `best` reaches `threshold`; the last index if it never does. The order is that of
 * sample_set_partition, and the list is reordered so that earlier candidates precede it. */
uint32_t sample_set_select(struct sample_set *set, uint32_t n, float best, double threshold,
                           sample_first_fn *first, const void *order);

/* -- sums over the set -- */
struct sample_sums {
    double total;   /* sum of the weights exp((logit - best) / temp) */
    double entropy; /* of the distribution, in nats */
    uint64_t n;     /* candidates */
};
struct sample_sums sample_set_sums(struct sample_set *set);
double sample_set_total(struct sample_set *set); /* the same total, without entropy: faster */

/* Returns the standard deviation of the logits. */
double sample_set_deviation(struct sample_set *set);

/* Returns the candidate at u in [0, 1) of the distribution. The candidates of a cut set are added
 * up in order of rank, those of an uncut set in order of ids. *p (if not NULL) is its
 * probability. */
struct sample_candidate sample_set_draw(struct sample_set *set, double u, double *p);

/* Returns the candidate at u in [0, 1) of adaptive-p's distribution; *p (if not NULL) is its
 * probability before adaptive-p. */
struct sample_candidate sample_set_draw_shaped(struct sample_set *set, float target, double u,
                                               double *p);

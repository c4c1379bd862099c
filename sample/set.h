/* sample/set.h: the candidates of one call: blocks of the whole vocabulary until a stage cuts it,
 * then a short list. Private to sample/. set.c has the order and the cuts, select.c partial
 * selection in lists, set_sums.c sums and draws.
 *
 * Candidates have a total order, by descending logit and then ascending id, so every rule has one
 * result, independent of the selection algorithm. A vocabulary of 262,144 tokens is read a few
 * times in blocks and never sorted: cuts select, and the list is a binary heap whose sorted part
 * grows on demand. Logits are finite; impossible ids have -infinity and are in no list.
 *
 * The probability of a candidate is exp((logit - best) / temp) divided by the sum over all
 * candidates. Temperature is one number until a rule needs the divided logits. */
#ifndef SAMPLE_SET_H
#define SAMPLE_SET_H

#include "base/error.h"
#include "sample/block.h"
#include "sample/sample.h"
#include <stddef.h>

struct sample_candidate {
    float logit;
    int32_t id;
};
static inline bool sample_better(struct sample_candidate a, struct sample_candidate b)
{
    return (a.logit > b.logit) | ((a.logit == b.logit) & (a.id < b.id));
}

/* Where the logits of a block are stored. */
enum sample_block_place {
    SAMPLE_BLOCK_GIVEN,   /* the caller's array */
    SAMPLE_BLOCK_TO_COPY, /* the caller's array, but readers need a copy without impossible ids */
    SAMPLE_BLOCK_COPIED   /* the set's copy */
};
enum { SAMPLE_GROUP = 64 }; /* blocks per group */

struct sample_group_sums { /* as sample_block_sums, relative to the group's best logit */
    double sum, second;
    uint64_t n;
};

struct sample_set {
    uint32_t n_vocab, n_blocks, n_groups;
    const float *given;      /* [n_vocab]: the caller's logits */
    const uint64_t *allowed; /* [n_blocks]: the caller's mask, or NULL */
    float *logit;            /* [n_blocks * 64]: copies of blocks, made before logits change */
    uint8_t *place;          /* [n_blocks]: enum sample_block_place */
    float *block_max; /* [n_groups * 64]: the largest logit of the block; -infinity: no candidate */
    float *group_max; /* [n_groups]: the largest block_max of the group */
    float min_logit;  /* smaller logits are not candidates, even if a block still contains them */
    double temp;
    const struct sample_block_kernels *kernels;

    struct sample_block_sums sums;   /* [n_groups * 64]: relative to block_max, of `kind` */
    struct sample_group_sums *group; /* [n_groups] */
    enum sample_block_sum kind;
    uint64_t *stale;      /* [n_groups]: bits of blocks that have changed since the sums */
    double sum_temp;      /* temperature of the sums; 0: there are none */
    float scale;          /* the inverse of sum_temp */
    double *group_weight; /* [n_groups], while drawing: weights relative to the best */

    bool is_list; /* false: the set is all possible ids with a logit >= min_logit */
    struct sample_candidate *room; /* [n_vocab]: memory for lists */
    struct sample_candidate *list; /* the candidates of a cut set: see sample_set_rank */
    uint32_t n, n_ranked;
};

bool sample_set_init(struct sample_set *set, uint32_t n_vocab, enum cpu_level level,
                     struct base_error *err);
void sample_set_free(struct sample_set *set);

/* Begins a call with logits[n_vocab] (NaN is impossible, infinity the largest number) and `allowed`
 * as in sample_restrict. Both must exist until the next call. */
void sample_set_load(struct sample_set *set, const float *logits, const uint64_t *allowed);

/* Returns the logit of an id, -infinity or NaN if it is impossible. Only for an uncut set. */
float sample_set_logit(struct sample_set *set, int32_t id);

/* Converts to float; overflow becomes the largest number, because infinity means "impossible". */
float sample_saturate(double logit);

/* Sets the logit of an id, -infinity to remove it. Only before a threshold has removed
 * candidates. */
void sample_set_change(struct sample_set *set, int32_t id, float logit);

/* Sets the logit of every id in ids[n] (each occurs once) to the result of `change`. For a list,
 * `change` is called for every candidate and must return the logit of ids outside ids[]
 * unchanged. */
typedef float sample_change_fn(const void *state, int32_t id, float logit);
void sample_set_adjust(struct sample_set *set, const int32_t *ids, uint32_t n,
                       sample_change_fn *change, const void *state);

/* Divides the logits by the present temperature and removes the cut candidates, for rules that
 * change logits. */
void sample_set_apply_temp(struct sample_set *set);

/* Returns the best candidate; its id is -1 if the set is empty. */
struct sample_candidate sample_set_best(struct sample_set *set);

/* Returns the candidate of rank r < n of a cut set; rank 0 is the best. */
struct sample_candidate sample_set_rank(struct sample_set *set, uint32_t r);

/* A set with more candidates than this is not turned into a list, which would be slow: its blocks
 * of the vocabulary remain, without the removed candidates. sample_set_keep_best compares k with
 * this number. */
enum { SAMPLE_LONG_LIST = 1024 };

/* -- cuts: the set becomes a list, unless it is longer than SAMPLE_LONG_LIST -- */
void sample_set_keep_best(struct sample_set *set, uint32_t k); /* all if there are fewer */
void sample_set_keep_above(struct sample_set *set,
                           double threshold); /* keeps logits >= threshold */
void sample_set_list_above(struct sample_set *set, double threshold); /* the same, always a list */
void sample_set_keep_list(struct sample_set *set, uint32_t n);        /* list[0..n), in any order */
void sample_set_remove_best(struct sample_set *set, uint32_t n);      /* of a cut set */

/* -- weights, and a part of a list without sorting it: select.c -- */

double sample_set_weight(const struct sample_set *set, float logit, float best);
double sample_set_inverse(double temp); /* 1 / temp, finite: 0 / temp must not become NaN */
float sample_set_scale(double temp);    /* the same for weights in float */

/* Returns the candidate of rank r < n in list[n], and reorders the list so that all better ones
 * precede it. */
struct sample_candidate sample_select_rank(struct sample_candidate *list, uint32_t n, uint32_t r);

/* Returns the index in a cut set's list of the first candidate at which the sum of weights relative
 * to `best` reaches `threshold`; the last index if it never does. The order is the caller's or
 * (NULL) the usual one, and the list is reordered so that earlier candidates of the order precede
 * it. Weights are float if the list is long. */
typedef bool sample_first_fn(const void *order, struct sample_candidate a,
                             struct sample_candidate b);
uint32_t sample_select_weight(struct sample_set *set, float best, double threshold,
                              sample_first_fn *first, const void *order);
/* Returns the sum of the weights of list[n]. */
double sample_select_total(const struct sample_set *set, const struct sample_candidate *list,
                           uint32_t n, float best);

/* -- sums over the set -- */
struct sample_sums {
    double total;   /* sum of the weights exp((logit - best) / temp) */
    double entropy; /* of the distribution, in nats */
    uint64_t n;     /* candidates */
};
struct sample_sums sample_set_sums(struct sample_set *set);
double sample_set_total(struct sample_set *set); /* the same total, without entropy: faster */
/* Computes bounds of that total, up to rounding: only the blocks of an uncut set whose best logit
 * is within `depth` of the best one, in units of the temperature, are summed. */
void sample_set_total_bounds(struct sample_set *set, double depth, double *low, double *high);

struct sample_moments {
    double mean, deviation; /* of the logits / temp; the mean is relative to the best one */
};
struct sample_moments sample_set_moments(struct sample_set *set);

/* Returns the candidate at u in [0, 1) of the distribution. The candidates of a cut set are added
 * up in order of rank, those of an uncut set in order of ids. *p (if not NULL) is its
 * probability. */
struct sample_candidate sample_set_draw(struct sample_set *set, double u, double *p);

/* Returns the candidate at u in [0, 1) of adaptive-p's distribution; *p (if not NULL) is its
 * probability before adaptive-p. */
struct sample_candidate sample_set_draw_shaped(struct sample_set *set, float target, double u,
                                               double *p);

/* -- for set.c and set_sums.c only -- */

/* Return the group's first block, and the block after its last one. */
static inline uint32_t sample_set_group_first(uint32_t group)
{
    return group * SAMPLE_GROUP;
}
static inline uint32_t sample_set_group_end(const struct sample_set *set, uint32_t group)
{
    const uint32_t first = sample_set_group_first(group);
    return set->n_blocks - first < SAMPLE_GROUP ? set->n_blocks : first + SAMPLE_GROUP;
}

/* Returns the logits [64] of a block; impossible ids have NaN or -infinity. */
const float *sample_set_block(struct sample_set *set, uint32_t b);

#endif

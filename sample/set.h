/* sample/set.h: the candidates of one call: the whole vocabulary until a stage cuts it, then a
 * short list. Private to sample/. set.c has the order and the cuts, select.c parts of lists,
 * set_sums.c sums and draws.
 *
 * Candidates have a total order, logit descending and then id ascending, so every rule has one
 * result, whatever the selection algorithm. A vocabulary of 262,144 tokens is read a few times in
 * blocks and never sorted: cuts select, and the list is a binary heap whose sorted part grows on
 * demand. Logits are finite; impossible ids have -infinity and are in no list.
 *
 * The probability of a candidate is exp((logit - best) / temp) over the sum of all: temperature is
 * one number until a rule needs the logits themselves. */
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

enum sample_block_place { /* where the logits of a block are */
                          SAMPLE_AS_GIVEN,
                          SAMPLE_TO_MAKE, /* the caller's, without impossible ids */
                          SAMPLE_OWN
};
enum { SAMPLE_GROUP = 64 }; /* blocks */

struct sample_group_sums { /* like sample_block_sums, relative to the group's best */
    double sum, second;
    uint64_t n;
};

struct sample_set {
    uint32_t n_vocab, n_blocks, n_groups;
    const float *given;      /* [n_vocab] logits of the caller */
    const uint64_t *allowed; /* [n_blocks] the caller's, or NULL */
    float *logit;            /* [n_blocks * 64] copies of blocks, made when logits change */
    uint8_t *place;          /* [n_blocks] sample_block_place */
    float *block_max; /* [n_groups * 64] the largest logit of the block; -infinity: no candidate */
    float *group_max; /* [n_groups] the largest bound of the group */
    float min_logit;  /* smaller logits are not candidates, even if a block still has them */
    double temp;
    const struct sample_block_kernels *kernels;

    struct sample_block_sums sums;   /* [n_groups * 64] relative to block_max, of `kind` */
    struct sample_group_sums *group; /* [n_groups] */
    enum sample_block_sum kind;
    uint64_t *stale;      /* [n_groups] blocks that have changed since */
    double sum_temp;      /* 0: no sums */
    float scale;          /* of sum_temp: its inverse */
    double *group_weight; /* [n_groups] while drawing: the weights relative to the best */

    bool is_list;                  /* false: every possible id with a logit >= min_logit */
    struct sample_candidate *room; /* [n_vocab] where lists are made */
    struct sample_candidate *list; /* the candidates once cut: see sample_set_rank */
    uint32_t n, n_ranked;
};

bool sample_set_init(struct sample_set *set, uint32_t n_vocab, enum cpu_level level,
                     struct base_error *err);
void sample_set_free(struct sample_set *set);

/* Begins a call: logits[n_vocab] (NaN is impossible, infinity the largest number), `allowed` as in
 * sample_restrict. Both must exist until the next call. */
void sample_set_load(struct sample_set *set, const float *logits, const uint64_t *allowed);

/* The logit of an id, -infinity or NaN if it is impossible; only while the set is a vocabulary. */
float sample_set_logit(struct sample_set *set, int32_t id);

/* Overflow saturates to a finite number, so that it does not mean "impossible". */
float sample_saturate(double logit);

/* Sets the logit of an id, -infinity to remove it; only before a threshold has removed
 * candidates. */
void sample_set_change(struct sample_set *set, int32_t id, float logit);

/* Sets the logit of every id of ids[n] (each once) to what `change` returns. For a list, `change`
 * is called for every candidate and must return the logit of ids outside ids[] unchanged. */
typedef float sample_change_fn(const void *state, int32_t id, float logit);
void sample_set_adjust(struct sample_set *set, const int32_t *ids, uint32_t n,
                       sample_change_fn *change, const void *state);

/* Divides the logits by the present temperature and removes cut candidates, for rules that change
 * logits. */
void sample_set_apply_temp(struct sample_set *set);

/* The best candidate; id -1 if the set is empty. */
struct sample_candidate sample_set_best(struct sample_set *set);

/* The candidate of rank r < n of a cut set, 0 the best. */
struct sample_candidate sample_set_rank(struct sample_set *set, uint32_t r);

/* Sets with more candidates than this remain blocks of the vocabulary, without those that are cut,
 * because a long list is slow. For keep_best the number k counts. */
enum { SAMPLE_LONG_LIST = 1024 };

/* -- cuts: the set becomes a list, except as above -- */
void sample_set_keep_best(struct sample_set *set, uint32_t k); /* all if there are fewer */
void sample_set_keep_above(struct sample_set *set,
                           double threshold); /* logits >= threshold; see above */
void sample_set_list_above(struct sample_set *set, double threshold); /* the same, always a list */
void sample_set_keep_list(struct sample_set *set, uint32_t n);        /* list[0..n), in any order */
void sample_set_remove_best(struct sample_set *set, uint32_t n);      /* of a cut set */

/* -- weights, and a part of a list without sorting it: select.c -- */

double sample_set_weight(const struct sample_set *set, float logit, float best);
double sample_set_inverse(double temp); /* 1 / temp, finite: 0 / temp must not become NaN */
float sample_set_scale(double temp);    /* as above, for weights in float */

/* The candidate of rank r < n among list[n]; reorders the list so that better ones are before
 * it. */
struct sample_candidate sample_select_rank(struct sample_candidate *list, uint32_t n, uint32_t r);

/* The place in a cut set's list of the first candidate, in the caller's order or (NULL) the usual
 * one, at which the sum of weights relative to `best` reaches `threshold`; the last place if it
 * never does. Candidates before it in the order are before it in the list. Weights are float if the
 * list is long. */
typedef bool sample_first_fn(const void *order, struct sample_candidate a,
                             struct sample_candidate b);
uint32_t sample_select_weight(struct sample_set *set, float best, double threshold,
                              sample_first_fn *first, const void *order);
/* The sum of the weights of list[n]. */
double sample_select_total(const struct sample_set *set, const struct sample_candidate *list,
                           uint32_t n, float best);

/* -- sums over the set -- */
struct sample_sums {
    double total;   /* sum of the weights exp((logit - best) / temp) */
    double entropy; /* of the distribution, in nats */
    uint64_t n;     /* candidates */
};
struct sample_sums sample_set_sums(struct sample_set *set);
double sample_set_total(struct sample_set *set); /* the same total, faster */
/* Bounds of that total, up to rounding: only blocks of a vocabulary whose best logit is within
 * `depth` of the best, in units of the temperature, are summed. */
void sample_set_total_bounds(struct sample_set *set, double depth, double *low, double *high);

struct sample_moments {
    double mean, deviation; /* of the logits / temp; the mean is relative to the best one */
};
struct sample_moments sample_set_moments(struct sample_set *set);

/* The candidate at u in [0, 1) of the distribution: a cut set is walked by rank, a vocabulary by
 * id. *p (if not NULL) is its probability. */
struct sample_candidate sample_set_draw(struct sample_set *set, double u, double *p);

/* As above for adaptive-p's distribution; *p is the probability before adaptive-p. */
struct sample_candidate sample_set_draw_shaped(struct sample_set *set, float target, double u,
                                               double *p);

/* -- for set.c and set_sums.c only -- */

/* The blocks of a group are those from here up to the end. */
static inline uint32_t sample_set_group_first(uint32_t group)
{
    return group * SAMPLE_GROUP;
}
static inline uint32_t sample_set_group_end(const struct sample_set *set, uint32_t group)
{
    const uint32_t first = sample_set_group_first(group);
    return set->n_blocks - first < SAMPLE_GROUP ? set->n_blocks : first + SAMPLE_GROUP;
}

/* The logits of a block, NaN and -infinity where an id is impossible. */
const float *sample_set_block(struct sample_set *set, uint32_t b);

#endif

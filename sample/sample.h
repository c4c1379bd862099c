/* sample/sample.h: from logits to the next token id.
 *
 * Owns: biases, penalties, truncation rules, temperature, random numbers, and the order of the
 * stages. Refuses: models, text, printing. Deterministic: the same logits, history, options and
 * seed give the same id on every machine (own generator; own exp, log and pow). Allocates in
 * sample_new only. docs/sampling.md has the formula and the source of each sampler. */
#ifndef SAMPLE_SAMPLE_H
#define SAMPLE_SAMPLE_H

#include "base/buffer.h"
#include "base/cpu.h"
#include "base/error.h"

/* Appends the bytes of token `id`; nothing for one that has no text. */
typedef void sample_bytes_fn(void *context, int32_t id, struct base_buffer *out);

struct sample_bias {
    int32_t id;
    float bias; /* added to the logit before everything else; -infinity: never chosen */
};

struct sample_text {
    const char *data;
    size_t size;
};

struct sample_name {
    char text[64];
};

enum { SAMPLE_MAX_BREAKER = 128 }; /* bytes of a sequence breaker */

/* clang-format off */
/* Ranges of the numbers among the options, both ends allowed, and their defaults. */
/*                                       low   high       default */
#define SAMPLE_RANGE_temp                0,    1000,      0.8
#define SAMPLE_RANGE_dynatemp_range      0,    1000,      0
#define SAMPLE_RANGE_dynatemp_exponent   0,    1000,      1
#define SAMPLE_RANGE_top_k               0,    INT32_MAX, 40
#define SAMPLE_RANGE_top_p               0,    1,         0.95
#define SAMPLE_RANGE_min_p               0,    1,         0.05
#define SAMPLE_RANGE_typical_p           0,    1,         1
#define SAMPLE_RANGE_top_n_sigma         -1,   1000,      0
#define SAMPLE_RANGE_xtc_probability     0,    1,         0
#define SAMPLE_RANGE_xtc_threshold       0,    1,         0.1
#define SAMPLE_RANGE_repeat_penalty      0.01, 1000,      1
#define SAMPLE_RANGE_frequency_penalty   -1000, 1000,     0
#define SAMPLE_RANGE_presence_penalty    -1000, 1000,     0
#define SAMPLE_RANGE_repeat_last_n       -1,   INT32_MAX, 64
#define SAMPLE_RANGE_dry_multiplier      0,    1000,      0
#define SAMPLE_RANGE_dry_base            1,    1000,      1.75
#define SAMPLE_RANGE_dry_allowed_length  1,    INT32_MAX, 2
#define SAMPLE_RANGE_dry_last_n          -1,   INT32_MAX, -1
#define SAMPLE_RANGE_mirostat            0,    2,         0
#define SAMPLE_RANGE_mirostat_tau        0,    1000,      5
#define SAMPLE_RANGE_mirostat_eta        0,    1000,      0.1
#define SAMPLE_RANGE_adaptive_target     -1,   1,         -1
#define SAMPLE_RANGE_adaptive_decay      0,    0.99,      0.9
/* clang-format on */

/* Everything is copied but `token_bytes` and its context, which must outlive the sampler. */
struct sample_options {
    enum cpu_level level; /* of kernels, capped to the machine; no effect on results */
    uint64_t seed;
    float temp;              /* 0: greedy (the lowest id among equal logits) */
    float dynatemp_range;    /* 0: off; else temp +- range, by the entropy */
    float dynatemp_exponent; /* exponent of the entropy's share of the largest one */
    int64_t top_k;           /* 0: off */
    float top_p;             /* 1: off */
    float min_p;             /* 0: off */
    float typical_p;         /* 1: off */
    float top_n_sigma;       /* 0 or less: off */
    float xtc_probability;   /* 0: off */
    float xtc_threshold;     /* above 0.5: off */

    float repeat_penalty;    /* 1: off; divides positive, multiplies negative logits */
    float frequency_penalty; /* 0: off; subtracted per occurrence */
    float presence_penalty;  /* 0: off; subtracted once */
    int64_t repeat_last_n;   /* length of history for penalties; 0: none, -1: all */
    float dry_multiplier;    /* 0: off */
    float dry_base;
    int64_t dry_allowed_length;
    int64_t dry_last_n;                    /* length of history for DRY; 0: none, -1: all */
    const struct sample_text *dry_breaker; /* [n_dry_breakers] not empty */
    size_t n_dry_breakers;

    int64_t mirostat; /* 0: off; 1, 2: version of mirostat, which replaces every truncation rule */
    float mirostat_tau, mirostat_eta;
    float adaptive_target; /* below 0: off */
    float adaptive_decay;

    const struct sample_bias *bias; /* [n_biases]; those of one id are added up */
    size_t n_biases;
    const char *samplers; /* names separated by ; or , in the order of application; NULL: the
                             default, "penalties;dry;...;temperature" */

    sample_bytes_fn *token_bytes; /* for DRY's breakers and infill; NULL: tokens have no text */
    void *token_context;
    const int32_t *end_id; /* [n_ends] end-of-text tokens, for infill */
    size_t n_ends;

    /* Sets the name of the member `parameter` of this struct for errors; NULL: the member's own
     * name. */
    void (*name_of)(const char *parameter, struct sample_name *out);
};
struct sample_options sample_options_default(void);

/* BASE_USAGE, with the name of the member as its item, for a value out of range, an unknown or
 * repeated name in `samplers`, and contradicting options. sample_new checks too. */
bool sample_options_check(const struct sample_options *options, struct base_error *err);

struct sampler; /* opaque; the caller owns it */

/* `n_ctx` bounds the history. BASE_USAGE if an option is out of range. */
struct sampler *sample_new(const struct sample_options *options, uint32_t n_vocab, uint32_t n_ctx,
                           struct base_error *err);
void sample_free(struct sampler *s); /* NULL is fine */

/* Adds an id to the history (prompt ids too). Ids outside the vocabulary are ignored. For an id
 * that sample_next returned, adaptive-p updates its mean here. */
void sample_accept(struct sampler *s, int32_t id);

/* The next id for logits[n_vocab]; the logits are not changed. A vector without any number above
 * -infinity is BASE_FAILED. NaN counts as -infinity. Returns -1 on error. */
int32_t sample_next(struct sampler *s, const float *logits, struct base_error *err);

/* Forbids an id from now on. */
void sample_forbid(struct sampler *s, int32_t id);

/* Restricts the next sample_next, and only that one, to the ids whose bit is set: bit `id & 63` of
 * word `id >> 6`, as constrain_masker_mask gives it (constraint.h); NULL: every id. The mask must
 * exist until that call. If no allowed id has a logit above -infinity, sample_next is BASE_FAILED
 * with "constraint" as its item. Penalties and the other stages apply as usual. */
void sample_restrict(struct sampler *s, const uint64_t *allowed);

/* The model's own predictions: natural logarithms of probabilities under the plain softmax of
 * logits[n_vocab], before any sampler or mask. Fills best[k] with the k most probable ids, best
 * first, of equal ones the lower id first; returns their number (less than k if fewer have a logit
 * above -infinity). *of_id (if not NULL) is the log-probability of `id`, -infinity for an
 * impossible one. The result is the same for every `level`, which is capped to what the machine
 * runs; errors are below 1e-6. */
struct sample_logprob {
    int32_t id;
    double logprob;
};
uint32_t sample_logprobs(enum cpu_level level, const float *logits, uint32_t n_vocab, uint32_t k,
                         struct sample_logprob *best, int32_t id, double *of_id);

/* The random generator, for tests: PCG32 (O'Neill 2014). */
struct sample_random {
    uint64_t state, step;
};
void sample_random_seed(struct sample_random *r, uint64_t seed);
uint32_t sample_random_u32(struct sample_random *r);
double sample_random_unit(struct sample_random *r); /* [0, 1), 32 bits */

#endif

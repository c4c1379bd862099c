/* sample/sample.h: from logits to the next token id.
 *
 * Contains biases, penalties, truncation rules, temperature, random numbers and the order of the
 * stages; no models, text or printing. Deterministic: the same logits, history, options and seed
 * result in the same id on every machine, because the generator, exp, log and pow are part of this
 * folder. Only sample_new allocates. docs/sampling.md has the formula and the source of each
 * sampler. */
#pragma once

#include "base/buffer.h"
#include "base/cpu.h"
#include "base/error.h"

/* Appends the bytes of token `id` to `out`; none for a token without text. */
typedef void sample_bytes_fn(void *context, int32_t id, struct base_buffer *out);

struct sample_bias {
    int32_t id;
    float bias; /* added to the logit before all stages; -infinity: never chosen */
};

struct sample_text {
    const char *data;
    size_t size;
};

struct sample_name {
    char text[64];
};

enum { SAMPLE_MAX_BREAKER = 128 }; /* bytes */

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

/* sample_new copies everything but `token_bytes` and its context, which must outlive the
 * sampler. */
struct sample_options {
    enum cpu_level level; /* of the kernels, at most that of the machine; does not change results */
    uint64_t seed;
    float temp;              /* 0: greedy (the lowest id among equal logits) */
    float dynatemp_range;    /* 0: off; else temp +- range, by the entropy */
    float dynatemp_exponent; /* exponent of the entropy as a share of the largest possible one */
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
    int64_t repeat_last_n;   /* number of latest ids that are penalized; 0: none, -1: all */
    float dry_multiplier;    /* 0: off */
    float dry_base;
    int64_t dry_allowed_length;
    int64_t dry_last_n;                    /* number of latest ids for DRY; 0: none, -1: all */
    const struct sample_text *dry_breaker; /* [n_dry_breakers], none empty */
    size_t n_dry_breakers;

    int64_t mirostat; /* 0: off; 1, 2: version of mirostat, which replaces every truncation rule */
    float mirostat_tau, mirostat_eta;
    float adaptive_target; /* below 0: off */
    float adaptive_decay;

    const struct sample_bias *bias; /* [n_biases]; biases of the same id add up */
    size_t n_biases;
    const char *samplers; /* names separated by ; or , in the order of application; NULL: the
                             default, "penalties;dry;...;temperature" */

    sample_bytes_fn *token_bytes; /* for DRY's breakers and infill; NULL: no token has text */
    void *token_context;
    const int32_t *end_id; /* [n_ends] end-of-text tokens, for infill */
    size_t n_ends;

    /* Writes the name of the member `parameter` of this struct for messages; NULL: the member's own
     * name. */
    void (*name_of)(const char *parameter, struct sample_name *out);
};
struct sample_options sample_options_default(void);

/* Sets a number among the options, or the seed, from text[size], "NAME=NUMBER" with the member's
 * name. Fails with BASE_USAGE for another name or text; the range is checked with all options. */
bool sample_options_set(struct sample_options *options, const char *text, size_t size,
                        struct base_error *err);

/* Checks the options; sample_new does so too. Fails with BASE_USAGE, whose item is the member's
 * name, for a value out of range, an unknown or repeated name in `samplers`, and contradicting
 * options. */
bool sample_options_check(const struct sample_options *options, struct base_error *err);

struct sampler; /* opaque */

/* Creates a sampler, which the caller frees with sample_free. `n_ctx` is the largest length of the
 * history. Returns NULL with BASE_USAGE if an option is out of range, or BASE_NO_MEMORY. */
struct sampler *sample_new(const struct sample_options *options, uint32_t n_vocab, uint32_t n_ctx,
                           struct base_error *err);
void sample_free(struct sampler *s); /* accepts NULL */

/* Appends an id to the history (also the ids of the prompt). Ignores ids outside the vocabulary.
 * For an id that sample_next returned, this call updates adaptive-p's mean. */
void sample_accept(struct sampler *s, int32_t id);

/* Returns the next id for logits[n_vocab], which do not change. Returns -1 with BASE_FAILED if no
 * logit is above -infinity; NaN counts as -infinity. */
int32_t sample_next(struct sampler *s, const float *logits, struct base_error *err);

/* Forbids an id in all following calls. */
void sample_forbid(struct sampler *s, int32_t id);

/* Restricts the next call of sample_next, and only that one, to the ids whose bit is set: bit `id &
 * 63` of word `id >> 6`, as in constrain_masker_mask (constraint.h); NULL: every id. The mask must
 * exist until that call. If no allowed id has a logit above -infinity, sample_next fails with
 * BASE_FAILED and the item "constraint". Penalties and the other stages apply as usual. */
void sample_restrict(struct sampler *s, const uint64_t *allowed);

/* Computes the model's own predictions: natural logarithms of probabilities under the plain softmax
 * of logits[n_vocab], before any sampler or mask. Fills best[k] with the k most probable ids, best
 * first and the lower id first among equal ones. Returns their number, which is less than k if
 * fewer ids have a logit above -infinity. *of_id (if not NULL) is the log-probability of `id`,
 * -infinity for an impossible one. Errors are below 1e-6. `level`, at most that of the machine,
 * does not change the result. */
struct sample_logprob {
    int32_t id;
    double logprob;
};
uint32_t sample_logprobs(enum cpu_level level, const float *logits, uint32_t n_vocab, uint32_t k,
                         struct sample_logprob *best, int32_t id, double *of_id);

/* Computes the entropy, in nats, of the plain softmax of logits[n_vocab]. `level` as above. */
double sample_entropy(enum cpu_level level, const float *logits, uint32_t n_vocab);

/* The random generator PCG32 (O'Neill 2014), exported for tests. */
struct sample_random {
    uint64_t state, step;
};
void sample_random_seed(struct sample_random *r, uint64_t seed);
uint32_t sample_random_u32(struct sample_random *r);
double sample_random_unit(struct sample_random *r); /* in [0, 1), 32 random bits */

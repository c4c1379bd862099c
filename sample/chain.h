/* sample/chain.h: the sampler and its stages. Private to sample/.
 *
 * A stage is one row, in its own file, with a function that works on the set of candidates (set.h);
 * chain.c lists the rows. A stage with state between calls has a struct for it. */
#pragma once

#include "sample/sample.h"
#include "sample/set.h"

/* A ring buffer of the latest accepted ids, at most `size`. */
struct sample_ring {
    int32_t *id; /* [size]; a new id overwrites the oldest */
    uint32_t size, used, next;
};
/* Allocates the ring; `last_n` as in the options: -1 for all of n_ctx. false: no memory. */
bool sample_ring_init(struct sample_ring *r, int64_t last_n, uint32_t n_ctx);
/* Appends an id. Returns the id that it overwrites, or -1. */
int32_t sample_ring_push(struct sample_ring *r, int32_t id);
/* Returns the id `back` ids before the latest one (0: the latest). */
int32_t sample_ring_at(const struct sample_ring *r, uint32_t back);

/* The different ids of the history and their counts, for the penalties. */
struct sample_penalties {
    struct sample_ring ring;
    uint32_t *count; /* [n_vocab]: occurrences in the ring */
    uint32_t *place; /* [n_vocab]: the id's index in `ids`, if count > 0 */
    int32_t *ids;    /* [ring.size] */
    uint32_t n_ids;
};

/* The state of DRY: see dry.c. */
struct sample_dry {
    struct sample_ring ring;
    uint32_t since;   /* number of tokens after the latest breaker */
    uint32_t *same;   /* [ring.size], scratch: length of the longest suffix of the history that
                       * also ends at this token */
    uint32_t *repeat; /* [n_vocab]: 1 + length of the repetition that the id would continue */
    int32_t *ids;     /* [ring.size]: ids with repeat > 0 */
    double *penalty;  /* [ring.size + 1], by the length of the repetition */
    char *breaker;    /* all breakers, concatenated */
    uint32_t *size;   /* [n_breakers] their sizes */
    size_t n_breakers;
    struct base_buffer text; /* the end of the text, where a breaker may begin */
};

/* The state of infill, by rank: see infill.c. */
struct sample_infill {
    double *p;
    size_t *at; /* [n]: offset in `text` of each candidate's bytes */
    struct base_buffer text;
};

struct sample_adaptive {
    double sum, weight; /* of the probabilities of chosen ids; the weight of older ones decays */
    int32_t pending;    /* the id that was chosen and is not accepted yet; -1: none */
    double pending_p;   /* its probability before reshaping */
};

/* A stage: a row in its own file, which chain.c lists. */
struct sample_stage {
    const char *name;      /* the name in the user's order */
    const char *parameter; /* the option that switches it on */
    bool (*active)(const struct sample_options *o);
    void (*apply)(struct sampler *s); /* NULL: the stage replaces the final draw */
    /* NULL for a stage without state between calls */
    bool (*init)(struct sampler *s, uint32_t n_ctx); /* false: no memory */
    void (*free)(struct sampler *s);                 /* called for every stage, active or not */
    void (*accept)(struct sampler *s, int32_t id);
    bool truncates;  /* mirostat replaces this stage */
    bool keeps_best; /* the stage only removes candidates: temperature 0 makes it superfluous */
    bool only_named; /* not in the default order */
    bool usually_on; /* on by default, so its option may be set although the order lacks it */
};

enum { SAMPLE_MAX_STAGES = 16 };

struct sampler {
    struct sample_options options;
    struct sample_random random;
    struct sample_set set;
    const struct sample_stage *stage[SAMPLE_MAX_STAGES];
    int n_stages;

    struct sample_penalties penalties;
    struct sample_dry dry;
    struct sample_infill infill;
    struct sample_adaptive adaptive;
    double mu; /* mirostat's bound of the surprise, in bits */

    struct sample_bias *bias; /* [n_biases]: those of the options, then forbidden ids */
    size_t n_biases, max_biases;
    int32_t *end_id; /* [options.n_ends] */

    const uint64_t *allowed; /* not owned; only for the next id */
};

/* Returns the name of a member of the options for messages. */
struct sample_name sample_name(const struct sample_options *o, const char *parameter);

/* Fills stage[] with the active stages in their order, and allocates their state. */
bool sample_chain_init(struct sampler *s, uint32_t n_ctx, struct base_error *err);

/* -- the stages -- */
extern const struct sample_stage sample_stage_penalties, sample_stage_dry, sample_stage_top_n_sigma,
    sample_stage_top_k, sample_stage_typical, sample_stage_top_p, sample_stage_min_p,
    sample_stage_xtc, sample_stage_temperature, sample_stage_adaptive, sample_stage_infill;

/* Frees the state of all stages. */
void sample_chain_free(struct sampler *s);

/* -- the end of the chain: draw one id -- */
int32_t sample_draw(struct sampler *s);
int32_t sample_draw_mirostat(struct sampler *s);
int32_t sample_draw_adaptive(struct sampler *s);

/* sample/chain.h: the sampler and its stages. Private to sample/.
 *
 * A stage is one row of the table in chain.c and one function that works on the set of candidates
 * (set.h). State that a stage keeps between calls lies in a struct of its own. */
#ifndef SAMPLE_CHAIN_H
#define SAMPLE_CHAIN_H

#include "sample/sample.h"
#include "sample/set.h"

/* What was accepted, the latest `size` ids. */
struct sample_ring {
    int32_t *id; /* [size] the oldest overwritten first */
    uint32_t size, used, next;
};
/* `last_n` as the options have it: -1 for all of n_ctx. */
bool sample_ring_init(struct sample_ring *r, int32_t last_n, uint32_t n_ctx);
/* The id that falls out, or -1. */
int32_t sample_ring_push(struct sample_ring *r, int32_t id);
/* `back` ids before the latest one (0: the latest). */
int32_t sample_ring_at(const struct sample_ring *r, uint32_t back);

/* The different ids of the history, for the penalties. */
struct sample_penalties {
    struct sample_ring ring;
    uint32_t *count; /* [n_vocab] occurrences in the ring */
    uint32_t *place; /* [n_vocab] where in `ids` it stands, if count > 0 */
    int32_t *ids;    /* [ring.size] */
    uint32_t n_ids;
};

/* DRY: see dry.c. */
struct sample_dry {
    struct sample_ring ring;
    uint32_t since;   /* tokens after the latest breaker */
    uint32_t *same;   /* [ring.size] work: how far the end of the history occurs there, too */
    uint32_t *repeat; /* [n_vocab] the longest repetition that the id would continue, plus 1 */
    int32_t *ids;     /* [ring.size] ids with a repeat */
    double *penalty;  /* [ring.size + 1] by the length of the repetition */
    char *breaker;    /* all of them, one behind the other */
    uint32_t *size;   /* [n_breakers] of each */
    size_t n_breakers;
    struct base_buffer text; /* the end of the text, as far as a breaker may begin in it */
};

/* Infill: see infill.c. By rank. */
struct sample_infill {
    double *p;
    size_t *at; /* where the bytes of each begin in `text` */
    struct base_buffer text;
};

struct sample_adaptive {
    double sum, weight; /* of the chosen ones' probabilities, older ones decaying */
    int32_t pending;    /* chosen, not yet accepted; -1: none */
    double pending_p;   /* its probability before it was reshaped */
};

struct sample_stage {
    const char *name;
    const char *option; /* what switches it on */
    bool (*active)(const struct sample_options *o);
    void (*apply)(struct sampler *s);
    bool truncates;  /* mirostat takes its place */
    bool on_default; /* part of the order when none is given */
    bool usually_on; /* listed or not, its option may have a value: the default is not "off" */
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
    double mu; /* mirostat's bound of surprise, in bits */

    struct sample_bias *bias; /* [n_biases] options' first, then forbidden ids */
    size_t n_biases, max_biases;
    int32_t *end_id; /* [options.n_ends] */

    const uint64_t *allowed; /* for the next id only; the caller's */
};

/* Fills stage[] with the active stages in order. */
bool sample_chain_init(struct sampler *s, struct base_error *err);

/* -- the stages -- */
void sample_apply_penalties(struct sampler *s);
void sample_apply_dry(struct sampler *s);
void sample_apply_top_k(struct sampler *s);
void sample_apply_top_p(struct sampler *s);
void sample_apply_min_p(struct sampler *s);
void sample_apply_typical(struct sampler *s);
void sample_apply_top_n_sigma(struct sampler *s);
void sample_apply_xtc(struct sampler *s);
void sample_apply_temperature(struct sampler *s);
void sample_apply_infill(struct sampler *s);

bool sample_penalties_init(struct sampler *s, uint32_t n_ctx);
void sample_penalties_free(struct sample_penalties *p);
void sample_penalties_accept(struct sample_penalties *p, int32_t id);
bool sample_dry_init(struct sampler *s, uint32_t n_ctx);
void sample_dry_free(struct sample_dry *d);
void sample_dry_accept(struct sampler *s, int32_t id);
bool sample_infill_init(struct sampler *s);
void sample_infill_free(struct sample_infill *f);

/* -- the end of the chain: one id -- */
int32_t sample_draw(struct sampler *s);
int32_t sample_draw_mirostat(struct sampler *s);
void sample_adaptive_init(struct sampler *s);
int32_t sample_draw_adaptive(struct sampler *s);
void sample_adaptive_accept(struct sampler *s, int32_t id);

#endif

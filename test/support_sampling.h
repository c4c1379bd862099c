/* test/support_sampling.h: a naive sampling chain: full sorts, libm, doubles, direct from the
 * definitions; and an invented vocabulary whose tokens have texts. */
#pragma once

#include "sample/sample.h"

enum {
    SUPPORT_MAX_HISTORY = 300,
    SUPPORT_N_CTX = 256,
    SUPPORT_STAGES = 11,
    SUPPORT_TOP_K = 3,
    SUPPORT_XTC = 7,
    SUPPORT_INFILL = 9
};

/* The text of a token: the id in base 3 with the letters a, b, c. */
void support_token_text(void *context, int32_t id, struct base_buffer *out);
extern const struct sample_text support_breakers[2];
extern const int32_t support_ends[2]; /* end-of-text tokens */

struct support_one {
    double x, p; /* logit; working value of the stages */
    int32_t id;
};

struct support_chain {
    const struct sample_options *o;
    uint32_t n_vocab;
    int32_t history[SUPPORT_MAX_HISTORY];
    int n_history;
    double mu, adaptive_sum, adaptive_weight, chosen_p;
    const float *logits;
    double eps; /* relative error of thresholds: candidates within it may be kept or removed */

    struct support_one *c; /* [n_vocab] the candidates */
    uint32_t n;
    bool cut; /* some rule created a list: draws proceed by rank, otherwise by id */
};

/* Names of the stages; orders contain their indexes. */
extern const char *const support_stage_name[SUPPORT_STAGES];
bool support_stage_acts(const struct sample_options *o, int stage);

/* One draw; u[0] is XTC's random number if it acts, the next one that of the draw. */
int32_t support_chain_next(struct support_chain *v, const int *order, int n_order, const double *u,
                           double u_shift);

/* -- random logits, options and orders -- */

#define SUPPORT_PICK(r, list) (list)[sample_random_u32(r) % (sizeof(list) / sizeof(list)[0])]
enum support_shape {
    SUPPORT_SMOOTH,
    SUPPORT_PEAKED,
    SUPPORT_TIES,
    SUPPORT_HOLES,   /* NaN and -infinity */
    SUPPORT_EXTREME, /* the largest and the smallest numbers */
    SUPPORT_SLOPED,
    SUPPORT_STEPPED, /* by blocks of 64 */
    SUPPORT_SHAPE_COUNT
};
float support_float_between(struct sample_random *r, float low, float high);
/* Fills logits[n]; at least one is finite. */
void support_fill_logits(struct sample_random *r, enum support_shape shape, uint32_t n,
                         float *logits);
struct sample_options support_random_options(struct sample_random *r);
/* Single rules that keep some thousand candidates, and adaptive-p. */
struct sample_options support_long_options(struct sample_random *r);
/* Returns the length of a random order that the options allow, as a list and as text. */
int support_random_order(struct sample_random *r, const struct sample_options *o,
                         int order[SUPPORT_STAGES], char *text, size_t size);

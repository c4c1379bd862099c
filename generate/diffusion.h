/* generate/diffusion.h: writes a text with a diffusion model: the answer begins as mask tokens, and
 * each step evaluates the whole text and replaces some of them.
 *
 * The answer is written in blocks from left to right. A block of m masks gets its tokens in S
 * steps, m / S in each, the remainder in the first ones. In a step every mask of the block gets a
 * candidate from the sampler, and the candidates with the highest confidence stay; of equal ones
 * the earlier position's. (Nie et al. 2025, LLaDA; Ye et al. 2025, Dream.) */
#pragma once

#include "models/model.h"
#include "sample/sample.h"

/* The confidence of a candidate, by the plain softmax of its logits. */
enum generate_confidence {
    GENERATE_BY_PROBABILITY, /* the candidate's probability */
    GENERATE_BY_ENTROPY,     /* low entropy first */
    GENERATE_BY_MARGIN,      /* the difference of the two largest probabilities */
    GENERATE_BY_CHANCE,      /* a random order */
    GENERATE_CONFIDENCES
};

struct generate_diffusion {
    uint32_t n_tokens; /* length of the answer, > 0 */
    uint32_t n_steps;  /* of the whole answer, shared by the blocks; 0: n_tokens */
    uint32_t n_block;  /* tokens of a block; 0: all are one block */
    enum generate_confidence confidence;
    struct sample_options sample; /* without history */
    /* Returns whether the text ends at this token: later ones need not be written. NULL: never. */
    bool (*is_end)(const void *user, int32_t id);
    const void *user;
};

/* Writes n_tokens ids after the prompt ids[n_prompt], n_prompt > 0, into ids[n_prompt + n_tokens];
 * *n is their number up to and including the first end. `s` is a session of a diffusion model
 * (model_session_options.whole), whose sequence 0 is overwritten. Fails with BASE_TOO_LONG if they
 * exceed the context, with BASE_MODEL for a model without a mask token, BASE_NO_MEMORY, and the
 * session's and the sampler's errors. */
bool generate_diffuse(struct model_session *s, const struct generate_diffusion *d, int32_t *ids,
                      size_t n_prompt, uint32_t *n, struct base_error *err);

/* generate/embed.h: embeddings and scores of texts.
 *
 * It determines which texts are evaluated together and pools the hidden states of each. The bits of
 * a text's row do not depend on the others: a hidden state depends on the text's own tokens, means
 * are summed in double precision in the order of the tokens, and rows of a product are independent.
 */
#pragma once

#include "models/model.h"

struct generate_embed_text {
    const int32_t *ids;
    size_t n;          /* at least 1, at most the session's n_ctx */
    float *out;        /* [size], or [n][size] without pooling */
    const float *lora; /* the scale of each adapter; NULL: the usual ones */
};

struct generate_embedder; /* opaque */

/* Creates an embedder, which uses all sequences of the session, opened with `hidden`. `session`
 * must outlive it; the caller frees it. Returns NULL with BASE_USAGE for MODEL_POOL_RANK if the
 * model has no classifier, and with BASE_NO_MEMORY. */
struct generate_embedder *generate_embedder_new(struct model_session *session,
                                                const struct model_facts *facts,
                                                enum model_pooling pooling, struct base_error *err);
void generate_embedder_free(struct generate_embedder *e); /* accepts NULL */
/* Returns how many numbers a row of a text has. */
uint32_t generate_embedder_size(const struct generate_embedder *e);
/* Computes the rows of n texts: longest first, as many at once as fit a batch. Fails with
 * BASE_TOO_LONG for a text beyond the context and BASE_USAGE for one without tokens, before any
 * evaluation. */
bool generate_embedder_run(struct generate_embedder *e, const struct generate_embed_text *text,
                           size_t n, struct base_error *err);
/* Returns the number of texts that are done. */
uint64_t generate_embedder_done(const struct generate_embedder *e);

/* Divides v[n] by a norm: p = 1 by the sum of magnitudes, 2 by the Euclidean length, p > 2 by the
 * p-th root of the sum of p-th powers; 0 scales the largest magnitude to 32760, the range of 16-bit
 * integers; a negative p changes nothing. A row of zeros remains one. Sums are in double precision.
 */
void generate_embed_normalize(float *v, size_t n, int p);
/* Returns the cosine of the angle between a[n] and b[n]; 0 if one of them is zero. */
double generate_embed_cosine(const float *a, const float *b, size_t n);

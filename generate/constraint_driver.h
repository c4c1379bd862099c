/* generate/constraint_driver.h: chooses tokens under a constraint and completes a text within a
 * limit of tokens.
 *
 * Contains the masks of one model's vocabulary and the state of the generated text;
 * constraint_source.h compiles constraints. */
#pragma once

#include "sample/constrain/constraint.h"
#include "sample/sample.h"
#include "text/tokenizer/tokenizer.h"

struct generate_driver; /* opaque */

/* Builds a trie of the tokens of a vocabulary, for drivers: immutable, several MB. The caller frees
 * it with constrain_token_trie_free. */
struct constrain_token_trie *generate_trie_new(const struct text_tokenizer *tokenizer,
                                               uint32_t n_vocab, struct base_error *err);

/* Creates a driver, which the caller frees. Constraint, tokenizer, `trie` and `marks` must outlive
 * it. With `trie` NULL, or with marks, it builds a trie of its own. `marks`: see struct
 * generate_options. `ends`: end-of-text tokens may be chosen when the text is complete; otherwise a
 * text continues as long as the constraint allows. Fails with BASE_USAGE for a token that the
 * constraint names and the tokenizer does not have. */
struct generate_driver *generate_driver_new(const struct constraint *constraint,
                                            const struct text_tokenizer *tokenizer,
                                            const struct constrain_token_trie *trie,
                                            uint32_t n_vocab, const char *marks, bool ends,
                                            struct base_error *err);
void generate_driver_free(struct generate_driver *d); /* accepts NULL */

/* Begins a text; `continues` as for text_decoder_init. */
bool generate_driver_begin(struct generate_driver *d, bool continues, struct base_error *err);

/* Reads the beginning of the text, which need not be whole tokens. Fails with BASE_USAGE if the
 * constraint does not allow it. */
bool generate_driver_read(struct generate_driver *d, const char *bytes, size_t size,
                          struct base_error *err);

/* Computes the number of tokens that complete an empty text, without a search; UINT64_MAX:
 * unknown. */
bool generate_driver_min_tokens(struct generate_driver *d, uint64_t *n, struct base_error *err);

/* Chooses an allowed token by the sampler and appends it to the text. `left` is the number of
 * tokens that may still come, including this one. If it is small, only tokens after which the text
 * can be completed in time are allowed, if there are any. `extra` (-1: none) may be chosen too, and
 * is not appended. *id -1: the text is complete, and no token can follow. */
bool generate_driver_choose(struct generate_driver *d, struct sampler *sampler, const float *logits,
                            uint64_t left, int32_t extra, int32_t *id, struct base_error *err);

/* Returns whether the next token is determined; generate_driver_choose then needs no logits. */
bool generate_driver_has_plan(const struct generate_driver *d);

/* Appends a token that was chosen elsewhere. *accepted false: the constraint does not allow it, and
 * only a new text may follow. */
bool generate_driver_follow(struct generate_driver *d, int32_t id, bool *accepted,
                            struct base_error *err);

bool generate_driver_is_over(const struct generate_driver *d); /* complete, nothing may follow */
bool generate_driver_is_complete(const struct generate_driver *d); /* the text so far is accepted */

/* _show reads text that is shown, which a stop text may cut. _shown_complete returns whether the
 * constraint accepts the text that was shown since generate_driver_begin. */
bool generate_driver_show(struct generate_driver *d, const char *bytes, size_t size,
                          struct base_error *err);
bool generate_driver_shown_complete(const struct generate_driver *d);

/* Finds the fewest tokens whose bytes are bytes[0..size): writes them to `ids` (with room for
 * `size`) and their number to *n; 0 if there are none. */
bool generate_driver_tokenize(struct generate_driver *d, const char *bytes, size_t size,
                              int32_t *ids, size_t *n, struct base_error *err);

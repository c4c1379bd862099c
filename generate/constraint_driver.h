/* generate/constraint_driver.h: tokens under a constraint: which are allowed next, and how a text
 * is completed in time.
 *
 * Owns: the masks of one model's vocabulary, the state of the text that is generated. Refuses: how
 * constraints are compiled (constraint_source.h), where text goes. */
#ifndef GENERATE_CONSTRAINT_DRIVER_H
#define GENERATE_CONSTRAINT_DRIVER_H

#include "sample/constrain/constraint.h"
#include "sample/sample.h"
#include "text/tokenizer/tokenizer.h"

struct generate_driver; /* opaque */

/* The tokens of a vocabulary as a trie, for drivers; immutable, several MB; the caller owns it. */
struct constrain_token_trie *generate_trie_new(const struct text_tokenizer *tokenizer,
                                               uint32_t n_vocab, struct base_error *err);

/* Constraint, tokenizer, `trie` and `marks` must outlive it; with `trie` NULL, or marks, it makes
 * its own. BASE_USAGE for a token that the constraint names and the tokenizer lacks. `marks`: see
 * struct generate_options. `ends`: end-of-text tokens may be chosen where the text is complete;
 * otherwise a text continues as long as the constraint allows it. */
struct generate_driver *generate_driver_new(const struct constraint *constraint,
                                            const struct text_tokenizer *tokenizer,
                                            const struct constrain_token_trie *trie,
                                            uint32_t n_vocab, const char *marks, bool ends,
                                            struct base_error *err);
void generate_driver_free(struct generate_driver *d); /* NULL is fine */

/* Begins a text; `continues` as for text_decoder_init. */
bool generate_driver_begin(struct generate_driver *d, bool continues, struct base_error *err);

/* Reads the beginning of the text; it may be shorter than a token. BASE_USAGE for one that the
 * constraint does not allow. */
bool generate_driver_read(struct generate_driver *d, const char *bytes, size_t size,
                          struct base_error *err);

/* How many tokens complete a text that is still empty, as far as is known without searching;
 * UINT64_MAX: not known. */
bool generate_driver_min_tokens(struct generate_driver *d, uint64_t *n, struct base_error *err);

/* Chooses one of the tokens that may come next, by the sampler; it becomes part of the text. `left`
 * is how many tokens may still come, this one included: when few are left, only tokens after which
 * the text can be completed in time are allowed, if there are any. `extra` (-1: none) may be chosen
 * too, and does not become part of the text. *id -1: no token can follow a text that is
 * complete. */
bool generate_driver_choose(struct generate_driver *d, struct sampler *sampler, const float *logits,
                            uint64_t left, int32_t extra, int32_t *id, struct base_error *err);

/* The next token is determined: ..._choose needs no logits. */
bool generate_driver_has_plan(const struct generate_driver *d);

/* Adds a token to the text that was not chosen here; *accepted false: it does not satisfy the
 * constraint, and only a new text can follow. */
bool generate_driver_follow(struct generate_driver *d, int32_t id, bool *accepted,
                            struct base_error *err);

bool generate_driver_is_over(const struct generate_driver *d); /* complete, nothing may follow */
bool generate_driver_is_complete(const struct generate_driver *d); /* the text so far is accepted */

/* Reads the text that is shown, which a stop text may cut. ..._shown_complete: the constraint
 * accepts what was shown since ..._begin. */
bool generate_driver_show(struct generate_driver *d, const char *bytes, size_t size,
                          struct base_error *err);
bool generate_driver_shown_complete(const struct generate_driver *d);

/* The fewest tokens that spell bytes[0..size) into ids (room for `size`); *n 0: none do. */
bool generate_driver_spell(struct generate_driver *d, const char *bytes, size_t size, int32_t *ids,
                           size_t *n, struct base_error *err);

#endif

/* cli/allowed.h: tokens under a constraint: what may come next, and how a text ends in time.
 *
 * Owns: the masks of one model's vocabulary, the state of the text that is generated. Refuses: how
 * constraints are compiled (constrain.h), where text goes. */
#ifndef CLI_ALLOWED_H
#define CLI_ALLOWED_H

#include "cli/load.h"
#include "sample/constrain/constraint.h"
#include "sample/sample.h"

struct cli_allowed; /* opaque */

/* The constraint must outlive it. `ends` says that end-of-text tokens may be chosen where the text
 * is complete; without it a text goes on as long as the constraint lets it. */
struct cli_allowed *cli_allowed_open(const struct constraint *constraint,
                                     const struct cli_model *model, bool ends,
                                     struct base_error *err);
void cli_allowed_close(struct cli_allowed *a); /* NULL is fine */

/* Begins a text; `continues` as for text_decoder_init. */
bool cli_allowed_begin(struct cli_allowed *a, bool continues, struct base_error *err);

/* Chooses one of the tokens that may come next, by the sampler; it becomes part of the text. `left`
 * is how many tokens may still come, this one included: when they get scarce, only those are
 * allowed after which the text can be completed in time, as far as that is possible. *id -1: no
 * token can follow a text that is complete. */
bool cli_allowed_pick(struct cli_allowed *a, struct sampler *sampler, const float *logits,
                      uint64_t left, int32_t *id, struct base_error *err);

bool cli_allowed_is_over(const struct cli_allowed *a);     /* complete, and nothing may follow */
bool cli_allowed_is_complete(const struct cli_allowed *a); /* the text so far is accepted */
/* Whether the constraint accepts another text: one that a stop text has cut. */
bool cli_allowed_accepts(const struct cli_allowed *a, const char *text, size_t size, bool *accepted,
                         struct base_error *err);

#endif

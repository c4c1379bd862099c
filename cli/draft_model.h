/* cli/draft_model.h: --draft: draft tokens from the text, from an MTP layer of the file, from a
 * drafter (cli/draft_file.h) or from a smaller model.
 *
 * Contains the smaller model's file, its session, and the check that both models have the same
 * vocabulary; generate/draft.h drafts. */
#pragma once

#include "cli/load.h"
#include "generate/draft.h"

struct cli_draft {
    struct cli_model model;       /* a smaller one of --draft FILE, on the same engine */
    struct generate_draft *draft; /* NULL: --draft off */
};

/* Opens drafting for an open session of `model`, which must outlive it. Fails with BASE_USAGE if
 * the vocabularies differ. The caller calls cli_draft_close, after a failure too. */
bool cli_draft_open(struct cli_draft *d, const struct cli_values *values,
                    const struct cli_model *model, struct base_error *err);
void cli_draft_close(struct cli_draft *d); /* may be all zeros */
void cli_draft_note(
    const struct cli_draft *d); /* -v: prints the numbers of draft tokens and of accepted ones */

/* cli/draft_file.h: the drafter of --draft FILE, which reads hidden states of the model.
 *
 * A session of the model drafts with it (models/model.h). A file with a complete model is no
 * drafter: cli/draft_model.h. */
#pragma once

#include "cli/options.h"
#include "models/model.h"

struct cli_drafter { /* may be all zeros */
    struct gguf_file *file;
    struct model *model; /* NULL: there is none */
};

/* Opens the drafter on the model's engine if --draft names a file with one. Fails with BASE_USAGE
 * if it does not fit the model. The caller calls cli_drafter_close, after a failure too. */
bool cli_drafter_open(struct cli_drafter *d, const struct cli_values *values, struct engine *engine,
                      const struct model *model, struct base_error *err);
void cli_drafter_close(struct cli_drafter *d);

enum cli_draft_source {
    CLI_DRAFT_OFF,
    CLI_DRAFT_AUTO,
    CLI_DRAFT_NGRAM,
    CLI_DRAFT_MTP,
    CLI_DRAFT_FILE
};
/* Returns the value of --draft. It is off with BLAS, whose bits depend on the batch, and for
 * commands without the option. */
enum cli_draft_source cli_draft_source(const struct cli_values *values);

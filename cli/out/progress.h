/* cli/out/progress.h: shows the progress of a long prompt on standard error.
 *
 * The line appears after a second, is updated each second, and is erased before the text begins;
 * only on a terminal. */
#ifndef CLI_OUT_PROGRESS_H
#define CLI_OUT_PROGRESS_H

#include "models/model.h"
#include <time.h>

struct cli_progress {
    const struct model_session *session;
    uint64_t n_total; /* number of tokens of sequence 0 at the prompt's end */
    bool runs, shown;
    timer_t timer; /* if it runs */
};

/* Call this before the prompt is evaluated; `p` must not move until cli_progress_end. */
void cli_progress_begin(struct cli_progress *p, const struct model_session *session,
                        uint64_t n_total);
/* Call this before other output, and at the end; any number of times. */
void cli_progress_end(struct cli_progress *p); /* may be all zeros */

#endif

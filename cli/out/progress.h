/* cli/out/progress.h: the progress of a long prompt, on the terminal of standard error.
 *
 * A line that is shown after a second, updated each second, and erased before the text begins. Only
 * on a terminal. */
#ifndef CLI_OUT_PROGRESS_H
#define CLI_OUT_PROGRESS_H

#include "models/model.h"
#include <time.h>

struct cli_progress {
    const struct model_session *session;
    uint64_t n_total; /* tokens that sequence 0 is to hold */
    bool runs, shown;
    timer_t timer; /* while it runs */
};

/* Call before the prompt is evaluated; `p` must not move until the end. */
void cli_progress_begin(struct cli_progress *p, const struct model_session *session,
                        uint64_t n_total);
/* Call when there is other output, or at the end; any number of times. */
void cli_progress_end(struct cli_progress *p); /* a zeroed one is fine */

#endif

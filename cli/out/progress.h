/* cli/out/progress.h: shows the progress of a long prompt on standard error.
 *
 * The line appears after a second, is updated each second, and is erased before the text begins; on
 * a terminal only. */
#ifndef CLI_OUT_PROGRESS_H
#define CLI_OUT_PROGRESS_H

#include "models/model.h"
#include <time.h>

struct cli_progress {
    const struct model_session *session;
    uint64_t n_total; /* tokens that sequence 0 will hold */
    bool runs, shown;
    timer_t timer; /* if it runs */
};

/* To be called before the prompt is evaluated; `p` must not move until the end. */
void cli_progress_begin(struct cli_progress *p, const struct model_session *session,
                        uint64_t n_total);
/* To be called before other output, and at the end; any number of times. */
void cli_progress_end(struct cli_progress *p); /* a zeroed one is fine */

#endif

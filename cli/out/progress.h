/* cli/out/progress.h: how far a long prompt is read, on the terminal of standard error.
 *
 * A line that is shown after a second and overwritten each second; it is gone before the text
 * begins. Without a terminal there is none. */
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

/* Before the prompt is evaluated; `p` must stay where it is until the end. */
void cli_progress_begin(struct cli_progress *p, const struct model_session *session,
                        uint64_t n_total);
/* Once there is something else to show, or nothing more to wait for; any number of times. */
void cli_progress_end(struct cli_progress *p); /* a zeroed one is fine */

#endif

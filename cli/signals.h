/* cli/signals.h: what signals do: Ctrl-C requests an end, others end the process and leave no part
 * of a file.
 *
 * A model file that is cut short or fails while it is mapped ends the process with one line and
 * status 3. A file-size limit is an error of write(2) and no signal. */
#ifndef CLI_SIGNALS_H
#define CLI_SIGNALS_H

#include "base/interrupt.h"
#include "base/output.h"

/* Ctrl-C raises base/interrupt.h's flag, a second one kills. */
void cli_signals_init(void);

/* Takes note of a Ctrl-C: the flag is down again, and from now on none of them kills. */
void cli_interrupt_reset(void);

/* Whatever ends the process removes what this output has written, until it is let go. False when
 * there are too many. Before it is opened; the output must stay where it is. */
bool cli_signals_guard(struct base_output *o);
void cli_signals_release(const struct base_output *o);

#endif

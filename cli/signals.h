/* cli/signals.h: signal handlers: Ctrl-C requests an end, others end the process and remove
 * incomplete files.
 *
 * A model file that is cut short or fails while it is mapped ends the process with one line and
 * status 3. A file-size limit is an error of write(2), not a signal. */
#ifndef CLI_SIGNALS_H
#define CLI_SIGNALS_H

#include "base/interrupt.h"
#include "base/output.h"

/* Ctrl-C sets base/interrupt.h's flag, a second one kills. */
void cli_signals_init(void);

/* Acknowledges a Ctrl-C: clears the flag; from now on Ctrl-C never kills. */
void cli_interrupt_reset(void);

/* A signal that ends the process removes this output's file, until it is released. False when there
 * are too many. Call it before the output is opened; the output must not move. */
bool cli_signals_guard(struct base_output *o);
void cli_signals_release(const struct base_output *o);

#endif

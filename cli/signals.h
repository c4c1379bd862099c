/* cli/signals.h: signal handlers: Ctrl-C requests an end; other signals end the process and remove
 * incomplete files.
 *
 * If a mapped model file is truncated or cannot be read, the process ends with one line and status
 * 3. A file-size limit is an error of write(2), not a signal. */
#ifndef CLI_SIGNALS_H
#define CLI_SIGNALS_H

#include "base/interrupt.h"
#include "base/output.h"

/* Ctrl-C sets the flag of base/interrupt.h, a second one ends the process. */
void cli_signals_init(void);

/* Acknowledges a Ctrl-C: clears the flag; from now on Ctrl-C never ends the process. */
void cli_interrupt_reset(void);

/* Makes signals that end the process remove this output's file, until it is released. False if
 * there are too many outputs. To be called before the output is opened; the output must not
 * move. */
bool cli_signals_guard(struct base_output *o);
void cli_signals_release(const struct base_output *o);

#endif

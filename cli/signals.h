/* cli/signals.h: signal handlers: Ctrl-C requests an end; other signals end the process and remove
 * incomplete files.
 *
 * If a mapped model file is truncated or cannot be read, the process ends with one line and status
 * 3. A file-size limit is an error of write(2), not a signal. */
#pragma once

#include "base/interrupt.h"
#include "base/output.h"

/* Installs the handlers: Ctrl-C sets the flag of base/interrupt.h, a second one ends the
 * process. */
void cli_signals_init(void);

/* Handles a Ctrl-C: clears the flag; from now on Ctrl-C does not end the process. */
void cli_interrupt_reset(void);

/* Makes signals that end the process restore these modes of the terminal on standard input, until
 * it is called with NULL. */
struct termios;
void cli_signals_terminal(const struct termios *modes);

/* Makes signals that end the process remove this output's file, until it is released. Call it
 * before the output is opened; the output must not move. Returns false if there are too many
 * outputs. */
bool cli_signals_guard(struct base_output *o);
void cli_signals_release(const struct base_output *o);

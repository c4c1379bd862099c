/* base/interrupt.h: the flag that interrupts long-running work.
 *
 * One flag for the process: Ctrl-C interrupts all of it, so no object carries a pointer to it.
 * Every loop whose length a file or a user determines polls it, at least once per millisecond of
 * work, and ends with BASE_INTERRUPTED. Polling is one load from memory. */
#pragma once

#include "base/error.h"

/* Set and clear the flag. Async-signal-safe and thread-safe. */
void base_interrupt(void);
void base_interrupt_clear(void);

/* Private to base/interrupt.c and the function below. */
extern int base_interrupt_flag;

static inline bool base_interrupted(void)
{
    return __atomic_load_n(&base_interrupt_flag, __ATOMIC_RELAXED) != 0;
}

/* True, or false and BASE_INTERRUPTED once the flag is set. */
static inline bool base_goes_on(struct base_error *err)
{
    return !base_interrupted() || base_fail(err, BASE_INTERRUPTED, "interrupted");
}

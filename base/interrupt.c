/* base/interrupt.c: the flag. See base/interrupt.h. */
#include "base/interrupt.h"

/* The one mutable object of the library: a signal handler sets it and takes no argument that could
 * point to an object. */
int base_interrupt_flag;

void base_interrupt(void)
{
    __atomic_store_n(&base_interrupt_flag, 1, __ATOMIC_RELAXED);
}

void base_interrupt_clear(void)
{
    __atomic_store_n(&base_interrupt_flag, 0, __ATOMIC_RELAXED);
}

/* base/unroll.h: loops over arrays that are meant to be registers. They have to be unrolled before
 * the compiler takes the arrays for memory, which `-O3` alone decides too late. */
#ifndef BASE_UNROLL_H
#define BASE_UNROLL_H

/* Before a loop of at most 16 turns. */
#define UNROLL _Pragma("GCC unroll 16")

/* i = 0 .. n - 1, all turns one after the other. */
#define EACH(i, n) UNROLL for (int i = 0; i < (n); i++)

#endif

/* base/unroll.h: loops over arrays that must stay in registers. They must be unrolled before the
 * compiler places the arrays in memory; `-O3` alone unrolls too late. */
#pragma once

/* Before a loop of at most 16 iterations. (The compiler warns of loops that it cannot unroll
 * because of a sanitizer's checks.) */
#if defined __SANITIZE_ADDRESS__ || defined __SANITIZE_THREAD__
#define UNROLL
#else
#define UNROLL _Pragma("GCC unroll 16")
#endif

/* i = 0 .. n - 1, fully unrolled. */
#define EACH(i, n) UNROLL for (int i = 0; i < (n); i++)

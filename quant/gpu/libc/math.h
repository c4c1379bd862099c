/* quant/gpu/libc/math.h: takes the place of the C library's header when a GPU's code is compiled:
 * the functions that this code inlines from quant/. */
#pragma once

#define fmaf      __builtin_fmaf
#define fabsf     __builtin_fabsf
#define copysignf __builtin_copysignf
#define rintf     __builtin_rintf
#define lrintf(x) ((long)__builtin_rintf(x))
#define sqrtf     __builtin_sqrtf
#define ceilf     __builtin_ceilf
#define isnan     __builtin_isnan
#define INFINITY  __builtin_inff()

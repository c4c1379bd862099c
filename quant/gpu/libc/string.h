/* quant/gpu/libc/string.h: takes the place of the C library's header when a GPU's code is compiled.
 */
#pragma once

#define memcpy __builtin_memcpy
#define memset __builtin_memset

/* quant/gpu/libc/string.h: takes the place of the C library's header when a GPU's code is compiled.
 */
#ifndef QUANT_GPU_LIBC_STRING_H
#define QUANT_GPU_LIBC_STRING_H

#define memcpy __builtin_memcpy
#define memset __builtin_memset

#endif

/* quant/stream.h: private to quant/: asking for weights before they are read.
 *
 * A kernel that reads several rows side by side, or runs ahead of what the processor sees by
 * itself, asks for memory in address order, some thousand bytes ahead. Asking never reads: any
 * address will do, also one behind the end. */
#ifndef QUANT_STREAM_H
#define QUANT_STREAM_H

#include <stddef.h>
#include <stdint.h>

/* The next `bytes` of a stream, to the second-level cache: eight long rows do not fit the first. */
static inline void quant_prefetch(const char *at, size_t bytes)
{
    for (size_t line = 0; line < bytes; line += 64) __builtin_prefetch(at + line, 0, 2);
}

#endif

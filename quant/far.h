/* quant/far.h: private to quant/: gemv over several rows side by side, as far apart as the engine
 * can have them.
 *
 * Several streams are read faster than one, as long as they are long and take short turns
 * (docs/performance.md). */
#ifndef QUANT_FAR_H
#define QUANT_FAR_H

#include "quant/stream.h"
#include "quant/types.h"

/* Asks for what a stream reads `ahead` bytes on. */
QUANT_INLINE void quant_far_prefetch(const uint8_t *at, size_t ahead, size_t bytes)
{
    quant_prefetch((const char *)at + ahead, bytes);
}

/* The sums of a row of each stream, `stride` bytes apart. */
typedef void quant_far_group(const void *product, const uint8_t *row, size_t stride, float *sum);

/* The gemv of a type with `streams` streams. */
QUANT_INLINE void quant_far_rows(int streams, quant_far_group *sums, const void *product,
                                 const struct quant_rows *rows, float *out)
{
    const size_t stride = (size_t)rows->apart * rows->row_bytes;
    const uint8_t *row = rows->w;
    for (int64_t r = 0; r < rows->n; r++, row += rows->row_bytes) {
        float sum[QUANT_MOST_STREAMS];
        sums(product, row, stride, sum);
        for (int64_t i = 0; i < streams; i++) out[r + i * rows->apart] = sum[i];
    }
}

#endif

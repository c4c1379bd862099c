/* quant/far.h: private to quant/: gemv over several rows side by side.
 *
 * Some processors read several streams faster than one, as long as they are long and take short
 * turns: there rows are as far apart as the engine can have them. Others like one stream better:
 * there the rows are neighbours (docs/performance.md). */
#ifndef QUANT_FAR_H
#define QUANT_FAR_H

#include "quant/stream.h"
#include "quant/types.h"

/* How far apart the rows of a group are, and how they are asked for. */
struct quant_far {
    int streams;
    size_t stride; /* bytes from row to row */
    size_t ahead;  /* bytes, in each row; 0: the rows are neighbours */
};

/* Before a step that reads `bytes` of each row, `done` bytes from where the first begins (at
 * `row`). Of neighbours, as much of the next group as they have together, in the order in which it
 * lies there. Of others a step that is shorter than a line asks for a line. */
QUANT_INLINE void quant_far_ask(const struct quant_far *far, const uint8_t *row, size_t done,
                                size_t bytes)
{
    const size_t streams = (size_t)far->streams;
    const char *at = (const char *)row;
    if (far->ahead == 0) {
        quant_prefetch_near(at + streams * (far->stride + done) + QUANT_NEAR_AHEAD,
                            streams * bytes);
        return;
    }
    for (size_t i = 0; i < streams; i++)
        quant_prefetch(at + i * far->stride + done + far->ahead, bytes);
}

/* The sums of a group's rows, of which the first is `row`. */
typedef void quant_far_group(const void *product, const struct quant_far *far, const uint8_t *row,
                             float *sum);

/* The gemv of a type with `streams` streams. */
QUANT_INLINE void quant_far_rows(int streams, quant_far_group *sums, const void *product,
                                 const struct quant_rows *rows, float *out)
{
    const bool together = rows->apart == 1;
    const int64_t step = together ? streams : 1;
    const struct quant_far far = {streams, (size_t)rows->apart * rows->row_bytes,
                                  together ? 0 : rows->asking.ahead};
    const uint8_t *row = rows->w;
    for (int64_t r = 0; r < rows->n; r++, row += (size_t)step * rows->row_bytes) {
        float sum[QUANT_MOST_STREAMS];
        sums(product, &far, row, sum);
        for (int64_t i = 0; i < streams; i++) out[r * step + i * rows->apart] = sum[i];
    }
}

#endif

/* quant/far.h: private to quant/: gemv over several rows side by side.
 *
 * Some processors read several streams faster than one, as long as they are long and take short
 * turns: there rows are as far apart as the engine can have them. Others like one stream better:
 * there the rows are neighbours (docs/performance.md). */
#ifndef QUANT_FAR_H
#define QUANT_FAR_H

#include "quant/stream.h"
#include "quant/types.h"

/* Of neighbours: bytes behind their place in the next group, which is some KB ahead already. */
enum { QUANT_ADJACENT_DISTANCE = 4096 };

/* How far apart the rows of a group are, and how they are prefetched. `streams` and
 * `adjacent_rows` are constants where a kernel's loop is inlined: no instruction decides. */
struct quant_far {
    int streams;
    bool adjacent_rows;
    size_t stride;   /* bytes from row to row */
    size_t distance; /* bytes ahead, in each row, where they are not adjacent */
};

/* Before a step that reads `bytes` of each row, for every row, at `at`: of rows far apart, what
 * this one reads later. A step that is shorter than a line prefetches a line. */
QUANT_INLINE void quant_far_prefetch(const struct quant_far *far, const uint8_t *at, size_t bytes)
{
    if (!far->adjacent_rows) quant_prefetch((const char *)at + far->distance, bytes);
}

/* And once, the first row being at `at`, `done` bytes from its start: of neighbours, as much of the
 * next group as the step reads of this one, in the order in which it lies there. */
QUANT_INLINE void quant_far_prefetch_adjacent(const struct quant_far *far, const uint8_t *at,
                                              size_t done, size_t bytes)
{
    const size_t streams = (size_t)far->streams;
    const uint8_t *next = at + streams * far->stride + (streams - 1) * done;
    if (far->adjacent_rows)
        quant_prefetch_once((const char *)next + QUANT_ADJACENT_DISTANCE, streams * bytes);
}

/* The sums of a group's rows, of which the first is `row`. */
typedef void quant_far_group(const void *product, const struct quant_far *far, const uint8_t *row,
                             float *sum);

QUANT_INLINE void quant_far_groups(int streams, bool adjacent_rows, quant_far_group *sums,
                                   const void *product, const struct quant_rows *rows, float *out)
{
    const struct quant_far far = {streams, adjacent_rows, (size_t)rows->apart * rows->row_bytes,
                                  rows->prefetch.distance};
    const int64_t step = adjacent_rows ? streams : 1, apart = adjacent_rows ? 1 : rows->apart;
    const uint8_t *row = rows->w;
    for (int64_t r = 0; r < rows->n; r++, row += (size_t)step * rows->row_bytes) {
        float sum[QUANT_MOST_STREAMS];
        sums(product, &far, row, sum);
        for (int64_t i = 0; i < streams; i++) out[r * step + i * apart] = sum[i];
    }
}

/* The gemv of a type with `streams` streams. */
QUANT_INLINE void quant_far_rows(int streams, quant_far_group *sums, const void *product,
                                 const struct quant_rows *rows, float *out)
{
    if (rows->apart == 1)
        quant_far_groups(streams, true, sums, product, rows, out);
    else
        quant_far_groups(streams, false, sums, product, rows, out);
}

#endif

/* gguf/values.c: decoding tensors piece by piece. See gguf/values.h. */
#include "gguf/values.h"
#include <math.h>
#include <string.h>

enum { PIECE = 512 }; /* elements that are decoded at once: a multiple of every block */

_Static_assert(GGUF_UNIT % PIECE == 0, "units of a long row begin at blocks");

static uint64_t rows_of(const struct gguf_tensor *t)
{
    return t->ne[1] * t->ne[2] * t->ne[3]; /* the reader has checked the product */
}

static uint64_t divide_up(uint64_t n, uint64_t by)
{
    return n / by + (n % by != 0);
}

uint64_t gguf_unit_count(const struct gguf_tensor *t)
{
    if (t->ne[0] >= GGUF_UNIT) return rows_of(t) * divide_up(t->ne[0], GGUF_UNIT);
    return divide_up(rows_of(t), GGUF_UNIT / t->ne[0]);
}

/* The elements of a unit: [first, end) of rows [row, row + n_rows). */
struct extent {
    uint64_t row, n_rows, first, end;
};

static struct extent extent_of(const struct gguf_tensor *t, uint64_t unit)
{
    if (t->ne[0] >= GGUF_UNIT) {
        const uint64_t per_row = divide_up(t->ne[0], GGUF_UNIT);
        const uint64_t first = unit % per_row * GGUF_UNIT, left = t->ne[0] - first;
        return (struct extent){unit / per_row, 1, first,
                               first + (left < GGUF_UNIT ? left : GGUF_UNIT)};
    }
    const uint64_t n = GGUF_UNIT / t->ne[0], row = unit * n, left = rows_of(t) - row;
    return (struct extent){row, left < n ? left : n, 0, t->ne[0]};
}

/* Decodes elements first .. first + n - 1 of a row; n is at most PIECE. Elements of types that are
 * known only by name count as zeros. */
static void read_row(const struct quant_kernels *kernels, const struct gguf_tensor *t, uint64_t row,
                     uint64_t first, uint64_t n, double *out)
{
    const struct quant_type *plain = quant_type_plain(t->type, t->ne[0]);
    const uint64_t bytes = (uint64_t)quant_row_size(t->type, (int64_t)t->ne[0]);
    const char *at = (const char *)t->data + row * bytes;
    char separated[PIECE * sizeof(float)];
    float floats[PIECE];
    if (plain) {
        const uint64_t in_group = row % t->type->interleave;
        quant_row_separate(t->type, plain, (int64_t)first, (int64_t)n, at - in_group * bytes,
                           (int)in_group, separated);
        kernels->type[plain->id].decode(0, (int64_t)n, separated, floats);
    } else if (kernels->type[t->type->id].decode) {
        kernels->type[t->type->id].decode((int64_t)first, (int64_t)n, at, floats);
    } else {
        if (!quant_data_read(t->type, (int64_t)first, (int64_t)n, at, out))
            memset(out, 0, n * sizeof *out);
        return;
    }
    for (uint64_t i = 0; i < n; i++) out[i] = (double)floats[i];
}

static uint64_t piece_size(uint64_t first, uint64_t end)
{
    return end - first < PIECE ? end - first : PIECE;
}

/* ---- Values that are not finite ---- */

struct gguf_scan gguf_scan_unit(const struct quant_kernels *kernels, const struct gguf_tensor *t,
                                uint64_t unit)
{
    struct gguf_scan scan = {.first = UINT64_MAX};
    const struct extent e = extent_of(t, unit);
    double value[PIECE];
    for (uint64_t r = e.row; r < e.row + e.n_rows; r++) {
        for (uint64_t first = e.first, n; first < e.end; first += n) {
            n = piece_size(first, e.end);
            read_row(kernels, t, r, first, n, value);
            for (uint64_t i = 0; i < n; i++) {
                if (isfinite(value[i])) continue;
                if (scan.first == UINT64_MAX) scan.first = r * t->ne[0] + first + i;
                scan.nan += isnan(value[i]) != 0;
                scan.infinite += isnan(value[i]) == 0;
            }
        }
    }
    return scan;
}

void gguf_scan_join(struct gguf_scan *sum, const struct gguf_scan *next)
{
    sum->nan += next->nan;
    sum->infinite += next->infinite;
    if (next->first < sum->first) sum->first = next->first;
}

/* ---- Differences ---- */

static void compare(struct gguf_difference *d, double a, double b, uint64_t index)
{
    if (a == b || (isnan(a) && isnan(b))) {
        if (isfinite(a)) d->norm += a * a;
        return;
    }
    d->differing++;
    if (!isfinite(a) || !isfinite(b)) {
        d->without_number++;
        return;
    }
    const double difference = fabs(b - a);
    d->error += difference * difference;
    d->norm += a * a;
    if (difference > d->max) {
        d->max = difference;
        d->max_at = index;
    }
}

struct gguf_difference gguf_compare_unit(const struct quant_kernels *kernels,
                                         const struct gguf_tensor *a, const struct gguf_tensor *b,
                                         uint64_t unit)
{
    struct gguf_difference d = {0};
    const struct extent e = extent_of(a, unit);
    double left[PIECE], right[PIECE];
    for (uint64_t r = e.row; r < e.row + e.n_rows; r++) {
        for (uint64_t first = e.first, n; first < e.end; first += n) {
            n = piece_size(first, e.end);
            read_row(kernels, a, r, first, n, left);
            read_row(kernels, b, r, first, n, right);
            for (uint64_t i = 0; i < n; i++)
                compare(&d, left[i], right[i], r * a->ne[0] + first + i);
        }
    }
    return d;
}

void gguf_difference_join(struct gguf_difference *sum, const struct gguf_difference *next)
{
    sum->error += next->error;
    sum->norm += next->norm;
    sum->differing += next->differing;
    sum->without_number += next->without_number;
    if (next->max <= sum->max) return;
    sum->max = next->max;
    sum->max_at = next->max_at;
}

void gguf_element_at(const struct gguf_tensor *t, uint64_t index, uint64_t at[GGUF_MAX_DIMS])
{
    for (int d = 0; d < GGUF_MAX_DIMS; d++) {
        at[d] = index % t->ne[d];
        index /= t->ne[d];
    }
}

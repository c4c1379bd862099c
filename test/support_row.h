/* test/support_row.h: rows of any type with arithmetic. */
#pragma once

#include "quant/quant.h"

/* Encodes x[k] by the fastest kernels of this machine, whose bytes are those of the specification
 * (test_checkkern). */
void support_row_fill(const struct quant_type *type, int64_t k, const float *x, void *row);

/* As support_row_fill. In a type that is only read or slow to encode, writes random blocks instead,
 * whose largest element is between 1/2 and 2; they depend only on x. */
void support_row_make(const struct quant_type *type, int64_t k, const float *x, void *row);

/* Writes the header of a row: d, then zeros. Nothing in types without a header. */
void support_row_head(const struct quant_type *type, float d, void *row);

/* The largest |x| of a block (with d = 1 in the row's header); infinity if an x is not finite. */
float support_row_largest(const struct quant_type *type, const uint8_t *block);

/* Encodes x[k] as the specification does; importance: NULL or [k] (struct quant_kernel). */
void support_row_encode(const struct quant_type *type, int64_t k, const float *x,
                        const float *importance, void *row);

/* Whether the type's encoder searches a grid, which is slow under sanitizers. */
bool support_row_encodes_slowly(const struct quant_type *type);

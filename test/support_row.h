/* test/support_row.h: rows of any type that computes. */
#ifndef TEST_SUPPORT_ROW_H
#define TEST_SUPPORT_ROW_H

#include "quant/quant.h"

/* x[k] encoded; in a type that is only read or slow to encode, random blocks instead, whose largest
 * element is finite and between 1/2 and 2: the same ones for the same x. */
void support_row_make(const struct quant_type *type, int64_t k, const float *x, void *row);

#endif

/* test/support_bed.h: cases for kernels of products: rows of any type, random and adversarial,
 * columns in any form, and outputs, all directly before inaccessible pages or at odd addresses. */
#pragma once

#include "quant/quant.h"
#include "test/support_guard.h"

/* BED_MAX_K exceeds the part of a row that a kernel processes at once by an odd amount. */
enum { BED_MAX_K = 17664, BED_MAX_ROWS = 35, BED_MAX_BYTES = BED_MAX_ROWS * BED_MAX_K };

/* A column in every form; arrays end at inaccessible pages. */
struct bed_column {
    struct guard f32, bf16, q, d, s, sum;
    struct quant_act act;
    bool plain; /* only normally distributed numbers */
};

struct bed {
    uint64_t rng;
    struct guard w, out;
    struct bed_column column, few[QUANT_FEW_COLUMNS];
    struct quant_kernels scalar;
    bool plain; /* only rows of normally distributed numbers */
};

struct bed bed_new(uint64_t seed);
void bed_free(struct bed *bed);

void bed_fill_bytes(uint64_t *rng, size_t size, uint8_t *out);

/* Fills c->act with a random column of k elements, by the scalar kernels or with any codes. */
void bed_column_fill(struct bed_column *c, uint64_t *rng, const struct quant_kernels *scalar,
                     const struct quant_act_form *form, int64_t k);

/* A distance between rows, often more than a row. */
size_t bed_row_bytes(struct bed *bed, const struct quant_type *type, int64_t k);
/* Random rows that end at the end of a page or begin at an odd address. */
uint8_t *bed_rows(struct bed *bed, const struct quant_type *type, int64_t k, int n_rows,
                  size_t row_bytes);

/* The number of floats with other bits; all NaN are equal. */
int bed_float_mismatches(int64_t n, const float *a, const float *b);

/* Prepares an output of `size` bytes; the next function checks that the bytes around it are
 * unchanged. */
void *bed_canary_place(struct guard *out, size_t size);
int bed_canary_mismatches(const struct guard *out, size_t size);

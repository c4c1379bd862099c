/* gguf/values.h: the values of tensors: which are not finite, and how two tensors differ.
 *
 * A tensor is divided into units of about GGUF_UNIT elements, for any number of threads; callers
 * distribute the units and join their results in the order of the units, so that sums have the same
 * bits each time. The type's kernel decodes the values: an infinite scale gives infinities or NaN.
 * These functions allocate nothing, start no threads and print nothing. */
#pragma once

#include "gguf/gguf.h"

enum { GGUF_UNIT = 1 << 18 /* elements */, GGUF_BYTE_UNIT = 1 << 20 /* bytes */ };

/* Units of a tensor of this shape, at least 1. */
uint64_t gguf_unit_count(const struct gguf_tensor *t);

/* Values that are not finite. */
struct gguf_scan {
    uint64_t nan, infinite;
    uint64_t first; /* index of the first one, elements counted in file order; UINT64_MAX: none */
};
struct gguf_scan gguf_scan_unit(const struct quant_kernels *kernels, const struct gguf_tensor *t,
                                uint64_t unit);
/* Adds the result of the next unit to *sum. */
void gguf_scan_join(struct gguf_scan *sum, const struct gguf_scan *next);

/* The difference of two tensors a and b of one shape. A pair with a value that is not finite is
 * counted and not summed, unless both are NaN or the same infinity. */
struct gguf_difference {
    double error, norm;      /* sums of squares of b - a and of a */
    double max;              /* the largest |b - a| */
    uint64_t max_at;         /* its index */
    uint64_t differing;      /* elements that are not equal */
    uint64_t without_number; /* pairs among them without a finite difference */
};
struct gguf_difference gguf_compare_unit(const struct quant_kernels *kernels,
                                         const struct gguf_tensor *a, const struct gguf_tensor *b,
                                         uint64_t unit);
void gguf_difference_join(struct gguf_difference *sum, const struct gguf_difference *next);

/* Converts the index of an element to its index in each dimension; at[0] is that within the row. */
void gguf_element_at(const struct gguf_tensor *t, uint64_t index, uint64_t at[GGUF_MAX_DIMS]);

/* The layout of part `part` in its file: irregularities that gguf_open accepts. */
struct gguf_layout {
    uint64_t padding;              /* bytes of padding that are not zero */
    uint64_t padding_at;           /* offset of the first one */
    uint64_t gaps;                 /* bytes between tensors that are more than padding */
    uint64_t tail;                 /* bytes after the last tensor and its padding */
    const struct gguf_tensor *odd; /* a tensor after a gap or out of order; NULL: none */
    bool unordered;                /* data is not in the order of the directory */
};
struct gguf_layout gguf_layout_measure(const struct gguf_file *file, int part);

/* engine/cpu/matmul/blas.h: OpenBLAS, loaded at run time if engine_options.use_blas is set.
 *
 * A call of the library uses one thread, which is one of the engine's pool. Its order of summation
 * differs, so results are close to the canonical ones but do not have the same bits. Called by
 * engine.c (open, close) and matmul. */
#pragma once

#include "base/error.h"
#include <stdint.h>

struct engine_blas; /* opaque */

/* Loads the library; the caller frees it by engine_blas_close. NULL and BASE_USAGE when
 * libopenblas.so.0 cannot be loaded. */
struct engine_blas *engine_blas_open(struct base_error *err);
void engine_blas_close(struct engine_blas *blas); /* blas may be NULL */

/* out[t][r] = sum over k of x[t][k] * w[r][k]; strides in floats. Any thread may call it. */
void engine_blas_product(const struct engine_blas *blas, int64_t n_cols, int64_t n_rows, int64_t k,
                         const float *x, int64_t x_stride, const float *w, int64_t w_stride,
                         float *out, int64_t out_stride);

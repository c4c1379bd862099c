/* engine/matmul/blas.h: OpenBLAS, loaded at run time if engine_options.use_blas is set.
 *
 * Owns the library handle and the one function that matmul calls. The library runs one thread per
 * call; all threads belong to the engine's pool. Its order of summation differs, so results are
 * close to the canonical ones but do not have the same bits. Called by engine.c (open, close) and
 * matmul. */
#ifndef ENGINE_MATMUL_BLAS_H
#define ENGINE_MATMUL_BLAS_H

#include "base/error.h"
#include <stdint.h>

struct engine_blas; /* opaque */

/* NULL and BASE_USAGE when libopenblas.so.0 cannot be loaded. The caller owns it. */
struct engine_blas *engine_blas_open(struct base_error *err);
void engine_blas_close(struct engine_blas *blas); /* NULL is fine */

/* out[t][r] = sum over k of x[t][k] * w[r][k]; strides in floats. Any thread may call it. */
void engine_blas_product(const struct engine_blas *blas, int64_t n_cols, int64_t n_rows, int64_t k,
                         const float *x, int64_t x_stride, const float *w, int64_t w_stride,
                         float *out, int64_t out_stride);

#endif

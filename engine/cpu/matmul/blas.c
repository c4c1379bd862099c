/* engine/cpu/matmul/blas.c: loads OpenBLAS by dlopen and calls its single-precision product. Called
 * by engine.c and matmul_run.c. */
#include "engine/cpu/matmul/blas.h"
#include <dlfcn.h>
#include <stdlib.h>

/* The C interface of BLAS ("CBLAS", BLAS Technical Forum standard, appendix B). */
enum { ROW_MAJOR = 101, NO_TRANS = 111, TRANS = 112 };
typedef void sgemm_function(int order, int trans_a, int trans_b, int m, int n, int k, float alpha,
                            const float *a, int lda, const float *b, int ldb, float beta, float *c,
                            int ldc);
typedef void set_threads_function(int n);

struct engine_blas {
    void *library;
    sgemm_function *sgemm;
};

static void *load(struct base_error *err)
{
#ifdef INFER_STATIC /* `make static`: a static program can load no library */
    return base_null(
        base_fail(err, BASE_USAGE, "OpenBLAS cannot be loaded: this program is one static file"));
#else
    void *library = dlopen("libopenblas.so.0", RTLD_NOW | RTLD_LOCAL);
    if (!library) base_fail(err, BASE_USAGE, "OpenBLAS cannot be loaded (%s)", dlerror());
    return library;
#endif
}

struct engine_blas *engine_blas_open(struct base_error *err)
{
    struct engine_blas *blas = calloc(1, sizeof(*blas));
    if (!blas) return base_null(base_fail(err, BASE_NO_MEMORY, "no memory for the BLAS binding"));
    blas->library = load(err);
    if (!blas->library) goto failed;
    blas->sgemm = (sgemm_function *)dlsym(blas->library, "cblas_sgemm");
    set_threads_function *set_threads =
        (set_threads_function *)dlsym(blas->library, "openblas_set_num_threads");
    if (!blas->sgemm || !set_threads) {
        base_fail(err, BASE_USAGE,
                  "libopenblas.so.0 does not have cblas_sgemm or openblas_set_num_threads");
        goto failed;
    }
    set_threads(1);
    return blas;
failed:
    engine_blas_close(blas);
    return NULL;
}

void engine_blas_close(struct engine_blas *blas)
{
    if (!blas) return;
    if (blas->library) dlclose(blas->library);
    free(blas);
}

void engine_blas_product(const struct engine_blas *blas, int64_t n_cols, int64_t n_rows, int64_t k,
                         const float *x, int64_t x_stride, const float *w, int64_t w_stride,
                         float *out, int64_t out_stride)
{
    blas->sgemm(ROW_MAJOR, NO_TRANS, TRANS, (int)n_cols, (int)n_rows, (int)k, 1.0f, x,
                (int)x_stride, w, (int)w_stride, 0.0f, out, (int)out_stride);
}

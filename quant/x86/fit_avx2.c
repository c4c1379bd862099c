/* quant/x86/fit_avx2.c: the searches of quant/encode/fit.h with AVX2; the same bits as fit.c. */
#include <immintrin.h>
#define FIT_TARGET             CPU_TARGET_AVX2
#define FIT_BYTES              32
#define FIT_CHOOSE(mask, a, b) _mm256_blendv_ps(b, a, (__m256)(mask))
#define FIT_LARGER(a, b)       _mm256_max_ps(a, b)
#define FIT_SMALLER(a, b)      _mm256_min_ps(a, b)
#include "quant/encode/fit_lanes.inc"
#include "quant/encode/fit_sums.inc"

const struct quant_fit quant_fit_avx2 = FIT_TABLE;

/* quant/arm/fit_neon.c: the searches of quant/encode/fit.h with NEON; the same bits as fit.c. */
#include <arm_neon.h>
#define FIT_TARGET
#define FIT_BYTES              16
#define FIT_CHOOSE(mask, a, b) vbslq_f32((uint32x4_t)(mask), a, b)
#define FIT_LARGER(a, b)       FIT_CHOOSE((a) > (b), a, b)
#define FIT_SMALLER(a, b)      FIT_CHOOSE((a) < (b), a, b)
#include "quant/encode/fit_lanes.inc"
#include "quant/encode/fit_sums.inc"

const struct quant_fit quant_fit_neon = FIT_TABLE;

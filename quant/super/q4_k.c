/* quant/super/q4_k.c: the encoder of Q4_K, its scalar kernels and its row. Layout:
 * quant/super/q4_k.h. */
#include "quant/super/q4_k.h"
#include "quant/encode/fit.h"

SUPER_KERNELS(q4_k)

static const struct quant_fit_min_form q4_k_fit = {QUANT_FIT_BOUNDED, .max_code = 15,
                                                   .max_scale = 63};

static void q4_k_pack(const struct quant_fit_super *fit, void *block)
{
    struct q4_k_block *out = block;
    out->d = fit->d;
    out->dmin = fit->dmin;
    k_scales_pack(fit->scale, fit->min, out->scale);
    for (int i = 0; i < 128; i++) {
        const uint8_t *q = fit->q + i / 32 * 64 + i % 32;
        out->q[i] = (uint8_t)(q[0] | q[32] << 4);
    }
}

SUPER_FIT_ENCODE(q4_k, .minima = &q4_k_fit)

const struct quant_type quant_type_q4_k = {
    .name = "Q4_K",
    .id = QUANT_Q4_K,
    SUPER_MEMBERS(q4_k),
};

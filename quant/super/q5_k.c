/* quant/super/q5_k.c: the encoder of Q5_K, its scalar kernels and its row. Layout:
 * quant/super/q5_k.h. */
#include "quant/super/q5_k.h"
#include "quant/encode/fit.h"

SUPER_KERNELS(q5_k)

static const struct quant_fit_min_form q5_k_fit = {QUANT_FIT_BOUNDED, .max_code = 31,
                                                   .max_scale = 63};

static void q5_k_pack(const struct quant_fit_super *fit, void *block)
{
    struct q5_k_block *out = block;
    out->d = fit->d;
    out->dmin = fit->dmin;
    k_scales_pack(fit->scale, fit->min, out->scale);
    for (int i = 0; i < SUPER_LEN; i++) {
        int s = i / 32, l = i % 32;
        out->q[s / 2 * 32 + l] |= (uint8_t)((fit->q[i] & 15) << s % 2 * 4);
        out->high[l] |= (uint8_t)(fit->q[i] >> 4 << s);
    }
}

SUPER_FIT_ENCODE(q5_k, .minima = &q5_k_fit)

const struct quant_type quant_type_q5_k = {
    .name = "Q5_K",
    .id = QUANT_Q5_K,
    SUPER_MEMBERS(q5_k),
};

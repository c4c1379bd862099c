/* quant/super/q2_k.c: the encoder of Q2_K, its scalar kernels and its row. Layout:
 * quant/super/q2_k.h. */
#include "quant/super/q2_k.h"
#include "quant/encode/fit.h"

SUPER_KERNELS(q2_k)

static const struct quant_fit_min_form q2_k_fit = {QUANT_FIT_BOUNDED, .max_code = 3,
                                                   .max_scale = 15};

static void q2_k_pack(const struct quant_fit_super *fit, void *block)
{
    struct q2_k_block *out = block;
    out->d = fit->d;
    out->dmin = fit->dmin;
    for (int s = 0; s < 16; s++) out->scale[s] = (uint8_t)(fit->scale[s] | fit->min[s] << 4);
    for (int i = 0; i < SUPER_LEN; i++)
        out->q[i / 128 * 32 + i % 32] |= (uint8_t)(fit->q[i] << i / 32 % 4 * 2);
}

SUPER_FIT_ENCODE(q2_k, .minima = &q2_k_fit)

const struct quant_type quant_type_q2_k = {
    .name = "Q2_K",
    .id = QUANT_Q2_K,
    SUPER_MEMBERS(q2_k),
};

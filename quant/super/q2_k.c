/* quant/super/q2_k.c: the encoder of Q2_K, its scalar kernels and its row. Layout:
 * quant/super/q2_k.h. */
#include "quant/super/q2_k.h"
#include "quant/encode/fit.h"

SUPER_KERNELS(q2_k)

static const struct quant_fit_min_form q2_k_fit = {QUANT_FIT_BOUNDED, .max_code = 3,
                                                   .max_scale = 15};

static void q2_k_encode(const struct quant_search *search, int64_t k, const float *in,
                        const float *importance, void *row)
{
    struct q2_k_block *out = row;
    for (int64_t b = 0; b < k / SUPER_LEN; b++, out++) {
        struct quant_fit_super fit;
        search->fit->super_with_min(&q2_k_fit, 16, in + SUPER_LEN * b,
                                    super_importance(importance, b), &fit);
        memset(out, 0, sizeof *out);
        out->d = fit.d;
        out->dmin = fit.dmin;
        for (int s = 0; s < 16; s++) out->scale[s] = (uint8_t)(fit.scale[s] | fit.min[s] << 4);
        for (int i = 0; i < SUPER_LEN; i++)
            out->q[i / 128 * 32 + i % 32] |= (uint8_t)(fit.q[i] << i / 32 % 4 * 2);
    }
}

const struct quant_type quant_type_q2_k = {
    .name = "Q2_K",
    .id = QUANT_Q2_K,
    SUPER_MEMBERS(q2_k),
};

/* quant/super/q6_k.c: the encoder of Q6_K, its scalar kernels and its row. Layout:
 * quant/super/q6_k.h. */
#include "quant/super/q6_k.h"
#include "quant/encode/fit.h"

SUPER_KERNELS(q6_k)

static void q6_k_pack(const struct quant_fit_super *fit, void *block)
{
    struct q6_k_block *out = block;
    out->d = fit->d;
    for (int s = 0; s < 16; s++) out->scale[s] = (int8_t)fit->scale[s];
    for (int i = 0; i < SUPER_LEN; i++) {
        int h = i / 128, g = i / 32 % 4, l = i % 32;
        out->low[64 * h + g % 2 * 32 + l] |= (uint8_t)((fit->q[i] & 15) << g / 2 * 4);
        out->high[32 * h + l] |= (uint8_t)(fit->q[i] >> 4 << 2 * g);
    }
}

static const struct quant_fit_grid q6_k_grid = {
    .low = -32, .high = 31, .n_trials = 7, .first = -0.9f, .step = 0.3f};
SUPER_FIT_ENCODE(q6_k, .grid = &q6_k_grid, .min_scale = -128)

const struct quant_type quant_type_q6_k = {
    .name = "Q6_K",
    .id = QUANT_Q6_K,
    SUPER_MEMBERS(q6_k),
};

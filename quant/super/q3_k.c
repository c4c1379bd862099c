/* quant/super/q3_k.c: the encoder of Q3_K, its scalar kernels and its row. Layout:
 * quant/super/q3_k.h. */
#include "quant/super/q3_k.h"
#include "quant/encode/fit.h"

SUPER_KERNELS(q3_k)

static void q3_k_pack(const struct quant_fit_super *fit, void *block)
{
    struct q3_k_block *out = block;
    out->d = fit->d;
    for (int s = 0; s < 16; s++) {
        int scale = fit->scale[s] + 32;
        out->scale[s % 8] |= (uint8_t)((scale & 15) << s / 8 * 4);
        out->scale[8 + s % 4] |= (uint8_t)(scale >> 4 << s / 4 * 2);
    }
    for (int i = 0; i < SUPER_LEN; i++) {
        out->q[i / 128 * 32 + i % 32] |= (uint8_t)((fit->q[i] & 3) << i / 32 % 4 * 2);
        out->high[i % 32] |= (uint8_t)(fit->q[i] >> 2 << i / 32);
    }
}

static const struct quant_fit_grid q3_k_grid = {
    .low = -4, .high = 3, .n_trials = 7, .first = -0.9f, .step = 0.3f};
SUPER_FIT_ENCODE(q3_k, .grid = &q3_k_grid, .min_scale = -32)

const struct quant_type quant_type_q3_k = {
    .name = "Q3_K",
    .id = QUANT_Q3_K,
    SUPER_MEMBERS(q3_k),
};

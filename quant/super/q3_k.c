/* quant/super/q3_k.c: the encoder of Q3_K, its scalar kernels and its row. Layout:
 * quant/super/q3_k.h. */
#include "quant/super/q3_k.h"
#include "quant/encode/fit.h"

SUPER_KERNELS(q3_k)

static void q3_k_encode(const struct quant_search *search, int64_t k, const float *in,
                        const float *importance, void *row)
{
    const struct quant_fit_grid grid = {
        .low = -4, .high = 3, .n_trials = 7, .first = -0.9f, .step = 0.3f};
    struct q3_k_block *out = row;
    for (int64_t b = 0; b < k / SUPER_LEN; b++, out++) {
        struct quant_fit_super fit;
        search->fit->super(&grid, 16, -32, in + SUPER_LEN * b, super_importance(importance, b),
                           &fit);
        memset(out, 0, sizeof *out);
        out->d = fit.d;
        for (int s = 0; s < 16; s++) {
            int scale = fit.scale[s] + 32;
            out->scale[s % 8] |= (uint8_t)((scale & 15) << s / 8 * 4);
            out->scale[8 + s % 4] |= (uint8_t)(scale >> 4 << s / 4 * 2);
        }
        for (int i = 0; i < SUPER_LEN; i++) {
            out->q[i / 128 * 32 + i % 32] |= (uint8_t)((fit.q[i] & 3) << i / 32 % 4 * 2);
            out->high[i % 32] |= (uint8_t)(fit.q[i] >> 2 << i / 32);
        }
    }
}

const struct quant_type quant_type_q3_k = {
    .name = "Q3_K",
    .id = QUANT_Q3_K,
    SUPER_MEMBERS(q3_k),
};

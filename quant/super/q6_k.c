/* quant/super/q6_k.c: the encoder of Q6_K, its scalar kernels and its row. Layout:
 * quant/super/q6_k.h. */
#include "quant/super/q6_k.h"
#include "quant/encode/fit.h"

SUPER_KERNELS(q6_k)

static void q6_k_encode(const struct quant_search *search, int64_t k, const float *in,
                        const float *importance, void *row)
{
    const struct quant_fit_grid grid = {
        .low = -32, .high = 31, .n_trials = 7, .first = -0.9f, .step = 0.3f};
    struct q6_k_block *out = row;
    for (int64_t b = 0; b < k / SUPER_LEN; b++, out++) {
        struct quant_fit_super fit;
        search->fit->super(&grid, 16, -128, in + SUPER_LEN * b, super_importance(importance, b),
                           &fit);
        memset(out, 0, sizeof *out);
        out->d = fit.d;
        for (int s = 0; s < 16; s++) out->scale[s] = (int8_t)fit.scale[s];
        for (int i = 0; i < SUPER_LEN; i++) {
            int h = i / 128, g = i / 32 % 4, l = i % 32;
            out->low[64 * h + g % 2 * 32 + l] |= (uint8_t)((fit.q[i] & 15) << g / 2 * 4);
            out->high[32 * h + l] |= (uint8_t)(fit.q[i] >> 4 << 2 * g);
        }
    }
}

const struct quant_type quant_type_q6_k = {
    .name = "Q6_K",
    .id = QUANT_Q6_K,
    SUPER_MEMBERS(q6_k),
};

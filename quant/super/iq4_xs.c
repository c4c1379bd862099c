/* quant/super/iq4_xs.c: the encoder of IQ4_XS, its scalar kernels and its row. Layout:
 * quant/super/iq4_xs.h. */
#include "quant/super/iq4_xs.h"
#include "quant/encode/fit.h"

SUPER_KERNELS(iq4_xs)

static void iq4_xs_encode(const struct quant_search *search, int64_t k, const float *in,
                          const float *importance, void *row)
{
    struct iq4_xs_block *out = row;
    for (int64_t b = 0; b < k / SUPER_LEN; b++, out++) {
        struct quant_fit_super fit;
        search->fit->super(&quant_fit_iq4, 32, -32, in + SUPER_LEN * b,
                           super_importance(importance, b), &fit);
        memset(out, 0, sizeof *out);
        out->d = fit.d;
        for (int s = 0; s < 8; s++) {
            int scale = fit.scale[s] + 32;
            out->scale_low[s / 2] |= (uint8_t)((scale & 15) << s % 2 * 4);
            out->scale_high |= (uint16_t)(scale >> 4 << 2 * s);
        }
        for (int i = 0; i < 128; i++) {
            const uint8_t *q = fit.q + i / 16 * 32 + i % 16;
            out->q[i] = (uint8_t)(q[0] | q[16] << 4);
        }
    }
}

const struct quant_type quant_type_iq4_xs = {
    .name = "IQ4_XS",
    .id = QUANT_IQ4_XS,
    SUPER_MEMBERS(iq4_xs),
};

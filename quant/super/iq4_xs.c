/* quant/super/iq4_xs.c: the encoder of IQ4_XS, its scalar kernels and its row. Layout:
 * quant/super/iq4_xs.h. */
#include "quant/super/iq4_xs.h"
#include "quant/encode/fit.h"

SUPER_KERNELS(iq4_xs)

static void iq4_xs_pack(const struct quant_fit_super *fit, void *block)
{
    struct iq4_xs_block *out = block;
    out->d = fit->d;
    for (int s = 0; s < 8; s++) {
        int scale = fit->scale[s] + 32;
        out->scale_low[s / 2] |= (uint8_t)((scale & 15) << s % 2 * 4);
        out->scale_high |= (uint16_t)(scale >> 4 << 2 * s);
    }
    for (int i = 0; i < 128; i++) {
        const uint8_t *q = fit->q + i / 16 * 32 + i % 16;
        out->q[i] = (uint8_t)(q[0] | q[16] << 4);
    }
}

SUPER_FIT_ENCODE(iq4_xs, .grid = &quant_fit_iq4, .min_scale = -32)

const struct quant_type quant_type_iq4_xs = {
    .name = "IQ4_XS",
    .id = QUANT_IQ4_XS,
    SUPER_MEMBERS(iq4_xs),
};

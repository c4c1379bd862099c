/* quant/super/iq2_xs.c: the encoder of IQ2_XS, its scalar kernels and its row. Layout:
 * quant/super/iq2_xs.h. */
#include "quant/super/iq2_xs.h"
#include "quant/encode/grid_fit.h"

SUPER_KERNELS(iq2_xs)

static const struct quant_grid_form iq2_xs_form = {
    QUANT_GRID_IQ2, .n_entries = 512, .grid8 = quant_grid_iq2_xs, .signs = QUANT_GRID_SIGNS_EVEN,
    .sub_len = 16,
};

static void iq2_xs_pack(const struct quant_grid_fit *fit, struct iq2_xs_block *out)
{
    memset(out, 0, sizeof *out);
    out->d = fit->d;
    for (int i = 0; i < 32; i++) {
        const uint16_t q = (uint16_t)(fit->entry[i] | (fit->sign[i] & 127) << 9);
        memcpy(out->q[i], &q, sizeof q);
    }
    for (int s = 0; s < 16; s++) out->scale[s / 2] |= (uint8_t)(fit->scale[s] << s % 2 * 4);
}

SUPER_GRID_ENCODE(iq2_xs)

const struct quant_type quant_type_iq2_xs = {
    .name = "IQ2_XS",
    .id = QUANT_IQ2_XS,
    SUPER_MEMBERS(iq2_xs),
};

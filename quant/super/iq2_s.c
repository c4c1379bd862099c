/* quant/super/iq2_s.c: the encoder of IQ2_S, its scalar kernels and its row. Layout:
 * quant/super/iq2_s.h. */
#include "quant/super/iq2_s.h"
#include "quant/encode/grid_fit.h"

SUPER_KERNELS(iq2_s)

static const struct quant_grid_form iq2_s_form = {
    QUANT_GRID_IQ2, .n_entries = 1024, .grid8 = quant_grid_iq2_s, .signs = QUANT_GRID_SIGNS_FREE,
    .sub_len = 16,
};

static void iq2_s_pack(const struct quant_grid_fit *fit, struct iq2_s_block *out)
{
    memset(out, 0, sizeof *out);
    out->d = fit->d;
    memcpy(out->sign, fit->sign, sizeof out->sign);
    for (int i = 0; i < 32; i++) {
        out->q[i] = (uint8_t)fit->entry[i];
        out->high[i / 4] |= (uint8_t)(fit->entry[i] >> 8 << i % 4 * 2);
    }
    for (int s = 0; s < 16; s++) out->scale[s / 2] |= (uint8_t)(fit->scale[s] << s % 2 * 4);
}

SUPER_GRID_ENCODE(iq2_s)

const struct quant_type quant_type_iq2_s = {
    .name = "IQ2_S",
    .id = QUANT_IQ2_S,
    SUPER_MEMBERS(iq2_s),
};

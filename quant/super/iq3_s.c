/* quant/super/iq3_s.c: the encoder of IQ3_S, its scalar kernels and its row. Layout:
 * quant/super/iq3_s.h. */
#include "quant/super/iq3_s.h"
#include "quant/encode/grid_fit.h"

SUPER_KERNELS(iq3_s)

static const struct quant_grid_form iq3_s_form = {
    QUANT_GRID_IQ3,
    .n_entries = 512,
    .grid4 = quant_grid_iq3_s,
    .factor = 1.0f,
    .level = {1, 3, 5, 7, 9, 11, 13, 15},
    .signs = QUANT_GRID_SIGNS_FREE,
};

static void iq3_s_pack(const struct quant_grid_fit *fit, struct iq3_s_block *out)
{
    memset(out, 0, sizeof *out);
    out->d = fit->d;
    memcpy(out->sign, fit->sign, sizeof out->sign);
    for (int i = 0; i < 64; i++) {
        out->q[i] = (uint8_t)fit->entry[i];
        out->high[i / 8] |= (uint8_t)(fit->entry[i] >> 8 << i % 8);
    }
    for (int s = 0; s < 8; s++) out->scale[s / 2] |= (uint8_t)(fit->scale[s] << s % 2 * 4);
}

SUPER_GRID_ENCODE(iq3_s)

const struct quant_type quant_type_iq3_s = {
    .name = "IQ3_S",
    .id = QUANT_IQ3_S,
    SUPER_MEMBERS(iq3_s),
};

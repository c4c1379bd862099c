/* quant/super/iq2_xxs.c: the encoder of IQ2_XXS, its scalar kernels and its row. Layout:
 * quant/super/iq2_xxs.h. */
#include "quant/super/iq2_xxs.h"
#include "quant/encode/grid_fit.h"

SUPER_KERNELS(iq2_xxs)

static const struct quant_grid_form iq2_xxs_form = {
    QUANT_GRID_IQ2, .n_entries = 256, .grid8 = quant_grid_iq2_xxs, .signs = QUANT_GRID_SIGNS_EVEN,
    .sub_len = 32,
};

static void iq2_xxs_pack(const struct quant_grid_fit *fit, struct iq2_xxs_block *out)
{
    memset(out, 0, sizeof *out);
    out->d = fit->d;
    for (int s = 0; s < 8; s++) {
        uint32_t tail = (uint32_t)fit->scale[s] << 28;
        for (int j = 0; j < 4; j++) {
            out->sub[s].q[j] = (uint8_t)fit->entry[4 * s + j];
            tail |= (uint32_t)(fit->sign[4 * s + j] & 127) << 7 * j;
        }
        memcpy(out->sub[s].tail, &tail, sizeof tail);
    }
}

SUPER_GRID_ENCODE(iq2_xxs)

const struct quant_type quant_type_iq2_xxs = {
    .name = "IQ2_XXS",
    .id = QUANT_IQ2_XXS,
    SUPER_MEMBERS(iq2_xxs),
};

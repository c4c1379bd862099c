/* quant/super/iq3_xxs.c: the encoder of IQ3_XXS, its scalar kernels and its row. Layout:
 * quant/super/iq3_xxs.h. */
#include "quant/super/iq3_xxs.h"
#include "quant/encode/grid_fit.h"

SUPER_KERNELS(iq3_xxs)

static const struct quant_grid_form iq3_xxs_form = {
    QUANT_GRID_IQ3,
    .n_entries = 256,
    .grid4 = quant_grid_iq3_xxs,
    .factor = 0.25f,
    .level = {4, 12, 20, 28, 36, 44, 52, 62},
    .signs = QUANT_GRID_SIGNS_EVEN,
};

static void iq3_xxs_pack(const struct quant_grid_fit *fit, struct iq3_xxs_block *out)
{
    memset(out, 0, sizeof *out);
    out->d = fit->d;
    for (int i = 0; i < 64; i++) out->q[i] = (uint8_t)fit->entry[i];
    for (int s = 0; s < 8; s++) {
        uint32_t tail = (uint32_t)fit->scale[s] << 28;
        for (int j = 0; j < 4; j++) tail |= (uint32_t)(fit->sign[4 * s + j] & 127) << 7 * j;
        memcpy(out->tail[s], &tail, sizeof tail);
    }
}

SUPER_GRID_ENCODE(iq3_xxs)

const struct quant_type quant_type_iq3_xxs = {
    .name = "IQ3_XXS",
    .id = QUANT_IQ3_XXS,
    SUPER_MEMBERS(iq3_xxs),
};

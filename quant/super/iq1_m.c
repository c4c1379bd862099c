/* quant/super/iq1_m.c: the encoder of IQ1_M, its scalar kernels and its row. Layout:
 * quant/super/iq1_m.h. */
#include "quant/super/iq1_m.h"
#include "quant/encode/grid_fit.h"

SUPER_KERNELS(iq1_m)

static const struct quant_grid_form iq1_m_form = {
    QUANT_GRID_IQ1,
    .sub_len = 16,
    .shift_len = 8,
};

static void iq1_m_pack(const struct quant_grid_fit *fit, struct iq1_m_block *out)
{
    memset(out, 0, sizeof *out);
    for (int i = 0; i < 32; i++) {
        const int high = fit->entry[i] >> 8 | fit->down[i] << 3;
        out->q[i] = (uint8_t)fit->entry[i];
        out->high[i / 2] |= (uint8_t)(high << i % 2 * 4);
    }
    for (int i = 0; i < 4; i++) {
        uint16_t scale = (uint16_t)((fit->d >> 4 * i & 15) << 12);
        for (int j = 0; j < 4; j++) scale |= (uint16_t)(fit->scale[4 * i + j] << 3 * j);
        memcpy(out->scale[i], &scale, sizeof scale);
    }
}

SUPER_GRID_ENCODE(iq1_m)

const struct quant_type quant_type_iq1_m = {
    .name = "IQ1_M",
    .id = QUANT_IQ1_M,
    SUPER_MEMBERS(iq1_m),
};

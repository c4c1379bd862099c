/* quant/super/iq1_s.c: the encoder of IQ1_S, its scalar kernels and its row. Layout:
 * quant/super/iq1_s.h. */
#include "quant/super/iq1_s.h"
#include "quant/encode/grid_fit.h"

SUPER_KERNELS(iq1_s)

static const struct quant_grid_form iq1_s_form = {
    QUANT_GRID_IQ1,
    .sub_len = 32,
    .shift_len = 32,
};

static void iq1_s_pack(const struct quant_grid_fit *fit, struct iq1_s_block *out)
{
    memset(out, 0, sizeof *out);
    out->d = fit->d;
    for (int s = 0; s < 8; s++) {
        uint16_t high = (uint16_t)(fit->scale[s] << 12 | fit->down[4 * s] << 15);
        for (int j = 0; j < 4; j++) {
            out->q[4 * s + j] = (uint8_t)fit->entry[4 * s + j];
            high |= (uint16_t)(fit->entry[4 * s + j] >> 8 << 3 * j);
        }
        memcpy(out->high[s], &high, sizeof high);
    }
}

SUPER_GRID_ENCODE(iq1_s)

const struct quant_type quant_type_iq1_s = {
    .name = "IQ1_S",
    .id = QUANT_IQ1_S,
    SUPER_MEMBERS(iq1_s),
};

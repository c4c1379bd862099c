/* quant/super/grid_types.c: the encoders, scalar kernels and rows of the super-block types whose
 * elements are entries of grids (grid_tables.h). Layouts: iq2_xxs.h and the other headers. */
#include "quant/encode/grid_fit.h"
#include "quant/super/iq1_m.h"
#include "quant/super/iq1_s.h"
#include "quant/super/iq2_s.h"
#include "quant/super/iq2_xs.h"
#include "quant/super/iq2_xxs.h"
#include "quant/super/iq3_s.h"
#include "quant/super/iq3_xxs.h"

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
QUANT_SUPER_TYPE(iq2_xxs, IQ2_XXS)

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
QUANT_SUPER_TYPE(iq2_xs, IQ2_XS)

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
QUANT_SUPER_TYPE(iq2_s, IQ2_S)

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
QUANT_SUPER_TYPE(iq3_xxs, IQ3_XXS)

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
QUANT_SUPER_TYPE(iq3_s, IQ3_S)

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
QUANT_SUPER_TYPE(iq1_s, IQ1_S)

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
QUANT_SUPER_TYPE(iq1_m, IQ1_M)

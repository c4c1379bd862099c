/* quant/encode/grid_fit.h: private to quant/: the search for scales and entries when weights are
 * encoded by a grid, that is, a list of the combinations that 4 or 8 consecutive elements may have.
 *
 * Each entry's error is a sum of errors of its elements, of which each level has one: they are
 * added up for all combinations of levels that half an entry may have, and the error of an entry is
 * then one addition. So all entries are tried, for each scale. */
#ifndef QUANT_ENCODE_GRID_FIT_H
#define QUANT_ENCODE_GRID_FIT_H

#include "quant/encode/fit.h"

enum quant_grid_signs {
    QUANT_GRID_SIGNS_FREE, /* levels are magnitudes; each element has a sign */
    QUANT_GRID_SIGNS_EVEN, /* of each 8 elements an even number is negative */
    QUANT_GRID_SHIFTS      /* levels have signs, and all of shift_len elements 1 more or 1 less */
};

/* value = factor * d * (2 * scale + 1) * level. */
struct quant_grid_form {
    int n_entries, entry_len; /* 8: grid8, 4: grid4; byte i of an entry is element i, signed */
    const uint64_t *grid8;
    const uint32_t *grid4;
    int n_levels; /* at most 4 in entries of 8, 8 in entries of 4 */
    int8_t level[8];
    enum quant_grid_signs signs;
    int shift_len;
    int sub_len, max_scale;
    float factor;
    /* Scales that are tried first: n_scales of them, from the one that puts the largest element at
     * `first` times the highest level, each `ratio` times the one before. */
    int n_scales;
    float first, ratio;
};

/* Members that the forms of a family share. */
/* clang-format off */
#define QUANT_GRID_IQ1                                                                             \
    .n_entries = 2048, .entry_len = 8, .grid8 = quant_grid_iq1, .n_levels = 3, .level = {-8, 0, 8}, \
    .signs = QUANT_GRID_SHIFTS, .n_scales = 5, .first = 1.1f, .ratio = 1.3f, .factor = 0.125f,     \
    .max_scale = 7
#define QUANT_GRID_IQ2                                                                             \
    .entry_len = 8, .n_levels = 3, .level = {8, 25, 43}, .n_scales = 7, .first = 0.75f,            \
    .ratio = 1.18f, .factor = 0.125f, .max_scale = 15
#define QUANT_GRID_IQ3                                                                             \
    .entry_len = 4, .n_levels = 8, .sub_len = 32, .n_scales = 7, .first = 0.85f, .ratio = 1.08f,   \
    .max_scale = 15
/* clang-format on */

enum { QUANT_GRID_ENTRIES = 2048 };

/* A form with its entries as numbers of levels, half an entry each. */
struct quant_grid {
    const struct quant_grid_form *form;
    uint8_t half[2][QUANT_GRID_ENTRIES];
};
void quant_grid_prepare(struct quant_grid *grid, const struct quant_grid_form *form);

/* A super-block as the file keeps it, before the bits are packed. */
struct quant_grid_fit {
    uint16_t d;
    uint8_t scale[16];
    uint16_t entry[64];
    uint8_t sign[32]; /* bit i % 8 of i / 8: element i is negative */
    uint8_t down[32]; /* of 8 elements: the shift is -1 */
};
void quant_grid_fit(const struct quant_grid *grid, const float *in, const float *importance,
                    struct quant_grid_fit *out);

#endif

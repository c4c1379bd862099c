/* quant/encode/grid_fit.h: private to quant/: the search for scales and entries of types with a
 * grid, that is, a list of the combinations that 4 or 8 consecutive elements may have.
 *
 * The error of an entry is the sum of the errors of its two halves, which are tabulated for all
 * combinations of levels in half an entry. The search thus finds the best of all entries for each
 * scale. A level is a value that an element of the grid can have. */
#pragma once

#include "quant/encode/fit.h"

enum quant_grid_signs {
    QUANT_GRID_SIGNS_FREE, /* levels are magnitudes; each element has a sign */
    QUANT_GRID_SIGNS_EVEN, /* an even number of each 8 elements is negative */
    QUANT_GRID_SHIFTS      /* levels have signs; each shift_len elements are shifted by 1 or -1 */
};

/* value = factor * d * (2 * scale + 1) * level. */
struct quant_grid_form {
    int n_entries, entry_len; /* 8: grid8, 4: grid4; byte i of an entry is element i, signed */
    const uint64_t *grid8;
    const uint32_t *grid4;
    int n_levels; /* at most 3 in entries of 8, 8 in entries of 4 */
    int8_t level[8];
    enum quant_grid_signs signs;
    int shift_len;
    int sub_len, max_scale;
    float factor;
    bool by_size; /* weights: quant_fit_prepare */
    /* Trial scales: with the first of n_scales, the largest element is `first` times the highest
     * level; each of the others is 1 / `ratio` times the previous one. */
    int n_scales;
    float first, ratio;
};

/* Members that the forms of a family share. */
/* clang-format off */
#define QUANT_GRID_IQ1                                                                             \
    .n_entries = 2048, .entry_len = 8, .grid8 = quant_grid_iq1, .n_levels = 3, .level = {-8, 0, 8}, \
    .signs = QUANT_GRID_SHIFTS, .n_scales = 5, .first = 1.1f, .ratio = 1.3f, .factor = 0.125f,     \
    .max_scale = 7, .by_size = true
#define QUANT_GRID_IQ2                                                                             \
    .entry_len = 8, .n_levels = 3, .level = {8, 25, 43}, .n_scales = 7, .first = 0.75f,            \
    .ratio = 1.18f, .factor = 0.125f, .max_scale = 15
#define QUANT_GRID_IQ3                                                                             \
    .entry_len = 4, .n_levels = 8, .sub_len = 32, .n_scales = 5, .first = 0.88f, .ratio = 1.11f,   \
    .max_scale = 15
/* clang-format on */

enum { QUANT_GRID_ENTRIES = 2048, QUANT_GRID_HALVES = 96 /* 3^4 or 8^2, in whole lanes */ };

/* For a group (the elements of one entry) and one shift: sums of w x v and w v^2 for each
 * combination of levels in half an entry. */
struct quant_grid_sums {
    float xv[2][QUANT_GRID_HALVES], vv[2][QUANT_GRID_HALVES];
};

/* A super-block: elements (magnitudes, if the grid has magnitudes) and their weights. */
struct quant_grid_elements {
    float x[FIT_LEN], w[FIT_LEN];
    float x_across[FIT_LEN], w_across[FIT_LEN]; /* transposed: [place in a group][group] */
};

struct quant_grid_tables {
    struct quant_grid_sums sums[64]; /* by group; with shifts, by group and shift (+1, -1) */
    float xx[64];                    /* by group: sum of w x^2 */
};

/* Errors of the nearest levels, by shift (+1, -1) and group. */
struct quant_grid_bounds {
    float of[2][64];
};

/* The parts of the search that each level implements; the result is the same at all levels. */
struct quant_grid;
struct quant_grid_level {
    /* Finds the best entry of a group for a scale and returns its error minus the sum of w x^2, or
     * infinity if that is not below `limit`. The search begins at *entry. */
    float (*search)(const struct quant_grid *grid, const struct quant_grid_sums *t, float scale,
                    float limit, uint16_t *entry);
    /* Fills the tables and the transposed elements. */
    void (*fill)(const struct quant_grid_form *form, struct quant_grid_elements *e,
                 struct quant_grid_tables *t);
    /* Computes the bounds; scale: of each group. */
    void (*bounds)(const struct quant_grid_form *form, const struct quant_grid_elements *e,
                   const float *scale, struct quant_grid_bounds *out);
};
extern const struct quant_grid_level quant_grid_scalar, quant_grid_avx2, quant_grid_avx512;

/* A form, with each half of an entry as the number of its combination of levels. */
struct quant_grid {
    const struct quant_grid_form *form;
    const struct quant_grid_level *level;
    int n_halves;                            /* combinations of levels in half an entry */
    uint8_t half[2][QUANT_GRID_ENTRIES];     /* by entry */
    uint16_t first[QUANT_GRID_HALVES + 1];   /* listed[first[h]..first[h + 1]): first half is h */
    uint16_t listed[QUANT_GRID_ENTRIES];     /* entries, by first half */
    uint8_t second[QUANT_GRID_ENTRIES + 16]; /* their second halves; 16 may be read at once */
};
/* Fills *grid; form and level must remain valid. */
void quant_grid_prepare(struct quant_grid *grid, const struct quant_grid_form *form,
                        const struct quant_grid_level *level);

/* The fields of a super-block, before their bits are packed. */
struct quant_grid_fit {
    uint16_t d;
    uint8_t scale[16];
    uint16_t entry[64];
    uint8_t sign[32]; /* bit i % 8 of i / 8: element i is negative */
    uint8_t down[32]; /* per 8 elements: 1 if the shift is -1 */
};
/* Searches scales and entries for the 256 elements `in`; importance: a weight for each, or NULL. */
void quant_grid_fit(const struct quant_grid *grid, const float *in, const float *importance,
                    struct quant_grid_fit *out);

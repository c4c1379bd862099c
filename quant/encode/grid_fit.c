/* quant/encode/grid_fit.c: the search for scales and entries; see quant/encode/grid_fit.h.
 *
 * Step 1, for each sub-block: the best entries for each trial scale, and the best scale for the
 * best of these entries, by least squares. Step 2, for the super-block: scales are rounded to small
 * odd integers times d, each sub-block uses the best of the adjacent integers, and d is computed
 * again.
 *
 * The error of values v with a scale s is w (x - s v)^2 = w x^2 + s^2 (w v^2 - 2 / s (w x v)),
 * summed over the elements. For each group (elements of one entry) the sums of w x v and w v^2 are
 * tabulated for all combinations of levels in half an entry, so that a scale costs one
 * multiplication per combination. The best entry is found exactly: entries are listed by their
 * first half, and a list is read only if its first half with the best second half has a smaller
 * error than the best entry so far, which initially is the best one for the previous scale. No
 * entry has a smaller error than the nearest level of each element (the bounds): if the bound of a
 * scale is too large, it is not searched. */
#define FIT_TARGET
#define FIT_BYTES 16
#include "quant/encode/grid_lanes.inc"
#include "quant/encode/vector_fit.h"
#include <math.h>

enum { MAX_GROUPS = 8 /* of a sub-block */, ROUNDS = 2, MAX_TRIALS = 7 };

/* The number of combinations of levels in half an entry, and in a quarter (one element of an entry
 * of 4): half = quarter + quarters * next quarter. */
static int count_quarters(const struct quant_grid_form *form)
{
    return form->entry_len == 8 ? form->n_levels * form->n_levels : form->n_levels;
}

/* The number of the combination of levels in the first (0) or second (1) half of an entry. */
static uint8_t half_of(const struct quant_grid_form *form, const uint8_t number[256], int entry,
                       int half)
{
    const int per_half = form->entry_len / 2;
    const uint64_t levels = form->grid8 ? form->grid8[entry] : form->grid4[entry];
    int combination = 0;
    for (int i = per_half - 1; i >= 0; i--)
        combination =
            combination * form->n_levels + number[levels >> 8 * (half * per_half + i) & 0xff];
    return (uint8_t)combination;
}

void quant_grid_prepare(struct quant_grid *grid, const struct quant_grid_form *form,
                        const struct quant_grid_level *level)
{
    const int quarters = count_quarters(form);
    uint16_t next[QUANT_GRID_HALVES];
    uint8_t number[256] = {0}; /* of a level, by its byte */
    for (int l = 0; l < form->n_levels; l++) number[(uint8_t)form->level[l]] = (uint8_t)l;
    *grid = (struct quant_grid){.form = form, .level = level, .n_halves = quarters * quarters};
    for (int e = 0; e < form->n_entries; e++) {
        for (int h = 0; h < 2; h++) grid->half[h][e] = half_of(form, number, e, h);
        grid->first[grid->half[0][e] + 1]++;
    }
    for (int i = 0; i < grid->n_halves; i++) {
        grid->first[i + 1] = (uint16_t)(grid->first[i + 1] + grid->first[i]);
        next[i] = grid->first[i];
    }
    for (int e = 0; e < form->n_entries; e++) {
        const uint16_t at = next[grid->half[0][e]]++;
        grid->listed[at] = (uint16_t)e;
        grid->second[at] = grid->half[1][e];
    }
}

static const struct quant_grid_sums *
sums_of(const struct quant_grid_form *form, const struct quant_grid_tables *t, int group, bool down)
{
    return &t->sums[form->signs == QUANT_GRID_SHIFTS ? 2 * group + down : group];
}

/* The choice for a sub-block. */
struct grid_choice {
    float scale, error;
    float xv, vv; /* weighted sums of x * value and value^2, values without the scale */
    uint16_t entry[MAX_GROUPS];
    bool down[MAX_GROUPS];
};

/* ---- The search for an entry ---- */

static float search(const struct quant_grid *grid, const struct quant_grid_sums *t, float scale,
                    float limit, uint16_t *entry)
{
    const struct units u = units_of(scale, limit);
    float second[QUANT_GRID_HALVES], min = INFINITY;
    for (int i = 0; i < grid->n_halves; i++) {
        second[i] = error_of(t, 1, i, u.ratio);
        min = second[i] < min ? second[i] : min;
    }
    float best = first_best(grid, t, u, *entry);
    for (int h = 0; h < grid->n_halves; h++) {
        const float first = error_of(t, 0, h, u.ratio);
        if (first + min < best) search_list(grid, h, first, second, &best, entry);
    }
    return error_in(u, best);
}

const struct quant_grid_level quant_grid_scalar = GRID_LEVEL;

const struct quant_search quant_search_scalar = {&quant_fit_scalar, &quant_grid_scalar,
                                                 quant_vector_search_scalar};

/* ---- A sub-block ---- */

/* The bounds of the groups of sub-block s with a shift by 1 or (down) by -1; types without shifts
 * have one array, of[0]. */
static const float *bounds_at(const struct quant_grid_form *form,
                              const struct quant_grid_bounds *bounds, int s, bool down)
{
    return bounds->of[down && form->signs == QUANT_GRID_SHIFTS] +
           s * (form->sub_len / form->entry_len);
}

/* Finds the best entries of sub-block s for c->scale, beginning with the entries of *c; false if
 * their error is not below `limit`. down: the shift of all groups; NULL: each group has the better
 * one. */
static bool choose_with(const struct quant_grid *grid, const struct quant_grid_tables *t,
                        const struct quant_grid_bounds *bounds, int s, const bool *down,
                        float limit, struct grid_choice *c)
{
    const struct quant_grid_form *form = grid->form;
    const int groups = form->sub_len / form->entry_len;
    const bool both = form->signs == QUANT_GRID_SHIFTS && !down;
    const float *up = bounds_at(form, bounds, s, down && *down),
                *other = bounds_at(form, bounds, s, true);
    float rest[MAX_GROUPS + 1]; /* a bound for the groups from i on */
    rest[groups] = 0.0f;
    for (int i = groups - 1; i >= 0; i--)
        rest[i] = rest[i + 1] + (both && other[i] < up[i] ? other[i] : up[i]);
    c->error = 0.0f;
    for (int i = 0; i < groups; i++) {
        if (!(c->error + rest[i] < limit)) return false;
        const int group = s * groups + i;
        const float xx = t->xx[group], group_limit = limit - c->error - rest[i + 1] - xx;
        c->down[i] = both ? other[i] < up[i] : down && *down;
        float best = grid->level->search(grid, sums_of(form, t, group, c->down[i]), c->scale,
                                         group_limit, &c->entry[i]);
        const float bound = (c->down[i] ? up[i] : other[i]) - xx;
        if (both && bound < best && bound < group_limit) {
            uint16_t entry = c->entry[i];
            const float error =
                grid->level->search(grid, sums_of(form, t, group, !c->down[i]), c->scale,
                                    best < group_limit ? best : group_limit, &entry);
            if (error < best) {
                best = error;
                c->entry[i] = entry;
                c->down[i] = !c->down[i];
            }
        }
        c->error += best + xx;
    }
    return c->error < limit;
}

static void add_sums(const struct quant_grid *grid, const struct quant_grid_tables *t, int s,
                     struct grid_choice *c)
{
    const int groups = grid->form->sub_len / grid->form->entry_len;
    c->xv = c->vv = 0.0f;
    for (int i = 0; i < groups; i++) {
        const struct quant_grid_sums *sums = sums_of(grid->form, t, s * groups + i, c->down[i]);
        const int first = grid->half[0][c->entry[i]], second = grid->half[1][c->entry[i]];
        c->xv += sums->xv[0][first] + sums->xv[1][second];
        c->vv += sums->vv[0][first] + sums->vv[1][second];
    }
}

/* The bounds of sub-block s: sum[0] with a shift of all groups by 1, sum[1] by -1, sum[2] with the
 * better shift of each group. In types without shifts all are the same. */
static void sum_bounds(const struct quant_grid_form *form, const struct quant_grid_bounds *bounds,
                       int s, float sum[3])
{
    const int groups = form->sub_len / form->entry_len;
    const float *up = bounds_at(form, bounds, s, false), *down = bounds_at(form, bounds, s, true);
    sum[0] = sum[1] = sum[2] = 0.0f;
    for (int i = 0; i < groups; i++) {
        sum[0] += up[i];
        sum[1] += down[i];
        sum[2] += down[i] < up[i] ? down[i] : up[i];
    }
}

/* The bound of sub-block s with the shifts that the type can have. */
static float bound_of(const struct quant_grid_form *form, const struct quant_grid_bounds *bounds,
                      int s)
{
    float sum[3];
    sum_bounds(form, bounds, s, sum);
    if (form->shift_len != form->sub_len) return sum[2];
    return sum[1] < sum[0] ? sum[1] : sum[0];
}

/* Replaces *best by the best entries of sub-block s for a scale if these are better; the search
 * begins with the entries of *from. */
static void choose(const struct quant_grid *grid, const struct quant_grid_tables *t,
                   const struct quant_grid_bounds *bounds, int s, float scale,
                   const struct grid_choice *from, struct grid_choice *best)
{
    const struct quant_grid_form *form = grid->form;
    const bool shifts = form->signs == QUANT_GRID_SHIFTS && form->shift_len == form->sub_len;
    float sum[3];
    sum_bounds(form, bounds, s, sum);
    for (int i = 0; i <= (int)shifts; i++) {
        const bool down = (sum[1] < sum[0]) != (i == 1);
        struct grid_choice c = *from;
        c.scale = scale;
        if (!choose_with(grid, t, bounds, s, shifts ? &down : NULL, best->error, &c)) continue;
        add_sums(grid, t, s, &c);
        *best = c;
    }
}

/* ---- The super-block ---- */

/* Each sub-block alone: its best scale and entries. */
static void fit_subs(const struct quant_grid *grid, const struct quant_grid_elements *e,
                     const struct quant_grid_tables *t, struct grid_choice ideal[16])
{
    const struct quant_grid_form *form = grid->form;
    const int len = form->sub_len, n = FIT_LEN / len, groups = len / form->entry_len;
    float scale[MAX_TRIALS][16], by_group[64], bound[MAX_TRIALS];
    struct quant_grid_bounds bounds[MAX_TRIALS];
    for (int s = 0; s < n; s++) {
        float largest = 0.0f;
        for (int i = s * len; i < s * len + len; i++)
            if (fabsf(e->x[i]) > largest) largest = fabsf(e->x[i]);
        scale[0][s] = largest / (float)form->level[form->n_levels - 1] / form->first;
        for (int i = 1; i < form->n_scales; i++) scale[i][s] = scale[i - 1][s] / form->ratio;
    }
    for (int i = 0; i < form->n_scales; i++) {
        for (int g = 0; g < FIT_LEN / form->entry_len; g++) by_group[g] = scale[i][g / groups];
        grid->level->bounds(form, e, by_group, &bounds[i]);
    }
    for (int s = 0; s < n; s++) {
        struct grid_choice *best = &ideal[s];
        *best = (struct grid_choice){.error = INFINITY};
        if (scale[0][s] == 0.0f) continue;
        for (int i = 0; i < form->n_scales; i++) bound[i] = bound_of(form, &bounds[i], s);
        for (int trial = 0; trial < form->n_scales; trial++) {
            int at = 0;
            for (int i = 1; i < form->n_scales; i++)
                if (bound[i] < bound[at]) at = i;
            choose(grid, t, &bounds[at], s, scale[at][s], best, best);
            bound[at] = INFINITY;
        }
        if (best->vv > 0.0f && best->xv > 0.0f) best->scale = best->xv / best->vv;
    }
}

/* Moves the signs to sign[], so that x can be compared with magnitudes. */
static void split_signs(const struct quant_grid_form *form, struct quant_grid_elements *e,
                        uint8_t sign[32])
{
    memset(sign, 0, 32);
    if (form->signs == QUANT_GRID_SHIFTS) return;
    for (int g = 0; g < 32; g++) {
        int cheapest = 0;
        float cost = INFINITY;
        for (int i = 0; i < 8; i++) {
            float *x = &e->x[8 * g + i], w = e->w[8 * g + i];
            if (*x < 0.0f) sign[g] |= (uint8_t)(1 << i);
            *x = fabsf(*x);
            if (!(w * *x * *x < cost)) continue;
            cost = w * *x * *x;
            cheapest = i;
        }
        if (form->signs != QUANT_GRID_SIGNS_EVEN || __builtin_popcount(sign[g]) % 2 == 0) continue;
        /* The element whose wrong sign increases the error least. */
        sign[g] ^= (uint8_t)(1 << cheapest);
        e->x[8 * g + cheapest] = -e->x[8 * g + cheapest];
    }
}

static void put_choice(const struct quant_grid_form *form, int s, int scale,
                       const struct grid_choice *c, struct quant_grid_fit *out)
{
    const int groups = form->sub_len / form->entry_len;
    out->scale[s] = (uint8_t)scale;
    for (int g = 0; g < groups; g++) {
        out->entry[s * groups + g] = c->entry[g];
        if (c->down[g]) out->down[(s * groups + g) * form->entry_len / 8] = 1;
    }
}

/* Chooses integer scales and entries for out->d; returns the error, and in *solved the best d for
 * them. */
static float choose_all(const struct quant_grid *grid, const struct quant_grid_elements *e,
                        const struct quant_grid_tables *t, const struct grid_choice *ideal,
                        struct quant_grid_fit *out, float *solved)
{
    const struct quant_grid_form *form = grid->form;
    const int groups = form->sub_len / form->entry_len, n = FIT_LEN / form->sub_len;
    const float d = quant_f16_to_f32(out->d) * form->factor;
    float error = 0.0f, up = 0.0f, down = 0.0f, by_group[2][64];
    int low[16];
    struct quant_grid_bounds bounds[2];
    memset(out->down, 0, sizeof out->down);
    for (int s = 0; s < n; s++) {
        const float exact = 0.5f * (ideal[s].scale * quant_fit_inverse(d) - 1.0f);
        low[s] = (int)quant_fit_integer(exact - 0.5f, 0.0f, (float)form->max_scale);
        for (int g = s * groups; g < (s + 1) * groups; g++)
            EACH (i, 2) by_group[i][g] = d * (float)(2 * (low[s] + i) + 1);
    }
    EACH (i, 2) grid->level->bounds(form, e, by_group[i], &bounds[i]);
    for (int s = 0; s < n; s++) {
        struct grid_choice best = {.error = INFINITY};
        const int second = low[s] < form->max_scale &&
                           bound_of(form, &bounds[1], s) < bound_of(form, &bounds[0], s);
        int scale = low[s];
        for (int i = 0; i < 2 && low[s] + (second ^ i) <= form->max_scale; i++) {
            const int at = second ^ i;
            const float before = best.error;
            choose(grid, t, &bounds[at], s, by_group[at][s * groups], &ideal[s], &best);
            if (best.error < before) scale = low[s] + at;
        }
        put_choice(form, s, scale, &best, out);
        error += best.error;
        up += best.xv * (float)(2 * scale + 1);
        down += best.vv * (float)((2 * scale + 1) * (2 * scale + 1));
    }
    *solved = down > 0.0f ? up / down : 0.0f;
    return error;
}

void quant_grid_fit(const struct quant_grid *grid, const float *in, const float *importance,
                    struct quant_grid_fit *out)
{
    const struct quant_grid_form *form = grid->form;
    struct quant_grid_elements e;
    struct quant_grid_tables t;
    struct quant_grid_fit trial = {0};
    struct grid_choice ideal[16];
    float largest = 0.0f, best = INFINITY;
    *out = (struct quant_grid_fit){.d = FIT_NAN};
    if (!quant_fit_prepare(FIT_LEN, in, importance, form->by_size, e.x, e.w)) return;
    split_signs(form, &e, trial.sign);
    grid->level->fill(form, &e, &t);
    fit_subs(grid, &e, &t, ideal);
    for (int s = 0; s < FIT_LEN / form->sub_len; s++)
        if (ideal[s].scale > largest) largest = ideal[s].scale;
    float d = largest / (float)(2 * form->max_scale + 1);
    for (int round = 0; round < ROUNDS; round++) {
        trial.d = quant_fit_half(d / form->factor);
        const float error = choose_all(grid, &e, &t, ideal, &trial, &d);
        if (!(error < best)) break;
        best = error;
        *out = trial;
        if (!(d > 0.0f)) break;
    }
}

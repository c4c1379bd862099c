/* quant/encode/grid_fit.c: the search for scales and entries; see quant/encode/grid_fit.h.
 *
 * A sub-block alone: some scales, for each the best entries, then the scale that suits these best,
 * as long as that helps. Then the super-block: scales become small odd integers times d, each
 * sub-block takes the best of the neighbouring integers, and d is solved for again. */
#include "quant/encode/grid_fit.h"
#include <math.h>

enum { MAX_SUB = 32, MAX_GROUPS = 8, ROUNDS = 2, REFITS = 2 };

void quant_grid_prepare(struct quant_grid *grid, const struct quant_grid_form *form)
{
    const int per_half = form->entry_len / 2, bits = 8 / per_half < 3 ? 2 : 3;
    grid->form = form;
    for (int e = 0; e < form->n_entries; e++) {
        const uint64_t entry = form->grid8 ? form->grid8[e] : form->grid4[e];
        for (int h = 0; h < 2; h++) {
            grid->half[h][e] = 0;
            for (int i = 0; i < per_half; i++) {
                const int8_t level = (int8_t)(entry >> 8 * (h * per_half + i) & 0xff);
                int number = 0;
                while (number < form->n_levels - 1 && form->level[number] != level) number++;
                grid->half[h][e] |= (uint8_t)(number << bits * i);
            }
        }
    }
}

/* Elements with their weights; without their signs where the grid has magnitudes. */
struct elements {
    float x[FIT_LEN], w[FIT_LEN];
};

/* What is chosen for a sub-block. */
struct choice {
    float scale, error;
    float xv, vv; /* weighted sums of x * value and value^2, values without the scale */
    uint16_t entry[MAX_GROUPS];
    bool down[MAX_GROUPS];
};

/* Errors of the elements' levels, added up for all combinations in half an entry of 8 or 4. */
static void half_errors_8(const float one[4][8], float error[256])
{
    float pair[2][16];
    for (int p = 0; p < 2; p++)
        for (int i = 0; i < 16; i++) pair[p][i] = one[2 * p][i & 3] + one[2 * p + 1][i >> 2];
    for (int i = 0; i < 256; i++) error[i] = pair[0][i & 15] + pair[1][i >> 4];
}

static void half_errors_4(const float one[2][8], float error[256])
{
    for (int i = 0; i < 64; i++) error[i] = one[0][i & 7] + one[1][i >> 3];
}

/* The best entry for a group and its error. */
static float best_entry(const struct quant_grid *grid, const float *x, const float *w, float scale,
                        int shift, uint16_t *entry)
{
    const struct quant_grid_form *form = grid->form;
    const int per_half = form->entry_len / 2;
    float error[2][256];
    for (int h = 0; h < 2; h++) {
        float one[4][8] = {{0}};
        for (int i = 0; i < per_half; i++) {
            const int at = h * per_half + i;
            for (int l = 0; l < form->n_levels; l++) {
                const float off = x[at] - scale * (float)(form->level[l] + shift);
                one[i][l] = w[at] * off * off;
            }
        }
        if (per_half == 4)
            half_errors_8(one, error[h]);
        else
            half_errors_4(one, error[h]);
    }
    float best = INFINITY;
    *entry = 0;
    for (int e = 0; e < form->n_entries; e++) {
        const float sum = error[0][grid->half[0][e]] + error[1][grid->half[1][e]];
        if (sum < best) {
            best = sum;
            *entry = (uint16_t)e;
        }
    }
    return best;
}

static int level_of(const struct quant_grid_form *form, int entry, int i)
{
    const uint64_t levels = form->grid8 ? form->grid8[entry] : form->grid4[entry];
    return (int8_t)(levels >> 8 * i & 0xff);
}

/* The best entries of a sub-block for a scale, with one shift for all where it is not NULL. */
static void choose_with(const struct quant_grid *grid, const float *x, const float *w,
                        const int *shift, struct choice *c)
{
    const struct quant_grid_form *form = grid->form;
    c->error = 0.0f;
    for (int g = 0; g < form->sub_len / form->entry_len; g++) {
        const int at = g * form->entry_len;
        const bool shifts = form->signs == QUANT_GRID_SHIFTS;
        const int first = shift ? *shift : shifts ? 1 : 0;
        float best = best_entry(grid, x + at, w + at, c->scale, first, &c->entry[g]);
        c->down[g] = first < 0;
        if (shifts && !shift) {
            uint16_t entry;
            const float error = best_entry(grid, x + at, w + at, c->scale, -1, &entry);
            if (error < best) {
                best = error;
                c->entry[g] = entry;
                c->down[g] = true;
            }
        }
        c->error += best;
    }
}

static void add_sums(const struct quant_grid_form *form, const float *x, const float *w,
                     struct choice *c)
{
    c->xv = c->vv = 0.0f;
    for (int i = 0; i < form->sub_len; i++) {
        const int g = i / form->entry_len;
        const int shift = form->signs != QUANT_GRID_SHIFTS ? 0 : c->down[g] ? -1 : 1;
        const float v = (float)(level_of(form, c->entry[g], i % form->entry_len) + shift);
        c->xv += w[i] * x[i] * v;
        c->vv += w[i] * v * v;
    }
}

/* The best entries of a sub-block for a scale; c->scale is set. */
static void choose(const struct quant_grid *grid, const float *x, const float *w, struct choice *c)
{
    const struct quant_grid_form *form = grid->form;
    if (form->signs == QUANT_GRID_SHIFTS && form->shift_len == form->sub_len) {
        struct choice other = *c;
        const int up = 1, down = -1;
        choose_with(grid, x, w, &up, c);
        choose_with(grid, x, w, &down, &other);
        if (other.error < c->error) *c = other;
    } else {
        choose_with(grid, x, w, NULL, c);
    }
    add_sums(form, x, w, c);
}

/* The scale of a sub-block alone. */
static float fit_sub(const struct quant_grid *grid, const float *x, const float *w)
{
    const struct quant_grid_form *form = grid->form;
    float largest = 0.0f;
    for (int i = 0; i < form->sub_len; i++)
        if (fabsf(x[i]) > largest) largest = fabsf(x[i]);
    struct choice best = {.error = INFINITY};
    if (largest == 0.0f) return 0.0f;
    float scale = largest / (float)form->level[form->n_levels - 1] / form->first;
    for (int i = 0; i < form->n_scales; i++, scale /= form->ratio) {
        struct choice c = {.scale = scale};
        choose(grid, x, w, &c);
        if (c.error < best.error) best = c;
    }
    for (int i = 0; i < REFITS && best.vv > 0.0f && best.xv > 0.0f; i++) {
        struct choice c = {.scale = best.xv / best.vv};
        choose(grid, x, w, &c);
        if (!(c.error < best.error)) break;
        best = c;
    }
    return best.scale;
}

/* ---- The super-block ---- */

/* Takes the signs off: x becomes what a magnitude is compared with. */
static void take_signs(const struct quant_grid_form *form, struct elements *e, uint8_t sign[32])
{
    memset(sign, 0, 32);
    if (form->signs == QUANT_GRID_SHIFTS) return;
    for (int g = 0; g < 32; g++) {
        int least = 0;
        float cost = INFINITY;
        for (int i = 0; i < 8; i++) {
            float *x = &e->x[8 * g + i], w = e->w[8 * g + i];
            if (*x < 0.0f) sign[g] |= (uint8_t)(1 << i);
            *x = fabsf(*x);
            if (!(w * *x * *x < cost)) continue;
            cost = w * *x * *x;
            least = i;
        }
        if (form->signs != QUANT_GRID_SIGNS_EVEN || __builtin_popcount(sign[g]) % 2 == 0) continue;
        sign[g] ^= (uint8_t)(1 << least); /* the one whose wrong sign costs least */
        e->x[8 * g + least] = -e->x[8 * g + least];
    }
}

static void put_choice(const struct quant_grid_form *form, int s, int scale, const struct choice *c,
                       struct quant_grid_fit *out)
{
    const int groups = form->sub_len / form->entry_len;
    out->scale[s] = (uint8_t)scale;
    for (int g = 0; g < groups; g++) {
        out->entry[s * groups + g] = c->entry[g];
        if (c->down[g]) out->down[(s * groups + g) * form->entry_len / 8] = 1;
    }
}

/* Integer scales and entries for out->d; returns the error, and in *solved the best d for them. */
static float choose_all(const struct quant_grid *grid, const struct elements *e, const float *ideal,
                        struct quant_grid_fit *out, float *solved)
{
    const struct quant_grid_form *form = grid->form;
    const float d = quant_f16_to_f32(out->d) * form->factor;
    float error = 0.0f, up = 0.0f, down = 0.0f;
    memset(out->down, 0, sizeof out->down);
    for (int s = 0; s < FIT_LEN / form->sub_len; s++) {
        const float *x = e->x + s * form->sub_len, *w = e->w + s * form->sub_len;
        const float wanted = 0.5f * (ideal[s] * quant_fit_inverse(d) - 1.0f);
        const int low = (int)quant_fit_integer(wanted - 0.5f, 0.0f, (float)form->max_scale);
        struct choice best = {.error = INFINITY};
        int scale = low;
        for (int l = low; l <= low + 1 && l <= form->max_scale; l++) {
            struct choice c = {.scale = d * (float)(2 * l + 1)};
            choose(grid, x, w, &c);
            if (!(c.error < best.error)) continue;
            best = c;
            scale = l;
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
    struct elements e;
    struct quant_grid_fit trial = {0};
    float ideal[16], largest = 0.0f, best = INFINITY;
    *out = (struct quant_grid_fit){.d = FIT_NAN};
    if (!quant_fit_prepare(FIT_LEN, in, importance, e.x, e.w)) return;
    take_signs(form, &e, trial.sign);
    for (int s = 0; s < FIT_LEN / form->sub_len; s++) {
        ideal[s] = fit_sub(grid, e.x + s * form->sub_len, e.w + s * form->sub_len);
        if (ideal[s] > largest) largest = ideal[s];
    }
    float d = largest / (float)(2 * form->max_scale + 1);
    for (int round = 0; round < ROUNDS; round++) {
        trial.d = quant_fit_half(d / form->factor);
        const float error = choose_all(grid, &e, ideal, &trial, &d);
        if (!(error < best)) break;
        best = error;
        *out = trial;
        if (!(d > 0.0f)) break;
    }
}

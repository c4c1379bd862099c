/* quant/encode/fit.c: the search for scales and codes; see quant/encode/fit.h.
 *
 * Step 1, for each block or sub-block: for several trial scales near the one whose codes just span
 * the elements, round the elements to codes, compute the best scale (and minimum) for these codes
 * by least squares, and keep the result with the smallest error. Step 2, for the super-block:
 * scales and minima are rounded to small integers times d and dmin; each sub-block uses the best of
 * the adjacent integers, and d and dmin are computed again, as long as the error decreases.
 *
 * A super-block or 512 elements of blocks are processed at once in 16 lanes: a lane is a block, a
 * sub-block or a part of one. Nearly all time is spent in add_sums, the sums over the codes for
 * given scales, which each level implements; the rest is compiled for each level. */
#define FIT_TARGET
#define FIT_BYTES 16
#include "quant/encode/fit_lanes.inc"

FIT_INLINE void add_sums(const struct quant_fit_grid *grid, const struct group *g, bool weighted,
                         const int8_t *codebook, const lanes *inverse, const struct origin *from,
                         struct sums *out)
{
    struct sums s = {0};
    for (int i = 0; i < g->depth; i++) {
        lanes at = g->x[i], value;
        if (from) at += from->add;
        at *= *inverse;
        for (int l = 0; l < WIDTH; l++) {
            value[l] = (float)grid->low;
            if (!codebook) value[l] = quant_fit_integer(at[l], (float)grid->low, (float)grid->high);
            for (int j = 1; codebook && j < grid->n_values && at[l] > middle_of(grid, j); j++)
                value[l] = codebook[j];
        }
        if (from) value = (value + QUANT_FIT_SHIFT) - from->shift;
        const lanes wv = weighted ? g->w[i] * value : value;
        if (from) s.v += wv;
        s.vv += wv * value;
        s.vx += wv * g->x[i];
    }
    *out = s;
}

const struct quant_fit quant_fit_scalar = FIT_TABLE;

bool quant_fit_prepare(int n, const float *in, const float *importance, bool by_size, float *x,
                       float *w)
{
    float rms;
    if (!prepare(n, in, importance, x, w, &rms)) return false;
    for (int i = 0; i < n && (by_size || !importance); i++)
        w[i] = (importance ? w[i] : 1.0f) * (rms + fabsf(x[i]));
    return true;
}

uint16_t quant_fit_half(float scale)
{
    const float largest = 65504.0f;
    if (scale > largest) scale = largest;
    if (scale < -largest) scale = -largest;
    return quant_f32_to_f16(scale);
}

float quant_fit_find_d(int min_scale, int n, float largest, const float *scale, const float *gain)
{
    const float low = (float)min_scale;
    float found = largest / low, least = INFINITY, weight[16];
    for (int s = 0; s < n; s++) {
        const float inverse = quant_fit_inverse(scale[s]);
        weight[s] = gain[s] * inverse * inverse;
    }
    for (int i = 0; i < 32; i++) { /* the largest scale is at 1.05 .. 0.49 of the range, or below */
        const float part = 1.05f - (float)(i / 2) * 0.0375f;
        const float d = largest / (low * (i % 2 ? -part : part)), inverse = quant_fit_inverse(d);
        float error = 0.0f;
        for (int s = 0; s < n; s++) {
            const float off =
                scale[s] - d * quant_fit_integer(scale[s] * inverse, low, -low - 1.0f);
            error += weight[s] * (off * off);
        }
        if (!(error < least)) continue;
        least = error;
        found = d;
    }
    return found;
}

/* ---- Rows of super-blocks ---- */

static const float *from(const float *at, int64_t b)
{
    return at ? at + FIT_LEN * b : NULL;
}

/* Searches d of a row: first that with which the largest of all scales is representable, then the
 * best one for the scales and codes chosen with it; NaN if an element is not finite. */
static float fit_row(const struct quant_fit *to, const struct quant_fit_form *form, int64_t k,
                     const float *in, const float *importance)
{
    struct quant_fit_super fit;
    float largest = 0.0f, best = 0.0f, best_error = INFINITY;
    for (int64_t b = 0; b < k / FIT_LEN; b++) {
        to->super(form->grid, form->sub_len, form->min_scale, NULL, from(in, b),
                  from(importance, b), &fit);
        if (!(fabsf(fit.largest) <= fabsf(largest))) largest = fit.largest;
        if (!(largest - largest == 0.0f)) return NAN;
    }
    float d = largest / (float)form->min_scale;
    for (int round = 0; round < ROUNDS; round++) {
        float error = 0.0f, up = 0.0f, down = 0.0f;
        if (form->header_bytes == 2) d = quant_f16_to_f32(quant_fit_half(d));
        for (int64_t b = 0; b < k / FIT_LEN; b++) {
            to->super(form->grid, form->sub_len, form->min_scale, &d, from(in, b),
                      from(importance, b), &fit);
            error += fit.error;
            up += fit.up;
            down += fit.down;
        }
        if (!(error < best_error)) break;
        best_error = error;
        best = d;
        d = down > 0.0f ? up / down : 0.0f;
    }
    return best;
}

void quant_fit_supers(const struct quant_fit *to, const struct quant_fit_form *form, int64_t k,
                      const float *in, const float *importance, void *row)
{
    float d = 0.0f;
    if (form->header_bytes) {
        d = fit_row(to, form, k, in, importance);
        const uint16_t half = d == d ? quant_fit_half(d) : FIT_NAN;
        memcpy(row, form->header_bytes == 2 ? (const void *)&half : &d, form->header_bytes);
    }
    char *out = (char *)row + form->header_bytes;
    memset(out, 0, (size_t)(k / FIT_LEN) * form->block_bytes);
    for (int64_t b = 0; b < k / FIT_LEN; b++, out += form->block_bytes) {
        struct quant_fit_super fit = {0};
        if (form->minima)
            to->super_with_min(form->minima, form->sub_len, from(in, b), from(importance, b), &fit);
        else if (d == d)
            to->super(form->grid, form->sub_len, form->min_scale, form->header_bytes ? &d : NULL,
                      from(in, b), from(importance, b), &fit);
        if (form->correct && d == d) form->correct(&fit, d, from(in, b), from(importance, b));
        form->pack(&fit, out);
    }
}

/* quant/encode/fit.c: the search for scales and codes when weights are encoded; see
 * quant/encode/fit.h.
 *
 * In two steps. A sub-block alone: try some scales around the one that just spans the elements,
 * round to codes, solve for the best scale (and minimum) of these codes, and keep the best. Then
 * the super- block: scales and minima become small integers times d and dmin, each sub-block picks
 * the best of the neighbouring integers, and d and dmin are solved for again, until that brings
 * nothing. */
#include "quant/encode/fit.h"
#include <math.h>

enum { LANES = QUANT_FIT_LANES, MAX_SUBS = 16, SEARCH = 9, ROUNDS = 3 };

/* Sums of products. */
static float sum2(int n, const float *a, const float *b)
{
    float lane[LANES] = {0};
    for (int i = 0; i < n; i += LANES)
        for (int l = 0; l < LANES; l++) lane[l] += a[i + l] * b[i + l];
    return quant_fit_sum(lane);
}

static float sum3(int n, const float *a, const float *b, const float *c)
{
    float lane[LANES] = {0};
    for (int i = 0; i < n; i += LANES)
        for (int l = 0; l < LANES; l++) lane[l] += a[i + l] * b[i + l] * c[i + l];
    return quant_fit_sum(lane);
}

/* The weighted error of x ~ scale * value - min. */
static float error_of(int n, const float *x, const float *w, const float *value, float scale,
                      float min)
{
    float lane[LANES] = {0};
    for (int i = 0; i < n; i += LANES) {
        for (int l = 0; l < LANES; l++) {
            float off = x[i + l] - (scale * value[i + l] - min);
            lane[l] += w[i + l] * off * off;
        }
    }
    return quant_fit_sum(lane);
}

static float largest_of(int n, const float *x)
{
    float largest = 0.0f;
    for (int i = 0; i < n; i++)
        if (fabsf(x[i]) > fabsf(largest)) largest = x[i];
    return largest;
}

void quant_fit_weights(int n, const float *importance, float *w)
{
    const float floor = 1e-6f;
    float largest = 0.0f;
    for (int i = 0; importance && i < n; i++)
        if (importance[i] > largest) largest = importance[i];
    const bool usable = largest > 0.0f && isfinite(largest);
    for (int i = 0; i < n; i++) {
        w[i] = usable ? importance[i] / largest : 1.0f;
        if (!(w[i] > floor)) w[i] = floor;
    }
}

bool quant_fit_prepare(int n, const float *in, const float *importance, float *x, float *w)
{
    const float limit = 0x1p30f;
    for (int i = 0; i < n; i++) {
        if (!isfinite(in[i])) return false;
        x[i] = in[i] > limit ? limit : in[i] < -limit ? -limit : in[i];
    }
    float rms = sqrtf(sum2(n, x, x) / (float)n);
    quant_fit_weights(n, importance, w);
    for (int i = 0; i < n; i++) w[i] *= rms + fabsf(x[i]);
    return true;
}

uint16_t quant_fit_half(float scale)
{
    const float largest = 65504.0f;
    if (scale > largest) scale = largest;
    if (scale < -largest) scale = -largest;
    return quant_f32_to_f16(scale);
}

float quant_fit_inverse(float scale)
{
    float inverse = 1.0f / scale;
    return isfinite(inverse) ? inverse : 0.0f;
}

/* ---- Rounding to a grid ---- */

static void nearest_values(const struct quant_fit_grid *grid, int n, const float *x, float inverse,
                           float *value)
{
    if (!grid->codebook) {
        for (int i = 0; i < n; i++)
            value[i] = quant_fit_integer(x[i] * inverse, (float)grid->low, (float)grid->high);
        return;
    }
    for (int i = 0; i < n; i++) value[i] = (float)grid->low;
    for (int j = 1; j < 16; j++) { /* climbs the codebook as long as x is past the middle */
        float middle = 0.5f * (float)(grid->codebook[j - 1] + grid->codebook[j]);
        float step = (float)(grid->codebook[j] - grid->codebook[j - 1]);
        for (int i = 0; i < n; i++) value[i] += x[i] * inverse > middle ? step : 0.0f;
    }
}

void quant_fit_codes(const struct quant_fit_grid *grid, int n, const float *x, float inverse,
                     uint8_t *code)
{
    if (!grid->codebook) {
        for (int i = 0; i < n; i++) {
            float v = quant_fit_integer(x[i] * inverse, (float)grid->low, (float)grid->high);
            code[i] = (uint8_t)((int)v - grid->low);
        }
        return;
    }
    for (int i = 0; i < n; i++) {
        code[i] = 0;
        for (int j = 1; j < 16; j++)
            code[i] += x[i] * inverse > 0.5f * (float)(grid->codebook[j - 1] + grid->codebook[j]);
    }
}

/* ---- A sub-block alone ---- */

struct best_scale {
    float scale, gain; /* gain: how much less than the sum of w x^2 the error is */
};

/* Rounds with one inverse scale and solves for the scale; true when it is the best so far. */
static bool try_inverse(const struct quant_fit_grid *grid, int n, const float *x, const float *w,
                        float inverse, struct best_scale *best)
{
    float value[32];
    nearest_values(grid, n, x, inverse, value);
    float xv = sum3(n, w, x, value), vv = sum3(n, w, value, value);
    float gain = xv / vv * xv;
    if (!(gain > best->gain)) return false;
    best->gain = gain;
    best->scale = xv / vv;
    return true;
}

float quant_fit_scale(const struct quant_fit_grid *grid, int n, const float *x, const float *w)
{
    struct best_scale best = {0.0f, 0.0f};
    float largest = largest_of(n, x);
    /* The largest element goes near one end of the grid: either, for scales have a sign. */
    for (int i = -grid->search; i <= grid->search; i++) {
        float low = ((float)grid->low + (float)i * grid->step) / largest;
        float high = ((float)grid->high + (float)i * grid->step) / largest;
        if (isfinite(low)) try_inverse(grid, n, x, w, low, &best);
        if (isfinite(high)) try_inverse(grid, n, x, w, high, &best);
    }
    for (int round = 0; round < ROUNDS; round++)
        if (!try_inverse(grid, n, x, w, quant_fit_inverse(best.scale), &best)) break;
    return best.scale;
}

static void block_values(int n, int low, int high, const float *x, float inverse, float *value)
{
    for (int i = 0; i < n; i++)
        value[i] = quant_fit_integer(x[i] * inverse, (float)low, (float)high);
}

uint16_t quant_fit_block(int n, int low, int high, const float *in, const float *importance,
                         uint8_t *code)
{
    float x[FIT_LEN], w[FIT_LEN], value[FIT_LEN], best = 0.0f, best_gain = 0.0f;
    memset(code, -low, (size_t)n);
    if (!quant_fit_prepare(n, in, importance, x, w)) return FIT_NAN;
    const float largest = fabsf(largest_of(n, x));
    for (int i = 0; i < 32 + ROUNDS; i++) { /* the largest at up to 4 times the highest value */
        float inverse =
            i < 32 ? (0.5f + 0.125f * (float)i) * (float)high / largest : quant_fit_inverse(best);
        for (int sign = -1; sign <= 1; sign += 2) {
            if (!isfinite(inverse)) break;
            block_values(n, low, high, x, i < 32 ? (float)sign * inverse : inverse, value);
            const float xv = sum3(n, w, x, value), vv = sum3(n, w, value, value);
            const float gain = xv / vv * xv;
            if (!(gain > best_gain)) continue;
            best_gain = gain;
            best = xv / vv;
        }
    }
    const uint16_t d = quant_fit_half(best);
    block_values(n, low, high, x, quant_fit_inverse(quant_f16_to_f32(d)), value);
    for (int i = 0; i < n; i++) code[i] = (uint8_t)((int)value[i] - low);
    return d;
}

/* Scale and minimum (not negative) of a sub-block: x ~ scale * code - min. */
static float fit_scale_min(int max_code, int n, const float *x, const float *w, float *min)
{
    float low = 0.0f, high = 0.0f, ones[32], moved[32], code[32];
    const struct quant_fit_grid grid = {0, max_code, NULL, 0, 0.0f};
    for (int i = 0; i < n; i++) {
        ones[i] = 1.0f;
        low = x[i] < low ? x[i] : low;
        high = i == 0 || x[i] > high ? x[i] : high;
    }
    float best_gain = 0.0f, best = 0.0f, best_min = -low;
    float w1 = sum2(n, w, ones), wx = sum2(n, w, x);
    for (int i = -SEARCH; i <= SEARCH + ROUNDS; i++) {
        bool again = i > SEARCH; /* with the best scale and minimum so far */
        float inverse =
            again ? quant_fit_inverse(best) : ((float)max_code + 0.1f * (float)i) / (high - low);
        float from = again ? best_min : -low;
        if (!isfinite(inverse)) continue;
        for (int j = 0; j < n; j++) moved[j] = x[j] + from;
        nearest_values(&grid, n, moved, inverse, code);
        float wc = sum2(n, w, code), wcc = sum3(n, w, code, code), wcx = sum3(n, w, code, x);
        float determinant = w1 * wcc - wc * wc;
        float scale = (w1 * wcx - wc * wx) / determinant,
              offset = (wcc * wx - wc * wcx) / determinant;
        if (!(determinant > 0.0f) || offset > 0.0f) {
            scale = wcx / wcc;
            offset = 0.0f;
        }
        float gain = scale * wcx + offset * wx;
        if (gain > best_gain && scale > 0.0f) {
            best_gain = gain;
            best = scale;
            best_min = -offset;
        }
    }
    *min = best_min;
    return best;
}

/* ---- A super-block ---- */

static int clamp(float v, int low, int high)
{
    return (int)quant_fit_integer(v, (float)low, (float)high);
}

static void write_nan(struct quant_fit_super *out)
{
    memset(out, 0, sizeof *out);
    out->d = FIT_NAN;
}

/* Picks the integer scales for a given d; returns the error, and in *solved the best d for the
 * codes that come out. */
static float pick_scales(const struct quant_fit_grid *grid, int sub_len, int min_scale,
                         const float *x, const float *w, const float *ideal,
                         struct quant_fit_super *out, float *solved)
{
    float d = quant_f16_to_f32(out->d), error = 0.0f, up = 0.0f, down = 0.0f;
    for (int s = 0; s < FIT_LEN / sub_len; s++, x += sub_len, w += sub_len) {
        int middle = clamp(ideal[s] * quant_fit_inverse(d), min_scale, -min_scale - 1);
        float best_error = INFINITY, best_up = 0.0f, best_down = 0.0f, value[32];
        out->scale[s] = (int16_t)middle;
        for (int scale = middle - 1; scale <= middle + 1; scale++) {
            if (scale < min_scale || scale >= -min_scale) continue;
            nearest_values(grid, sub_len, x, quant_fit_inverse(d * (float)scale), value);
            float one = error_of(sub_len, x, w, value, d * (float)scale, 0.0f);
            if (!(one < best_error)) continue;
            best_error = one;
            best_up = sum3(sub_len, w, x, value) * (float)scale;
            best_down = sum3(sub_len, w, value, value) * (float)(scale * scale);
            out->scale[s] = (int16_t)scale;
        }
        error += best_error;
        up += best_up;
        down += best_down;
    }
    *solved = down > 0.0f ? up / down : 0.0f;
    return error;
}

void quant_fit_super(const struct quant_fit_grid *grid, int sub_len, int min_scale, const float *in,
                     const float *importance, struct quant_fit_super *out)
{
    float x[FIT_LEN], w[FIT_LEN], ideal[MAX_SUBS];
    struct quant_fit_super trial = {0};
    if (!quant_fit_prepare(FIT_LEN, in, importance, x, w)) {
        write_nan(out);
        return;
    }
    int n_subs = FIT_LEN / sub_len;
    for (int s = 0; s < n_subs; s++)
        ideal[s] = quant_fit_scale(grid, sub_len, x + s * sub_len, w + s * sub_len);

    float d = largest_of(n_subs, ideal) / (float)min_scale, best_error = INFINITY;
    *out = trial;
    for (int round = 0; round < ROUNDS; round++) {
        trial.d = quant_fit_half(d);
        float error = pick_scales(grid, sub_len, min_scale, x, w, ideal, &trial, &d);
        if (!(error < best_error)) break;
        best_error = error;
        *out = trial;
    }
    for (int s = 0; s < n_subs; s++) {
        float scale = quant_f16_to_f32(out->d) * (float)out->scale[s];
        quant_fit_codes(grid, sub_len, x + s * sub_len, quant_fit_inverse(scale),
                        out->q + s * sub_len);
    }
}

/* The normal equations of d and dmin. */
struct two_sums {
    float aa, ab, bb, ax, bx;
};

static void add_two_sums(struct two_sums *sums, int n, const float *x, const float *w,
                         const float *code, float scale, float min)
{
    float ones[32];
    for (int i = 0; i < n; i++) ones[i] = 1.0f;
    sums->aa += scale * scale * sum3(n, w, code, code);
    sums->ab -= scale * min * sum2(n, w, code);
    sums->bb += min * min * sum2(n, w, ones);
    sums->ax += scale * sum3(n, w, code, x);
    sums->bx -= min * sum2(n, w, x);
}

/* Integer scale and minimum of one sub-block for given d and dmin; returns the error. */
static float pick_scale_min(int max_code, int max_scale, int n, const float *x, const float *w,
                            const float ideal[2], const float d[2], int picked[2],
                            struct two_sums *sums)
{
    const struct quant_fit_grid grid = {0, max_code, NULL, 0, 0.0f};
    int scale0 = clamp(ideal[0] * quant_fit_inverse(d[0]), 0, max_scale);
    int min0 = clamp(ideal[1] * quant_fit_inverse(d[1]), 0, max_scale);
    float best_error = INFINITY, moved[32], code[32], best_code[32] = {0};
    picked[0] = scale0;
    picked[1] = min0;
    for (int i = 0; i < 9; i++) {
        int scale = scale0 + i % 3 - 1, min = min0 + i / 3 - 1;
        if (scale < 0 || scale > max_scale || min < 0 || min > max_scale) continue;
        float scaled = d[0] * (float)scale, scaled_min = d[1] * (float)min;
        for (int j = 0; j < n; j++) moved[j] = x[j] + scaled_min;
        nearest_values(&grid, n, moved, quant_fit_inverse(scaled), code);
        float error = error_of(n, x, w, code, scaled, scaled_min);
        if (!(error < best_error)) continue;
        best_error = error;
        picked[0] = scale;
        picked[1] = min;
        memcpy(best_code, code, sizeof code);
    }
    add_two_sums(sums, n, x, w, best_code, (float)picked[0], (float)picked[1]);
    return best_error;
}

void quant_fit_super_with_min(int sub_len, int max_code, int max_scale, const float *in,
                              const float *importance, struct quant_fit_super *out)
{
    float x[FIT_LEN], w[FIT_LEN], ideal[MAX_SUBS][2], d[2] = {0.0f, 0.0f}, best_error = INFINITY;
    struct quant_fit_super trial = {0};
    int n_subs = FIT_LEN / sub_len;
    if (!quant_fit_prepare(FIT_LEN, in, importance, x, w)) {
        write_nan(out);
        return;
    }
    for (int s = 0; s < n_subs; s++) {
        int at = s * sub_len;
        ideal[s][0] = fit_scale_min(max_code, sub_len, x + at, w + at, &ideal[s][1]);
        for (int i = 0; i < 2; i++)
            if (ideal[s][i] / (float)max_scale > d[i]) d[i] = ideal[s][i] / (float)max_scale;
    }
    *out = trial;
    for (int round = 0; round < ROUNDS; round++) {
        struct two_sums sums = {0};
        float error = 0.0f;
        trial.d = quant_fit_half(d[0]);
        trial.dmin = quant_fit_half(d[1]);
        d[0] = quant_f16_to_f32(trial.d);
        d[1] = quant_f16_to_f32(trial.dmin);
        for (int s = 0; s < n_subs; s++) {
            int at = s * sub_len, picked[2];
            error += pick_scale_min(max_code, max_scale, sub_len, x + at, w + at, ideal[s], d,
                                    picked, &sums);
            trial.scale[s] = (int16_t)picked[0];
            trial.min[s] = (uint8_t)picked[1];
        }
        if (!(error < best_error)) break;
        best_error = error;
        *out = trial;
        float determinant = sums.aa * sums.bb - sums.ab * sums.ab;
        if (!(determinant > 0.0f)) break;
        d[0] = (sums.ax * sums.bb - sums.ab * sums.bx) / determinant;
        d[1] = (sums.aa * sums.bx - sums.ab * sums.ax) / determinant;
        if (!(d[0] > 0.0f && d[1] >= 0.0f)) break;
    }
    const struct quant_fit_grid grid = {0, max_code, NULL, 0, 0.0f};
    for (int s = 0; s < n_subs; s++) {
        float moved[32], min = quant_f16_to_f32(out->dmin) * (float)out->min[s];
        for (int i = 0; i < sub_len; i++) moved[i] = x[s * sub_len + i] + min;
        float scale = quant_f16_to_f32(out->d) * (float)out->scale[s];
        quant_fit_codes(&grid, sub_len, moved, quant_fit_inverse(scale), out->q + s * sub_len);
    }
}

/* quant/block32/block32.c: the search for scales when a block of 32 is encoded.
 *
 * For given scales, as the file rounds them, the nearest code of each element is the best one; so
 * the search is over scales only: the default scale first, then a fixed list of others and the
 * least-squares refit of each, and keeps the one with the smallest squared error. Sums have eight
 * lanes, as in quant/encode/fit.c: an F32 row that is stored in a Q4_0 cache is encoded here,
 * too. */
#include "quant/block32/block32.h"
#include "quant/encode/fit.h"
#include <math.h>

enum { LEN = 32, LANES = QUANT_FIT_LANES };

static bool all_finite(const float x[LEN])
{
    bool finite = true;
    for (int i = 0; i < LEN; i++) finite &= (quant_bits_of(x[i]) & 0x7fffffff) < 0x7f800000;
    return finite;
}

struct search {
    const float *x, *w;
    int offset; /* 0: with a minimum, else that is -offset * d */
    int max_code;
    struct quant_scales best; /* the default, until a candidate's error is finite */
    float error;              /* squared */
};

static const struct quant_scales scales_nan = {0x7e00, 0x7e00};

static float sum(const float v[LEN])
{
    float lane[LANES];
    for (int l = 0; l < LANES; l++)
        lane[l] = (v[l] + v[l + LANES]) + (v[l + 2 * LANES] + v[l + 3 * LANES]);
    return quant_fit_sum(lane);
}

/* The nearest codes under the scales, and the squared error. */
static float assign(const struct search *s, struct quant_scales scales, float code[LEN])
{
    const float d = quant_f16_to_f32(scales.d), inverse = quant_fit_inverse(d);
    const float m = s->offset ? -(float)s->offset * d : quant_f16_to_f32(scales.m);
    const float max_code = (float)s->max_code, *x = s->x;
    float square[LEN];
    for (int i = 0; i < LEN; i++) {
        const float c = quant_fit_integer((x[i] - m) * inverse, 0.0f, max_code);
        const float off = x[i] - (d * c + m);
        code[i] = c;
        square[i] = s->w[i] * off * off;
    }
    return sum(square);
}

/* Returns the codes in `code`. */
static void try_scales(struct search *s, float d, float m, float code[LEN])
{
    const struct quant_scales scales = {quant_fit_half(d), quant_fit_half(m)};
    const float error = assign(s, scales, code);
    if (!(error < s->error)) return;
    s->error = error;
    s->best = scales;
}

static struct quant_scales finish(const struct search *s, uint8_t code[LEN])
{
    float value[LEN];
    assign(s, s->best, value);
    for (int i = 0; i < LEN; i++) code[i] = (uint8_t)value[i];
    return s->best;
}

/* The least-squares scale for the codes, or 0. */
static float refit_symmetric(const struct search *s, const float code[LEN])
{
    float xc[LEN], cc[LEN];
    for (int i = 0; i < LEN; i++) {
        const float c = code[i] - (float)s->offset;
        xc[i] = s->w[i] * s->x[i] * c;
        cc[i] = s->w[i] * c * c;
    }
    const float squares = sum(cc);
    return squares > 0.0f ? sum(xc) / squares : 0.0f;
}

struct quant_scales quant_encode_symmetric(const float x[LEN], const float *importance, int offset,
                                           uint8_t code[LEN])
{
    float extreme = 0.0f, trial[LEN], w[LEN];
    memset(code, offset, LEN);
    if (!all_finite(x)) return scales_nan;
    for (int i = 0; i < LEN; i++)
        if (fabsf(x[i]) > fabsf(extreme)) extreme = x[i];
    if (extreme == 0.0f) return (struct quant_scales){0, 0};

    quant_fit_weights(LEN, importance, w);
    struct search s = {.x = x,
                       .w = w,
                       .offset = offset,
                       .max_code = 2 * offset - 1,
                       .best = {quant_fit_half(-extreme / (float)offset), 0},
                       .error = INFINITY};
    /* The code range reaches one step further below zero than above, so by default the extreme
     * element becomes -offset; a slightly different scale, or the other sign, may fit better. */
    for (int i = 0; i < 17; i++) {
        for (int sign = -1; sign <= 1; sign += 2) {
            const float steps =
                (float)sign * ((float)offset + (i == 0 ? 0.0f : 0.125f * (float)(i - 10)));
            try_scales(&s, extreme / steps, 0.0f, trial);
            const float d = refit_symmetric(&s, trial);
            if (d != 0.0f) try_scales(&s, d, 0.0f, trial);
        }
    }
    return finish(&s, code);
}

/* The least-squares scale and minimum for the codes; false where all codes are equal. */
static bool refit_with_min(const struct search *s, double sum_x, const float code[LEN], double *d,
                           double *m)
{
    float cc[LEN], wc[LEN]; /* with weights of 1 small integers: exact */
    double lane[LANES] = {0}, sum_xc = 0;
    for (int i = 0; i < LEN; i++) {
        wc[i] = s->w[i] * code[i];
        cc[i] = wc[i] * code[i];
    }
    for (int i = 0; i < LEN; i++) lane[i % LANES] += (double)s->x[i] * (double)wc[i];
    for (int l = 0; l < LANES; l++) sum_xc += lane[l];
    const double sum_w = sum(s->w), sum_c = sum(wc), det = sum_w * (double)sum(cc) - sum_c * sum_c;
    if (det <= 0) return false;
    *d = (sum_w * sum_xc - sum_c * sum_x) / det;
    *m = (sum_x - *d * sum_c) / sum_w;
    return true;
}

struct quant_scales quant_encode_with_min(const float x[LEN], const float *importance, int max_code,
                                          uint8_t code[LEN])
{
    float low = x[0], high = x[0], trial[LEN], w[LEN];
    double sum_x = 0;
    quant_fit_weights(LEN, importance, w);

    memset(code, 0, LEN);
    if (!all_finite(x)) return scales_nan;
    for (int i = 0; i < LEN; i++) {
        if (x[i] < low) low = x[i];
        if (x[i] > high) high = x[i];
        sum_x += (double)w[i] * (double)x[i];
    }
    const float step = high / (float)max_code - low / (float)max_code;
    struct search s = {.x = x,
                       .w = w,
                       .max_code = max_code,
                       .best = {quant_fit_half(step), quant_fit_half(low)},
                       .error = INFINITY};
    /* Ends of the range: those of the data, or inside by up to a step and a half. */
    for (int i = 0; i < 4; i++) {
        for (int j = 0; j < 4; j++) {
            const float first = low + 0.5f * (float)i * step, last = high - 0.5f * (float)j * step;
            double d, m;
            try_scales(&s, last / (float)max_code - first / (float)max_code, first, trial);
            if (refit_with_min(&s, sum_x, trial, &d, &m)) try_scales(&s, (float)d, (float)m, trial);
        }
    }
    /* Every other code less than there are, and so on: elements that lie on a grid of half as many
     * values, as those of a file of four bits do, are met exactly by twice their codes. */
    for (int less = 1; less <= 5; less += 2) {
        const float steps = (float)(max_code - less);
        double d, m;
        try_scales(&s, high / steps - low / steps, low, trial);
        if (refit_with_min(&s, sum_x, trial, &d, &m)) try_scales(&s, (float)d, (float)m, trial);
    }
    return finish(&s, code);
}

uint16_t quant_encode_bytes(const float x[32], int8_t code[32])
{
    uint32_t largest = 0;
    for (int i = 0; i < 32; i++) {
        const uint32_t bits = quant_bits_of(x[i]) & 0x7fffffff;
        if (bits > largest) largest = bits;
    }
    memset(code, 0, 32);
    if (largest >= 0x7f800000) return 0x7e00;
    const float wanted = quant_float_of(largest) / 127.0f;
    const uint16_t half = quant_f32_to_f16(wanted < 65504.0f ? wanted : 65504.0f);
    const float d = quant_f16_to_f32(half);
    for (int i = 0; i < 32 && d != 0.0f; i++) { /* the nearest under the scale of the file */
        const float q = x[i] / d;
        code[i] = (int8_t)lrintf(q > 127.0f ? 127.0f : q < -127.0f ? -127.0f : q);
    }
    return half;
}

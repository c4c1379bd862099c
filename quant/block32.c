/* quant/block32.c: the search for scales when a block of 32 is encoded.
 *
 * For given scales, as the file rounds them, the nearest code of each element is the best one; so
 * the search walks over scales only: the plain choice first, then a fixed list of others and the
 * least-squares refit of each, and keeps whichever gives the smallest squared error. */
#include "quant/block32.h"
#include <math.h>

static bool all_finite(const float x[32])
{
    bool finite = true;
    for (int i = 0; i < 32; i++) finite &= (quant_bits_of(x[i]) & 0x7fffffff) < 0x7f800000;
    return finite;
}

/* NaN gives the lower end. */
static float clamp(float f, float low, float high)
{
    f = f > low ? f : low;
    return f < high ? f : high;
}

/* binary16, but the largest finite value instead of infinity. */
static uint16_t to_f16_finite(float f)
{
    return quant_f32_to_f16(fminf(fmaxf(f, -65504), 65504));
}

/* The nearest codes under x ~ d * code + m, and the squared error. */
static float assign(const float x[32], float d, float m, int max_code, uint8_t code[32])
{
    float inverse = d != 0.0f ? 1.0f / d : 0.0f;
    float error = 0.0f;
    for (int i = 0; i < 32; i++) {
        /* Clamped before the conversion, which is defined for small values only. */
        float c = clamp((x[i] - m) * inverse, 0.0f, (float)max_code);
        code[i] = (uint8_t)lrintf(c);
        float off = x[i] - (d * (float)code[i] + m);
        error += off * off;
    }
    return error;
}

struct best {
    struct quant_scales scales;
    float error;
    uint8_t code[32];
};

static const struct quant_scales scales_nan = {0x7e00, 0x7e00};

/* Symmetrical: m = -offset * d. Returns the codes of the scale d in `code`. */
static void try_symmetric(const float x[32], float d, int offset, struct best *best,
                          uint8_t code[32])
{
    uint16_t h = to_f16_finite(d);
    float exact = quant_f16_to_f32(h);
    float error = assign(x, exact, -(float)offset * exact, 2 * offset - 1, code);
    if (!(error < best->error)) return;
    *best = (struct best){.scales = {h, 0}, .error = error};
    memcpy(best->code, code, 32);
}

struct quant_scales quant_encode_symmetric(const float x[32], int offset, uint8_t code[32])
{
    struct best best = {.error = INFINITY, .code = {0}};
    float extreme = 0.0f;

    memset(code, offset, 32);
    if (!all_finite(x)) return scales_nan;
    for (int i = 0; i < 32; i++)
        if (fabsf(x[i]) > fabsf(extreme)) extreme = x[i];
    if (extreme == 0.0f) return (struct quant_scales){0, 0};

    /* The code range reaches one step further below zero than above, so the extreme element goes to
     * -offset in the plain choice; a little to either side, or the other sign, may fit better. */
    for (int i = 0; i < 17; i++) {
        for (int sign = -1; sign <= 1; sign += 2) {
            float steps =
                (float)sign * ((float)offset + (i == 0 ? 0.0f : 0.125f * (float)(i - 10)));
            uint8_t trial[32];
            float xc = 0.0f, cc = 0.0f;
            try_symmetric(x, extreme / steps, offset, &best, trial);
            for (int j = 0; j < 32; j++) {
                float c = (float)(trial[j] - offset);
                xc += x[j] * c;
                cc += c * c;
            }
            if (cc > 0.0f) try_symmetric(x, xc / cc, offset, &best, trial);
        }
    }
    /* No candidate had a finite error (elements near the largest float): the plain choice stands.
     */
    if (best.error == INFINITY) {
        best.scales.d = to_f16_finite(-extreme / (float)offset);
        float d = quant_f16_to_f32(best.scales.d);
        assign(x, d, -(float)offset * d, 2 * offset - 1, best.code);
    }
    memcpy(code, best.code, 32);
    return best.scales;
}

static void try_with_min(const float x[32], float d, float m, int max_code, struct best *best,
                         uint8_t code[32])
{
    struct quant_scales scales = {to_f16_finite(d), to_f16_finite(m)};
    float error = assign(x, quant_f16_to_f32(scales.d), quant_f16_to_f32(scales.m), max_code, code);
    if (!(error < best->error)) return;
    *best = (struct best){.scales = scales, .error = error};
    memcpy(best->code, code, 32);
}

struct quant_scales quant_encode_with_min(const float x[32], int max_code, uint8_t code[32])
{
    struct best best = {.error = INFINITY, .code = {0}};
    float low = x[0], high = x[0];

    memset(code, 0, 32);
    if (!all_finite(x)) return scales_nan;
    for (int i = 1; i < 32; i++) {
        if (x[i] < low) low = x[i];
        if (x[i] > high) high = x[i];
    }
    best.scales = (struct quant_scales){0, to_f16_finite(low)};

    /* Ends of the range that lie outside the data by none, or inside by up to a step and a half. */
    float step = high / (float)max_code - low / (float)max_code;
    for (int i = 0; i < 4; i++) {
        for (int j = 0; j < 4; j++) {
            float first = low + 0.5f * (float)i * step, last = high - 0.5f * (float)j * step;
            uint8_t trial[32];
            double sx = 0, sc = 0, sxc = 0, scc = 0;
            try_with_min(x, last / (float)max_code - first / (float)max_code, first, max_code,
                         &best, trial);
            for (int e = 0; e < 32; e++) {
                sx += x[e];
                sc += trial[e];
                sxc += (double)x[e] * trial[e];
                scc += trial[e] * trial[e];
            }
            double det = 32 * scc - sc * sc;
            if (det <= 0) continue;
            double d = (32 * sxc - sc * sx) / det;
            try_with_min(x, (float)d, (float)((sx - d * sc) / 32), max_code, &best, trial);
        }
    }
    if (best.error == INFINITY) {
        best.scales.d = to_f16_finite(step);
        assign(x, quant_f16_to_f32(best.scales.d), quant_f16_to_f32(best.scales.m), max_code,
               best.code);
    }
    memcpy(code, best.code, 32);
    return best.scales;
}

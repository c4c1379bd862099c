/* engine/cpu/isa/vec.h: the float primitives of ops, one table per instruction-set level.
 *
 * Each has one exact definition (here); vec_scalar.c is that definition in C, vec_avx2.c,
 * vec_avx512.c and vec_neon.c give the same bits. n >= 0 everywhere; pointers may be unaligned; x
 * and y may be the same array as an elementwise output, and must not overlap it otherwise.
 *
 * lanes: 16 strided sums lane[i % 16], ascending i, from +0.0f; then the tree
 *     for h = 8, 4, 2, 1: lane[i] += lane[i + h] for i < h;   result lane[0].
 * exp, tanh, silu, gelu and similar functions: the polynomials of vec_math.inc, which states their
 * errors. */
#pragma once

#include "engine/unary.h"
#include "quant/quant.h"
#include <stdint.h>

/* One token of a head: rows s[n_rows][n] of its state, updated in place. n_decay is n, or 1 if all
 * elements have the same decay, which is then computed as fmaf(s, decay, 0). For i < n_rows:
 *
 *     delta   s_i = s_i * decay;  u = (v[i] - dot(s_i, k)) * beta;  s_i = fmaf(k, u, s_i);
 *             out[i] = dot(s_i, q) * scale
 *     scan    s_i = s_i * decay;  s_i = fmaf(b, x[i] * d, s_i);  out[i] = dot(s_i, c) */
struct engine_vec_delta {
    int64_t n_rows, n, n_decay;
    const float *decay, *k, *q, *v;
    float beta, scale;
    float *s, *out;
};

struct engine_vec_scan {
    int64_t n_rows, n, n_decay;
    const float *decay, *b, *c, *x;
    float d;
    float *s, *out;
};

struct engine_vec {
    /* elementwise, one rounding each */
    void (*add)(int64_t n, const float *x, const float *y, float *out);
    void (*sub)(int64_t n, const float *x, const float *y, float *out);
    void (*mul)(int64_t n, const float *x, const float *y, float *out);
    void (*div)(int64_t n, const float *x, const float *y, float *out);
    void (*scale)(int64_t n, const float *x, float a, float b, float *out); /* fmaf(x, a, b) */
    void (*mad)(int64_t n, const float *x, float a, float *acc); /* acc = fmaf(x, a, acc) */
    void (*mul_add)(int64_t n, const float *x, const float *y, float *acc);   /* fmaf(x, y, acc) */
    void (*clamp)(int64_t n, const float *x, float lo, float hi, float *out); /* NaN gives NaN */
    void (*unary[ENGINE_UNARY_COUNT])(int64_t n, const float *x, float *out);
    void (*glu[ENGINE_UNARY_COUNT])(int64_t n, const float *gate, const float *up,
                                    float *out); /* v_glu of vec_math.inc */

    /* acc[i] = fmaf(b[i / 64][j][i % 64], z[j], acc[i]) for ascending j < r; b has
     * [(n + 63) / 64][r][64] elements, of which those past n do not matter; once: b is in memory
     * and not read again soon, so it is prefetched */
    void (*low_rank)(int64_t n, int64_t r, const float *z, const float *b, bool once, float *acc);
    void (*low_rank_half)(int64_t n, int64_t r, const float *z, const uint16_t *b, bool once,
                          float *acc); /* b F16 */

    /* reductions */
    float (*sum)(int64_t n, const float *x);                 /* lanes: lane += x */
    float (*sum_sqr)(int64_t n, const float *x);             /* lanes: lane = fmaf(x, x, lane) */
    float (*dot)(int64_t n, const float *x, const float *y); /* lanes: lane = fmaf(x, y, lane) */
    float (*max)(int64_t n, const float *x);                 /* -inf if n = 0; NaN is skipped */
    float (*exp_sum)(int64_t n, const float *x, float m, float *out); /* out = exp(x - m); lanes */

    /* rows of norms: out = (x * r) * w, or x * r if w is NULL */
    void (*scale_mul)(int64_t n, const float *x, float r, const float *w, float *out);

    /* Rotates the pairs a = x[i * step], b = x[i * step + dist] by cos[i] and sin[i], i < n:
     * a' = fmaf(a, cos, -(b * sin)), b' = fmaf(b, cos, a * sin). With step 2 and dist 1 this is
     * the normal form of RoPE, with step 1 and dist n the NEOX form. */
    void (*rotate)(int64_t n, int64_t step, int64_t dist, const float *cos, const float *sin,
                   const float *x, float *out);

    void (*delta)(const struct engine_vec_delta *p);
    void (*scan)(const struct engine_vec_scan *p);
};

/* Fills the table for the level: with the scalar entries, then with those of each level on its
 * path. */
void engine_vec_init(struct engine_vec *vec, enum cpu_level level);

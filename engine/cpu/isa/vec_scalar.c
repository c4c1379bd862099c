/* engine/cpu/isa/vec_scalar.c: the sixteen-wide operations in plain C, the specification of vec.h.
 *
 * Each operation gives in each of its sixteen lanes the same bits as the operation of the same name
 * in vec_avx2.c and vec_avx512.c (except the payload of NaN). Also contains sine and cosine, which
 * have no vector form. Called through vec.h. */
#include "engine/cpu/isa/vec.h"
#include "engine/cpu/isa/vec_levels.h"
#include <math.h>
#include <string.h>

#define VEC_FN    static inline
#define VEC_ENTRY static

typedef struct {
    float lane[16];
} v16;

typedef struct {
    bool lane[16];
} m16;

static inline uint32_t bits_of(float x)
{
    uint32_t bits;
    memcpy(&bits, &x, sizeof(bits));
    return bits;
}

static inline float float_of(uint32_t bits)
{
    float x;
    memcpy(&x, &bits, sizeof(x));
    return x;
}

/* ---- Memory; the _n forms access n < 16 elements and fill the rest with zeros ---- */

VEC_FN v16 v_set(float x)
{
    v16 r;
    for (int l = 0; l < 16; ++l) r.lane[l] = x;
    return r;
}

VEC_FN v16 v_load(const float *p)
{
    v16 r;
    memcpy(r.lane, p, sizeof(r.lane));
    return r;
}

VEC_FN v16 v_load_n(const float *p, int n)
{
    v16 r = {{0}};
    for (int l = 0; l < n; ++l) r.lane[l] = p[l];
    return r;
}

VEC_FN void v_store(float *p, v16 x)
{
    memcpy(p, x.lane, sizeof(x.lane));
}

VEC_FN void v_store_n(float *p, v16 x, int n)
{
    for (int l = 0; l < n; ++l) p[l] = x.lane[l];
}

/* Moves the even elements of p[32] to *a and the odd ones to *b; the second function does the
 * inverse. */
VEC_FN void v_load_pairs(const float *p, v16 *a, v16 *b)
{
    for (int l = 0; l < 16; ++l) {
        a->lane[l] = p[2 * l];
        b->lane[l] = p[2 * l + 1];
    }
}

VEC_FN void v_store_pairs(float *p, v16 a, v16 b)
{
    for (int l = 0; l < 16; ++l) {
        p[2 * l] = a.lane[l];
        p[2 * l + 1] = b.lane[l];
    }
}

/* ---- Arithmetic, one rounding each ---- */

VEC_FN v16 v_add(v16 a, v16 b)
{
    for (int l = 0; l < 16; ++l) a.lane[l] += b.lane[l];
    return a;
}

VEC_FN v16 v_sub(v16 a, v16 b)
{
    for (int l = 0; l < 16; ++l) a.lane[l] -= b.lane[l];
    return a;
}

VEC_FN v16 v_mul(v16 a, v16 b)
{
    for (int l = 0; l < 16; ++l) a.lane[l] *= b.lane[l];
    return a;
}

VEC_FN v16 v_div(v16 a, v16 b)
{
    for (int l = 0; l < 16; ++l) a.lane[l] /= b.lane[l];
    return a;
}

VEC_FN v16 v_sqrt(v16 a)
{
    for (int l = 0; l < 16; ++l) a.lane[l] = sqrtf(a.lane[l]);
    return a;
}

/* a b + c */
VEC_FN v16 v_fma(v16 a, v16 b, v16 c)
{
    for (int l = 0; l < 16; ++l) a.lane[l] = fmaf(a.lane[l], b.lane[l], c.lane[l]);
    return a;
}

/* Returns the second argument if either is NaN, or for two zeros. */
VEC_FN v16 v_max(v16 a, v16 b)
{
    for (int l = 0; l < 16; ++l) a.lane[l] = a.lane[l] > b.lane[l] ? a.lane[l] : b.lane[l];
    return a;
}

VEC_FN v16 v_min(v16 a, v16 b)
{
    for (int l = 0; l < 16; ++l) a.lane[l] = a.lane[l] < b.lane[l] ? a.lane[l] : b.lane[l];
    return a;
}

VEC_FN m16 v_lt(v16 a, v16 b)
{
    m16 r;
    for (int l = 0; l < 16; ++l) r.lane[l] = a.lane[l] < b.lane[l];
    return r;
}

VEC_FN v16 v_pick(m16 m, v16 yes, v16 no)
{
    for (int l = 0; l < 16; ++l) yes.lane[l] = m.lane[l] ? yes.lane[l] : no.lane[l];
    return yes;
}

/* ---- Floats as 32-bit integers ---- */

VEC_FN v16 v_and_bits(v16 a, uint32_t bits)
{
    for (int l = 0; l < 16; ++l) a.lane[l] = float_of(bits_of(a.lane[l]) & bits);
    return a;
}

VEC_FN v16 v_xor_bits(v16 a, uint32_t bits)
{
    for (int l = 0; l < 16; ++l) a.lane[l] = float_of(bits_of(a.lane[l]) ^ bits);
    return a;
}

VEC_FN v16 v_or(v16 a, v16 b)
{
    for (int l = 0; l < 16; ++l) {
        a.lane[l] = float_of(bits_of(a.lane[l]) | bits_of(b.lane[l]));
    }
    return a;
}

VEC_FN v16 v_add_bits(v16 a, v16 b)
{
    for (int l = 0; l < 16; ++l) {
        a.lane[l] = float_of(bits_of(a.lane[l]) + bits_of(b.lane[l]));
    }
    return a;
}

VEC_FN v16 v_sub_bits(v16 a, v16 b)
{
    for (int l = 0; l < 16; ++l) {
        a.lane[l] = float_of(bits_of(a.lane[l]) - bits_of(b.lane[l]));
    }
    return a;
}

VEC_FN v16 v_shl_bits(v16 a, int n)
{
    for (int l = 0; l < 16; ++l) a.lane[l] = float_of(bits_of(a.lane[l]) << n);
    return a;
}

/* Arithmetic shift: copies of the sign are shifted in. */
VEC_FN v16 v_sar_bits(v16 a, int n)
{
    for (int l = 0; l < 16; ++l) {
        a.lane[l] = float_of((uint32_t)((int32_t)bits_of(a.lane[l]) >> n));
    }
    return a;
}

/* Converts the bits of a, as a signed integer, to float. */
VEC_FN v16 v_from_int(v16 a)
{
    for (int l = 0; l < 16; ++l) a.lane[l] = (float)(int32_t)bits_of(a.lane[l]);
    return a;
}

/* ---- Trees ---- */

VEC_FN float v_sum_tree(v16 a)
{
    for (int h = 8; h > 0; h /= 2) {
        for (int i = 0; i < h; ++i) a.lane[i] += a.lane[i + h];
    }
    return a.lane[0];
}

VEC_FN float v_max_tree(v16 a)
{
    for (int h = 8; h > 0; h /= 2) {
        for (int i = 0; i < h; ++i) {
            a.lane[i] = a.lane[i + h] > a.lane[i] ? a.lane[i + h] : a.lane[i];
        }
    }
    return a.lane[0];
}

#include "engine/cpu/isa/vec_kernels.inc"

/* ---- Sine and cosine: in double, rounded once ---- */

/* The first 224 bits of 2/pi; entry i has the bits of weight 2^-(32 i + 1) to 2^-(32 i + 32). */
static const uint32_t two_over_pi[] = {0xa2f9836e, 0x4e441529, 0xfc2757d1, 0xf534ddc0,
                                       0xdb629599, 0x3c439041, 0xfe5163ab};

/* x = (4 j + *quadrant + r) pi/2 for some integer j, |r| <= 1/2; returns r pi/2. For |x| >= 2^20,
 * finite: the 24-bit mantissa times the 96 bits of 2/pi that determine the quadrant and the
 * fraction; higher bits only give multiples of 4. */
static double reduce_large(float x, int *quadrant)
{
    const uint32_t bits = bits_of(x);
    const uint32_t mantissa = (bits & 0x7fffff) | 0x800000;
    const int exponent = (int)(bits >> 23 & 0xff) - 150; /* |x| = mantissa * 2^exponent */
    const int skip = exponent - 2;                       /* skipped bits of 2/pi */
    unsigned __int128 window = 0;
    for (int i = 0; i < 96; ++i) {
        const int at = skip + i;
        const uint32_t bit = at < 0 ? 0 : two_over_pi[at / 32] >> (31 - at % 32) & 1;
        window = window << 1 | bit;
    }
    /* the product modulo 4, as a fraction of 2^96 */
    const unsigned __int128 product = (window * mantissa) & (((unsigned __int128)1 << 96) - 1);
    const uint64_t turns = (uint64_t)(product >> 32); /* 2 bits quadrant, 62 bits fraction */
    const uint64_t rounded = turns + ((uint64_t)1 << 61);
    *quadrant = (int)(rounded >> 62);
    const int64_t rest = (int64_t)(turns - ((uint64_t)*quadrant << 62));
    const double r = (double)rest * 0x1p-62 * 0x1.921fb54442d18p+0;
    if (bits >> 31 == 0) return r;
    *quadrant = -*quadrant & 3;
    return -r;
}

static double reduce(float x, int *quadrant)
{
    if (fabsf(x) >= 0x1p20f) return reduce_large(x, quadrant);
    /* pi/2 in two parts: the first has 33 bits, so its product with 20 bits is exact */
    const double n = nearbyint((double)x * 0x1.45f306dc9c883p-1);
    *quadrant = (int)((int64_t)n & 3);
    return fma(n, -0x1.0b4611a626331p-34, fma(n, -0x1.921fb54400000p+0, (double)x));
}

/* sin(x + quadrants pi/2): Taylor series, error below 7e-12 for |r| <= pi/4. */
static float sin_shifted(float x, int quadrants)
{
    if (!(fabsf(x) < INFINITY)) return x - x;
    int quadrant;
    const double r = reduce(x, &quadrant);
    const double s = r * r;
    quadrant = (quadrant + quadrants) & 3;
    double y;
    if (quadrant & 1) {
        y = fma(s, 1.0 / 40320 - s * (1.0 / 3628800), -1.0 / 720);
        y = fma(s, fma(s, fma(s, y, 1.0 / 24), -0.5), 1.0);
    } else {
        y = fma(s, 1.0 / 362880 - s * (1.0 / 39916800), -1.0 / 5040);
        y = fma(s * r, fma(s, fma(s, y, 1.0 / 120), -1.0 / 6), r);
    }
    return (float)(quadrant & 2 ? -y : y);
}

static void unary_sin(int64_t n, const float *x, float *out)
{
    for (int64_t i = 0; i < n; ++i) out[i] = sin_shifted(x[i], 0);
}

static void unary_cos(int64_t n, const float *x, float *out)
{
    for (int64_t i = 0; i < n; ++i) out[i] = sin_shifted(x[i], 1);
}

static void glu_sin(int64_t n, const float *gate, const float *up, float *out)
{
    for (int64_t i = 0; i < n; ++i) out[i] = sin_shifted(gate[i], 0) * up[i];
}

static void glu_cos(int64_t n, const float *gate, const float *up, float *out)
{
    for (int64_t i = 0; i < n; ++i) out[i] = sin_shifted(gate[i], 1) * up[i];
}

/* ---- The table ---- */

void engine_vec_fill_scalar(struct engine_vec *vec)
{
    vec_fill(vec);
    vec->unary[ENGINE_SIN] = unary_sin;
    vec->unary[ENGINE_COS] = unary_cos;
    vec->glu[ENGINE_SIN] = glu_sin;
    vec->glu[ENGINE_COS] = glu_cos;
}

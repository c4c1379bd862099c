/* engine/cpu/isa/vec_scalar.c: the sixteen-wide operations in plain C, the specification of vec.h.
 *
 * Each operation gives in each of its sixteen lanes the same bits as the operation of the same name
 * in vec_avx2.c and vec_avx512.c (except the payload of NaN). Also contains sine and cosine, which
 * have no vector form. Called through vec.h. */
#include "engine/cpu/isa/isa.h"
#include "engine/cpu/isa/vec.h"
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

/* F16 */
VEC_FN v16 v_load_half_n(const uint16_t *p, int n)
{
    v16 r = {{0}};
    for (int l = 0; l < n; ++l) r.lane[l] = quant_f16_to_f32(p[l]);
    return r;
}

VEC_FN v16 v_load_half(const uint16_t *p)
{
    return v_load_half_n(p, 16);
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

#define V_BINARY(name, operator)                                                                   \
    VEC_FN v16 v_##name(v16 a, v16 b)                                                              \
    {                                                                                              \
        for (int l = 0; l < 16; ++l) a.lane[l] = a.lane[l] operator b.lane[l];                     \
        return a;                                                                                  \
    }
V_BINARY(add, +)
V_BINARY(sub, -)
V_BINARY(mul, *)
V_BINARY(div, /)

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
    for (int l = 0; l < 16; ++l) a.lane[l] = float_of(bits_of(a.lane[l]) | bits_of(b.lane[l]));
    return a;
}

VEC_FN v16 v_add_bits(v16 a, v16 b)
{
    for (int l = 0; l < 16; ++l) a.lane[l] = float_of(bits_of(a.lane[l]) + bits_of(b.lane[l]));
    return a;
}

VEC_FN v16 v_shl_bits(v16 a, int n)
{
    for (int l = 0; l < 16; ++l) a.lane[l] = float_of(bits_of(a.lane[l]) << n);
    return a;
}

/* ---- Trees ---- */

VEC_FN float v_sum_tree(v16 a)
{
    for (int h = 8; h > 0; h /= 2)
        for (int i = 0; i < h; ++i) a.lane[i] += a.lane[i + h];
    return a.lane[0];
}

VEC_FN float v_max_tree(v16 a)
{
    for (int h = 8; h > 0; h /= 2) {
        for (int i = 0; i < h; ++i)
            a.lane[i] = a.lane[i + h] > a.lane[i] ? a.lane[i + h] : a.lane[i];
    }
    return a.lane[0];
}

#include "engine/cpu/isa/vec_kernels.inc"

/* ---- The table ---- */

void engine_vec_fill_scalar(struct engine_vec *vec)
{
    vec_fill(vec);
}

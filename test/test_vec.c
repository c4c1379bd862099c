/* test/test_vec.c: every entry of the vector table: each level has the same bits as scalar, for all
 * tails, at any alignment, at the end of a page and between guard bytes; sums of scalar against the
 * definition in vec.h; functions against double precision. test_vec --bench prints nanoseconds per
 * element; test_vec --dense N tests the functions with every N-th float (--dense 1: all floats,
 * takes minutes). */
#include "engine/cpu/isa/vec.h"
#include "test/support.h"
#include "test/support_level.h"
#include "test/support_unary.h"
#include <float.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

/* ---- The table's entries by one calling convention ---- */

enum shape {
    SHAPE_BINARY, /* x, y -> out */
    SHAPE_UNARY,  /* x -> out */
    SHAPE_SCALE,
    SHAPE_CLAMP,
    SHAPE_MAD,     /* also reads out */
    SHAPE_REDUCE,  /* x -> value */
    SHAPE_REDUCE2, /* x, y -> value */
    SHAPE_MUL_ADD, /* x, y, acc */
    SHAPE_EXP_SUM,
    SHAPE_SCALE_MUL,
    SHAPE_SCALE_ONLY,   /* scale_mul with w NULL */
    SHAPE_ROTATE_PAIR,  /* step 2, dist 1; 2n elements; y contains cos and sin */
    SHAPE_ROTATE_NEOX,  /* step 1, dist n */
    SHAPE_ROTATE_ODD,   /* step 3, dist 2: no vector form */
    SHAPE_LOW_RANK,     /* of rank 3: x are the panels, y the factors; also reads out */
    SHAPE_LOW_RANK_HALF /* the same for F16 panels */
};

enum { RANK = 3 }; /* of SHAPE_LOW_RANK */

struct entry {
    const char *name;
    enum shape shape;
    size_t offset; /* offset of the function pointer in struct engine_vec */
};

/* clang-format off */
#define ENTRY(member, shape) {#member, shape, offsetof(struct engine_vec, member)}
/* clang-format on */
static const struct entry named[] = {
    ENTRY(add, SHAPE_BINARY),           ENTRY(sub, SHAPE_BINARY),
    ENTRY(mul, SHAPE_BINARY),           ENTRY(div, SHAPE_BINARY),
    ENTRY(scale, SHAPE_SCALE),          ENTRY(mad, SHAPE_MAD),
    ENTRY(clamp, SHAPE_CLAMP),          ENTRY(sum, SHAPE_REDUCE),
    ENTRY(sum_sqr, SHAPE_REDUCE),       ENTRY(max, SHAPE_REDUCE),
    ENTRY(dot, SHAPE_REDUCE2),          ENTRY(mul_add, SHAPE_MUL_ADD),
    ENTRY(exp_sum, SHAPE_EXP_SUM),      ENTRY(scale_mul, SHAPE_SCALE_MUL),
    ENTRY(scale_mul, SHAPE_SCALE_ONLY), ENTRY(rotate, SHAPE_ROTATE_PAIR),
    ENTRY(rotate, SHAPE_ROTATE_NEOX),   ENTRY(rotate, SHAPE_ROTATE_ODD),
    ENTRY(low_rank, SHAPE_LOW_RANK),    ENTRY(low_rank_half, SHAPE_LOW_RANK_HALF),
};
enum { N_NAMED = sizeof(named) / sizeof(named[0]), N_ENTRIES = N_NAMED + 2 * ENGINE_UNARY_COUNT };

static const char *const unary_names[ENGINE_UNARY_COUNT] = {
    [ENGINE_SILU] = "silu",         [ENGINE_GELU] = "gelu",
    [ENGINE_GELU_ERF] = "gelu_erf", [ENGINE_GELU_QUICK] = "gelu_quick",
    [ENGINE_RELU] = "relu",         [ENGINE_RELU_SQR] = "relu_sqr",
    [ENGINE_SIGMOID] = "sigmoid",   [ENGINE_TANH] = "tanh",
    [ENGINE_EXP] = "exp",           [ENGINE_SQRT] = "sqrt",
    [ENGINE_SOFTPLUS] = "softplus", [ENGINE_STEP] = "step",
};

static struct entry entry_at(int i)
{
    if (i < N_NAMED) return named[i];
    const int f = (i - N_NAMED) % ENGINE_UNARY_COUNT;
    const bool is_glu = i - N_NAMED >= ENGINE_UNARY_COUNT;
    return (struct entry){.name = unary_names[f],
                          .shape = is_glu ? SHAPE_BINARY : SHAPE_UNARY,
                          .offset = is_glu
                                        ? offsetof(struct engine_vec, glu) + f * sizeof(void *)
                                        : offsetof(struct engine_vec, unary) + f * sizeof(void *)};
}

static bool is_low_rank(enum shape s)
{
    return s == SHAPE_LOW_RANK || s == SHAPE_LOW_RANK_HALF;
}

/* Number of elements of x, y and out that a call with n accesses. */
static int64_t x_count(enum shape s, int64_t n)
{
    return s == SHAPE_ROTATE_PAIR || s == SHAPE_ROTATE_NEOX ? 2 * n
           : s == SHAPE_ROTATE_ODD                          ? 3 * n
           : s == SHAPE_LOW_RANK                            ? (n + 63) / 64 * 64 * RANK
           : s == SHAPE_LOW_RANK_HALF                       ? (n + 63) / 64 * 32 * RANK
                                                            : n;
}

static int64_t y_count(enum shape s, int64_t n)
{
    const bool rotates = s == SHAPE_ROTATE_PAIR || s == SHAPE_ROTATE_NEOX || s == SHAPE_ROTATE_ODD;
    const bool reads =
        s == SHAPE_BINARY || s == SHAPE_MUL_ADD || s == SHAPE_REDUCE2 || s == SHAPE_SCALE_MUL;
    return rotates ? 2 * n : reads ? n : is_low_rank(s) ? RANK : 0;
}

static int64_t out_count(enum shape s, int64_t n)
{
    return s == SHAPE_REDUCE || s == SHAPE_REDUCE2 ? 0 : is_low_rank(s) ? n : x_count(s, n);
}

/* Calls the entry; returns its value (0 if it has none). */
static float call(const struct engine_vec *vec, struct entry e, int64_t n, const void *x,
                  const float *y, float a, float b, void *out)
{
    const void *at = (const char *)vec + e.offset;
    switch (e.shape) {
    case SHAPE_BINARY:
        (*(void (*const *)(int64_t, const float *, const float *, float *))at)(n, x, y, out);
        return 0;
    case SHAPE_UNARY:
        (*(void (*const *)(int64_t, const float *, float *))at)(n, x, out);
        return 0;
    case SHAPE_SCALE:
        vec->scale(n, x, a, b, out);
        return 0;
    case SHAPE_CLAMP:
        vec->clamp(n, x, a < b ? a : b, a < b ? b : a, out);
        return 0;
    case SHAPE_MAD:
        vec->mad(n, x, a, out);
        return 0;
    case SHAPE_REDUCE:
        return (*(float (*const *)(int64_t, const float *))at)(n, x);
    case SHAPE_REDUCE2:
        return vec->dot(n, x, y);
    case SHAPE_EXP_SUM:
        return vec->exp_sum(n, x, a, out);
    case SHAPE_MUL_ADD:
        vec->mul_add(n, x, y, out);
        return 0;
    case SHAPE_SCALE_MUL:
        vec->scale_mul(n, x, a, y, out);
        return 0;
    case SHAPE_SCALE_ONLY:
        vec->scale_mul(n, x, a, NULL, out);
        return 0;
    case SHAPE_ROTATE_PAIR:
        vec->rotate(n, 2, 1, y, y + n, x, out);
        return 0;
    case SHAPE_ROTATE_NEOX:
        vec->rotate(n, 1, n, y, y + n, x, out);
        return 0;
    case SHAPE_ROTATE_ODD:
        vec->rotate(n, 3, 2, y, y + n, x, out);
        return 0;
    case SHAPE_LOW_RANK:
        vec->low_rank(n, RANK, y, x, n % 2, out);
        return 0;
    case SHAPE_LOW_RANK_HALF:
        vec->low_rank_half(n, RANK, y, x, n % 2, out);
        return 0;
    }
    return 0;
}

/* ---- Values ---- */

static uint64_t random_next(uint64_t *state)
{
    *state += 0x9e3779b97f4a7c15u;
    uint64_t z = *state;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return z ^ z >> 31;
}

static float float_of(uint32_t bits)
{
    float x;
    memcpy(&x, &bits, sizeof(x));
    return x;
}

static uint32_t bits_of(float x)
{
    uint32_t bits;
    memcpy(&bits, &x, sizeof(bits));
    return bits;
}

static const uint32_t special[] = {
    0x00000000, 0x80000000, 0x7f800000, 0xff800000, 0x7fc00000, 0xffc00001, 0x7f800001, /* sNaN */
    0x00000001, 0x80000001, 0x007fffff, 0x807fffff, 0x00800000, 0x80800000, 0x7f7fffff,
    0xff7fffff, 0x3f800000, 0xbf800000, 0x3f7fffff, 0x3f800001, 0x3f000000, 0x3f200000,
    0x42b17217, 0x42b17218, 0x42b17219, 0xc2aeac4e, 0xc2aeac4f, 0xc2aeac50, 0xc2b17218, /* exp */
    0x3fb504f3, 0x3f3504f3, 0x3f3504f4, 0x3f6ccccd, 0x40800000, 0xc0800000, 0xc0400000,
    0x40400000, 0x477fe000, 0x477ff000, 0x477fefff, 0x33000000, 0x33000001, 0x387fc000, /* half */
    0x3e7fffff, 0xc2800000, 0x7149f2ca, 0xf149f2ca, 0x0da24260, 0x4b400000, 0xcb400000};
enum { N_SPECIAL = sizeof(special) / sizeof(special[0]) };

/* Random values. kind 0: like activations; 1: any magnitude; 2: any bits and special values. */
static void fill(float *x, int64_t n, int kind, uint64_t *state)
{
    for (int64_t i = 0; i < n; ++i) {
        const uint64_t r = random_next(state);
        const float unit = (float)(int32_t)(uint32_t)r * 0x1p-31f;
        if (kind == 0) {
            x[i] = 8.0f * unit;
        } else if (kind == 1) {
            x[i] = ldexpf(unit, (int)(r >> 40) % 60 - 30);
        } else {
            x[i] = float_of(r >> 63 ? (uint32_t)r : special[(r >> 32) % N_SPECIAL]);
        }
    }
}

static bool same_float(float a, float b)
{
    return bits_of(a) == bits_of(b) || (isnan(a) && isnan(b));
}

static bool same_half(uint16_t a, uint16_t b)
{
    return a == b || ((a & 0x7fff) > 0x7c00 && (b & 0x7fff) > 0x7c00);
}

static bool same(const void *a, const void *b, int64_t n, size_t size)
{
    for (int64_t i = 0; i < n; ++i) {
        if (size == 2 && !same_half(((const uint16_t *)a)[i], ((const uint16_t *)b)[i]))
            return false;
        if (size == 4 && !same_float(((const float *)a)[i], ((const float *)b)[i])) return false;
    }
    return true;
}

/* ---- Memory: blocks that end before an inaccessible page ---- */

enum { ROOM = 16384, GUARD = 64, N_BLOCKS = 4 };

struct blocks {
    char *base[N_BLOCKS]; /* ROOM bytes before an inaccessible page */
};

static void blocks_new(struct blocks *b)
{
    for (int i = 0; i < N_BLOCKS; ++i) {
        char *p = mmap(NULL, ROOM + 65536, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        assert_true(p != MAP_FAILED);
        assert_int_equal(mprotect(p, ROOM, PROT_READ | PROT_WRITE), 0);
        b->base[i] = p;
    }
}

static void blocks_free(struct blocks *b)
{
    for (int i = 0; i < N_BLOCKS; ++i) munmap(b->base[i], ROOM + 65536);
}

/* `bytes` bytes that end at the block's end (back == 0) or `back` bytes before it, with guard bytes
 * where there is room. */
static void *place(const struct blocks *b, int i, int64_t bytes, int back)
{
    memset(b->base[i], 0xa5, ROOM);
    return b->base[i] + ROOM - back - bytes;
}

static bool guards_hold(const struct blocks *b, int i, int64_t bytes, int back)
{
    const unsigned char *end = (const unsigned char *)b->base[i] + ROOM;
    for (int k = 1; k <= back; ++k) {
        if (end[-k] != 0xa5) return false;
    }
    for (int k = 1; k <= GUARD; ++k) {
        if (end[-back - bytes - k] != 0xa5) return false;
    }
    return true;
}

/* ---- Levels against scalar ---- */

static void check_entry(const struct blocks *b, struct entry e, enum cpu_level level, int64_t n,
                        int kind, int back, uint64_t *seed)
{
    struct engine_vec scalar, vec;
    engine_vec_init(&scalar, CPU_SCALAR);
    engine_vec_init(&vec, level);
    static float x0[ROOM / 4], y0[ROOM / 4], out0[ROOM / 4];
    const int64_t nx = x_count(e.shape, n), ny = y_count(e.shape, n), no = out_count(e.shape, n);
    fill(x0, nx, kind, seed);
    fill(y0, ny, kind, seed);
    fill(out0, no, kind, seed);
    float ab[2];
    fill(ab, 2, kind, seed);
    const size_t x_bytes = (size_t)nx * sizeof(float), out_bytes = (size_t)no * sizeof(float);
    void *x = memcpy(place(b, 0, (int64_t)x_bytes, back), x0, x_bytes);
    float *y = memcpy(place(b, 1, ny * 4, back), y0, (size_t)ny * 4);
    void *out = memcpy(place(b, 2, (int64_t)out_bytes, back), out0, out_bytes);

    const float want = call(&scalar, e, n, x0, y0, ab[0], ab[1], out0);
    const float got = call(&vec, e, n, x, y, ab[0], ab[1], out);
    bool ok = same_float(want, got) && guards_hold(b, 2, (int64_t)out_bytes, back);
    /* elements that a rotation with gaps skips are unchanged in both */
    ok = ok && same(out, out0, no, sizeof(float));
    if (ok && no > 0 && x_bytes == out_bytes && e.shape != SHAPE_MAD && e.shape != SHAPE_MUL_ADD) {
        call(&vec, e, n, x, y, ab[0], ab[1], x); /* in place */
        if (e.shape != SHAPE_ROTATE_ODD) ok = same(x, out0, no, sizeof(float));
    }
    if (!ok) {
        fail_msg("%s (entry shape %d) at %s differs from scalar: n %d, kind %d, back %d", e.name,
                 e.shape, cpu_level_name(level), (int)n, kind, back);
    }
}

static void every_level_equals_scalar(void **state)
{
    (void)state;
    uint64_t seed = 20;
    struct blocks b;
    blocks_new(&b);
    static const int large[] = {127, 256, 1000};
    for (int i = 0; i < N_ENTRIES; ++i) {
        const struct entry e = entry_at(i);
        for (int level = CPU_SCALAR; support_level_next(&level); level++) {
            for (int n = 0; n <= 70 + 3; ++n) {
                const int64_t count = n <= 70 ? n : large[n - 71];
                for (int kind = 0; kind < 3; ++kind) {
                    check_entry(&b, e, level, count, kind, 0, &seed);
                    /* 44 bytes before the end: misaligned */
                    check_entry(&b, e, level, count, kind, 44, &seed);
                }
            }
        }
    }
    blocks_free(&b);
}

/* Tests every special value in every lane. */
static void special_values_equal_scalar_in_every_lane(void **state)
{
    (void)state;
    struct engine_vec scalar;
    engine_vec_init(&scalar, CPU_SCALAR);
    float x[N_SPECIAL + 16], want[N_SPECIAL], got[N_SPECIAL], up[N_SPECIAL];
    for (int i = 0; i < N_SPECIAL; ++i) up[i] = 1.5f;
    for (int i = 0; i < N_SPECIAL + 16; ++i) x[i] = float_of(special[i % N_SPECIAL]);
    for (int level = CPU_AVX2; support_level_next(&level); level++) {
        struct engine_vec vec;
        engine_vec_init(&vec, level);
        for (int i = N_NAMED; i < N_ENTRIES; ++i) {
            for (int shift = 0; shift < 16; ++shift) {
                call(&scalar, entry_at(i), N_SPECIAL, x + shift, up, 0, 0, want);
                call(&vec, entry_at(i), N_SPECIAL, x + shift, up, 0, 0, got);
                assert_true(same(want, got, N_SPECIAL, 4));
            }
        }
    }
}

/* ---- Scalar against the definition in vec.h ---- */

static float tree(float lane[16])
{
    for (int h = 8; h > 0; h /= 2) {
        for (int i = 0; i < h; ++i) lane[i] += lane[i + h];
    }
    return lane[0];
}

static void scalar_functions_follow_the_header(void **state)
{
    (void)state;
    struct engine_vec vec;
    engine_vec_init(&vec, CPU_SCALAR);
    enum { N = 83 };
    uint64_t seed = 3;
    float x[N], y[N], out[N];
    fill(x, N, 1, &seed);
    fill(y, N, 1, &seed);
    for (int n = 0; n <= N; ++n) {
        float sum[16] = {0}, square[16] = {0}, dot[16] = {0}, e[16] = {0}, max = -INFINITY;
        const float total = vec.exp_sum(n, x, 3.0f, out);
        for (int i = 0; i < n; ++i) {
            sum[i % 16] += x[i];
            square[i % 16] = fmaf(x[i], x[i], square[i % 16]);
            dot[i % 16] = fmaf(x[i], y[i], dot[i % 16]);
            e[i % 16] += out[i];
            max = x[i] > max ? x[i] : max;
        }
        assert_int_equal(bits_of(vec.sum(n, x)), bits_of(tree(sum)));
        assert_int_equal(bits_of(vec.sum_sqr(n, x)), bits_of(tree(square)));
        assert_int_equal(bits_of(vec.dot(n, x, y)), bits_of(tree(dot)));
        assert_int_equal(bits_of(total), bits_of(tree(e)));
        assert_int_equal(bits_of(vec.max(n, x)), bits_of(max));
    }
    const float with_nan[] = {1, NAN, 3, NAN};
    assert_true(vec.max(4, with_nan) == 3);
    assert_true(isnan(vec.sum(4, with_nan)));
    vec.clamp(4, with_nan, 2, 2.5f, out);
    assert_true(out[0] == 2 && isnan(out[1]) && out[2] == 2.5f);
    vec.scale(N, x, 1.25f, -3.0f, out);
    for (int i = 0; i < N; ++i) assert_true(out[i] == fmaf(x[i], 1.25f, -3.0f));
    float b[2 * 2 * 64], acc[80];
    fill(b, 256, 1, &seed);
    memcpy(acc, y, sizeof acc);
    vec.low_rank(80, 2, (float[]){0.3f, -7.0f}, b, false, acc);
    for (int i = 0; i < 80; ++i) {
        const float *panel = b + i / 64 * 128 + i % 64;
        assert_true(acc[i] == fmaf(panel[64], -7.0f, fmaf(panel[0], 0.3f, y[i])));
    }
    const uint16_t half[64] = {[0] = 0x3c00, [63] = 0xc200}; /* 1 and -3 */
    memset(acc, 0, sizeof acc);
    vec.low_rank_half(64, 1, (float[]){0.5f}, half, true, acc);
    assert_true(acc[0] == 0.5f && acc[1] == 0.0f && acc[63] == -1.5f);
    const float a[] = {1, 2, 3, 4}, cos[] = {0.5f, 0.25f}, sin[] = {2, 3};
    vec.rotate(2, 2, 1, cos, sin, a, out);
    const float pair[] = {1 * 0.5f - 2 * 2, 2 * 0.5f + 1 * 2, 3 * 0.25f - 4 * 3, 4 * 0.25f + 3 * 3};
    assert_true(same(pair, out, 4, 4));
    vec.rotate(2, 1, 2, cos, sin, a, out);
    const float neox[] = {1 * 0.5f - 3 * 2, 2 * 0.25f - 4 * 3, 3 * 0.5f + 1 * 2, 4 * 0.25f + 2 * 3};
    assert_true(same(neox, out, 4, 4));
}

/* ---- Rows of a state ---- */

enum { STATE_N = 70, STATE_MAX_ROWS = 9 };

/* A scan or delta step by its definition, from the scalar primitives. */
static void state_reference(const struct engine_vec *v, const struct engine_vec_delta *p,
                            bool delta)
{
    for (int64_t i = 0; i < p->n_rows; i++) {
        float *s = p->s + i * p->n;
        if (p->n_decay == 1)
            v->scale(p->n, s, p->decay[0], 0.0f, s);
        else
            v->mul(p->n, s, p->decay, s);
        const float u = delta ? (p->v[i] - v->dot(p->n, s, p->k)) * p->beta : p->v[i] * p->beta;
        v->mad(p->n, p->k, u, s);
        p->out[i] = v->dot(p->n, s, p->q) * (delta ? p->scale : 1.0f);
    }
}

static void state_run(const struct engine_vec *v, const struct engine_vec_delta *p, bool delta)
{
    const struct engine_vec_scan scan = {.n_rows = p->n_rows,
                                         .n = p->n,
                                         .n_decay = p->n_decay,
                                         .decay = p->decay,
                                         .b = p->k,
                                         .c = p->q,
                                         .x = p->v,
                                         .d = p->beta,
                                         .s = p->s,
                                         .out = p->out};
    if (delta)
        v->delta(p);
    else
        v->scan(&scan);
}

/* Steps have the same bits as the primitives that define them, at every level; s ends at the
 * block's end. */
static void check_state_rows(struct blocks *b, const struct engine_vec *scalar,
                             const struct engine_vec *vec, int64_t n, int64_t rows, bool one,
                             bool delta, uint64_t *seed)
{
    static float decay[STATE_N], k[STATE_N], q[STATE_N], v[STATE_MAX_ROWS];
    static float s[STATE_N * STATE_MAX_ROWS], out[2][STATE_MAX_ROWS];
    float *const arrays[] = {decay, k, q, v, s};
    const int64_t counts[] = {n, n, n, rows, n * rows};
    for (int a = 0; a < 5; a++) fill(arrays[a], counts[a], 0, seed);
    const int64_t bytes = n * rows * (int64_t)sizeof *s;
    float *own = memcpy(place(b, 0, bytes, 0), s, (size_t)bytes);
    struct engine_vec_delta p = {.n_rows = rows,
                                 .n = n,
                                 .n_decay = one ? 1 : n,
                                 .decay = decay,
                                 .k = k,
                                 .q = q,
                                 .v = v,
                                 .beta = 0.7f,
                                 .scale = 0.25f};
    p.s = s;
    p.out = out[0];
    state_reference(scalar, &p, delta);
    p.s = own;
    p.out = out[1];
    state_run(vec, &p, delta);
    assert_true(same(s, own, n * rows, sizeof *s) && same(out[0], out[1], rows, sizeof *s));
    assert_true(guards_hold(b, 0, bytes, 0));
}

static void state_rows_equal_scalar(void **state)
{
    (void)state;
    uint64_t seed = 8;
    struct blocks b;
    struct engine_vec scalar, vec;
    blocks_new(&b);
    engine_vec_init(&scalar, CPU_SCALAR);
    for (int level = CPU_SCALAR; support_level_next(&level); level++) {
        engine_vec_init(&vec, level);
        for (int64_t n = 1; n <= STATE_N; n++)
            for (int64_t rows = 1; rows <= STATE_MAX_ROWS; rows++)
                for (int kind = 0; kind < 4; kind++)
                    check_state_rows(&b, &scalar, &vec, n, rows, kind % 2, kind / 2, &seed);
    }
    blocks_free(&b);
}

/* ---- Functions against double precision ---- */

/* The bar per function: `ulp` units in the last place of max(|result|, from * |x|). */
struct bar {
    double ulp, from;
};
static const struct bar bars[ENGINE_UNARY_COUNT] = {
    [ENGINE_SILU] = {3, 0},          [ENGINE_GELU] = {2.5, 0x1p-1},
    [ENGINE_GELU_ERF] = {2, 0x1p-1}, [ENGINE_GELU_QUICK] = {2.5, 0x1p-1},
    [ENGINE_RELU] = {0, 0},          [ENGINE_RELU_SQR] = {0.51, 0},
    [ENGINE_SIGMOID] = {3, 0},       [ENGINE_TANH] = {2, 0},
    [ENGINE_EXP] = {1.1, 0},         [ENGINE_SQRT] = {0.51, 0},
    [ENGINE_SOFTPLUS] = {2, 0},      [ENGINE_STEP] = {0, 0},
};

static double ulp_of(double x)
{
    int exponent;
    frexp(x, &exponent);
    return ldexp(1, exponent < -125 ? -149 : exponent - 24);
}

/* The error of y in units of the bar's ulp. exp may be 0 below 2^-126, and x / (1 + exp(y)) below
 * 2^-118, where exp(y) overflows. */
static double error_of(enum engine_unary f, float x, float y)
{
    const double want = support_unary(f, (double)x);
    if (isnan(want) && isnan(y)) return 0;
    if (isinf(x) && isnan(y)) return 0; /* inf/inf or 0 * inf in the formula */
    if (isnan(want) || isnan(y)) return INFINITY;
    if ((double)y == want || (float)want == y) return 0;
    if (y == 0 && fabs(want) < (f == ENGINE_EXP ? 0x1p-126 : 0x1p-118)) return 0;
    const double scale = fmax(fabs(want), bars[f].from * fabs((double)x));
    if (isinf(y)) return (fabs(want) - (double)FLT_MAX) / ulp_of(FLT_MAX) > -4 ? 0 : INFINITY;
    return fabs((double)y - want) / ulp_of(scale);
}

/* For every `stride`-th bit pattern, checks the error at the best level, and for some of them
 * equality with scalar. */
static void scan_function(enum engine_unary f, uint32_t stride, bool print)
{
    enum { BATCH = 4096 };
    struct engine_vec scalar, vec;
    engine_vec_init(&scalar, CPU_SCALAR);
    engine_vec_init(&vec, cpu_level_best());
    static float x[BATCH], y[BATCH], z[BATCH];
    double worst = 0;
    float worst_at = 0;
    for (uint64_t first = 0; first < (uint64_t)1 << 32; first += (uint64_t)BATCH * stride) {
        for (int i = 0; i < BATCH; ++i) x[i] = float_of((uint32_t)(first + (uint64_t)i * stride));
        vec.unary[f](BATCH, x, y);
        scalar.unary[f](BATCH, x, z);
        assert_true(same(y, z, BATCH, 4));
        for (int i = 0; i < BATCH; ++i) {
            const double error = error_of(f, x[i], y[i]);
            if (!(error <= worst)) {
                worst = error;
                worst_at = x[i];
            }
        }
    }
    if (print || worst > bars[f].ulp) {
        print_message("%-12s largest error %.3f ulp at %a (bar %g)\n", unary_names[f], worst,
                      (double)worst_at, bars[f].ulp);
    }
    if (!print) assert_true(worst <= bars[f].ulp);
}

static void functions_are_accurate(void **state)
{
    (void)state;
    for (int f = 0; f < ENGINE_UNARY_COUNT; ++f) scan_function(f, 16381, false);
}

/* Functions with comparisons return NaN for NaN. */
static void nan_inputs_give_nan(void **state)
{
    (void)state;
    for (int level = CPU_SCALAR; support_level_next(&level); level++) {
        struct engine_vec vec;
        engine_vec_init(&vec, level);
        for (int f = 0; f < ENGINE_UNARY_COUNT; ++f) {
            const float x[] = {NAN, -NAN, float_of(0x7f800001)};
            float y[3];
            vec.unary[f](3, x, y);
            for (int i = 0; i < 3; ++i) assert_true(isnan(y[i]));
        }
    }
}

/* ---- Speed ---- */

static void bench(void)
{
    enum { N = 2048, REPEAT = 200 };
    static float x[3 * N], y[3 * N], out[3 * N];
    uint64_t seed = 1;
    fill(x, 3 * N, 0, &seed);
    fill(y, 3 * N, 0, &seed);
    printf("%-14s %-6s", "ns/element", "shape");
    for (int level = CPU_SCALAR; support_level_next(&level); level++) {
        printf(" %10s", cpu_level_name(level));
    }
    printf("\n");
    for (int i = 0; i < N_ENTRIES; ++i) {
        const struct entry e = entry_at(i);
        printf("%-14s %-6d", e.name, e.shape);
        for (int level = CPU_SCALAR; support_level_next(&level); level++) {
            struct engine_vec vec;
            engine_vec_init(&vec, level);
            double best = INFINITY;
            for (int round = 0; round < 5; ++round) {
                struct timespec t0, t1;
                const int repeat = level == 0 ? REPEAT / 20 : REPEAT;
                clock_gettime(CLOCK_MONOTONIC, &t0);
                for (int r = 0; r < repeat; ++r) call(&vec, e, N, x, y, 0.5f, 0.25f, out);
                clock_gettime(CLOCK_MONOTONIC, &t1);
                const double ns =
                    1e9 * (double)(t1.tv_sec - t0.tv_sec) + (double)(t1.tv_nsec - t0.tv_nsec);
                best = fmin(best, ns / ((double)repeat * N));
            }
            printf(" %10.3f", best);
        }
        printf("\n");
    }
}

int main(int argc, char **argv)
{
    if (argc > 1 && strcmp(argv[1], "--bench") == 0) {
        bench();
        return 0;
    }
    if (argc > 2 && strcmp(argv[1], "--dense") == 0) {
        const uint32_t stride = (uint32_t)strtoul(argv[2], NULL, 10);
        for (int f = 0; f < ENGINE_UNARY_COUNT; ++f) scan_function(f, stride ? stride : 1, true);
        return 0;
    }
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_level_equals_scalar),
        cmocka_unit_test(state_rows_equal_scalar),
        cmocka_unit_test(special_values_equal_scalar_in_every_lane),
        cmocka_unit_test(scalar_functions_follow_the_header),
        cmocka_unit_test(functions_are_accurate),
        cmocka_unit_test(nan_inputs_give_nan),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

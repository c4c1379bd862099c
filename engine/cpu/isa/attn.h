/* clang-format off */
/* engine/cpu/isa/attn.h: attention's arithmetic in integers, one table per instruction-set level.
 *
 * Keys, values, queries and weights become int16 codes of 12 to 15 bits with one scale each, so
 * that products are sums of integers: exact in any order, and two multiply-adds per lane instead of
 * one for floats. attn_scalar.c is the specification, the others give the same bits. Private to
 * engine/attention/, which allocates memory, reads the block tables and merges chunks. F32 caches
 * do not use these kernels.
 *
 * The codes of a row x[n]: m = largest |x| (compared as integers, so that NaN > Inf > numbers);
 * code = round-to-nearest-even(x * factor).
 *
 *   row      scale                                    factor     m below this: scale 0, or as given
 *   query    m / 8191                                 8191 / m   2^-100
 *   key      m / 4095                                 4095 / m   2^-100
 *   value    2^L, the smallest L with codes <= 4095   2^-L       2^-60: L = -72
 *
 * Below that limit all codes are 0; if m is not finite the scale is a quiet NaN and all codes are
 * 0.
 *
 * score = fmaf(acc * key scale, query scale, offset). acc is the sum, over blocks of 64 elements in
 * ascending order, of (float)(integer sum); it starts with the sum of the first block.
 *
 * Weights are powers of two. With s_j the score of key j, scaled by log2(e), and 2^L_j the scale of
 * value j, which is added to the score as its offset:
 *
 *     t_j = s_j + L_j
 *     w_j = 2^t_j                                      softmax's weight times the value's scale
 *     o   = sum of w_j * code(v_j) / sum of w_j * 2^-L_j
 *
 * These are computed for each sub-block of ENGINE_ATTN_SUB keys, counted from position 0, and for
 * the chunk:
 *
 *     c     = ceil(largest t that is a number), at least -2^22, and NaN above 2^22
 *     w     = 2^(t - c + 14), see ENGINE_ATTN_POWERS; the code of w is w rounded
 *     C     = largest c of the chunk
 *     scale = 2^(c - C), below 2^-126: 0
 *     sum   lane = fmaf(w, 2^-L, lane), lane (position % 16), over the sub-block's keys; then, ascending,
 *           total = fmaf(lane, scale, total); then the tree of engine/cpu/isa/vec.h
 *     o     = fmaf((float)(integer sum over the sub-block), scale, o), ascending from +0
 *
 * sum and o are in units of 2^base, base = C - 14: a merge of chunks multiplies only by powers of
 * two. Every integer sum of the largest codes is below 2^31. Only the keys in a query's range
 * affect its result, not other rows of a group of 16.
 *
 * Keys and values are stored in consecutive groups of 16 rows: float scale[16], then int16 codes
 * in the order of multiplication, with pairs that VPDPWSSD (VPMADDWD) multiplies and adds. k[r][i]
 * is code i of row r of a group of keys, v[r][i] of a group of values (padded to 16 elements):
 *
 *     keys      k[0][0] k[0][1]   k[1][0] k[1][1]   ..   k[15][0] k[15][1]
 *               k[0][2] k[0][3]   k[1][2] k[1][3]   ..   k[15][2] k[15][3]   ..
 *     values    v[0][0] v[1][0]   v[0][1] v[1][1]   ..   v[0][dv - 1] v[1][dv - 1]   padding
 *               v[2][0] v[3][0]   v[2][1] v[3][1]   ..
 *
 * On 64-bit ARM (ENGINE_ATTN_PLANES) they are stored as bytes for SDOT and SMMLA, which multiply
 * int8 four times as fast as SMLAL int16: code = 128 * high + low, low -64 .. 63, in the same space.
 * First the high bytes of eight elements of each key (eight values of each element), then the low
 * ones:
 *
 *     keys      k[0][0] .. k[0][7]   k[1][0] .. k[1][7]   ..   k[15][0] .. k[15][7]    (padded to 8)
 *     values    v[0][0] .. v[7][0]   v[0][1] .. v[7][1]   ..   v[0][dv - 1] .. v[7][dv - 1]   padding
 *
 * An int16-quantized KV cache (engine/graph.h) consists of such groups and is read in place. */
/* clang-format on */
#pragma once

#include "quant/quant.h"
#include "quant/stream.h"

#if !defined(ENGINE_ATTN_PLANES) && defined(__aarch64__)
#define ENGINE_ATTN_PLANES 1 /* kernels for GPUs have the layout of the machine */
#endif
#ifdef ENGINE_ATTN_PLANES
enum { ENGINE_ATTN_UNIT = 8 }; /* consecutive elements of a key, values of an element */
#else
enum { ENGINE_ATTN_UNIT = 2 };
#endif

enum {
    ENGINE_ATTN_GROUP = 16, /* interleaved keys or values */
    ENGINE_ATTN_SUB = 32,   /* keys that share a scale of weights */
    ENGINE_ATTN_DIMS = 64,  /* elements of a score per integer sum */
    ENGINE_ATTN_ROWS = 6,   /* maximum queries of a tile */
    ENGINE_ATTN_SUBS = 8,   /* sub-blocks of ENGINE_ATTN_SUB in a chunk */
    ENGINE_ATTN_KEYS = ENGINE_ATTN_SUB * ENGINE_ATTN_SUBS,
    ENGINE_ATTN_QUERY_MAX = 8191,
    ENGINE_ATTN_KEY_MAX = 4095,
    ENGINE_ATTN_VALUE_MAX = 4095,
    ENGINE_ATTN_WEIGHT_BITS = 14, /* codes up to 2^14 */
    ENGINE_ATTN_LIMIT = 1 << 22   /* largest magnitude of c */
};

enum engine_attn_kind { ENGINE_ATTN_QUERY, ENGINE_ATTN_KEY, ENGINE_ATTN_VALUE };

/* Codes of a group of keys of d elements, padded to units: [unit of elements][key][unit]. */
static inline int64_t engine_attn_key_codes(int64_t d)
{
    return (d + ENGINE_ATTN_UNIT - 1) / ENGINE_ATTN_UNIT * ENGINE_ATTN_UNIT * ENGINE_ATTN_GROUP;
}

/* Codes of a group of values of dv elements: [unit of keys][element, padded to a multiple of
 * 16][unit]. */
static inline int64_t engine_attn_value_codes(int64_t dv)
{
    return (dv + 15) / 16 * 16 * ENGINE_ATTN_GROUP;
}

/* Bytes of a group: float scale[16], int16_t codes[]. */
static inline int64_t engine_attn_key_bytes(int64_t d)
{
    return 4 * ENGINE_ATTN_GROUP + 2 * engine_attn_key_codes(d);
}

static inline int64_t engine_attn_value_bytes(int64_t dv)
{
    return 4 * ENGINE_ATTN_GROUP + 2 * engine_attn_value_codes(dv);
}

static inline float *engine_attn_scales(const char *group)
{
    return (float *)(void *)group;
}

static inline int16_t *engine_attn_codes(const char *group)
{
    return (int16_t *)(void *)(group + 4 * ENGINE_ATTN_GROUP);
}

/* A tile: up to ENGINE_ATTN_ROWS queries and the keys of a chunk, numbered from its first one.
 * Entries of missing queries and keys may have any value. 64-byte aligned. */
struct engine_attn_tile {
    _Alignas(64) float t[ENGINE_ATTN_ROWS][ENGINE_ATTN_KEYS];
    _Alignas(64) int16_t codes[ENGINE_ATTN_ROWS][ENGINE_ATTN_KEYS]; /* of w; outside the range: 0 */
    float scale[ENGINE_ATTN_ROWS][ENGINE_ATTN_SUBS];                /* of codes */
    float base[ENGINE_ATTN_ROWS], sum[ENGINE_ATTN_ROWS];            /* of weights */
    float query_scale[ENGINE_ATTN_ROWS];
    const int16_t *query[ENGINE_ATTN_ROWS];
    int64_t lo[ENGINE_ATTN_ROWS], hi[ENGINE_ATTN_ROWS]; /* range of each query: keys lo <= j < hi */
    int64_t n_rows;
    const char *ahead; /* the memory that is read next, which the kernels prefetch */
    int64_t ahead_bytes;
    bool to_l1, streams; /* how data is prefetched (struct cpu_prefetch) */
};

/* Kernels process groups (or sub-blocks) [first, end) of the chunk; `keys` and `values` are the
 * address of the chunk's group 0, which is not read if `first` > 0. */
struct engine_attn {
    /* Computes the codes of one row, padded to an even number; returns the scale. */
    float (*row)(int64_t d, const float *x, enum engine_attn_kind kind, int16_t *codes);
    /* Converts 16 rows of x[16][pad] to a group. */
    void (*keys)(int64_t d, const float *x, int64_t pad, char *group);
    void (*values)(int64_t dv, const float *x, int64_t pad, char *group);
    /* Computes L and 2^-L of each value of n_groups groups. If a scale is NaN, L is NaN and 2^-L
     * any number. */
    void (*offsets)(int64_t dv, int64_t n_groups, const char *values, float *offset,
                    float *inverse);
    /* Computes tile->t from query, query_scale and each key's offset. */
    void (*scores)(int64_t d, int64_t first, int64_t end, const char *keys, const float *offset,
                   struct engine_attn_tile *tile);
    /* Computes codes, scale, base and sum from t, lo, hi, and each key's 2^-L. */
    void (*weights)(int64_t first, int64_t end, const float *inverse,
                    struct engine_attn_tile *tile);
    /* Adds the sums of values weighted by codes and scale to o[r][i]. */
    void (*sums)(int64_t dv, int64_t first, int64_t end, const char *values,
                 const struct engine_attn_tile *tile, float *const *o);
    /* Gathers the keys (values) of n slots of a cache, whose groups are `stride` bytes apart, in
     * keys (values) at .. at + n - 1 of a group. */
    void (*gather_keys)(int64_t d, const char *cache, int64_t stride, const int32_t *slot,
                        int64_t n, char *group, int64_t at);
    void (*gather_values)(int64_t dv, const char *cache, int64_t stride, const int32_t *slot,
                          int64_t n, char *group, int64_t at);
};

/* The fastest table at the level. */
const struct engine_attn *engine_attn_table(enum cpu_level level);

extern const struct engine_attn engine_attn_scalar;

/* Calls f(..., nr) with nr = n_rows as a constant, so that f is inlined for each number of rows. */
#define ENGINE_ATTN_BY_ROWS(n_rows, f, ...)                                                        \
    do {                                                                                           \
        if ((n_rows) == 6) f(__VA_ARGS__, 6);                                                      \
        if ((n_rows) == 5) f(__VA_ARGS__, 5);                                                      \
        if ((n_rows) == 4) f(__VA_ARGS__, 4);                                                      \
        if ((n_rows) == 3) f(__VA_ARGS__, 3);                                                      \
        if ((n_rows) == 2) f(__VA_ARGS__, 2);                                                      \
        if ((n_rows) == 1) f(__VA_ARGS__, 1);                                                      \
    } while (0)

/* Returns the scale of a row whose largest magnitude has these bits, and sets the factor from
 * elements to codes (0: all codes are 0). Used at all levels. */
float engine_attn_scale(uint32_t largest_bits, enum engine_attn_kind kind, float *factor);

/* 2^x for integer x <= 0, which scales chunks; 0 below 2^-126 and for NaN. */
float engine_attn_exp2(float x);

/* A weight 2^(t - c + 14): x = max(t, c - 126); s = x + shift, which rounds x - (c - 14) to an
 * integer n in the low bits of s; r = x - (s - shift); p(r) by fmaf from the highest power, and n
 * is added to its exponent. NaN gives NaN. p is 2^r for |r| <= 1/2 with a relative error of 3e-6, a
 * twentieth of the rounding error of the largest weight's code. */
#define ENGINE_ATTN_MAGIC 0x1.8p23f
#define ENGINE_ATTN_POWERS                                                                         \
    {                                                                                              \
        0x1.3a0518p-7f, 0x1.c9fc68p-5f, 0x1.ec036ep-3f, 0x1.62e12cp-1f, 1.0f                       \
    }

static inline float engine_attn_shift(float c)
{
    return ENGINE_ATTN_MAGIC - (c - ENGINE_ATTN_WEIGHT_BITS);
}

/* clang-format off */
/* ---- Prefetch ----
 *
 * Without prefetches memory would be idle during a kernel, so each kernel prefetches a share of the
 * data that is read next, evenly and in order:
 *
 *     scores    the values of the same keys
 *     weights   for each row and sub-block: as many bytes of the next chunk's keys as memory
 *               delivers in about the time of this kernel
 *     sums      the rest of these keys
 *
 * In order, or, if the processor reads several streams faster (cpu_prefetch.streams), from all
 * quarters of that data by turns. Prefetches to the first-level cache are issued one line at a
 * time: the processor drops some of many outstanding ones (docs/performance.md). */
/* clang-format on */
enum { ENGINE_ATTN_WEIGHTS_BYTES = 256, ENGINE_ATTN_AT_ONCE = 512, ENGINE_ATTN_LINE = 64 };

struct engine_attn_prefetch {
    int64_t next;      /* bytes of tile->ahead before the next ones */
    int64_t pace, due; /* in units of 1/256 byte: to prefetch per step, and until now */
    int64_t at_once;   /* bytes */
};

/* Prepares to prefetch tile->ahead in n steps, without its first `skip` bytes, and at most at_once
 * bytes more. */
static inline struct engine_attn_prefetch engine_attn_prefetch(const struct engine_attn_tile *tile,
                                                               int64_t skip, int64_t n)
{
    const int64_t bytes = tile->ahead_bytes > skip ? tile->ahead_bytes - skip : 0;
    const int64_t at_once = tile->to_l1 ? ENGINE_ATTN_LINE : ENGINE_ATTN_AT_ONCE;
    return (struct engine_attn_prefetch){.next = skip,
                                         .pace = ((bytes << 8) + n - 1) / n,
                                         .due = at_once * 256 - 1,
                                         .at_once = at_once};
}

/* Prefetches `bytes` (a multiple of 256 with streams) of tile->ahead, of which `done` precede. */
PREFETCH_INLINE void engine_attn_prefetch_bytes(const struct engine_attn_tile *tile, int64_t done,
                                                int64_t bytes)
{
    enum { STREAMS = 4 };
    if (!tile->streams) {
        if (tile->to_l1) /* without translations, which cost more than they gain here */
            quant_prefetch_to_l1(tile->ahead + done, (size_t)bytes);
        else
            quant_prefetch_single(tile->ahead + done, (size_t)bytes, false);
        return;
    }
    for (uint64_t i = 0; i < STREAMS; i++)
        quant_prefetch(tile->ahead + (i * (uint64_t)tile->ahead_bytes + (uint64_t)done) / STREAMS,
                       (size_t)bytes / STREAMS);
}

/* Advances by n steps. */
PREFETCH_INLINE void engine_attn_prefetch_step(const struct engine_attn_tile *tile,
                                               struct engine_attn_prefetch *prefetch, int64_t n)
{
    for (prefetch->due += prefetch->pace * n; prefetch->due >= prefetch->at_once * 256;
         prefetch->due -= prefetch->at_once * 256) {
        engine_attn_prefetch_bytes(tile, prefetch->next, prefetch->at_once);
        prefetch->next += prefetch->at_once;
    }
}

/* Prefetches the share of the kernel `weights` for row r and sub-block s.
 * engine_attn_weights_bytes is the share of all rows. */
PREFETCH_INLINE void engine_attn_weights_prefetch(const struct engine_attn_tile *tile, int64_t r,
                                                  int64_t s)
{
    const int64_t at = (r * ENGINE_ATTN_SUBS + s) * ENGINE_ATTN_WEIGHTS_BYTES;
    if (at < tile->ahead_bytes) engine_attn_prefetch_bytes(tile, at, ENGINE_ATTN_WEIGHTS_BYTES);
}

static inline int64_t engine_attn_weights_bytes(const struct engine_attn_tile *tile)
{
    return tile->n_rows * ENGINE_ATTN_SUBS * ENGINE_ATTN_WEIGHTS_BYTES;
}

/* Stores row `i` of a group, given its codes in order and its scale. */
void engine_attn_key_put(int64_t d, const int16_t *codes, float scale, char *group, int64_t i);
void engine_attn_value_put(int64_t dv, const int16_t *codes, float scale, char *group, int64_t i);
/* Copies row `from` of one group to row `i` of another. */
void engine_attn_key_copy(int64_t d, const char *source, int64_t from, char *group, int64_t i);
void engine_attn_value_copy(int64_t dv, const char *source, int64_t from, char *group, int64_t i);

/* Those of levels without their own. */
void engine_attn_keys_gather(int64_t d, const char *cache, int64_t stride, const int32_t *slot,
                             int64_t n, char *group, int64_t at);
void engine_attn_values_gather(int64_t dv, const char *cache, int64_t stride, const int32_t *slot,
                               int64_t n, char *group, int64_t at);
/* Prefetches the codes of value i of a group. */
PREFETCH_INLINE void engine_attn_value_prefetch(int64_t dv, const char *group, int64_t i)
{
    const int64_t bytes = engine_attn_value_codes(dv) / ENGINE_ATTN_GROUP * ENGINE_ATTN_UNIT * 2;
    quant_prefetch_to_l1((const char *)engine_attn_codes(group) + i / ENGINE_ATTN_UNIT * bytes,
                         (size_t)bytes);
}

/* engine/gpu/device/gpu_ops.h: the kernels of ops for GPUs, and their arguments. Device code and
 * the host (engine/gpu/) share this header. Each kernel gives the bits of the processor's op; the
 * arithmetic is stated there (engine/cpu/op/, engine/cpu/attention/). */
#pragma once

#include "engine/op_params.h"
#include "quant/gpu/gpu_quant.h"

enum {
    ENGINE_GPU_WARPS = 8,
    ENGINE_GPU_THREADS = 32 * ENGINE_GPU_WARPS,
    ENGINE_GPU_ATTENTION_THREADS = 256,   /* a key of a chunk for each */
    ENGINE_GPU_ATTENTION_SIZE = 1024,     /* elements of a key or value, at most */
    ENGINE_GPU_ATTENTION_SUBS = 8,        /* sub-blocks of a chunk */
    ENGINE_GPU_ATTENTION_SLOPES = 128,    /* heads with ALiBi, at most */
    ENGINE_GPU_ATTENTION_ROWS = 32,       /* queries of a tile */
    ENGINE_GPU_ATTENTION_TILE_SIZE = 256, /* elements of a key or value of a tile, at most */
    ENGINE_GPU_ATTENTION_STEP = 16        /* a multiple of which a key of a tile has elements */
};

/* A tensor of floats, or of int32 where that is stated, in the device's memory; data is NULL if
 * there is none. Indices past a dimension wrap around: a tensor repeats as needed. Dimensions are
 * below 2^31. */
struct engine_gpu_tensor {
    char *data;
    int64_t ne[4], nb[4];
};

/* Weights of a product that follows, which further blocks, from first_block on, load into the GPU's
 * cache: its memory is idle while a kernel with few blocks runs. */
enum { ENGINE_GPU_AHEAD_BYTES = 32 << 10 /* of a block */ };
struct engine_gpu_ahead {
    const char *at;
    int64_t bytes; /* 0: none */
    int64_t first_block;
};

/* Rows that are converted to columns, in blocks of 32 or 256. */
struct engine_gpu_converted {
    struct quant_gpu_columns columns;
    int block; /* 0: none */
};

/* engine_gpu_map: an element of out for each thread: f of the same element of a, and of b if f has
 * two operands. Grid: x: engine_gpu_map_blocks; ENGINE_GPU_THREADS threads. */
enum engine_gpu_map_f {
    ENGINE_GPU_ADD,
    ENGINE_GPU_SUB,
    ENGINE_GPU_MUL,
    ENGINE_GPU_DIV,
    ENGINE_GPU_GLU,       /* unary(a) * b; zeros: v_glu */
    ENGINE_GPU_UNARY,     /* unary(a) */
    ENGINE_GPU_SCALE,     /* fmaf(a, x, y) */
    ENGINE_GPU_CLAMP,     /* between x and y */
    ENGINE_GPU_SOFTCAP,   /* of bound x */
    ENGINE_GPU_GLU_CLAMP, /* unary(min(a, x)) * (clamp(b, -x, x) + y) */
    ENGINE_GPU_CLEAR,     /* b == 0 ? 0 : a */
    ENGINE_GPU_COPY,
    ENGINE_GPU_CONCAT,     /* a, then b, along dimension dim */
    ENGINE_GPU_GET_ROWS,   /* row number b, int32, of a; NaN if there is none */
    ENGINE_GPU_GET_NUMBERS /* of int32: -1 if there is none */
};
struct engine_gpu_map {
    struct engine_gpu_tensor out, a, b;
    enum engine_gpu_map_f f;
    enum engine_unary unary;
    int dim;
    float x, y;
    bool plain;                     /* out, a and b (if any) have the same shape and no gaps */
    struct engine_gpu_converted to; /* plain rows of a multiple of ENGINE_GPU_THREADS elements */
    struct engine_gpu_ahead ahead;
};

/* engine_gpu_set_rows: copies row r of a[..][T][E] to row ids[r] of the table of floats, if it has
 * one, each by a warp; of rows with the same id, the last. Grid: x: engine_gpu_row_blocks(rows of
 * a); ENGINE_GPU_THREADS threads. */
struct engine_gpu_set_rows {
    struct engine_gpu_tensor table, a, ids;
};

/* engine_gpu_norm: a row for each warp. Grid: x: engine_gpu_row_blocks(rows of out);
 * ENGINE_GPU_THREADS threads. engine_gpu_norm_long: a row for each block. Grid: x: rows of out;
 * ENGINE_GPU_LONG_THREADS threads; shared memory: struct engine_gpu_norm_memory; it also converts
 * the rows to columns of an activation form. With `add` it first writes the sums of its rows to a;
 * of several rows, out must not overlap those of `add`. */
enum engine_gpu_norm_kind { ENGINE_GPU_NORM, ENGINE_GPU_RMS_NORM, ENGINE_GPU_L2_NORM };
struct engine_gpu_norm {
    struct engine_gpu_tensor out, a, weight, bias, add[2];
    enum engine_gpu_norm_kind kind;
    float eps;
    struct engine_gpu_converted to;
    struct engine_gpu_ahead ahead; /* of engine_gpu_norm_long */
};
enum {
    ENGINE_GPU_LONG_ROW = 1024, /* elements, from which on a row has a block */
    ENGINE_GPU_LONG_THREADS = 1024
};
struct engine_gpu_norm_memory {
    float part[4096]; /* of a row */
    float sum;
};

/* engine_gpu_sum_rows: the sum of a row of a for each 16 lanes. Grid: x:
 * engine_gpu_half_blocks(rows of a); ENGINE_GPU_THREADS threads. */
struct engine_gpu_sum_rows {
    struct engine_gpu_tensor out, a;
};

/* engine_gpu_soft_max: a row of fmaf(a, scale, 0) for each 16 lanes. Grid as engine_gpu_sum_rows.
 */
struct engine_gpu_soft_max {
    struct engine_gpu_tensor out, a;
    float scale;
};

/* engine_gpu_choose_experts: ids int32 [T][U] of probs[T][X] + bias[X], a token for each warp.
 * Grid: x: tokens; GPU_WARP threads; shared memory: engine_gpu_choose_bytes. */
struct engine_gpu_choose_experts {
    struct engine_gpu_tensor ids, probs, bias;
    struct engine_choose_experts how;
};

/* engine_gpu_group_columns: sorts columns by their matrices, and divides those of each matrix into
 * groups, for quant_gpu_tile_TYPE. A block has a matrix. Grid: x: by.n + 1; ENGINE_GPU_THREADS
 * threads; shared memory: ENGINE_GPU_WARPS int32. */
struct engine_gpu_group_columns {
    struct quant_gpu_matrices by;
    int64_t n_columns;
    int32_t *columns;               /* [n_columns] */
    struct quant_gpu_group *groups; /* [quant_gpu_tiles_across] */
};

/* engine_gpu_expert_weights: out[T][U] of probs[T][X] and ids int32 [T][U], a token for each 16
 * lanes. Grid: x: engine_gpu_half_blocks(T); ENGINE_GPU_THREADS threads. */
struct engine_gpu_expert_weights {
    struct engine_gpu_tensor out, probs, ids;
    struct engine_expert_weights how;
};

/* engine_gpu_expert_sum: out[T][E] = sum of y[T][U][E] times weights[T][U], an element for each
 * thread. Grid as engine_gpu_map. */
struct engine_gpu_expert_sum {
    struct engine_gpu_tensor out, y, weights;
};

/* engine_gpu_NAME of a recurrent op: updates the table, from slot to slot of each of the spans
 * int32 [N][4]. Sources in the order of engine/op_sources.h without table and spans: ssm_conv: x,
 * taps; ssm_scan: x, dt, a, b, c; wkv6: k, v, r, bonus, decay; wkv7: r, decay, k, v, a, b;
 * gated_delta: q, k, v, gate, beta. Grid: x: blocks of ENGINE_GPU_THREADS threads for all rows,
 * each with 16 lanes, of ssm_scan, wkv7 and gated_delta; for a warp for 32 columns of a head of
 * wkv6; for a thread for each channel of ssm_conv; each time the number of spans. */
struct engine_gpu_recurrent {
    struct engine_gpu_tensor out, table, spans, source[6];
    int64_t ahead; /* inputs after a token that ssm_conv reads */
};

/* engine_gpu_mul_mat_transposed: out[T][E] = sums of the rows of w[F][E], times x[T][F], of which
 * zeros are left out. engine_gpu_add_low_rank: out = y + scale * factor * B z, with z in x, B in w,
 * ids or none. Grid as engine_gpu_map. */
enum engine_gpu_float { ENGINE_GPU_F32, ENGINE_GPU_F16, ENGINE_GPU_BF16 };
struct engine_gpu_float_rows {
    struct engine_gpu_tensor out, w, x, y, scale, ids;
    enum engine_gpu_float type; /* of w */
    float factor;
};

/* engine_gpu_rope: an element of out for each thread. Grid as engine_gpu_map. */
struct engine_gpu_rope {
    struct engine_gpu_tensor out, a, table;
    bool normal; /* pairs (2i, 2i + 1) */
};

/* engine_gpu_set_kv: stores the rows of x[KH][T][D], each by a warp, in the slots int32 [T] of a
 * cache of int16 groups. Grid: x: engine_gpu_row_blocks(rows of x); ENGINE_GPU_THREADS threads. */
struct engine_gpu_set_kv {
    struct engine_gpu_tensor cache, x, slots;
    bool values, bfloat; /* values instead of keys; rounded to BF16 instead of F16 */
};

/* engine_gpu_chains: for each row of x[T][heads][d], whose elements are adjacent: adds a bias,
 * norms, rotates, and stores it in the slots of a cache of int16 groups; each if it has a result.
 * Grid: x: the rows of all chains; GPU_WARP threads; shared memory: 2 * ENGINE_GPU_CHAIN_SIZE
 * floats. */
enum { ENGINE_GPU_CHAINS = 3, ENGINE_GPU_CHAIN_SIZE = 1024 /* elements of a row, at most */ };
struct engine_gpu_chain {
    int64_t d, n_heads, n_rows; /* n_rows: T * heads; 0: no chain */
    const char *x;
    int64_t head_bytes, token_bytes;
    /* Of the results, which have no gaps; NULL: the chain lacks the op. */
    float *sum, *normed, *rotated;
    const float *bias;               /* [heads][d] */
    const float *weight, *norm_bias; /* [d], or NULL */
    enum engine_gpu_norm_kind kind;
    float eps;
    const char *table; /* of rotations */
    int64_t n_rot, table_bytes;
    char *cache; /* NULL: it is not stored */
    int64_t cache_bytes, group_bytes, n_slots;
    const int32_t *slots; /* [T] */
    bool normal, values, bfloat;
};
struct engine_gpu_chains {
    struct engine_gpu_ahead ahead;
    struct engine_gpu_chain chain[ENGINE_GPU_CHAINS];
};

/* engine_gpu_attention: attention over a cache of int16 groups, a query row for n_parts blocks.
 * Grid: x: heads, y: tokens * n_parts; ENGINE_GPU_ATTENTION_THREADS threads; shared memory: struct
 * engine_gpu_attention_memory. With several parts engine_gpu_attention_merge makes the result of
 * the sums of chunks, an element for each thread, and converts it; its grid: x: blocks for a row of
 * out, y: tokens. engine_gpu_attention_floats and engine_gpu_attention_floats_merge: over values of
 * floats. */
struct engine_gpu_attention {
    struct engine_gpu_tensor out, q, k, v, ranges, tables, sinks, relative;
    int64_t n_slots;
    float scale;     /* of scores, if direct in units of powers of two */
    bool float_keys; /* keys are floats */
    bool direct;   /* scores are used as they are: the next two are off, and there is no relative */
    float softcap; /* 0: off */
    int32_t n_parts, n_chunks; /* chunks of a table */
    float *sums;               /* [tokens][heads][n_chunks][2 + dv]; NULL: one part */
    /* Of merges, of rows of a multiple of ENGINE_GPU_ATTENTION_THREADS elements. */
    struct engine_gpu_converted to;
    struct engine_gpu_ahead ahead;
    float slope[ENGINE_GPU_ATTENTION_SLOPES]; /* ALiBi's, of each head; all 0: off */
};

struct engine_gpu_attention_memory {
    _Alignas(8) int16_t query[ENGINE_GPU_ATTENTION_SIZE];
    int64_t value_at[ENGINE_GPU_ATTENTION_THREADS]; /* bytes from v to element 0 of each key of the
                                                       chunk */
    int16_t code[ENGINE_GPU_ATTENTION_THREADS];     /* of its weight */
    float weight[ENGINE_GPU_ATTENTION_THREADS];     /* of values that are floats */
    float lane[ENGINE_GPU_ATTENTION_SUBS][16];      /* sums of weights */
    float c[ENGINE_GPU_ATTENTION_SUBS];
    float query_scale, sum;
    int32_t value[]; /* [sub-block][dv] sums of codes */
};

/* engine_gpu_attention_tile: the same for int16 groups and keys of a multiple of
 * ENGINE_GPU_ATTENTION_STEP elements, ENGINE_GPU_ATTENTION_ROWS query rows of a KV head for n_parts
 * blocks. Grid: x: KV heads, y: engine_gpu_attention_tiles * n_parts; ENGINE_GPU_ATTENTION_THREADS
 * threads; shared memory: engine_gpu_attention_tile_bytes. */
struct engine_gpu_attention_tile_memory {
    /* High and low bytes of codes of weights; of 48 bytes of a row, with which eight rows are in
     * different banks, 32 are used. */
    _Alignas(16) int8_t weight[ENGINE_GPU_ATTENTION_SUBS][2][ENGINE_GPU_ATTENTION_ROWS][48];
    float lane[ENGINE_GPU_ATTENTION_SUBS][ENGINE_GPU_ATTENTION_ROWS][16]; /* sums of weights */
    /* Of each key of the chunk: bytes from k and v to its codes, its scale, L and 2^-L. */
    int64_t key_at[ENGINE_GPU_ATTENTION_THREADS], value_at[ENGINE_GPU_ATTENTION_THREADS];
    float key_scale[ENGINE_GPU_ATTENTION_THREADS], offset[ENGINE_GPU_ATTENTION_THREADS],
        inverse[ENGINE_GPU_ATTENTION_THREADS];
    struct {
        int64_t k_at, v_at; /* bytes to the first group of the KV head */
        int64_t kv, first_row, n_rows;
        int32_t d, dv, d_steps, pitch; /* d_steps: d, rounded up; pitch of query rows */
    } tile;
    /* Rows with keys of one table, of which `end` is the first after them, and all these keys. */
    struct {
        int64_t table;
        int32_t end, lo, hi;
    } run;
    /* The values of each pair of keys of a sub-block, of the chunk, are a word. */
    bool adjacent[ENGINE_GPU_ATTENTION_SUBS], all_adjacent;
    /* Of each query row. */
    float c[ENGINE_GPU_ATTENTION_ROWS][ENGINE_GPU_ATTENTION_SUBS],
        scale[ENGINE_GPU_ATTENTION_ROWS][ENGINE_GPU_ATTENTION_SUBS];
    /* Floats before its result, or before the sums of its first chunk; bytes before its table. */
    int64_t to[ENGINE_GPU_ATTENTION_ROWS], table[ENGINE_GPU_ATTENTION_ROWS];
    int32_t first[ENGINE_GPU_ATTENTION_ROWS],
        end[ENGINE_GPU_ATTENTION_ROWS];                                   /* keys; end 0: none */
    int32_t lo[ENGINE_GPU_ATTENTION_ROWS], hi[ENGINE_GPU_ATTENTION_ROWS]; /* keys of the run */
    float query_scale[ENGINE_GPU_ATTENTION_ROWS], largest[ENGINE_GPU_ATTENTION_ROWS];
    bool any[ENGINE_GPU_ATTENTION_ROWS], adds[ENGINE_GPU_ATTENTION_ROWS];
    float m[ENGINE_GPU_ATTENTION_ROWS], l[ENGINE_GPU_ATTENTION_ROWS];
    float before[ENGINE_GPU_ATTENTION_ROWS], now[ENGINE_GPU_ATTENTION_ROWS];
    _Alignas(16) int8_t query[]; /* [high, low bytes][row][engine_gpu_attention_pitch] */
};

/* Bytes of a query row of d codes, padded to a multiple of 64: an odd number of 16, so that eight
 * rows are in different banks. */
static inline int64_t engine_gpu_attention_pitch(int64_t d)
{
    return (d + 63) / 64 * 64 + 16;
}

/* d: elements of a key. Scores that are not used as they are have space after the queries: of each
 * sub-block [16 rows][32 keys]. */
static inline uint32_t engine_gpu_attention_tile_bytes(int64_t d, bool direct)
{
    return (uint32_t)(sizeof(struct engine_gpu_attention_tile_memory) +
                      2 * ENGINE_GPU_ATTENTION_ROWS * (size_t)engine_gpu_attention_pitch(d) +
                      (direct ? 0 : ENGINE_GPU_ATTENTION_SUBS * 16 * 32 * sizeof(float)));
}

/* Tiles of a KV head with this number of query rows. */
static inline int64_t engine_gpu_attention_tiles(int64_t rows)
{
    return (rows + ENGINE_GPU_ATTENTION_ROWS - 1) / ENGINE_GPU_ATTENTION_ROWS;
}

/* engine_gpu_choose_scores: the scores of an indexer, of the tokens from `first` on. Grid: x: the
 * parts of ENGINE_GPU_ATTENTION_THREADS positions of a table, y: tokens;
 * ENGINE_GPU_ATTENTION_THREADS threads; shared memory: struct engine_gpu_choose_memory.
 * engine_gpu_choose_keys: their choice, which overwrites the scores. Grid: x: lists, y: tokens;
 * ENGINE_GPU_THREADS threads; shared memory: ENGINE_GPU_WARPS int32. */
struct engine_gpu_choose_keys {
    struct engine_gpu_tensor out, q, k, ranges, tables, weights, near_ranges, near_tables;
    struct engine_choose_keys how;
    bool coded;      /* keys are int16 groups, otherwise floats */
    int64_t n_slots; /* of k */
    int64_t first;   /* token */
    float *scores;   /* [tokens][lists][positions]; q: NULL: none */
};

struct engine_gpu_choose_memory {
    int16_t query[ENGINE_GPU_ATTENTION_SIZE];
    float scale;
};

/* engine_gpu_compress_keys: out[T][D], an element for each 16 lanes. Grid: x:
 * engine_gpu_half_blocks(T * D); ENGINE_GPU_THREADS threads. */
struct engine_gpu_compress_keys {
    struct engine_gpu_tensor out, rows, ranges, tables, ape;
    struct engine_compress_keys how;
};

/* engine_gpu_sinkhorn: matrices a[N][S][S], each by 16 lanes. Grid: x: engine_gpu_half_blocks(N);
 * ENGINE_GPU_THREADS threads. */
struct engine_gpu_sinkhorn {
    struct engine_gpu_tensor out, a;
    struct engine_sinkhorn how;
};

/* engine_gpu_roofline: each warp multiplies rounds * ENGINE_GPU_MULTIPLY_CHAINS pairs of matrices
 * of bytes, 16 x 32 and 32 x 8. Grid: any x; ENGINE_GPU_THREADS threads, each with a number in out.
 */
enum { ENGINE_GPU_MULTIPLY_CHAINS = 8 /* independent sums: enough to hide the latency */ };
struct engine_gpu_roofline {
    int32_t *out;
    int rounds;
};

static inline int64_t engine_gpu_rows(const struct engine_gpu_tensor *t)
{
    return t->ne[1] * t->ne[2] * t->ne[3];
}

static inline uint32_t engine_gpu_map_blocks(const struct engine_gpu_tensor *out)
{
    const int64_t n = out->ne[0] * engine_gpu_rows(out);
    return (uint32_t)((n + ENGINE_GPU_THREADS - 1) / ENGINE_GPU_THREADS);
}

static inline uint32_t engine_gpu_row_blocks(int64_t rows)
{
    return (uint32_t)((rows + ENGINE_GPU_WARPS - 1) / ENGINE_GPU_WARPS);
}

/* Of rows with 16 lanes each. */
static inline uint32_t engine_gpu_half_blocks(int64_t rows)
{
    return engine_gpu_row_blocks((rows + 1) / 2);
}

/* Scores of experts and of groups. */
static inline int64_t engine_gpu_choose_bytes(int64_t n_experts, int64_t n_groups)
{
    return (n_experts + n_groups) * (int64_t)sizeof(float);
}

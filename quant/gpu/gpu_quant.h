/* quant/gpu/gpu_quant.h: the kernels of types and activation forms for GPUs: their arguments, and
 * the grids on which the host starts them. Device code and the host share this header. */
#pragma once

#include "quant/quant.h"

/* Columns, in the device's memory. Column c is that of `first` with all addresses `bytes` times c
 * larger. */
struct quant_gpu_columns {
    struct quant_act first;
    int64_t bytes;
};

/* The arrays of column c. */
static inline struct quant_act quant_gpu_column(const struct quant_gpu_columns *columns, int c)
{
    const int64_t bytes = c * columns->bytes;
    struct quant_act a = columns->first;
    a.q += bytes;
    a.d = (float *)((char *)a.d + bytes);
    a.s = (float *)((char *)a.s + bytes);
    a.sum = (int16_t *)((char *)a.sum + bytes);
    return a;
}

enum { QUANT_GPU_NAME_SIZE = 64 };

/* Writes the name of the kernel for a type or form: "quant_gpu_", kernel, "_", and `of` in small
 * letters. */
static inline void quant_gpu_name(const char *kernel, const char *of, char out[QUANT_GPU_NAME_SIZE])
{
    const char *const parts[] = {"quant_gpu_", kernel, "_", of};
    int n = 0;
    for (int i = 0; i < 4; i++)
        for (const char *c = parts[i]; *c && n < QUANT_GPU_NAME_SIZE - 1; c++)
            out[n++] = (char)(*c >= 'A' && *c <= 'Z' ? *c + 'a' - 'A' : *c);
    out[n] = '\0';
}

/* Whether columns of a form are other data than floats. */
static inline bool quant_gpu_converts(const struct quant_act_form *form)
{
    return form != &quant_act_f32;
}

/* quant_gpu_quantize_FORM, for the forms q8_32, q8_256 and bf16: converts columns of k floats, of
 * which x[c * x_stride] is the first of column c. Grid: x: quant_gpu_quantize_blocks(form, k),
 * y: columns; QUANT_GPU_THREADS threads; no shared memory. */
struct quant_gpu_quantize {
    int64_t k, x_stride;
    const float *x;
    struct quant_gpu_columns to;
};

/* Which of n matrices, `bytes` apart, a column is multiplied with: number ids[c / per * stride +
 * c % per] for column c, whose results are NaN if it is out of range; without ids, number c / per.
 * Its elements are those of column c / repeat of x. All zero: one matrix. */
struct quant_gpu_matrices {
    const int32_t *ids;
    int64_t per, stride, n, bytes, repeat;
};

/* The matrix of column c, which may not exist. */
static inline int64_t quant_gpu_matrix_of(const struct quant_gpu_matrices *by, uint32_t c)
{
    const uint32_t per = (uint32_t)by->per;
    if (!by->ids) return c / per;
    return by->ids[c / per * by->stride + c % per];
}

/* Rows of a matrix, and where their products are; in the grid, their blocks begin at `block`. */
struct quant_gpu_rows {
    const uint8_t *w;
    float *out;
    int64_t n_rows, block;
};

/* quant_gpu_gemv_TYPE (quant_gpu_type_name): out[c * out_stride + r] = row r times column c
 * (quant/quant.h, canonical arithmetic). Then the same for rows of more matrices of the type, with
 * as long rows. Grid: x: blocks of quant_gpu_gemv_shape, of each matrix; y: columns. It reads up to
 * 15 bytes before and after the rows, in the same 16 bytes as theirs. */
enum { QUANT_GPU_MORE = 2 };
struct quant_gpu_gemv_shape {
    int rows;          /* of a block of the grid */
    int warps, stages; /* of a block; stages: of types whose rows are copied to shared memory */
    uint32_t shared;   /* bytes */
};
struct quant_gpu_gemv {
    struct quant_gpu_gemv_shape shape;
    enum quant_id id; /* of the type */
    int block_bytes;
    int64_t k, n_rows, row_bytes, out_stride;
    const uint8_t *w;
    struct quant_gpu_columns a;
    float *out;
    struct quant_gpu_matrices by;
    struct quant_gpu_rows more[QUANT_GPU_MORE]; /* n_rows 0: none */
};

/* The rows of a block of the grid. */
static inline struct quant_gpu_rows quant_gpu_rows_of(const struct quant_gpu_gemv *p, int block)
{
    struct quant_gpu_rows rows = {p->w, p->out, p->n_rows, 0};
    for (int i = 0; i < QUANT_GPU_MORE; i++)
        if (p->more[i].n_rows && block >= p->more[i].block) rows = p->more[i];
    return rows;
}

/* Whether all rows are at multiples of n, a power of 2. */
static inline bool quant_gpu_is_aligned(const struct quant_gpu_gemv *p, int n)
{
    const uintptr_t all = (uintptr_t)p->w | (uintptr_t)p->more[0].w | (uintptr_t)p->more[1].w |
                          (uintptr_t)p->row_bytes | (uintptr_t)p->by.bytes;
    return all % (uintptr_t)n == 0;
}

struct quant_gpu_factors {
    const uint8_t *w; /* row 0; NULL: the results are NaN */
    struct quant_act a;
};

/* What the results of column c are products of. */
static inline struct quant_gpu_factors quant_gpu_factors(const struct quant_gpu_gemv *p,
                                                         const uint8_t *w, int c)
{
    const struct quant_gpu_matrices *by = &p->by;
    if (!by->per) return (struct quant_gpu_factors){w, quant_gpu_column(&p->a, c)};
    const int64_t m = quant_gpu_matrix_of(by, (uint32_t)c);
    return (struct quant_gpu_factors){m >= 0 && m < by->n ? w + m * by->bytes : NULL,
                                      quant_gpu_column(&p->a, (int)(c / by->repeat))};
}

enum {
    QUANT_GPU_WARPS = 4, /* of a block */
    QUANT_GPU_THREADS = 32 * QUANT_GPU_WARPS,
    QUANT_GPU_ROWS = 8,       /* of a warp, in types with blocks */
    QUANT_GPU_FLOAT_ROWS = 2, /* of a warp, in float types */
    QUANT_GPU_TERMS = 32      /* terms of a row at once */
};

struct quant_gpu_terms {
    float v[QUANT_GPU_WARPS][QUANT_GPU_ROWS][QUANT_GPU_TERMS + 1]; /* + 1: other memory banks */
};

/* Types whose rows are copied to shared memory, where `lanes` lanes of a warp compute a block
 * (gpu_gemv_staged.c). A block of threads has up to QUANT_GPU_STAGED_MOST_ROWS rows; in a round,
 * each of its warps computes a step of all of them: the 32 / lanes blocks that its lanes can. */
enum {
    QUANT_GPU_STAGED_ROWS = 4, /* at once */
    QUANT_GPU_STAGED_MOST_ROWS = 32,
    QUANT_GPU_STAGED_WARPS = 8,       /* at most */
    QUANT_GPU_STAGED_BYTES = 72 << 10 /* of shared memory, at most: an H100 has room for three */
};
#define QUANT_GPU_STAGED(TYPE)                                                                     \
    TYPE(Q4_0, 1)                                                                                  \
    TYPE(Q4_1, 1)                                                                                  \
    TYPE(Q5_0, 1)                                                                                  \
    TYPE(Q5_1, 1)                                                                                  \
    TYPE(Q8_0, 1)                                                                                  \
    TYPE(IQ4_NL, 1)                                                                                \
    TYPE(MXFP4, 1)                                                                                 \
    TYPE(Q2_K, 4)                                                                                  \
    TYPE(Q3_K, 4)                                                                                  \
    TYPE(Q4_K, 4)                                                                                  \
    TYPE(Q5_K, 4)                                                                                  \
    TYPE(Q6_K, 4)                                                                                  \
    TYPE(IQ4_XS, 4)                                                                                \
    TYPE(IQ1_S, 4)                                                                                 \
    TYPE(IQ1_M, 4)                                                                                 \
    TYPE(IQ2_XXS, 4)                                                                               \
    TYPE(IQ2_XS, 4)                                                                                \
    TYPE(IQ2_S, 4)                                                                                 \
    TYPE(IQ3_XXS, 4)                                                                               \
    TYPE(IQ3_S, 4)

/* Lanes of a block; 0: the type is not staged. */
static inline int quant_gpu_lanes(enum quant_id id)
{
#define QUANT_GPU_LANES(name, lanes)                                                               \
    case QUANT_##name:                                                                             \
        return lanes;
    switch (id) {
        QUANT_GPU_STAGED(QUANT_GPU_LANES)
    default:
        return 0;
    }
#undef QUANT_GPU_LANES
}

/* TYPE in the names of kernels: types with a grid share kernels, to which the arguments name the
 * type. */
static inline const char *quant_gpu_type_name(const struct quant_type *type)
{
    switch (type->id) {
    case QUANT_IQ1_S:
    case QUANT_IQ2_XXS:
    case QUANT_IQ3_XXS:
    case QUANT_IQ3_S:
        return "grid_32";
    case QUANT_IQ1_M:
    case QUANT_IQ2_XS:
    case QUANT_IQ2_S:
        return "grid_16";
    default:
        return type->name;
    }
}

/* Bytes for a copy of n bytes that begins at any offset from a multiple of 16, and 16 more. */
static inline uint32_t quant_gpu_stage_bytes(uint32_t n)
{
    return (n + 15) / 16 * 16 + 32;
}

/* quant_gpu_tile_TYPE, of the types of QUANT_GPU_STAGED: quant_gpu_gemv_TYPE for many columns of
 * the rows of one matrix, or of those that `by` names: a block of threads computes a tile of the
 * results by the GPU's matrix units (gpu_tile.c). Grid: x: quant_gpu_tiles; QUANT_GPU_TILE_THREADS
 * threads; shared memory: quant_gpu_tile_bytes. */
enum {
    QUANT_GPU_TILE_ROWS = 64,
    QUANT_GPU_TILE_COLUMNS = 128,
    QUANT_GPU_TILE_STEP = 256, /* elements of k at once */
    QUANT_GPU_TILE_THREADS = 256,
    QUANT_GPU_TILE_LEAST = 8,      /* columns from which on it is faster */
    QUANT_GPU_TILE_LEAST_EACH = 4, /* of each of several matrices, on average */
    QUANT_GPU_TILE_MOST = 99 << 10 /* bytes of shared memory that each GPU has for a block */
};
struct quant_gpu_tile {
    struct quant_gpu_gemv gemv;
    int64_t n_columns;
    /* With gemv.by.ids: all groups, and the columns that they number. */
    const struct quant_gpu_group *groups;
    const int32_t *columns;
};

/* Columns of one matrix: numbers `first` to `first` + n of a list, of which a tile has the first.
 * Columns whose matrix does not exist are those of number `by.n`. */
struct quant_gpu_group {
    int32_t matrix, first, n; /* n less than 1: none */
};

/* The first group of a matrix, if its columns begin at number `first` of a list that is sorted by
 * matrices; there are as many groups as the next matrix's first, and so enough. */
static inline int64_t quant_gpu_first_group(int64_t matrix, int64_t first)
{
    return first / QUANT_GPU_TILE_COLUMNS + matrix;
}

/* Tiles beside each other: of columns, or groups of columns. */
static inline int64_t quant_gpu_tiles_across(const struct quant_gpu_matrices *by, int64_t n_columns)
{
    const int64_t per = by->per && !by->ids ? by->per : n_columns,
                  n = (per + QUANT_GPU_TILE_COLUMNS - 1) / QUANT_GPU_TILE_COLUMNS;
    if (!by->per) return n;
    return by->ids ? quant_gpu_first_group(by->n + 1, n_columns) : by->n * n;
}

/* Rows and columns of 256 codes are 272 bytes apart: eight of them, 16 bytes each, are in different
 * memory banks. The 32 rows or columns of a warp are in the order of its lanes' use. */
struct quant_gpu_tile_memory {
    _Alignas(16) int8_t w[QUANT_GPU_TILE_ROWS][QUANT_GPU_TILE_STEP + 16];
    _Alignas(16) int8_t x[QUANT_GPU_TILE_COLUMNS][QUANT_GPU_TILE_STEP + 16];
    union {
        struct { /* of blocks of 32 */
            float d[8][QUANT_GPU_TILE_ROWS], m[8][QUANT_GPU_TILE_ROWS];
            float x_d[8][QUANT_GPU_TILE_COLUMNS], x_s[8][QUANT_GPU_TILE_COLUMNS];
        } block;
        struct { /* of a super-block */
            float d[QUANT_GPU_TILE_ROWS], m[QUANT_GPU_TILE_ROWS], x_d[QUANT_GPU_TILE_COLUMNS];
            int scale[8][QUANT_GPU_TILE_ROWS];
            /* Bytes, of 16 elements each. The column's sums of 16 are 64 * high + low. */
            _Alignas(16) uint32_t min[QUANT_GPU_TILE_ROWS][4];
            uint32_t high[QUANT_GPU_TILE_COLUMNS][4], low[QUANT_GPU_TILE_COLUMNS][4];
        } super;
    } of;
    _Alignas(16) uint8_t rows[]; /* a step of the file's bytes of each row; a second w */
};

/* Bytes of a step of a row. */
static inline uint32_t quant_gpu_tile_step_bytes(const struct quant_type *type)
{
    return type->block_bytes * (QUANT_GPU_TILE_STEP / type->block_len);
}

/* Types with 16 scales: planes of w, which has codes times scales, of one or two bytes. */
static inline int quant_gpu_tile_planes(enum quant_id id)
{
    return id == QUANT_Q6_K || id == QUANT_IQ1_M || id == QUANT_IQ2_XS || id == QUANT_IQ2_S ? 2 : 1;
}

static inline uint32_t quant_gpu_tile_bytes(const struct quant_type *type)
{
    const uint32_t plane = QUANT_GPU_TILE_ROWS * (QUANT_GPU_TILE_STEP + 16);
    return (uint32_t)sizeof(struct quant_gpu_tile_memory) +
           QUANT_GPU_TILE_ROWS * quant_gpu_stage_bytes(quant_gpu_tile_step_bytes(type)) +
           (uint32_t)(quant_gpu_tile_planes(type->id) - 1) * plane;
}

static inline uint32_t quant_gpu_tiles(const struct quant_gpu_matrices *by, int64_t n_rows,
                                       int64_t n_columns)
{
    return (uint32_t)((n_rows + QUANT_GPU_TILE_ROWS - 1) / QUANT_GPU_TILE_ROWS *
                      quant_gpu_tiles_across(by, n_columns));
}

/* quant_gpu_float_tile, for the float types: quant_gpu_gemv_TYPE for many columns, without `by`, of
 * rows that quant_gpu_has_float_tile accepts: a block of threads computes a tile of the results
 * (gpu_tile_float.c). Grid: x:
 * quant_gpu_float_tiles; QUANT_GPU_FLOAT_THREADS threads; shared memory: that of the struct. */
enum {
    QUANT_GPU_FLOAT_TILE_ROWS = 64,
    QUANT_GPU_FLOAT_TILE_COLUMNS = 32,
    QUANT_GPU_FLOAT_STEP = 32, /* elements of k at once: two of each lane */
    QUANT_GPU_FLOAT_THREADS = 256
};

/* Element l of 16 lanes, first (i = 0) and second: w[16 * i + l] has those of all rows. Lanes are
 * 16 bytes more apart than a multiple of 128 bytes, and second elements 64: eight threads that read
 * or write 16 bytes each use different memory banks. */
struct quant_gpu_float_memory {
    struct {
        _Alignas(16) float w[32 * (QUANT_GPU_FLOAT_TILE_ROWS + 4) + 16];
        _Alignas(16) float x[32 * (QUANT_GPU_FLOAT_TILE_COLUMNS + 4) + 16];
    } step[2];
    uint32_t least[2][QUANT_GPU_FLOAT_THREADS / 32]; /* exponents of rows and columns */
};

static inline bool quant_gpu_is_float(const struct quant_type *type)
{
    return type->act->sum_len == 0;
}

/* Whether elements are at multiples of their size, or are bytes (NVFP4). */
static inline bool quant_gpu_has_float_tile(const struct quant_type *type,
                                            const struct quant_gpu_gemv *p)
{
    return quant_gpu_is_float(type) &&
           quant_gpu_is_aligned(p, type->block_len == 1 ? (int)type->block_bytes : 1);
}

static inline uint32_t quant_gpu_float_tiles(int64_t n_rows, int64_t n_columns)
{
    enum { ROWS = QUANT_GPU_FLOAT_TILE_ROWS, COLUMNS = QUANT_GPU_FLOAT_TILE_COLUMNS };
    return (uint32_t)((n_rows + ROWS - 1) / ROWS * ((n_columns + COLUMNS - 1) / COLUMNS));
}

static inline uint32_t quant_gpu_quantize_blocks(const struct quant_act_form *form, int64_t k)
{
    const int64_t per_warp = form->sum_len ? form->block_len : form->rounded;
    const int64_t warps = (k + per_warp - 1) / per_warp;
    return (uint32_t)((warps + QUANT_GPU_WARPS - 1) / QUANT_GPU_WARPS);
}

/* Bytes of shared memory: a step of four rows for each stage of each warp, and the terms. */
static inline uint32_t quant_gpu_staged_bytes(const struct quant_type *type,
                                              const struct quant_gpu_gemv_shape *shape)
{
    const int per_step = 32 / quant_gpu_lanes(type->id);
    return (uint32_t)(shape->warps * shape->stages * QUANT_GPU_STAGED_ROWS) *
               quant_gpu_stage_bytes(type->block_bytes * (uint32_t)per_step) +
           (uint32_t)(shape->rows * (shape->warps * per_step + 1)) * (uint32_t)sizeof(float);
}

/* As few warps as the rounds need. More rows for each block, because a warp begins with work that
 * does not depend on them, while the grid has about WARPS warps: 16 on each of an H100's
 * multiprocessors, all at once. */
static inline struct quant_gpu_gemv_shape quant_gpu_staged_shape(const struct quant_type *type,
                                                                 int64_t k, int64_t n_rows)
{
    enum { WARPS = 2048, ROWS = QUANT_GPU_STAGED_ROWS, MOST_ROWS = QUANT_GPU_STAGED_MOST_ROWS };
    const int64_t of_step = 32 / quant_gpu_lanes(type->id) * type->block_len,
                  steps = (k + of_step - 1) / of_step,
                  rounds = (steps + QUANT_GPU_STAGED_WARPS - 1) / QUANT_GPU_STAGED_WARPS;
    struct quant_gpu_gemv_shape shape = {.warps = (int)((steps + rounds - 1) / rounds),
                                         .stages = 2};
    const int64_t rows = (n_rows * shape.warps + WARPS * ROWS - 1) / (WARPS * ROWS) * ROWS;
    shape.rows = rows > MOST_ROWS ? MOST_ROWS : (int)rows;
    if (quant_gpu_staged_bytes(type, &shape) > QUANT_GPU_STAGED_BYTES) shape.stages = 1;
    shape.shared = quant_gpu_staged_bytes(type, &shape);
    return shape;
}

/* How the host starts quant_gpu_gemv_TYPE for n_rows rows of k elements, of all matrices. */
static inline struct quant_gpu_gemv_shape quant_gpu_gemv_shape(const struct quant_type *type,
                                                               int64_t k, int64_t n_rows)
{
    if (quant_gpu_lanes(type->id)) return quant_gpu_staged_shape(type, k, n_rows);
    return (struct quant_gpu_gemv_shape){
        .rows = QUANT_GPU_WARPS * (type->act->sum_len ? QUANT_GPU_ROWS : QUANT_GPU_FLOAT_ROWS),
        .warps = QUANT_GPU_WARPS,
        .shared = (uint32_t)sizeof(struct quant_gpu_terms)};
}

/* The blocks of the grid for n_rows rows of a matrix. */
static inline uint32_t quant_gpu_gemv_blocks(const struct quant_gpu_gemv_shape *shape,
                                             int64_t n_rows)
{
    return (uint32_t)((n_rows + shape->rows - 1) / shape->rows);
}

/*- quant/quant.h: tensor types: how weights are stored, and the exact arithmetic of their products.
 *
 * Contains the type table (one row per GGUF tensor type, ids and sizes as in the GGUF
 * specification), activation quantization, and the kernels per instruction-set level. It starts no
 * threads, allocates nothing, and reads no files. Called by gguf/ (names and sizes) and engine/
 * (everything).
 *
 * A type is a header and a row: q4_k.h has the block struct, a drawing of its bits and what kernels
 * inline; the file of its family, k_types.c, has the scalar kernels, which are the specification,
 * the encoder, and one const row. The kernels of an instruction set are in its folder:
 * quant/x86/q4_k_x86.c. Those of ARM are inlined with functions of a type: quant/arm/.
 *
 * ---- Canonical arithmetic (scalar is the specification; every kernel gives the same bits) ----
 *
 * A product is that of one weight row and one activation column, both of length k. The suffix _w is
 * for the row, _a for the column.
 *
 * q8_32, q8_256: the column is quantized in blocks of B = 32 or 256:
 *     m = largest |x| in the block, compared as integers (so NaN > Inf > all numbers)
 *     m not finite     -> d = quiet NaN (0x7fc00000), all q = 0
 *     m < 2^-100       -> d = 0, all q = 0
 *     else             -> d = m / 127.0f; r = 1.0f / d; q = round-to-nearest-even(x * r) as int8
 *                         (|x * r| never rounds above 127)
 *   and integer sums of q are stored: of 32 elements in q8_32, of 16 in q8_256.
 *
 *   The product runs over blocks b in ascending order. Inside a block all sums are integers, exact
 *   in any order; then follow a few float operations, each rounded once, to nearest even:
 *
 *     isum = sum of code * q              times the integer sub-scale, in types that have them
 *     msum = sum of q                     blocks of 32 with a minimum
 *          = sum of sub-minimum * (sum of q of the sub-block)    super-blocks with minima
 *     t    = m_w * (d_a * (float)msum)    blocks of 32 with a minimum (Q4_1, Q5_1)
 *          = (m_w * d_a) * (float)msum    super-blocks with minima (Q2_K, Q4_K, Q5_K)
 *     v    = fmaf(d_w * d_a, (float)isum, t)
 *          = (d_w * d_a) * (float)isum         types without minima
 *     acc  = acc + v                      one float accumulator, from +0.0f
 *
 *   d_w and m_w are the block's scales, binary16 widened exactly; m_w of a super-block is MINUS the
 *   file's dmin; d_w of MXFP4 is 2^(e - 128), its codes being E2M1 doubled; d_w of IQ1 and IQ2 is
 *   an eighth of the file's d, of IQ3_XXS a fourth, so that codes and sub-scales are whole; in
 *   types with a header it is that of the row, binary16 or binary32, the same for all blocks; a
 *   block of 64 (Q2_0) or 128 (Q1_0) counts as two or four of 32 with one d_w. d_a is the column's
 *   d.
 *   v is added to acc, and acc is not an operand of the fmaf: v depends on no other block, so a
 *   single-column kernel computes sixteen v at once, and the dependent chain is one addition.
 *
 * f32 (F32, F16 and NVFP4 weights): 16 lanes l, each lane[l] = fmaf(w[i], x[i], lane[l]) over
 *   i = l, l+16, l+32, ... ascending from +0.0f; elements past k are not read; then the tree
 *     for h = 8, 4, 2, 1: lane[i] += lane[i + h] for i < h;   result lane[0].
 *
 * bf16 (BF16 weights): activations are rounded to bfloat16 (nearest even, NaN gives a
 *   quiet NaN). The row is padded with zeros to a multiple of 32. 16 lanes; lane l sums the pairs
 *   (2p, 2p+1) for p = l, l+16, ...: lane = fma(w[2p+1], x[2p+1], lane), then
 *   lane = fma(w[2p], x[2p], lane), as the instruction VDPBF16PS does: inputs and results that are
 *   subnormal become zero of the same sign (results judged after rounding as if the exponent had
 *   no bound), rounding to nearest even for any state of the control register. Then the same
 *   tree. */
#pragma once

#include "base/cpu.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* GGUF tensor type ids ("GGUF" specification, ggml type enumeration). Tables by id have gaps. */
enum quant_id {
    QUANT_F32 = 0,
    QUANT_F16 = 1,
    QUANT_Q4_0 = 2,
    QUANT_Q4_1 = 3,
    QUANT_Q5_0 = 6,
    QUANT_Q5_1 = 7,
    QUANT_Q8_0 = 8,
    QUANT_Q8_1 = 9,
    QUANT_Q2_K = 10,
    QUANT_Q3_K = 11,
    QUANT_Q4_K = 12,
    QUANT_Q5_K = 13,
    QUANT_Q6_K = 14,
    QUANT_Q8_K = 15,
    QUANT_IQ2_XXS = 16,
    QUANT_IQ2_XS = 17,
    QUANT_IQ3_XXS = 18,
    QUANT_IQ1_S = 19,
    QUANT_IQ4_NL = 20,
    QUANT_IQ3_S = 21,
    QUANT_IQ2_S = 22,
    QUANT_IQ4_XS = 23,
    QUANT_I8 = 24,
    QUANT_I16 = 25,
    QUANT_I32 = 26,
    QUANT_I64 = 27,
    QUANT_F64 = 28,
    QUANT_IQ1_M = 29,
    QUANT_BF16 = 30,
    QUANT_TQ1_0 = 34,
    QUANT_TQ2_0 = 35,
    QUANT_MXFP4 = 39,
    QUANT_NVFP4 = 40,
    QUANT_Q1_0 = 41,
    QUANT_Q2_0 = 42,
    /* Types of ik_llama.cpp (ggml/include/ggml.h). _Rn: n rows are interleaved. */
    QUANT_Q6_0 = 133,
    QUANT_IQ1_BN = 134,
    QUANT_IQ2_BN = 135,
    QUANT_IQ2_K = 137,
    QUANT_IQ3_K = 138,
    QUANT_IQ4_K = 139,
    QUANT_IQ5_K = 140,
    QUANT_IQ6_K = 141,
    QUANT_IQ4_KS = 144,
    QUANT_IQ2_KS = 145,
    QUANT_IQ4_KSS = 146,
    QUANT_Q8_KV = 151,
    QUANT_IQ5_KS = 152,
    QUANT_IQ2_KT = 153,
    QUANT_IQ3_KT = 154,
    QUANT_IQ4_KT = 155,
    QUANT_IQ3_KS = 156,
    QUANT_IQ2_KL = 157,
    QUANT_IQ1_KT = 158,
    QUANT_Q4_0_R8 = 202,
    QUANT_Q5_0_R4 = 206,
    QUANT_Q8_0_R8 = 208,
    QUANT_Q2_K_R4 = 210,
    QUANT_Q3_K_R4 = 211,
    QUANT_Q4_K_R4 = 212,
    QUANT_Q5_K_R4 = 213,
    QUANT_Q6_K_R4 = 214,
    QUANT_IQ2_XXS_R4 = 216,
    QUANT_IQ2_XS_R4 = 217,
    QUANT_IQ3_XXS_R4 = 218,
    QUANT_IQ1_S_R4 = 219,
    QUANT_IQ4_NL_R4 = 220,
    QUANT_IQ3_S_R4 = 221,
    QUANT_IQ2_S_R4 = 222,
    QUANT_IQ4_XS_R8 = 223,
    QUANT_IQ1_M_R4 = 229,
    QUANT_BF16_R16 = 230,
    QUANT_Q6_0_R4 = 233,
    QUANT_IQ2_BN_R4 = 335,
    QUANT_IQ2_K_R4 = 337,
    QUANT_IQ3_K_R4 = 338,
    QUANT_IQ4_K_R4 = 339,
    QUANT_IQ5_K_R4 = 340,
    QUANT_IQ4_KS_R4 = 344,
    QUANT_IQ5_KS_R4 = 352,
    QUANT_MXFP4_R8 = 353,
    QUANT_Q8_K_R16 = 397,
    QUANT_Q8_KV_R8 = 398,
    QUANT_Q8_K_R8 = 399,
    QUANT_ID_COUNT = 400
};

/* ---- Activations ---- */

/* The layouts of rows and columns that the many-column kernels of engine/isa/ read. */
enum quant_layout {
    QUANT_LAYOUT_F32,  /* floats */
    QUANT_LAYOUT_BF16, /* pairs of bfloat16 */
    QUANT_LAYOUT_32,   /* rows: struct quant_panel32; columns: blocks of 32 */
    QUANT_LAYOUT_256,  /* struct quant_panel256; blocks of 256 */
    QUANT_LAYOUT_COUNT
};

/* One column of k activations. The caller allocates the arrays; each starts at a multiple of 64
 * bytes. */
struct quant_act {
    union { /* [k] elements */
        float *f32;
        uint16_t *bf16; /* followed by zeros up to a multiple of 32 */
        int8_t *q;      /* readable up to 64 bytes past its end (values ignored) */
    };
    /* Only in q8 forms: */
    float *d;     /* [k / block_len]  scales of the blocks */
    float *s;     /* [k / block_len]  d * (float)(sum of the block's q), if the form has them */
    int16_t *sum; /* [k / sum_len]    integer sums of q */
};

/* The form of the activations that a weight type is multiplied by. */
struct quant_act_form {
    const char *name;
    uint32_t index; /* of the form, in tables */
    enum quant_layout layout;
    uint32_t block_len;               /* elements with one scale; 1: floats */
    uint32_t sum_len;                 /* elements per integer sum; 0: none */
    bool scaled_sums;                 /* s */
    uint32_t element_bytes, padding;  /* size of an element; readable bytes past the last one */
    uint32_t rounded;                 /* the elements are padded with zeros to a multiple of this */
    const struct quant_type *element; /* in float forms: the type of an element */
};

enum { QUANT_ACT_FORMS = 4 };
extern const struct quant_act_form *const quant_act_forms[QUANT_ACT_FORMS]; /* by index */
extern const struct quant_act_form quant_act_f32, quant_act_bf16, quant_act_q8_32, quant_act_q8_256;

/* Byte offsets of a column's arrays from its start; the elements are at the start. */
struct quant_act_parts {
    int64_t d, s, sum;
    int64_t bytes; /* of the column, a multiple of 64 */
};
/* The layout of a column of k elements, k a multiple of block_len. */
struct quant_act_parts quant_act_parts(const struct quant_act_form *form, int64_t k);
/* The arrays of the column at `column` (parts->bytes bytes at a multiple of 64). */
struct quant_act quant_act_at(const struct quant_act_parts *parts, void *column);

/* ---- Panels: 16 weight rows unpacked for the many-column product ----
 *
 * Lane r of every 16 is row r. Codes are unsigned (code = value + the type's `offset`), because the
 * multiply instructions take unsigned by signed bytes; a tile subtracts offset * (sum of q) in
 * integers. The panel of 16 rows is n_blocks consecutive structs. */
enum { QUANT_PANEL_ROWS = 16 };

struct quant_panel32 { /* one block of 32 of each row: 640 bytes */
    float d[16];
    float m[16];         /* the minimum m_w (0 where the type has none) */
    uint8_t q[8][16][4]; /* codes 4i .. 4i+3 of row r at q[i][r] */
};

struct quant_panel256 { /* one super-block of 256 of each row: 5248 bytes */
    float d[16];
    float m[16]; /* minus dmin (0 where the type has none) */
    /* [pair of sub-blocks][row][2], 4 or 8 pairs in use: sub-scales (unused when folded) and
     * sub-minima (unused in types without). */
    int16_t scale[8][16][2], min[8][16][2];
    uint8_t q[64][16][4];
};

/* The parameters of a type with panels, for tile kernels. */
struct quant_panel_form {
    uint8_t sub_len;  /* elements per integer sub-scale: 16 or 32 */
    uint8_t offset;   /* subtract this from each code; 0 or (not when folded) a power of two */
    uint8_t max_code; /* largest code: determines where 16-bit sums cannot overflow */
    bool has_min;
    bool folded;  /* codes are sub-scale * value + offset; no sub-scales */
    uint8_t unit; /* 0: the structs above; 4, 8: those of quant/arm/panel_arm.h, signed codes */
};

/* The value of MXCSR with which an ordinary fma computes a step of the product of BF16: subnormal
 * inputs and results are zero (DAZ, FTZ), all exceptions are masked. */
enum { QUANT_BF16_MXCSR = 0x9fc0 };

/* ---- The type table ---- */

enum { QUANT_MAX_ROWS_PER_STEP = 8, QUANT_FEW_COLUMNS = 4 };

/* The rows of a matrix that step r of a gemv multiplies; m is the kernel's rows_per_step. Nothing
 * else decides which rows a kernel reads: the prefetch policy may be that of any processor. */
enum quant_row_order {
    QUANT_ROWS_SINGLE,   /* r (a kernel that has no other loop than that of m rows computes it m
                            times) */
    QUANT_ROWS_STRIDED,  /* r, r + stride, ... r + (m - 1) * stride */
    QUANT_ROWS_ADJACENT, /* r * m, ... r * m + m - 1 */
    QUANT_ROWS_LISTED    /* list[r * m], ... list[r * m + m - 1], if the kernel reads_lists */
};

struct quant_rows {
    const void *w; /* row 0 */
    size_t row_bytes;
    int64_t n; /* steps; of listed rows the rows, a multiple of m */
    enum quant_row_order order;
    int64_t stride;               /* in rows, at least n, if strided */
    const void *const *list;      /* addresses of rows, if listed; w is not used */
    struct cpu_prefetch prefetch; /* only where data is prefetched */
};

/* A matrix [n_rows][k] by columns (quant/columns.h). */
struct quant_columns {
    int64_t k, n_rows;
    const void *data;
    bool to_l1; /* struct cpu_prefetch */
};

struct quant_search; /* private to quant/: how a level searches the scales of an encoder */

/* Kernels of one type at one level; NULL inherits from the parent. `row` points to the start
 * of a row in file layout, at any alignment. No kernel reads outside the rows. */
struct quant_kernel {
    /* Decodes elements first .. first + n - 1 of a row, both multiples of block_len: d * sub-scale
     * (exact, but rounded if d is the binary32 number of a row) times an integer (+ m), rounded
     * once. */
    void (*decode)(int64_t first, int64_t n, const void *row, float *out);

    /* Writes k elements, a multiple of block_len, as blocks; deterministic, never fails, and the
     * same bytes at all levels. importance: NULL or a non-negative weight of each element's squared
     * error; types whose bytes do not depend on such weights ignore it. search: that of the table.
     * NULL in types that are only read. */
    void (*encode)(const struct quant_search *search, int64_t k, const float *in,
                   const float *importance, void *row);

    /* Unpacks blocks first .. first + n_blocks - 1 of 16 rows into n_blocks panel structs (64-byte
     * aligned). Blocks are those of the activation form (32 or 256 elements), also if the type's
     * block is longer. Row pointers may be repeated at the edge of a matrix. NULL for types without
     * a panel. */
    void (*unpack)(int64_t first, int64_t n_blocks, const void *const row[QUANT_PANEL_ROWS],
                   void *panel);
    /* The form of the panel, set with unpack. That of `scalar` has sub-scales; that of a level may
     * be folded (codes are multiplied by their sub-scales) if the products fit a byte and folding
     * is faster. Both forms give the same integer sums. */
    const struct quant_panel_form *panel;

    /* One column: out[r] = row r times the column, for all rows in *rows. */
    void (*gemv)(int64_t k, const struct quant_rows *rows, const struct quant_act *a, float *out);
    /* Whether gemv multiplies listed rows, too: out[i] = row list[i] times the column. The rows of
     * a step are prefetched during the one before. */
    bool reads_lists;
    /* In a type's row: the rows of a step of gemv (0 means 1). In a filled table: that number, or 1
     * where the processor's policy is to multiply rows one by one. */
    int rows_per_step;

    /* As gemv for 2 .. few_columns columns, which reads the rows once: out[c][r] = row r times
     * column c. NULL if it is not faster than a gemv for each column. */
    void (*gemv_few)(int64_t k, const struct quant_rows *rows, int n_columns,
                     const struct quant_act *a, float *const *out);
    int few_columns; /* at most QUANT_FEW_COLUMNS; at least 1 in a filled table */

    /* out[i] = row first + i of *c times the column, i < n, whose elements of zero are skipped;
     * first and n are multiples of 64. NULL in types without a form by columns; only in a filled
     * table. */
    void (*columns)(const struct quant_columns *c, int64_t first, int64_t n,
                    const struct quant_act *a, float *out);

    /* sum[i] = fmaf(row[j][i], x[j], sum[i]) for ascending j < n_rows, i < n; n is a multiple of
     * 32, and row[j] the address of a block. The same bytes of next[n_rows], which will follow, are
     * prefetched meanwhile. NULL where it is not faster than decode and multiply-adds; only in a
     * filled table. */
    void (*add_rows)(int64_t n, const void *const *row, const void *const *next, int n_rows,
                     const float *x, float *sum);
};

struct quant_type {
    const char *name; /* as tools print it: "Q4_K", "F16" */
    enum quant_id id;
    /* Elements per block: a multiple of the activation form's block_len. Row lengths are multiples
     * of it. */
    uint32_t block_len;
    uint32_t block_bytes;
    uint32_t header_bytes;            /* at the start of each row, before its blocks */
    uint32_t interleave;              /* rows that are stored together; 0: 1 */
    const struct quant_act_form *act; /* NULL: no arithmetic for this type */

    /* The scalar specification; NULL if act is NULL. */
    float (*dot)(int64_t k, const void *row, const struct quant_act *a);

    struct quant_kernel scalar; /* complete, except unpack in types without a panel */
};

/* The row of a GGUF type id, or of a name (any case); NULL for unknown ids. */
const struct quant_type *quant_type_by_id(uint32_t id);
const struct quant_type *quant_type_by_name(const char *name);
/* The name of an id that the format has retired; NULL for all others. */
const char *quant_retired_name(uint32_t id);

/* Bytes of a row of k elements; false when k is not a multiple of the block or the size
 * overflows. */
bool quant_row_bytes(const struct quant_type *type, uint64_t k, uint64_t *bytes);
/* As quant_row_bytes, for a k that is known to fit. */
int64_t quant_row_size(const struct quant_type *type, int64_t k);

/* Whether the elements are weights: not of integers, and not of copies by columns. */
static inline bool quant_type_has_weights(const struct quant_type *type)
{
    return type->act || type->interleave;
}

/* The type as which quant_row_separate can write rows of k elements of an interleaved type; NULL if
 * there is none. */
const struct quant_type *quant_type_plain(const struct quant_type *type, uint64_t k);
/* Writes elements first .. first + n - 1 (multiples of the block) of row r of a group of
 * type->interleave rows, which begins at `group`, as a row of n elements of `plain`, which is
 * quant_type_plain for the length of its rows. */
void quant_row_separate(const struct quant_type *type, const struct quant_type *plain,
                        int64_t first, int64_t n, const void *group, int r, void *row);

/* Reads elements first .. first + n - 1 of a row of a type without arithmetic (integers, F64);
 * 64-bit integers are rounded. False for other types. */
bool quant_data_read(const struct quant_type *type, int64_t first, int64_t n, const void *row,
                     double *out);

/* ---- Kernel tables ---- */

struct quant_kernels {
    enum cpu_level level;
    bool dual_512;                /* two 512-bit multiplications per cycle, if the level has them */
    struct cpu_prefetch prefetch; /* the processor's */
    const struct quant_search *search;        /* for encode */
    struct quant_kernel type[QUANT_ID_COUNT]; /* by id; complete for types with arithmetic */
    /* Converts a column of k floats, k a multiple of the form's block_len; by the form's index. */
    void (*quantize[QUANT_ACT_FORMS])(int64_t k, const float *x, const struct quant_act *to);
};

/* Fills the table for cpu_level_cap(level), without the policies of a processor. */
void quant_kernels_fill(struct quant_kernels *kernels, enum cpu_level level);
/* Fills it and adapts it to the policies of a family of processors. */
void quant_kernels_fill_for(struct quant_kernels *kernels, enum cpu_level level,
                            const struct cpu_family *family);
/* Fills it and adapts it to the policies of cpu_family(). */
void quant_kernels_init(struct quant_kernels *kernels, enum cpu_level level);

/* Encodes k elements by the table's kernel of a type that has one; see struct quant_kernel. */
void quant_encode(const struct quant_kernels *kernels, enum quant_id id, int64_t k, const float *in,
                  const float *importance, void *row);

/* out[c][r] = row r of w times column c, for n_rows consecutive rows of k elements and at most
 * QUANT_FEW_COLUMNS columns. */
void quant_gemv(const struct quant_kernel *kernel, struct cpu_prefetch prefetch, int64_t k,
                const void *w, size_t row_bytes, int64_t n_rows, int n_columns,
                const struct quant_act *a, float *const *out);
/* As quant_gemv, for the rows of all steps in *rows and any number of columns. */
void quant_gemv_steps(const struct quant_kernel *kernel, int64_t k, const struct quant_rows *rows,
                      int n_columns, const struct quant_act *a, float *const *out);

/* ---- Half precision (IEEE binary16, bfloat16), exact and rounding to nearest even ---- */

float quant_f16_to_f32(uint16_t h); /* NaN keeps its payload, made quiet */
uint16_t quant_f32_to_f16(float f); /* overflow gives infinity, NaN a quiet NaN */
float quant_bf16_to_f32(uint16_t b);
uint16_t quant_f32_to_bf16(float f); /* subnormals kept; NaN made quiet */

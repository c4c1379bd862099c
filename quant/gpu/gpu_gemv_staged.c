/* quant/gpu/gpu_gemv_staged.c: device code: products of rows with columns, for the types of weights
 * of QUANT_GPU_STAGED.
 *
 * A block of threads multiplies four rows, in rounds; in each, a warp has other blocks of the rows:
 *
 *     memory         ==copies==>    shared memory of the warp
 *     shared memory  ==lanes==>     integer sums of parts of blocks
 *     shuffles       ==========>    sums of blocks; one lane computes the term v
 *     lane r of warp 0 =======>     adds the terms of row r, of all warps, in ascending order
 *
 * Sums of integers are exact in any order; v and the order of its additions are those of the scalar
 * kernels. Codes are multiplied by the column four at a time. */
#include "quant/gpu/gpu_parts.h"

struct code_sums {
    int products, minima;
};

/* The column's elements that a part of a block is multiplied with, which a lane reads once for all
 * rows: codes, four in each word, and their sums by 16, or by 32 in blocks of 32. */
struct column_part {
    uint32_t x[16];
    int sum[4];
};

/* Reads n words of the column's codes from element i on, both multiples of 4. */
QUANT_INLINE void read_column(const struct quant_act *a, int64_t i, int n, uint32_t *words)
{
    const uint32_t *from = __builtin_assume_aligned(a->q + 4 * (i / 4), 16);
    for (int j = 0; j < n; j++) words[j] = from[j];
}

/* A type: blocks of block_len elements in block_bytes bytes, each computed by `lanes` lanes: 1, or
 * QUANT_GPU_STAGED_ROWS. One of form and super. */
struct staged {
    int block_len, block_bytes, lanes;
    struct quant_form32 form;
    const struct super_type *super;
    bool is_aligned; /* rows and blocks are at multiples of 16 */
};

/* Reads the elements for part `part` of block b. */
QUANT_INLINE void read_column_part(const struct staged *type, const struct quant_act *a, int64_t b,
                                   int part, struct column_part *c)
{
    if (!type->super) {
        read_column(a, 32 * b, 8, c->x);
        c->sum[0] = a->sum[b];
        return;
    }
    const int64_t first = SUPER_LEN * b + first_of_part(type->super, part),
                  second = SUPER_LEN * b + second_of_part(type->super, part);
    read_column(a, first, 8, c->x);
    read_column(a, second, 8, c->x + 8);
    GPU_EACH (s, 4) c->sum[s] = a->sum[(s < 2 ? first : second) / 16 + s % 2];
}

/* The product of four words with those of the column. */
QUANT_INLINE int dot_words(bool is_signed, const uint32_t *code, const uint32_t *x)
{
    int sum = 0;
    GPU_EACH (j, 4)
        sum = is_signed ? gpu_dot4_signed(code[j], x[j], sum) : gpu_dot4(code[j], x[j], sum);
    return sum;
}

/* The sums of a block of 32. */
QUANT_INLINE struct code_sums sums_of_block32(struct quant_form32 form, const uint8_t *at,
                                              const struct column_part *c)
{
    const bool is_signed = is_signed32(form);
    uint32_t code[8];
    codes32(form, at, code);
    const int products =
        dot_words(is_signed, code, c->x) + dot_words(is_signed, code + 4, c->x + 4);
    return (struct code_sums){is_signed ? products : products - form.offset * c->sum[0], 0};
}

/* The sums of part `part` of the super-block at `at`. */
QUANT_INLINE struct code_sums sums_of_part(const struct super_type *type, bool is_aligned,
                                           const uint8_t *at, int part, const struct column_part *c)
{
    const struct quant_panel_form *form = &type->layout->panel;
    const bool is_signed = type->offset == SIGNED;
    struct code_sums sums = {0};
    struct gpu_codes w;
    int products[4];
    type->part(at, part, is_aligned, &w);
    GPU_EACH (s, 4) {
        products[s] = dot_words(is_signed, w.code + 4 * s, c->x + 4 * s);
        if (!is_signed) products[s] -= type->offset * c->sum[s];
    }
    if (form->sub_len == 32) {
        sums.products =
            w.scale[0] * (products[0] + products[1]) + w.scale[1] * (products[2] + products[3]);
        if (form->has_min)
            sums.minima = w.min[0] * (c->sum[0] + c->sum[1]) + w.min[1] * (c->sum[2] + c->sum[3]);
        return sums;
    }
    GPU_EACH (s, 4) {
        sums.products += w.scale[s] * products[s];
        if (form->has_min) sums.minima += w.min[s] * c->sum[s];
    }
    return sums;
}

/* v of block b, which is at `at`. */
QUANT_INLINE float value_of(const struct staged *type, const uint8_t *at, int64_t b,
                            const struct quant_act *a, struct code_sums sums)
{
    if (!type->super) {
        const float scale = scale32(type->form, at) * a->d[b];
        return type->form.has_min
                   ? fmaf(scale, (float)sums.products, quant_load_half(at + 2) * a->s[b])
                   : scale * (float)sums.products;
    }
    const float scale = d_of_super(type->super, at) * a->d[b];
    return type->super->layout->panel.has_min
               ? fmaf(scale, (float)sums.products,
                      m_of_super(type->super, at) * a->d[b] * (float)sums.minima)
               : scale * (float)sums.products;
}

/* ---- Rows ---- */

/* Starts copying `bytes` bytes at `from` to a stage, whose addresses modulo 16 are equal; by a
 * warp.
 */
QUANT_INLINE void start_copy(const uint8_t *from, int64_t bytes, uint8_t *stage)
{
    const int offset = (int)((uintptr_t)from & 15);
    for (int i = 16 * gpu_lane(); i < offset + bytes; i += 16 * GPU_WARP)
        gpu_copy16(stage + i, from - offset + i);
}

/* Sums over the lanes of a block: lane p gets that of row p.
 *
 *     lane      0          1          2          3
 *               rows 0 2   rows 1 3   rows 0 2   rows 1 3    lanes 0, 1 and 2, 3 exchange
 *               row 0      row 1      row 2      row 3       lanes 0, 2 and 1, 3 exchange */
QUANT_INLINE int sum_of_lanes(const int row[QUANT_GPU_STAGED_ROWS])
{
    const bool odd = gpu_lane() & 1, high = gpu_lane() & 2;
    const int low_rows =
        (odd ? row[1] : row[0]) + (int)gpu_shuffle_xor((uint32_t)(odd ? row[0] : row[1]), 1);
    const int high_rows =
        (odd ? row[3] : row[2]) + (int)gpu_shuffle_xor((uint32_t)(odd ? row[2] : row[3]), 1);
    return (high ? high_rows : low_rows) +
           (int)gpu_shuffle_xor((uint32_t)(high ? low_rows : high_rows), 2);
}

QUANT_INLINE void gemv_staged(const struct quant_gpu_gemv *p, const struct staged *type)
{
    enum { ROWS = QUANT_GPU_STAGED_ROWS };
    const int lanes = type->lanes, per_step = GPU_WARP / lanes, bytes = type->block_bytes;
    const int step_bytes = (int)quant_gpu_step_bytes((uint32_t)bytes, lanes);
    const int n_blocks = (int)(p->k / type->block_len);
    const int warps = quant_gpu_staged_warps((uint32_t)bytes, lanes, n_blocks);
    const int per_round = warps * per_step;
    const struct quant_gpu_rows rows = quant_gpu_rows_of(p, gpu_block());
    const int64_t first = (gpu_block() - rows.block) * ROWS;
    const struct quant_gpu_factors of = quant_gpu_factors(p, rows.w, gpu_block_y());
    const struct quant_act a = of.a;
    uint8_t *step = (uint8_t *)gpu_shared() + gpu_warp() * ROWS * step_bytes;
    float *terms = (float *)(void *)((uint8_t *)gpu_shared() + warps * ROWS * step_bytes);
    const int block = gpu_lane() / lanes, lane_part = gpu_lane() % lanes;
    float acc = of.w ? 0.0f : quant_float_of(0x7fc00000);
    const uint8_t *w[ROWS];
    GPU_EACH (r, ROWS)
        w[r] = of.w + (first + r < rows.n_rows ? first + r : rows.n_rows - 1) * p->row_bytes;
    for (int b_round = 0; of.w && b_round < n_blocks; b_round += per_round) {
        const int b_step = b_round + gpu_warp() * per_step, n_left = n_blocks - b_step;
        const int n = n_left < per_step ? n_left : per_step, b = b_step + block;
        float *to = terms + gpu_warp() * per_step + block;
        const uint8_t *at[ROWS];
        int products[ROWS], minima[ROWS];
        GPU_EACH (r, ROWS) {
            const uint8_t *from = w[r] + (int64_t)b_step * bytes;
            if (n > 0) start_copy(from, n * bytes, step + r * step_bytes);
            at[r] = step + r * step_bytes + ((uintptr_t)from & 15) + block * bytes;
        }
        gpu_copies_end();
        struct column_part column = {0};
        if (block < n) read_column_part(type, &a, b, lane_part, &column);
        gpu_copies_wait(0);
        gpu_sync_warp(); /* the bytes are there, those of all lanes */
        GPU_EACH (r, ROWS) {
            const struct code_sums sums =
                block >= n ? (struct code_sums){0}
                : type->super
                    ? sums_of_part(type->super, type->is_aligned, at[r], lane_part, &column)
                    : sums_of_block32(type->form, at[r], &column);
            products[r] = sums.products;
            minima[r] = sums.minima;
        }
        if (lanes == 1) {
            GPU_EACH (r, ROWS)
                if (block < n)
                    to[r * per_round] =
                        value_of(type, at[r], b, &a, (struct code_sums){products[r], minima[r]});
        } else {
            const struct code_sums sums = {sum_of_lanes(products),
                                           type->super->layout->panel.has_min ? sum_of_lanes(minima)
                                                                              : 0};
            const uint8_t *my =
                lane_part & 2 ? (lane_part & 1 ? at[3] : at[2]) : (lane_part & 1 ? at[1] : at[0]);
            if (block < n) to[lane_part * per_round] = value_of(type, my, b, &a, sums);
        }
        /* All terms of the round are written, and those of the round before are added. */
        gpu_sync();
        const int n_terms = n_blocks - b_round < per_round ? n_blocks - b_round : per_round;
        if (gpu_thread() < ROWS)
            for (int i = 0; i < n_terms; i++) acc += terms[gpu_thread() * per_round + i];
        terms += (b_round / per_round % 2 ? -1 : 1) * ROWS * per_round;
    }
    if (gpu_thread() < ROWS && first + gpu_thread() < rows.n_rows)
        rows.out[gpu_block_y() * p->out_stride + first + gpu_thread()] = acc;
}

#define STAGED_32(NAME)                                                                            \
    GPU_KERNEL(quant_gpu_gemv_##NAME, quant_gpu_gemv)                                              \
    {                                                                                              \
        const struct staged type = {32, sizeof(struct NAME##_block), 1, NAME##_form, NULL, false}; \
        gemv_staged(&p, &type);                                                                    \
    }

/* Whether all rows are at multiples of 16. */
QUANT_INLINE bool is_aligned(const struct quant_gpu_gemv *p)
{
    const uintptr_t all = (uintptr_t)p->w | (uintptr_t)p->more[0].w | (uintptr_t)p->more[1].w |
                          (uintptr_t)p->row_bytes | (uintptr_t)p->by.bytes;
    return all % 16 == 0;
}

#define STAGED_256(NAME)                                                                           \
    GPU_KERNEL(quant_gpu_gemv_##NAME, quant_gpu_gemv)                                              \
    {                                                                                              \
        const struct staged plain = {SUPER_LEN, sizeof(struct NAME##_block), 4, {0}, &NAME##_type, \
                                     false};                                                       \
        const struct staged aligned = {                                                            \
            SUPER_LEN, sizeof(struct NAME##_block), 4, {0}, &NAME##_type, true};                   \
        if (NAME##_type.may_align && is_aligned(&p))                                               \
            gemv_staged(&p, &aligned);                                                             \
        else                                                                                       \
            gemv_staged(&p, &plain);                                                               \
    }

STAGED_32(q4_0)
STAGED_32(q4_1)
STAGED_32(q5_0)
STAGED_32(q5_1)
STAGED_32(q8_0)
STAGED_32(iq4_nl)
STAGED_32(mxfp4)
STAGED_256(q2_k)
STAGED_256(q3_k)
STAGED_256(q4_k)
STAGED_256(q5_k)
STAGED_256(q6_k)
STAGED_256(iq4_xs)

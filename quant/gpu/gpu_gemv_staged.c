/* quant/gpu/gpu_gemv_staged.c: device code: products of rows with columns, for the types of weights
 * of QUANT_GPU_STAGED.
 *
 * A block of threads multiplies some rows, in rounds; in each, a warp has other blocks of all rows,
 * four rows at once, whose bytes are copied while it computes the four before them:
 *
 *     memory         ==copies==>    shared memory of the warp, one of two stages
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
 * rows of a round: codes, four in each word, and their sums by 16, or by 32 in blocks of 32. */
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
    codes_of_part(type, at, part, is_aligned, &w);
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

QUANT_INLINE int blocks_of_step(const struct staged *type)
{
    return GPU_WARP / type->lanes;
}

/* Of a row in a stage. */
QUANT_INLINE int stage_bytes(const struct staged *type)
{
    return (int)quant_gpu_stage_bytes((uint32_t)(blocks_of_step(type) * type->block_bytes));
}

/* What a block of threads multiplies. */
struct rows_work {
    const uint8_t *w; /* its first row */
    struct quant_act a;
    uint32_t row_bytes;
    int n_rows, n_blocks; /* its rows; blocks of a row */
    int per_round;        /* blocks */
    float *terms; /* [rows][per_round + 1] of all warps: rows are in different memory banks */
};

/* Four rows from `first` on, and blocks from b on: a warp computes them at once. */
struct unit {
    int first, b;
};

QUANT_INLINE struct unit unit_after(const struct rows_work *t, struct unit u)
{
    u.first += QUANT_GPU_STAGED_ROWS;
    return u.first < t->n_rows ? u : (struct unit){0, u.b + t->per_round};
}

/* The address of row r of a unit; past the last row: of that row. */
QUANT_INLINE const uint8_t *row_at(const struct staged *type, const struct rows_work *t,
                                   struct unit u, int r)
{
    const int row = u.first + r < t->n_rows ? u.first + r : t->n_rows - 1;
    return t->w + (uint64_t)(uint32_t)row * t->row_bytes + (int64_t)u.b * type->block_bytes;
}

/* The bytes from the last multiple of 16 to a row. */
QUANT_INLINE int offset_of(const struct staged *type, const uint8_t *row)
{
    return type->is_aligned ? 0 : (int)((uintptr_t)row & 15);
}

QUANT_INLINE int blocks_of(const struct staged *type, const struct rows_work *t, struct unit u)
{
    const int n_left = t->n_blocks - u.b;
    return n_left < blocks_of_step(type) ? n_left : blocks_of_step(type);
}

/* Starts copying the rows of a unit to a stage, whose addresses modulo 16 are equal; nothing past
 * the last block. By all lanes of a warp. */
QUANT_INLINE void start_copy(const struct staged *type, const struct rows_work *t, struct unit u,
                             uint8_t *stage)
{
    enum { COPIES = 4, OF_WARP = 16 * GPU_WARP }; /* of a row; bytes at once */
    const int n = blocks_of(type, t, u);
    GPU_EACH (r, QUANT_GPU_STAGED_ROWS) {
        const uint8_t *row = row_at(type, t, u, r);
        const int offset = offset_of(type, row), end = n > 0 ? offset + n * type->block_bytes : 0;
        GPU_EACH (i, COPIES) {
            const int at = 16 * gpu_lane() + OF_WARP * i;
            if (OF_WARP * i < stage_bytes(type) - 16 && at < end)
                gpu_copy16(stage + r * stage_bytes(type) + at, row - offset + at);
        }
    }
    gpu_copies_end();
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

/* As multiply_unit, for super-blocks whose parts take many instructions: one row after the other.
 */
QUANT_INLINE void multiply_unit_by_rows(const struct staged *type, const struct rows_work *t,
                                        struct unit u, const uint8_t *stage,
                                        const struct column_part *column)
{
    const int block = gpu_lane() / type->lanes, part = gpu_lane() % type->lanes;
    const bool is_in = block < blocks_of(type, t, u);
    const uint8_t *at = NULL;
    int products = 0;
    GPU_LOOP
    for (int r = 0; r < QUANT_GPU_STAGED_ROWS; r++) {
        const uint8_t *row = stage + r * stage_bytes(type) +
                             offset_of(type, row_at(type, t, u, r)) + block * type->block_bytes;
        int sum = is_in ? sums_of_part(type->super, false, row, part, column).products : 0;
        sum += (int)gpu_shuffle_xor((uint32_t)sum, 1);
        sum += (int)gpu_shuffle_xor((uint32_t)sum, 2);
        if (r == part) {
            products = sum;
            at = row;
        }
    }
    if (is_in)
        t->terms[(u.first + part) * (t->per_round + 1) + gpu_warp() * blocks_of_step(type) +
                 block] = value_of(type, at, u.b + block, &t->a, (struct code_sums){products, 0});
}

/* Computes the terms of a unit, whose bytes are in a stage. */
QUANT_INLINE void multiply_unit(const struct staged *type, const struct rows_work *t, struct unit u,
                                const uint8_t *stage, const struct column_part *column)
{
    enum { ROWS = QUANT_GPU_STAGED_ROWS };
    if (type->super && !type->super->part) {
        multiply_unit_by_rows(type, t, u, stage, column);
        return;
    }
    const int block = gpu_lane() / type->lanes, part = gpu_lane() % type->lanes, b = u.b + block;
    const int row_terms = t->per_round + 1;
    const bool is_in = block < blocks_of(type, t, u);
    float *to = t->terms + u.first * row_terms + gpu_warp() * blocks_of_step(type) + block;
    const uint8_t *at[ROWS];
    int products[ROWS], minima[ROWS];
    GPU_EACH (r, ROWS) {
        at[r] = stage + r * stage_bytes(type) + offset_of(type, row_at(type, t, u, r)) +
                block * type->block_bytes;
        const struct code_sums sums =
            !is_in        ? (struct code_sums){0}
            : type->super ? sums_of_part(type->super, type->is_aligned, at[r], part, column)
                          : sums_of_block32(type->form, at[r], column);
        products[r] = sums.products;
        minima[r] = sums.minima;
    }
    if (type->lanes == 1) {
        GPU_EACH (r, ROWS)
            if (is_in)
                to[r * row_terms] =
                    value_of(type, at[r], b, &t->a, (struct code_sums){products[r], minima[r]});
        return;
    }
    const struct code_sums sums = {sum_of_lanes(products),
                                   type->super->layout->panel.has_min ? sum_of_lanes(minima) : 0};
    const uint8_t *my = part & 2 ? (part & 1 ? at[3] : at[2]) : (part & 1 ? at[1] : at[0]);
    if (is_in) to[part * row_terms] = value_of(type, my, b, &t->a, sums);
}

/* The sum of row `gpu_lane()`: acc and its terms of a round. */
QUANT_INLINE float add_terms(const struct rows_work *t, int b_round, float acc)
{
    const int n_left = t->n_blocks - b_round, n = n_left < t->per_round ? n_left : t->per_round;
    const float *terms = t->terms + gpu_lane() * (t->per_round + 1);
    for (int i = 0; i < n; i++) acc += terms[i];
    return acc;
}

/* All rounds, with one or two stages of this warp; returns the sum of row `gpu_lane()` in warp 0.
 */
QUANT_INLINE float multiply_rows(const struct staged *type, const struct rows_work *t,
                                 uint8_t *stage, uint8_t *other)
{
    const int b_warp = gpu_warp() * blocks_of_step(type), block = gpu_lane() / type->lanes;
    struct unit next = {0, b_warp}; /* whose copy is started next */
    float acc = 0.0f;
    uint8_t *to = stage;
    GPU_LOOP
    for (int i = 0; i <= (other != stage); i++, to = other) {
        start_copy(type, t, next, to);
        next = unit_after(t, next);
    }
    GPU_LOOP
    for (int b_round = 0; b_round < t->n_blocks; b_round += t->per_round) {
        struct unit u = {0, b_round + b_warp};
        struct column_part column = {0};
        if (block < blocks_of(type, t, u))
            read_column_part(type, &t->a, u.b + block, gpu_lane() % type->lanes, &column);
        GPU_LOOP
        for (; u.first < t->n_rows; u.first += QUANT_GPU_STAGED_ROWS) {
            if (other != stage)
                gpu_copies_wait(1);
            else
                gpu_copies_wait(0);
            gpu_sync_warp(); /* the bytes are there, those of all lanes */
            multiply_unit(type, t, u, stage, &column);
            gpu_sync_warp(); /* the bytes are read */
            start_copy(type, t, next, stage);
            next = unit_after(t, next);
            uint8_t *now = stage;
            stage = other;
            other = now;
        }
        gpu_sync(); /* the terms of all warps are written */
        if (gpu_thread() < t->n_rows) acc = add_terms(t, b_round, acc);
        if (b_round + t->per_round < t->n_blocks) gpu_sync(); /* the terms are read */
    }
    return acc;
}

QUANT_INLINE void gemv_staged(const struct quant_gpu_gemv *p, const struct staged *type)
{
    const int unit_bytes = QUANT_GPU_STAGED_ROWS * stage_bytes(type);
    const struct quant_gpu_rows rows = quant_gpu_rows_of(p, gpu_block());
    const int64_t first = (int64_t)(gpu_block() - (int)rows.block) * p->shape.rows,
                  n_left = rows.n_rows - first;
    const struct quant_gpu_factors of = quant_gpu_factors(p, rows.w, gpu_block_y());
    uint8_t *stages = gpu_shared(), *mine = stages + gpu_warp() * p->shape.stages * unit_bytes;
    const struct rows_work work = {
        .w = of.w + first * p->row_bytes,
        .a = of.a,
        .row_bytes = (uint32_t)p->row_bytes,
        .n_rows = n_left < p->shape.rows ? (int)n_left : p->shape.rows,
        .n_blocks = (int)(p->k / type->block_len),
        .per_round = p->shape.warps * blocks_of_step(type),
        .terms = (float *)(void *)(stages + p->shape.warps * p->shape.stages * unit_bytes),
    };
    float acc = quant_float_of(0x7fc00000);
    if (of.w) acc = multiply_rows(type, &work, mine, mine + (p->shape.stages - 1) * unit_bytes);
    if (gpu_thread() < work.n_rows)
        rows.out[gpu_block_y() * p->out_stride + first + gpu_thread()] = acc;
}

#define STAGED_32(NAME)                                                                            \
    GPU_KERNEL(quant_gpu_gemv_##NAME, quant_gpu_gemv)                                              \
    {                                                                                              \
        const struct staged type = {32, sizeof(struct NAME##_block), 1, NAME##_form, NULL, false}; \
        gemv_staged(&p, &type);                                                                    \
    }

#define STAGED_256(NAME)                                                                           \
    GPU_KERNEL(quant_gpu_gemv_##NAME, quant_gpu_gemv)                                              \
    {                                                                                              \
        const struct staged plain = {SUPER_LEN, sizeof(struct NAME##_block), 4, {0}, &NAME##_type, \
                                     false};                                                       \
        const struct staged aligned = {                                                            \
            SUPER_LEN, sizeof(struct NAME##_block), 4, {0}, &NAME##_type, true};                   \
        if (NAME##_type.may_align && quant_gpu_is_aligned(&p, 16))                                 \
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

#define STAGED_GRID(NAME)                                                                          \
    GPU_KERNEL(quant_gpu_gemv_##NAME, quant_gpu_gemv)                                              \
    {                                                                                              \
        const struct super_type super = GRID_TYPE(NAME, p.id);                                     \
        const struct staged type = {SUPER_LEN, p.block_bytes, 4, {0}, &super, false};              \
        gemv_staged(&p, &type);                                                                    \
    }

STAGED_GRID(grid_32)
STAGED_GRID(grid_16)

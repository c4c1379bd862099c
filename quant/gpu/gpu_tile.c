/* quant/gpu/gpu_tile.c: device code: products of rows with many columns by the GPU's matrix units,
 * for the types of weights of QUANT_GPU_STAGED.
 *
 * A block of threads computes 64 rows times 128 columns, in steps of 256 elements of k:
 *
 *     memory           ==copies==>   the file's bytes of the rows; codes of the columns
 *     the file's bytes ==parts===>   signed codes, scales, minima in shared memory
 *     codes            ==units===>   integer sums; a warp has 32 rows times 32 columns
 *     sums, scales     =========>    terms v, each added to its result in a register
 *
 * Sums of integers are exact in any order; v and the order of its additions, ascending in k, are
 * those of the scalar kernels. The bytes of the next step are copied while this one is multiplied.
 */
#include "quant/gpu/gpu_parts.h"

enum {
    ROWS = QUANT_GPU_TILE_ROWS,
    COLUMNS = QUANT_GPU_TILE_COLUMNS,
    THREADS = QUANT_GPU_TILE_THREADS,
    STEP = QUANT_GPU_TILE_STEP
};

/* One of form and super; what a step has of a row. */
struct tile_type {
    int block_len, block_bytes;
    struct quant_form32 form;
    const struct super_type *super;
};

/* The block of threads: its first row and column, and the rows' bytes. */
struct gpu_tile {
    const struct quant_gpu_gemv *p;
    struct quant_gpu_tile_memory *s;
    const struct tile_type *type;
    int first_row, first_column, n_columns;
    int pitch; /* of s->rows */
};

/* Where row or column i is in arrays of scales: lane 4g + t of a warp has rows g, g + 8, g + 16, g
 * + 24, and columns 8n + 2t, 8n + 2t + 1, n < 4. */
QUANT_INLINE int place_of_row(int i)
{
    return i / 32 * 32 + i % 8 * 4 + i % 32 / 8;
}

QUANT_INLINE int place_of_column(int i)
{
    return i / 32 * 32 + i % 8 / 2 * 8 + i % 32 / 8 * 2 + i % 2;
}

/* ---- Memory to shared memory ---- */

/* i * bytes by one instruction: rows and columns of these types have less than 2^32 bytes. */
QUANT_INLINE int64_t product(int i, int64_t bytes)
{
    return (int64_t)((uint64_t)(uint32_t)i * (uint32_t)bytes);
}

/* Block b of row i; past the last row: the last row's. */
QUANT_INLINE const uint8_t *row_at(const struct gpu_tile *t, int i, int64_t b)
{
    const int last = (int)(t->p->n_rows - 1), row = t->first_row + i;
    return t->p->w + b * t->type->block_bytes + product(row < last ? row : last, t->p->row_bytes);
}

/* Bytes from the first column to column i; past the last column: to the last. */
QUANT_INLINE int64_t column_at(const struct gpu_tile *t, int i)
{
    const int last = t->n_columns - 1, column = t->first_column + i;
    return product(column < last ? column : last, t->p->a.bytes);
}

/* Starts copying n blocks of each row, of which a lane has at most 16 bytes. */
QUANT_INLINE void copy_rows(const struct gpu_tile *t, int64_t b, int n)
{
    GPU_EACH (i, ROWS * GPU_WARP / THREADS) {
        const int row = gpu_warp() + i * (THREADS / GPU_WARP), at = 16 * gpu_lane();
        const uint8_t *from = row_at(t, row, b);
        const int offset = (int)((uintptr_t)from & 15);
        if (at < offset + n * t->type->block_bytes)
            gpu_copy16(t->s->rows + row * t->pitch + at, from - offset + at);
    }
    gpu_copies_end();
}

/* Starts copying the codes of n blocks of each column. */
QUANT_INLINE void copy_columns(const struct gpu_tile *t, int64_t b, int n)
{
    const int first = gpu_thread() / 16, at = gpu_thread() % 16 * 16;
    const int8_t *from = t->p->a.first.q + b * t->type->block_len + at;
    if (at < n * t->type->block_len) {
        GPU_EACH (i, COLUMNS * 16 / THREADS)
            gpu_copy16(&t->s->x[first + i * (THREADS / 16)][at],
                       from + column_at(t, first + i * (THREADS / 16)));
    }
    gpu_copies_end();
}

/* Scales of the columns' n blocks, and their products with sums. */
QUANT_INLINE void read_column_scales(const struct gpu_tile *t, int64_t b, int n)
{
    const int block = gpu_thread() % 8;
    const char *d = (const char *)(t->p->a.first.d + b + block),
               *s = (const char *)(t->p->a.first.s + b + block);
    if (block >= n) return;
    GPU_EACH (i, COLUMNS * 8 / THREADS) {
        const int column = gpu_thread() / 8 + i * (THREADS / 8), place = place_of_column(column);
        const int64_t at = column_at(t, column);
        t->s->of.block.x_d[block][place] = *(const float *)(const void *)(d + at);
        if (t->type->form.has_min)
            t->s->of.block.x_s[block][place] = *(const float *)(const void *)(s + at);
    }
}

/* Scales of the columns' super-blocks, and their sums of 16: eight of a column for each thread. */
QUANT_INLINE void read_column_sums(const struct gpu_tile *t, int64_t b)
{
    const int column = gpu_thread() / 2, half = gpu_thread() % 2 * 8;
    const int64_t at = column_at(t, column);
    if (half == 0)
        t->s->of.super.x_d[place_of_column(column)] =
            *(const float *)(const void *)((const char *)(t->p->a.first.d + b) + at);
    if (!t->type->super->layout->panel.has_min) return;
    /* Two sums in a word: bits 0 to 5 and 6 to 13 of each become bytes. */
    const uint32_t *sum =
        __builtin_assume_aligned((const char *)(t->p->a.first.sum + 16 * b + half) + at, 16);
    uint32_t *high = __builtin_assume_aligned(&t->s->of.super.high[column][half], 8),
             *low = __builtin_assume_aligned(&t->s->of.super.low[column][half], 8);
    uint32_t words[4];
    GPU_EACH (i, 4) words[i] = sum[i];
    GPU_EACH (i, 2) {
        const uint32_t a = words[2 * i], c = words[2 * i + 1];
        high[i] = gpu_choose(a >> 6, c >> 6, 0x6420);
        low[i] = gpu_choose(a & 0x003f003f, c & 0x003f003f, 0x6420);
    }
}

/* Codes from 0 to 127 minus an offset up to 128, as signed bytes. */
QUANT_INLINE uint32_t signed_codes(uint32_t codes, int offset)
{
    return ((codes | 0x80808080) - (uint32_t)offset * 0x01010101) ^ 0x80808080;
}

QUANT_INLINE void write_codes(int8_t *to, const uint32_t code[8])
{
    uint32_t *words = __builtin_assume_aligned(to, 16);
    GPU_EACH (i, 8) words[i] = code[i];
}

/* Unpacks the n blocks of the rows; two for each thread. */
QUANT_INLINE void unpack_blocks(const struct gpu_tile *t, int64_t b, int n)
{
    const struct quant_form32 form = t->type->form;
    const int row = gpu_thread() / 4, place = place_of_row(row);
    const uint8_t *at = t->s->rows + row * t->pitch + ((uintptr_t)row_at(t, row, b) & 15);
    for (int i = gpu_thread() % 4 * 2; i < gpu_thread() % 4 * 2 + 2 && i < n; i++) {
        const uint8_t *block = at + i * t->type->block_bytes;
        uint32_t code[8];
        codes32(form, block, code);
        if (!is_signed32(form)) {
            GPU_EACH (j, 8) code[j] = signed_codes(code[j], form.offset);
        }
        write_codes(&t->s->w[row][32 * i], code);
        t->s->of.block.d[i][place] = scale32(form, block);
        if (form.has_min) t->s->of.block.m[i][place] = quant_load_half(block + 2);
    }
}

/* Unpacks a super-block of the rows: a part for each thread. */
QUANT_INLINE void unpack_super(const struct gpu_tile *t, int64_t b)
{
    const struct super_type *type = t->type->super;
    const struct quant_panel_form *form = &type->layout->panel;
    const int row = gpu_thread() / 4, part = gpu_thread() % 4, place = place_of_row(row);
    const int first = first_of_part(type, part), second = second_of_part(type, part);
    const uint8_t *from = row_at(t, row, b);
    const uint8_t *at = t->s->rows + row * t->pitch + ((uintptr_t)from & 15);
    struct gpu_codes w;
    if (type->may_align && (uintptr_t)from % 16 == 0)
        codes_of_part(type, at, part, true, &w);
    else
        codes_of_part(type, at, part, false, &w);
    if (type->offset > 0) {
        GPU_EACH (i, 16) w.code[i] = signed_codes(w.code[i], type->offset);
    }
    write_codes(&t->s->w[row][first], w.code);
    write_codes(&t->s->w[row][second], w.code + 8);
    GPU_EACH (i, 4) { /* of 16 elements each */
        const int of_16 = (i < 2 ? first : second) / 16 + i % 2;
        const int sub = form->sub_len == 16 ? i : i / 2;
        if (form->sub_len == 16 || i % 2 == 0)
            t->s->of.super.scale[of_16 * 16 / form->sub_len][place] = w.scale[sub];
        if (form->has_min) t->s->of.super.min[row][of_16] = (int8_t)w.min[sub];
    }
    if (part != 0) return;
    t->s->of.super.d[place] = d_of_super(type, at);
    if (form->has_min) t->s->of.super.m[place] = m_of_super(type, at);
}

/* ---- Products ---- */

/* This lane's results of its warp's 32 rows and columns: [16 rows][8 columns][gpu_multiply_32]. */
struct results {
    float v[2][4][4];
};

/* The warp's first row and column in the tile. */
QUANT_INLINE int row_of_warp(void)
{
    return gpu_warp() % 2 * 32;
}

QUANT_INLINE int column_of_warp(void)
{
    return gpu_warp() / 2 * 32;
}

/* Loads 32 elements, from number k on, of the warp's rows and columns. */
QUANT_INLINE void load_codes(const struct quant_gpu_tile_memory *s, int k, uint32_t a[2][4],
                             uint32_t b[4][2])
{
    const int lane = gpu_lane();
    GPU_EACH (i, 2)
        gpu_load_matrices(&s->w[row_of_warp() + 16 * i + lane % 16][k + lane / 16 * 16], a[i]);
    GPU_EACH (i, 2) {
        uint32_t two[4];
        gpu_load_matrices(
            &s->x[column_of_warp() + 16 * i + lane / 16 * 8 + lane % 8][k + lane / 8 % 2 * 16],
            two);
        GPU_EACH (j, 4) b[2 * i + j / 2][j % 2] = two[j];
    }
}

/* Adds the terms of n blocks. */
QUANT_INLINE void multiply_blocks(const struct gpu_tile *t, int n, struct results *to)
{
    const struct quant_gpu_tile_memory *s = t->s;
    const int row = row_of_warp() + gpu_lane() / 4 * 4,
              column = column_of_warp() + gpu_lane() % 4 * 8;
    GPU_LOOP
    for (int i = 0; i < n; i++) {
        const float *d = &s->of.block.d[i][row], *m = &s->of.block.m[i][row],
                    *x_d = &s->of.block.x_d[i][column], *x_s = &s->of.block.x_s[i][column];
        uint32_t a[2][4], b[4][2];
        load_codes(s, 32 * i, a, b);
        GPU_EACH (j, 8) {
            int sum[4] = {0};
            gpu_multiply_32(a[j / 4], b[j % 4], sum);
            GPU_EACH (e, 4) {
                const int r = j / 4 * 2 + e / 2, c = j % 4 * 2 + e % 2;
                const float scale = d[r] * x_d[c];
                to->v[j / 4][j % 4][e] += t->type->form.has_min
                                              ? fmaf(scale, (float)sum[e], m[r] * x_s[c])
                                              : scale * (float)sum[e];
            }
        }
    }
}

/* Adds the terms of a super-block. */
QUANT_INLINE void multiply_super(const struct gpu_tile *t, struct results *to)
{
    const struct quant_gpu_tile_memory *s = t->s;
    const struct quant_panel_form *form = &t->type->super->layout->panel;
    const int row = row_of_warp() + gpu_lane() / 4 * 4,
              column = column_of_warp() + gpu_lane() % 4 * 8;
    int sum[8][4] = {0};
    GPU_LOOP
    for (int k = 0; k < STEP; k += 32) {
        const int *scale = &s->of.super.scale[k / form->sub_len][row];
        uint32_t a[2][4], b[4][2];
        load_codes(s, k, a, b);
        GPU_EACH (j, 8) {
            int products[2][4] = {0};
            if (form->sub_len == 32) {
                gpu_multiply_32(a[j / 4], b[j % 4], products[0]);
            } else {
                gpu_multiply_16(a[j / 4], b[j % 4][0], products[0]);
                gpu_multiply_16(a[j / 4] + 2, b[j % 4][1], products[1]);
            }
            GPU_EACH (e, 4) {
                sum[j][e] += scale[j / 4 * 2 + e / 2] * products[0][e];
                if (form->sub_len == 16)
                    sum[j][e] += scale[ROWS + j / 4 * 2 + e / 2] * products[1][e];
            }
        }
    }
    const float *d = &s->of.super.d[row], *m = &s->of.super.m[row], *x_d = &s->of.super.x_d[column];
    uint32_t min[4] = {0}, high[4] = {0}, low[4] = {0};
    if (form->has_min) {
        gpu_load_matrices(s->of.super.min[row_of_warp() + gpu_lane()], min);
        gpu_load_matrices(s->of.super.high[column_of_warp() + gpu_lane()], high);
        gpu_load_matrices(s->of.super.low[column_of_warp() + gpu_lane()], low);
    }
    GPU_EACH (j, 8) {
        int minima[2][4] = {0};
        if (form->has_min) {
            gpu_multiply_16(min + j / 4 * 2, high[j % 4], minima[0]);
            gpu_multiply_16(min + j / 4 * 2, low[j % 4], minima[1]);
        }
        GPU_EACH (e, 4) {
            const int r = j / 4 * 2 + e / 2, c = j % 4 * 2 + e % 2;
            const float scale = d[r] * x_d[c];
            to->v[j / 4][j % 4][e] +=
                form->has_min ? fmaf(scale, (float)sum[j][e],
                                     m[r] * x_d[c] * (float)(64 * minima[0][e] + minima[1][e]))
                              : scale * (float)sum[j][e];
        }
    }
}

QUANT_INLINE void write_results(const struct gpu_tile *t, const struct results *from)
{
    GPU_EACH (j, 32) {
        const int e = j % 4;
        const int64_t row = t->first_row + row_of_warp() + j / 16 * 16 + e / 2 * 8 + gpu_lane() / 4,
                      column = t->first_column + column_of_warp() + j / 4 % 4 * 8 +
                               gpu_lane() % 4 * 2 + e % 2;
        if (row < t->p->n_rows && column < t->n_columns)
            t->p->out[column * t->p->out_stride + row] = from->v[j / 16][j / 4 % 4][e];
    }
}

QUANT_INLINE void multiply_tile(const struct quant_gpu_tile *p, const struct tile_type *type)
{
    const int per_step = STEP / type->block_len;
    const int64_t n_blocks = p->gemv.k / type->block_len;
    const int n_across = (int)((p->n_columns + COLUMNS - 1) / COLUMNS);
    const struct gpu_tile t = {
        .p = &p->gemv,
        .s = gpu_shared(),
        .type = type,
        .first_row = gpu_block() / n_across * ROWS,
        .first_column = gpu_block() % n_across * COLUMNS,
        .n_columns = (int)p->n_columns,
        .pitch = (int)quant_gpu_stage_bytes((uint32_t)(per_step * type->block_bytes)),
    };
    struct results results = {0};
    copy_rows(&t, 0, n_blocks < per_step ? (int)n_blocks : per_step);
    GPU_LOOP
    for (int64_t b = 0; b < n_blocks; b += per_step) {
        const int64_t next = b + per_step, n_next = n_blocks - next;
        const int n = n_next < 0 ? (int)(n_blocks - b) : per_step;
        gpu_copies_wait(0);
        gpu_sync(); /* the rows' bytes are there; the step before is multiplied */
        copy_columns(&t, b, n);
        if (type->super) {
            read_column_sums(&t, b);
            unpack_super(&t, b);
        } else {
            read_column_scales(&t, b, n);
            unpack_blocks(&t, b, n);
        }
        gpu_copies_wait(0);
        gpu_sync(); /* the step is there, and the rows' bytes are read */
        if (n_next > 0) copy_rows(&t, next, n_next < per_step ? (int)n_next : per_step);
        if (t.first_column + column_of_warp() >= t.n_columns) continue;
        if (type->super)
            multiply_super(&t, &results);
        else
            multiply_blocks(&t, n, &results);
    }
    write_results(&t, &results);
}

#define TILE_32(NAME)                                                                              \
    GPU_KERNEL(quant_gpu_tile_##NAME, quant_gpu_tile)                                              \
    {                                                                                              \
        const struct tile_type type = {32, sizeof(struct NAME##_block), NAME##_form, NULL};        \
        multiply_tile(&p, &type);                                                                  \
    }
#define TILE_256(NAME)                                                                             \
    GPU_KERNEL(quant_gpu_tile_##NAME, quant_gpu_tile)                                              \
    {                                                                                              \
        const struct tile_type type = {SUPER_LEN, sizeof(struct NAME##_block), {0}, &NAME##_type}; \
        multiply_tile(&p, &type);                                                                  \
    }

TILE_32(q4_0)
TILE_32(q4_1)
TILE_32(q5_0)
TILE_32(q5_1)
TILE_32(q8_0)
TILE_32(iq4_nl)
TILE_32(mxfp4)
TILE_256(q2_k)
TILE_256(q3_k)
TILE_256(q4_k)
TILE_256(q5_k)
TILE_256(q6_k)
TILE_256(iq4_xs)

#define TILE_GRID(NAME)                                                                            \
    GPU_KERNEL(quant_gpu_tile_##NAME, quant_gpu_tile)                                              \
    {                                                                                              \
        const struct super_type super = GRID_TYPE(NAME, p.gemv.id);                                \
        const struct tile_type type = {SUPER_LEN, p.gemv.block_bytes, {0}, &super};                \
        multiply_tile(&p, &type);                                                                  \
    }

TILE_GRID(grid_32)
TILE_GRID(grid_16)

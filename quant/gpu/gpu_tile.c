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
    STEP = QUANT_GPU_TILE_STEP,
    PITCH = STEP + 16, /* of codes */
    SHARE = 4,         /* threads of a row */
    TURNS = COLUMNS * SHARE / THREADS
};
_Static_assert(ROWS *SHARE == THREADS && COLUMNS % ROWS == 0, "a thread has a row and columns");

/* One of form and super; what a step has of a row. planes: of bytes of codes times scales; 0: codes
 * and scales are apart. */
struct tile_type {
    int block_len, block_bytes;
    struct quant_form32 form;
    const struct super_type *super;
    int planes;
};

/* The block of threads: its rows and columns; and what this thread reads. */
struct gpu_tile {
    const struct quant_gpu_gemv *p;
    struct quant_gpu_tile_memory *s;
    const struct tile_type *type;
    struct quant_gpu_rows rows; /* w NULL: the results are NaN */
    const int32_t *listed;      /* the columns' numbers; NULL: from first_column on */
    int first_row, first_column, n_columns;
    int pitch;                /* of s->rows */
    const uint8_t *row;       /* past the last row: that row */
    int64_t column_at[TURNS]; /* bytes from column 0; of columns ROWS apart */
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

/* ---- Memory to shared memory: four threads for each row, and for two columns ---- */

QUANT_INLINE int my_row(void)
{
    return gpu_thread() / SHARE;
}

QUANT_INLINE int my_column(int turn)
{
    return gpu_thread() / SHARE + turn * ROWS;
}

QUANT_INLINE int my_share(void)
{
    return gpu_thread() % SHARE;
}

/* i * bytes by one instruction: rows and columns of these types have less than 2^32 bytes. */
QUANT_INLINE int64_t product(int i, int64_t bytes)
{
    return (int64_t)((uint64_t)(uint32_t)i * (uint32_t)bytes);
}

/* The number of the tile's column i among all. */
QUANT_INLINE int number_of_column(const struct gpu_tile *t, int i)
{
    return t->listed ? t->listed[i] : t->first_column + i;
}

/* Finds what this thread reads. */
QUANT_INLINE void find_mine(struct gpu_tile *t)
{
    const int last_row = (int)t->rows.n_rows - 1, row = t->first_row + my_row();
    t->row = t->rows.w + product(row < last_row ? row : last_row, t->p->row_bytes);
    GPU_EACH (i, TURNS) {
        const int column = my_column(i), last = t->n_columns - 1;
        const uint32_t number = (uint32_t)number_of_column(t, column < last ? column : last);
        t->column_at[i] = product((int)(t->p->by.per ? number / (uint32_t)t->p->by.repeat : number),
                                  t->p->a.bytes);
    }
}

/* Whether a warp multiplies this thread's column of a turn; warps have 32 columns each. */
QUANT_INLINE bool is_used(const struct gpu_tile *t, int turn)
{
    return my_column(turn) < (t->n_columns + 31) / 32 * 32;
}

/* Starts copying n blocks of each row. */
QUANT_INLINE void copy_rows(const struct gpu_tile *t, int64_t b, int n)
{
    enum { COPIES = 5, ACROSS = 16 * SHARE }; /* of a thread; bytes of four threads */
    const uint8_t *from = t->row + b * t->type->block_bytes;
    const int offset = (int)((uintptr_t)from & 15), at = 16 * my_share(),
              end = offset + n * t->type->block_bytes;
    uint8_t *to = t->s->rows + my_row() * t->pitch + at;
    from += at - offset;
    GPU_EACH (i, COPIES) {
        const bool is_inside = t->type->super && ACROSS * (i + 1) <= t->type->block_bytes;
        if (ACROSS * i < t->pitch - 16 && (is_inside || ACROSS * i + at < end))
            gpu_copy16(to + ACROSS * i, from + ACROSS * i);
    }
    gpu_copies_end();
}

/* Starts copying the codes of n blocks of each column. */
QUANT_INLINE void copy_columns(const struct gpu_tile *t, int64_t b, int n)
{
    enum { COPIES = STEP / (16 * SHARE), ACROSS = 16 * SHARE };
    const int at = 16 * my_share();
    GPU_EACH (turn, TURNS) {
        int8_t *to = &t->s->x[my_column(turn)][at];
        const int8_t *from = t->p->a.first.q + b * t->type->block_len + at + t->column_at[turn];
        if (!is_used(t, turn)) continue;
        GPU_EACH (i, COPIES)
            if (t->type->super || ACROSS * i + at < 32 * n)
                gpu_copy16(to + ACROSS * i, from + ACROSS * i);
    }
    gpu_copies_end();
}

/* What a thread reads of a step of a column besides codes: scales of two blocks, and their products
 * with sums; or four sums of 16 elements, and the scale of the super-block. */
struct column_words {
    uint32_t first[2], second[2];
};

/* Elements i and i + 1 of an array, four bytes each, in this thread's column; i is even. */
QUANT_INLINE void read_two(const struct gpu_tile *t, const void *array, int64_t i, int turn,
                           uint32_t out[2])
{
    const uint32_t *from =
        __builtin_assume_aligned((const char *)array + 4 * i + t->column_at[turn], 8);
    out[0] = from[0];
    out[1] = from[1];
}

/* Also reads scales past the last block. */
QUANT_INLINE void read_column_words(const struct gpu_tile *t, int64_t b, int turn,
                                    struct column_words *out)
{
    const struct quant_act *a = &t->p->a.first;
    if (t->type->super) {
        if (t->type->super->layout->panel.has_min)
            read_two(t, a->sum, 8 * b + 2 * my_share(), turn, out->first);
        out->second[0] =
            *(const uint32_t *)(const void *)((const char *)(a->d + b) + t->column_at[turn]);
    } else {
        read_two(t, a->d, b + 2 * my_share(), turn, out->first);
        if (t->type->form.has_min) read_two(t, a->s, b + 2 * my_share(), turn, out->second);
    }
}

/* Bits 0 to 5 and 6 to 13 of sums become bytes. */
QUANT_INLINE void write_column_words(const struct gpu_tile *t, int turn,
                                     const struct column_words *words)
{
    const int column = my_column(turn), place = place_of_column(column);
    const uint32_t *first = words->first, *second = words->second;
    if (t->type->super) {
        if (my_share() == 0) t->s->of.super.x_d[place] = quant_float_of(second[0]);
        if (t->type->super->layout->panel.has_min) {
            t->s->of.super.high[column][my_share()] =
                gpu_choose(first[0] >> 6, first[1] >> 6, 0x6420);
            t->s->of.super.low[column][my_share()] =
                gpu_choose(first[0] & 0x003f003f, first[1] & 0x003f003f, 0x6420);
        }
    } else {
        GPU_EACH (i, 2) {
            t->s->of.block.x_d[2 * my_share() + i][place] = quant_float_of(first[i]);
            if (t->type->form.has_min)
                t->s->of.block.x_s[2 * my_share() + i][place] = quant_float_of(second[i]);
        }
    }
}

/* ---- Bytes of rows to codes ---- */

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

/* This thread's part of a step of its row, in shared memory. */
QUANT_INLINE const uint8_t *my_bytes(const struct gpu_tile *t, int64_t b)
{
    const uintptr_t from = (uintptr_t)(t->row + b * t->type->block_bytes);
    return t->s->rows + my_row() * t->pitch + (from & 15);
}

/* Unpacks the n blocks of the rows; two for each thread. */
QUANT_INLINE void unpack_blocks(const struct gpu_tile *t, int64_t b, int n)
{
    const struct quant_form32 form = t->type->form;
    const int row = my_row(), place = place_of_row(row);
    const uint8_t *at = my_bytes(t, b);
    for (int i = my_share() * 2; i < my_share() * 2 + 2 && i < n; i++) {
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

/* The second plane. */
QUANT_INLINE int8_t *high_plane(const struct gpu_tile *t)
{
    return (int8_t *)(t->s->rows + ROWS * t->pitch);
}

/* Makes of codes their products with scales: signed bytes, or 256 * high + signed low bytes. Two
 * codes at once, in halves of a word: sums that are not negative, with each product's sign in its
 * highest bits.
 *
 *     codes    3    2    1    0
 *     even          2         0   ==x scale, + bias==>   products 2, 0   ==bytes==>  low, high
 *     odd           3         1   ==================>    products 3, 1
 *
 * In one plane products of codes with an offset are negated: -128 is a byte, 128 is not. */
QUANT_INLINE void scale_codes(const struct tile_type *type, struct gpu_codes *w, uint32_t high[16])
{
    const bool is_signed = type->super->offset == SIGNED;
    const int offset = is_signed ? 128 : type->super->offset,
              sign = type->planes == 1 && offset > 0 ? -1 : 1;
    GPU_EACH (i, 16) {
        const uint32_t codes = w->code[i] ^ (is_signed ? 0x80808080 : 0),
                       scale = (uint32_t)(sign * w->scale[i / 4]),
                       bias = (0x8080 - (uint32_t)offset * scale) * 0x00010001,
                       even = (codes & 0x00ff00ff) * scale + bias,
                       odd = (codes >> 8 & 0x00ff00ff) * scale + bias;
        if (type->planes == 1 && offset == 0) {
            w->code[i] = codes * scale;
            continue;
        }
        w->code[i] = gpu_choose(even, odd, 0x6240) ^ 0x80808080;
        high[i] = gpu_choose(even, odd, 0x7351) ^ 0x80808080;
    }
}

/* Unpacks a super-block of the rows: a part for each thread. */
QUANT_INLINE void unpack_super(const struct gpu_tile *t, int64_t b)
{
    const struct super_type *type = t->type->super;
    const struct quant_panel_form *form = &type->layout->panel;
    const int row = my_row(), part = my_share(), place = place_of_row(row);
    const int first = first_of_part(type, part), second = second_of_part(type, part);
    const uint8_t *at = my_bytes(t, b);
    struct gpu_codes w;
    uint32_t high[16];
    if (type->may_align && (uintptr_t)at % 16 == 0)
        codes_of_part(type, at, part, true, &w);
    else
        codes_of_part(type, at, part, false, &w);
    if (t->type->planes > 0) {
        scale_codes(t->type, &w, high);
    } else {
        GPU_EACH (i, 16)
            if (type->offset > 0) w.code[i] = signed_codes(w.code[i], type->offset);
        GPU_EACH (i, 2) t->s->of.super.scale[i ? second / 32 : first / 32][place] = w.scale[i];
    }
    write_codes(&t->s->w[row][first], w.code);
    write_codes(&t->s->w[row][second], w.code + 8);
    if (t->type->planes == 2) {
        write_codes(high_plane(t) + row * PITCH + first, high);
        write_codes(high_plane(t) + row * PITCH + second, high + 8);
    }
    if (form->has_min) /* of 16 elements each; parts with minima are not halved */
        t->s->of.super.min[row][part] =
            form->sub_len == 32 ? (uint32_t)w.min[0] * 0x0101 + (uint32_t)w.min[1] * 0x01010000
                                : (uint32_t)w.min[0] + ((uint32_t)w.min[1] << 8) +
                                      ((uint32_t)w.min[2] << 16) + ((uint32_t)w.min[3] << 24);
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

/* Loads 32 elements, from number k on, of 16 of the warp's rows in a plane. */
QUANT_INLINE void load_rows(const int8_t *plane, int i, int k, uint32_t a[4])
{
    const int row = row_of_warp() + gpu_lane() % 16;
    gpu_load_matrices(plane + row * PITCH + gpu_lane() / 16 * 16 + 16 * i * PITCH + k, a);
}

/* Of the warp's columns. */
QUANT_INLINE void load_columns(const struct quant_gpu_tile_memory *s, int k, uint32_t b[4][2])
{
    const int lane = gpu_lane(), column = column_of_warp() + lane / 16 * 8 + lane % 8;
    GPU_EACH (i, 2) {
        uint32_t two[4];
        gpu_load_matrices(&s->x[column][lane / 8 % 2 * 16] + 16 * i * PITCH + k, two);
        GPU_EACH (j, 4) b[2 * i + j / 2][j % 2] = two[j];
    }
}

/* Four numbers of this lane's rows, or of its columns. */
QUANT_INLINE void load_four(const float *at, float out[4])
{
    const float *from = __builtin_assume_aligned(at, 16);
    GPU_EACH (i, 4) out[i] = from[i];
}

QUANT_INLINE void load_eight(const float *at, float out[8])
{
    load_four(at, out);
    load_four(at + 4, out + 4);
}

/* This lane's first row and column in arrays of scales. */
QUANT_INLINE int row_of_lane(void)
{
    return row_of_warp() + gpu_lane() / 4 * 4;
}

QUANT_INLINE int column_of_lane(void)
{
    return column_of_warp() + gpu_lane() % 4 * 8;
}

/* Adds the terms of n blocks. */
QUANT_INLINE void multiply_blocks(const struct gpu_tile *t, int n, struct results *to)
{
    const struct quant_gpu_tile_memory *s = t->s;
    GPU_LOOP
    for (int i = 0; i < n; i++) {
        float d[4], m[4], x_d[8], x_s[8];
        uint32_t a[2][4], b[4][2];
        GPU_EACH (j, 2) load_rows(s->w[0], j, 32 * i, a[j]);
        load_columns(s, 32 * i, b);
        load_four(&s->of.block.d[i][row_of_lane()], d);
        load_eight(&s->of.block.x_d[i][column_of_lane()], x_d);
        if (t->type->form.has_min) {
            load_four(&s->of.block.m[i][row_of_lane()], m);
            load_eight(&s->of.block.x_s[i][column_of_lane()], x_s);
        }
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

/* Adds the terms of a super-block, whose sums are those of 16 rows and 8 columns each. */
QUANT_INLINE void add_terms(const struct gpu_tile *t, int first, int n, const int sum[][4],
                            struct results *to)
{
    const struct quant_gpu_tile_memory *s = t->s;
    const bool has_min = t->type->super->layout->panel.has_min;
    float d[4], m[4], x_d[8];
    uint32_t min[4], high[4], low[4];
    load_four(&s->of.super.d[row_of_lane()], d);
    load_eight(&s->of.super.x_d[column_of_lane()], x_d);
    if (has_min) {
        load_four(&s->of.super.m[row_of_lane()], m);
        gpu_load_matrices(s->of.super.min[row_of_warp() + gpu_lane()], min);
        gpu_load_matrices(s->of.super.high[column_of_warp() + gpu_lane()], high);
        gpu_load_matrices(s->of.super.low[column_of_warp() + gpu_lane()], low);
    }
    GPU_EACH (i, n) {
        const int j = first + i;
        int minima[2][4] = {0};
        if (has_min) {
            gpu_multiply_16(min + j / 4 * 2, high[j % 4], minima[0]);
            gpu_multiply_16(min + j / 4 * 2, low[j % 4], minima[1]);
        }
        GPU_EACH (e, 4) {
            const int r = j / 4 * 2 + e / 2, c = j % 4 * 2 + e % 2;
            const float scale = d[r] * x_d[c];
            to->v[j / 4][j % 4][e] +=
                has_min ? fmaf(scale, (float)sum[i][e],
                               m[r] * x_d[c] * (float)(64 * minima[0][e] + minima[1][e]))
                        : scale * (float)sum[i][e];
            gpu_now(to->v[j / 4][j % 4][e]);
        }
    }
}

/* Adds the terms of a super-block whose sub-blocks have 32 elements. */
QUANT_INLINE void multiply_super(const struct gpu_tile *t, struct results *to)
{
    const struct quant_gpu_tile_memory *s = t->s;
    int sum[8][4] = {0};
    GPU_LOOP
    for (int k = 0; k < STEP; k += 64) {
        GPU_EACH (half, 2) {
            const int *scales = s->of.super.scale[k / 32] + half * ROWS + row_of_lane();
            const int *scale = __builtin_assume_aligned(scales, 16);
            uint32_t a[2][4], b[4][2];
            GPU_EACH (i, 2) load_rows(s->w[0], i, k + 32 * half, a[i]);
            load_columns(s, k + 32 * half, b);
            GPU_EACH (j, 8) {
                int products[4] = {0};
                gpu_multiply_32(a[j / 4], b[j % 4], products);
                GPU_EACH (e, 4) sum[j][e] += scale[j / 4 * 2 + e / 2] * products[e];
            }
        }
    }
    add_terms(t, 0, 8, sum, to);
}

/* Of one whose codes are products with scales. */
QUANT_INLINE void multiply_scaled(const struct gpu_tile *t, struct results *to)
{
    const struct quant_gpu_tile_memory *s = t->s;
    GPU_EACH (i, 2) {
        int low[4][4] = {0}, high[4][4] = {0};
        GPU_LOOP
        for (int k = 0; k < STEP; k += 64) {
            GPU_EACH (half, 2) {
                uint32_t a[4], b[4][2];
                load_rows(s->w[0], i, k + 32 * half, a);
                load_columns(s, k + 32 * half, b);
                GPU_EACH (j, 4) gpu_multiply_32(a, b[j], low[j]);
                if (t->type->planes == 1) continue;
                load_rows(high_plane(t), i, k + 32 * half, a);
                GPU_EACH (j, 4) gpu_multiply_32(a, b[j], high[j]);
            }
        }
        GPU_EACH (j, 16) {
            int *sum = &low[j / 4][j % 4];
            *sum = t->type->planes == 2         ? 256 * high[j / 4][j % 4] + *sum
                   : t->type->super->offset > 0 ? -*sum
                                                : *sum;
        }
        add_terms(t, 4 * i, 4, low, to);
    }
}

QUANT_INLINE void write_results(const struct gpu_tile *t, const struct results *from)
{
    const int row = t->first_row + row_of_warp() + gpu_lane() / 4,
              n_left = (int)t->rows.n_rows - row;
    GPU_EACH (i, 8) {
        const int column = column_of_warp() + i / 2 * 8 + gpu_lane() % 4 * 2 + i % 2;
        if (column < t->n_columns) {
            float *to = t->rows.out + number_of_column(t, column) * t->p->out_stride + row;
            GPU_EACH (j, 4)
                if (8 * j < n_left) to[8 * j] = from->v[j / 2][i / 2][j % 2 * 2 + i % 2];
        }
    }
}

/* The tile of this block. Adjacent blocks have the same rows and other columns, or the same group
 * and other rows. */
QUANT_INLINE struct gpu_tile tile_of(const struct quant_gpu_tile *p, const struct tile_type *type)
{
    const struct quant_gpu_gemv *gemv = &p->gemv;
    const struct quant_gpu_matrices *by = &gemv->by;
    const struct quant_gpu_rows rows = quant_gpu_rows_of(gemv, gpu_block());
    const int block = gpu_block() - (int)rows.block,
              n_down = (int)((rows.n_rows + ROWS - 1) / ROWS),
              n_across = (int)((p->n_columns + COLUMNS - 1) / COLUMNS),
              across = by->per ? block / n_down : block % n_across;
    struct gpu_tile t = {
        .p = gemv,
        .s = gpu_shared(),
        .type = type,
        .rows = rows,
        .first_row = (by->per ? block % n_down : block / n_across) * ROWS,
        .first_column = across * COLUMNS,
        .n_columns = (int)p->n_columns - across * COLUMNS,
        .pitch = (int)quant_gpu_stage_bytes((uint32_t)(STEP / type->block_len * type->block_bytes)),
    };
    if (by->per && by->ids) {
        const struct quant_gpu_group *group = &p->groups[across];
        t.rows.w = group->matrix < by->n ? rows.w + group->matrix * by->bytes : NULL;
        t.listed = p->columns + group->first;
        t.n_columns = group->n;
    } else if (by->per) {
        const int per = (int)by->per, of_each = (per + COLUMNS - 1) / COLUMNS,
                  first = across % of_each * COLUMNS;
        t.rows.w = rows.w + across / of_each * by->bytes;
        t.first_column = across / of_each * per + first;
        t.n_columns = per - first;
    }
    return t;
}

QUANT_INLINE void multiply_tile(const struct quant_gpu_tile *p, const struct tile_type *type)
{
    const int per_step = STEP / type->block_len;
    const int64_t n_blocks = p->gemv.k / type->block_len;
    struct gpu_tile t = tile_of(p, type);
    struct results results;
    if (t.n_columns <= 0) return;
    GPU_EACH (i, 32)
        results.v[i / 16][i / 4 % 4][i % 4] = t.rows.w ? 0.0f : quant_float_of(0x7fc00000);
    find_mine(&t);
    if (t.rows.w) copy_rows(&t, 0, n_blocks < per_step ? (int)n_blocks : per_step);
    GPU_LOOP
    for (int64_t b = 0; t.rows.w && b < n_blocks; b += per_step) {
        const int64_t next = b + per_step, n_next = n_blocks - next;
        const int n = n_next < 0 ? (int)(n_blocks - b) : per_step;
        struct column_words words[TURNS];
        gpu_copies_wait(0);
        gpu_sync(); /* the rows' bytes are there; the step before is multiplied */
        GPU_EACH (turn, TURNS) read_column_words(&t, b, turn, &words[turn]);
        copy_columns(&t, b, n);
        if (type->super)
            unpack_super(&t, b);
        else
            unpack_blocks(&t, b, n);
        GPU_EACH (turn, TURNS) write_column_words(&t, turn, &words[turn]);
        gpu_copies_wait(0);
        gpu_sync(); /* the step is there, and the rows' bytes are read */
        if (n_next > 0) copy_rows(&t, next, n_next < per_step ? (int)n_next : per_step);
        if (column_of_warp() >= t.n_columns) continue;
        if (!type->super)
            multiply_blocks(&t, n, &results);
        else if (type->planes > 0)
            multiply_scaled(&t, &results);
        else
            multiply_super(&t, &results);
    }
    write_results(&t, &results);
}

#define TILE_32(NAME)                                                                              \
    GPU_KERNEL(quant_gpu_tile_##NAME, quant_gpu_tile)                                              \
    {                                                                                              \
        const struct tile_type type = {32, sizeof(struct NAME##_block), NAME##_form, NULL, 0};     \
        multiply_tile(&p, &type);                                                                  \
    }
/* PLANES: 0 for types with 8 scales, otherwise those of quant_gpu_tile_planes. */
#define TILE_256(NAME, PLANES)                                                                     \
    GPU_KERNEL(quant_gpu_tile_##NAME, quant_gpu_tile)                                              \
    {                                                                                              \
        const struct tile_type type = {                                                            \
            SUPER_LEN, sizeof(struct NAME##_block), {0}, &NAME##_type, PLANES};                    \
        multiply_tile(&p, &type);                                                                  \
    }

TILE_32(q4_0)
TILE_32(q4_1)
TILE_32(q5_0)
TILE_32(q5_1)
TILE_32(q8_0)
TILE_32(iq4_nl)
TILE_32(mxfp4)
TILE_256(q2_k, 1)
TILE_256(q3_k, 1)
TILE_256(q4_k, 0)
TILE_256(q5_k, 0)
TILE_256(q6_k, 2)
TILE_256(iq4_xs, 0)

#define TILE_GRID(NAME, PLANES)                                                                    \
    GPU_KERNEL(quant_gpu_tile_##NAME, quant_gpu_tile)                                              \
    {                                                                                              \
        const struct super_type super = GRID_TYPE(NAME, p.gemv.id);                                \
        const struct tile_type type = {SUPER_LEN, p.gemv.block_bytes, {0}, &super, PLANES};        \
        multiply_tile(&p, &type);                                                                  \
    }

TILE_GRID(grid_32, 0)
TILE_GRID(grid_16, 2)

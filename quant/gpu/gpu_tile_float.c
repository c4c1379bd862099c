/* quant/gpu/gpu_tile_float.c: device code: products of rows with many columns, for float types of
 * weights, on the GPU's float units: its matrix units have another order of sums.
 *
 * A block of threads computes 64 rows times 32 columns, in steps of 32 elements of k. A thread has
 * one of the 16 lanes of the canonical sums (quant/quant.h) of 16 rows times 8 columns:
 *
 *     memory          =====>    elements as floats, each read and converted by one thread
 *     elements        =====>    shared memory, sorted by lanes; two steps, in turn
 *     shared memory   =====>    24 elements of a lane; 128 multiply-adds of sums in registers
 *     sums            =====>    the tree over lanes, by exchanges: a thread gets 8 results
 *
 * BF16: a multiply-add of floats differs from the canonical one only if its result is smaller than
 * 2^-126 or rounds to it. Normal BF16 numbers with exponents e and f (biased by 127) are multiples
 * of 2^(e - 134) and 2^(f - 134); if e + f >= 142 for all of them that are not zero, all products
 * and thus all sums are multiples of 2^-126, and none is smaller but zero. Otherwise the block
 * computes its results again, by canonical steps. */
#include "quant/gpu/gpu_floats.h"
#include "quant/gpu/gpu_quant.h"
#if defined(__NVPTX__) /* device code has no linker */
#include "quant/half.c"
#endif

enum {
    ROWS = QUANT_GPU_FLOAT_TILE_ROWS,
    COLUMNS = QUANT_GPU_FLOAT_TILE_COLUMNS,
    STEP = QUANT_GPU_FLOAT_STEP,
    THREADS = QUANT_GPU_FLOAT_THREADS,
    WARPS = THREADS / GPU_WARP,
    MY_ROWS = 16, /* of a thread */
    MY_COLUMNS = 8,
    RESULTS = MY_ROWS * MY_COLUMNS,
    LEAST_EXPONENTS = 142 /* of two numbers of BF16 */
};

/* The block of threads: its first row and column. */
struct float_tile {
    const struct quant_gpu_gemv *p;
    enum quant_id id;
    struct quant_gpu_float_memory *s;
    int first_row, first_column, n_columns;
};

/* Elements of a step that a thread reads: number gpu_lane() of 4 adjacent rows or columns each. */
struct step_elements {
    float w[ROWS / 4 / WARPS][4], x[4];
};

/* The least exponents of a thread's numbers so far, minus 1; of zeros: 2^32 - 1. */
struct least {
    uint32_t w, x;
};

/* Row i; past the last row: that row. */
QUANT_INLINE const uint8_t *row_at(const struct float_tile *t, int i)
{
    const int last = (int)(t->p->n_rows - 1), row = t->first_row + i;
    return t->p->w + (row < last ? row : last) * t->p->row_bytes;
}

/* Column i; past the last column: that column. */
QUANT_INLINE const char *column_at(const struct float_tile *t, int i)
{
    const int last = t->n_columns - 1, column = t->first_column + i;
    return (const char *)t->p->a.first.q + (column < last ? column : last) * t->p->a.bytes;
}

QUANT_INLINE uint32_t least_of(uint32_t a, uint32_t b)
{
    return a < b ? a : b;
}

/* The rows and columns of this thread's elements. */
struct sources {
    const uint8_t *w[ROWS / WARPS];
    const char *x[4];
};

/* Reads element i of the rows and columns, if it is in them. Elements past their ends change no
 * sum: of BF16, zeros to a multiple of 32; of others, -0 times 0, because -0 is added. */
QUANT_INLINE void read_elements(const struct float_type *type, const struct sources *from,
                                int64_t i, bool is_in, struct step_elements *to,
                                struct least *least)
{
    GPU_EACH (n, ROWS / WARPS) {
        float w = type->is_bf16 ? 0.0f : -0.0f;
        if (is_in) w = type->aligned(from->w[n], i);
        if (type->is_bf16) {
            w = bf16_flush(w);
            least->w = least_of(least->w, (quant_bits_of(w) >> 23 & 255) - 1u);
        }
        to->w[n / 4][n % 4] = w;
    }
    GPU_EACH (n, 4) {
        float x = 0.0f;
        if (is_in && !type->is_bf16) x = ((const float *)(const void *)from->x[n])[i];
        if (is_in && type->is_bf16)
            x = quant_bfloat_to_float(((const uint16_t *)(const void *)from->x[n])[i]);
        if (type->is_bf16) {
            x = bf16_flush(x);
            least->x = least_of(least->x, (quant_bits_of(x) >> 23 & 255) - 1u);
        }
        to->x[n] = x;
    }
}

/* Reads this thread's elements of the step from k on. */
QUANT_INLINE void read_step(const struct float_tile *t, int64_t k, struct step_elements *to,
                            struct least *least)
{
    const int64_t i = k + gpu_lane();
    const bool is_in = i < t->p->k;
    struct sources from;
    GPU_EACH (n, ROWS / WARPS) {
        from.w[n] = row_at(t, 4 * (gpu_warp() + n / 4 * WARPS) + n % 4);
    }
    GPU_EACH (n, 4) from.x[n] = column_at(t, 4 * gpu_warp() + n);
    switch (t->id) {
    case QUANT_F32:
        read_elements(&f32_type, &from, i, is_in, to, least);
        break;
    case QUANT_F16:
        read_elements(&f16_type, &from, i, is_in, to, least);
        break;
    case QUANT_BF16:
        read_elements(&bf16_type, &from, i, is_in, to, least);
        break;
    default:
        read_elements(&nvfp4_type, &from, i, is_in, to, least);
        break;
    }
}

/* Where the elements of lane l for row or column 0 are, first or second, of n rows or columns. */
QUANT_INLINE int place_of(int l, int second, int n)
{
    return (16 * second + l) * (n + 4) + 16 * second;
}

QUANT_INLINE void write_4(float *to, const float from[4])
{
    float *words = __builtin_assume_aligned(to, 16);
    GPU_EACH (i, 4) words[i] = from[i];
}

QUANT_INLINE void write_elements(const struct float_tile *t, int step,
                                 const struct step_elements *from)
{
    const bool is_bf16 = t->id == QUANT_BF16;
    const int i = gpu_lane(), l = is_bf16 ? i / 2 : i % 16, second = is_bf16 ? 1 - i % 2 : i / 16;
    float *w = t->s->step[step].w + place_of(l, second, ROWS) + 4 * gpu_warp();
    GPU_EACH (n, ROWS / 4 / WARPS) write_4(w + 4 * WARPS * n, from->w[n]);
    write_4(t->s->step[step].x + place_of(l, second, COLUMNS) + 4 * gpu_warp(), from->x);
}

/* This thread's lane, and its first row and column in the tile: the threads of a warp have the same
 * columns. */
QUANT_INLINE int my_lane(void)
{
    return gpu_lane() % 16;
}

QUANT_INLINE int my_row(void)
{
    return (gpu_warp() / 4 * 2 + gpu_lane() / 16) * MY_ROWS;
}

QUANT_INLINE int my_column(void)
{
    return gpu_warp() % 4 * MY_COLUMNS;
}

QUANT_INLINE void read_4(const float *from, float *to)
{
    const float *words = __builtin_assume_aligned(from, 16);
    GPU_EACH (i, 4) to[i] = words[i];
}

/* Adds the products of a step to the sums of MY_COLUMNS results of each row. */
QUANT_INLINE void multiply_step(const struct float_tile *t, int step, float sum[RESULTS])
{
    GPU_LOOP
    for (int second = 0; second < 2; second++) {
        float w[MY_ROWS], x[MY_COLUMNS];
        const float *my_w = t->s->step[step].w + place_of(my_lane(), second, ROWS) + my_row(),
                    *my_x = t->s->step[step].x + place_of(my_lane(), second, COLUMNS) + my_column();
        GPU_EACH (i, MY_ROWS / 4) read_4(my_w + 4 * i, w + 4 * i);
        GPU_EACH (i, MY_COLUMNS / 4) read_4(my_x + 4 * i, x + 4 * i);
        GPU_EACH (r, MY_ROWS)
            GPU_EACH (c, MY_COLUMNS)
                sum[MY_COLUMNS * r + c] = fmaf(w[r], x[c], sum[MY_COLUMNS * r + c]);
    }
}

/* One step of the tree for 2n results: adds the sums of lanes whose numbers differ in `mask`; lanes
 * with that bit get the upper n results, the others the lower ones. */
QUANT_INLINE void add_lanes(float *sum, int n, int mask)
{
    const bool upper = gpu_lane() & mask;
    GPU_EACH (i, n) {
        const float low = sum[i], high = sum[n + i];
        const uint32_t other = gpu_shuffle_xor(quant_bits_of(upper ? low : high), mask);
        sum[i] = (upper ? high : low) + quant_float_of(other);
    }
}

/* After the tree, lane l has the results of row l of its 16. */
QUANT_INLINE void write_results(const struct float_tile *t, float sum[RESULTS])
{
    add_lanes(sum, RESULTS / 2, 8);
    add_lanes(sum, RESULTS / 4, 4);
    add_lanes(sum, RESULTS / 8, 2);
    add_lanes(sum, RESULTS / 16, 1);
    const int64_t row = t->first_row + my_row() + my_lane();
    GPU_EACH (i, MY_COLUMNS) {
        const int column = t->first_column + my_column() + i;
        if (row < t->p->n_rows && column < t->n_columns)
            t->p->out[column * t->p->out_stride + row] = sum[i];
    }
}

/* ---- BF16 ---- */

/* The least of the numbers of a warp. */
QUANT_INLINE uint32_t least_of_warp(uint32_t n)
{
    for (int mask = GPU_WARP / 2; mask; mask /= 2) n = least_of(n, gpu_shuffle_xor(n, mask));
    return n;
}

/* Whether sums of the block may be smaller than 2^-126; by all its threads. */
QUANT_INLINE bool may_be_tiny(const struct float_tile *t, struct least least)
{
    least.w = least_of_warp(least.w);
    least.x = least_of_warp(least.x);
    if (gpu_lane() == 0) {
        t->s->least[0][gpu_warp()] = least.w;
        t->s->least[1][gpu_warp()] = least.x;
    }
    gpu_sync(); /* the exponents of all warps are written */
    for (int i = 0; i < WARPS; i++) {
        least.w = least_of(least.w, t->s->least[0][i]);
        least.x = least_of(least.x, t->s->least[1][i]);
    }
    return (uint64_t)least.w + least.x + 2 < LEAST_EXPONENTS;
}

/* Computes each result by canonical steps of 16 lanes. */
QUANT_INLINE void multiply_by_lanes(const struct float_tile *t)
{
    GPU_LOOP
    for (int i = gpu_thread() / 16; i < ROWS * COLUMNS; i += THREADS / 16) {
        const int64_t row = t->first_row + i % ROWS;
        const int column = t->first_column + i / ROWS;
        const bool is_in = row < t->p->n_rows && column < t->n_columns;
        float sum = 0.0f;
        if (is_in) {
            const struct quant_act a = quant_gpu_column(&t->p->a, column);
            sum = float_sum(&bf16_type, true, t->p->k, t->p->w + row * t->p->row_bytes, &a,
                            my_lane());
        }
        sum = float_tree(sum);
        if (is_in && my_lane() == 0) t->p->out[column * t->p->out_stride + row] = sum;
    }
}

/* Whether the results were computed. */
QUANT_INLINE bool multiply_by_steps(const struct float_tile *t)
{
    struct step_elements elements = {0};
    struct least least = {~0u, ~0u};
    float sum[RESULTS] = {0};
    int step = 1;
    GPU_LOOP
    for (int64_t k = -STEP; k < t->p->k; k += STEP, step = 1 - step) {
        const bool has_next = k + STEP < t->p->k;
        gpu_sync(); /* the step is written, and the one before is multiplied */
        if (has_next) read_step(t, k + STEP, &elements, &least);
        if (k >= 0 && t->first_column + my_column() < t->n_columns) multiply_step(t, step, sum);
        if (has_next) write_elements(t, 1 - step, &elements);
    }
    if (t->id == QUANT_BF16 && may_be_tiny(t, least)) return false;
    write_results(t, sum);
    return true;
}

GPU_KERNEL(quant_gpu_float_tile, quant_gpu_tile)
{
    const int n_across = (int)((p.n_columns + COLUMNS - 1) / COLUMNS);
    const struct float_tile t = {
        .p = &p.gemv,
        .id = p.gemv.id,
        .s = gpu_shared(),
        .first_row = gpu_block() / n_across * ROWS,
        .first_column = gpu_block() % n_across * COLUMNS,
        .n_columns = (int)p.n_columns,
    };
    if (!multiply_by_steps(&t)) multiply_by_lanes(&t);
}

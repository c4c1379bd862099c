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
#include "quant/act.h"
#include "quant/block32/iq4_nl.h"
#include "quant/block32/mxfp4.h"
#include "quant/block32/q4_0.h"
#include "quant/block32/q4_1.h"
#include "quant/block32/q5_0.h"
#include "quant/block32/q5_1.h"
#include "quant/block32/q8_0.h"
#include "quant/gpu/dialect.h"
#include "quant/gpu/gpu_quant.h"
#include "quant/half.h"
#include "quant/super/iq4_xs.h"
#include "quant/super/q2_k.h"
#include "quant/super/q3_k.h"
#include "quant/super/q4_k.h"
#include "quant/super/q5_k.h"
#include "quant/super/q6_k.h"
#if defined(__NVPTX__) /* device code has no linker */
#include "quant/half.c"
#endif

struct sums {
    int products, minima;
};

/* The column's elements that a part of a block is multiplied with, which a lane reads once for all
 * rows: codes, four in each word, and their sums by 16, or by 32 in blocks of 32. */
struct column_part {
    uint32_t x[16];
    int sum[4];
};
/* Reads those of part `part` of block b. */
typedef void column_of(const struct quant_act *a, int64_t b, int part, struct column_part *c);
/* Adds the sums of part `part` of the block at `at`. */
typedef void part_of(const uint8_t *at, int part, const struct column_part *c, struct sums *sums);
/* v of the block. */
typedef float value_of(const uint8_t *at, int64_t b, const struct quant_act *a, struct sums sums);

/* ---- Words of codes ---- */

/* Reads n little-endian words at any address in shared memory; also touches the word after them. */
QUANT_INLINE void read_words(const uint8_t *at, int n, uint32_t *words)
{
    const int offset = (int)((uintptr_t)at & 3);
    const uint32_t *aligned = (const uint32_t *)(const void *)(at - offset);
    uint32_t low = aligned[0];
    for (int i = 0; i < n; i++) {
        const uint32_t high = aligned[i + 1];
        words[i] = gpu_funnel(low, high, 8 * offset);
        low = high;
    }
}

/* As read_words, at a multiple of 16. */
QUANT_INLINE void read_aligned_words(const uint8_t *at, int n, uint32_t *words)
{
    const uint32_t *from = __builtin_assume_aligned(at, 16);
    for (int i = 0; i < n; i++) words[i] = from[i];
}

/* Reads n words of the column's codes from element i on, both multiples of 4. */
QUANT_INLINE void read_column(const struct quant_act *a, int64_t i, int n, uint32_t *words)
{
    const uint32_t *from = __builtin_assume_aligned(a->q + 4 * (i / 4), 16);
    for (int j = 0; j < n; j++) words[j] = from[j];
}

/* Bit 4 of the bytes of word i, from bit 4i + j of `bits` for byte j. */
QUANT_INLINE uint32_t fifth_bits(uint32_t bits, int i)
{
    return ((bits >> 4 * i & 15) * 0x00204081 & 0x01010101) << 4;
}

/* The entries of a table of 16 bytes that the low nibbles of the bytes of `codes` choose. */
QUANT_INLINE uint32_t look_up(const int8_t table[16], uint32_t codes)
{
    uint32_t t[4];
    memcpy(t, table, sizeof t);
    /* Nibbles of 4 bytes side by side, without their bit 3, which then chooses the half. */
    const uint32_t c = codes | codes >> 4, n = (c & 255) | (c >> 8 & 0xff00);
    const uint32_t low = gpu_choose(t[0], t[1], n & 0x7777),
                   high = gpu_choose(t[2], t[3], n & 0x7777);
    return gpu_choose(low, high, 0x3210 | (n >> 1 & 0x4444));
}

/* ---- Blocks of 32: a lane each ---- */

QUANT_INLINE void column32(const struct quant_act *a, int64_t b, int part, struct column_part *c)
{
    (void)part;
    read_column(a, 32 * b, 8, c->x);
    c->sum[0] = a->sum[b];
}

QUANT_INLINE void part32(struct quant_form32 form, const uint8_t *at, const struct column_part *c,
                         struct sums *sums)
{
    uint32_t code[8];
    if (form.bytes) {
        read_words(at + form.codes, 8, code);
        GPU_UNROLL
        for (int i = 0; i < 8; i++)
            sums->products = gpu_dot4_signed(code[i], c->x[i], sums->products);
        return;
    }
    read_words(at + form.codes, 4, code);
    GPU_UNROLL
    for (int i = 0; i < 4; i++) {
        code[4 + i] = code[i] >> 4 & 0x0f0f0f0f;
        code[i] &= 0x0f0f0f0f;
    }
    if (form.codebook) {
        GPU_UNROLL
        for (int i = 0; i < 8; i++)
            sums->products =
                gpu_dot4_signed(look_up(form.codebook, code[i]), c->x[i], sums->products);
        return;
    }
    if (form.fifth) {
        uint32_t bits;
        read_words(at + form.fifth, 1, &bits);
        GPU_UNROLL
        for (int i = 0; i < 8; i++) code[i] |= fifth_bits(bits, i);
    }
    GPU_UNROLL
    for (int i = 0; i < 8; i++) sums->products = gpu_dot4(code[i], c->x[i], sums->products);
    if (form.offset) sums->products -= form.offset * c->sum[0];
}

QUANT_INLINE float value32(struct quant_form32 form, const uint8_t *at, int64_t b,
                           const struct quant_act *a, struct sums sums)
{
    const float d = form.e8m0 ? quant_e8m0(*at) : quant_load_half(at), scale = d * a->d[b];
    return form.has_min ? fmaf(scale, (float)sums.products, quant_load_half(at + 2) * a->s[b])
                        : scale * (float)sums.products;
}

/* ---- Super-blocks: four lanes each ---- */

/* Part p has elements 64p to 64p + 63. */
QUANT_INLINE void column_of_64(const struct quant_act *a, int64_t b, int part,
                               struct column_part *c)
{
    const int64_t i = SUPER_LEN * b + 64 * part;
    read_column(a, i, 16, c->x);
    GPU_UNROLL
    for (int s = 0; s < 4; s++) c->sum[s] = a->sum[i / 16 + s];
}

/* Part 2h + t has elements 128h + 32t + l and 128h + 64 + 32t + l, l < 32. */
QUANT_INLINE void column_of_halves(const struct quant_act *a, int64_t b, int part,
                                   struct column_part *c)
{
    const int64_t i = SUPER_LEN * b + 128 * (part / 2) + 32 * (part % 2);
    read_column(a, i, 8, c->x);
    read_column(a, i + 64, 8, c->x + 8);
    GPU_UNROLL
    for (int s = 0; s < 4; s++) c->sum[s] = a->sum[i / 16 + s / 2 * 4 + s % 2];
}

/* The product of n words with those of the column. */
QUANT_INLINE int dot_words(int n, const uint32_t *code, const uint32_t *x)
{
    int sum = 0;
    for (int j = 0; j < n; j++) sum = gpu_dot4(code[j], x[j], sum);
    return sum;
}

QUANT_INLINE float value256(const struct quant_panel_form *form, float d, float m, int64_t b,
                            const struct quant_act *a, struct sums sums)
{
    const float scale = d * a->d[b];
    return form->has_min ? fmaf(scale, (float)sums.products, m * a->d[b] * (float)sums.minima)
                         : scale * (float)sums.products;
}

/* Q4_K and Q5_K: sub-block s, the first or second half of its part. */
QUANT_INLINE void add_sub_block(const uint32_t scale[3], int s, int half, const uint32_t code[8],
                                const struct column_part *c, struct sums *sums)
{
    const int j = 8 * (s % 4), first = scale[0] >> j & 255, second = scale[1] >> j & 255,
              third = scale[2] >> j & 255;
    const int factor = s < 4 ? first & 63 : (third & 15) | (first >> 6) << 4;
    const int min = s < 4 ? second & 63 : third >> 4 | (second >> 6) << 4;
    sums->products += factor * dot_words(8, code, c->x + 8 * half);
    sums->minima += min * (c->sum[2 * half] + c->sum[2 * half + 1]);
}

QUANT_INLINE void q4_k_part_of(const uint8_t *at, int part, const struct column_part *c,
                               bool aligned, struct sums *sums)
{
    const struct q4_k_block *w = (const struct q4_k_block *)at;
    uint32_t head[4], q[8], code[8];
    if (aligned) {
        read_aligned_words(at, 4, head);
        read_aligned_words(w->q + 32 * part, 8, q);
    } else {
        read_words(at, 4, head);
        read_words(w->q + 32 * part, 8, q);
    }
    GPU_UNROLL
    for (int half = 0; half < 2; half++) {
        GPU_UNROLL
        for (int i = 0; i < 8; i++) code[i] = q[i] >> 4 * half & 0x0f0f0f0f;
        add_sub_block(head + 1, 2 * part + half, half, code, c, sums);
    }
}

QUANT_INLINE void q5_k_part_of(const uint8_t *at, int part, const struct column_part *c,
                               bool aligned, struct sums *sums)
{
    const struct q5_k_block *w = (const struct q5_k_block *)at;
    uint32_t head[4], q[8], high[8], code[8];
    if (aligned) {
        read_aligned_words(at, 4, head);
        read_aligned_words(w->q + 32 * part, 8, q);
        read_aligned_words(w->high, 8, high);
    } else {
        read_words(at, 4, head);
        read_words(w->q + 32 * part, 8, q);
        read_words(w->high, 8, high);
    }
    GPU_UNROLL
    for (int half = 0; half < 2; half++) {
        const int s = 2 * part + half;
        GPU_UNROLL
        for (int i = 0; i < 8; i++)
            code[i] = (q[i] >> 4 * half & 0x0f0f0f0f) | (high[i] >> s & 0x01010101) << 4;
        add_sub_block(head + 1, s, half, code, c, sums);
    }
}

QUANT_INLINE void q6_k_part(const uint8_t *at, int part, const struct column_part *c,
                            struct sums *sums)
{
    const struct q6_k_block *w = (const struct q6_k_block *)at;
    const int h = part / 2, t = part % 2;
    uint32_t low[8], high[8], code[8];
    read_words(w->low + 64 * h + 32 * t, 8, low);
    read_words(w->high + 32 * h, 8, high);
    GPU_UNROLL
    for (int half = 0; half < 2; half++) {
        const int g = t + 2 * half;
        GPU_UNROLL
        for (int j = 0; j < 8; j++)
            code[j] = (low[j] >> 4 * half & 0x0f0f0f0f) | (high[j] >> 2 * g & 0x03030303) << 4;
        GPU_UNROLL
        for (int s = 0; s < 2; s++)
            sums->products +=
                w->scale[8 * h + 2 * g + s] *
                (dot_words(4, code + 4 * s, c->x + 8 * half + 4 * s) - 32 * c->sum[2 * half + s]);
    }
}

/* Q2_K and Q3_K: part 2h + t has the codes 2t and 2t + 1 of the bytes of half h. */
QUANT_INLINE void q2_k_part(const uint8_t *at, int part, const struct column_part *c,
                            struct sums *sums)
{
    const struct q2_k_block *w = (const struct q2_k_block *)at;
    const int h = part / 2, t = part % 2;
    uint32_t q[8], code[8];
    read_words(w->q + 32 * h, 8, q);
    GPU_UNROLL
    for (int half = 0; half < 2; half++) {
        const int g = 2 * t + half;
        GPU_UNROLL
        for (int j = 0; j < 8; j++) code[j] = q[j] >> 2 * g & 0x03030303;
        GPU_UNROLL
        for (int s = 0; s < 2; s++) {
            const int scale = w->scale[8 * h + 2 * g + s];
            sums->products += (scale & 15) * dot_words(4, code + 4 * s, c->x + 8 * half + 4 * s);
            sums->minima += (scale >> 4) * c->sum[2 * half + s];
        }
    }
}

QUANT_INLINE void q3_k_part(const uint8_t *at, int part, const struct column_part *c,
                            struct sums *sums)
{
    const struct q3_k_block *w = (const struct q3_k_block *)at;
    const int h = part / 2, t = part % 2;
    uint32_t q[8], high[8], code[8];
    read_words(w->q + 32 * h, 8, q);
    read_words(w->high, 8, high);
    GPU_UNROLL
    for (int half = 0; half < 2; half++) {
        const int g = 2 * t + half;
        GPU_UNROLL
        for (int j = 0; j < 8; j++)
            code[j] = (q[j] >> 2 * g & 0x03030303) | (high[j] >> (4 * h + g) & 0x01010101) << 2;
        GPU_UNROLL
        for (int s = 0; s < 2; s++) {
            const int n = 8 * h + 2 * g + s;
            const int scale =
                (w->scale[n % 8] >> n / 8 * 4 & 15) | (w->scale[8 + n % 4] >> n / 4 * 2 & 3) << 4;
            sums->products += (scale - 32) * (dot_words(4, code + 4 * s, c->x + 8 * half + 4 * s) -
                                              4 * c->sum[2 * half + s]);
        }
    }
}

QUANT_INLINE void iq4_xs_part(const uint8_t *at, int part, const struct column_part *c,
                              struct sums *sums)
{
    const struct iq4_xs_block *w = (const struct iq4_xs_block *)at;
    const int scale_high = quant_load16(&w->scale_high) >> 4 * part;
    uint32_t q[8];
    read_words(w->q + 32 * part, 8, q);
    GPU_UNROLL
    for (int s = 0; s < 2; s++) {
        const uint32_t *x = c->x + 8 * s;
        int sum = 0;
        GPU_UNROLL
        for (int j = 0; j < 4; j++) {
            const uint32_t code = q[4 * s + j];
            sum = gpu_dot4_signed(look_up(quant_codebook_iq4, code & 0x0f0f0f0f), x[j], sum);
            sum =
                gpu_dot4_signed(look_up(quant_codebook_iq4, code >> 4 & 0x0f0f0f0f), x[4 + j], sum);
        }
        const int scale = (w->scale_low[part] >> 4 * s & 15) | (scale_high >> 2 * s & 3) << 4;
        sums->products += (scale - 32) * sum;
    }
}

/* ---- Rows ---- */

/* Starts copying `bytes` bytes at `from` to a stage, whose addresses modulo 16 are equal. */
QUANT_INLINE void start_copy(const uint8_t *from, int64_t bytes, uint8_t *stage)
{
    const int offset = (int)((uintptr_t)from & 15);
    for (int i = 16 * gpu_lane(); i < offset + bytes; i += 16 * GPU_WARP)
        gpu_copy16(stage + i, from - offset + i);
}

/* A type: blocks of block_len elements in block_bytes bytes, each computed by `lanes` lanes: 1, or
 * QUANT_GPU_STAGED_ROWS. */
struct staged {
    int block_len, block_bytes, lanes;
    bool has_min;
    column_of *column;
    part_of *part;
    value_of *value;
};

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
    const int64_t first = (int64_t)gpu_block() * ROWS;
    const struct quant_gpu_factors of = quant_gpu_factors(p, gpu_block_y());
    const struct quant_act a = of.a;
    uint8_t *step = (uint8_t *)gpu_shared() + gpu_warp() * ROWS * step_bytes;
    float *terms = (float *)(void *)((uint8_t *)gpu_shared() + warps * ROWS * step_bytes);
    const int block = gpu_lane() / lanes, lane_part = gpu_lane() % lanes;
    float acc = of.w ? 0.0f : quant_float_of(0x7fc00000);
    const uint8_t *w[ROWS];
    GPU_UNROLL
    for (int r = 0; r < ROWS; r++)
        w[r] = of.w + (first + r < p->n_rows ? first + r : p->n_rows - 1) * p->row_bytes;
    for (int b_round = 0; of.w && b_round < n_blocks; b_round += per_round) {
        const int b_step = b_round + gpu_warp() * per_step, n_left = n_blocks - b_step;
        const int n = n_left < per_step ? n_left : per_step, b = b_step + block;
        float *to = terms + gpu_warp() * per_step + block;
        const uint8_t *at[ROWS];
        int products[ROWS], minima[ROWS];
        GPU_UNROLL
        for (int r = 0; r < ROWS; r++) {
            const uint8_t *from = w[r] + (int64_t)b_step * bytes;
            if (n > 0) start_copy(from, n * bytes, step + r * step_bytes);
            at[r] = step + r * step_bytes + ((uintptr_t)from & 15) + block * bytes;
        }
        gpu_copies_end();
        struct column_part column = {0};
        if (block < n) type->column(&a, b, lane_part, &column);
        gpu_copies_wait(0);
        gpu_sync_warp(); /* the bytes are there, those of all lanes */
        GPU_UNROLL
        for (int r = 0; r < ROWS; r++) {
            struct sums sums = {0};
            if (block < n) type->part(at[r], lane_part, &column, &sums);
            products[r] = sums.products;
            minima[r] = sums.minima;
        }
        if (lanes == 1) {
            GPU_UNROLL
            for (int r = 0; r < ROWS; r++)
                if (block < n)
                    to[r * per_round] =
                        type->value(at[r], b, &a, (struct sums){products[r], minima[r]});
        } else {
            const struct sums sums = {sum_of_lanes(products),
                                      type->has_min ? sum_of_lanes(minima) : 0};
            const uint8_t *my =
                lane_part & 2 ? (lane_part & 1 ? at[3] : at[2]) : (lane_part & 1 ? at[1] : at[0]);
            if (block < n) to[lane_part * per_round] = type->value(my, b, &a, sums);
        }
        /* All terms of the round are written, and those of the round before are added. */
        gpu_sync();
        const int n_terms = n_blocks - b_round < per_round ? n_blocks - b_round : per_round;
        if (gpu_thread() < ROWS)
            for (int i = 0; i < n_terms; i++) acc += terms[gpu_thread() * per_round + i];
        terms += (b_round / per_round % 2 ? -1 : 1) * ROWS * per_round;
    }
    if (gpu_thread() < ROWS && first + gpu_thread() < p->n_rows)
        p->out[gpu_block_y() * p->out_stride + first + gpu_thread()] = acc;
}

#define STAGED_32(NAME)                                                                            \
    QUANT_INLINE void NAME##_part(const uint8_t *at, int part, const struct column_part *c,        \
                                  struct sums *sums)                                               \
    {                                                                                              \
        (void)part;                                                                                \
        part32(NAME##_form, at, c, sums);                                                          \
    }                                                                                              \
    QUANT_INLINE float NAME##_value(const uint8_t *at, int64_t b, const struct quant_act *a,       \
                                    struct sums sums)                                              \
    {                                                                                              \
        return value32(NAME##_form, at, b, a, sums);                                               \
    }                                                                                              \
    GPU_KERNEL(quant_gpu_gemv_##NAME, quant_gpu_gemv)                                              \
    {                                                                                              \
        const struct staged type = {                                                               \
            32, sizeof(struct NAME##_block), 1, false, column32, NAME##_part, NAME##_value};       \
        gemv_staged(&p, &type);                                                                    \
    }

/* M: minus the file's dmin, of block w. */
#define VALUE_256(NAME, M)                                                                         \
    QUANT_INLINE float NAME##_value(const uint8_t *at, int64_t b, const struct quant_act *a,       \
                                    struct sums sums)                                              \
    {                                                                                              \
        const struct NAME##_block *w = (const struct NAME##_block *)at;                            \
        return value256(&NAME##_layout.panel, quant_half_to_float(quant_load16(&w->d)), M, b, a,   \
                        sums);                                                                     \
    }
#define ROWS_256(NAME, COLUMN, PART)                                                               \
    do {                                                                                           \
        const struct staged type = {SUPER_LEN,   sizeof(struct NAME##_block),                      \
                                    4,           NAME##_layout.panel.has_min,                      \
                                    COLUMN,      PART,                                             \
                                    NAME##_value};                                                 \
        gemv_staged(&p, &type);                                                                    \
    } while (0)
#define STAGED_256(NAME, COLUMN, M)                                                                \
    VALUE_256(NAME, M)                                                                             \
    GPU_KERNEL(quant_gpu_gemv_##NAME, quant_gpu_gemv)                                              \
    {                                                                                              \
        ROWS_256(NAME, COLUMN, NAME##_part);                                                       \
    }
/* A type whose blocks have a multiple of 16 bytes, and codes at a multiple of 16. */
#define STAGED_256_ALIGNED(NAME, COLUMN, M)                                                        \
    VALUE_256(NAME, M)                                                                             \
    QUANT_INLINE void NAME##_part(const uint8_t *at, int part, const struct column_part *c,        \
                                  struct sums *sums)                                               \
    {                                                                                              \
        NAME##_part_of(at, part, c, false, sums);                                                  \
    }                                                                                              \
    QUANT_INLINE void NAME##_aligned_part(const uint8_t *at, int part,                             \
                                          const struct column_part *c, struct sums *sums)          \
    {                                                                                              \
        NAME##_part_of(__builtin_assume_aligned(at, 16), part, c, true, sums);                     \
    }                                                                                              \
    GPU_KERNEL(quant_gpu_gemv_##NAME, quant_gpu_gemv)                                              \
    {                                                                                              \
        if (((uintptr_t)p.w | (uintptr_t)p.row_bytes | (uintptr_t)p.by.bytes) % 16 == 0)           \
            ROWS_256(NAME, COLUMN, NAME##_aligned_part);                                           \
        else                                                                                       \
            ROWS_256(NAME, COLUMN, NAME##_part);                                                   \
    }

STAGED_32(q4_0)
STAGED_32(q4_1)
STAGED_32(q5_0)
STAGED_32(q5_1)
STAGED_32(q8_0)
STAGED_32(iq4_nl)
STAGED_32(mxfp4)
STAGED_256(q2_k, column_of_64, -quant_half_to_float(quant_load16(&w->dmin)))
STAGED_256(q3_k, column_of_64, 0.0f)
STAGED_256_ALIGNED(q4_k, column_of_64, -quant_half_to_float(quant_load16(&w->dmin)))
STAGED_256_ALIGNED(q5_k, column_of_64, -quant_half_to_float(quant_load16(&w->dmin)))
STAGED_256(q6_k, column_of_halves, 0.0f)
STAGED_256(iq4_xs, column_of_64, 0.0f)

/* engine/cpu/x86/tile_amx.c: tile kernels for AMX: products of many columns
 * (engine/cpu/x86/isa_x86.c) by quantized rows. Floats, and products of fewer columns, are
 * multiplied by the AVX-512 kernels.
 *
 * TDPBUSD and TDPBSSD multiply up to 64 elements of 16 columns by 16 rows. Column panels have 16
 * columns, each with consecutive elements (operand A); a row panel's codes (quant/quant.h) are
 * operand B without conversion. AVX-512 instructions convert the stored integer sums,
 * [column][row], to floats:
 *
 *            elements                 rows (16 x 4 bytes)              rows
 *           +---------+              +-------------------+           +------+
 *   columns |    A    |   elements/4 |         B         |   columns | sums |
 *           +---------+              +-------------------+           +------+
 *
 * Storing sums takes twice as long as multiplying, and AVX-512 instructions wait until AMX has
 * stored them. So there should be few sums, and the panels of super-blocks are folded: the integer
 * sub-scale times (code - offset) is 256 * high + low, an unsigned low and a signed high byte. Then
 * a super-block has two sums, or one if the folded product fits a byte.
 *
 * Results have the bits of tile_scalar.c. Instructions: Intel, Architecture Instruction Set
 * Extensions Programming Reference, chapter 3. */
#include "engine/cpu/x86/kernels_x86.h"
#include <immintrin.h>
#include <string.h>

#define TARGET CPU_TARGET_AMX
#define INLINE static inline __attribute__((always_inline))

enum { COLS = ENGINE_TILE_MAX_COLS, HALF = COLS / 2, ROWS = QUANT_PANEL_ROWS };
_Static_assert(COLS == 16, "the rows of a tile register");

struct cols32 { /* one block of 32 of 16 columns */
    int8_t q[COLS][32];
    float d[COLS], s[COLS];  /* s: d * (float)sum */
    int32_t minus_sum[COLS]; /* -(sum of q) */
};

struct cols256 { /* one super-block of 256 of 16 columns */
    _Alignas(64) int8_t q[COLS][256];
    float d[COLS];
    int16_t sum16[8][COLS][2]; /* sums of q over 16, in pairs */
    int16_t sum32[4][COLS][2]; /* the same over 32 */
};

struct folded256 { /* one super-block of 256 of 16 rows */
    _Alignas(64) float d[ROWS];
    float m[ROWS];
    int16_t min[8][ROWS][2];  /* as in struct quant_panel256 */
    uint8_t low[64][ROWS][4]; /* or the codes */
    int8_t high[64][ROWS][4];
};

/* Sums of 16 columns by 16 rows. */
struct dots {
    _Alignas(64) int32_t of[COLS][ROWS];
};

/* ---- Tile registers ---- */

/* Numbers, because the intrinsics are macros: two sums, and operands of 32 and of 64 elements. */
#define SUM      0
#define SUM_HIGH 1
#define A_32     2
#define B_32     3
#define A_64     4
#define B_64     5

static const struct {
    uint8_t palette, start_row, reserved[14];
    uint16_t row_bytes[16];
    uint8_t rows[16];
} shapes = {
    .palette = 1,
    .row_bytes = {[SUM] = 64, [SUM_HIGH] = 64, [A_32] = 32, [B_32] = 64, [A_64] = 64, [B_64] = 64},
    .rows = {[SUM] = 16, [SUM_HIGH] = 16, [A_32] = 16, [B_32] = 8, [A_64] = 16, [B_64] = 16},
};

TARGET static void begin_amx(void)
{
    _tile_loadconfig(&shapes);
}

/* Releases the tile registers, so that a task switch need not save them. */
TARGET static void end_amx(void)
{
    _tile_release();
}

/* ---- Column panels ---- */

static void columns32(const struct engine_tile *tile, int64_t first, int64_t n_blocks,
                      const struct quant_act *a, int n, void *to)
{
    (void)tile;
    struct cols32 *block = to;
    for (int64_t b = first; b < first + n_blocks; b++, block++) {
        for (int c = 0; c < n; c++) {
            memcpy(block->q[c], a[c].q + 32 * b, 32);
            block->d[c] = a[c].d[b];
            block->s[c] = a[c].s[b];
            block->minus_sum[c] = -a[c].sum[b];
        }
    }
}

static void columns256(const struct engine_tile *tile, int64_t first, int64_t n_blocks,
                       const struct quant_act *a, int n, void *to)
{
    (void)tile;
    struct cols256 *block = to;
    for (int64_t b = first; b < first + n_blocks; b++, block++) {
        for (int c = 0; c < n; c++) {
            const int16_t *sum = a[c].sum + 16 * b;
            memcpy(block->q[c], a[c].q + 256 * b, 256);
            block->d[c] = a[c].d[b];
            for (int i = 0; i < 16; i++) block->sum16[i / 2][c][i % 2] = sum[i];
            for (int i = 0; i < 8; i++)
                block->sum32[i / 2][c][i % 2] = (int16_t)(sum[2 * i] + sum[2 * i + 1]);
        }
    }
}

/* ---- Float sums ---- */

/* A call on one row panel: nc columns (a constant after inlining), the panel's sums and rows. */
struct panel_part {
    const struct engine_tile_to *to;
    float (*sums)[ROWS];
    int nc, first_row;
};

/* Part j of a call: sums are [row panel][column][row]. */
INLINE struct panel_part part_at(const struct engine_tile_to *to, int nc, int j)
{
    return (struct panel_part){to, (float(*)[ROWS])to->sums + j * COLS, nc, j * ROWS};
}

TARGET INLINE void load_sums(struct panel_part p, __m512 acc[COLS])
{
    EACH (c, p.nc) acc[c] = p.to->first ? _mm512_setzero_ps() : _mm512_load_ps(p.sums[c]);
}

/* After the last K-block: stores the results of the rows and columns that exist. Otherwise: stores
 * all sums. */
TARGET INLINE void store_sums(struct panel_part p, const __m512 acc[COLS])
{
    const int left = p.to->n_rows - p.first_row;
    const __mmask16 rows = (__mmask16)((1u << (left < ROWS ? left : ROWS)) - 1);
    EACH (c, p.nc) {
        if (!p.to->last)
            _mm512_store_ps(p.sums[c], acc[c]);
        else if (c < p.to->n_cols)
            _mm512_mask_storeu_ps(p.to->out[c] + p.first_row, rows, acc[c]);
    }
}

/* ---- Blocks of 32 ---- */

enum { AT_ONCE = 8 }; /* blocks, whose sums are stored before AVX-512 reads them */

TARGET INLINE void multiply32(const struct quant_panel32 *w, const struct cols32 *x,
                              struct dots *sums)
{
    _tile_zero(SUM);
    _tile_loadd(A_32, x->q, 32);
    _tile_loadd(B_32, w->q, 64);
    _tile_dpbsud(SUM, A_32, B_32);
    _tile_stored(SUM, sums->of, 64);
}

TARGET INLINE void add_block(struct panel_part p, bool has_min, __m128i offset_shift,
                             const struct quant_panel32 *w, const struct cols32 *x,
                             const struct dots *sums, __m512 acc[COLS])
{
    const __m512 d = _mm512_load_ps(w->d), m = _mm512_load_ps(w->m);
    _Alignas(64) int32_t start[COLS];
    if (!has_min)
        _mm512_store_si512(start, _mm512_sll_epi32(_mm512_loadu_si512(x->minus_sum), offset_shift));
    EACH (c, p.nc) {
        __m512i isum = _mm512_load_si512(sums->of[c]);
        if (!has_min) isum = _mm512_add_epi32(isum, _mm512_set1_epi32(start[c]));
        const __m512 f = _mm512_cvtepi32_ps(isum),
                     scale = _mm512_mul_ps(d, _mm512_set1_ps(x->d[c]));
        const __m512 v = has_min
                             ? _mm512_fmadd_ps(scale, f, _mm512_mul_ps(m, _mm512_set1_ps(x->s[c])))
                             : _mm512_mul_ps(scale, f);
        acc[c] = _mm512_add_ps(acc[c], v);
    }
}

TARGET INLINE void panel32_part(struct panel_part p, const struct quant_panel_form *form,
                                bool has_min, int64_t n_blocks, const struct quant_panel32 *w,
                                const struct cols32 *x)
{
    const __m128i offset_shift = _mm_cvtsi32_si128(__builtin_ctz(form->offset | 256));
    struct dots sums[AT_ONCE];
    __m512 acc[COLS];
    load_sums(p, acc);
    for (int64_t b = 0; b < n_blocks; b += AT_ONCE, w += AT_ONCE, x += AT_ONCE) {
        const int some = n_blocks - b < AT_ONCE ? (int)(n_blocks - b) : AT_ONCE;
        for (int i = 0; i < some; i++) multiply32(w + i, x + i, &sums[i]);
        for (int i = 0; i < some; i++) {
            if (p.to->ahead.at && p.first_row == 0)
                EACH (s, 4) engine_tile_prefetch(p.to->ahead, s, (int)b + i);
            add_block(p, has_min, offset_shift, w + i, x + i, &sums[i], acc);
        }
    }
    store_sums(p, acc);
}

TARGET static void panel32_amx(const struct quant_panel_form *form, int64_t n_blocks,
                               const void *panels, const void *x, const struct engine_tile_to *to)
{
    const struct quant_panel32 *w = panels;
    for (int j = 0; j * ROWS < to->n_rows; j++, w += n_blocks) {
        if (form->has_min && to->n_cols > HALF)
            panel32_part(part_at(to, COLS, j), form, true, n_blocks, w, x);
        else if (form->has_min)
            panel32_part(part_at(to, HALF, j), form, true, n_blocks, w, x);
        else if (to->n_cols > HALF)
            panel32_part(part_at(to, COLS, j), form, false, n_blocks, w, x);
        else
            panel32_part(part_at(to, HALF, j), form, false, n_blocks, w, x);
    }
}

/* ---- Blocks of 256 ---- */

/* Combines the bytes of `even` in even places with those of `odd` in odd ones. */
TARGET INLINE __m512i bytes_of(__m512i even, __m512i odd)
{
    return _mm512_mask_blend_epi8(0xaaaaaaaaaaaaaaaa, even, odd);
}

/* Multiplies 4 codes of each row, minus the offset, by the sub-scale: 256 * high + low. `even` and
 * `odd`: the sub-scale as a byte in those places, 0 in the others; `start`: -offset times it. */
TARGET INLINE void fold_four(__m512i codes, __m512i even, __m512i odd, __m512i start,
                             uint8_t low[ROWS][4], int8_t high[ROWS][4])
{
    const __m512i first = _mm512_add_epi16(_mm512_maddubs_epi16(codes, even), start);
    const __m512i second = _mm512_add_epi16(_mm512_maddubs_epi16(codes, odd), start);
    _mm512_store_si512(low, bytes_of(first, _mm512_slli_epi16(second, 8)));
    _mm512_store_si512(high, bytes_of(_mm512_srli_epi16(first, 8), second));
}

/* Sub-scale i % 2 of a pair, in both halves of each lane. */
TARGET INLINE __m512i scale_of(__m512i pair, int i)
{
    return _mm512_shuffle_epi8(
        pair, i == 0 ? _mm512_set4_epi32(0x0d0c0d0c, 0x09080908, 0x05040504, 0x01000100)
                     : _mm512_set4_epi32(0x0f0e0f0e, 0x0b0a0b0a, 0x07060706, 0x03020302));
}

TARGET static void fold256(const struct quant_panel_form *form, const struct quant_panel256 *from,
                           void *panel)
{
    struct folded256 *to = panel;
    memcpy(to->d, from->d, sizeof to->d);
    memcpy(to->m, from->m, sizeof to->m);
    memcpy(to->min, from->min, sizeof to->min);
    if (form->folded) {
        memcpy(to->low, from->q, sizeof to->low);
        return;
    }
    const __m512i minus_offset = _mm512_set1_epi16((int16_t)-form->offset);
    const int steps = form->sub_len / 4;
    for (int g = 0; g < 64; g += steps) {
        const __m512i pair = _mm512_load_si512(from->scale[g / steps / 2]);
        const __m512i scale = scale_of(pair, g / steps % 2), odd = _mm512_slli_epi16(scale, 8);
        const __m512i even = _mm512_and_si512(scale, _mm512_set1_epi16(0xff));
        const __m512i start = _mm512_mullo_epi16(scale, minus_offset);
        for (int i = g; i < g + steps; i++)
            fold_four(_mm512_load_si512(from->q[i]), even, odd, start, to->low[i], to->high[i]);
    }
}

/* The sums of a super-block: of codes, or of low and of high bytes. */
TARGET INLINE void multiply256(bool codes, const struct folded256 *w, const struct cols256 *x,
                               struct dots sums[2])
{
    _tile_zero(SUM);
    _tile_zero(SUM_HIGH);
    EACH (i, 4) {
        _tile_loadd(A_64, x->q[0] + 64 * i, 256);
        _tile_loadd(B_64, w->low[16 * i], 64);
        _tile_dpbsud(SUM, A_64, B_64);
        if (codes) continue;
        _tile_loadd(B_64, w->high[16 * i], 64);
        _tile_dpbssd(SUM_HIGH, A_64, B_64);
    }
    _tile_stored(SUM, sums[0].of, 64);
    if (!codes) _tile_stored(SUM_HIGH, sums[1].of, 64);
}

/* -offset * (sum of q) of each column. */
TARGET INLINE __m512i starts(int offset, const struct cols256 *x)
{
    __m512i sum = _mm512_setzero_si512();
    EACH (i, 4)
        sum = _mm512_dpwssd_epi32(sum, _mm512_loadu_si512(x->sum32[i]),
                                  _mm512_set1_epi16((int16_t)-offset));
    return sum;
}

/* msum of column c: sub-minima times sums of q. */
TARGET INLINE __m512i minima(int sub_len, const struct folded256 *w, const struct cols256 *x, int c)
{
    __m512i msum = _mm512_setzero_si512();
    EACH (i, 128 / sub_len) {
        int32_t pair;
        memcpy(&pair, sub_len == 16 ? x->sum16[i][c] : x->sum32[i][c], sizeof pair);
        msum = _mm512_dpwssd_epi32(msum, _mm512_load_si512(w->min[i]), _mm512_set1_epi32(pair));
    }
    return msum;
}

/* The cases of a super-block's form, constants after inlining. */
struct form256 {
    bool codes;  /* codes as they are, otherwise low and high bytes */
    int min_len; /* elements per sub-minimum, 0: none */
};

/* Adds the values of a super-block. `offset` of its codes, without minima. */
TARGET INLINE void add_block256(struct panel_part p, struct form256 f, int offset,
                                const struct folded256 *w, const struct cols256 *x,
                                const struct dots sums[2], __m512 acc[COLS])
{
    const __m512 d = _mm512_load_ps(w->d), m = _mm512_load_ps(w->m);
    _Alignas(64) int32_t start[COLS];
    if (f.codes && f.min_len == 0) _mm512_store_si512(start, starts(offset, x));
    EACH (c, p.nc) {
        __m512i isum = _mm512_load_si512(sums[0].of[c]);
        if (!f.codes)
            isum = _mm512_add_epi32(isum, _mm512_slli_epi32(_mm512_load_si512(sums[1].of[c]), 8));
        else if (f.min_len == 0)
            isum = _mm512_add_epi32(isum, _mm512_set1_epi32(start[c]));
        const __m512 da = _mm512_set1_ps(x->d[c]), scale = _mm512_mul_ps(d, da);
        __m512 v = _mm512_cvtepi32_ps(isum);
        if (f.min_len > 0)
            v = _mm512_fmadd_ps(scale, v,
                                _mm512_mul_ps(_mm512_mul_ps(m, da),
                                              _mm512_cvtepi32_ps(minima(f.min_len, w, x, c))));
        else
            v = _mm512_mul_ps(scale, v);
        acc[c] = _mm512_add_ps(acc[c], v);
    }
}

TARGET INLINE void panel256_part(struct panel_part p, struct form256 f, int offset,
                                 int64_t n_blocks, const struct folded256 *w,
                                 const struct cols256 *x)
{
    struct dots sums[2];
    __m512 acc[COLS];
    load_sums(p, acc);
    for (int64_t b = 0; b < n_blocks; b++) {
        multiply256(f.codes, w + b, x + b, sums);
        if (p.to->ahead.at)
            EACH (i, 16)
                engine_tile_prefetch(p.to->ahead, i % 4,
                                     (int)b * 8 + p.first_row / ROWS * 4 + i / 4);
        add_block256(p, f, offset, w + b, x + b, sums, acc);
    }
    store_sums(p, acc);
}

TARGET INLINE void panel256_form(struct panel_part p, const struct quant_panel_form *form,
                                 int64_t n_blocks, const struct folded256 *w,
                                 const struct cols256 *x)
{
    if (form->folded && form->has_min)
        panel256_part(p, (struct form256){true, 16}, 0, n_blocks, w, x);
    else if (form->folded)
        panel256_part(p, (struct form256){true, 0}, form->offset, n_blocks, w, x);
    else if (form->has_min)
        panel256_part(p, (struct form256){false, 32}, 0, n_blocks, w, x);
    else
        panel256_part(p, (struct form256){false, 0}, 0, n_blocks, w, x);
}

TARGET static void panel256_amx(const struct quant_panel_form *form, int64_t n_blocks,
                                const void *panels, const void *x, const struct engine_tile_to *to)
{
    const struct folded256 *w = panels;
    for (int j = 0; j * ROWS < to->n_rows; j++, w += n_blocks) {
        if (to->n_cols > HALF)
            panel256_form(part_at(to, COLS, j), form, n_blocks, w, x);
        else
            panel256_form(part_at(to, HALF, j), form, n_blocks, w, x);
    }
}

const struct engine_tile engine_tile_amx = {
    .cols = COLS,
    .k_block = 256,
    .prefetches = true,
    .cols32_bytes = sizeof(struct cols32),
    .cols256_bytes = sizeof(struct cols256),
    .panel32_bytes = sizeof(struct quant_panel32),
    .panel256_bytes = sizeof(struct folded256),
    .columns32 = columns32,
    .columns256 = columns256,
    .fold256 = fold256,
    .panel32 = panel32_amx,
    .panel256 = panel256_amx,
    .begin = begin_amx,
    .end = end_amx,
    .f32 = engine_tile_f32_avx512,
    .bf16 = engine_tile_bf16_avx512,
    .packed_f32 = &engine_tile_packed_f32_avx512,
    .packed_bf16 = &engine_tile_packed_bf16_avx512,
};

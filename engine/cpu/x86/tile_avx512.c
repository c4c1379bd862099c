/* engine/cpu/x86/tile_avx512.c: tile kernels for AVX-512 with VNNI; floats are in
 * tile_floats_avx512.c.
 *
 * Quantized panels: the 16 rows are the lanes; each of up to 8 columns has an integer accumulator
 * in a register. One VPDPBUSD multiplies 4 codes of 16 rows by 4 elements of one column, which are
 * broadcast from the column panel. Float operations occur once per block. Functions that take
 * constant arguments are inlined for each case. Results have the bits of tile_scalar.c. */
#include "engine/cpu/x86/kernels_x86.h"
#include <immintrin.h>
#include <string.h>

#define TARGET CPU_TARGET_AVX512
#define INLINE static inline __attribute__((always_inline))

enum { COLS = ENGINE_TILE_COLS, PAIR = ENGINE_TILE_PANELS };

TARGET INLINE __m512i broadcast4(const void *from)
{
    int32_t four;
    memcpy(&four, from, sizeof(four));
    return _mm512_set1_epi32(four);
}

/* The shape of a call: np row panels, n_blocks blocks apart, times nc columns from column `first`
 * on; arrays are indexed by column. After inlining all members are constants except offset and
 * max_code of `f`, and `ahead`. */
struct tile_shape {
    struct quant_panel_form f;
    int np, nc, first;
    struct engine_tile_ahead ahead; /* of a super-block */
};

#define EACH_COLUMN(c, p) UNROLL for (int c = (p).first; c < (p).first + (p).nc; c++)

/* Loads the sums of the earlier K-blocks. */
TARGET INLINE void begin_part(struct tile_shape p, const struct engine_tile_to *to,
                              __m512 (*acc)[COLS])
{
    EACH (j, p.np)
        EACH_COLUMN (c, p)
            acc[j][c] = to->first ? _mm512_setzero_ps() : _mm512_load_ps(to->sums->of[j][c]);
}

/* After the last K-block: stores the results of the rows and columns that exist. Otherwise: stores
 * all sums. */
TARGET INLINE void finish_part(struct tile_shape p, const struct engine_tile_to *to,
                               __m512 (*acc)[COLS])
{
    EACH (j, p.np) {
        const int left = to->n_rows - j * QUANT_PANEL_ROWS;
        const __mmask16 rows =
            (__mmask16)((1u << (left < QUANT_PANEL_ROWS ? left : QUANT_PANEL_ROWS)) - 1);
        EACH_COLUMN (c, p) {
            if (!to->last)
                _mm512_store_ps(to->sums->of[j][c], acc[j][c]);
            else if (c < to->n_cols)
                _mm512_mask_storeu_ps(to->out[c] + j * QUANT_PANEL_ROWS, rows, acc[j][c]);
        }
    }
}

/* ---- Blocks of 32 ---- */

/* A block's integer sums, and the block, for its scales. They are converted to floats while the
 * next block is multiplied, so that float and integer operations overlap and hide each other's
 * latency. */
struct sums32 {
    __m512i isum[PAIR][COLS];
    const struct quant_panel32 *w;
    const struct engine_cols32 *x;
};

/* Adds the block's value to acc in the lanes `keep`. */
TARGET INLINE __m512 add_block(struct tile_shape p, const struct sums32 *s, int64_t n_blocks, int j,
                               int c, __mmask16 keep, __m512 acc)
{
    const struct quant_panel32 *w = s->w + j * n_blocks;
    __m512 scale = _mm512_mul_ps(_mm512_load_ps(w->d), _mm512_set1_ps(s->x->d[c]));
    __m512 f = _mm512_cvtepi32_ps(s->isum[j][c]), v;
    if (p.f.has_min)
        v = _mm512_fmadd_ps(scale, f,
                            _mm512_mul_ps(_mm512_load_ps(w->m), _mm512_set1_ps(s->x->s[c])));
    else
        v = _mm512_mul_ps(scale, f);
    return _mm512_mask_add_ps(acc, keep, acc, v);
}

/* Adds the block in *s to acc, one sum after each step of the block at w and x, whose sums replace
 * *s. The codes' offset is 2^offset_shift; unused with minima. */
TARGET INLINE void step_block(struct tile_shape p, __m512i offset_shift, int64_t n_blocks,
                              const struct quant_panel32 *w, const struct engine_cols32 *x,
                              __mmask16 keep, struct sums32 *s, __m512 acc[PAIR][COLS])
{
    __m512i sum[PAIR][COLS];
    /* Hides the values from the compiler, which otherwise stores converted floats on the stack
     * during the loop. */
    __asm__("" : "+r"(s->w), "+r"(s->x));
    EACH_COLUMN (c, p) {
        __m512i start = _mm512_setzero_si512();
        if (!p.f.has_min) start = _mm512_sllv_epi32(broadcast4(&x->minus_sum[c]), offset_shift);
        EACH (j, p.np) sum[j][c] = start;
    }
    EACH (i, 8) {
        __m512i q[PAIR];
        EACH (j, p.np) q[j] = _mm512_load_si512(w[j * n_blocks].q[i]);
        EACH_COLUMN (c, p) {
            __m512i xq = broadcast4(x->q[i][c]);
            EACH (j, p.np) sum[j][c] = _mm512_dpbusd_epi32(sum[j][c], q[j], xq);
        }
        const int j = i % p.np, c = p.first + i / p.np;
        if (i < p.np * p.nc) acc[j][c] = add_block(p, s, n_blocks, j, c, keep, acc[j][c]);
    }
    EACH (j, p.np)
        EACH_COLUMN (c, p) s->isum[j][c] = sum[j][c];
    s->w = w;
    s->x = x;
}

TARGET INLINE void panel32_part(struct tile_shape p, int64_t n_blocks,
                                const struct quant_panel32 *w, const struct engine_cols32 *x,
                                const struct engine_tile_to *to)
{
    const __m512i offset_shift = _mm512_set1_epi32(__builtin_ctz(p.f.offset | 256));
    __m512 acc[PAIR][COLS];
    struct sums32 s = {.w = w, .x = x};
    begin_part(p, to, acc);
    EACH (j, p.np)
        EACH_COLUMN (c, p) s.isum[j][c] = _mm512_setzero_si512();
    for (int64_t b = 0; b < n_blocks; b++) {
        if (p.first == 0 && to->ahead.at)
            EACH (i, 4) engine_tile_prefetch(to->ahead, i, (int)b);
        /* The first block has no predecessor. */
        step_block(p, offset_shift, n_blocks, w + b, x + b, b > 0 ? 0xffff : 0, &s, acc);
    }
    EACH (j, p.np)
        EACH_COLUMN (c, p) acc[j][c] = add_block(p, &s, n_blocks, j, c, 0xffff, acc[j][c]);
    finish_part(p, to, acc);
}

/* Two row panels times half of the columns, then times the other half: fewer loads than one panel
 * times all columns, and the sums still fit the registers. With minima this is not faster. */
TARGET static void panel32_avx512(const struct quant_panel_form *form, int64_t n_blocks,
                                  const void *w, const void *x, const struct engine_tile_to *to)
{
    enum { HALF = COLS / 2 };
    struct quant_panel_form f = {.offset = form->offset};
    if (to->n_rows > QUANT_PANEL_ROWS) {
        panel32_part((struct tile_shape){.f = f, .np = PAIR, .nc = HALF}, n_blocks, w, x, to);
        if (to->n_cols > HALF)
            panel32_part((struct tile_shape){.f = f, .np = PAIR, .nc = HALF, .first = HALF},
                         n_blocks, w, x, to);
    } else if (form->has_min) {
        f.has_min = true;
        if (to->n_cols > HALF)
            panel32_part((struct tile_shape){.f = f, .np = 1, .nc = COLS}, n_blocks, w, x, to);
        else
            panel32_part((struct tile_shape){.f = f, .np = 1, .nc = HALF}, n_blocks, w, x, to);
    } else if (to->n_cols > HALF) {
        panel32_part((struct tile_shape){.f = f, .np = 1, .nc = COLS}, n_blocks, w, x, to);
    } else {
        panel32_part((struct tile_shape){.f = f, .np = 1, .nc = HALF}, n_blocks, w, x, to);
    }
}

/* ---- Blocks of 256 ---- */

/* Initial values of the integer sums of a super-block, for each column c: start[i][c] = -offset *
 * (sum of q over sub-block i); if scales are folded into the codes, start[0][c] = -offset * (sum of
 * all q). */
TARGET INLINE void super_block_starts(struct quant_panel_form f, const struct engine_cols256 *x,
                                      int32_t start[16][COLS])
{
    const __m256i even = _mm256_set1_epi32(-f.offset & 0xffff);
    const __m256i odd = _mm256_slli_epi32(even, 16);
    if (f.folded) {
        __m256i sum = _mm256_setzero_si256();
        EACH (i, 4)
            sum = _mm256_dpwssd_epi32(sum, _mm256_loadu_si256((const __m256i *)x->sum32[i]),
                                      _mm256_or_si256(even, odd));
        _mm256_store_si256((__m256i *)start[0], sum);
        return;
    }
    for (int i = 0; i < 128 / f.sub_len; i++) {
        const void *pair = f.sub_len == 16 ? x->sum16[i] : x->sum32[i];
        __m256i sums = _mm256_loadu_si256(pair);
        _mm256_store_si256((__m256i *)start[2 * i], _mm256_madd_epi16(sums, even));
        _mm256_store_si256((__m256i *)start[2 * i + 1], _mm256_madd_epi16(sums, odd));
    }
}

/* The data to prefetch during super-block b, whose columns are `x`: weights, or columns if there
 * are none, because the kernels read columns faster than the hardware prefetcher fetches them into
 * the L1 cache. */
TARGET INLINE struct engine_tile_ahead ahead_of(const struct engine_tile_to *to, int64_t b,
                                                const void *x)
{
    enum { DISTANCE = 2560 };
    struct engine_tile_ahead ahead = to->ahead;
    if (!ahead.at)
        return (struct engine_tile_ahead){(const char *)x + DISTANCE, ENGINE_TILE_AHEAD_256,
                                          2 * ENGINE_TILE_AHEAD_256};
    ahead.at += b * ENGINE_TILE_AHEAD_256;
    return ahead;
}

/* Without this statement at the end of a loop gcc copies sums at each step, and stores some. */
TARGET INLINE void keep_registers(struct tile_shape p, __m512i sum[PAIR][COLS])
{
    EACH (j, p.np)
        EACH_COLUMN (c, p) __asm__("" : "+v"(sum[j][c]));
}

/* Adds the products of group g of 4 codes of every row and column. */
TARGET INLINE void add_four(struct tile_shape p, int64_t n_blocks, const struct quant_panel256 *w,
                            const struct engine_cols256 *x, int g, __m512i sum[PAIR][COLS])
{
    __m512i q[PAIR];
    EACH (j, p.np) q[j] = _mm512_load_si512(w[j * n_blocks].q[g]);
    if (g % 2 == 0 && p.first == 0) engine_tile_prefetch(p.ahead, g / 2 % 4, g / 8);
    EACH_COLUMN (c, p) {
        __m512i xq = broadcast4(x->q[g][c]);
        EACH (j, p.np) sum[j][c] = _mm512_dpbusd_epi32(sum[j][c], q[j], xq);
    }
}

TARGET INLINE void start_sums(struct tile_shape p, const int32_t *start, __m512i sum[PAIR][COLS])
{
    EACH_COLUMN (c, p)
        EACH (j, p.np) sum[j][c] = p.f.has_min ? _mm512_setzero_si512() : broadcast4(&start[c]);
}

/* Whether every sum of a sub-block fits 16 bits. With minima codes are 0 .. max_code, and a partial
 * sum is largest if all q of one sign come first: |sum| <= max_code * peak32. Otherwise |code -
 * offset| <= offset, and |sum| <= offset * (sub_len / 16) * mass16. */
TARGET INLINE bool sums_fit_int16(struct quant_panel_form f, const struct engine_cols256 *x)
{
    if (f.has_min) return f.max_code * x->peak32 <= INT16_MAX;
    return f.offset * (f.sub_len / 16) * x->mass16 <= INT16_MAX;
}

/* isum of each column: sums of codes times sub-scales. Two sub-blocks are summed alternately,
 * because 8 sums do not hide the latency with dual 512-bit ports. `int16`: the sums fit 16 bits,
 * and one VPDPWSSD multiplies two of them by their sub-scales. */
TARGET INLINE void super_block_sums(struct tile_shape p, bool int16, int64_t n_blocks,
                                    const struct quant_panel256 *w, const struct engine_cols256 *x,
                                    const int32_t start[16][COLS], __m512i total[PAIR][COLS])
{
    const __mmask32 upper = 0xaaaaaaaa;
    const int steps = p.f.sub_len / 4;
    EACH (j, p.np)
        EACH_COLUMN (c, p) total[j][c] = _mm512_setzero_si512();
    for (int i = 0; i < 256 / p.f.sub_len; i += 2) {
        __m512i sum[PAIR][COLS], next[PAIR][COLS];
        start_sums(p, start[i], sum);
        start_sums(p, start[i + 1], next);
        EACH (g, steps) {
            add_four(p, n_blocks, w, x, i * steps + g, sum);
            add_four(p, n_blocks, w, x, (i + 1) * steps + g, next);
        }
        EACH (j, p.np) {
            const __m512i scale = _mm512_load_si512(w[j * n_blocks].scale[i / 2]);
            if (__builtin_expect(int16, true)) {
                EACH_COLUMN (c, p)
                    total[j][c] = _mm512_dpwssd_epi32(
                        total[j][c],
                        _mm512_mask_blend_epi16(upper, sum[j][c],
                                                _mm512_slli_epi32(next[j][c], 16)),
                        scale);
            } else {
                const __m512i second = _mm512_srai_epi32(scale, 16);
                const __m512i first = _mm512_srai_epi32(_mm512_slli_epi32(scale, 16), 16);
                EACH_COLUMN (c, p)
                    total[j][c] = _mm512_add_epi32(
                        total[j][c], _mm512_add_epi32(_mm512_mullo_epi32(sum[j][c], first),
                                                      _mm512_mullo_epi32(next[j][c], second)));
            }
        }
    }
}

/* isum of each column if the sub-scales are folded into the codes: an initial value and 64 dots. */
TARGET INLINE void folded_block_sums(struct tile_shape p, int64_t n_blocks,
                                     const struct quant_panel256 *w, const struct engine_cols256 *x,
                                     const int32_t start[16][COLS], __m512i total[PAIR][COLS])
{
    start_sums(p, start[0], total);
    for (int i = 0; i < 64; i += 8) {
        EACH (g, 8) add_four(p, n_blocks, w, x, i + g, total);
        keep_registers(p, total);
    }
}

/* msum of each column: sub-minima times sums of q. */
TARGET INLINE void super_block_minima(struct tile_shape p, int64_t n_blocks,
                                      const struct quant_panel256 *w,
                                      const struct engine_cols256 *x, __m512i msum[PAIR][COLS])
{
    EACH (j, p.np)
        EACH_COLUMN (c, p) msum[j][c] = _mm512_setzero_si512();
    EACH (i, 128 / p.f.sub_len) {
        __m512i min[PAIR];
        EACH (j, p.np) min[j] = _mm512_load_si512(w[j * n_blocks].min[i]);
        EACH_COLUMN (c, p) {
            __m512i sums = broadcast4(p.f.sub_len == 16 ? x->sum16[i][c] : x->sum32[i][c]);
            EACH (j, p.np) msum[j][c] = _mm512_dpwssd_epi32(msum[j][c], min[j], sums);
        }
    }
}

/* Adds a super-block, whose sums are in `total`, to acc. */
TARGET INLINE void add_floats(struct tile_shape p, int64_t n_blocks, const struct quant_panel256 *w,
                              const struct engine_cols256 *x, __m512i total[PAIR][COLS],
                              __m512 (*acc)[COLS])
{
    __m512i msum[PAIR][COLS];
    if (p.f.has_min) super_block_minima(p, n_blocks, w, x, msum);
    EACH (j, p.np) {
        const struct quant_panel256 *panel = w + j * n_blocks;
        __m512 d = _mm512_load_ps(panel->d), m = _mm512_load_ps(panel->m);
        EACH_COLUMN (c, p) {
            __m512 da = _mm512_set1_ps(x->d[c]), scale = _mm512_mul_ps(d, da), v;
            __m512 isum = _mm512_cvtepi32_ps(total[j][c]);
            if (p.f.has_min)
                v = _mm512_fmadd_ps(
                    scale, isum,
                    _mm512_mul_ps(_mm512_mul_ps(m, da), _mm512_cvtepi32_ps(msum[j][c])));
            else
                v = _mm512_mul_ps(scale, isum);
            acc[j][c] = _mm512_add_ps(acc[j][c], v);
        }
    }
}

/* Multiplies a super-block and adds it to acc. */
TARGET INLINE void step256(struct tile_shape p, int64_t n_blocks, const struct quant_panel256 *w,
                           const struct engine_cols256 *x, const int32_t start[16][COLS],
                           __m512 (*acc)[COLS])
{
    __m512i total[PAIR][COLS];
    if (p.f.folded)
        folded_block_sums(p, n_blocks, w, x, start, total);
    else
        super_block_sums(p, sums_fit_int16(p.f, x), n_blocks, w, x, start, total);
    /* Minima need registers, too, so 4 columns are processed at a time. */
    EACH (half, p.nc * 2 / COLS)
        add_floats(
            (struct tile_shape){
                .f = p.f, .np = p.np, .nc = COLS / 2, .first = p.first + half * COLS / 2},
            n_blocks, w, x, total, acc);
}

/* Two row panels: a broadcast is multiplied by the codes of both, because a core with two
 * multiplications per cycle has at most two loads per cycle. Float sums are in memory. Integer sums
 * are in registers: of all columns with folded scales, otherwise of half of the columns at a time,
 * because sub-blocks need more registers. */
TARGET INLINE void pair256_cols(struct quant_panel_form f, int64_t n_blocks,
                                const struct quant_panel256 *w, const struct engine_cols256 *x,
                                const struct engine_tile_to *to)
{
    enum { HALF = COLS / 2 };
    struct tile_shape all = {.f = f, .np = PAIR, .nc = COLS},
                      half = {.f = f, .np = PAIR, .nc = HALF};
    __m512(*acc)[COLS] = (__m512(*)[COLS])to->sums->of;
    if (to->first) begin_part(all, to, acc);
    _Alignas(32) int32_t starts[2][16][COLS];
    if (!f.has_min) super_block_starts(f, x, starts[0]);
    for (int64_t b = 0; b < n_blocks; b++, w++, x++) {
        const int32_t(*start)[COLS] = starts[b % 2];
        __asm__("" : "+r"(acc)); /* so that the compiler leaves the sums in memory */
        if (!f.has_min && b + 1 < n_blocks) super_block_starts(f, x + 1, starts[(b + 1) % 2]);
        all.ahead = half.ahead = ahead_of(to, b, x);
        if (f.folded && to->n_cols > HALF) {
            step256(all, n_blocks, w, x, start, acc);
            continue;
        }
        step256(half, n_blocks, w, x, start, acc);
        if (to->n_cols > HALF)
            step256((struct tile_shape){.f = f, .np = PAIR, .nc = HALF, .first = HALF}, n_blocks, w,
                    x, start, acc);
    }
    if (to->last) finish_part(all, to, acc);
}

TARGET INLINE void panel256_cols(struct quant_panel_form f, int64_t n_blocks,
                                 const struct quant_panel256 *w, const struct engine_cols256 *x,
                                 int nc, const struct engine_tile_to *to)
{
    if (nc == COLS && to->n_rows > QUANT_PANEL_ROWS) {
        pair256_cols(f, n_blocks, w, x, to);
        return;
    }
    struct tile_shape p = {.f = f, .np = 1, .nc = nc};
    __m512 acc[1][COLS];
    begin_part(p, to, acc);
    /* Computed one super-block ahead, to hide the latency of the initial values. */
    _Alignas(32) int32_t starts[2][16][COLS];
    if (!f.has_min) super_block_starts(f, x, starts[0]);
    for (int64_t b = 0; b < n_blocks; b++, w++, x++) {
        const int32_t(*start)[COLS] = starts[b % 2];
        if (!f.has_min && b + 1 < n_blocks) super_block_starts(f, x + 1, starts[(b + 1) % 2]);
        p.ahead = ahead_of(to, b, x);
        step256(p, n_blocks, w, x, start, acc);
    }
    finish_part(p, to, acc);
}

TARGET INLINE void panel256_form(const struct quant_panel_form *form, int64_t n_blocks,
                                 const struct quant_panel256 *w, const struct engine_cols256 *x,
                                 int nc, const struct engine_tile_to *to)
{
    struct quant_panel_form f = {.offset = form->offset, .max_code = form->max_code};
    if (form->has_min) { /* no offset; only folded panels have minima of 16 elements */
        f.has_min = true;
        f.sub_len = 32;
        if (form->folded) {
            f.folded = true;
            f.sub_len = 16;
            panel256_cols(f, n_blocks, w, x, nc, to);
        } else {
            panel256_cols(f, n_blocks, w, x, nc, to);
        }
    } else if (form->folded) {
        f.folded = true;
        f.sub_len = 16;
        panel256_cols(f, n_blocks, w, x, nc, to);
    } else if (form->sub_len == 16) {
        f.sub_len = 16;
        panel256_cols(f, n_blocks, w, x, nc, to);
    } else {
        f.sub_len = 32;
        panel256_cols(f, n_blocks, w, x, nc, to);
    }
}

TARGET static void panel256_avx512(const struct quant_panel_form *form, int64_t n_blocks,
                                   const void *w, const void *x, const struct engine_tile_to *to)
{
    if (to->n_cols > 4 || to->n_rows > QUANT_PANEL_ROWS)
        panel256_form(form, n_blocks, w, x, COLS, to);
    else
        panel256_form(form, n_blocks, w, x, 4, to);
}

TARGET static void measure_avx512(int64_t n_blocks, struct engine_cols256 *x)
{
    const __m256i ones = _mm256_set1_epi8(1), zero = _mm256_setzero_si256();
    for (int64_t b = 0; b < n_blocks; b++, x++) {
        __m256i mass = zero, peak = zero;
        for (int i = 0; i < 64; i += 8) {
            __m256i plus = zero, minus = zero;
            EACH (h, 2) {
                __m256i sum = zero;
                EACH (g, 4) {
                    __m256i q = _mm256_loadu_si256((const __m256i *)x->q[i + 4 * h + g]);
                    sum = _mm256_dpbusd_epi32(sum, _mm256_abs_epi8(q), ones);
                    plus = _mm256_dpbusd_epi32(plus, _mm256_max_epi8(q, zero), ones);
                }
                mass = _mm256_max_epi32(mass, sum);
                minus = _mm256_add_epi32(minus, sum);
            }
            minus = _mm256_sub_epi32(minus, plus);
            peak = _mm256_max_epi32(peak, _mm256_max_epi32(plus, minus));
        }
        x->mass16 = _mm512_reduce_max_epi32(_mm512_zextsi256_si512(mass));
        x->peak32 = _mm512_reduce_max_epi32(_mm512_zextsi256_si512(peak));
    }
}

/* ---- Weighted sums of rows ---- */

/* nr rows of o times nv vectors of 16 columns, with the sums in registers. */
TARGET INLINE void weighted_tile(int64_t n, const float *v, int64_t v_stride, __mmask16 last,
                                 const float *const *p, float *const *o, int nr, int nv)
{
    __m512 acc[4][4];
    for (int i = 0; i < nr; i++)
        for (int d = 0; d < nv; d++)
            acc[i][d] = _mm512_maskz_loadu_ps(d + 1 < nv ? 0xffff : last, o[i] + 16 * d);
    for (int64_t j = 0; j < n; j++, v += v_stride) {
        __m512 row[4];
        for (int d = 0; d < nv; d++)
            row[d] = _mm512_maskz_loadu_ps(d + 1 < nv ? 0xffff : last, v + 16 * d);
        for (int i = 0; i < nr; i++)
            for (int d = 0; d < nv; d++)
                acc[i][d] = _mm512_fmadd_ps(row[d], _mm512_set1_ps(p[i][j]), acc[i][d]);
    }
    for (int i = 0; i < nr; i++)
        for (int d = 0; d < nv; d++)
            _mm512_mask_storeu_ps(o[i] + 16 * d, d + 1 < nv ? 0xffff : last, acc[i][d]);
}

TARGET INLINE void weighted_rows(int64_t n, int64_t dim, const float *v, int64_t v_stride,
                                 const float *const *p, float *const *o, int nr)
{
    float *at[4];
    for (int64_t d = 0; d < dim;) {
        for (int i = 0; i < nr; i++) at[i] = o[i] + d;
        if (dim - d >= 64) {
            weighted_tile(n, v + d, v_stride, 0xffff, p, at, nr, 4);
            d += 64;
        } else {
            int64_t left = dim - d < 16 ? dim - d : 16;
            weighted_tile(n, v + d, v_stride, (__mmask16)((1u << left) - 1), p, at, nr, 1);
            d += left;
        }
    }
}

TARGET static void weighted_sum_avx512(int64_t n, int64_t dim, const float *v, int64_t v_stride,
                                       const float *const *p, int64_t n_rows, float *const *o)
{
    int64_t i = 0;
    for (; i + 4 <= n_rows; i += 4) weighted_rows(n, dim, v, v_stride, p + i, o + i, 4);
    if (n_rows - i == 3) weighted_rows(n, dim, v, v_stride, p + i, o + i, 3);
    if (n_rows - i == 2) weighted_rows(n, dim, v, v_stride, p + i, o + i, 2);
    if (n_rows - i == 1) weighted_rows(n, dim, v, v_stride, p + i, o + i, 1);
}

/* The rows of AVX-512 and AVX512-BF16 differ in products of BF16. */
#define TILE(level, ...)                                                                           \
    const struct engine_tile engine_tile_##level = {                                               \
        ENGINE_TILE_INTERLEAVED,                                                                   \
        .prefetches = true,                                                                        \
        .panel32 = panel32_avx512,                                                                 \
        .panel256 = panel256_avx512,                                                               \
        .interleave = engine_tile_interleave_avx2,                                                 \
        .measure = measure_avx512,                                                                 \
        .f32 = engine_tile_f32_avx512,                                                             \
        .packed_f32 = &engine_tile_packed_f32_avx512,                                              \
        .weighted_sum = weighted_sum_avx512,                                                       \
        __VA_ARGS__,                                                                               \
    }
TILE(avx512, .packed_bf16 = &engine_tile_packed_bf16_avx512);
TILE(avx512bf16, .packed_bf16 = &engine_tile_packed_bf16_dots, .bf16 = engine_tile_bf16_avx512);

/* quant/encode/grid_fit.c: the search for scales and entries; see quant/encode/grid_fit.h.
 *
 * Step 1, each sub-block alone: for each trial scale the best entries, then the best scale for
 * these entries, as long as the error decreases. Step 2, the super-block: scales become small odd
 * integers times d, each sub-block takes the best of the adjacent integers, and d is solved for
 * again.
 *
 * The error of values v under a scale s is w (x - s v)^2 = w x^2 - 2 s (w x v) + s^2 (w v^2),
 * summed over the elements. For each group (elements of one entry) the sums of w x v and w v^2 are
 * tabulated for all combinations of levels in half an entry, so that a scale costs two
 * multiplications per combination. The best entry is found exactly: entries are listed by their
 * first half, and a list is read only if its half with the best second half beats the best entry so
 * far, initially the best entry for the previous scale. */
#include "quant/encode/grid_fit.h"
#include <float.h>
#include <math.h>
#if defined(__x86_64__)
#include <immintrin.h>
#endif

enum { MAX_GROUPS = 8 /* of a sub-block */, ROUNDS = 2, REFITS = 2 };

/* The number of combinations of levels in half an entry, and in a quarter (one element of an entry
 * of 4): half = quarter + quarters * next quarter. */
static int count_quarters(const struct quant_grid_form *form)
{
    return form->entry_len == 8 ? form->n_levels * form->n_levels : form->n_levels;
}

static int level_of(const struct quant_grid_form *form, int entry, int i)
{
    const uint64_t levels = form->grid8 ? form->grid8[entry] : form->grid4[entry];
    return (int8_t)(levels >> 8 * i & 0xff);
}

static uint8_t half_of(const struct quant_grid_form *form, int entry, int half)
{
    const int per_half = form->entry_len / 2;
    int combination = 0;
    for (int i = per_half - 1; i >= 0; i--) {
        const int level = level_of(form, entry, half * per_half + i);
        int number = 0;
        while (number < form->n_levels - 1 && form->level[number] != level) number++;
        combination = combination * form->n_levels + number;
    }
    return (uint8_t)combination;
}

void quant_grid_prepare(struct quant_grid *grid, const struct quant_grid_form *form,
                        quant_grid_search_fn *search)
{
    const int quarters = count_quarters(form);
    uint16_t next[QUANT_GRID_HALVES];
    *grid = (struct quant_grid){.form = form, .search = search, .n_halves = quarters * quarters};
    for (int e = 0; e < form->n_entries; e++) {
        for (int h = 0; h < 2; h++) grid->half[h][e] = half_of(form, e, h);
        grid->first[grid->half[0][e] + 1]++;
    }
    for (int i = 0; i < grid->n_halves; i++) {
        grid->first[i + 1] = (uint16_t)(grid->first[i + 1] + grid->first[i]);
        next[i] = grid->first[i];
    }
    for (int e = 0; e < form->n_entries; e++) {
        const uint16_t at = next[grid->half[0][e]]++;
        grid->listed[at] = (uint16_t)e;
        grid->second[at] = grid->half[1][e];
    }
}

/* Elements and their weights; magnitudes, if the grid has magnitudes. */
struct elements {
    float x[FIT_LEN], w[FIT_LEN];
};

/* The sums of a super-block. */
struct tables {
    struct quant_grid_sums sums[64]; /* by group; with shifts, by group and shift (+1, -1) */
    float xx[64];                    /* by group: sum of w x^2 */
};

static const struct quant_grid_sums *sums_of(const struct quant_grid_form *form,
                                             const struct tables *t, int group, bool down)
{
    return &t->sums[form->signs == QUANT_GRID_SHIFTS ? 2 * group + down : group];
}

/* The choice for a sub-block. */
struct choice {
    float scale, error;
    float xv, vv; /* weighted sums of x * value and value^2, values without the scale */
    uint16_t entry[MAX_GROUPS];
    bool down[MAX_GROUPS];
};

static void fill_sums(const struct quant_grid_form *form, const float *x, const float *w, int shift,
                      struct quant_grid_sums *out)
{
    const int per_half = form->entry_len / 2, n = form->n_levels, quarters = count_quarters(form);
    for (int h = 0; h < 2; h++) {
        float xv[4][8], vv[4][8], quarter_xv[2][16], quarter_vv[2][16];
        for (int i = 0; i < per_half; i++)
            for (int l = 0; l < n; l++) {
                const float v = (float)(form->level[l] + shift);
                const float wv = w[h * per_half + i] * v;
                xv[i][l] = wv * x[h * per_half + i];
                vv[i][l] = wv * v;
            }
        for (int q = 0; q < 2; q++)
            for (int i = 0; i < quarters; i++) {
                const bool alone = per_half == 2;
                quarter_xv[q][i] = alone ? xv[q][i] : xv[2 * q][i % n] + xv[2 * q + 1][i / n];
                quarter_vv[q][i] = alone ? vv[q][i] : vv[2 * q][i % n] + vv[2 * q + 1][i / n];
            }
        for (int j = 0; j < quarters; j++)
            for (int i = 0; i < quarters; i++) {
                out->xv[h][j * quarters + i] = quarter_xv[0][i] + quarter_xv[1][j];
                out->vv[h][j * quarters + i] = quarter_vv[0][i] + quarter_vv[1][j];
            }
        /* The padding to whole lanes is never the best choice. */
        for (int i = quarters * quarters; i < QUANT_GRID_HALVES; i++) {
            out->xv[h][i] = 0.0f;
            out->vv[h][i] = FLT_MAX;
        }
    }
}

static void fill_tables(const struct quant_grid_form *form, const struct elements *e,
                        struct tables *t)
{
    const bool shifts = form->signs == QUANT_GRID_SHIFTS;
    for (int g = 0; g < FIT_LEN / form->entry_len; g++) {
        const float *x = e->x + g * form->entry_len, *w = e->w + g * form->entry_len;
        fill_sums(form, x, w, shifts ? 1 : 0, &t->sums[shifts ? 2 * g : g]);
        if (shifts) fill_sums(form, x, w, -1, &t->sums[2 * g + 1]);
        t->xx[g] = 0.0f;
        for (int i = 0; i < form->entry_len; i++) t->xx[g] += w[i] * x[i] * x[i];
    }
}

QUANT_INLINE float error_of(const struct quant_grid_sums *t, int half, int i, float twice,
                            float square)
{
    return square * t->vv[half][i] - twice * t->xv[half][i];
}

QUANT_INLINE float error_of_entry(const struct quant_grid *grid, const struct quant_grid_sums *t,
                                  uint16_t entry, float twice, float square)
{
    return error_of(t, 0, grid->half[0][entry], twice, square) +
           error_of(t, 1, grid->half[1][entry], twice, square);
}

/* Reads the list of first half h for entries that are better than *best. */
QUANT_INLINE void search_list(const struct quant_grid *grid, int h, float first,
                              const float *second, float *best, uint16_t *entry)
{
    for (int at = grid->first[h]; at < grid->first[h + 1]; at++) {
        const float sum = first + second[grid->second[at]];
        if (!(sum < *best)) continue;
        *best = sum;
        *entry = grid->listed[at];
    }
}

float quant_grid_search(const struct quant_grid *grid, const struct quant_grid_sums *t, float scale,
                        uint16_t *entry)
{
    const float twice = 2.0f * scale, square = scale * scale;
    float second[QUANT_GRID_HALVES], least = INFINITY;
    for (int i = 0; i < grid->n_halves; i++) {
        second[i] = error_of(t, 1, i, twice, square);
        least = second[i] < least ? second[i] : least;
    }
    float best = error_of_entry(grid, t, *entry, twice, square);
    for (int h = 0; h < grid->n_halves; h++) {
        const float first = error_of(t, 0, h, twice, square);
        if (first + least < best) search_list(grid, h, first, second, &best, entry);
    }
    return best;
}

#if defined(__x86_64__)
CPU_TARGET_AVX2 static inline __m256 errors_of(const struct quant_grid_sums *t, int half, int i,
                                               __m256 twice, __m256 square)
{
    return _mm256_sub_ps(_mm256_mul_ps(square, _mm256_loadu_ps(t->vv[half] + i)),
                         _mm256_mul_ps(twice, _mm256_loadu_ps(t->xv[half] + i)));
}

/* One comparison with the best entry so far decides which of eight lists are read. A list that a
 * later best entry would exclude has no better entry, so the result is the same. */
CPU_TARGET_AVX2 float quant_grid_search_avx2(const struct quant_grid *grid,
                                             const struct quant_grid_sums *t, float scale,
                                             uint16_t *entry)
{
    const __m256 twice = _mm256_set1_ps(2.0f * scale), square = _mm256_set1_ps(scale * scale);
    float first[8], second[QUANT_GRID_HALVES];
    __m256 least = _mm256_set1_ps(INFINITY);
    for (int i = 0; i < grid->n_halves; i += 8) {
        const __m256 e = errors_of(t, 1, i, twice, square);
        _mm256_storeu_ps(second + i, e);
        least = _mm256_min_ps(e, least);
    }
    least = _mm256_min_ps(least, _mm256_permute2f128_ps(least, least, 1));
    least = _mm256_min_ps(least, _mm256_shuffle_ps(least, least, 0x4e));
    least = _mm256_min_ps(least, _mm256_shuffle_ps(least, least, 0xb1));
    float best = error_of_entry(grid, t, *entry, 2.0f * scale, scale * scale);
    for (int i = 0; i < grid->n_halves; i += 8) {
        const __m256 e = errors_of(t, 0, i, twice, square);
        unsigned lists = (unsigned)_mm256_movemask_ps(
            _mm256_cmp_ps(_mm256_add_ps(e, least), _mm256_set1_ps(best), _CMP_LT_OQ));
        if (!lists) continue;
        _mm256_storeu_ps(first, e);
        for (; lists; lists &= lists - 1) {
            const int l = __builtin_ctz(lists);
            search_list(grid, i + l, first[l], second, &best, entry);
        }
    }
    return best;
}

CPU_TARGET_AVX512 static inline __m512 errors_of_16(const struct quant_grid_sums *t, int half,
                                                    int i, __m512 twice, __m512 square)
{
    return _mm512_sub_ps(_mm512_mul_ps(square, _mm512_loadu_ps(t->vv[half] + i)),
                         _mm512_mul_ps(twice, _mm512_loadu_ps(t->xv[half] + i)));
}

/* The elements of table[6][16] at `place`. */
CPU_TARGET_AVX512 static inline __m512 look_up(const __m512 table[6], __m512i place)
{
    const __m512 a = _mm512_permutex2var_ps(table[0], place, table[1]);
    const __m512 b = _mm512_permutex2var_ps(table[2], place, table[3]);
    const __m512 c = _mm512_permutex2var_ps(table[4], place, table[5]);
    const __mmask16 past_a = _mm512_cmpgt_epi32_mask(place, _mm512_set1_epi32(31));
    const __mmask16 past_b = _mm512_cmpgt_epi32_mask(place, _mm512_set1_epi32(63));
    return _mm512_mask_mov_ps(_mm512_mask_mov_ps(a, past_a, b), past_b, c);
}

/* Reads lists 16 entries at a time; among equally good entries the first is taken, as in the scalar
 * search. */
CPU_TARGET_AVX512 float quant_grid_search_avx512(const struct quant_grid *grid,
                                                 const struct quant_grid_sums *t, float scale,
                                                 uint16_t *entry)
{
    const __m512 twice = _mm512_set1_ps(2.0f * scale), square = _mm512_set1_ps(scale * scale);
    float first[16];
    __m512 second[6], least = _mm512_set1_ps(INFINITY);
    EACH (i, 6) {
        second[i] = errors_of_16(t, 1, 16 * i, twice, square);
        least = _mm512_min_ps(second[i], least);
    }
    least = _mm512_set1_ps(_mm512_reduce_min_ps(least));
    float best = error_of_entry(grid, t, *entry, 2.0f * scale, scale * scale);
    for (int i = 0; i < grid->n_halves; i += 16) {
        const __m512 e = errors_of_16(t, 0, i, twice, square);
        unsigned lists =
            _mm512_cmp_ps_mask(_mm512_add_ps(e, least), _mm512_set1_ps(best), _CMP_LT_OQ);
        if (!lists) continue;
        _mm512_storeu_ps(first, e);
        for (; lists; lists &= lists - 1) {
            const int l = __builtin_ctz(lists), end = grid->first[i + l + 1];
            for (int at = grid->first[i + l]; at < end; at += 16) {
                const __m512i place =
                    _mm512_cvtepu8_epi32(_mm_loadu_si128((const __m128i *)(grid->second + at)));
                const __mmask16 some = (__mmask16)(end - at >= 16 ? 0xffff : (1 << (end - at)) - 1);
                const __m512 sum = _mm512_add_ps(_mm512_set1_ps(first[l]), look_up(second, place));
                const __mmask16 better =
                    _mm512_mask_cmp_ps_mask(some, sum, _mm512_set1_ps(best), _CMP_LT_OQ);
                if (!better) continue;
                best = _mm512_mask_reduce_min_ps(better, sum);
                const __mmask16 found =
                    _mm512_mask_cmp_ps_mask(better, sum, _mm512_set1_ps(best), _CMP_EQ_OQ);
                *entry = grid->listed[at + __builtin_ctz(found)];
            }
        }
    }
    return best;
}
#endif

/* The best entries of sub-block s for c->scale, all with one shift unless `down` is NULL. The
 * search begins at the entries of *c. */
static void choose_with(const struct quant_grid *grid, const struct tables *t, int s,
                        const bool *down, struct choice *c)
{
    const struct quant_grid_form *form = grid->form;
    const int groups = form->sub_len / form->entry_len;
    c->error = 0.0f;
    for (int i = 0; i < groups; i++) {
        const int group = s * groups + i;
        uint16_t other = c->entry[i];
        c->down[i] = down && *down;
        float best =
            grid->search(grid, sums_of(form, t, group, c->down[i]), c->scale, &c->entry[i]);
        if (form->signs == QUANT_GRID_SHIFTS && !down) {
            const float error = grid->search(grid, sums_of(form, t, group, true), c->scale, &other);
            if (error < best) {
                best = error;
                c->entry[i] = other;
                c->down[i] = true;
            }
        }
        c->error += best + t->xx[group];
    }
}

static void add_sums(const struct quant_grid *grid, const struct tables *t, int s, struct choice *c)
{
    const int groups = grid->form->sub_len / grid->form->entry_len;
    c->xv = c->vv = 0.0f;
    for (int i = 0; i < groups; i++) {
        const struct quant_grid_sums *sums = sums_of(grid->form, t, s * groups + i, c->down[i]);
        const int first = grid->half[0][c->entry[i]], second = grid->half[1][c->entry[i]];
        c->xv += sums->xv[0][first] + sums->xv[1][second];
        c->vv += sums->vv[0][first] + sums->vv[1][second];
    }
}

/* The best entries of sub-block s for c->scale; the search begins at the entries of *c. */
static void choose(const struct quant_grid *grid, const struct tables *t, int s, struct choice *c)
{
    const struct quant_grid_form *form = grid->form;
    if (form->signs == QUANT_GRID_SHIFTS && form->shift_len == form->sub_len) {
        struct choice other = *c;
        choose_with(grid, t, s, &(const bool){false}, c);
        choose_with(grid, t, s, &(const bool){true}, &other);
        if (other.error < c->error) *c = other;
    } else {
        choose_with(grid, t, s, NULL, c);
    }
    add_sums(grid, t, s, c);
}

/* Sub-block s alone: its best scale and entries. */
static struct choice fit_sub(const struct quant_grid *grid, const float *x, const struct tables *t,
                             int s)
{
    const struct quant_grid_form *form = grid->form;
    float largest = 0.0f;
    for (int i = 0; i < form->sub_len; i++)
        if (fabsf(x[i]) > largest) largest = fabsf(x[i]);
    struct choice best = {.error = INFINITY}, c = {0};
    if (largest == 0.0f) return c;
    c.scale = largest / (float)form->level[form->n_levels - 1] / form->first;
    for (int i = 0; i < form->n_scales; i++, c.scale /= form->ratio) {
        choose(grid, t, s, &c);
        if (c.error < best.error) best = c;
    }
    for (int i = 0; i < REFITS && best.vv > 0.0f && best.xv > 0.0f; i++) {
        c = best;
        c.scale = best.xv / best.vv;
        choose(grid, t, s, &c);
        if (!(c.error < best.error)) break;
        best = c;
    }
    return best;
}

/* ---- The super-block ---- */

/* Moves the signs to sign[]: x becomes the value to compare with magnitudes. */
static void take_signs(const struct quant_grid_form *form, struct elements *e, uint8_t sign[32])
{
    memset(sign, 0, 32);
    if (form->signs == QUANT_GRID_SHIFTS) return;
    for (int g = 0; g < 32; g++) {
        int least = 0;
        float cost = INFINITY;
        for (int i = 0; i < 8; i++) {
            float *x = &e->x[8 * g + i], w = e->w[8 * g + i];
            if (*x < 0.0f) sign[g] |= (uint8_t)(1 << i);
            *x = fabsf(*x);
            if (!(w * *x * *x < cost)) continue;
            cost = w * *x * *x;
            least = i;
        }
        if (form->signs != QUANT_GRID_SIGNS_EVEN || __builtin_popcount(sign[g]) % 2 == 0) continue;
        sign[g] ^= (uint8_t)(1 << least); /* the element whose wrong sign costs least */
        e->x[8 * g + least] = -e->x[8 * g + least];
    }
}

static void put_choice(const struct quant_grid_form *form, int s, int scale, const struct choice *c,
                       struct quant_grid_fit *out)
{
    const int groups = form->sub_len / form->entry_len;
    out->scale[s] = (uint8_t)scale;
    for (int g = 0; g < groups; g++) {
        out->entry[s * groups + g] = c->entry[g];
        if (c->down[g]) out->down[(s * groups + g) * form->entry_len / 8] = 1;
    }
}

/* Chooses integer scales and entries for out->d; returns the error, and in *solved the best d for
 * them. */
static float choose_all(const struct quant_grid *grid, const struct tables *t,
                        const struct choice *ideal, struct quant_grid_fit *out, float *solved)
{
    const struct quant_grid_form *form = grid->form;
    const float d = quant_f16_to_f32(out->d) * form->factor;
    float error = 0.0f, up = 0.0f, down = 0.0f;
    memset(out->down, 0, sizeof out->down);
    for (int s = 0; s < FIT_LEN / form->sub_len; s++) {
        const float wanted = 0.5f * (ideal[s].scale * quant_fit_inverse(d) - 1.0f);
        const int low = (int)quant_fit_integer(wanted - 0.5f, 0.0f, (float)form->max_scale);
        struct choice best = {.error = INFINITY};
        int scale = low;
        for (int l = low; l <= low + 1 && l <= form->max_scale; l++) {
            struct choice c = ideal[s];
            c.scale = d * (float)(2 * l + 1);
            choose(grid, t, s, &c);
            if (!(c.error < best.error)) continue;
            best = c;
            scale = l;
        }
        put_choice(form, s, scale, &best, out);
        error += best.error;
        up += best.xv * (float)(2 * scale + 1);
        down += best.vv * (float)((2 * scale + 1) * (2 * scale + 1));
    }
    *solved = down > 0.0f ? up / down : 0.0f;
    return error;
}

void quant_grid_fit(const struct quant_grid *grid, const float *in, const float *importance,
                    struct quant_grid_fit *out)
{
    const struct quant_grid_form *form = grid->form;
    struct elements e;
    struct tables t;
    struct quant_grid_fit trial = {0};
    struct choice ideal[16];
    float largest = 0.0f, best = INFINITY;
    *out = (struct quant_grid_fit){.d = FIT_NAN};
    if (!quant_fit_prepare(FIT_LEN, in, importance, e.x, e.w)) return;
    take_signs(form, &e, trial.sign);
    fill_tables(form, &e, &t);
    for (int s = 0; s < FIT_LEN / form->sub_len; s++) {
        ideal[s] = fit_sub(grid, e.x + s * form->sub_len, &t, s);
        if (ideal[s].scale > largest) largest = ideal[s].scale;
    }
    float d = largest / (float)(2 * form->max_scale + 1);
    for (int round = 0; round < ROUNDS; round++) {
        trial.d = quant_fit_half(d / form->factor);
        const float error = choose_all(grid, &t, ideal, &trial, &d);
        if (!(error < best)) break;
        best = error;
        *out = trial;
        if (!(d > 0.0f)) break;
    }
}

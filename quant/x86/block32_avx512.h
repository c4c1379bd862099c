/* quant/x86/block32_avx512.h: private to quant/: gemv of types with blocks of 32, with AVX-512,
 * on interleaved rows (quant/row_groups.h).
 *
 * A step multiplies blocks b and b + 1 of each of eight rows. Register j of its products, j = 0 to
 * 3, has four partial sums of a block in each 128-bit lane; then adjacent elements are added until
 * one register has the sums of all sixteen blocks (elements from 3 down to 0 of each lane):
 *
 *     lane               3              2              1              0
 *     products j         row j+4, b+1   row j+4, b     row j, b+1     row j, b
 *     sums, rows         7 6 5 4        7 6 5 4        3 2 1 0        3 2 1 0
 *     sums, block        b+1            b              b+1            b
 *
 * The values v of these sixteen blocks are computed at once; then lanes 0 and 2 are added to the
 * accumulator, then lanes 1 and 3. A load of 64 bytes usually crosses a cache line, but reads both
 * blocks of a row with their scales. */
#pragma once

#include "quant/x86/block32_x86.h"

/* A step's blocks of eight rows: two of each row; or one, when lanes 1 and 3 are unused. */
struct quant_step_rows {
    const uint8_t *at;          /* row 0 */
    size_t stride;              /* bytes from row to row */
    const uint8_t *const *list; /* the starts of listed rows, or NULL; the blocks begin `done` */
    size_t done;                /* bytes after them */
    bool two;
    bool inside;       /* 64 bytes may be read from the start of the blocks */
    const char *ahead; /* eight lines to prefetch by PREFETCHNTA during the step; NULL: none */
};

/* The blocks of row i. */
CPU_TARGET_AVX512 QUANT_INLINE const uint8_t *quant_step_row(const struct quant_step_rows *rows,
                                                             int i)
{
    return rows->list ? rows->list[i] + rows->done : rows->at + (size_t)i * rows->stride;
}

/* Prefetches line i of `ahead` after the load of *loaded; the dependency keeps gcc from moving all
 * prefetches of a step to one place. */
CPU_TARGET_AVX512 QUANT_INLINE void quant_step_prefetch(const struct quant_step_rows *rows, int i,
                                                        __m512i *loaded)
{
    if (rows->ahead) __asm__("prefetchnta %1" : "+v"(*loaded) : "m"(rows->ahead[64 * i]));
}

/* Sixteen blocks of a column in the order of a single-row step's registers
 * (quant/x86/block32_single_row.h):
 *
 *     type with         register    block and its elements in each quarter
 *     bytes             q[j]        2j: 0..15    2j: 16..31       2j + 1: 0..15    2j + 1: 16..31
 *     other codes       q[2j]       2j: 0..15    2j + 1: 0..15    2j + 8: 0..15    2j + 9: 0..15
 *                       q[2j + 1]   elements 16..31 of these blocks */
struct quant_row_column {
    _Alignas(64) int8_t q[8][64];
    float d[16], s[16];
    int32_t less[16]; /* -offset * (sum of q) */
};

/* The elements of the column for a step. Interleaved rows share the column's blocks b and b + 1:
 *
 *     q       elements 0..31 of b, then of b + 1
 *     low     elements 0..15 of the lane's block
 *     high    elements 16..31 of the lane's block */
struct quant_step_column {
    __m512i q, low, high;
    const struct quant_row_column *single_row; /* NULL: interleaved */
};

/* The column's bytes for register j of eight. */
CPU_TARGET_AVX512 QUANT_INLINE __m512i quant_step_q(const struct quant_step_column *column,
                                                    size_t j)
{
    return column->single_row ? _mm512_load_si512(column->single_row->q[j]) : column->q;
}

/* Adds adjacent sums of two registers: four sums per lane become two; a second call makes them one
 * (quant_add_pairs_avx2). */
CPU_TARGET_AVX512 QUANT_INLINE __m512i quant_add_pairs_avx512(bool fit_16, __m512i a, __m512i b)
{
    if (fit_16) return _mm512_madd_epi16(_mm512_packs_epi32(a, b), _mm512_set1_epi16(1));
    return _mm512_add_epi32(_mm512_unpacklo_epi32(a, b), _mm512_unpackhi_epi32(a, b));
}

/* The second call for the sums of quant_add_pairs_avx512 (quant_add_rest_avx2). */
CPU_TARGET_AVX512 QUANT_INLINE __m512i quant_add_rest_avx512(struct quant_form32 form, __m512i a,
                                                             __m512i b)
{
    if (quant_sixteens_fit_16(form)) return quant_add_pairs_avx512(true, a, b);
    if (!quant_eights_fit_16(form))
        return _mm512_add_epi32(_mm512_unpacklo_epi64(a, b), _mm512_unpackhi_epi64(a, b));
    __m512 f0 = _mm512_castsi512_ps(a), f1 = _mm512_castsi512_ps(b);
    return _mm512_add_epi32(_mm512_castps_si512(_mm512_shuffle_ps(f0, f1, 0x88)),
                            _mm512_castps_si512(_mm512_shuffle_ps(f0, f1, 0xdd)));
}

/* Adds the four partial sums of each lane of four registers: one register of 16 sums. */
CPU_TARGET_AVX512 QUANT_INLINE __m512i quant_add_four_avx512(struct quant_form32 form,
                                                             const __m512i sum[4])
{
    const bool fit_16 = quant_eights_fit_16(form);
    return quant_add_rest_avx512(form, quant_add_pairs_avx512(fit_16, sum[0], sum[1]),
                                 quant_add_pairs_avx512(fit_16, sum[2], sum[3]));
}

/* ---- Nibbles: blocks of at most 32 bytes, one load for both blocks of a row ---- */

/* The rows of register j: rows j and j + 4. */
struct quant_step_pair {
    __m512i first, second;
};

CPU_TARGET_AVX512 QUANT_INLINE struct quant_step_pair
quant_step_load(const struct quant_step_rows *rows, size_t block_bytes, int j)
{
    const __mmask64 bytes = ((__mmask64)1 << (rows->two ? 2 * block_bytes : block_bytes)) - 1;
    const uint8_t *first = quant_step_row(rows, j), *second = quant_step_row(rows, j + 4);
    if (rows->inside)
        return (struct quant_step_pair){_mm512_loadu_si512(first), _mm512_loadu_si512(second)};
    return (struct quant_step_pair){_mm512_maskz_loadu_epi8(bytes, first),
                                    _mm512_maskz_loadu_epi8(bytes, second)};
}

/* Moves the 16-bit words `words`, counted from the start of a block, of each block to its lane. */
CPU_TARGET_AVX512 QUANT_INLINE __m512i quant_step_words(struct quant_step_pair pair,
                                                        size_t block_bytes, __m128i words)
{
    const __m128i next = _mm_add_epi16(words, _mm_set1_epi16((short)(block_bytes / 2)));
    const __m256i row = _mm256_set_m128i(next, words);
    const __m512i both = quant_join_avx512(row, _mm256_add_epi16(row, _mm256_set1_epi16(32)));
    return _mm512_permutex2var_epi16(pair.first, both, pair.second);
}

/* Sixteen bytes that begin `at` bytes (an even number) after the block's start. */
CPU_TARGET_AVX512 QUANT_INLINE __m512i quant_step_bytes(struct quant_step_pair pair,
                                                        size_t block_bytes, size_t at)
{
    const __m128i words = _mm_setr_epi16(0, 1, 2, 3, 4, 5, 6, 7);
    return quant_step_words(pair, block_bytes,
                            _mm_add_epi16(words, _mm_set1_epi16((short)(at / 2))));
}

/* The fifth bits, which follow the scales: bytes 4 to 7 of each lane of `heads`. */
CPU_TARGET_AVX512 QUANT_INLINE void quant_step_fifth_bits(__m512i heads, __m512i *low,
                                                          __m512i *high)
{
    const __m512i bit = _mm512_set1_epi64((long long)0x8040201008040201);
    const __m512i sixteen = _mm512_set1_epi8(16);
    const long long ones = 0x0101010101010101;
    const __m512i places = _mm512_broadcast_i32x4(_mm_set_epi64x(5 * ones, 4 * ones));
    const __m512i in_low = _mm512_shuffle_epi8(heads, places);
    const __m512i in_high =
        _mm512_shuffle_epi8(heads, _mm512_add_epi8(places, _mm512_set1_epi8(2)));
    *low = _mm512_mask_add_epi8(*low, _mm512_test_epi8_mask(in_low, bit), *low, sixteen);
    *high = _mm512_mask_add_epi8(*high, _mm512_test_epi8_mask(in_high, bit), *high, sixteen);
}

/* The bytes of nibbles and the first words of the blocks of register j. The first four bytes of
 * each lane of `heads` are d, and m in types with minima; the next four are the bytes that follow
 * in the block. */
struct quant_step_nibbles {
    struct quant_step_pair pair; /* unused in blocks of an odd number of bytes */
    __m512i qs, heads;
};

CPU_TARGET_AVX512 QUANT_INLINE struct quant_step_nibbles
quant_step_even(struct quant_form32 form, const struct quant_step_rows *rows, bool keep, int j)
{
    struct quant_step_nibbles n = {.pair = quant_step_load(rows, form.block_bytes, j)};
    /* After this empty statement gcc cannot load the value again for its second use. */
    if (keep) __asm__("" : "+v"(n.pair.first), "+v"(n.pair.second));
    n.heads = quant_step_words(n.pair, form.block_bytes,
                               form.has_min ? _mm_set1_epi64x(0x0003000200010000)
                                            : _mm_set1_epi64x(0x0002000100000000));
    n.qs = quant_step_bytes(n.pair, form.block_bytes, form.codes);
    return n;
}

/* Blocks of 17 bytes, of which the first is e: permutations of 16-bit words cannot separate them,
 * so the bytes of each block are loaded. e of the second block of a row is byte 1 of its lane of
 * `heads`. */
CPU_TARGET_AVX512 QUANT_INLINE struct quant_step_nibbles
quant_step_odd(struct quant_form32 form, const struct quant_step_rows *rows, int j)
{
    const uint8_t *row[2] = {quant_step_row(rows, j), quant_step_row(rows, j + 4)};
    __m256i qs[2], heads[2];
    for (int i = 0; i < 2; i++) {
        const uint8_t *first = row[i] + form.codes;
        if (rows->two) {
            qs[i] = quant_pair_avx2(first, first + form.block_bytes);
            heads[i] = _mm256_loadu_si256((const __m256i *)row[i]);
        } else {
            qs[i] = _mm256_castsi128_si256(_mm_loadu_si128((const __m128i *)first));
            heads[i] = _mm256_castsi128_si256(_mm_cvtsi32_si128(*row[i]));
        }
    }
    return (struct quant_step_nibbles){.qs = quant_join_avx512(qs[0], qs[1]),
                                       .heads = quant_join_avx512(heads[0], heads[1])};
}

/* The codes of each lane's block: elements 0 to 15, and 16 to 31. */
CPU_TARGET_AVX512 QUANT_INLINE void quant_step_codes(struct quant_form32 form,
                                                     const struct quant_step_nibbles *n,
                                                     __m512i *low, __m512i *high)
{
    const __m512i nibble = _mm512_set1_epi8(15);
    *low = _mm512_and_si512(n->qs, nibble);
    *high = _mm512_and_si512(_mm512_srli_epi16(n->qs, 4), nibble);
    if (form.fifth) quant_step_fifth_bits(n->heads, low, high);
    if (form.top) {
        const __m512i top = _mm512_set1_epi8(0x30);
        const __m512i bytes = quant_step_bytes(n->pair, form.block_bytes, form.top);
        const __m512i both = _mm512_unpacklo_epi64(bytes, _mm512_srli_epi16(bytes, 4));
        *low = _mm512_or_si512(*low, _mm512_and_si512(_mm512_slli_epi16(both, 4), top));
        *high = _mm512_or_si512(*high, _mm512_and_si512(_mm512_slli_epi16(both, 2), top));
    }
    if (form.codebook) {
        const __m512i book = _mm512_broadcast_i64x4(quant_codebook_avx2(form));
        *low = _mm512_shuffle_epi8(book, *low);
        *high = _mm512_shuffle_epi8(book, *high);
    }
}

CPU_TARGET_AVX512 QUANT_INLINE void
quant_step_sums_nibbles(struct quant_form32 form, const struct quant_step_rows *rows, int n_columns,
                        const struct quant_step_column *column, __m512i *heads, __m512i *isum)
{
    __m512i sum[QUANT_FEW_COLUMNS][4], head[4];
    for (int j = 0; j < 4; j++) {
        __m512i low, high;
        const struct quant_step_nibbles n =
            form.block_bytes % 2 != 0 ? quant_step_odd(form, rows, j)
                                      : quant_step_even(form, rows, column->single_row, j);
        head[j] = n.heads;
        quant_step_codes(form, &n, &low, &high);
        EACH (c, n_columns) {
            __m512i q_low = column[c].low, q_high = column[c].high;
            if (column->single_row) {
                q_low = _mm512_load_si512(column->single_row->q[2 * j]);
                q_high = _mm512_load_si512(column->single_row->q[2 * j + 1]);
            }
            sum[c][j] = _mm512_dpbusd_epi32(_mm512_setzero_si512(), low, q_low);
            sum[c][j] = _mm512_dpbusd_epi32(sum[c][j], high, q_high);
        }
    }
    *heads = _mm512_unpacklo_epi64(_mm512_unpacklo_epi32(head[0], head[1]),
                                   _mm512_unpacklo_epi32(head[2], head[3]));
    EACH (c, n_columns) isum[c] = quant_add_four_avx512(form, sum[c]);
}

/* ---- Bytes: both blocks' codes of a row fill a register ---- */

/* The codes of row j. */
CPU_TARGET_AVX512 QUANT_INLINE __m512i quant_step_row_codes(struct quant_form32 form,
                                                            const struct quant_step_rows *rows,
                                                            int j)
{
    const uint8_t *at = quant_step_row(rows, j);
    const __m256i *first = (const __m256i *)(at + form.codes);
    const __m256i *second = (const __m256i *)(at + (rows->two ? form.block_bytes : 0) + form.codes);
    __m512i codes = quant_join_avx512(_mm256_loadu_si256(first), _mm256_loadu_si256(second));
    quant_step_prefetch(rows, j, &codes);
    return _mm512_xor_si512(codes, _mm512_set1_epi8(-128));
}

/* The words `at` bytes from the blocks of rows j .. j + 3. */
CPU_TARGET_AVX512 QUANT_INLINE __m128i quant_step_heads(const struct quant_step_rows *rows, int j,
                                                        size_t at)
{
    __m128i heads = _mm_cvtsi32_si128(quant_load32(quant_step_row(rows, j) + at));
    heads = _mm_insert_epi32(heads, quant_load32(quant_step_row(rows, j + 1) + at), 1);
    heads = _mm_insert_epi32(heads, quant_load32(quant_step_row(rows, j + 2) + at), 2);
    return _mm_insert_epi32(heads, quant_load32(quant_step_row(rows, j + 3) + at), 3);
}

CPU_TARGET_AVX512 QUANT_INLINE void
quant_step_sums_bytes(struct quant_form32 form, const struct quant_step_rows *rows, int n_columns,
                      const struct quant_step_column *column, __m512i *heads, __m512i *isum)
{
    __m512i four[QUANT_FEW_COLUMNS][2];
    __m256i head[2];
    EACH (i, 2) {
        __m512i sum[QUANT_FEW_COLUMNS][4];
        EACH (j, 4) {
            const __m512i codes = quant_step_row_codes(form, rows, 4 * i + j);
            EACH (c, n_columns)
                sum[c][j] = _mm512_dpbusd_epi32(_mm512_setzero_si512(), codes,
                                                quant_step_q(column + c, (size_t)(4 * i + j)));
        }
        EACH (c, n_columns) four[c][i] = quant_add_four_avx512(form, sum[c]);
        head[i] = _mm256_set_m128i(quant_step_heads(rows, 4 * i, rows->two ? form.block_bytes : 0),
                                   quant_step_heads(rows, 4 * i, 0));
    }
    *heads = quant_join_avx512(head[0], head[1]);
    EACH (c, n_columns)
        isum[c] = _mm512_add_epi32(_mm512_shuffle_i64x2(four[c][0], four[c][1], 0x88),
                                   _mm512_shuffle_i64x2(four[c][0], four[c][1], 0xdd));
}

/* Computes the sums of products of the codes with each of n_columns columns, and the first words of
 * the blocks: d in the low half of each element, m in the high half in types with minima. */
CPU_TARGET_AVX512 QUANT_INLINE void
quant_step_sums(struct quant_form32 form, const struct quant_step_rows *rows, int n_columns,
                const struct quant_step_column *column, __m512i *heads, __m512i *isum)
{
    if (form.bytes)
        quant_step_sums_bytes(form, rows, n_columns, column, heads, isum);
    else
        quant_step_sums_nibbles(form, rows, n_columns, column, heads, isum);
}

/* ---- From sums to values ---- */

/* Constants of a gemv, for all groups of rows. */
struct quant_product512 {
    struct quant_form32 form;
    int64_t n_blocks;
    const struct quant_act *a; /* of each column */
    int n_columns;
};

/* Broadcasts the numbers of two blocks, from the column's array, to the lanes of each block; or one
 * number to all lanes. */
CPU_TARGET_AVX512 QUANT_INLINE __m512 quant_step_floats(const float *x, bool two)
{
    if (!two) return _mm512_set1_ps(*x);
    double both;
    memcpy(&both, x, sizeof both);
    const __m512i lane = _mm512_setr_epi32(0, 0, 0, 0, 1, 1, 1, 1, 0, 0, 0, 0, 1, 1, 1, 1);
    return _mm512_permutevar_ps(_mm512_castpd_ps(_mm512_set1_pd(both)), lane);
}

/* Subtracts the offset from the sums, given the sums of q in two adjacent 16-bit words. */
CPU_TARGET_AVX512 QUANT_INLINE __m512i quant_step_less(int offset, __m512i isum, const int16_t *sum,
                                                       bool two)
{
    if (!two) return _mm512_sub_epi32(isum, _mm512_set1_epi32(offset * sum[0]));
    int both;
    memcpy(&both, sum, sizeof both);
    const int first = -offset & 0xffff, second = (int)((uint32_t)-offset << 16);
    const __m512i factors =
        _mm512_setr_epi32(first, first, first, first, second, second, second, second, first, first,
                          first, first, second, second, second, second);
    return _mm512_dpwssd_epi32(isum, factors, _mm512_set1_epi32(both));
}

/* quant_e8m0 of the first bytes of sixteen blocks, which are bytes 1 in lanes 1 and 3. */
CPU_TARGET_AVX512 QUANT_INLINE __m512 quant_step_e8m0(__m512i heads)
{
    const __m512i place = _mm512_setr_epi32(0, 0, 0, 0, 8, 8, 8, 8, 0, 0, 0, 0, 8, 8, 8, 8);
    const __m512i one = _mm512_set1_epi32(1);
    const __m512i e = _mm512_and_si512(_mm512_srlv_epi32(heads, place), _mm512_set1_epi32(0xff));
    const __m512i subnormal = _mm512_sllv_epi32(_mm512_set1_epi32(0x00200000), e);
    return _mm512_castsi512_ps(_mm512_mask_slli_epi32(subnormal, _mm512_cmpgt_epi32_mask(e, one),
                                                      _mm512_sub_epi32(e, one), 23));
}

/* v of sixteen blocks, from their integer sums without offset, the blocks' first words, and the
 * column's d and s. */
CPU_TARGET_AVX512 QUANT_INLINE __m512 quant_step_values(struct quant_form32 form, __m512i isum,
                                                        __m512i heads, __m512 x_d, __m512 x_s)
{
    /* The low halves of all elements (d), then the high halves (m). */
    const __m512i evens =
        _mm512_set_epi16(31, 29, 27, 25, 23, 21, 19, 17, 15, 13, 11, 9, 7, 5, 3, 1, 30, 28, 26, 24,
                         22, 20, 18, 16, 14, 12, 10, 8, 6, 4, 2, 0);
    const __m512i halves = _mm512_permutexvar_epi16(evens, heads);
    const __m512 d =
        form.e8m0 ? quant_step_e8m0(heads) : _mm512_cvtph_ps(_mm512_castsi512_si256(halves));
    const __m512 scale = _mm512_mul_ps(d, x_d), v = _mm512_cvtepi32_ps(isum);
    if (!form.has_min) return _mm512_mul_ps(scale, v);
    const __m512 m = _mm512_cvtph_ps(_mm512_extracti64x4_epi64(halves, 1));
    return _mm512_fmadd_ps(scale, v, _mm512_mul_ps(m, x_s));
}

/* acc + v of the first block + v of the second; the result is in lanes 0 and 2. */
CPU_TARGET_AVX512 QUANT_INLINE __m512 quant_step_add(__m512 acc, __m512 v, bool two)
{
    acc = _mm512_add_ps(acc, v);
    return two ? _mm512_add_ps(acc, _mm512_shuffle_f32x4(v, v, 0xf5)) : acc;
}

/* ---- Interleaved rows ---- */

CPU_TARGET_AVX512 QUANT_INLINE void quant_step_interleaved(const struct quant_product512 *p,
                                                           const struct quant_step_rows *rows,
                                                           int64_t b, __m512 *acc)
{
    const bool two = rows->two;
    struct quant_step_column column[QUANT_FEW_COLUMNS];
    __m512i heads, isum[QUANT_FEW_COLUMNS];
    EACH (c, p->n_columns) {
        const __m512i q = _mm512_loadu_si512(p->a[c].q + 32 * b);
        column[c] = (struct quant_step_column){.q = q,
                                               .low = _mm512_shuffle_i64x2(q, q, 0x88),
                                               .high = _mm512_shuffle_i64x2(q, q, 0xdd)};
    }
    quant_step_sums(p->form, rows, p->n_columns, column, &heads, isum);
    EACH (c, p->n_columns) {
        const struct quant_act *a = &p->a[c];
        if (p->form.offset != 0)
            isum[c] = quant_step_less(p->form.offset, isum[c], a->sum + b, two);
        __m512 x_s = _mm512_setzero_ps();
        if (p->form.has_min) x_s = quant_step_floats(a->s + b, two);
        const __m512 x_d = quant_step_floats(a->d + b, two);
        acc[c] = quant_step_add(acc[c], quant_step_values(p->form, isum[c], heads, x_d, x_s), two);
    }
}

/* Called before a step that reads `bytes` of each row, `done` bytes after its start: prefetches
 * later data. */
CPU_TARGET_AVX512 QUANT_INLINE void quant_prefetch_interleaved(const struct quant_row_group *group,
                                                               const uint8_t *at, size_t done,
                                                               size_t bytes)
{
    for (size_t i = 0; i < QUANT_GEMV_ROWS; i++) {
        quant_group_prefetch_strided(group, at + i * group->row_stride, bytes);
        quant_group_prefetch_listed(group, i, done, bytes);
    }
    quant_group_prefetch_adjacent(group, at, done, bytes);
}

/* Adds blocks from b on to each column's sums. `prefetch`: prefetches later data. */
CPU_TARGET_AVX512 QUANT_INLINE void quant_blocks_interleaved(const struct quant_product512 *p,
                                                             const struct quant_row_group *group,
                                                             const uint8_t *row, int64_t b,
                                                             bool prefetch, __m512 *acc)
{
    const size_t block = p->form.block_bytes;
    const uint8_t *at = row + (size_t)b * block;
    /* A load of an even block ends less than two blocks after the step. */
    const bool odd = block % 2 != 0;
    for (; b + (odd ? 2 : 4) <= p->n_blocks; b += 2, at += 2 * block) {
        const struct quant_step_rows rows = {
            at, group->row_stride, group->list, (size_t)b * block, true, true, NULL};
        if (prefetch) quant_prefetch_interleaved(group, at, (size_t)b * block, 2 * block);
        quant_step_interleaved(p, &rows, b, acc);
    }
    for (; b < p->n_blocks; b += 2, at += 2 * block) {
        const struct quant_step_rows rows = {at,
                                             group->row_stride,
                                             group->list,
                                             (size_t)b * block,
                                             !odd && b + 2 <= p->n_blocks,
                                             false,
                                             NULL};
        if (prefetch)
            quant_prefetch_interleaved(group, at, (size_t)b * block, rows.two ? 2 * block : block);
        quant_step_interleaved(p, &rows, b, acc);
    }
}

/* Eight sums, in lanes 0 and 2. */
CPU_TARGET_AVX512 QUANT_INLINE __m512 quant_load_eight(const float *sum)
{
    return _mm512_insertf32x4(_mm512_castps128_ps512(_mm_loadu_ps(sum)), _mm_loadu_ps(sum + 4), 2);
}

CPU_TARGET_AVX512 QUANT_INLINE void quant_store_eight(__m512 acc, float *sum)
{
    _mm_storeu_ps(sum, _mm512_castps512_ps128(acc));
    _mm_storeu_ps(sum + 4, _mm512_extractf32x4_ps(acc, 2));
}

CPU_TARGET_AVX512 QUANT_INLINE void quant_rows_avx512(const struct quant_product512 *p,
                                                      const struct quant_row_group *group,
                                                      const uint8_t *row, float *sum)
{
    __m512 acc[QUANT_FEW_COLUMNS];
    EACH (c, p->n_columns) acc[c] = _mm512_setzero_ps();
    quant_blocks_interleaved(p, group, row, 0, true, acc);
    EACH (c, p->n_columns) quant_store_eight(acc[c], sum + c * QUANT_MAX_ROWS_PER_STEP);
}

CPU_TARGET_AVX512 QUANT_INLINE void quant_eight_rows_avx512(const void *product,
                                                            const struct quant_row_group *group,
                                                            const uint8_t *row, float *sum)
{
    quant_rows_avx512(product, group, row, sum);
}

/* quant/x86/super_codes.h: private to quant/: the x86 kernels of super-block types without minima
 * whose codes are small signed numbers: the I-quants with grids and the ternary types.
 *
 * A type file has three functions in addition to its scalar expand:
 *
 *     head(block)         the 16 bits of d (NULL if rows have a header)
 *     scales(block)       16-bit sub-scales: sub-block 2g in lane g of the lower half, 2g + 1 in
 *                         lane g of the upper half (equal halves with sub-blocks of 32)
 *     codes(block, s)     32 signed codes, elements 32s .. 32s + 31
 *
 * and SUPER_CODES(NAME, HEAD, FACTOR) defines NAME_gemv_avx2 and NAME_unpack_avx2 from them;
 * FACTOR, a power of two, multiplies d. Other levels inherit these, except where SUPER_CODES_512
 * defines a gemv with AVX-512 from
 *
 *     bytes(block, to)    the whole super-block: unsigned codes, and sign bits */
#pragma once

#include "quant/super/super_grid.h"
#include "quant/x86/super_gemv.h"

typedef uint16_t super_codes_head(const void *block);
typedef __m256i super_codes_scales(const void *block);
typedef __m256i super_codes_of(const void *block, int s);

/* The `head` function of types whose blocks begin with d. */
QUANT_INLINE uint16_t super_codes_first(const void *block)
{
    return quant_load16(block);
}

/* Negates the elements of v whose bits in `signs` are set. */
SUPER_AVX2 __m256i super_negate(__m256i v, uint32_t signs)
{
    const __m256i place =
        _mm256_setr_epi64x(0, 0x0101010101010101, 0x0202020202020202, 0x0303030303030303);
    const __m256i bit = _mm256_set1_epi64x((int64_t)0x8040201008040201);
    __m256i bytes = _mm256_shuffle_epi8(_mm256_set1_epi32((int32_t)signs), place);
    __m256i mask = _mm256_cmpeq_epi8(_mm256_and_si256(bytes, bit), bit);
    return _mm256_sub_epi8(_mm256_xor_si256(v, mask), mask);
}

/* Entries 4s .. 4s + 3. */
SUPER_AVX2 __m256i super_grid_entries(super_grid_entry *entry, const void *block, int s)
{
    return _mm256_setr_epi64x((int64_t)entry(block, 4 * s), (int64_t)entry(block, 4 * s + 1),
                              (int64_t)entry(block, 4 * s + 2), (int64_t)entry(block, 4 * s + 3));
}

/* The scales 2n + 1, n being the upper four bits of each of eight lanes. */
SUPER_AVX2 __m256i super_tail_scales(__m256i tails)
{
    __m256i four = _mm256_srli_epi32(tails, 28);
    __m256i scale = _mm256_permute4x64_epi64(_mm256_packus_epi32(four, four), 0x88);
    return _mm256_add_epi16(_mm256_add_epi16(scale, scale), _mm256_set1_epi16(1));
}

/* The scales 2n + 1 for eight bytes of four-bit numbers n, one per 16 elements (by_32: four bytes,
 * one per 32). */
SUPER_AVX2 __m256i super_odd_scales(__m128i nibbles, bool by_32)
{
    __m128i low = _mm_and_si128(nibbles, _mm_set1_epi8(15));
    __m128i high = _mm_and_si128(_mm_srli_epi16(nibbles, 4), _mm_set1_epi8(15));
    if (by_32) low = high = _mm_unpacklo_epi8(low, high);
    __m256i both = _mm256_set_m128i(_mm_cvtepu8_epi16(high), _mm_cvtepu8_epi16(low));
    return _mm256_add_epi16(_mm256_add_epi16(both, both), _mm256_set1_epi16(1));
}

SUPER_AVX2 __m256i super_codes_isum(const struct super_input *in, super_codes_head *head,
                                    super_codes_scales *scales, super_codes_of *codes)
{
    const __m256i scale = scales(in->block);
    __m256i acc[2] = {_mm256_setzero_si256(), _mm256_setzero_si256()};
    EACH (s, 8) {
        __m256i value = codes(in->block, s);
        __m256i x = _mm256_loadu_si256((const __m256i *)(in->q + 32 * s));
        /* VPMADDUBSW has one unsigned operand. 2 * 127 * 127 <= INT16_MAX. */
        __m256i products = _mm256_maddubs_epi16(_mm256_abs_epi8(value), _mm256_sign_epi8(x, value));
        acc[s % 2] = super_mad(acc[s % 2], products, super_scale_pair(scale, s));
    }
    in->group->d[in->j] = head(in->block);
    return _mm256_add_epi32(acc[0], acc[1]);
}

/* Stores the scales of one row in pairs of sub-blocks of 16 (8 pairs) or 32 (4 pairs). */
SUPER_AVX2 void super_codes_scales_store(__m256i scales, int sub_len, int r,
                                         struct quant_panel256 *out)
{
    uint32_t pair[8];
    __m128i even = _mm256_castsi256_si128(scales), odd = _mm256_extracti128_si256(scales, 1);
    if (sub_len == 16) {
        _mm_storeu_si128((__m128i *)pair, _mm_unpacklo_epi16(even, odd));
        _mm_storeu_si128((__m128i *)(pair + 4), _mm_unpackhi_epi16(even, odd));
    } else {
        _mm_storeu_si128((__m128i *)pair, even);
    }
    EACH (p, 128 / sub_len) memcpy(out->scale[p][r], &pair[p], sizeof pair[p]);
}

SUPER_AVX2 void super_codes_unpack(const struct super_layout *layout, float factor,
                                   super_codes_head *head, super_codes_scales *scales,
                                   super_codes_of *codes, int64_t first, int64_t n_blocks,
                                   const void *const row[QUANT_PANEL_ROWS],
                                   struct quant_panel256 *out)
{
    const __m256i offset = _mm256_set1_epi8((char)layout->panel.offset);
    for (int64_t b = first; b < first + n_blocks; b++, out++) {
        for (int r = 0; r < QUANT_PANEL_ROWS; r += 8) {
            uint8_t code[8][SUPER_LEN];
            const void *from[8];
            for (int i = 0; i < 8; i++) {
                const void *block = super_block_at(layout, row[r + i], b);
                from[i] = code[i];
                out->d[r + i] =
                    head ? _cvtsh_ss(head(block)) * factor : super_row_d(layout, row[r + i]);
                out->m[r + i] = 0.0f;
                super_codes_scales_store(scales(block), layout->panel.sub_len, r + i, out);
                EACH (s, 8)
                    _mm256_storeu_si256((__m256i *)(code[i] + 32 * s),
                                        _mm256_add_epi8(codes(block, s), offset));
            }
            for (int i = 0; i < SUPER_LEN / 16; i++) {
                __m256i v[4];
                super_rows_load(from, 16 * i, v);
                EACH (j, 4) _mm256_storeu_si256((__m256i *)out->q[4 * i + j][r], v[j]);
            }
        }
    }
}

/* ---- AVX-512: one column, by super_gemv_steps of super_gemv.h ---- */

#define SUPER_VBMI QUANT_INLINE CPU_TARGET_AVX512BF16

/* A super-block for a multiply-add of unsigned bytes: codes of elements 64i .. 64i + 63, and a bit
 * for each that is negative. */
struct super_codes_bytes {
    __m512i code[4];
    uint64_t negative[4];
};

typedef void super_codes_bytes_of(const void *block, struct super_codes_bytes *bytes);

/* The functions of a type. Codes are values plus `above`, or magnitudes with sign bits if `above`
 * is 0. */
struct super_codes_kernel {
    super_codes_head *head;
    super_codes_scales *scales; /* NULL: all are 1 */
    super_codes_bytes_of *bytes;
    int above;
};

/* Fills the column in the order of its elements. */
SUPER_AVX512 void super_codes_column(int above, float factor, const int8_t *const q[SUPER_STEP],
                                     const int16_t *const sum[SUPER_STEP], struct super_column *c)
{
    /* Sums of 16 activations, those of even sub-blocks, then of odd ones. */
    const __m256i even_odd =
        _mm256_setr_epi16(0, 2, 4, 6, 8, 10, 12, 14, 1, 3, 5, 7, 9, 11, 13, 15);
    for (int j = 0; j < SUPER_STEP; j++) {
        for (int i = 0; i < 4; i++) c->x[j][i] = _mm512_load_si512(q[j] + 64 * i);
        c->d[j] *= factor;
    }
    if (above == 0) return;
    for (int p = 0; p < 2; p++) {
        __m256i two[2];
        for (int m = 0; m < 2; m++) {
            __m256i sums = _mm256_load_si256((const __m256i *)sum[2 * p + m]);
            two[m] = _mm256_permutexvar_epi16(even_odd, sums);
        }
        __m512i both = _mm512_inserti64x4(_mm512_castsi256_si512(two[0]), two[1], 1);
        c->sum[p] = _mm512_mullo_epi16(both, _mm512_set1_epi16((int16_t)-above));
    }
}

/* Sums of four products each, of elements from 64i + 4l on in lane l of sum[i]. They fit 16 bits:
 * magnitudes are at most 62, and 4 * 62 * 127 <= INT16_MAX. */
SUPER_AVX512 void super_codes_multiply(const struct super_codes_kernel *kernel, const void *block,
                                       const __m512i x[4], __m512i sum[4])
{
    const __m512i zero = _mm512_setzero_si512();
    struct super_codes_bytes w;
    kernel->bytes(block, &w);
    EACH (i, 4) {
        __m512i xi = x[i];
        if (kernel->above == 0)
            xi = _mm512_mask_sub_epi8(xi, _cvtu64_mask64(w.negative[i]), zero, xi);
        /* Without scales sum[3] is the sum of all: 16 products per lane, 16 * 3 * 127 <=
         * INT16_MAX. */
        sum[i] = _mm512_dpbusd_epi32(kernel->scales || i == 0 ? zero : sum[i - 1], w.code[i], xi);
    }
}

/* Scales of two super-blocks, the second sixteen words after the first. */
SUPER_AVX512 __m512i super_codes_scale_pair(const struct super_codes_kernel *kernel,
                                            const void *one, const void *other)
{
    if (!kernel->scales) return _mm512_set1_epi16(1);
    return _mm512_inserti64x4(_mm512_castsi256_si512(kernel->scales(one)), kernel->scales(other),
                              1);
}

SUPER_AVX512 void super_codes_products(const struct super_codes_kernel *kernel,
                                       const uint8_t *const block[SUPER_STEP],
                                       const struct super_column *c, struct super_step *step)
{
    /* Orders the lanes so that every 128 bits have two of each super-block. */
    const __m512i lanes = _mm512_setr_epi32(0, 1, 8, 9, 2, 3, 10, 11, 4, 5, 12, 13, 6, 7, 14, 15);
    EACH (p, 2) {
        const uint8_t *one = block[2 * p], *other = block[2 * p + 1];
        const __m512i scale = super_codes_scale_pair(kernel, one, other);
        __m512i a[4], b[4], isum = _mm512_setzero_si512();
        if (kernel->above != 0)
            isum = _mm512_permutexvar_epi32(lanes, _mm512_madd_epi16(scale, c->sum[p]));
        super_codes_multiply(kernel, one, c->x[2 * p], a);
        super_codes_multiply(kernel, other, c->x[2 * p + 1], b);
        EACH (i, 4) {
            const __m512i place = super_places(2 * i, 2 * i + 8, 2 * i + 1, 2 * i + 9, 16);
            if (kernel->scales)
                isum = _mm512_dpwssd_epi32(isum, _mm512_packs_epi32(a[i], b[i]),
                                           _mm512_permutexvar_epi16(place, scale));
        }
        if (!kernel->scales)
            isum = _mm512_dpwssd_epi32(isum, _mm512_packs_epi32(a[3], b[3]), scale);
        step->isum[p] = isum;
    }
    step->d = _mm_setr_epi16((int16_t)kernel->head(block[0]), (int16_t)kernel->head(block[1]),
                             (int16_t)kernel->head(block[2]), (int16_t)kernel->head(block[3]), 0, 0,
                             0, 0);
}

/* Stores the sign bits of 32 times eight elements, given seven of each eight in the lower bits of
 * 32 bytes. */
SUPER_VBMI void super_signs_store(__m256i sevens, uint64_t negative[4])
{
    __m512i signs =
        _mm512_permutex2var_epi8(_mm512_loadu_si512(quant_signs7), _mm512_castsi256_si512(sevens),
                                 _mm512_loadu_si512(quant_signs7 + 64));
    _mm256_storeu_si256((__m256i *)negative, _mm512_castsi512_si256(signs));
}

/* super_signs_store for four times seven bits in the lower 28 bits of each of eight lanes. */
SUPER_VBMI void super_tail_signs_store(__m256i tails, uint64_t negative[4])
{
    const __m256i bits = _mm256_set1_epi64x(0x352e2720150e0700);
    super_signs_store(_mm256_multishift_epi64_epi8(bits, tails), negative);
}

/* Looks up entries in a table of n (a power of two, at least 64): the lower six bits of an index
 * select an element of each pair of registers, the other bits select the pair. */
SUPER_VBMI __m512i super_grid_lookup(const uint16_t *table, int n, __m512i at)
{
    __m512i found[16];
    EACH (i, n / 64) {
        const uint16_t *part = table + 64 * i;
        found[i] =
            _mm512_permutex2var_epi16(_mm512_load_si512(part), at, _mm512_load_si512(part + 32));
    }
    for (int left = n / 128, bit = 64; left > 0; left /= 2, bit *= 2) {
        const __mmask32 set = _mm512_test_epi16_mask(at, _mm512_set1_epi16((int16_t)bit));
        EACH (i, left) found[i] = _mm512_mask_mov_epi16(found[2 * i], set, found[2 * i + 1]);
    }
    return found[0];
}

/* Codes of IQ2 from 32 entries. */
SUPER_VBMI void super_grid_codes_2(const uint16_t *table, int n, __m512i at, __m512i code[4])
{
    const __m512i magnitude = _mm512_set1_epi32(8 | 25 << 8 | 43 << 16);
    const __m512i bits = _mm512_set1_epi64(0x0e0c0a0806040200);
    const __m512i four = _mm512_set1_epi64(0x0001000100010001);
    const __m512i first = _mm512_mullo_epi64(_mm512_setr_epi64(0, 1, 2, 3, 4, 5, 6, 7), four);
    const __m512i entries = super_grid_lookup(table, n, at);
    EACH (i, 4) {
        __m512i place = _mm512_add_epi16(first, _mm512_set1_epi16((int16_t)(8 * i)));
        __m512i eight = _mm512_permutexvar_epi16(place, entries); /* an entry in each 64 bits */
        code[i] = _mm512_permutexvar_epi8(_mm512_multishift_epi64_epi8(bits, eight), magnitude);
    }
}

/* Codes of IQ3 from 64 entries; byte i of `magnitudes` is magnitude i. */
SUPER_VBMI void super_grid_codes_3(const uint16_t *table, int n, const __m512i at[2],
                                   uint64_t magnitudes, __m512i code[4])
{
    const __m512i magnitude = _mm512_set1_epi64((int64_t)magnitudes);
    const __m512i bits = _mm512_set1_epi64(0x1916131009060300);
    EACH (h, 2) {
        const __m512i entries = super_grid_lookup(table, n, at[h]);
        EACH (i, 2) {
            __m512i two = _mm512_cvtepu32_epi64(i == 0 ? _mm512_castsi512_si256(entries)
                                                       : _mm512_extracti64x4_epi64(entries, 1));
            code[2 * h + i] =
                _mm512_permutexvar_epi8(_mm512_multishift_epi64_epi8(bits, two), magnitude);
        }
    }
}

#define SUPER_CODES(NAME, HEAD, FACTOR)                                                            \
    SUPER_AVX2 __m256i NAME##_isum(const struct super_input *in)                                   \
    {                                                                                              \
        return super_codes_isum(in, HEAD, NAME##_scales, NAME##_codes);                            \
    }                                                                                              \
    CPU_TARGET_AVX2 static void NAME##_gemv_avx2(int64_t k, const struct quant_rows *rows,         \
                                                 const struct quant_act *a, float *out)            \
    {                                                                                              \
        const struct super_kernel kernel = {.isum = NAME##_isum, .factor = (FACTOR)};              \
        super_gemv(&NAME##_layout, &kernel, k, rows, a, out);                                      \
    }                                                                                              \
    QUANT_UNPACK_AT(NAME##_unpack_avx2, CPU_TARGET_AVX2,                                           \
                    super_codes_unpack(&NAME##_layout, (FACTOR), HEAD, NAME##_scales,              \
                                       NAME##_codes, first, n_blocks, row, panel))

/* Defines NAME_gemv_512 for a level with AVX-512; SCALES and ABOVE: see struct
 * super_codes_kernel. */
#define SUPER_CODES_512(LEVEL, NAME, HEAD, FACTOR, SCALES, ABOVE)                                  \
    QUANT_INLINE CPU_TARGET_##LEVEL void NAME##_prepare(const int8_t *const q[SUPER_STEP],         \
                                                        const int16_t *const sum[SUPER_STEP],      \
                                                        struct super_column *c)                    \
    {                                                                                              \
        super_codes_column((ABOVE), (FACTOR), q, sum, c);                                          \
    }                                                                                              \
    QUANT_INLINE CPU_TARGET_##LEVEL void NAME##_products(                                          \
        int n, const uint8_t *const block[SUPER_STEP], const struct super_column *c,               \
        struct super_step *step)                                                                   \
    {                                                                                              \
        const struct super_codes_kernel kernel = {HEAD, SCALES, NAME##_bytes, ABOVE};              \
        EACH (j, n) super_codes_products(&kernel, block, c + j, step + j);                         \
    }                                                                                              \
    CPU_TARGET_##LEVEL static void NAME##_gemv_512(int64_t k, const struct quant_rows *rows,       \
                                                   const struct quant_act *a, float *out)          \
    {                                                                                              \
        super_gemv_steps(1, 1, &NAME##_layout, NAME##_prepare, NAME##_products, k, rows, a, &out); \
    }

/* Members of the row of AVX2. */
#define SUPER_CODES_AVX2(NAME)                                                                     \
    .decode = NAME##_decode_avx2, .unpack = NAME##_unpack_avx2, .panel = &NAME##_layout.panel,     \
    .gemv = NAME##_gemv_avx2

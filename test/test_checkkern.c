/* test/test_checkkern.c: every kernel of the table, at every level of this machine, against scalar.
 *
 *      test_checkkern [--seed=N]         the test; the seed is printed
 *      test_checkkern --bench [MB]       speed of the same kernels, with a memory buffer of MB
 *
 * A kernel is correct if its bits are those of the scalar specification; all NaN count as equal.
 * Data ends directly before an inaccessible page, or begins at odd addresses after one. */
#include "test/support.h"

#include "quant/quant.h"
#include "test/bench/support_kernbench.h"
#include "test/support_bed.h"
#include "test/support_files.h"
#include "test/support_floats.h"
#include "test/support_level.h"
#include "test/support_panel.h"
#include "test/support_random.h"
#include "test/support_row.h"
#include <errno.h>
#include <getopt.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static uint64_t seed = 1;

typedef void gemv_fn(int64_t k, const struct quant_rows *rows, const struct quant_act *a,
                     float *out);
typedef void gemv_few_fn(int64_t k, const struct quant_rows *rows, int n_columns,
                         const struct quant_act *a, float *const *out);
typedef void unpack_fn(int64_t first, int64_t n_blocks, const void *const row[QUANT_PANEL_ROWS],
                       void *panel);
typedef void decode_fn(int64_t first, int64_t n, const void *row, float *out);

/* The policy of any processor. */
static struct cpu_prefetch any_prefetch(struct bed *bed)
{
    const uint64_t processor = support_random_below(&bed->rng, 8);
    return (struct cpu_prefetch){.distance = 1024,
                                 .to_l1 = processor & 1,
                                 .adjacent_rows = processor & 2,
                                 .streams = processor & 4};
}

/* The kernel with the number of rows per step of any processor: its own or 1. The policy does not
 * determine it, because a kernel must be right with any policy. */
static struct quant_kernel of_any_processor(struct bed *bed, struct quant_kernel kernel)
{
    if (kernel.rows_per_step == 0 || support_random_below(&bed->rng, 2)) kernel.rows_per_step = 1;
    return kernel;
}

static int gemv_mismatches(struct bed *bed, const struct quant_type *type,
                           const struct quant_kernel *tested, int64_t k, int n_rows)
{
    const size_t row_bytes = bed_row_bytes(bed, type, k);
    uint8_t *w = bed_rows(bed, type, k, n_rows, row_bytes);
    float expected[BED_MAX_ROWS];

    bed_column_fill(&bed->column, &bed->rng, &bed->scalar, type->act, k);
    for (int r = 0; r < n_rows; r++)
        expected[r] = type->dot(k, w + row_bytes * (size_t)r, &bed->column.act);
    float *out = bed_canary_place(&bed->out, (size_t)n_rows * 4);
    const struct cpu_prefetch prefetch = any_prefetch(bed);
    const struct quant_kernel kernel = of_any_processor(bed, *tested);
    quant_gemv(&kernel, prefetch, k, w, row_bytes, n_rows, 1, &bed->column.act, &out);
    return bed_float_mismatches(n_rows, out, expected) +
           bed_canary_mismatches(&bed->out, (size_t)n_rows * 4);
}

static int gemv_few_mismatches(struct bed *bed, const struct quant_type *type,
                               const struct quant_kernel *tested, int64_t k, int n_rows)
{
    const int n_columns =
        2 + (int)support_random_below(&bed->rng, (uint32_t)tested->few_columns - 1);
    const size_t row_bytes = bed_row_bytes(bed, type, k), bytes = (size_t)(n_columns * n_rows) * 4;
    const uint8_t *w = bed_rows(bed, type, k, n_rows, row_bytes);
    float expected[QUANT_FEW_COLUMNS * BED_MAX_ROWS], *out[QUANT_FEW_COLUMNS];
    struct quant_act a[QUANT_FEW_COLUMNS];
    for (int c = 0; c < n_columns; c++) {
        bed_column_fill(&bed->few[c], &bed->rng, &bed->scalar, type->act, k);
        a[c] = bed->few[c].act;
    }
    for (int i = 0; i < n_columns * n_rows; i++)
        expected[i] = type->dot(k, w + row_bytes * (size_t)(i % n_rows), &a[i / n_rows]);
    float *all = bed_canary_place(&bed->out, bytes);
    for (int c = 0; c < n_columns; c++) out[c] = all + c * n_rows;
    const struct cpu_prefetch prefetch = any_prefetch(bed);
    const struct quant_kernel kernel = of_any_processor(bed, *tested);
    quant_gemv(&kernel, prefetch, k, w, row_bytes, n_rows, n_columns, a, out);
    return bed_float_mismatches(n_columns * n_rows, all, expected) +
           bed_canary_mismatches(&bed->out, bytes);
}

static int decode_mismatches(struct bed *bed, const struct quant_type *type, decode_fn *decode,
                             int64_t k)
{
    static float expected[BED_MAX_K];
    uint8_t *w = bed_rows(bed, type, k, 1, 0);
    type->scalar.decode(0, k, w, expected);
    /* Decodes a row from a random block to its end. */
    const int64_t n_blocks = k / type->block_len;
    const int64_t first = support_random_below(&bed->rng, (uint32_t)n_blocks) * type->block_len,
                  n = k - first;
    float *out = bed_canary_place(&bed->out, (size_t)n * 4);
    decode(first, n, w, out);
    return bed_float_mismatches(n, out, expected + first) +
           bed_canary_mismatches(&bed->out, (size_t)n * 4);
}

static int encode_mismatches(struct bed *bed, const struct quant_type *type,
                             const struct quant_kernels *kernels, bool weighted, int64_t k)
{
    static float x[BED_MAX_K], importance[BED_MAX_K];
    static uint8_t expected[BED_MAX_K * sizeof(float)];
    const size_t bytes = (size_t)quant_row_size(type, k);
    support_floats_fill(&bed->rng,
                        (enum support_floats)support_random_below(&bed->rng, SUPPORT_FLOATS_COUNT),
                        k, x);
    for (int64_t i = 0; i < k; i++) importance[i] = (float)support_random_below(&bed->rng, 1000);
    const float *by = weighted ? importance : NULL;
    quant_encode(&bed->scalar, type->id, k, x, by, expected);
    uint8_t *out = bed_canary_place(&bed->out, bytes);
    quant_encode(kernels, type->id, k, x, by, out);
    return (memcmp(out, expected, bytes) != 0) + bed_canary_mismatches(&bed->out, bytes);
}

static int panel_mismatches(const struct quant_type *type, const struct quant_panel_form *form,
                            const void *a, const void *b)
{
    if (type->act->layout == QUANT_LAYOUT_32) {
        const struct quant_panel32 *x = a, *y = b;
        return bed_float_mismatches(16, x->d, y->d) + bed_float_mismatches(16, x->m, y->m) +
               (memcmp(x->q, y->q, sizeof x->q) != 0);
    }
    const struct quant_panel256 *x = a, *y = b;
    size_t subs = 256 / form->sub_len;
    int mismatches = bed_float_mismatches(16, x->d, y->d) + bed_float_mismatches(16, x->m, y->m);
    mismatches += memcmp(x->q, y->q, sizeof x->q) != 0;
    if (!form->folded) mismatches += memcmp(x->scale, y->scale, subs / 2 * sizeof x->scale[0]) != 0;
    if (form->has_min) mismatches += memcmp(x->min, y->min, subs / 2 * sizeof x->min[0]) != 0;
    return mismatches;
}

/* Folds the scales of a panel of the type's form into its codes: the expected result of unpacking
 * to `form`. */
static void fold_panel(const struct quant_type *type, const struct quant_panel_form *form,
                       struct quant_panel256 *panel)
{
    for (int i = 0; i < 256; i++) {
        for (int r = 0; r < QUANT_PANEL_ROWS; r++) {
            uint8_t *q = &panel->q[i / 4][r][i % 4];
            const int sub = i / type->scalar.panel->sub_len;
            int32_t scale = panel->scale[sub / 2][r][sub % 2];
            int32_t code = scale * (*q - type->scalar.panel->offset) + form->offset;
            assert_in_range(code, 0, form->max_code);
            *q = (uint8_t)code;
        }
    }
}

/* Unpacks a row of k elements from any block on to its end. */
static int unpack_mismatches(struct bed *bed, const struct quant_type *type,
                             const struct quant_panel_form *form, unpack_fn *unpack, int64_t k)
{
    const size_t row_bytes = (size_t)quant_row_size(type, k),
                 size = support_panel_size(type, form->unit);
    const size_t plain = support_panel_size(type, 0);
    const int64_t n = k / type->act->block_len,
                  first = support_random_below(&bed->rng, (uint32_t)n);
    const int64_t n_blocks = n - first;
    int n_rows = 1 + (int)support_random_below(&bed->rng, QUANT_PANEL_ROWS);
    uint8_t *w = bed_rows(bed, type, k, n_rows, row_bytes);
    const void *row[QUANT_PANEL_ROWS];
    int mismatches = 0;

    for (int r = 0; r < QUANT_PANEL_ROWS; r++)
        row[r] = w + row_bytes * (r < n_rows ? (uint32_t)r
                                             : support_random_below(&bed->rng, (uint32_t)n_rows));
    char *expected = aligned_alloc(64, (size_t)n * plain);
    assert_non_null(expected);
    type->scalar.unpack(0, n, row, expected);
    for (int64_t b = 0; form->folded && b < n; b++)
        fold_panel(type, form, (struct quant_panel256 *)expected + b);
    char *out = bed_canary_place(&bed->out, (size_t)n_blocks * size);
    unpack(first, n_blocks, row, out);
    for (int64_t b = 0; b < n_blocks; b++) {
        struct quant_panel256 block;
        const void *have = out + (size_t)b * size;
        if (form->unit) support_panel_of_units(type, form, have, &block);
        mismatches += panel_mismatches(type, form, form->unit ? &block : have,
                                       expected + (size_t)(first + b) * plain);
    }
    free(expected);
    return mismatches + bed_canary_mismatches(&bed->out, (size_t)n_blocks * size);
}

/* ---- Tests ---- */

static void report(const char *what, const char *type, enum cpu_level level, int64_t k, int n_rows,
                   int mismatches)
{
    if (mismatches == 0) return;
    fail_msg("%s %s %s: k %lld, %d rows: %d mismatches (seed %llu)", what, type,
             cpu_level_name(level), (long long)k, n_rows, mismatches, (unsigned long long)seed);
}

static void check_type(struct bed *bed, const struct quant_type *type,
                       const struct quant_kernels *kernels)
{
    const struct quant_kernel *kernel = &kernels->type[type->id];
    int64_t last = type->block_len == 1 ? 70 : type->block_len == 32 ? 40 : 10;

    assert_non_null(kernel->decode);
    assert_non_null(kernel->gemv);
    assert_int_equal(kernel->unpack != NULL, !type->act->element);
    for (int64_t n = 1; n <= last + 2; n++) {
        /* The last two lengths are long. */
        int64_t k = (n <= last       ? n
                     : n == last + 1 ? 4096 / type->block_len
                                     : BED_MAX_K / type->block_len) *
                    type->block_len;
        for (int repeat = 0; repeat < (!support_quick() ? 4 : n > last ? 1 : 2); repeat++) {
            /* As many rows as any kernel processes at once. */
            int n_rows = n > last ? 8 : 1 + (int)support_random_below(&bed->rng, BED_MAX_ROWS);
            report("gemv", type->name, kernels->level, k, n_rows,
                   gemv_mismatches(bed, type, kernel, k, n_rows));
            if (kernel->few_columns > 1)
                report("gemv_few", type->name, kernels->level, k, n_rows,
                       gemv_few_mismatches(bed, type, kernel, k, n_rows));
            report("decode", type->name, kernels->level, k, 1,
                   decode_mismatches(bed, type, kernel->decode, k));
            if (kernel->encode && (n <= 4 || (!support_row_encodes_slowly(type) &&
                                              (!support_quick() || n == last + 1))))
                report("encode", type->name, kernels->level, k, 1,
                       encode_mismatches(bed, type, kernels, n <= 4 && repeat % 2, k));
            if (kernel->unpack && n <= last)
                report("unpack", type->name, kernels->level, k, 16,
                       unpack_mismatches(bed, type, kernel->panel, kernel->unpack, k));
        }
    }
    for (int n_rows = 1; n_rows <= BED_MAX_ROWS; n_rows += support_quick() ? 4 : 1) {
        int64_t k = type->block_len == 1 ? 37 : 5 * type->block_len;
        report("gemv", type->name, kernels->level, k, n_rows,
               gemv_mismatches(bed, type, kernel, k, n_rows));
    }
}

/* Whether a type has the kernels of the level before. */
static bool is_shared(const struct quant_kernels *kernels, const struct quant_kernels *before,
                      uint32_t id)
{
    return kernels->search == before->search &&
           memcmp(&kernels->type[id], &before->type[id], sizeof kernels->type[id]) == 0;
}

/* Decodes and encodes all F16 values, and encodes the floats around the midpoint above each. */
static void every_half_is_converted_as_scalar_does(void **state)
{
    (void)state;
    const struct quant_type *f16 = quant_type_by_id(QUANT_F16);
    static uint16_t half[65536], back[65536], want[65536];
    static float wide[65536];
    for (int i = 0; i < 65536; i++) half[i] = (uint16_t)i;
    for (int level = CPU_SCALAR; support_level_next(&level); level++) {
        struct quant_kernels kernels;
        quant_kernels_fill(&kernels, (enum cpu_level)level);
        const struct quant_kernel *kernel = &kernels.type[QUANT_F16];
        kernel->decode(0, 65536, half, wide);
        for (int i = 0; i < 65536; i++) {
            const float expected = quant_f16_to_f32(half[i]);
            assert_memory_equal(&wide[i], &expected, sizeof expected);
        }
        quant_encode(&kernels, QUANT_F16, 65536, wide, NULL, back);
        for (int i = 0; i < 65536; i++)
            assert_int_equal(back[i], isnan(wide[i]) ? half[i] | 0x200 : half[i]);
        for (int around = -1; around <= 1; around++) {
            for (int i = 0; i < 65536; i++) {
                uint32_t bits;
                kernel->decode(0, 1, &half[i], &wide[i]);
                memcpy(&bits, &wide[i], sizeof bits);
                wide[i] = support_floats_of_bits(bits + 0x1000 + (uint32_t)around);
            }
            support_row_encode(f16, 65536, wide, NULL, want);
            quant_encode(&kernels, QUANT_F16, 65536, wide, NULL, back);
            assert_memory_equal(back, want, sizeof want);
        }
    }
}

static void every_kernel_of_every_type_equals_scalar(void **state)
{
    (void)state;
    struct bed bed = bed_new(seed);
    struct quant_kernels kernels, before = {0};
    for (int level = CPU_SCALAR; support_level_next(&level); level++) {
        quant_kernels_fill(&kernels, (enum cpu_level)level);
        for (uint32_t id = 0; id < QUANT_ID_COUNT; id++) {
            const struct quant_type *type = quant_type_by_id(id);
            if (type && type->act != NULL && support_family_takes(id) &&
                !is_shared(&kernels, &before, id))
                check_type(&bed, type, &kernels);
        }
        before = kernels;
    }
    bed_free(&bed);
}

/* Compares all memory of a column in each form. */
static void check_act(struct bed *bed, const struct quant_kernels *kernels, int64_t k)
{
    static _Alignas(64) char memory[2][4 * BED_MAX_K + 64];
    const struct quant_kernels *by[2] = {&bed->scalar, kernels};
    for (int i = 0; i < QUANT_ACT_FORMS; i++) {
        const struct quant_act_form *form = quant_act_forms[i];
        if (k % form->block_len != 0) continue;
        const struct quant_act_parts parts = quant_act_parts(form, k);
        struct quant_act act[2];
        assert_in_range(parts.bytes, 0, sizeof memory[0]);
        memset(memory, 1, sizeof memory);
        bed_column_fill(&bed->column, &bed->rng, &bed->scalar, &quant_act_f32, k);
        for (int j = 0; j < 2; j++) {
            act[j] = quant_act_at(&parts, memory[j]);
            by[j]->quantize[i](k, bed->column.act.f32, &act[j]);
        }
        if (form->scaled_sums) { /* may be any NaN; the bits of d are specified even then */
            const int64_t n = k / form->block_len;
            assert_int_equal(bed_float_mismatches(n, act[0].s, act[1].s), 0);
            memcpy(act[1].s, act[0].s, (size_t)n * sizeof(float));
        }
        assert_memory_equal(memory[0], memory[1], sizeof memory[0]);
    }
}

static void every_kernel_of_activations_equals_scalar(void **state)
{
    (void)state;
    struct bed bed = bed_new(seed);
    for (int level = CPU_SCALAR; support_level_next(&level); level++) {
        struct quant_kernels kernels;
        quant_kernels_fill(&kernels, (enum cpu_level)level);
        for (int64_t blocks = 1; blocks <= 40; blocks++)
            for (int repeat = 0; repeat < (support_quick() ? 2 : 16); repeat++) {
                check_act(&bed, &kernels, 32 * blocks);
                check_act(&bed, &kernels, 32 * blocks - 1 - support_random_below(&bed.rng, 31));
            }
    }
    bed_free(&bed);
}

/* Results next to the smallest normal float, near 2^-126 minus half a step, where the result
 * depends on whether the exponent is examined before or after rounding. */
static void bf16_dots_agree_beside_the_smallest_normal(void **state)
{
    (void)state;
    const struct quant_type *type = quant_type_by_id(QUANT_BF16);
    uint64_t rng = seed;
    uint16_t w[32], x[32] __attribute__((aligned(64)));
    struct quant_act act = {.bf16 = x};
    int zero = 0, normal = 0;
    bool ran = false;

    for (int level = CPU_AVX2; support_level_next(&level); level++) {
        struct quant_kernels kernels;
        quant_kernels_fill(&kernels, (enum cpu_level)level);
        ran = true;
        for (int repeat = 0; repeat < 20000; repeat++) {
            memset(w, 0, sizeof w);
            memset(x, 0, sizeof x);
            int pair = (int)support_random_below(&rng, 16) * 2;
            uint16_t sign = (uint16_t)(support_random_below(&rng, 2) << 15);
            w[pair + 1] = sign | 64 << 7; /* 2^-63 */
            x[pair + 1] = 64 << 7;
            w[pair] =
                (sign ^ 0x8000) | (uint16_t)((127 - 75) << 7 | support_random_below(&rng, 128));
            x[pair] = (uint16_t)((127 - 78 + support_random_below(&rng, 5)) << 7 |
                                 support_random_below(&rng, 128));
            float expected = type->dot(32, w, &act), out, *to = &out;
            quant_gemv(&kernels.type[QUANT_BF16], kernels.prefetch, 32, w, sizeof w, 1, 1, &act,
                       &to);
            assert_memory_equal(&out, &expected, sizeof out);
            zero += expected == 0.0f;
            normal += expected != 0.0f;
        }
    }
    if (ran) assert_true(zero > 100 && normal > 100);
}

/* ---- Mutants: wrong kernels that the comparison must detect ---- */

/* Drops the last block of each row. */
static void mutant_gemv(int64_t k, const struct quant_rows *rows, const struct quant_act *a,
                        float *out)
{
    const struct quant_type *type = quant_type_by_id(QUANT_Q4_1);
    for (int64_t r = 0; r < rows->n; r++)
        out[r] = type->dot(k - 32, (const char *)rows->w + (size_t)r * rows->row_bytes, a);
}

/* Adds the blocks in the wrong order. */
static void mutant_order(int64_t k, const struct quant_rows *rows, const struct quant_act *a,
                         float *out)
{
    const struct quant_type *type = quant_type_by_id(QUANT_Q4_1);
    for (int64_t r = 0; r < rows->n; r++) {
        const char *row = (const char *)rows->w + (size_t)r * rows->row_bytes;
        out[r] = 0.0f;
        for (int64_t b = k / 32 - 1; b >= 0; b--) {
            struct quant_act one = {
                .q = a->q + 32 * b, .d = a->d + b, .s = a->s + b, .sum = a->sum + b};
            out[r] += type->dot(32, row + (size_t)b * 20, &one);
        }
    }
}

/* Computes all results from the first column. */
static void mutant_gemv_few(int64_t k, const struct quant_rows *rows, int n_columns,
                            const struct quant_act *a, float *const *out)
{
    const struct quant_type *type = quant_type_by_id(QUANT_Q4_1);
    for (int64_t i = 0; i < n_columns * rows->n; i++) {
        const int64_t r = i % rows->n;
        out[i / rows->n][r] = type->dot(k, (const char *)rows->w + (size_t)r * rows->row_bytes, a);
    }
}

/* One code of one row is off by one. */
static void mutant_unpack(int64_t first, int64_t n_blocks, const void *const row[QUANT_PANEL_ROWS],
                          void *panel)
{
    struct quant_panel32 *p = panel;
    quant_type_by_id(QUANT_Q4_1)->scalar.unpack(first, n_blocks, row, panel);
    p[n_blocks - 1].q[7][15][3] ^= 1;
}

/* Writes one element too many. */
static void mutant_decode(int64_t first, int64_t n, const void *row, float *out)
{
    quant_type_by_id(QUANT_Q4_1)->scalar.decode(first, n, row, out);
    out[n] = 0.0f;
}

struct caught {
    int dropped, order, column, unpacked, decoded; /* tries in which the mutant was detected */
};

static struct caught try_mutants(bool plain, int tries)
{
    const struct quant_type *type = quant_type_by_id(QUANT_Q4_1);
    const struct quant_kernel few = {
        .gemv_few = mutant_gemv_few, .few_columns = QUANT_FEW_COLUMNS, .rows_per_step = 1};
    const struct quant_kernel dropped = {.gemv = mutant_gemv, .few_columns = 1},
                              order = {.gemv = mutant_order, .few_columns = 1};
    struct bed bed = bed_new(seed);
    struct caught n = {0};
    bed.plain = bed.column.plain = plain;
    for (int c = 0; c < QUANT_FEW_COLUMNS; c++) bed.few[c].plain = plain;
    for (int i = 0; i < tries; i++) {
        n.dropped += gemv_mismatches(&bed, type, &dropped, 32 * 18, 7) != 0;
        n.order += gemv_mismatches(&bed, type, &order, 32 * 18, 7) != 0;
        n.column += gemv_few_mismatches(&bed, type, &few, 32 * 18, 7) != 0;
        n.unpacked += unpack_mismatches(&bed, type, type->scalar.panel, mutant_unpack, 96) != 0;
        n.decoded += decode_mismatches(&bed, type, mutant_decode, 64) != 0;
    }
    printf(
        "mutants caught in %d tries with %s data: dropped block %d, other order %d, wrong column "
        "%d, altered code %d, a byte too many %d\n",
        tries, plain ? "plain" : "adversarial", n.dropped, n.order, n.column, n.unpacked,
        n.decoded);
    bed_free(&bed);
    return n;
}

/* Plain rows detect every mutant in every run. In 12,000 runs, 43 % of adversarial rows (zeros,
 * NaN, one dominant block) detected a dropped block, and 41 % another order. */
static void wrong_kernels_are_detected(void **state)
{
    (void)state;
    enum { TRIES = 100 };
    struct caught plain = try_mutants(true, TRIES), odd = try_mutants(false, TRIES);
    assert_int_equal(plain.dropped, TRIES);
    assert_int_equal(plain.order, TRIES);
    assert_int_equal(plain.column, TRIES);
    assert_int_equal(plain.unpacked, TRIES);
    assert_int_equal(plain.decoded, TRIES);
    assert_true(odd.dropped >= TRIES / 4);
    assert_true(odd.order >= TRIES / 4);
    assert_true(odd.column >= TRIES / 4);
    assert_int_equal(odd.unpacked, TRIES);
    assert_int_equal(odd.decoded, TRIES);
}

static bool read_number(const char *text, uint64_t *number)
{
    char *end;
    errno = 0;
    *number = strtoull(text, &end, 0);
    return errno == 0 && *text >= '0' && *text <= '9' && *end == '\0';
}

static bool read_options(int argc, char **argv, bool *bench, uint64_t *mib)
{
    static const struct option options[] = {
        {"seed", required_argument, NULL, 's'}, {"bench", no_argument, NULL, 'b'}, {0}};
    bool seeded = false, ok = true;
    for (int c; ok && (c = getopt_long(argc, argv, "", options, NULL)) != -1;) {
        if (c == 'b') *bench = true;
        if (c == 's') seeded = ok = read_number(optarg, &seed);
        if (c == '?') ok = false;
    }
    if (ok && *bench && optind < argc) ok = read_number(argv[optind++], mib) && *mib > 0;
    return ok && optind == argc && !(seeded && *bench);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_kernel_of_every_type_equals_scalar),
        cmocka_unit_test(every_half_is_converted_as_scalar_does),
        cmocka_unit_test(every_kernel_of_activations_equals_scalar),
        cmocka_unit_test(bf16_dots_agree_beside_the_smallest_normal),
        cmocka_unit_test(wrong_kernels_are_detected),
    };
    bool bench = false;
    uint64_t mib = 128;
    if (!read_options(argc, argv, &bench, &mib)) {
        fprintf(stderr, "usage: test_checkkern [--seed=N | --bench [MB]]\n");
        return 2;
    }
    if (bench) return kernbench_run(mib);
    printf("seed %llu, best level %s\n", (unsigned long long)seed,
           cpu_level_name(cpu_level_best()));
    return cmocka_run_group_tests(tests, NULL, NULL);
}

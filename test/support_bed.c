/* test/support_bed.c: see test/support_bed.h. */
#include "test/support_bed.h"
#include "test/support_floats.h"
#include "test/support_random.h"
#include "test/support_row.h"
#include <math.h>
#include <string.h>

enum { CANARY = 0x5a, CANARY_BYTES = 64 };

enum weight_kind { RAW, FINITE, PATTERN, ENCODED };
enum { N_WEIGHT_KINDS = ENCODED + 1 };
enum act_kind { QUANTIZED, SPECIAL, RAW_CODES };
enum { N_ACT_KINDS = RAW_CODES + 1 };

void bed_fill_bytes(uint64_t *rng, size_t size, uint8_t *out)
{
    for (size_t i = 0; i < size; i++) out[i] = (uint8_t)support_random(rng);
}

/* One random block whose elements are all finite. */
static void fill_finite_block(uint64_t *rng, const struct quant_type *type, uint8_t *block)
{
    do bed_fill_bytes(rng, type->block_bytes, block);
    while (!isfinite(support_row_largest(type, block)));
}

/* A row like those of models: encoded from normally distributed numbers. */
static void fill_plain_row(uint64_t *rng, const struct quant_type *type, int64_t k, uint8_t *row)
{
    static float x[BED_MAX_K];
    support_floats_fill(rng, SUPPORT_GAUSS, k, x);
    support_row_make(type, k, x, row);
}

/* A random part of floats of one kind, encoded once for all rows of a type: encoding is slow. */
static void fill_encoded(uint64_t *rng, const struct quant_type *type, size_t bytes, uint8_t *row)
{
    enum { LEN = 4096 };
    static uint8_t blocks[SUPPORT_FLOATS_COUNT][LEN * sizeof(float)];
    static float x[LEN];
    static const struct quant_type *encoded;
    const uint32_t n = LEN / type->block_len,
                   kind = support_random_below(rng, SUPPORT_FLOATS_COUNT);
    const size_t size = type->block_bytes, first = support_random_below(rng, n) * size,
                 header = type->header_bytes;
    for (int i = 0; encoded != type && i < SUPPORT_FLOATS_COUNT; i++) {
        support_floats_fill(rng, (enum support_floats)i, LEN, x);
        support_row_make(type, LEN, x, blocks[i]);
    }
    encoded = type;
    memcpy(row, blocks[kind], header);
    for (size_t at = 0; at < bytes - header; at += size)
        memcpy(row + header + at, blocks[kind] + header + (first + at) % (n * size), size);
}

static void fill_row(uint64_t *rng, const struct quant_type *type, int64_t k, uint8_t *row)
{
    static const uint8_t patterns[] = {0x00, 0xff, 0x0f, 0xf0, 0x55, 0xaa, 0x7f, 0x80, 0x01, 0x3c};
    size_t bytes = (size_t)quant_row_size(type, k);

    switch ((enum weight_kind)support_random_below(rng, N_WEIGHT_KINDS)) {
    case RAW:
        bed_fill_bytes(rng, bytes, row);
        break;
    case FINITE:
        support_row_head(type, support_random_gauss(rng), row);
        for (size_t at = type->header_bytes; at < bytes; at += type->block_bytes)
            fill_finite_block(rng, type, row + at);
        break;
    case PATTERN:
        memset(row, patterns[support_random_below(rng, sizeof patterns)], bytes);
        break;
    case ENCODED:
        fill_encoded(rng, type, bytes, row);
        break;
    }
}

static struct bed_column column_new(void)
{
    return (struct bed_column){.f32 = guard_new(BED_MAX_K * 4),
                               .bf16 = guard_new(BED_MAX_K * 2),
                               .q = guard_new(BED_MAX_K + 64),
                               .d = guard_new(BED_MAX_K / 8),
                               .s = guard_new(BED_MAX_K / 8),
                               .sum = guard_new(BED_MAX_K / 8)};
}

static void column_free(struct bed_column *c)
{
    guard_free(&c->f32);
    guard_free(&c->bf16);
    guard_free(&c->q);
    guard_free(&c->d);
    guard_free(&c->s);
    guard_free(&c->sum);
}

/* Codes that no float column is quantized to: any combination, with any scale. */
static void raw_codes(uint64_t *rng, int64_t k, int block, int8_t *q, float *d, float *s,
                      int16_t *sum)
{
    const int extreme = support_random_below(rng, 2), per_sum = block == 32 ? 32 : 16;
    for (int64_t i = 0; i < k; i++)
        q[i] = (int8_t)(extreme ? (support_random_below(rng, 2) ? 127 : -127)
                                : (int)support_random_below(rng, 255) - 127);
    for (int64_t b = 0; b < k / block; b++)
        d[b] = support_random_below(rng, 8) ? fabsf(support_random_gauss(rng))
                                            : support_floats_of_bits((uint32_t)support_random(rng));
    for (int64_t b = 0; b < k / per_sum; b++) {
        sum[b] = 0;
        for (int i = 0; i < per_sum; i++) sum[b] = (int16_t)(sum[b] + q[b * per_sum + i]);
        if (s) s[b] = d[b] * (float)sum[b];
    }
}

void bed_column_fill(struct bed_column *c, uint64_t *rng, const struct quant_kernels *scalar,
                     const struct quant_act_form *form, int64_t k)
{
    enum act_kind kind =
        (enum act_kind)support_random_below(rng, c->plain ? QUANTIZED + 1 : N_ACT_KINDS);
    float *x = guard_at_end(&c->f32, (size_t)k * 4, 64);
    support_floats_fill(rng,
                        (enum support_floats)support_random_below(
                            rng, c->plain ? SUPPORT_GAUSS + 1 : SUPPORT_FLOATS_COUNT),
                        k, x);
    if (kind == SPECIAL) {
        static const uint32_t special[] = {0x7fc00000, 0xff800000, 0x7f800000, 0x7fa00000,
                                           0x0d800000, 0x0d7fffff, 0x7f7fffff, 0x00000001};
        for (int n = 0; n < 3; n++)
            x[support_random_below(rng, (uint32_t)k)] =
                support_floats_of_bits(special[support_random_below(rng, 8)]);
    }
    c->act = (struct quant_act){0};
    if (form == &quant_act_f32) {
        c->act.f32 = x;
    } else if (form == &quant_act_bf16) {
        static uint16_t padded[BED_MAX_K + 32];
        uint16_t *out = guard_at_end(&c->bf16, (size_t)k * 2, 64);
        scalar->quantize[form->index](k, x, &(struct quant_act){.bf16 = padded});
        memcpy(out, padded, (size_t)k * sizeof *out);
        if (kind == RAW_CODES) bed_fill_bytes(rng, (size_t)k * 2, (uint8_t *)out);
        c->act.bf16 = out;
    } else {
        const int block = (int)form->block_len;
        /* 64 bytes past the codes may be read. */
        int8_t *q = guard_at_end(&c->q, (size_t)k + 64, 64);
        float *d = guard_at_end(&c->d, (size_t)(k / block) * 4, 64), *s = NULL;
        int16_t *sum = guard_at_end(&c->sum, (size_t)(k / form->sum_len) * 2, 64);
        bed_fill_bytes(rng, 64, (uint8_t *)q + k);
        if (form->scaled_sums) s = guard_at_end(&c->s, (size_t)(k / 32) * 4, 64);
        c->act = (struct quant_act){.q = q, .d = d, .s = s, .sum = sum};
        if (kind == RAW_CODES)
            raw_codes(rng, k, block, q, d, s, sum);
        else
            scalar->quantize[form->index](k, x, &c->act);
    }
}

static bool same_float(float a, float b)
{
    return (isnan(a) && isnan(b)) || memcmp(&a, &b, sizeof a) == 0;
}

int bed_float_mismatches(int64_t n, const float *a, const float *b)
{
    int mismatches = 0;
    for (int64_t i = 0; i < n; i++) mismatches += !same_float(a[i], b[i]);
    return mismatches;
}

void *bed_canary_place(struct guard *out, size_t size)
{
    memset(out->base, CANARY, CANARY_BYTES + size + CANARY_BYTES);
    return guard_at_start(out, CANARY_BYTES);
}

int bed_canary_mismatches(const struct guard *out, size_t size)
{
    int mismatches = 0;
    for (int i = 0; i < CANARY_BYTES; i++)
        mismatches +=
            out->base[i] != CANARY || out->base[CANARY_BYTES + size + (size_t)i] != CANARY;
    return mismatches;
}

struct bed bed_new(uint64_t seed)
{
    struct bed bed = {.rng = seed, .column = column_new()};
    for (int c = 0; c < QUANT_FEW_COLUMNS; c++) bed.few[c] = column_new();
    bed.w = guard_new(BED_MAX_BYTES * 4 + 65536);
    bed.out = guard_new((size_t)BED_MAX_K * 64);
    quant_kernels_init(&bed.scalar, CPU_SCALAR);
    return bed;
}

void bed_free(struct bed *bed)
{
    guard_free(&bed->w);
    guard_free(&bed->out);
    column_free(&bed->column);
    for (int c = 0; c < QUANT_FEW_COLUMNS; c++) column_free(&bed->few[c]);
}

uint8_t *bed_rows(struct bed *bed, const struct quant_type *type, int64_t k, int n_rows,
                  size_t row_bytes)
{
    size_t bytes = (size_t)quant_row_size(type, k);
    size_t all = row_bytes * (size_t)(n_rows - 1) + bytes;
    uint8_t *w = support_random_below(&bed->rng, 2)
                     ? guard_at_end(&bed->w, all, 1)
                     : guard_at_start(&bed->w, support_random_below(&bed->rng, 64));
    for (int r = 0; r < n_rows; r++) {
        (bed->plain ? fill_plain_row : fill_row)(&bed->rng, type, k, w + row_bytes * (size_t)r);
        /* Bytes between rows must not affect the result. */
        if (r + 1 < n_rows) memset(w + row_bytes * (size_t)r + bytes, 0xff, row_bytes - bytes);
    }
    return w;
}

size_t bed_row_bytes(struct bed *bed, const struct quant_type *type, int64_t k)
{
    const size_t bytes = (size_t)quant_row_size(type, k);
    if (support_random_below(&bed->rng, 4) > 0) return bytes;
    return bytes + type->block_bytes + 2 * support_random_below(&bed->rng, 9);
}

/* test/test_kquant.c: the types with super-blocks of 256, and those with a book of values (IQ4_NL,
 * IQ4_XS, MXFP4): decoding against the reference's values, the error of encoding against the
 * reference encoder's, and inputs that have no good code. That SIMD equals scalar is tested in
 * test_checkkern.c. */
#include "quant/quant.h"
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

enum { SUPERS = 64, LEN = 256 * SUPERS, BLOCKS = 64 };

/* hash: of what the gguf package of Python (dequantize) gives for 64 blocks of the bytes below.
 * reference_error: root of squared error over squared size, for the elements below, as encoded by
 * llama.cpp (ggml_quantize_chunk, no importance matrix). */
static const struct {
    uint32_t id, hash;
    double reference_error;
} cases[] = {
    {QUANT_Q2_K, 0x8853140e, 0.283827},   {QUANT_Q3_K, 0xf6c27445, 0.145452},
    {QUANT_Q4_K, 0x9b3823d1, 0.068910},   {QUANT_Q5_K, 0x8c801347, 0.034748},
    {QUANT_Q6_K, 0xb6d48449, 0.017146},   {QUANT_IQ4_NL, 0x724af805, 0.073652},
    {QUANT_IQ4_XS, 0xf1a0d047, 0.074181}, {QUANT_MXFP4, 0x1a463dc5, 0.111715},
};
enum { N_CASES = sizeof cases / sizeof cases[0] };

static uint8_t file_bytes[BLOCKS * 256];
static float elements[LEN], decoded[LEN];

static uint32_t lcg(uint32_t *state)
{
    *state = *state * 1664525u + 1013904223u;
    return *state;
}

static int fill(void **state)
{
    (void)state;
    uint32_t seed = 1;
    for (int i = 0; i < LEN; i++) { /* sums of four: nearly a bell */
        int sum = -2 * 65535;
        for (int j = 0; j < 4; j++) sum += (int)(lcg(&seed) >> 16);
        elements[i] = (float)sum * 0x1p-20f;
    }
    seed = 2;
    for (size_t i = 0; i < sizeof file_bytes; i++) file_bytes[i] = (uint8_t)(lcg(&seed) >> 24);
    return 0;
}

static void decode(const struct quant_type *type, int64_t k, const void *row)
{
    type->kernel[CPU_SCALAR].decode(k, row, decoded);
}

static void test_decode_is_the_reference(void **state)
{
    (void)state;
    for (int c = 0; c < N_CASES; c++) {
        const struct quant_type *type = quant_type_by_id(cases[c].id);
        decode(type, (int64_t)BLOCKS * type->block_len, file_bytes);
        uint32_t hash = 2166136261u; /* FNV-1a over words */
        for (uint32_t i = 0; i < BLOCKS * type->block_len; i++) {
            uint32_t bits = 0x7fc00000;
            if (!isnan(decoded[i])) memcpy(&bits, &decoded[i], sizeof bits);
            hash = (hash ^ bits) * 16777619u;
        }
        if (hash != cases[c].hash) print_error("%s\n", type->name);
        assert_int_equal(hash, cases[c].hash);
    }
}

static void test_encode_is_no_worse_than_the_reference(void **state)
{
    (void)state;
    static uint8_t row[LEN];
    for (int c = 0; c < N_CASES; c++) {
        const struct quant_type *type = quant_type_by_id(cases[c].id);
        double error = 0, size = 0;
        type->encode(LEN, elements, row);
        decode(type, LEN, row);
        for (int i = 0; i < LEN; i++) {
            error += ((double)decoded[i] - elements[i]) * ((double)decoded[i] - elements[i]);
            size += (double)elements[i] * elements[i];
        }
        double relative = sqrt(error / size);
        print_message("%-7s %.6f, reference %.6f\n", type->name, relative,
                      cases[c].reference_error);
        assert_true(relative <= 1.02 * cases[c].reference_error);
    }
}

/* Zeros come back as zeros, and every byte of a row is written. */
static void test_encode_zeros_and_every_byte(void **state)
{
    (void)state;
    for (int c = 0; c < N_CASES; c++) {
        const struct quant_type *type = quant_type_by_id(cases[c].id);
        float x[256] = {0};
        uint8_t row[256];
        type->encode(256, x, row);
        decode(type, 256, row);
        for (int i = 0; i < 256; i++) assert_true(decoded[i] == 0.0f);

        uint8_t again[256];
        memset(row, 0x55, sizeof row);
        memset(again, 0xaa, sizeof again);
        type->encode(256, elements, row);
        type->encode(256, elements, again);
        assert_memory_equal(row, again, 256 / type->block_len * type->block_bytes);
    }
}

/* An element that is not finite shows in its whole block, and only there. */
static void test_encode_not_finite(void **state)
{
    (void)state;
    static const float bad[] = {NAN, INFINITY, -INFINITY};
    for (int c = 0; c < N_CASES; c++) {
        const struct quant_type *type = quant_type_by_id(cases[c].id);
        int len = (int)type->block_len;
        for (int j = 0; j < 3; j++) {
            float x[512];
            uint8_t row[512];
            memcpy(x, elements, sizeof x);
            x[len + 5] = bad[j];
            type->encode(512, x, row);
            decode(type, 512, row);
            for (int i = 0; i < 512; i++)
                assert_int_equal(isfinite(decoded[i]) != 0, i < len || i >= 2 * len);
        }
    }
}

/* Any finite input: something finite of the right sign comes back, however large. */
static void test_encode_extremes(void **state)
{
    (void)state;
    static const float sizes[] = {1e-45f, 1e-30f, 1e-7f, 3e4f, 1e7f, 1e30f, 3.4e38f};
    for (int c = 0; c < N_CASES; c++) {
        const struct quant_type *type = quant_type_by_id(cases[c].id);
        for (size_t j = 0; j < sizeof sizes / sizeof *sizes; j++) {
            float x[256];
            uint8_t row[256];
            for (int i = 0; i < 256; i++) x[i] = i % 3 ? sizes[j] : -sizes[j];
            type->encode(256, x, row);
            decode(type, 256, row);
            for (int i = 0; i < 256; i++) {
                assert_true(isfinite(decoded[i]));
                if (sizes[j] > 1e-6f) assert_true(decoded[i] * x[i] > 0.0f);
            }
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_decode_is_the_reference),
        cmocka_unit_test(test_encode_is_no_worse_than_the_reference),
        cmocka_unit_test(test_encode_zeros_and_every_byte),
        cmocka_unit_test(test_encode_not_finite),
        cmocka_unit_test(test_encode_extremes),
    };
    return cmocka_run_group_tests(tests, fill, NULL);
}

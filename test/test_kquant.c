/* test/test_kquant.c: decoding of every type with arithmetic against a stored reference. For types
 * with super-blocks of 256 and with a codebook (IQ4_NL, IQ4_XS, MXFP4), also the error of encoding
 * relative to the reference encoder's, and inputs without a good code (test_quant.c has bounds for
 * the others). That SIMD equals scalar is tested in test_checkkern.c. */
#include "test/support.h"

#include "quant/quant.h"
#include "test/support_row.h"
#include <math.h>
#include <stdio.h>
#include <string.h>

enum { SUPERS = 64, LEN = 256 * SUPERS, BLOCKS = 64 };

/* hash: of the result of an independent decoder for 64 blocks of the bytes below: Python's gguf
 * package (dequantize) if there is a reference_error and for IQ1 to IQ3, TQ and NVFP4, otherwise
 * the formulas of the format in Python. reference_error: root of squared error over squared norm of
 * the elements below, encoded by llama.cpp (ggml_quantize_chunk, no importance matrix; Q8_K:
 * quantize_row_q8_K_ref). */
static const struct {
    uint32_t id, hash;
    double reference_error;
} cases[] = {
    {QUANT_Q2_K, 0x8853140e, 0.283827},   {QUANT_Q3_K, 0xf6c27445, 0.145452},
    {QUANT_Q4_K, 0x9b3823d1, 0.068910},   {QUANT_Q5_K, 0x8c801347, 0.034748},
    {QUANT_Q6_K, 0xb6d48449, 0.017146},   {QUANT_IQ4_NL, 0x724af805, 0.073652},
    {QUANT_IQ4_XS, 0xf1a0d047, 0.074181}, {QUANT_MXFP4, 0x1a463dc5, 0.111715},
    {QUANT_Q8_K, 0xa66315f0, 0.006268},   {QUANT_F32, 0x86f1184b, 0},
    {QUANT_F16, 0x7bdd6ac5, 0},           {QUANT_BF16, 0x19366ac5, 0},
    {QUANT_Q4_0, 0xc970ddc5, 0},          {QUANT_Q4_1, 0xa86e479a, 0},
    {QUANT_Q5_0, 0xa2c3e5c5, 0},          {QUANT_Q5_1, 0x0aba5467, 0},
    {QUANT_Q8_0, 0x65481c85, 0},          {QUANT_IQ3_S, 0x59c9b465, 0},
    {QUANT_IQ3_XXS, 0x5105416d, 0},       {QUANT_IQ2_S, 0x52fafd39, 0},
    {QUANT_IQ2_XS, 0x1a8d13b1, 0},        {QUANT_IQ2_XXS, 0x00dc3d81, 0},
    {QUANT_IQ1_S, 0x3cd28685, 0},         {QUANT_IQ1_M, 0xae6452a5, 0},
    {QUANT_TQ1_0, 0x22c0bdc5, 0},         {QUANT_TQ2_0, 0xca8e7dc5, 0},
    {QUANT_NVFP4, 0x79ebddc5, 0},         {QUANT_Q1_0, 0xbd919dc5, 0},
    {QUANT_Q2_0, 0x74171dc5, 0},          {QUANT_Q8_1, 0xc4f536c5, 0},
};

/* Types of ik_llama.cpp: what scripts/make-ik-figures prints, hashes of random blocks and of blocks
 * of all equal bytes, and the error of its encoder. */
static const struct {
    uint32_t id, random, patterns;
    double reference_error;
} others[] = {
    {QUANT_Q6_0, 0xfd2cefc5, 0x2574c1c5, 0.019262},
    {QUANT_IQ2_K, 0x94d61b45, 0x696315c5, 0.284775},
    {QUANT_IQ3_K, 0x1dd570b5, 0x79c155c5, 0.131976},
    {QUANT_IQ4_K, 0x813e1cad, 0x7216cbc5, 0.063349},
    {QUANT_IQ5_K, 0x9c2ebe13, 0x0f5b32c5, 0.031478},
    {QUANT_IQ6_K, 0x449ec346, 0xbde940e5, 0.014911},
    {QUANT_IQ2_KS, 0x873fdd45, 0xd181adc5, 0.319841},
    {QUANT_IQ3_KS, 0xd9ddf465, 0x93e13dc5, 0.151305},
    {QUANT_IQ4_KS, 0x10bcd3cd, 0x4dfab945, 0.071658},
    {QUANT_IQ5_KS, 0xa80723b5, 0xde02f9e5, 0.035283},
    {QUANT_IQ1_KT, 0xfaefebde, 0x3f813995, 0.441947},
    {QUANT_IQ2_KT, 0x267a6d9b, 0x6846dae5, 0.326283},
    {QUANT_IQ3_KT, 0xd87cbab6, 0x7104b125, 0.166883},
    {QUANT_IQ4_KT, 0x7f87eb85, 0x8f046d55, 0.096851},
    {QUANT_IQ4_KSS, 0x1f4d8426, 0xe5d496c5, 0.099709},
    {QUANT_IQ2_KL, 0x350a69c5, 0x15bcb9c5, 0.234492},
};
enum { N_OTHERS = sizeof others / sizeof others[0] };

enum { N_CASES = sizeof cases / sizeof cases[0], N_ENCODED = 9 }; /* first: with an error */

static uint8_t file_bytes[BLOCKS * 512];
static float elements[LEN], decoded[LEN];

/* Numerical Recipes' generator, which is easy to repeat in the Python or C code of the
 * reference. */
static uint32_t lcg(uint32_t *state)
{
    *state = *state * 1664525u + 1013904223u;
    return *state;
}

static int fill(void **state)
{
    (void)state;
    uint32_t seed = 1;
    for (int i = 0; i < LEN; i++) { /* sums of four: nearly normal */
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
    type->scalar.decode(0, k, row, decoded);
}

/* FNV-1a over the words of n elements; every NaN counts as the same. */
static uint32_t hash_of(uint32_t n, const float *x)
{
    uint32_t hash = 2166136261u;
    for (uint32_t i = 0; i < n; i++) {
        uint32_t bits = 0x7fc00000;
        if (!isnan(x[i])) memcpy(&bits, &x[i], sizeof bits);
        hash = (hash ^ bits) * 16777619u;
    }
    return hash;
}

/* Decodes a row and adds it to the hash; zeros have no sign. */
static void add_row(const struct quant_type *type, int64_t n, const void *row, uint32_t *hash)
{
    decode(type, n, row);
    for (int64_t i = 0; i < n; i++) {
        uint32_t bits = 0x7fc00000;
        const float unsigned_zero = decoded[i] + 0.0f;
        if (!isnan(decoded[i])) memcpy(&bits, &unsigned_zero, sizeof bits);
        *hash = (*hash ^ bits) * 16777619u;
    }
}

/* The header of a row, if it has one, is that of the script. */
static void hash_row(const struct quant_type *type, int64_t n, uint8_t *row, uint32_t *hash)
{
    support_row_head(type, 0.37f, row);
    add_row(type, n, row, hash);
}

static void types_of_another_program_decode_as_it_does(void **state)
{
    (void)state;
    for (int c = 0; c < N_OTHERS; c++) {
        const struct quant_type *type = quant_type_by_id(others[c].id);
        static uint8_t row[sizeof file_bytes];
        uint32_t random = 2166136261u, patterns = random;
        memcpy(row, file_bytes, sizeof row);
        hash_row(type, (int64_t)BLOCKS * type->block_len, row, &random);
        for (int byte = 0; byte < 256; byte++) {
            memset(row + type->header_bytes, byte, type->block_bytes);
            hash_row(type, type->block_len, row, &patterns);
        }
        print_message("%-7s 0x%08x 0x%08x\n", type->name, random, patterns);
        assert_int_equal(random, others[c].random);
        assert_int_equal(patterns, others[c].patterns);
    }
}

/* Types of ik_llama.cpp whose rows are separated: what scripts/make-ik-figures prints. */
static const struct {
    uint32_t id, hash;
} interleaved[] = {
    {QUANT_IQ2_K_R4, 0x4a8b32c5},  {QUANT_IQ3_K_R4, 0x7e23dc61},  {QUANT_IQ4_K_R4, 0xd95e8eab},
    {QUANT_IQ5_K_R4, 0xa164483b},  {QUANT_IQ4_KS_R4, 0x5393f6ea}, {QUANT_IQ5_KS_R4, 0x319cfe97},
    {QUANT_IQ4_XS_R8, 0xc32012f5}, {QUANT_IQ4_NL_R4, 0x7f515285}, {QUANT_Q4_0_R8, 0x349d75c5},
    {QUANT_Q5_0_R4, 0x7a2e09c5},   {QUANT_Q6_0_R4, 0xa2b8b3c5},   {QUANT_Q8_0_R8, 0x4d18d1c5},
    {QUANT_Q2_K_R4, 0x55330f97},   {QUANT_Q3_K_R4, 0xddf56685},   {QUANT_Q4_K_R4, 0xce87265d},
    {QUANT_Q5_K_R4, 0x36865ca1},   {QUANT_Q6_K_R4, 0x782b9ac3},   {QUANT_IQ2_XXS_R4, 0xb4207cb5},
    {QUANT_IQ2_XS_R4, 0xa49482b9}, {QUANT_IQ2_S_R4, 0x71fefec5},  {QUANT_IQ3_XXS_R4, 0x611d2b1d},
    {QUANT_IQ3_S_R4, 0xe7470725},  {QUANT_IQ1_S_R4, 0xe78868c5},  {QUANT_IQ1_BN, 0x7abe5dc5},
    {QUANT_IQ2_BN, 0xc2fbc115},    {QUANT_IQ2_BN_R4, 0x32d015c1}, {QUANT_Q8_KV, 0x75847d09},
    {QUANT_Q8_KV_R8, 0x59758706},  {QUANT_Q8_K_R8, 0x40d024c5},   {QUANT_Q8_K_R16, 0xb54abac5},
    {QUANT_IQ1_M_R4, 0x9f3d6605},
};

static void separated_rows_decode_as_those_of_groups(void **state)
{
    (void)state;
    for (size_t c = 0; c < sizeof interleaved / sizeof *interleaved; c++) {
        const struct quant_type *type = quant_type_by_id(interleaved[c].id);
        const int64_t k =
            type->id == QUANT_IQ1_BN ? 4096
            : type->block_len < 256 && type->header_bytes && type->id != QUANT_IQ1_M_R4
                ? 512
                : 2 * type->block_len;
        const struct quant_type *plain = quant_type_plain(type, (uint64_t)k);
        const size_t bytes = (size_t)quant_row_size(type, k) * type->interleave;
        static uint8_t group[sizeof file_bytes], row[4096];
        uint32_t hash = 2166136261u;
        memcpy(group, file_bytes, bytes);
        for (size_t at = 0; at < type->interleave * type->header_bytes; at += sizeof(float)) {
            const float d = 0.37f + (float)at;
            memcpy(group + at, &d, sizeof d);
        }
        for (int r = 0; r < (int)type->interleave; r++) {
            quant_row_separate(type, plain, 0, k, group, r, row);
            add_row(plain, k, row, &hash);
        }
        if (hash != interleaved[c].hash) print_error("%s 0x%08x\n", type->name, hash);
        assert_int_equal(hash, interleaved[c].hash);
    }
    uint16_t group[16 * 64], row[64]; /* of which that program has no conversion */
    for (int i = 0; i < 16 * 64; i++) group[i] = (uint16_t)i;
    for (int r = 0; r < 16; r++) {
        quant_row_separate(quant_type_by_id(QUANT_BF16_R16), quant_type_by_id(QUANT_BF16), 0, 64,
                           group, r, row);
        for (int c = 0; c < 64; c++) assert_int_equal(row[c], c / 2 * 32 + 2 * r + c % 2);
    }
    uint8_t block[17]; /* of which it writes past the floats of a row: MXFP4_R8, E8M0 first */
    for (int r = 0; r < 8; r++) {
        quant_row_separate(quant_type_by_id(QUANT_MXFP4_R8), quant_type_by_id(QUANT_MXFP4), 0, 32,
                           file_bytes, r, block);
        assert_int_equal(block[0], file_bytes[r]);
        for (int i = 0; i < 16; i++)
            assert_int_equal(block[1 + i], file_bytes[8 + i / 4 * 32 + 4 * r + i % 4]);
    }
}

/* Rows that super-blocks do not divide become F32, with the values that they have as super-blocks.
 */
static void rows_of_other_lengths_become_floats(void **state)
{
    (void)state;
    enum { ELEMENTS = 512 };
    const struct quant_type *f32 = quant_type_by_id(QUANT_F32);
    unsigned found = 0;
    for (uint32_t id = 0; id < QUANT_ID_COUNT; id++) {
        const struct quant_type *type = quant_type_by_id(id);
        if (!type || !type->interleave || type->block_len == 256) continue;
        const struct quant_type *plain = quant_type_plain(type, ELEMENTS);
        if (quant_type_plain(type, type->block_len) == plain) continue; /* it has no super-blocks */
        assert_ptr_equal(quant_type_plain(type, ELEMENTS + type->block_len), f32);
        for (int r = 0; r < (int)type->interleave; r++) {
            static uint8_t row[4096];
            static float floats[ELEMENTS];
            uint32_t hash = 2166136261u, want = hash;
            quant_row_separate(type, plain, 0, ELEMENTS, file_bytes, r, row);
            add_row(plain, ELEMENTS, row, &want);
            quant_row_separate(type, f32, 0, ELEMENTS / 2, file_bytes, r, floats);
            quant_row_separate(type, f32, ELEMENTS / 2, ELEMENTS / 2, file_bytes, r,
                               floats + ELEMENTS / 2);
            add_row(f32, ELEMENTS, floats, &hash);
            assert_int_equal(hash, want);
        }
        found++;
    }
    assert_int_equal(found, 5); /* IQ1_S_R4, IQ2_BN, IQ2_BN_R4, Q8_KV and Q8_KV_R8 */
}

/* A type with arithmetic but without a case fails. */
static void every_type_decodes_as_an_independent_decoder(void **state)
{
    (void)state;
    for (uint32_t id = 0; id < QUANT_ID_COUNT; id++) {
        const struct quant_type *type = quant_type_by_id(id);
        if (!type || !type->act) continue;
        int c = 0;
        while (c < N_CASES && cases[c].id != id) c++;
        bool other = false;
        for (int o = 0; o < N_OTHERS; o++) other = other || others[o].id == id;
        if (other) continue;
        if (c == N_CASES) fail_msg("%s: no stored reference", type->name);
        decode(type, (int64_t)BLOCKS * type->block_len, file_bytes);
        const uint32_t hash = hash_of(BLOCKS * type->block_len, decoded);
        if (hash != cases[c].hash) print_error("%s\n", type->name);
        assert_int_equal(hash, cases[c].hash);
    }
}

/* The README lists every type with arithmetic. */
static void the_readme_lists_every_type(void **state)
{
    (void)state;
    static const char *const lists[][3] = {
        {"README.md", "| tensor types |", ";"},
    };
    static char text[1 << 17];
    for (size_t l = 0; l < sizeof lists / sizeof *lists; l++) {
        FILE *f = fopen(lists[l][0], "r");
        assert_non_null(f);
        text[fread(text, 1, sizeof text - 1, f)] = '\0';
        fclose(f);
        char *list = strstr(text, lists[l][1]);
        assert_non_null(list);
        list += strlen(lists[l][1]);
        char *const end = strstr(list, lists[l][2]);
        assert_non_null(end);
        *end = '\0';
        bool listed[QUANT_ID_COUNT] = {false};
        for (char *word = strtok(list, " \\\n\"|"); word; word = strtok(NULL, " \\\n\"|")) {
            const struct quant_type *type = quant_type_by_name(word);
            if (type) listed[type->id] = true;
        }
        for (uint32_t id = 0; id < QUANT_ID_COUNT; id++) {
            const struct quant_type *type = quant_type_by_id(id);
            const bool computes = type && type->act;
            if (listed[id] != computes)
                fail_msg("%s: %s %s", lists[l][0], computes ? "lacks" : "has",
                         type ? type->name : "a type that is none");
        }
    }
}

static void encoding_is_no_worse_than_the_reference(void **state)
{
    (void)state;
    static uint8_t row[2 * LEN];
    for (int c = 0; c < N_ENCODED + N_OTHERS; c++) {
        const bool is_other = c >= N_ENCODED;
        const struct quant_type *type =
            quant_type_by_id(is_other ? others[c - N_ENCODED].id : cases[c].id);
        const double reference =
            is_other ? others[c - N_ENCODED].reference_error : cases[c].reference_error;
        double error = 0, size = 0;
        support_row_encode(type, LEN, elements, NULL, row);
        decode(type, LEN, row);
        for (int i = 0; i < LEN; i++) {
            error += ((double)decoded[i] - elements[i]) * ((double)decoded[i] - elements[i]);
            size += (double)elements[i] * elements[i];
        }
        double relative = sqrt(error / size);
        print_message("%-7s %.6f, reference %.6f\n", type->name, relative, reference);
        assert_true(relative <= 1.02 * reference);
    }
}

/* Zeros decode to zeros, and every byte of a row is written. */
static void zeros_survive_a_round_trip_and_every_byte_is_written(void **state)
{
    (void)state;
    for (int c = 0; c < N_ENCODED; c++) {
        const struct quant_type *type = quant_type_by_id(cases[c].id);
        float x[256] = {0};
        uint8_t row[512];
        support_row_encode(type, 256, x, NULL, row);
        decode(type, 256, row);
        for (int i = 0; i < 256; i++) assert_true(decoded[i] == 0.0f);

        uint8_t again[512];
        memset(row, 0x55, sizeof row);
        memset(again, 0xaa, sizeof again);
        support_row_encode(type, 256, elements, NULL, row);
        support_row_encode(type, 256, elements, NULL, again);
        assert_memory_equal(row, again, 256 / type->block_len * type->block_bytes);
    }
}

/* Types whose rows have one d or whose codes are indices into a book. */
static const uint32_t books[] = {QUANT_IQ2_K,  QUANT_IQ3_K,   QUANT_IQ4_K,  QUANT_IQ5_K,
                                 QUANT_IQ6_K,  QUANT_IQ2_KS,  QUANT_IQ3_KS, QUANT_IQ4_KS,
                                 QUANT_IQ5_KS, QUANT_IQ4_KSS, QUANT_IQ2_KL, QUANT_IQ1_KT,
                                 QUANT_IQ2_KT, QUANT_IQ3_KT,  QUANT_IQ4_KT};
enum { N_BOOKS = sizeof books / sizeof books[0] };

/* An element that is not finite makes its whole block NaN, and only that. */
static void a_value_that_is_not_finite_affects_only_its_block(void **state)
{
    (void)state;
    static const float bad[] = {NAN, INFINITY, -INFINITY};
    for (int c = 0; c < N_ENCODED; c++) {
        const struct quant_type *type = quant_type_by_id(cases[c].id);
        int len = (int)type->block_len;
        for (int j = 0; j < 3; j++) {
            float x[512];
            uint8_t row[1024];
            memcpy(x, elements, sizeof x);
            x[len + 5] = bad[j];
            support_row_encode(type, 512, x, NULL, row);
            decode(type, 512, row);
            for (int i = 0; i < 512; i++)
                assert_int_equal(isfinite(decoded[i]) != 0, i < len || i >= 2 * len);
        }
    }
}

/* d of a type with a header belongs to the whole row. */
static void rows_of_book_types_are_zero_or_not_finite_as_their_elements(void **state)
{
    (void)state;
    for (int c = 0; c < N_BOOKS; c++) {
        const struct quant_type *type = quant_type_by_id(books[c]);
        float x[512] = {0};
        uint8_t row[1024];
        support_row_encode(type, 512, x, NULL, row);
        decode(type, 512, row);
        for (int i = 0; i < 512; i++) assert_true(decoded[i] == 0.0f);
        memcpy(x, elements, sizeof x);
        x[300] = INFINITY;
        support_row_encode(type, 512, x, NULL, row);
        decode(type, 512, row);
        for (int i = 0; i < 512; i++)
            assert_int_equal(isfinite(decoded[i]) != 0, !type->header_bytes && i < 256);
    }
}

/* Any finite input, however large, decodes to finite values of the right sign (of three bits or
 * more per weight; fewer do not represent all signs). */
static void extreme_values_stay_finite_and_keep_their_sign(void **state)
{
    (void)state;
    static const float sizes[] = {1e-45f, 1e-30f, 1e-7f, 3e4f, 1e7f, 1e30f, 3.4e38f};
    for (int c = 0; c < N_ENCODED + N_BOOKS; c++) {
        const struct quant_type *type =
            quant_type_by_id(c < N_ENCODED ? cases[c].id : books[c - N_ENCODED]);
        const bool has_signs = c < N_ENCODED || type->block_bytes >= 96;
        for (size_t j = 0; j < sizeof sizes / sizeof *sizes; j++) {
            float x[256];
            uint8_t row[512];
            for (int i = 0; i < 256; i++) x[i] = i % 3 ? sizes[j] : -sizes[j];
            support_row_encode(type, 256, x, NULL, row);
            decode(type, 256, row);
            for (int i = 0; i < 256; i++) {
                assert_true(isfinite(decoded[i]));
                if (sizes[j] > 1e-6f && has_signs) assert_true(decoded[i] * x[i] > 0.0f);
            }
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_type_decodes_as_an_independent_decoder),
        cmocka_unit_test(types_of_another_program_decode_as_it_does),
        cmocka_unit_test(separated_rows_decode_as_those_of_groups),
        cmocka_unit_test(rows_of_other_lengths_become_floats),
        cmocka_unit_test(the_readme_lists_every_type),
        cmocka_unit_test(encoding_is_no_worse_than_the_reference),
        cmocka_unit_test(zeros_survive_a_round_trip_and_every_byte_is_written),
        cmocka_unit_test(a_value_that_is_not_finite_affects_only_its_block),
        cmocka_unit_test(rows_of_book_types_are_zero_or_not_finite_as_their_elements),
        cmocka_unit_test(extreme_values_stay_finite_and_keep_their_sign),
    };
    return cmocka_run_group_tests(tests, fill, NULL);
}

/* test/test_values.c: values of tensors: units cover each element once, findings and their places,
 * and differences against a plain loop; types without arithmetic; the layout of data in a file. */
#include "gguf/values.h"
#include "test/support.h"
#include "test/support_gguf.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static struct quant_kernels kernels;

static struct gguf_tensor tensor_of(enum quant_id id, uint64_t n, uint64_t rows, void *data)
{
    return (struct gguf_tensor){.name = {"t", 1},
                                .type = quant_type_by_id(id),
                                .n_dims = 2,
                                .ne = {n, rows, 1, 1},
                                .data = data,
                                .size = (uint64_t)quant_row_size(quant_type_by_id(id), (int64_t)n) *
                                        rows};
}

static struct gguf_scan scan(const struct gguf_tensor *t)
{
    struct gguf_scan sum = {.first = UINT64_MAX};
    for (uint64_t u = gguf_unit_count(t); u-- > 0;) {
        const struct gguf_scan one = gguf_scan_unit(&kernels, t, u);
        gguf_scan_join(&sum, &one);
    }
    return sum;
}

/* Short rows, rows of one unit and of parts of units; changes each element at boundaries in
 * turn. */
static void each_element_is_seen_once(void **state)
{
    (void)state;
    static const struct {
        uint64_t n, rows;
    } shapes[] = {{1, 1},         {3, 100001},        {512, 1025},        {GGUF_UNIT - 1, 3},
                  {GGUF_UNIT, 2}, {GGUF_UNIT + 1, 2}, {3 * GGUF_UNIT, 1}, {700000, 1}};
    for (size_t s = 0; s < sizeof shapes / sizeof *shapes; s++) {
        const uint64_t n = shapes[s].n * shapes[s].rows;
        float *data = malloc(n * sizeof *data);
        assert_non_null(data);
        for (uint64_t i = 0; i < n; i++) data[i] = NAN;
        const struct gguf_tensor t = tensor_of(QUANT_F32, shapes[s].n, shapes[s].rows, data);
        struct gguf_scan found = scan(&t);
        assert_int_equal(found.nan, n);
        assert_int_equal(found.infinite, 0);
        assert_int_equal(found.first, 0);
        memset(data, 0, n * sizeof *data);
        assert_int_equal(scan(&t).first, UINT64_MAX);
        for (uint64_t k = 0; k < 16; k++) {
            const uint64_t at = k * (n - 1) / 15;
            data[at] = -INFINITY;
            found = scan(&t);
            assert_int_equal(found.infinite, 1);
            assert_int_equal(found.first, at);
            data[at] = 0;
        }
        free(data);
    }
}

static void differences_are_those_of_a_plain_loop(void **state)
{
    (void)state;
    enum { N = 300, ROWS = 2000 };
    float *a = malloc(N * ROWS * sizeof *a), *b = malloc(N * ROWS * sizeof *b);
    assert_non_null(a);
    assert_non_null(b);
    double error = 0, norm = 0, max = 0;
    uint64_t max_at = 0, differing = 0, without = 0;
    for (uint64_t i = 0; i < N * ROWS; i++) {
        a[i] = (float)(i % 977) - 400;
        b[i] = i % 5 ? a[i] : a[i] + (float)(i % 1013) / 64;
    }
    a[17] = INFINITY;
    b[17] = INFINITY;
    a[18] = b[18] = NAN;
    a[19] = NAN;
    b[20] = -INFINITY;
    for (uint64_t i = 0; i < N * ROWS; i++) {
        const double x = (double)a[i], d = fabs((double)b[i] - x);
        if (i == 17 || i == 18) continue;
        differing += i == 19 || i == 20 || a[i] != b[i];
        without += i == 19 || i == 20;
        if (i == 19 || i == 20) continue;
        error += d * d;
        norm += x * x;
        if (d > max) max_at = i;
        if (d > max) max = d;
    }
    const struct gguf_tensor x = tensor_of(QUANT_F32, N, ROWS, a),
                             y = tensor_of(QUANT_F32, N, ROWS, b);
    struct gguf_difference sum = {0};
    for (uint64_t u = 0; u < gguf_unit_count(&x); u++) {
        const struct gguf_difference one = gguf_compare_unit(&kernels, &x, &y, u);
        gguf_difference_join(&sum, &one);
    }
    assert_true(gguf_unit_count(&x) > 1);
    assert_true(fabs(sum.error - error) <= 1e-9 * error);
    assert_true(fabs(sum.norm - norm) <= 1e-9 * norm);
    assert_true(sum.max == max);
    assert_int_equal(sum.max_at, max_at);
    assert_int_equal(sum.differing, differing);
    assert_int_equal(sum.without_number, without);
    uint64_t at[GGUF_MAX_DIMS];
    gguf_element_at(&x, 3 * N + 7, at);
    assert_int_equal(at[0], 7);
    assert_int_equal(at[1], 3);
    free(a);
    free(b);
}

/* Integers and F64 are read as numbers, too. */
static void data_types_are_read(void **state)
{
    (void)state;
    int8_t i8[] = {-128, 0, 127};
    int16_t i16[] = {-32768, 1, 32767};
    int32_t i32[] = {INT32_MIN, 0, INT32_MAX};
    int64_t i64[] = {INT64_MIN, -1, 1};
    double f64[] = {-1e300, INFINITY, 5};
    const struct {
        enum quant_id id;
        void *data;
        double first, last;
    } rows[] = {{QUANT_I8, i8, -128, 127},
                {QUANT_I16, i16, -32768, 32767},
                {QUANT_I32, i32, INT32_MIN, INT32_MAX},
                {QUANT_I64, i64, -0x1p63, 1},
                {QUANT_F64, f64, -1e300, 5}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        double out[3];
        const struct gguf_tensor t = tensor_of(rows[i].id, 3, 1, rows[i].data);
        assert_true(quant_data_read(t.type, 0, 3, t.data, out));
        assert_true(out[0] == rows[i].first && out[2] == rows[i].last);
        assert_true(quant_data_read(t.type, 2, 1, t.data, out));
        assert_true(out[0] == rows[i].last);
        assert_int_equal(scan(&t).infinite, rows[i].id == QUANT_F64);
    }
    double none[32];
    const char block[64] = {0};
    assert_false(quant_data_read(quant_type_by_id(QUANT_Q8_0), 0, 32, block, none));
}

/* Two F32 tensors of 8 elements at the given offsets, followed by `end` zeros. */
static struct gguf_layout layout_of(uint64_t first, uint64_t second, uint64_t end, char mark,
                                    uint64_t mark_from_end)
{
    struct forge f;
    struct base_error err = BASE_ERROR_INIT;
    forge_begin(&f);
    forge_head(&f, 3, 2, 0);
    forge_tensor(&f, "a", 1, 8, 1, QUANT_F32, first);
    forge_tensor(&f, "b", 1, 4, 1, QUANT_F32, second);
    forge_pad(&f, 32);
    forge_zeros(&f, (first > second ? first + 32 : second + 16) + end);
    f.bytes.data[f.bytes.size - 1 - mark_from_end] = mark;
    struct gguf_file *file = gguf_open_memory(f.bytes.data, f.bytes.size, "forged", &err);
    assert_non_null(file);
    const struct gguf_layout l = gguf_layout_measure(file, 0);
    gguf_close(file);
    forge_free(&f);
    return l;
}

static void padding_gaps_and_tails_of_the_data_are_found(void **state)
{
    (void)state;
    struct gguf_layout l = layout_of(0, 32, 16, 0, 0);
    assert_true(l.padding == 0 && l.gaps == 0 && l.tail == 0 && !l.odd);
    l = layout_of(0, 32, 0, 0, 0); /* the last padding may be absent */
    assert_true(l.padding == 0 && l.gaps == 0 && l.tail == 0 && !l.odd);
    l = layout_of(0, 32, 16, 7, 3);
    assert_true(l.padding == 1 && l.tail == 0);
    l = layout_of(0, 32, 21, 0, 0);
    assert_int_equal(l.tail, 5);
    l = layout_of(0, 96, 16, 0, 0);
    assert_int_equal(l.gaps, 64);
    assert_true(l.odd && !l.unordered);
    l = layout_of(32, 0, 0, 0, 0);
    assert_true(l.odd && l.unordered && l.tail == 0);
}

static int set_up(void **state)
{
    (void)state;
    quant_kernels_init(&kernels, CPU_SCALAR);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_element_is_seen_once),
        cmocka_unit_test(differences_are_those_of_a_plain_loop),
        cmocka_unit_test(data_types_are_read),
        cmocka_unit_test(padding_gaps_and_tails_of_the_data_are_found),
    };
    return cmocka_run_group_tests(tests, set_up, NULL);
}

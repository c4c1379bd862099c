/* test/test_linear.c: the time to open, check and write a file is linear in its size. Each case
 * runs with n items and with 16 n, and compares the processor time of the two (the best of several
 * runs each). Linear work takes 16 times as long, sorting about 20 times, quadratic work 256 times;
 * the limit is 128. */
#include "test/support.h"
#include "test/support_folder.h"
#include "test/support_gguf.h"
#include "test/support_model.h"

#include "models/model.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

/* With 16 times as many items linear work takes 16 to 64 times as long, because many items exceed
 * the caches; quadratic work takes 256 times as long. */
enum { TIMES = 16, BAR = 128, TRIES = 8 };

static double processor_seconds(void)
{
    struct timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* Runs the measured work with n items and returns its seconds. */
typedef double measured(int n);

static double best_of(measured *work, int n, int tries)
{
    double best = work(n);
    for (int i = 1; i < tries; i++) {
        const double seconds = work(n);
        if (seconds < best) best = seconds;
    }
    return best;
}

static void check_growth(measured *work, int n)
{
    const double few = best_of(work, n, 4 * TRIES), many = best_of(work, TIMES * n, TRIES);
    print_message("%d: %.2f ms, %d: %.2f ms\n", n, 1e3 * few, TIMES * n, 1e3 * many);
    assert_true(many < BAR * few);
}

static double open_forged(struct forge *f, const char *problem)
{
    struct base_error err = BASE_ERROR_INIT;
    const double start = processor_seconds();
    struct gguf_file *file = gguf_open_memory(f->bytes.data, f->bytes.size, "forged", &err);
    const double seconds = processor_seconds() - start;
    assert_int_equal(file == NULL, problem != NULL);
    if (problem) assert_non_null(strstr(err.text, problem));
    gguf_close(file);
    forge_free(f);
    return seconds;
}

/* ---- Directories ---- */

static double open_keys(int n, bool twice)
{
    struct forge f;
    char key[32];
    forge_begin(&f);
    forge_head(&f, 3, 0, (uint64_t)n);
    for (int i = 0; i < n; i++) {
        snprintf(key, sizeof key, "some.key.%07d", twice && i == n - 1 ? n - 2 : i);
        forge_key(&f, key, GGUF_U32);
        forge_u32(&f, (uint32_t)i);
    }
    return open_forged(&f, twice ? "twice" : NULL);
}

static double different_keys(int n)
{
    return open_keys(n, false);
}

static double key_twice(int n)
{
    return open_keys(n, true);
}

static double open_tensors(int n, bool twice)
{
    struct forge f;
    char name[32];
    forge_begin(&f);
    forge_head(&f, 3, (uint64_t)n, 0);
    for (int i = 0; i < n; i++) {
        snprintf(name, sizeof name, "blk.%07d.weight", twice && i == n - 1 ? n - 2 : i);
        forge_tensor(&f, name, 1, 8, 1, QUANT_F32, (uint64_t)i * 32);
    }
    forge_pad(&f, 32);
    forge_zeros(&f, (uint64_t)n * 32);
    return open_forged(&f, twice ? "two tensors" : NULL);
}

static double different_tensors(int n)
{
    return open_tensors(n, false);
}

static double tensor_twice(int n)
{
    return open_tensors(n, true);
}

/* Reads every item, as a vocabulary is read. */
static double array_items(int n)
{
    struct forge f;
    struct base_error err = BASE_ERROR_INIT;
    forge_begin(&f);
    forge_head(&f, 3, 0, 1);
    forge_array(&f, "words", GGUF_STRING, (uint64_t)n);
    for (int i = 0; i < n; i++) forge_str(&f, i % 3 ? "word" : "");
    const double start = processor_seconds();
    struct gguf_file *file = gguf_open_memory(f.bytes.data, f.bytes.size, "forged", &err);
    assert_non_null(file);
    const struct gguf_kv *kv = gguf_kv_find(file, "words");
    uint64_t bytes = 0;
    for (uint64_t i = 0; i < kv->count; i++) bytes += gguf_array_str(file, kv, i).size;
    const double seconds = processor_seconds() - start;
    assert_int_equal(bytes, 4 * (uint64_t)(n - (n + 2) / 3));
    gguf_close(file);
    forge_free(&f);
    return seconds;
}

static void directories_open_in_linear_time(void **state)
{
    (void)state;
    check_growth(different_keys, 4000);
    check_growth(key_twice, 4000);
    check_growth(different_tensors, 4000);
    check_growth(tensor_twice, 4000);
    check_growth(array_items, 8000);
}

/* ---- Writing ---- */

/* Half of the keys are written twice. */
static double write_keys(int n)
{
    struct base_error err = BASE_ERROR_INIT;
    char path[128], name[32];
    const uint64_t ne[] = {8};
    support_folder_path("keys.gguf", path);
    const double start = processor_seconds();
    struct gguf_writer *w = gguf_writer_new(&err);
    for (int i = 0; i < n; i++) {
        snprintf(name, sizeof name, "key.%07d", i / 2 * 2);
        gguf_writer_u32(w, name, (uint32_t)i);
        snprintf(name, sizeof name, "tensor.%07d", i);
        gguf_writer_tensor(w, support_str(name), quant_type_by_id(QUANT_I8), 1, ne);
    }
    assert_true(gguf_writer_begin(w, path, &err));
    const double seconds = processor_seconds() - start;
    gguf_writer_free(w);
    return seconds;
}

static void directories_are_written_in_linear_time(void **state)
{
    (void)state;
    check_growth(write_keys, 4000);
}

/* ---- A model with a tensor that its architecture does not have ---- */

static void copy_with_another(const char *from, const char *to)
{
    struct base_error err = BASE_ERROR_INIT;
    struct gguf_file *file = gguf_open(from, &err);
    struct gguf_writer *w = gguf_writer_new(&err);
    const float zeros[8] = {0};
    const uint64_t ne[] = {8};
    assert_non_null(file);
    for (uint64_t i = 0; i < gguf_kv_count(file); i++) gguf_writer_copy_kv(w, gguf_kv_at(file, i));
    for (uint64_t i = 0; i < gguf_tensor_count(file); i++) {
        const struct gguf_tensor *t = gguf_tensor_at(file, i);
        gguf_writer_tensor(w, t->name, t->type, t->n_dims, t->ne);
    }
    gguf_writer_tensor(w, support_str("unheard.of"), quant_type_by_id(QUANT_F32), 1, ne);
    assert_true(gguf_writer_begin(w, to, &err));
    for (uint64_t i = 0; i < gguf_tensor_count(file); i++) {
        const struct gguf_tensor *t = gguf_tensor_at(file, i);
        assert_true(gguf_writer_data(w, t->data, t->size, &err));
    }
    assert_true(gguf_writer_data(w, zeros, sizeof zeros, &err));
    assert_true(gguf_writer_end(w, &err));
    gguf_writer_free(w);
    gguf_close(file);
}

static double bind_weights(int n_layer)
{
    char plain[128], path[128];
    struct base_error err = BASE_ERROR_INIT;
    struct support_model m = support_model_default("llama");
    m.n_layer = (uint32_t)n_layer;
    m.n_embd = 8;
    m.n_head = m.n_head_kv = 1;
    m.head_dim = 8;
    m.n_ff = 8;
    support_folder_path("plain.gguf", plain);
    support_folder_path("another.gguf", path);
    if (!support_model_write(&m, plain, &err)) fail_msg("%s", err.text);
    copy_with_another(plain, path);
    struct gguf_file *file = gguf_open(path, &err);
    const struct engine_options options = {.n_threads = 1};
    struct engine *engine = engine_new(&options, &err);
    assert_non_null(file);
    assert_non_null(engine);
    const double start = processor_seconds();
    assert_null(model_open(file, engine, NULL, &err));
    const double seconds = processor_seconds() - start;
    assert_non_null(strstr(err.text, "no such tensor"));
    assert_string_equal(err.item, "unheard.of");
    engine_free(engine);
    gguf_close(file);
    unlink(plain);
    unlink(path);
    return seconds;
}

static void an_unknown_tensor_is_found_in_linear_time(void **state)
{
    (void)state;
    check_growth(bind_weights, 100);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(directories_open_in_linear_time),
        cmocka_unit_test(directories_are_written_in_linear_time),
        cmocka_unit_test(an_unknown_tensor_is_found_in_linear_time),
    };
    return cmocka_run_group_tests(tests, support_folder_make, support_folder_remove);
}

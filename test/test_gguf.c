/* test/test_gguf.c: valid GGUF files: reading every kind, typed reads, writing and reading back,
 * and errors of the writer. Split models are in test_gguf_split.c, broken files in
 * test_gguf_broken.c. */
#include "test/support.h"

#include "base/interrupt.h"
#include "test/support_folder.h"
#include "test/support_gguf.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

static struct gguf_file *open_forged(const struct forge *f)
{
    struct base_error err = BASE_ERROR_INIT;
    struct gguf_file *file = gguf_open_memory(f->bytes.data, f->bytes.size, "forged", &err);
    if (!file) fail_msg("%s: %s", err.item, err.text);
    return file;
}

/* ---- Reading ---- */

static void check_scalars(const struct gguf_file *file)
{
    assert_int_equal(gguf_array_int(gguf_kv_find(file, "u8"), 0), 200);
    assert_int_equal(gguf_array_int(gguf_kv_find(file, "i8"), 0), -100);
    assert_int_equal(gguf_array_int(gguf_kv_find(file, "u16"), 0), 60000);
    assert_int_equal(gguf_array_int(gguf_kv_find(file, "i16"), 0), -30000);
    assert_int_equal(gguf_array_int(gguf_kv_find(file, "u32"), 0), 4000000000);
    assert_int_equal(gguf_array_int(gguf_kv_find(file, "i32"), 0), -2000000000);
    assert_int_equal(gguf_array_int(gguf_kv_find(file, "u64"), 0), INT64_MAX);
    assert_int_equal(gguf_array_int(gguf_kv_find(file, "i64"), 0), INT64_MIN);
    assert_true(gguf_array_num(gguf_kv_find(file, "u64"), 0) == 18446744073709551616.0);
    assert_true(gguf_array_num(gguf_kv_find(file, "f32"), 0) == (double)0.1f);
    assert_true(gguf_array_num(gguf_kv_find(file, "f64"), 0) == -2.5e300);
    const struct gguf_kv *kv = gguf_kv_find(file, "string");
    support_assert_str((struct gguf_str){.data = kv->data, .size = kv->size}, "h\xc3\xa9llo");
}

static void check_arrays(const struct gguf_file *file)
{
    static const struct {
        const char *key;
        double first, second;
    } numbers[] = {
        {"u8s", 255, 254},
        {"i8s", -1, -2},
        {"u16s", 65535, 65534},
        {"i16s", -1, -2},
        {"u32s", 4294967295.0, 4294967294.0},
        {"i32s", -1, -2},
        {"f32s", 0.5, 1.5},
        {"bools", 0, 1},
        {"u64s", 18446744073709551615.0, 18446744073709551614.0},
        {"i64s", -1, -2},
        {"f64s", 0.25, 1.25},
    };
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) {
        const struct gguf_kv *kv = gguf_kv_find(file, numbers[i].key);
        assert_non_null(kv);
        assert_int_equal(kv->kind, GGUF_ARRAY);
        assert_true(gguf_array_num(kv, 0) == numbers[i].first);
        assert_true(gguf_array_num(kv, 1) == numbers[i].second);
        assert_true(gguf_array_num(kv, kv->count) == 0);
        assert_int_equal(gguf_array_str(file, kv, 0).size, 0);
    }
    const struct gguf_kv *kv = gguf_kv_find(file, "strings");
    assert_int_equal(kv->item, GGUF_STRING);
    assert_int_equal(kv->count, 3);
    support_assert_str(gguf_array_str(file, kv, 0), "one");
    support_assert_str(gguf_array_str(file, kv, 1), "");
    support_assert_str(gguf_array_str(file, kv, 2), "three");
    support_assert_str(gguf_array_str(file, kv, 3), "");
    assert_int_equal(gguf_kv_find(file, "no strings")->count, 0);
    assert_int_equal(gguf_kv_find(file, "no numbers")->size, 0);
}

static void check_tensors(const struct gguf_file *file)
{
    assert_int_equal(gguf_tensor_count(file), 2);
    const struct gguf_tensor *a = gguf_tensor_find(file, "a"), *b = gguf_tensor_find(file, "b");
    assert_ptr_equal(a, gguf_tensor_at(file, 0));
    assert_ptr_equal(b, gguf_tensor_at(file, 1));
    assert_null(gguf_tensor_at(file, 2));
    assert_null(gguf_tensor_find(file, "c"));
    assert_null(gguf_tensor_find(file, ""));
    assert_string_equal(a->type->name, "F32");
    assert_int_equal(a->n_dims, 1);
    assert_int_equal(a->ne[0], 4);
    assert_int_equal(a->ne[1], 1);
    assert_int_equal(a->ne[3], 1);
    assert_int_equal(a->size, 16);
    float last;
    memcpy(&last, (const char *)a->data + 12, 4);
    assert_true(last == 4.5f);
    assert_string_equal(b->type->name, "Q8_0");
    assert_int_equal(b->n_dims, 2);
    assert_int_equal(b->ne[1], 2);
    assert_int_equal(b->size, 68);
    assert_int_equal(((const unsigned char *)b->data)[67], 67);
}

static void every_kind_of_key_and_tensor_is_read(void **state)
{
    (void)state;
    for (uint32_t version = 2; version <= 3; version++) {
        struct forge f;
        forge_begin(&f);
        forge_everything(&f, version);
        struct gguf_file *file = open_forged(&f);
        assert_int_equal(gguf_version(file), version);
        assert_int_equal(gguf_alignment(file), 32);
        assert_int_equal(gguf_part_count(file), 1);
        assert_int_equal(gguf_size(file), f.bytes.size);
        assert_string_equal(gguf_path(file), "forged");
        assert_int_equal(gguf_kv_count(file), 26);
        assert_null(gguf_kv_at(file, 26));
        assert_null(gguf_kv_find(file, "absent"));
        support_assert_str(gguf_kv_at(file, 1)->key, "i8");
        assert_int_equal(gguf_kv_at(file, 0)->offset, 24);
        check_scalars(file);
        check_arrays(file);
        check_tensors(file);
        gguf_close(file);
        forge_free(&f);
    }
    gguf_close(NULL);
}

static void every_kind_has_a_name(void **state)
{
    (void)state;
    assert_string_equal(gguf_kind_name(GGUF_U8), "u8");
    assert_string_equal(gguf_kind_name(GGUF_ARRAY), "array");
    assert_string_equal(gguf_kind_name(GGUF_F64), "f64");
    assert_string_equal(gguf_kind_name(GGUF_KIND_COUNT), "unknown");
}

static void typed_reads_convert_values_that_fit(void **state)
{
    (void)state;
    struct forge f;
    forge_begin(&f);
    forge_everything(&f, 3);
    struct gguf_file *file = open_forged(&f);
    uint32_t u = 7;
    int64_t i = 7;
    float x = 7;
    bool b = false;
    struct gguf_str s = {0};
    assert_true(gguf_get_u32(file, "absent", &u, NULL) && u == 7);
    assert_true(gguf_get_i64(file, "absent", &i, NULL) && i == 7);
    assert_true(gguf_get_f32(file, "absent", &x, NULL) && x == 7);
    assert_true(gguf_get_bool(file, "absent", &b, NULL) && !b);
    assert_true(gguf_get_str(file, "absent", &s, NULL) && !s.data);
    assert_true(gguf_get_u32(file, "u8", &u, NULL) && u == 200);
    assert_true(gguf_get_u32(file, "u16", &u, NULL) && u == 60000);
    assert_true(gguf_get_u32(file, "u32", &u, NULL) && u == 4000000000);
    assert_true(gguf_get_i64(file, "i8", &i, NULL) && i == -100);
    assert_true(gguf_get_i64(file, "i32", &i, NULL) && i == -2000000000);
    assert_true(gguf_get_i64(file, "i64", &i, NULL) && i == INT64_MIN);
    assert_true(gguf_get_f32(file, "f32", &x, NULL) && x == 0.1f);
    assert_true(gguf_get_bool(file, "bool", &b, NULL) && b);
    assert_true(gguf_get_str(file, "string", &s, NULL) && s.size == 6);
    gguf_close(file);
    forge_free(&f);
}

#define TEXT(text) ((struct gguf_str){.data = (text), .size = sizeof(text) - 1})

/* An override replaces the file's value, even by another kind, or supplies a missing key. If it
 * cannot be read as the requested kind, the error is the caller's. */
static void given_values_come_before_those_of_the_file(void **state)
{
    (void)state;
    struct forge f;
    forge_begin(&f);
    forge_everything(&f, 3);
    struct gguf_file *file = open_forged(&f);
    struct base_error err = BASE_ERROR_INIT;
    const int64_t first = 41, number = 42, wide = INT64_C(1) << 40;
    const double real = 0.5;
    uint32_t u = 7;
    float x = 7;
    struct gguf_str s = {0};
    assert_true(gguf_override(file, TEXT("u32"), GGUF_I64, &first, 8, &err));
    assert_true(gguf_override(file, TEXT("u32"), GGUF_I64, &number, 8, &err));
    assert_true(gguf_override(file, TEXT("absent"), GGUF_F64, &real, 8, &err));
    assert_true(gguf_override(file, TEXT("string"), GGUF_STRING, "", 0, &err));
    assert_true(gguf_override(file, TEXT("u16"), GGUF_I64, &wide, 8, &err));
    assert_true(gguf_get_u32(file, "u32", &u, &err) && u == 42);
    assert_true(gguf_get_f32(file, "absent", &x, &err) && x == 0.5f);
    assert_true(gguf_get_str(file, "string", &s, &err) && s.size == 0 && s.data);
    assert_true(gguf_kv_find(file, "u32")->given && !gguf_kv_find(file, "u8")->given);
    assert_false(gguf_get_u32(file, "u16", &u, &err));
    assert_int_equal(err.code, BASE_USAGE);
    assert_int_equal(err.offset, -1);
    err = BASE_ERROR_INIT;
    assert_false(gguf_get_bool(file, "absent", &(bool){false}, &err));
    assert_int_equal(err.code, BASE_USAGE);
    gguf_close(file);
    forge_free(&f);
}

/* A typed read that fails writes nothing, and the error names key, byte and both kinds. */
static void typed_reads_refuse_values_that_do_not_fit(void **state)
{
    (void)state;
    static const struct {
        char read; /* u32, i64, f32, bool, str by first letter */
        const char *key, *text;
    } cases[] = {
        {'u', "i8", "-100 does not fit u32"},
        {'u', "u64", "18446744073709551615 does not fit u32"},
        {'u', "f32", "must be an unsigned integer, not f32"},
        {'u', "bool", "must be an unsigned integer, not bool"},
        {'u', "u32s", "must be an unsigned integer, not array"},
        {'i', "u64", "18446744073709551615 does not fit i64"},
        {'i', "f64", "must be an integer, not f64"},
        {'i', "string", "must be an integer, not string"},
        {'f', "u32", "must be f32, not u32"},
        {'f', "f64", "-2.5e+300 does not fit f32"},
        {'b', "u8", "must be bool, not u8"},
        {'b', "bools", "must be bool, not array"},
        {'s', "u8s", "must be a string, not array"},
        {'s', "strings", "must be a string, not array"},
    };
    struct forge f;
    forge_begin(&f);
    forge_everything(&f, 3);
    struct gguf_file *file = open_forged(&f);
    for (size_t n = 0; n < sizeof cases / sizeof *cases; n++) {
        struct base_error err = BASE_ERROR_INIT;
        const char *key = cases[n].key;
        uint32_t u = 7;
        int64_t i = 7;
        float x = 7;
        bool b = false;
        struct gguf_str s = {0};
        bool done = cases[n].read == 'u'   ? gguf_get_u32(file, key, &u, &err)
                    : cases[n].read == 'i' ? gguf_get_i64(file, key, &i, &err)
                    : cases[n].read == 'f' ? gguf_get_f32(file, key, &x, &err)
                    : cases[n].read == 'b' ? gguf_get_bool(file, key, &b, &err)
                                           : gguf_get_str(file, key, &s, &err);
        assert_false(done);
        assert_true(u == 7 && i == 7 && x == 7 && !b && !s.data);
        assert_int_equal(err.code, BASE_MODEL);
        assert_string_equal(err.item, key);
        assert_string_equal(err.text, cases[n].text);
        assert_string_equal(err.file, "forged");
        assert_int_equal(err.offset, gguf_kv_find(file, key)->offset);
    }
    gguf_close(file);
    forge_free(&f);
}

/* Files may differ as those of different writers do: other alignment, gaps, data in another order,
 * a tensor name of the full 64 bytes, no padding at the end. */
static void an_interruption_ends_reading(void **state)
{
    (void)state;
    struct base_error err = BASE_ERROR_INIT;
    struct forge f;
    forge_begin(&f);
    forge_everything(&f, 3);
    base_interrupt();
    assert_null(gguf_open_memory(f.bytes.data, f.bytes.size, "forged", &err));
    base_interrupt_clear();
    assert_int_equal(err.code, BASE_INTERRUPTED);
    gguf_close(open_forged(&f));
    forge_free(&f);
}

static void unusual_layouts_are_read(void **state)
{
    (void)state;
    struct forge f;
    char name[65] = "";
    memset(name, 'x', 64);
    forge_begin(&f);
    forge_head(&f, 2, 2, 1);
    forge_key(&f, "general.alignment", GGUF_U32);
    forge_u32(&f, 64);
    forge_tensor(&f, name, 4, 1, 2, QUANT_I8, 192);
    forge_tensor(&f, "first", 1, 3, 0, QUANT_F16, 0);
    forge_pad(&f, 64);
    forge_zeros(&f, 192);
    forge_u8(&f, 5);
    forge_u8(&f, 6);
    struct gguf_file *file = open_forged(&f);
    assert_int_equal(gguf_alignment(file), 64);
    const struct gguf_tensor *t = gguf_tensor_find(file, name);
    assert_non_null(t);
    assert_int_equal(t->n_dims, 4);
    assert_int_equal(t->offset + t->size, f.bytes.size);
    assert_int_equal(((const unsigned char *)t->data)[1], 6);
    assert_int_equal(gguf_tensor_find(file, "first")->size, 6);
    gguf_close(file);
    forge_free(&f);
}

static void each_of_many_keys_is_found(void **state)
{
    (void)state;
    enum { COUNT = 3000 };
    struct forge f;
    char name[32];
    forge_begin(&f);
    forge_head(&f, 3, COUNT, COUNT);
    for (uint32_t i = 0; i < COUNT; i++) {
        snprintf(name, sizeof name, "key.%u", i * 2654435761u);
        forge_key(&f, name, GGUF_U32);
        forge_u32(&f, i);
    }
    for (uint32_t i = 0; i < COUNT; i++) {
        snprintf(name, sizeof name, "blk.%u.w", i * 2654435761u);
        forge_tensor(&f, name, 1, 8, 0, QUANT_I8, 32ull * i);
    }
    forge_pad(&f, 32);
    forge_zeros(&f, 32ull * COUNT);
    struct gguf_file *file = open_forged(&f);
    for (uint32_t i = 0; i < COUNT; i++) {
        snprintf(name, sizeof name, "key.%u", i * 2654435761u);
        assert_ptr_equal(gguf_kv_find(file, name), gguf_kv_at(file, i));
        snprintf(name, sizeof name, "blk.%u.w", i * 2654435761u);
        assert_ptr_equal(gguf_tensor_find(file, name), gguf_tensor_at(file, i));
    }
    assert_null(gguf_kv_find(file, "key."));
    assert_null(gguf_tensor_find(file, "blk.0.w."));
    gguf_close(file);
    forge_free(&f);
}

static void what_is_not_gguf_is_refused(void **state)
{
    (void)state;
    char path[128], folder[128];
    struct {
        const char *path, *text;
    } cases[] = {
        {support_folder_path("", folder), "a directory"},
        {"/dev/null", "a device"},
        {"/nonexistent/model.gguf", "No such file"},
        {support_folder_path("pipe", path), "a pipe"},
    };
    assert_int_equal(mkfifo(path, 0600), 0);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct base_error err = BASE_ERROR_INIT;
        assert_null(gguf_open(cases[i].path, &err));
        assert_int_equal(err.code, BASE_MODEL);
        assert_non_null(strstr(err.text, cases[i].text));
        assert_string_equal(err.file, cases[i].path);
    }
    unlink(path);
    struct base_error err = BASE_ERROR_INIT;
    support_write_file(support_folder_path("empty", path), "", 0);
    assert_null(gguf_open(path, &err));
    assert_string_equal(err.text, "the file is empty");
    unlink(path);
}

/* ---- Writing ---- */

static void write_all_kinds(struct gguf_writer *w)
{
    static const uint16_t numbers[] = {1, 65535, 3};
    struct gguf_str strings[] = {support_str("one"), support_str(""), support_str("three")};
    gguf_writer_u32(w, "u32", 1);
    gguf_writer_u64(w, "u64", UINT64_MAX);
    gguf_writer_i32(w, "i32", -5);
    gguf_writer_f32(w, "f32", 0.1f);
    gguf_writer_bool(w, "bool", true);
    gguf_writer_str(w, "string", "a\0b", 3);
    gguf_writer_str(w, "empty", "", 0);
    gguf_writer_str_array(w, "strings", strings, 3);
    gguf_writer_str_array(w, "no strings", NULL, 0);
    gguf_writer_array(w, "numbers", GGUF_U16, numbers, 3);
    gguf_writer_array(w, "no numbers", GGUF_F32, NULL, 0);
    gguf_writer_u32(w, "u32", 4000000000); /* replaces the value, at the same place */
}

static void what_is_written_is_read_back(void **state)
{
    (void)state;
    char path[128];
    const uint64_t ne[] = {32, 3}, ne1[] = {5};
    unsigned char rows[3 * 34], more[20];
    struct base_error err = BASE_ERROR_INIT;
    for (size_t i = 0; i < sizeof rows; i++) rows[i] = (unsigned char)i;
    memset(more, 7, sizeof more);
    support_folder_path("kinds.gguf", path);
    struct gguf_writer *w = gguf_writer_new(&err);
    write_all_kinds(w);
    gguf_writer_tensor(w, support_str("q"), quant_type_by_id(QUANT_Q8_0), 2, ne);
    gguf_writer_tensor(w, support_str("f"), quant_type_by_id(QUANT_F32), 1, ne1);
    assert_true(gguf_writer_begin(w, path, &err));
    assert_int_not_equal(access(path, F_OK), 0); /* there is no file before it is complete */
    for (size_t i = 0; i < sizeof rows; i += 17)
        assert_true(gguf_writer_data(w, rows + i, 17, &err));
    assert_true(gguf_writer_data(w, more, sizeof more, &err));
    assert_true(gguf_writer_end(w, &err));
    gguf_writer_free(w);
    assert_int_equal(support_folder_count(), 1);

    struct gguf_file *file = support_open_gguf(path);
    assert_int_equal(gguf_version(file), 3);
    assert_int_equal(gguf_size(file) % 32, 0);
    assert_int_equal(gguf_kv_count(file), 11);
    support_assert_str(gguf_kv_at(file, 0)->key, "u32");
    assert_int_equal(gguf_array_int(gguf_kv_find(file, "u32"), 0), 4000000000);
    assert_int_equal(gguf_array_int(gguf_kv_find(file, "i32"), 0), -5);
    assert_true(gguf_array_num(gguf_kv_find(file, "f32"), 0) == (double)0.1f);
    assert_int_equal(gguf_kv_find(file, "string")->size, 3);
    assert_memory_equal(gguf_kv_find(file, "string")->data, "a\0b", 3);
    assert_int_equal(gguf_kv_find(file, "empty")->size, 0);
    support_assert_str(gguf_array_str(file, gguf_kv_find(file, "strings"), 2), "three");
    assert_int_equal(gguf_array_int(gguf_kv_find(file, "numbers"), 1), 65535);
    assert_int_equal(gguf_kv_find(file, "no numbers")->item, GGUF_F32);
    const struct gguf_tensor *q = gguf_tensor_find(file, "q"), *f = gguf_tensor_find(file, "f");
    assert_int_equal(q->size, sizeof rows);
    assert_memory_equal(q->data, rows, sizeof rows);
    assert_memory_equal(f->data, more, sizeof more);
    assert_int_equal(f->offset % 32, 0);
    gguf_close(file);
    unlink(path);
}

/* Data of several of the writer's pieces (2 MB), passed in parts with any boundaries. */
/* The magic of PowerInfer's files is kept by copies. */
static void a_file_of_powerinfer_is_read_and_copied(void **state)
{
    (void)state;
    char path[128];
    struct base_error err = BASE_ERROR_INIT;
    struct forge f;
    forge_begin(&f);
    forge_everything(&f, 3);
    struct gguf_file *file = open_forged(&f);
    assert_false(gguf_is_powerinfer(file));
    gguf_close(file);
    memcpy(f.bytes.data, "PWRI", 4);
    file = open_forged(&f);
    assert_true(gguf_is_powerinfer(file));
    assert_int_equal(gguf_tensor_count(file), 2);
    support_folder_path("powerinfer.gguf", path);
    struct gguf_writer *w = gguf_writer_new(&err);
    gguf_writer_copy_metadata(w, file);
    assert_true(gguf_writer_begin(w, path, &err) && gguf_writer_end(w, &err));
    gguf_writer_free(w);
    gguf_close(file);
    forge_free(&f);
    file = support_open_gguf(path);
    assert_true(gguf_is_powerinfer(file));
    gguf_close(file);
    unlink(path);
}

static void large_parts_are_written_whole(void **state)
{
    (void)state;
    enum { FLOATS = 5 << 18, BYTES = 4 * FLOATS };
    static const size_t part[] = {1, (1 << 21) - 1, (1 << 21) + 4097, 0, BYTES};
    const uint64_t ne[] = {FLOATS};
    char path[128];
    struct base_error err = BASE_ERROR_INIT;
    unsigned char *data = malloc(BYTES);
    assert_non_null(data);
    for (size_t i = 0; i < BYTES; i++) data[i] = (unsigned char)(i * 2654435761u >> 13);
    struct gguf_writer *w = gguf_writer_new(&err);
    gguf_writer_tensor(w, support_str("t"), quant_type_by_id(QUANT_F32), 1, ne);
    assert_true(gguf_writer_begin(w, support_folder_path("large.gguf", path), &err));
    for (size_t i = 0, at = 0; at < BYTES; i++) {
        size_t n = part[i] < BYTES - at ? part[i] : BYTES - at;
        assert_true(gguf_writer_data(w, data + at, n, &err));
        at += n;
    }
    assert_true(gguf_writer_end(w, &err));
    gguf_writer_free(w);
    struct gguf_file *file = support_open_gguf(path);
    const struct gguf_tensor *t = gguf_tensor_at(file, 0);
    assert_int_equal(t->size, BYTES);
    assert_memory_equal(t->data, data, BYTES);
    gguf_close(file);
    free(data);
    unlink(path);
}

/* A copy of every key of a file with every kind has the same bytes. */
static void a_copy_is_exact(void **state)
{
    (void)state;
    struct forge f;
    char path[128];
    struct base_error err = BASE_ERROR_INIT;
    forge_begin(&f);
    forge_everything(&f, 3);
    struct gguf_file *from = open_forged(&f);
    struct gguf_writer *w = gguf_writer_new(&err);
    for (uint64_t i = 0; i < gguf_kv_count(from); i++) gguf_writer_copy_kv(w, gguf_kv_at(from, i));
    for (uint64_t i = 0; i < gguf_tensor_count(from); i++) {
        const struct gguf_tensor *t = gguf_tensor_at(from, i);
        gguf_writer_tensor(w, t->name, t->type, t->n_dims, t->ne);
    }
    assert_true(gguf_writer_begin(w, support_folder_path("copy.gguf", path), &err));
    for (uint64_t i = 0; i < gguf_tensor_count(from); i++) {
        const struct gguf_tensor *t = gguf_tensor_at(from, i);
        assert_true(gguf_writer_data(w, t->data, t->size, &err));
    }
    assert_true(gguf_writer_end(w, &err));
    gguf_writer_free(w);
    gguf_close(from);
    char *bytes = malloc(f.bytes.size + 1);
    FILE *file = fopen(path, "rb");
    assert_non_null(bytes);
    assert_non_null(file);
    assert_int_equal(fread(bytes, 1, f.bytes.size + 1, file), f.bytes.size);
    assert_memory_equal(bytes, f.bytes.data, f.bytes.size);
    fclose(file);
    free(bytes);
    unlink(path);
    forge_free(&f);
}

/* A writer of one F32 tensor of 4096 floats, with padding to `alignment` where it is not 0. */
static struct gguf_writer *one_tensor(uint32_t alignment)
{
    const uint64_t ne[] = {4096};
    struct gguf_writer *w = gguf_writer_new(NULL);
    assert_non_null(w);
    if (alignment) gguf_writer_u32(w, "general.alignment", alignment);
    gguf_writer_tensor(w, support_str("t"), quant_type_by_id(QUANT_F32), 1, ne);
    return w;
}

static void the_writer_follows_the_alignment(void **state)
{
    (void)state;
    char path[128];
    float data[4096] = {[4095] = 3};
    struct base_error err = BASE_ERROR_INIT;
    struct gguf_writer *w = one_tensor(16384 * 4);
    assert_true(gguf_writer_begin(w, support_folder_path("wide.gguf", path), &err));
    assert_true(gguf_writer_data(w, data, sizeof data, &err));
    assert_true(gguf_writer_end(w, &err));
    gguf_writer_free(w);
    struct gguf_file *file = support_open_gguf(path);
    assert_int_equal(gguf_alignment(file), 65536);
    assert_int_equal(gguf_tensor_at(file, 0)->offset, 65536);
    assert_int_equal(gguf_size(file), 131072);
    gguf_close(file);
    unlink(path);
}

/* An existing file is replaced only by a complete one. */
static void an_unfinished_write_leaves_no_file(void **state)
{
    (void)state;
    char path[128], old[4] = "";
    float data[4096] = {0};
    struct base_error err = BASE_ERROR_INIT;
    support_write_file(support_folder_path("model.gguf", path), "old", 3);
    struct gguf_writer *w = one_tensor(0);
    assert_true(gguf_writer_begin(w, path, &err));
    assert_true(gguf_writer_data(w, data, 100, &err));
    assert_int_equal(support_folder_count(), 2);
    gguf_writer_free(w); /* abandoned */
    assert_int_equal(support_folder_count(), 1);

    w = one_tensor(0);
    assert_true(gguf_writer_begin(w, path, &err));
    assert_true(gguf_writer_data(w, data, sizeof data - 1, &err));
    assert_false(gguf_writer_end(w, &err)); /* a byte is missing */
    assert_int_equal(err.code, BASE_FAILED);
    assert_string_equal(err.item, "t");
    assert_string_equal(err.text, "only 16383 of its 16384 bytes were written");
    gguf_writer_free(w);
    assert_int_equal(support_folder_count(), 1);
    FILE *f = fopen(path, "rb");
    assert_int_equal(fread(old, 1, 4, f), 3);
    assert_string_equal(old, "old");
    fclose(f);
    unlink(path);
}

/* Fails by an earlier error, or because of the path. */
static void assert_begin_fails(struct gguf_writer *w, const char *path, const char *text)
{
    struct base_error err = BASE_ERROR_INIT;
    assert_false(gguf_writer_begin(w, path, &err));
    assert_int_equal(err.code, BASE_FAILED);
    if (!strstr(err.text, text)) fail_msg("'%s' is not in '%s'", text, err.text);
    gguf_writer_free(w);
    assert_int_equal(support_folder_count(), 0);
}

static void the_writer_refuses_what_the_reader_would_refuse(void **state)
{
    (void)state;
    char path[128];
    const uint64_t odd[] = {31}, zero[] = {32, 0}, huge[] = {INT64_MAX, 2};
    const struct quant_type *q8 = quant_type_by_id(QUANT_Q8_0), *i8 = quant_type_by_id(QUANT_I8);
    const struct {
        const char *name;
        const struct quant_type *type;
        uint32_t n_dims;
        const uint64_t *ne;
        const char *text;
    } tensors[] = {
        {"t", q8, 1, odd, "shape does not fit"},
        {"t", q8, 2, zero, "shape does not fit"},
        {"t", i8, 2, huge, "shape does not fit"},
        {"", i8, 1, odd, "needs a name"},
        {"t", i8, 0, odd, "1 to 4 dimensions"},
        {"t", i8, 5, odd, "1 to 4 dimensions"},
        {"0123456789012345678901234567890123456789012345678901234567890123x", i8, 1, odd,
         "a name of 1 to 64"},
    };
    support_folder_path("refused.gguf", path);
    for (size_t i = 0; i < sizeof tensors / sizeof *tensors; i++) {
        struct gguf_writer *w = gguf_writer_new(NULL);
        gguf_writer_tensor(w, support_str(tensors[i].name), tensors[i].type, tensors[i].n_dims,
                           tensors[i].ne);
        assert_begin_fails(w, path, tensors[i].text);
    }
    struct gguf_writer *w = one_tensor(0);
    gguf_writer_tensor(w, support_str("t"), i8, 1, odd);
    assert_begin_fails(w, path, "two tensors");
    assert_begin_fails(one_tensor(48), path, "power of two");
    w = gguf_writer_new(NULL);
    gguf_writer_u64(w, "general.alignment", 32);
    assert_begin_fails(w, path, "u32");
    w = gguf_writer_new(NULL);
    gguf_writer_u32(w, "", 1);
    gguf_writer_u64(w, "general.alignment", 32); /* the first error sticks */
    assert_begin_fails(w, path, "metadata key");
    assert_begin_fails(one_tensor(0), "/nonexistent/x.gguf", "cannot write");
    assert_begin_fails(one_tensor(0), support_folder_path("", path), "cannot write");
}

static void the_writer_refuses_more_than_was_declared(void **state)
{
    (void)state;
    char path[128];
    float data[4097] = {0};
    struct base_error err = BASE_ERROR_INIT;
    struct gguf_writer *w = one_tensor(0);
    assert_true(gguf_writer_begin(w, support_folder_path("surplus.gguf", path), &err));
    assert_false(gguf_writer_data(w, data, sizeof data, &err));
    assert_non_null(strstr(err.text, "more than the declared 16384"));
    assert_false(gguf_writer_end(w, NULL));
    gguf_writer_free(w);
    err = BASE_ERROR_INIT;
    w = one_tensor(0);
    assert_true(gguf_writer_begin(w, path, &err));
    assert_true(gguf_writer_data(w, data, 16384, &err));
    assert_false(gguf_writer_data(w, data, 1, &err));
    assert_non_null(strstr(err.text, "more tensor data"));
    gguf_writer_free(w);
    assert_int_equal(support_folder_count(), 0);
}

/* Writes 4096 floats many times; true if all was written. */
static bool write_big(const char *path, struct base_error *err)
{
    static const float row[4096];
    const uint64_t ne[] = {4096, 64};
    struct gguf_writer *w = gguf_writer_new(err);
    gguf_writer_tensor(w, support_str("t"), quant_type_by_id(QUANT_F32), 2, ne);
    bool done = gguf_writer_begin(w, path, err);
    for (int i = 0; done && i < 64; i++) done = gguf_writer_data(w, row, sizeof row, err);
    done = done && gguf_writer_end(w, err);
    gguf_writer_free(w);
    return done;
}

static void a_full_disk_is_an_error(void **state)
{
    (void)state;
    char path[128];
    struct stat st;
    struct base_error err = BASE_ERROR_INIT;
    assert_false(write_big("/dev/full", &err));
    assert_int_equal(err.code, BASE_FAILED);
    assert_string_equal(err.text, "cannot write: No space left on device");
    assert_string_equal(err.file, "/dev/full");
    assert_int_equal(stat("/dev/full", &st), 0);
    assert_true(S_ISCHR(st.st_mode)); /* still the device */

    struct rlimit old, small;
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &old), 0);
    signal(SIGXFSZ, SIG_IGN);
    small = (struct rlimit){.rlim_cur = 300000, .rlim_max = old.rlim_max};
    err = BASE_ERROR_INIT;
    support_folder_path("limited.gguf", path);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &small), 0);
    bool done = write_big(path, &err);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &old), 0);
    assert_false(done);
    assert_string_equal(err.text, "cannot write: File too large");
    assert_string_equal(err.file, path);
    assert_int_equal(support_folder_count(), 0);
}

/* Runs write_big("-") with standard output redirected to `fd`. */
static bool write_to_output(int fd, struct base_error *err)
{
    fflush(stdout);
    int saved = dup(STDOUT_FILENO);
    assert_true(saved >= 0 && dup2(fd, STDOUT_FILENO) >= 0);
    bool done = write_big("-", err);
    assert_true(dup2(saved, STDOUT_FILENO) >= 0);
    close(saved);
    return done;
}

static void standard_output_can_be_written(void **state)
{
    (void)state;
    char path[128];
    struct base_error err = BASE_ERROR_INIT;
    int fd = open(support_folder_path("out.gguf", path), O_WRONLY | O_CREAT, 0600);
    assert_true(write_to_output(fd, &err));
    close(fd);
    struct gguf_file *file = support_open_gguf(path);
    assert_int_equal(gguf_tensor_at(file, 0)->size, 4096 * 64 * 4);
    gguf_close(file);
    unlink(path);

    int ends[2];
    assert_int_equal(pipe(ends), 0);
    close(ends[0]); /* no reader is left */
    signal(SIGPIPE, SIG_IGN);
    assert_false(write_to_output(ends[1], &err));
    assert_string_equal(err.text, "cannot write: Broken pipe");
    assert_string_equal(err.file, "standard output");
    close(ends[1]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_kind_of_key_and_tensor_is_read),
        cmocka_unit_test(every_kind_has_a_name),
        cmocka_unit_test(typed_reads_convert_values_that_fit),
        cmocka_unit_test(given_values_come_before_those_of_the_file),
        cmocka_unit_test(typed_reads_refuse_values_that_do_not_fit),
        cmocka_unit_test(an_interruption_ends_reading),
        cmocka_unit_test(unusual_layouts_are_read),
        cmocka_unit_test(each_of_many_keys_is_found),
        cmocka_unit_test(what_is_not_gguf_is_refused),
        cmocka_unit_test(what_is_written_is_read_back),
        cmocka_unit_test(a_file_of_powerinfer_is_read_and_copied),
        cmocka_unit_test(large_parts_are_written_whole),
        cmocka_unit_test(a_copy_is_exact),
        cmocka_unit_test(the_writer_follows_the_alignment),
        cmocka_unit_test(an_unfinished_write_leaves_no_file),
        cmocka_unit_test(the_writer_refuses_what_the_reader_would_refuse),
        cmocka_unit_test(the_writer_refuses_more_than_was_declared),
        cmocka_unit_test(a_full_disk_is_an_error),
        cmocka_unit_test(standard_output_can_be_written),
    };
    return cmocka_run_group_tests(tests, support_folder_make, support_folder_remove);
}

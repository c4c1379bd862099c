/* test/test_gguf_split.c: models in several files: parts by name, their declarations, and
 * errors. */
#include "test/support.h"
#include "test/support_folder.h"
#include "test/support_gguf.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct part_says {
    int number, count, tensors; /* -1: the key is omitted */
};

static void write_part(const char *path, const struct part_says *says, const char *tensor)
{
    const uint64_t ne[] = {8};
    uint8_t data[8];
    struct base_error err = BASE_ERROR_INIT;
    struct gguf_writer *w = gguf_writer_new(&err);
    if (says->number >= 0) gguf_writer_u32(w, "split.no", (uint32_t)says->number);
    if (says->count >= 0) gguf_writer_u32(w, "split.count", (uint32_t)says->count);
    if (says->tensors >= 0) gguf_writer_i32(w, "split.tensors.count", says->tensors);
    gguf_writer_str(w, "from", path, strlen(path));
    gguf_writer_tensor(w, support_str(tensor), quant_type_by_id(QUANT_I8), 1, ne);
    memset(data, tensor[0], sizeof data);
    assert_true(gguf_writer_begin(w, path, &err));
    assert_true(gguf_writer_data(w, data, sizeof data, &err));
    assert_true(gguf_writer_end(w, &err));
    gguf_writer_free(w);
}

static void part_path(int number, int count, char out[128])
{
    char name[64];
    snprintf(name, sizeof name, "m-%05d-of-%05d.gguf", number, count);
    support_folder_path(name, out);
}

/* Three parts with tensors a, b, c; `odd` replaces the declarations of part `which`. */
static void write_parts(int which, const struct part_says *odd, const char *last)
{
    const char *names[] = {"a", "b", last};
    char path[128];
    for (int i = 0; i < 3; i++) {
        struct part_says says = {.number = i, .count = 3, .tensors = 3};
        part_path(i + 1, 3, path);
        write_part(path, i == which ? odd : &says, names[i]);
    }
}

static void remove_parts(void)
{
    char path[128];
    for (int i = 1; i <= 3; i++) {
        part_path(i, 3, path);
        unlink(path);
    }
}

static void any_part_opens_the_whole_model(void **state)
{
    (void)state;
    char path[128], first[128];
    write_parts(-1, NULL, "c");
    part_path(1, 3, first);
    for (int i = 1; i <= 3; i++) {
        part_path(i, 3, path);
        struct gguf_file *file = support_open_gguf(path);
        assert_int_equal(gguf_part_count(file), 3);
        assert_string_equal(gguf_path(file), first);
        assert_int_equal(gguf_tensor_count(file), 3);
        for (int t = 0; t < 3; t++) {
            char name[2] = {(char)('a' + t), 0};
            const struct gguf_tensor *tensor = gguf_tensor_find(file, name);
            assert_ptr_equal(tensor, gguf_tensor_at(file, (uint64_t)t));
            assert_int_equal(tensor->part, t);
            assert_memory_equal(tensor->data, name, 1);
        }
        struct gguf_str from;
        assert_true(gguf_get_str(file, "from", &from, NULL));
        support_assert_str(from, first); /* the first part's metadata */
        assert_true(gguf_touch(file) > 0);
        gguf_close(file);
    }
    remove_parts();
}

static void assert_split_fails(int file, const char *item, const char *text)
{
    char first[128], blamed[128];
    struct base_error err = BASE_ERROR_INIT;
    part_path(1, 3, first);
    part_path(file, 3, blamed);
    assert_null(gguf_open(first, &err));
    assert_int_equal(err.code, BASE_MODEL);
    assert_string_equal(err.item, item);
    if (!strstr(err.text, text)) fail_msg("'%s' is not in '%s'", text, err.text);
    assert_string_equal(err.file, blamed);
    remove_parts();
}

static void parts_that_do_not_belong_together_are_refused(void **state)
{
    (void)state;
    char path[128];
    write_parts(-1, NULL, "c");
    part_path(2, 3, path);
    unlink(path);
    assert_split_fails(2, "", "part 2 of 3 of this split model is missing");
    write_parts(-1, NULL, "c");
    support_write_file(path, "GGUF\3\0\0\0", 8);
    assert_split_fails(2, "", "too short");
    write_parts(1, &(struct part_says){2, 3, 3}, "c");
    assert_split_fails(2, "split.no",
                       "part 1 (from 0) according to the file's name, 2 in the file");
    write_parts(1, &(struct part_says){-1, 3, 3}, "c");
    assert_split_fails(2, "split.no", "-1 in the file");
    write_parts(2, &(struct part_says){2, 4, 3}, "c");
    assert_split_fails(3, "split.count", "3 parts according to the file's name, 4 in the file");
    write_parts(0, &(struct part_says){0, -1, 3}, "c");
    assert_split_fails(1, "split.count", "3 parts according to the file's name, 0 in the file");
    write_parts(0, &(struct part_says){0, 3, 4}, "c");
    assert_split_fails(1, "split.tensors.count", "the parts have 3 tensors, not 4");
    write_parts(-1, NULL, "a");
    assert_split_fails(1, "a", "two tensors have this name");
}

/* Names that resemble those of parts, and a model of one part. */
static void names_of_parts_are_read(void **state)
{
    (void)state;
    static const char *const names[] = {
        "m-00001-of-00001.gguf", "m-0001-of-00003.gguf",  "m-00004-of-00003.gguf",
        "m-00000-of-00003.gguf", "m-00001-of-00003.bin",  "m_00001-of-00003.gguf",
        "m-00001-or-00003.gguf", "m-0000x-of-00003.gguf",
    };
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        char path[128];
        write_part(support_folder_path(names[i], path), &(struct part_says){0, 1, 1}, "a");
        struct gguf_file *file = support_open_gguf(path);
        assert_int_equal(gguf_part_count(file), 1);
        gguf_close(file);
        unlink(path);
    }
}

/* Parts with tensors, a first and a last one without; metadata is in the first, the alignment in
 * all. */
static void the_writer_makes_parts(void **state)
{
    (void)state;
    enum { PARTS = 4, TENSORS = 3 };
    static const uint64_t ne[] = {40};
    static const int part_of[TENSORS] = {1, 1, 2};
    struct base_error err = BASE_ERROR_INIT;
    struct gguf_writer *w = gguf_writer_new(&err);
    char prefix[128], data[40];
    gguf_writer_u32(w, "general.alignment", 64);
    gguf_writer_str(w, "name", "whole", 5);
    assert_int_equal(gguf_writer_part_count(w), 0);
    for (int t = 0; t < TENSORS; t++) {
        const char name[] = {(char)('a' + t), 0};
        while (gguf_writer_part_count(w) <= part_of[t]) gguf_writer_part(w);
        gguf_writer_tensor(w, support_str(name), quant_type_by_id(QUANT_I8), 1, ne);
    }
    gguf_writer_part(w);
    assert_int_equal(gguf_writer_part_count(w), PARTS);
    assert_true(gguf_writer_begin(w, support_folder_path("w", prefix), &err));
    for (int t = 0; t < TENSORS; t++) {
        memset(data, 'a' + t, sizeof data);
        assert_true(gguf_writer_data(w, data, sizeof data, &err));
    }
    char path[160];
    snprintf(path, sizeof path, "%s-00001-of-00004.gguf", prefix);
    assert_int_not_equal(access(path, F_OK), 0); /* files get their names with the last part */
    assert_true(gguf_writer_end(w, &err));
    gguf_writer_free(w);
    struct gguf_file *file = support_open_gguf(path);
    assert_int_equal(gguf_part_count(file), PARTS);
    assert_int_equal(gguf_tensor_count(file), TENSORS);
    for (int t = 0; t < TENSORS; t++) {
        const struct gguf_tensor *tensor = gguf_tensor_at(file, (uint64_t)t);
        assert_int_equal(tensor->part, part_of[t]);
        assert_int_equal(((const char *)tensor->data)[39], 'a' + t);
        assert_int_equal(tensor->offset % 64, 0);
    }
    assert_true(gguf_check_parts(file, &err));
    assert_true(gguf_check_unchanged(file, &err));
    gguf_close(file);
    for (int i = 0; i < PARTS; i++) {
        char *name = gguf_part_path((struct gguf_str){prefix, strlen(prefix)}, i, PARTS, &err);
        assert_int_equal(unlink(name), 0);
        free(name);
    }
    w = gguf_writer_new(&err); /* the file that the writer writes by default */
    gguf_writer_u32(w, "split.count", 3);
    gguf_writer_part(w);
    assert_false(gguf_writer_begin(w, prefix, &err));
    assert_string_equal(err.item, "split.count");
    gguf_writer_free(w);
}

static void metadata_of_later_parts_is_compared(void **state)
{
    (void)state;
    char first[128];
    struct base_error err = BASE_ERROR_INIT;
    write_parts(-1, NULL, "c"); /* with different values of "from" */
    part_path(1, 3, first);
    struct gguf_file *file = support_open_gguf(first);
    assert_false(gguf_check_parts(file, &err));
    assert_int_equal(err.code, BASE_MODEL);
    assert_string_equal(err.item, "from");
    assert_non_null(strstr(err.text, "part 2 of 3 has a different value from the first"));
    gguf_close(file);
    remove_parts();
}

static void a_preview_is_the_file_with_zeros(void **state)
{
    (void)state;
    static const uint64_t ne[] = {32, 3};
    struct base_error err = BASE_ERROR_INIT;
    struct gguf_writer *w = gguf_writer_new(&err);
    gguf_writer_u32(w, "n", 1);
    gguf_writer_u32(w, "n", 2);
    gguf_writer_tensor(w, support_str("t"), quant_type_by_id(QUANT_Q8_0), 2, ne);
    struct gguf_file *file = gguf_writer_preview(w, &err);
    uint32_t n = 0;
    assert_non_null(file);
    assert_true(gguf_get_u32(file, "n", &n, &err));
    assert_int_equal(n, 2);
    assert_int_equal(gguf_tensor_at(file, 0)->size, 102);
    assert_int_equal(((const char *)gguf_tensor_at(file, 0)->data)[101], 0);
    gguf_close(file);
    gguf_writer_tensor(w, support_str("t"), quant_type_by_id(QUANT_Q8_0), 2, ne);
    assert_null(gguf_writer_preview(w, &err));
    assert_string_equal(err.item, "t");
    gguf_writer_free(w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(any_part_opens_the_whole_model),
        cmocka_unit_test(parts_that_do_not_belong_together_are_refused),
        cmocka_unit_test(names_of_parts_are_read),
        cmocka_unit_test(the_writer_makes_parts),
        cmocka_unit_test(metadata_of_later_parts_is_compared),
        cmocka_unit_test(a_preview_is_the_file_with_zeros),
    };
    return cmocka_run_group_tests(tests, support_folder_make, support_folder_remove);
}

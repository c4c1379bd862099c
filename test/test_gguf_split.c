/* test/test_gguf_split.c: models in several files: parts by name, what they say of themselves, and
 * the refusals. */
#include "test/support.h"
#include "test/support_folder.h"
#include "test/support_gguf.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

struct part_says {
    int number, count, tensors; /* -1: the key is left out */
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

/* Three parts with tensors a, b, c; `odd` takes the place of what part `which` says. */
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

static void any_part_opens_the_whole(void **state)
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
    assert_split_fails(2, "split.no", "the name says part 1, the file says part 2");
    write_parts(1, &(struct part_says){-1, 3, 3}, "c");
    assert_split_fails(2, "split.no", "the file says part -1");
    write_parts(2, &(struct part_says){2, 4, 3}, "c");
    assert_split_fails(3, "split.count", "the name says 3 parts, the file says 4");
    write_parts(0, &(struct part_says){0, -1, 3}, "c");
    assert_split_fails(1, "split.count", "the name says 3 parts, the file says 0");
    write_parts(0, &(struct part_says){0, 3, 4}, "c");
    assert_split_fails(1, "split.tensors.count", "4 tensors were announced, the parts hold 3");
    write_parts(-1, NULL, "a");
    assert_split_fails(1, "a", "two tensors have this name");
}

/* Names that only look like parts, and one part of one. */
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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(any_part_opens_the_whole),
        cmocka_unit_test(parts_that_do_not_belong_together_are_refused),
        cmocka_unit_test(names_of_parts_are_read),
    };
    return cmocka_run_group_tests(tests, support_folder_make, support_folder_remove);
}

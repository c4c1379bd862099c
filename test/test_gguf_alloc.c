/* test/test_gguf_alloc.c: every allocation of the reader and of the writer fails once. Linked with
 * --wrap for the allocating functions (see the Makefile). AddressSanitizer detects leaks. */
#include "test/support.h"
#include "test/support_gguf.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Allocations until one fails; negative: none fails. Tests are single-threaded. */
static long until_failure = -1;

static bool fails_now(void)
{
    if (until_failure < 0 || until_failure-- > 0) return false;
    errno = ENOMEM;
    return true;
}

void *__real_malloc(size_t size);
void *__real_calloc(size_t count, size_t size);
void *__real_realloc(void *p, size_t size);
void *__real_reallocarray(void *p, size_t count, size_t size);
char *__real_strdup(const char *s);
char *__real_realpath(const char *path, char *resolved);
void *__wrap_malloc(size_t size);
void *__wrap_calloc(size_t count, size_t size);
void *__wrap_realloc(void *p, size_t size);
void *__wrap_reallocarray(void *p, size_t count, size_t size);
char *__wrap_strdup(const char *s);
char *__wrap_realpath(const char *path, char *resolved);
int __wrap_asprintf(char **out, const char *format, ...);

void *__wrap_malloc(size_t size)
{
    return fails_now() ? NULL : __real_malloc(size);
}

void *__wrap_calloc(size_t count, size_t size)
{
    return fails_now() ? NULL : __real_calloc(count, size);
}

void *__wrap_realloc(void *p, size_t size)
{
    return fails_now() ? NULL : __real_realloc(p, size);
}

void *__wrap_reallocarray(void *p, size_t count, size_t size)
{
    return fails_now() ? NULL : __real_reallocarray(p, count, size);
}

char *__wrap_strdup(const char *s)
{
    return fails_now() ? NULL : __real_strdup(s);
}

char *__wrap_realpath(const char *path, char *resolved)
{
    return fails_now() ? NULL : __real_realpath(path, resolved);
}

int __wrap_asprintf(char **out, const char *format, ...)
{
    if (fails_now()) return -1;
    va_list args;
    va_start(args, format);
    int size = vasprintf(out, format, args);
    va_end(args);
    return size;
}

static char folder[] = "/tmp/test_gguf_alloc_XXXXXX";

static bool write_file(const char *path, struct base_error *err)
{
    const uint64_t ne[] = {8};
    const char data[8] = "12345678";
    const struct gguf_str strings[] = {{"x", 1}, {"y", 1}};
    struct gguf_writer *w = gguf_writer_new(err);
    if (!w) return false;
    gguf_writer_u32(w, "split.count", 2);
    gguf_writer_u32(w, "split.no", strstr(path, "00002-of") != NULL);
    gguf_writer_str_array(w, "strings", strings, 2);
    const char *name = strstr(path, "00002-of") ? "b" : "a";
    gguf_writer_tensor(w, (struct gguf_str){name, 1}, quant_type_by_id(QUANT_I8), 1, ne);
    const char *other = strstr(path, "00002-of") ? "d" : "c";
    gguf_writer_tensor(w, (struct gguf_str){other, 1}, quant_type_by_id(QUANT_I8), 1, ne);
    bool done = gguf_writer_begin(w, path, err) && gguf_writer_data(w, data, 8, err) &&
                gguf_writer_data(w, data, 8, err) && gguf_writer_end(w, err);
    gguf_writer_free(w);
    return done;
}

static void every_failed_allocation_of_writing_and_opening_is_an_error(void **state)
{
    (void)state;
    char first[128], second[128];
    assert_non_null(mkdtemp(folder));
    snprintf(first, sizeof first, "%s/m-00001-of-00002.gguf", folder);
    snprintf(second, sizeof second, "%s/m-00002-of-00002.gguf", folder);
    long writes = 0, opens = 0;
    for (bool done = false; !done; writes++) {
        struct base_error err = BASE_ERROR_INIT;
        until_failure = writes;
        done = write_file(first, &err);
        bool used = until_failure < 0;
        until_failure = -1;
        assert_int_equal(done, !used);
        assert_int_equal(err.code, done ? BASE_OK : BASE_NO_MEMORY);
        assert_int_equal(access(first, F_OK) == 0, done);
    }
    assert_true(write_file(second, NULL));
    for (bool done = false; !done; opens++) {
        struct base_error err = BASE_ERROR_INIT;
        until_failure = opens;
        struct gguf_file *file = gguf_open(second, &err);
        bool used = until_failure < 0;
        until_failure = -1;
        done = file != NULL;
        assert_int_equal(done, !used);
        assert_int_equal(err.code, done ? BASE_OK : BASE_NO_MEMORY);
        if (file) assert_int_equal(gguf_tensor_count(file), 4);
        gguf_close(file);
    }
    assert_true(writes > 10 && opens > 10); /* the wrappers are linked */
    unlink(first);
    unlink(second);
    assert_int_equal(rmdir(folder), 0); /* the folder is empty */
}

static void every_failed_allocation_of_a_full_file_is_an_error(void **state)
{
    (void)state;
    struct forge f;
    forge_begin(&f);
    forge_everything(&f, 3);
    long n = 0;
    for (bool done = false; !done; n++) {
        struct base_error err = BASE_ERROR_INIT;
        until_failure = n;
        struct gguf_file *file = gguf_open_memory(f.bytes.data, f.bytes.size, "forged", &err);
        until_failure = -1;
        done = file != NULL;
        assert_int_equal(err.code, done ? BASE_OK : BASE_NO_MEMORY);
        gguf_close(file);
    }
    assert_true(n > 10);
    forge_free(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_failed_allocation_of_writing_and_opening_is_an_error),
        cmocka_unit_test(every_failed_allocation_of_a_full_file_is_an_error),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

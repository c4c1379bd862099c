/* test/support_folder.c: see test/support_folder.h. */
#include "test/support_folder.h"
#include "test/support.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static char folder[] = "/tmp/infer_test_XXXXXX";

int support_folder_make(void **state)
{
    (void)state;
    return mkdtemp(folder) ? 0 : -1;
}

int support_folder_remove(void **state)
{
    char command[64];
    (void)state;
    snprintf(command, sizeof command, "rm -rf %s", folder);
    return system(command);
}

const char *support_folder_path(const char *name, char out[128])
{
    snprintf(out, 128, "%s/%s", folder, name);
    return out;
}

int support_folder_count(void)
{
    char command[64];
    int count = -1;
    snprintf(command, sizeof command, "ls -A %s | wc -l", folder);
    FILE *f = popen(command, "r");
    if (f) {
        assert_int_equal(fscanf(f, "%d", &count), 1);
        pclose(f);
    }
    return count;
}

void support_write_file(const char *path, const void *bytes, size_t size)
{
    FILE *f = fopen(path, "wb");
    assert_non_null(f);
    assert_int_equal(fwrite(bytes, 1, size, f), size);
    assert_int_equal(fclose(f), 0);
}

struct gguf_file *support_open_gguf(const char *path)
{
    struct base_error err = BASE_ERROR_INIT;
    struct gguf_file *file = gguf_open(path, &err);
    if (!file) fail_msg("%s: %s: %s", err.file, err.item, err.text);
    return file;
}

struct gguf_str support_str(const char *text)
{
    return (struct gguf_str){.data = text, .size = strlen(text)};
}

void support_assert_str(struct gguf_str s, const char *text)
{
    assert_int_equal(s.size, strlen(text));
    assert_memory_equal(s.data, text, s.size);
}

/* test/support_files.c: finding test data. See test/support_files.h. */
#include "test/support_files.h"
#include "test/support.h"
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static bool join(const char *folder, const char *file, char *out, size_t out_size)
{
    int n = snprintf(out, out_size, "%s/%s", folder, file);
    return n > 0 && (size_t)n < out_size && access(out, R_OK) == 0;
}

bool support_model_path(const char *file, char *out, size_t out_size)
{
    char folder[1024];
    const char *own = getenv("INFER_TEST_MODELS"), *data = getenv("XDG_DATA_HOME");
    const char *home = getenv("HOME");
    if (own) return join(own, file, out, out_size);
    if (data && *data)
        snprintf(folder, sizeof folder, "%s/infer/models", data);
    else
        snprintf(folder, sizeof folder, "%s/.local/share/infer/models", home ? home : "");
    return join(folder, file, out, out_size);
}

bool support_shared_path(const char *file, char *out, size_t out_size)
{
    const char *own = getenv("INFER_SHARED");
    return join(own ? own : "../shared", file, out, out_size);
}

char *support_read_file(const char *path, size_t *size)
{
    FILE *f = fopen(path, "rb");
    char *bytes = NULL;
    long end;
    if (!f) return NULL;
    if (fseek(f, 0, SEEK_END) == 0 && (end = ftell(f)) >= 0 && fseek(f, 0, SEEK_SET) == 0 &&
        (bytes = malloc((size_t)end + 1)) != NULL) {
        *size = fread(bytes, 1, (size_t)end, f);
        bytes[*size] = '\0';
    }
    fclose(f);
    return bytes;
}

void support_skip(const char *what)
{
    printf("skipped: %s\n", what);
    fflush(stdout);
    skip();
}

bool support_quick(void)
{
    return getenv("INFER_TEST_QUICK") != NULL;
}

/* test/tool_gguf_seeds.c: writes small valid GGUF files into a folder, as a corpus for fuzzing. */
#include "test/support_gguf.h"

#include <stdio.h>

static int write_seed(const char *folder, const char *name, const struct forge *f)
{
    char path[4096];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    FILE *out = fopen(path, "wb");
    if (!out) return 1;
    size_t written = fwrite(f->bytes.data, 1, f->bytes.size, out);
    return fclose(out) != 0 || written != f->bytes.size;
}

int main(int argc, char **argv)
{
    if (argc != 2) {
        fprintf(stderr, "usage: tool_gguf_seeds FOLDER\n");
        return 2;
    }
    int failed = 0;
    for (uint32_t version = 2; version <= 3; version++) {
        struct forge f;
        forge_begin(&f);
        forge_everything(&f, version);
        failed |= write_seed(argv[1], version == 2 ? "everything-v2" : "everything-v3", &f);
        forge_free(&f);
    }
    struct forge f;
    forge_begin(&f);
    forge_head(&f, 3, 2, 1);
    forge_key(&f, "general.alignment", GGUF_U32);
    forge_u32(&f, 8);
    forge_tensor(&f, "t", 1, 8, 0, QUANT_I8, 8);
    forge_tensor(&f, "u", 1, 8, 0, QUANT_I8, 0);
    forge_pad(&f, 8);
    forge_zeros(&f, 16);
    failed |= write_seed(argv[1], "aligned-8", &f);
    forge_free(&f);
    return failed;
}

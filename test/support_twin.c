/* test/support_twin.c: decodes a whole model. See test/support_twin.h. */
#include "test/support_twin.h"
#include "gguf/gguf.h"
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static bool write_tensor(struct gguf_writer *w, const struct quant_kernels *kernels,
                         const struct gguf_tensor *t, struct base_error *err)
{
    const uint64_t n = t->ne[0], rows = t->ne[1] * t->ne[2] * t->ne[3];
    float *row = malloc(n * sizeof *row);
    bool ok = row != NULL;
    for (uint64_t r = 0; ok && r < rows; r++) {
        const char *in = (const char *)t->data + r * (t->size / rows);
        kernels->type[t->type->id].decode(0, (int64_t)n, in, row);
        ok = gguf_writer_data(w, row, n * sizeof *row, err);
    }
    free(row);
    return ok;
}

bool support_twin_write(const char *path, char out[512], struct base_error *err)
{
    struct gguf_file *file = gguf_open(path, err);
    struct gguf_writer *w = gguf_writer_new(err);
    struct quant_kernels kernels;
    const char *folder = getenv("TMPDIR");
    bool ok = file && w;
    snprintf(out, 512, "%s/infer-twin-%d.gguf", folder ? folder : "/tmp", (int)getpid());
    quant_kernels_init(&kernels, cpu_level_best());
    for (uint64_t i = 0; ok && i < gguf_kv_count(file); i++)
        gguf_writer_copy_kv(w, gguf_kv_at(file, i));
    for (uint64_t i = 0; ok && i < gguf_tensor_count(file); i++) {
        const struct gguf_tensor *t = gguf_tensor_at(file, i);
        gguf_writer_tensor(w, t->name, quant_type_by_id(QUANT_F32), t->n_dims, t->ne);
    }
    ok = ok && gguf_writer_begin(w, out, err);
    for (uint64_t i = 0; ok && i < gguf_tensor_count(file); i++)
        ok = write_tensor(w, &kernels, gguf_tensor_at(file, i), err);
    ok = ok && gguf_writer_end(w, err);
    gguf_writer_free(w);
    gguf_close(file);
    return ok;
}

/* cli/model_copy.c: copies tensor data. See cli/model_copy.h. */
#include "cli/model_copy.h"
#include "cli/progress.h"
#include "cli/system.h"
#include <string.h>

bool cli_model_copy(struct gguf_writer *w, const struct gguf_file *in, int part,
                    struct base_error *err)
{
    const uint64_t count = gguf_tensor_count(in);
    bool ok = true;
    uint64_t bytes = 0;
    for (uint64_t i = 0; i < count; i++)
        if (part < 0 || gguf_tensor_at(in, i)->part == part) bytes += gguf_tensor_at(in, i)->size;
    cli_progress_begin("writing", "bytes", bytes);
    for (uint64_t i = 0; ok && i < count; i++) {
        const struct gguf_tensor *t = gguf_tensor_at(in, i);
        if (part >= 0 && t->part != part) continue;
        ok = gguf_writer_copy_data(w, in, t, err);
        cli_progress_add(t->size);
    }
    cli_progress_end();
    return ok && gguf_check_unchanged(in, err);
}

bool cli_split_prefix(struct base_buffer *out, const char *name, struct base_error *err)
{
    static const char suffix[] = ".gguf";
    const size_t size = strlen(name), end = sizeof suffix - 1;
    const bool has = size > end && strcmp(name + size - end, suffix) == 0;
    base_buffer_add(out, name, has ? size - end : size);
    if (!cli_buffer_check(out, err)) return false;
    if (out->size > 0 && out->data[out->size - 1] != '/') return true;
    return base_fail(err, BASE_USAGE, "'%s': parts need the beginning of a name, as in %spart",
                     name, name);
}

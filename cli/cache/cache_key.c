/* cli/cache/cache_key.c: computes the key of stored sequences. See cli/cache/cache_key.h. */
#include "cli/cache/cache_key.h"
#include "base/os.h"
#include "cli/model_hash.h"
#include <string.h>
#include <time.h>

enum {
    SMALL_BYTES = 4 << 20, /* the largest model of which all bytes are hashed */
    YOUNG_SECONDS = 2
};

/* ---- The model and its adapters ---- */

static bool add_file(const struct gguf_file *file, struct base_buffer *out)
{
    const bool small = gguf_size(file) <= SMALL_BYTES;
    char hash[BASE_SHA256_HEX];
    cli_model_hash_pieces(file, small, hash);
    base_buffer_add_format(out, "%s %llu\n", hash, (unsigned long long)gguf_size(file));
    for (int i = 0; !small && i < gguf_part_count(file); i++) {
        const struct gguf_part_facts part = gguf_part_facts(file, i);
        if (part.changed_ns / 1000000000 >= time(NULL) - YOUNG_SECONDS) return false;
        base_buffer_add_format(out, "%llu %llu %lld\n", (unsigned long long)part.inode,
                               (unsigned long long)part.size, (long long)part.changed_ns);
    }
    return true;
}

/* Appends adapters and control vectors. Activated adapters are not part of the key, because only
 * what precedes their invocation is stored. */
static bool add_adapters(const struct cli_model *model, struct base_buffer *out)
{
    const struct cli_adapters *a = &model->adapters;
    for (size_t i = 0; i < a->count; i++) {
        const struct cli_adapter *item = &a->item[i];
        if (!item->is_vector && model_adapter_facts(model->model, (uint32_t)i)->n_invocation > 0)
            continue;
        if (!add_file(item->file, out)) return false;
        base_buffer_add_format(out, "%d %a %u %u\n", item->is_vector, (double)item->scale,
                               item->first, item->last);
    }
    return true;
}

bool cli_cache_key(const struct cli_values *values, const struct cli_model *model,
                   char key[BASE_SHA256_HEX], const char **why)
{
    BASE_LOCAL_BUFFER text = BASE_BUFFER_INIT;
    struct base_sha256 h;
    *why = "not enough memory";
    if (!base_os_program_id(&text))
        *why = "the program was linked without a build id";
    else if (!add_file(model->file, &text))
        *why = "the model's file has just changed";
    else if (model->drafter.file && !add_file(model->drafter.file, &text))
        *why = "the drafter's file has just changed";
    else if (!add_adapters(model, &text))
        *why = "an adapter's file has just changed";
    else {
        cli_model_add_settings(values, &text);
        base_buffer_add_format(&text, "%d\n", cli_model_keeps_mtp(model, values));
        if (!text.failed) *why = NULL;
    }
    base_sha256_init(&h);
    base_sha256_add(&h, text.size ? text.data : "", text.size);
    base_sha256_hex(&h, key);
    return !*why;
}

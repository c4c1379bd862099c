/* cli/out/gguf_text.c: formats values of a model file as text. See cli/out/gguf_text.h. */
#include "cli/out/gguf_text.h"
#include "base/utf8.h"
#include <inttypes.h>
#include <math.h>
#include <string.h>

enum { SHOWN_ITEMS = 6, SHOWN_ITEM_BYTES = 40 /* of a string in an array */ };

void cli_gguf_add_string(struct base_buffer *out, bool json, struct gguf_str s, size_t limit,
                         bool quoted)
{
    if (json) {
        base_buffer_add_json(out, s.data, s.size);
        return;
    }
    size_t i = 0;
    if (quoted) base_buffer_add_text(out, "\"");
    while (i < s.size && i < limit) {
        int32_t code;
        size_t used = base_utf8_decode(s.data + i, s.size - i, &code);
        if (code < 0)
            base_buffer_add_format(out, "\\x%02x", (unsigned char)s.data[i]);
        else if (code == '\n')
            base_buffer_add_text(out, "\\n");
        else if (code < 0x20 || (code >= 0x7f && code < 0xa0))
            base_buffer_add_format(out, "\\u%04x", (unsigned)code);
        else if (quoted && (code == '"' || code == '\\'))
            base_buffer_add_format(out, "\\%c", (char)code);
        else
            base_buffer_add(out, s.data + i, used);
        i += used;
    }
    if (quoted) base_buffer_add_text(out, "\"");
    if (i < s.size) base_buffer_add_format(out, "... (%llu bytes)", (unsigned long long)s.size);
}

static void add_number(struct base_buffer *out, bool json, double x)
{
    if (json && !isfinite(x))
        base_buffer_add_text(out, "null");
    else
        base_buffer_add_format(out, "%.9g", x);
}

void cli_gguf_add_item(struct base_buffer *out, bool json, const struct gguf_file *file,
                       const struct gguf_kv *kv, uint64_t i)
{
    uint64_t number;
    switch (kv->kind == GGUF_ARRAY ? kv->item : kv->kind) {
    case GGUF_STRING:
        cli_gguf_add_string(out, json,
                            kv->kind == GGUF_ARRAY ? gguf_array_str(file, kv, i)
                                                   : (struct gguf_str){kv->data, kv->size},
                            kv->kind == GGUF_ARRAY ? SHOWN_ITEM_BYTES : CLI_SHOWN_BYTES, true);
        break;
    case GGUF_F32:
    case GGUF_F64:
        add_number(out, json, gguf_array_num(kv, i));
        break;
    case GGUF_BOOL:
        base_buffer_add_text(out, gguf_array_int(kv, i) ? "true" : "false");
        break;
    case GGUF_U64:
        memcpy(&number, (const char *)kv->data + i * sizeof number, sizeof number);
        base_buffer_add_format(out, "%" PRIu64, number);
        break;
    case GGUF_ARRAY:
        base_buffer_add_text(out, json ? "null" : "[...]");
        break;
    default:
        base_buffer_add_format(out, "%lld", (long long)gguf_array_int(kv, i));
    }
}

void cli_gguf_add_value(struct base_buffer *out, bool json, const struct gguf_file *file,
                        const struct gguf_kv *kv)
{
    if (kv->kind != GGUF_ARRAY) {
        cli_gguf_add_item(out, json, file, kv, 0);
        return;
    }
    uint64_t shown = kv->count < SHOWN_ITEMS ? kv->count : SHOWN_ITEMS;
    base_buffer_add_text(out, "[");
    for (uint64_t i = 0; i < shown; i++) {
        if (i) base_buffer_add_text(out, ", ");
        cli_gguf_add_item(out, json, file, kv, i);
    }
    if (shown < kv->count && !json) base_buffer_add_text(out, ", ...");
    base_buffer_add_text(out, "]");
}

void cli_gguf_add_typed(struct base_buffer *out, bool json, const struct gguf_file *file,
                        const struct gguf_kv *kv)
{
    const char *item = gguf_kind_name(kv->item);
    const unsigned long long count = kv->count;
    if (json) base_buffer_add_format(out, "{\"type\":\"%s\",", gguf_kind_name(kv->kind));
    if (kv->kind == GGUF_ARRAY)
        base_buffer_add_format(
            out, json ? "\"item\":\"%s\",\"count\":%llu,\"first\":" : "%s[%llu] ", item, count);
    else if (json)
        base_buffer_add_text(out, "\"value\":");
    else
        base_buffer_add_format(out, "%s ", gguf_kind_name(kv->kind));
    cli_gguf_add_value(out, json, file, kv);
    if (json) base_buffer_add_text(out, "}");
}

void cli_gguf_add_shape(struct base_buffer *out, const uint64_t *ne, uint32_t n, const char *comma)
{
    base_buffer_add_text(out, "[");
    for (uint32_t i = n; i-- > 0;)
        base_buffer_add_format(out, "%llu%s", (unsigned long long)ne[i], i ? comma : "");
    base_buffer_add_text(out, "]");
}

struct cli_gguf_sums cli_gguf_sum(const struct gguf_file *file)
{
    struct cli_gguf_sums s = {0};
    for (uint64_t i = 0; i < gguf_tensor_count(file); i++) {
        const struct gguf_tensor *t = gguf_tensor_at(file, i);
        s.count[t->type->id]++;
        s.bytes_of[t->type->id] += t->size;
        s.bytes += t->size;
        if (quant_type_has_weights(t->type)) /* copies by columns are no weights */
            s.elements += t->ne[0] * t->ne[1] * t->ne[2] * t->ne[3];
    }
    return s;
}

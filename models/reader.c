/* models/reader.c: reads and checks numbers of the metadata. See models/params.h. */
#include "models/params.h"
#include <math.h>
#include <stdarg.h>
#include <stdio.h>

const char *model_reader_key(struct model_reader *r, const char *name)
{
    snprintf(r->key, sizeof r->key, "%s.%s", r->name, name);
    return r->key;
}

bool model_reader_has(struct model_reader *r, const char *name)
{
    return gguf_kv_find(r->file, model_reader_key(r, name)) != NULL;
}

bool model_reader_given(struct model_reader *r, const char *name)
{
    const struct gguf_kv *kv = gguf_kv_find(r->file, model_reader_key(r, name));
    return kv && kv->given;
}

bool model_reader_fail(struct model_reader *r, const char *name, const char *format, ...)
{
    char text[256];
    const struct gguf_kv *kv = gguf_kv_find(r->file, model_reader_key(r, name));
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    return base_fail_at(r->err, kv && kv->given ? BASE_USAGE : BASE_MODEL, r->key,
                        kv ? (int64_t)kv->offset : -1, "%s", text);
}

const struct gguf_tensor *model_reader_tensor(const struct model_reader *r, uint32_t layer,
                                              const char *rest)
{
    char name[64];
    snprintf(name, sizeof name, "%sblk.%u.%s", r->prefix ? r->prefix : "", layer, rest);
    return gguf_tensor_find(r->file, name);
}

static bool check_absent(struct model_reader *r, const char *name, enum model_need need)
{
    return need == MODEL_OPTIONAL || model_reader_fail(r, name, "this key is missing");
}

bool model_read_u32(struct model_reader *r, const char *name, enum model_need need, uint32_t min,
                    uint32_t max, uint32_t *out)
{
    uint32_t value = *out;
    if (!model_reader_has(r, name)) return check_absent(r, name, need);
    if (!gguf_get_u32(r->file, r->key, &value, r->err)) return false;
    if (value < min || value > max)
        return model_reader_fail(r, name, "%u is not between %u and %u", value, min, max);
    *out = value;
    return true;
}

/* Returns the index of a layer's item in the array: layers past the end use the last one. */
static uint64_t item_of(const struct gguf_kv *array, uint32_t layer)
{
    return layer < array->count ? layer : array->count - 1;
}

bool model_read_layer_u32(struct model_reader *r, const char *name, enum model_need need,
                          uint32_t layer, uint32_t min, uint32_t max, uint32_t *out)
{
    const struct gguf_kv *kv = gguf_kv_find(r->file, model_reader_key(r, name));
    if (!kv || kv->kind != GGUF_ARRAY) return model_read_u32(r, name, need, min, max, out);
    if (!gguf_is_integers(kv) || kv->count < r->n_layer)
        return model_reader_fail(r, name, "an array of %u integers was expected", r->n_layer);
    const int64_t value = gguf_array_int(kv, item_of(kv, layer));
    if (value < min || value > max)
        return model_reader_fail(r, name, "item %u is %lld, not between %u and %u", layer,
                                 (long long)value, min, max);
    *out = (uint32_t)value;
    return true;
}

bool model_read_layer_flag(struct model_reader *r, const char *name, uint32_t layer, bool *is_array,
                           bool *out)
{
    const struct gguf_kv *kv = gguf_kv_find(r->file, model_reader_key(r, name));
    *is_array = kv && kv->kind == GGUF_ARRAY;
    *out = false;
    if (!*is_array) return true;
    if (!gguf_is_integers(kv) || kv->count < r->n_layer)
        return model_reader_fail(r, name, "an array of %u booleans was expected", r->n_layer);
    *out = gguf_array_int(kv, item_of(kv, layer)) != 0;
    return true;
}

bool model_read_f32(struct model_reader *r, const char *name, enum model_need need, float min,
                    float *out)
{
    float value = *out;
    if (!model_reader_has(r, name)) return check_absent(r, name, need);
    if (!gguf_get_f32(r->file, r->key, &value, r->err)) return false;
    if (!isfinite(value) || value < min)
        return model_reader_fail(r, name, "%g is out of range", (double)value);
    *out = value;
    return true;
}

bool model_read_layer_f32(struct model_reader *r, const char *name, enum model_need need,
                          uint32_t layer, float min, float *out)
{
    const struct gguf_kv *kv = gguf_kv_find(r->file, model_reader_key(r, name));
    if (!kv || kv->kind != GGUF_ARRAY) return model_read_f32(r, name, need, min, out);
    if (kv->item == GGUF_STRING || kv->count < r->n_layer)
        return model_reader_fail(r, name, "an array of %u numbers was expected", r->n_layer);
    const double value = gguf_array_num(kv, item_of(kv, layer));
    if (!isfinite(value) || value < (double)min)
        return model_reader_fail(r, name, "item %u is %g, out of range", layer, value);
    *out = (float)value;
    return true;
}

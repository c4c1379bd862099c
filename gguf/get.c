/* gguf/get.c: typed reads of metadata keys. A value of another kind or out of range is an error:
 * metadata of a wrong type means that the model is damaged. */
#include "gguf/gguf.h"

#include "gguf/bytes.h"
#include <float.h>
#include <inttypes.h>
#include <math.h>

/* The code for a wrong value: it is in the file, or in an option of the user. */
static enum base_code code_of(const struct gguf_kv *kv)
{
    return kv->given ? BASE_USAGE : BASE_MODEL;
}

static bool fail_kind(const struct gguf_file *f, const struct gguf_kv *kv, const char *key,
                      const char *wanted, struct base_error *e)
{
    base_fail_at(e, code_of(kv), key, (int64_t)kv->offset, "must be %s, not %s", wanted,
                 gguf_kind_name(kv->kind));
    base_error_set_file(e, gguf_path(f));
    return false;
}

static bool fail_range(const struct gguf_file *f, const struct gguf_kv *kv, const char *key,
                       const char *wanted, struct base_error *e)
{
    if (kv->kind == GGUF_F64) {
        base_fail_at(e, code_of(kv), key, (int64_t)kv->offset, "%g does not fit %s",
                     gguf_array_num(kv, 0), wanted);
    } else if (kv->kind == GGUF_U64) {
        base_fail_at(e, code_of(kv), key, (int64_t)kv->offset, "%" PRIu64 " does not fit %s",
                     gguf_load_u64(kv->data), wanted);
    } else {
        base_fail_at(e, code_of(kv), key, (int64_t)kv->offset, "%" PRId64 " does not fit %s",
                     gguf_array_int(kv, 0), wanted);
    }
    base_error_set_file(e, gguf_path(f));
    return false;
}

bool gguf_get_u32(const struct gguf_file *f, const char *key, uint32_t *out, struct base_error *e)
{
    const struct gguf_kv *kv = gguf_kv_find(f, key);
    if (!kv) return true;
    if (!gguf_kind_is_integer(kv->kind)) return fail_kind(f, kv, key, "an unsigned integer", e);
    int64_t value = gguf_array_int(kv, 0);
    if (value < 0 || value > UINT32_MAX) return fail_range(f, kv, key, "u32", e);
    *out = (uint32_t)value;
    return true;
}

bool gguf_get_i64(const struct gguf_file *f, const char *key, int64_t *out, struct base_error *e)
{
    const struct gguf_kv *kv = gguf_kv_find(f, key);
    if (!kv) return true;
    if (!gguf_kind_is_integer(kv->kind)) return fail_kind(f, kv, key, "an integer", e);
    if (kv->kind == GGUF_U64 && gguf_load_u64(kv->data) > INT64_MAX)
        return fail_range(f, kv, key, "i64", e);
    *out = gguf_array_int(kv, 0);
    return true;
}

bool gguf_get_f32(const struct gguf_file *f, const char *key, float *out, struct base_error *e)
{
    const struct gguf_kv *kv = gguf_kv_find(f, key);
    if (!kv) return true;
    if (kv->kind != GGUF_F32 && kv->kind != GGUF_F64) return fail_kind(f, kv, key, "f32", e);
    double value = gguf_array_num(kv, 0);
    if (isfinite(value) && fabs(value) > FLT_MAX) return fail_range(f, kv, key, "f32", e);
    *out = (float)value;
    return true;
}

bool gguf_get_bool(const struct gguf_file *f, const char *key, bool *out, struct base_error *e)
{
    const struct gguf_kv *kv = gguf_kv_find(f, key);
    if (!kv) return true;
    if (kv->kind != GGUF_BOOL) return fail_kind(f, kv, key, "bool", e);
    *out = gguf_array_int(kv, 0) != 0;
    return true;
}

bool gguf_get_str(const struct gguf_file *f, const char *key, struct gguf_str *out,
                  struct base_error *e)
{
    const struct gguf_kv *kv = gguf_kv_find(f, key);
    if (!kv) return true;
    if (kv->kind != GGUF_STRING) return fail_kind(f, kv, key, "a string", e);
    *out = (struct gguf_str){.data = kv->data, .size = kv->size};
    return true;
}

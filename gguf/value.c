/* gguf/value.c: the items of a metadata value as C types. See gguf.h; get.c has the typed reads of
 * keys. */
#include "gguf/gguf.h"

#include "gguf/bytes.h"
#include "gguf/part.h"

bool gguf_is_integers(const struct gguf_kv *kv)
{
    return kv && kv->kind == GGUF_ARRAY &&
           (gguf_kind_is_integer(kv->item) || kv->item == GGUF_BOOL);
}

int64_t gguf_array_int(const struct gguf_kv *kv, uint64_t index)
{
    if (index >= kv->count) return 0;
    const unsigned char *at = (const unsigned char *)kv->data + index * gguf_kind_size(kv->item);
    switch (kv->item) {
    case GGUF_U8:
    case GGUF_BOOL:
        return at[0];
    case GGUF_I8:
        return (int8_t)at[0];
    case GGUF_U16:
        return gguf_load_u16(at);
    case GGUF_I16:
        return (int16_t)gguf_load_u16(at);
    case GGUF_U32:
        return gguf_load_u32(at);
    case GGUF_I32:
        return (int32_t)gguf_load_u32(at);
    case GGUF_I64:
        return (int64_t)gguf_load_u64(at);
    case GGUF_U64: {
        uint64_t value = gguf_load_u64(at);
        return value > INT64_MAX ? INT64_MAX : (int64_t)value;
    }
    default:
        return 0; /* floats, strings: the caller has checked kv->item */
    }
}

double gguf_array_num(const struct gguf_kv *kv, uint64_t index)
{
    if (index >= kv->count) return 0;
    const unsigned char *at = (const unsigned char *)kv->data + index * gguf_kind_size(kv->item);
    switch (kv->item) {
    case GGUF_F32:
        return gguf_load_f32(at);
    case GGUF_F64:
        return gguf_load_f64(at);
    case GGUF_U64: /* the largest values do not fit int64_t */
        return (double)gguf_load_u64(at);
    default:
        return (double)gguf_array_int(kv, index);
    }
}

bool gguf_kv_equal(const struct gguf_kv *a, const struct gguf_kv *b)
{
    return a->kind == b->kind && a->item == b->item && a->count == b->count && a->size == b->size &&
           (a->size == 0 || memcmp(a->data, b->data, a->size) == 0);
}

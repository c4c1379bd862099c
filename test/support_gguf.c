/* test/support_gguf.c: see test/support_gguf.h. */
#include "test/support_gguf.h"

#include <string.h>

/* The tests run where the library runs: on little-endian machines. */
static void put(struct forge *f, const void *bytes, size_t size)
{
    base_buffer_add(&f->bytes, bytes, size);
}

void forge_begin(struct forge *f)
{
    *f = (struct forge){.bytes = BASE_BUFFER_INIT, .mark = -1};
}

void forge_free(struct forge *f)
{
    base_buffer_free(&f->bytes);
}

void forge_mark(struct forge *f)
{
    f->mark = (int64_t)f->bytes.size;
}

void forge_u8(struct forge *f, uint8_t value)
{
    put(f, &value, sizeof value);
}

void forge_u16(struct forge *f, uint16_t value)
{
    put(f, &value, sizeof value);
}

void forge_u32(struct forge *f, uint32_t value)
{
    put(f, &value, sizeof value);
}

void forge_u64(struct forge *f, uint64_t value)
{
    put(f, &value, sizeof value);
}

void forge_f32(struct forge *f, float value)
{
    put(f, &value, sizeof value);
}

void forge_f64(struct forge *f, double value)
{
    put(f, &value, sizeof value);
}

void forge_str(struct forge *f, const char *text)
{
    forge_u64(f, strlen(text));
    put(f, text, strlen(text));
}

void forge_head(struct forge *f, uint32_t version, uint64_t n_tensors, uint64_t n_kv)
{
    put(f, "GGUF", 4);
    forge_u32(f, version);
    forge_u64(f, n_tensors);
    forge_u64(f, n_kv);
}

void forge_key(struct forge *f, const char *key, uint32_t kind)
{
    forge_str(f, key);
    forge_u32(f, kind);
}

void forge_array(struct forge *f, const char *key, uint32_t item, uint64_t count)
{
    forge_key(f, key, GGUF_ARRAY);
    forge_u32(f, item);
    forge_u64(f, count);
}

void forge_tensor(struct forge *f, const char *name, uint32_t n_dims, uint64_t ne0, uint64_t ne1,
                  uint32_t type, uint64_t offset)
{
    forge_str(f, name);
    forge_u32(f, n_dims);
    if (n_dims > 0) forge_u64(f, ne0);
    if (n_dims > 1) forge_u64(f, ne1);
    for (uint32_t i = 2; i < n_dims && i < GGUF_MAX_DIMS; i++) forge_u64(f, 1);
    forge_u32(f, type);
    forge_u64(f, offset);
}

void forge_zeros(struct forge *f, uint64_t count)
{
    for (uint64_t i = 0; i < count; i++) forge_u8(f, 0);
}

void forge_pad(struct forge *f, uint64_t alignment)
{
    while (f->bytes.size % alignment) forge_u8(f, 0);
}

static void forge_scalars(struct forge *f)
{
    forge_key(f, "u8", GGUF_U8);
    forge_u8(f, 200);
    forge_key(f, "i8", GGUF_I8);
    forge_u8(f, (uint8_t)-100);
    forge_key(f, "u16", GGUF_U16);
    forge_u16(f, 60000);
    forge_key(f, "i16", GGUF_I16);
    forge_u16(f, (uint16_t)-30000);
    forge_key(f, "u32", GGUF_U32);
    forge_u32(f, 4000000000u);
    forge_key(f, "i32", GGUF_I32);
    forge_u32(f, (uint32_t)-2000000000);
    forge_key(f, "f32", GGUF_F32);
    forge_f32(f, 0.1f);
    forge_key(f, "bool", GGUF_BOOL);
    forge_u8(f, 1);
    forge_key(f, "string", GGUF_STRING);
    forge_str(f, "h\xc3\xa9llo");
    forge_key(f, "u64", GGUF_U64);
    forge_u64(f, UINT64_MAX);
    forge_key(f, "i64", GGUF_I64);
    forge_u64(f, (uint64_t)INT64_MIN);
    forge_key(f, "f64", GGUF_F64);
    forge_f64(f, -2.5e300);
}

static void forge_arrays(struct forge *f)
{
    forge_array(f, "u8s", GGUF_U8, 3);
    for (int i = 0; i < 3; i++) forge_u8(f, (uint8_t)(255 - i));
    forge_array(f, "i8s", GGUF_I8, 2);
    for (int i = 0; i < 2; i++) forge_u8(f, (uint8_t)(-1 - i));
    forge_array(f, "u16s", GGUF_U16, 2);
    for (int i = 0; i < 2; i++) forge_u16(f, (uint16_t)(65535 - i));
    forge_array(f, "i16s", GGUF_I16, 2);
    for (int i = 0; i < 2; i++) forge_u16(f, (uint16_t)(-1 - i));
    forge_array(f, "u32s", GGUF_U32, 2);
    for (int i = 0; i < 2; i++) forge_u32(f, UINT32_MAX - (uint32_t)i);
    forge_array(f, "i32s", GGUF_I32, 2);
    for (int i = 0; i < 2; i++) forge_u32(f, (uint32_t)(-1 - i));
    forge_array(f, "f32s", GGUF_F32, 2);
    for (int i = 0; i < 2; i++) forge_f32(f, 0.5f + (float)i);
    forge_array(f, "bools", GGUF_BOOL, 2);
    for (int i = 0; i < 2; i++) forge_u8(f, (uint8_t)i);
    forge_array(f, "strings", GGUF_STRING, 3);
    forge_str(f, "one");
    forge_str(f, "");
    forge_str(f, "three");
    forge_array(f, "u64s", GGUF_U64, 2);
    for (int i = 0; i < 2; i++) forge_u64(f, UINT64_MAX - (uint64_t)i);
    forge_array(f, "i64s", GGUF_I64, 2);
    for (int i = 0; i < 2; i++) forge_u64(f, (uint64_t)(-1 - i));
    forge_array(f, "f64s", GGUF_F64, 2);
    for (int i = 0; i < 2; i++) forge_f64(f, 0.25 + i);
    forge_array(f, "no strings", GGUF_STRING, 0);
    forge_array(f, "no numbers", GGUF_F32, 0);
}

void forge_everything(struct forge *f, uint32_t version)
{
    forge_head(f, version, 2, 12 + 14);
    forge_scalars(f);
    forge_arrays(f);
    forge_tensor(f, "a", 1, 4, 0, QUANT_F32, 0);
    forge_tensor(f, "b", 2, 32, 2, QUANT_Q8_0, 32);
    forge_pad(f, 32);
    for (int i = 0; i < 4; i++) forge_f32(f, 1.5f * (float)i);
    forge_pad(f, 32);
    for (int i = 0; i < 2 * 34; i++) forge_u8(f, (uint8_t)i);
    forge_pad(f, 32);
}

static uint64_t touch_bytes(const void *data, uint64_t size)
{
    const unsigned char *bytes = data;
    return size ? bytes[0] + bytes[size - 1] : 0;
}

static uint64_t touch_kv(const struct gguf_file *file, const struct gguf_kv *kv)
{
    uint64_t sum = touch_bytes(kv->key.data, kv->key.size) + touch_bytes(kv->data, kv->size);
    for (uint64_t i = 0; i < kv->count; i++) {
        if (kv->item == GGUF_STRING && kv->kind == GGUF_ARRAY) {
            struct gguf_str s = gguf_array_str(file, kv, i);
            sum += touch_bytes(s.data, s.size);
        } else if (kv->item != GGUF_STRING) {
            sum += (uint64_t)gguf_array_int(kv, i);
            sum += gguf_array_num(kv, i) > 0;
        }
    }
    return sum;
}

uint64_t gguf_touch(const struct gguf_file *file)
{
    uint64_t sum = gguf_version(file) + gguf_alignment(file) + gguf_size(file);
    for (uint64_t i = 0; i < gguf_kv_count(file); i++) {
        sum += touch_kv(file, gguf_kv_at(file, i));
    }
    for (uint64_t i = 0; i < gguf_tensor_count(file); i++) {
        const struct gguf_tensor *t = gguf_tensor_at(file, i);
        sum += touch_bytes(t->name.data, t->name.size) + touch_bytes(t->data, t->size);
        sum += t->type->block_bytes;
    }
    return sum;
}

static void write_number(struct gguf_writer *w, const char *key, enum gguf_kind kind,
                         const void *at, uint64_t size)
{
    const struct gguf_str name = {key, strlen(key)};
    gguf_writer_copy_kv(w, &(struct gguf_kv){.key = name, .kind = kind, .data = at, .size = size});
}

void gguf_writer_u64(struct gguf_writer *w, const char *key, uint64_t value)
{
    write_number(w, key, GGUF_U64, &value, sizeof value);
}

void gguf_writer_i32(struct gguf_writer *w, const char *key, int32_t value)
{
    write_number(w, key, GGUF_I32, &value, sizeof value);
}

void gguf_writer_f32(struct gguf_writer *w, const char *key, float value)
{
    write_number(w, key, GGUF_F32, &value, sizeof value);
}

void gguf_writer_bool(struct gguf_writer *w, const char *key, bool value)
{
    write_number(w, key, GGUF_BOOL, &(uint8_t){value}, 1);
}

void gguf_writer_array(struct gguf_writer *w, const char *key, enum gguf_kind item,
                       const void *items, uint64_t count)
{
    gguf_writer_copy_kv(w, &(struct gguf_kv){.key = {key, strlen(key)},
                                             .kind = GGUF_ARRAY,
                                             .item = item,
                                             .count = count,
                                             .data = items,
                                             .size = count * gguf_kind_size(item)});
}

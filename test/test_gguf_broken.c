/* test/test_gguf_broken.c: named broken GGUF files, each with its expected error. The list follows
 * the published security history of GGUF readers and the cases of their test suites. */
#include "test/support.h"
#include "test/support_gguf.h"

#include <stdlib.h>
#include <string.h>

/* One broken file. `make` builds it from up to two numbers and marks the byte that the error must
 * name, if any. */
struct broken {
    const char *name;
    void (*make)(struct forge *f, uint64_t a, uint64_t b);
    uint64_t a, b;
    const char *item; /* exactly */
    const char *text; /* a part of it */
};

/* ---- Header ---- */

static void make_bytes(struct forge *f, uint64_t first, uint64_t size)
{
    forge_mark(f);
    for (uint64_t i = 0; i < size; i++) forge_u8(f, i < 8 ? (uint8_t)(first >> 8 * i) : ' ');
}

static void make_version(struct forge *f, uint64_t version, uint64_t unused)
{
    (void)unused;
    forge_head(f, (uint32_t)version, 0, 0);
    f->mark = 4;
}

static void make_cut_header(struct forge *f, uint64_t size, uint64_t unused)
{
    (void)unused;
    forge_head(f, 3, 0, 0);
    f->bytes.size = size;
    forge_mark(f);
}

static void make_n_tensors(struct forge *f, uint64_t count, uint64_t unused)
{
    (void)unused;
    forge_head(f, 3, count, 0);
    forge_zeros(f, 64);
    f->mark = 8;
}

static void make_n_kv(struct forge *f, uint64_t count, uint64_t unused)
{
    (void)unused;
    forge_head(f, 3, 0, count);
    forge_zeros(f, 64);
    f->mark = 16;
}

/* One entry more than exists is declared, with enough remaining bytes for it. */
static void make_n_kv_plus_one(struct forge *f, uint64_t a, uint64_t b)
{
    (void)a, (void)b;
    forge_head(f, 3, 0, 2);
    forge_key(f, "general.description", GGUF_STRING);
    forge_str(f, "long enough");
    forge_mark(f);
}

/* ---- Metadata ---- */

static void make_key_length(struct forge *f, uint64_t length, uint64_t unused)
{
    (void)unused;
    forge_head(f, 3, 0, 1);
    forge_u64(f, length);
    forge_mark(f);
    forge_zeros(f, 16);
}

static void make_empty_key(struct forge *f, uint64_t a, uint64_t b)
{
    (void)a, (void)b;
    forge_head(f, 3, 0, 1);
    forge_mark(f);
    forge_key(f, "", GGUF_U32);
    forge_u32(f, 1);
    forge_zeros(f, 8);
}

static void make_long_key(struct forge *f, uint64_t size, uint64_t unused)
{
    (void)unused;
    forge_head(f, 3, 0, 1);
    forge_mark(f);
    forge_u64(f, size);
    forge_zeros(f, size);
    forge_u32(f, GGUF_U8);
    forge_u8(f, 1);
}

static void make_duplicate_key(struct forge *f, uint64_t a, uint64_t b)
{
    (void)a, (void)b;
    forge_head(f, 3, 0, 3);
    forge_key(f, "k", GGUF_U8);
    forge_u8(f, 1);
    forge_key(f, "other", GGUF_U8);
    forge_u8(f, 1);
    forge_mark(f);
    forge_key(f, "k", GGUF_U32);
    forge_u32(f, 1);
}

static void make_kind(struct forge *f, uint64_t kind, uint64_t unused)
{
    (void)unused;
    forge_head(f, 3, 0, 1);
    forge_str(f, "k");
    forge_mark(f);
    forge_u32(f, (uint32_t)kind);
    forge_zeros(f, 32);
}

static void make_bool(struct forge *f, uint64_t value, uint64_t unused)
{
    (void)unused;
    forge_head(f, 3, 0, 1);
    forge_key(f, "k", GGUF_BOOL);
    forge_mark(f);
    forge_u8(f, (uint8_t)value);
}

static void make_bool_array(struct forge *f, uint64_t value, uint64_t unused)
{
    (void)unused;
    forge_head(f, 3, 0, 1);
    forge_array(f, "k", GGUF_BOOL, 2);
    forge_u8(f, 1);
    forge_mark(f);
    forge_u8(f, (uint8_t)value);
}

static void make_string_length(struct forge *f, uint64_t length, uint64_t unused)
{
    (void)unused;
    forge_head(f, 3, 0, 1);
    forge_key(f, "k", GGUF_STRING);
    forge_u64(f, length);
    forge_mark(f);
    forge_zeros(f, 16);
}

static void make_array_item(struct forge *f, uint64_t item, uint64_t unused)
{
    (void)unused;
    forge_head(f, 3, 0, 1);
    forge_key(f, "k", GGUF_ARRAY);
    forge_mark(f);
    forge_u32(f, (uint32_t)item);
    forge_u64(f, 1);
    forge_zeros(f, 32);
}

/* `depth` nested arrays of one item each; `count` bytes in the innermost. */
static void make_nested(struct forge *f, uint64_t depth, uint64_t count)
{
    forge_head(f, 3, 0, 1);
    forge_key(f, "k", GGUF_ARRAY);
    for (uint64_t i = 1; i < depth; i++) {
        forge_u32(f, GGUF_ARRAY);
        forge_u64(f, 1);
    }
    if (depth > 8) forge_mark(f);
    forge_u32(f, GGUF_U8);
    if (depth <= 8) forge_mark(f);
    forge_u64(f, count);
    forge_zeros(f, 32);
}

static void make_array_count(struct forge *f, uint64_t item, uint64_t count)
{
    forge_head(f, 3, 0, 1);
    forge_key(f, "k", GGUF_ARRAY);
    forge_u32(f, (uint32_t)item);
    forge_mark(f);
    forge_u64(f, count);
    forge_zeros(f, 32);
}

static void make_string_in_array(struct forge *f, uint64_t length, uint64_t unused)
{
    (void)unused;
    forge_head(f, 3, 0, 1);
    forge_array(f, "k", GGUF_STRING, 3);
    forge_str(f, "good");
    forge_u64(f, length);
    forge_mark(f);
    forge_zeros(f, 16);
}

/* ---- Alignment ---- */

static void make_alignment(struct forge *f, uint64_t value, uint64_t unused)
{
    (void)unused;
    forge_head(f, 3, 0, 1);
    forge_mark(f);
    forge_key(f, "general.alignment", GGUF_U32);
    forge_u32(f, (uint32_t)value);
}

static void make_alignment_kind(struct forge *f, uint64_t kind, uint64_t unused)
{
    (void)unused;
    forge_head(f, 3, 0, 1);
    forge_mark(f);
    forge_key(f, "general.alignment", (uint32_t)kind);
    forge_u64(f, kind == GGUF_STRING ? 0 : 32);
}

/* Data is aligned to 32 in a file that declares 64. */
static void make_alignment_mismatch(struct forge *f, uint64_t a, uint64_t b)
{
    (void)a, (void)b;
    forge_head(f, 3, 2, 1);
    forge_key(f, "general.alignment", GGUF_U32);
    forge_u32(f, 64);
    forge_tensor(f, "a", 1, 8, 0, QUANT_F32, 0);
    forge_tensor(f, "b", 1, 8, 0, QUANT_F32, 32);
    f->mark = (int64_t)f->bytes.size - 8;
    forge_zeros(f, 256);
}

/* ---- Tensor directory ---- */

static void make_name_length(struct forge *f, uint64_t length, uint64_t unused)
{
    (void)unused;
    forge_head(f, 3, 1, 0);
    forge_u64(f, length);
    forge_mark(f);
    forge_zeros(f, 64);
}

static void make_name(struct forge *f, uint64_t length, uint64_t unused)
{
    char name[128] = "";
    (void)unused;
    memset(name, 'n', length);
    forge_head(f, 3, 1, 0);
    forge_mark(f);
    forge_tensor(f, name, 1, 8, 0, QUANT_F32, 0);
    forge_zeros(f, 256);
}

static void make_n_dims(struct forge *f, uint64_t n_dims, uint64_t unused)
{
    (void)unused;
    forge_head(f, 3, 1, 0);
    forge_str(f, "t");
    forge_mark(f);
    forge_u32(f, (uint32_t)n_dims);
    forge_zeros(f, 256);
}

/* A shape whose second dimension is invalid. */
static void make_shape(struct forge *f, uint64_t ne0, uint64_t ne1)
{
    forge_head(f, 3, 1, 0);
    forge_tensor(f, "t", 2, ne0, ne1, QUANT_F32, 0);
    f->mark = (int64_t)f->bytes.size - 8 - 4 - 8;
    forge_zeros(f, 256);
}

static void make_first_dim(struct forge *f, uint64_t ne0, uint64_t type)
{
    forge_head(f, 3, 1, 0);
    forge_tensor(f, "t", 1, ne0, 0, (uint32_t)type, 0);
    f->mark = (int64_t)f->bytes.size - 8 - 4 - 8;
    forge_zeros(f, 256);
}

/* A valid shape with a type that it does not fit. */
static void make_type(struct forge *f, uint64_t ne0, uint64_t type)
{
    forge_head(f, 3, 1, 0);
    forge_tensor(f, "t", 1, ne0, 0, (uint32_t)type, 0);
    f->mark = (int64_t)f->bytes.size - 8 - 4;
    forge_zeros(f, 256);
}

static void make_offset(struct forge *f, uint64_t offset, uint64_t unused)
{
    (void)unused;
    forge_head(f, 3, 1, 0);
    forge_tensor(f, "t", 1, 8, 0, QUANT_F32, offset);
    f->mark = (int64_t)f->bytes.size - 8;
    forge_zeros(f, 256);
}

static void make_duplicate_tensor(struct forge *f, uint64_t a, uint64_t b)
{
    (void)a, (void)b;
    forge_head(f, 3, 2, 0);
    forge_tensor(f, "t", 1, 8, 0, QUANT_F32, 0);
    forge_tensor(f, "t", 1, 8, 0, QUANT_F32, 32);
    forge_pad(f, 32);
    forge_zeros(f, 32);
    forge_mark(f);
    forge_zeros(f, 32);
}

/* ---- Data ---- */

/* `a` bytes of data for a tensor of 32 bytes at offset `b`. */
static void make_data(struct forge *f, uint64_t size, uint64_t offset)
{
    forge_head(f, 3, 1, 0);
    forge_tensor(f, "t", 1, 8, 0, QUANT_F32, offset);
    forge_pad(f, 32);
    forge_zeros(f, size);
    forge_mark(f);
}

/* A tensor of `ne0` bytes at `offset`, in a file with 64 bytes of data. */
static void make_extent(struct forge *f, uint64_t ne0, uint64_t offset)
{
    forge_head(f, 3, 1, 0);
    forge_tensor(f, "t", 1, ne0, 0, QUANT_I8, offset);
    forge_pad(f, 32);
    forge_zeros(f, 64);
    forge_mark(f);
}

static void make_two_huge(struct forge *f, uint64_t ne0, uint64_t offset)
{
    forge_head(f, 3, 2, 0);
    forge_tensor(f, "t", 1, ne0, 0, QUANT_I8, 0);
    forge_tensor(f, "u", 1, ne0, 0, QUANT_I8, offset);
    forge_pad(f, 32);
    forge_zeros(f, 64);
    forge_mark(f);
}

/* Tensors of 40 bytes at 0 and at `offset`, with `swap` in the other order. */
static void make_overlap(struct forge *f, uint64_t offset, uint64_t swap)
{
    forge_head(f, 3, 2, 0);
    forge_tensor(f, swap ? "u" : "t", 1, 10, 0, QUANT_F32, swap ? offset : 0);
    forge_tensor(f, swap ? "t" : "u", 1, 10, 0, QUANT_F32, swap ? 0 : offset);
    forge_pad(f, 32);
    forge_zeros(f, offset);
    forge_mark(f);
    forge_zeros(f, 128);
}

/* The directory ends where the file ends, in the middle of the padding. */
static void make_no_data(struct forge *f, uint64_t a, uint64_t b)
{
    (void)a, (void)b;
    forge_head(f, 3, 1, 0);
    forge_tensor(f, "t", 1, 8, 0, QUANT_F32, 0);
    forge_mark(f);
}

/* A file not named as a part, but declared as one part of three. */
static void make_lone_part(struct forge *f, uint64_t count, uint64_t unused)
{
    (void)unused;
    forge_head(f, 3, 0, 1);
    forge_key(f, "split.count", GGUF_U16);
    forge_u16(f, (uint16_t)count);
}

static void make_split_kind(struct forge *f, uint64_t kind, uint64_t unused)
{
    (void)unused;
    forge_head(f, 3, 0, 1);
    forge_mark(f);
    forge_key(f, "split.count", (uint32_t)kind);
    forge_u64(f, 0);
}

static void make_powerinfer(struct forge *f, uint64_t zeros, uint64_t unused)
{
    (void)unused;
    forge_u32(f, 0x49525750);
    forge_mark(f);
    forge_zeros(f, zeros);
}

static void make_split_tensors(struct forge *f, uint64_t count, uint64_t unused)
{
    (void)unused;
    forge_head(f, 3, 0, 1);
    forge_key(f, "split.tensors.count", GGUF_I32);
    forge_u32(f, (uint32_t)count);
}

#define P63 (UINT64_C(1) << 63)
#define P60 (UINT64_C(1) << 60)
#define U64 UINT64_MAX
#define I64 ((uint64_t)INT64_MAX)
#define CUT "damaged or truncated"

static const struct broken table[] = {
    {"empty file", make_bytes, 0, 0, "", "the file is empty"},
    {"one byte", make_bytes, 'X', 1, "", "not a GGUF file"},
    {"bad magic", make_bytes, 0x58554747, 64, "", "not a GGUF file"},
    {"zeros", make_bytes, 0, 64, "", "not a GGUF file"},
    {"PowerInfer, cut after magic", make_powerinfer, 0, 0, "", "too short"},
    {"PowerInfer, zeros", make_powerinfer, 60, 0, "", "version 0"},
    {"web page", make_bytes, 0x5954434f44213cull, 64, "", "web page"},
    {"web page, short", make_bytes, 0x3e6c6d74683cull, 6, "", "web page"},
    {"zip archive", make_bytes, 0x04034b50, 64, "", "zip archive"},
    {"gzip", make_bytes, 0x00088b1f, 64, "", "gzip"},
    {"old GGJT", make_bytes, 0x67676a74, 64, "", "GGJT"},
    {"old GGMF", make_bytes, 0x67676d66, 64, "", "GGMF"},
    {"old GGML", make_bytes, 0x67676d6c, 64, "", "GGML"},
    {"big-endian magic", make_bytes, 0x47475546, 64, "", "big-endian"},
    {"header cut after magic", make_cut_header, 4, 0, "", "too short"},
    {"header cut in version", make_cut_header, 7, 0, "", "too short"},
    {"header cut in counts", make_cut_header, 23, 0, "", "too short"},
    {"version 0", make_version, 0, 0, "", "version 0 is not supported"},
    {"version 1", make_version, 1, 0, "", "version 1 is not supported"},
    {"version 4", make_version, 4, 0, "", "version 4 is not supported"},
    {"version 2^32-1", make_version, UINT32_MAX, 0, "", "is not supported"},
    {"big-endian version 2", make_version, 0x02000000, 0, "", "big-endian (version 2)"},
    {"big-endian version 3", make_version, 0x03000000, 0, "", "big-endian (version 3)"},

    {"n_tensors 2^64-1", make_n_tensors, U64, 0, "", "number of tensors"},
    {"n_tensors 2^63", make_n_tensors, P63, 0, "", "number of tensors"},
    {"n_tensors 2^60", make_n_tensors, P60, 0, "", "number of tensors"},
    {"n_tensors wraps the overhead", make_n_tensors, U64 / sizeof(struct gguf_tensor), 0, "",
     "number of tensors"},
    {"n_tensors wraps to little", make_n_tensors, U64 / sizeof(struct gguf_tensor) + 1, 0, "",
     "number of tensors"},
    {"n_tensors wraps other overheads", make_n_tensors, U64 / 368 + 1, 0, "", "number of tensors"},
    {"n_tensors 3 in 72 bytes", make_n_tensors, 3, 0, "", "number of tensors"},
    {"n_kv 2^64-1", make_n_kv, U64, 0, "", "number of metadata"},
    {"n_kv 2^63", make_n_kv, P63, 0, "", "number of metadata"},
    {"n_kv 2^60", make_n_kv, P60, 0, "", "number of metadata"},
    {"n_kv 5 in 64 bytes", make_n_kv, 5, 0, "", "number of metadata"},
    {"n_kv one too many", make_n_kv_plus_one, 0, 0, "", "a metadata key takes"},

    {"key length 2^64-1", make_key_length, U64, 0, "", CUT},
    {"key length 2^63", make_key_length, P63, 0, "", CUT},
    {"key length 2^60", make_key_length, P60, 0, "", CUT},
    {"key length one too many", make_key_length, 17, 0, "", CUT},
    {"empty key", make_empty_key, 0, 0, "", "empty metadata key"},
    {"key of 65536 bytes", make_long_key, 65536, 0,
     "?????????????????????????????????????????????????????????????????????????????????????????????"
     "??",
     "longer than 65535"},
    {"duplicate key", make_duplicate_key, 0, 0, "k", "twice"},
    {"value type 13", make_kind, 13, 0, "k", "unknown metadata value type 13"},
    {"value type 255", make_kind, 255, 0, "k", "unknown metadata value type 255"},
    {"value type 2^32-1", make_kind, UINT32_MAX, 0, "k", "unknown metadata value type"},
    {"bool 2", make_bool, 2, 0, "k", "must be 0 or 1, not 2"},
    {"bool 255", make_bool, 255, 0, "k", "must be 0 or 1"},
    {"bool array item 128", make_bool_array, 128, 0, "k", "must be 0 or 1"},
    {"string length 2^64-1", make_string_length, U64, 0, "k", CUT},
    {"string length 2^64-8", make_string_length, U64 - 7, 0, "k", CUT},
    {"string length 2^63", make_string_length, P63, 0, "k", CUT},
    {"string length 2^60", make_string_length, P60, 0, "k", CUT},
    {"string length one too many", make_string_length, 17, 0, "k", CUT},
    {"arrays 9 deep", make_nested, 9, 1, "k", "arrays too deep"},
    {"inner array of 2^64-1", make_nested, 3, U64, "k", CUT},
    {"inner array one too many", make_nested, 3, 33, "k", CUT},
    {"array item type 13", make_array_item, 13, 0, "k", "unknown array item type 13"},
    {"array item type 255", make_array_item, 255, 0, "k", "unknown array item type 255"},
    {"u8 array of 2^64-1", make_array_count, GGUF_U8, U64, "k", CUT},
    {"u64 array of 2^61", make_array_count, GGUF_U64, P60 * 2, "k", CUT},
    {"f32 array of 2^62", make_array_count, GGUF_F32, P60 * 4, "k", CUT},
    {"u32 array of 2^63", make_array_count, GGUF_U32, P63, "k", CUT},
    {"i16 array one too many", make_array_count, GGUF_I16, 17, "k", CUT},
    {"string array of 2^64-1", make_array_count, GGUF_STRING, U64, "k", CUT},
    {"string array of 2^60", make_array_count, GGUF_STRING, P60, "k", CUT},
    {"string array one too many", make_array_count, GGUF_STRING, 5, "k", CUT},
    {"string in array 2^64-1", make_string_in_array, U64, 0, "k", CUT},
    {"string in array one too many", make_string_in_array, 17, 0, "k", CUT},
    {"string in array takes all", make_string_in_array, 16, 0, "k", NULL},

    {"alignment 0", make_alignment, 0, 0, "general.alignment", "power of two"},
    {"alignment 1", make_alignment, 1, 0, "general.alignment", "power of two"},
    {"alignment 3", make_alignment, 3, 0, "general.alignment", "power of two"},
    {"alignment 24", make_alignment, 24, 0, "general.alignment", "power of two"},
    {"alignment 2^31", make_alignment, P63 >> 32, 0, "general.alignment", "power of two"},
    {"alignment 2^32-1", make_alignment, UINT32_MAX, 0, "general.alignment", "power of two"},
    {"alignment as u64", make_alignment_kind, GGUF_U64, 0, "general.alignment", "must be u32"},
    {"alignment as i32", make_alignment_kind, GGUF_I32, 0, "general.alignment", "must be u32"},
    {"alignment as string", make_alignment_kind, GGUF_STRING, 0, "general.alignment",
     "must be u32, not string"},
    {"alignment inconsistent", make_alignment_mismatch, 0, 0, "b", "multiple of the alignment 64"},

    {"name length 2^64-1", make_name_length, U64, 0, "", CUT},
    {"name length 2^63", make_name_length, P63, 0, "", CUT},
    {"name length one too many", make_name_length, 65, 0, "", CUT},
    {"empty tensor name", make_name, 0, 0, "", "empty tensor name"},
    {"tensor name of 65 bytes", make_name, 65, 0,
     "nnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnn", "longer than 64"},
    {"0 dimensions", make_n_dims, 0, 0, "t", "0 dimensions"},
    {"5 dimensions", make_n_dims, 5, 0, "t", "5 dimensions"},
    {"2^32-1 dimensions", make_n_dims, UINT32_MAX, 0, "t", "dimensions"},
    {"zero first dimension", make_first_dim, 0, QUANT_F32, "t", "dimension 0 is zero"},
    {"zero first dimension, blocks", make_first_dim, 0, QUANT_Q4_0, "t", "dimension 0 is zero"},
    {"zero second dimension", make_shape, 32, 0, "t", "dimension 1 is zero"},
    {"first dimension 2^63", make_first_dim, P63, QUANT_I8, "t", "overflows"},
    {"first dimension 2^64-1", make_first_dim, U64, QUANT_I8, "t", "overflows"},
    {"elements INT64_MAX * 2", make_shape, I64, 2, "t", "overflows"},
    {"elements 2^32 * 2^32", make_shape, P60 >> 28, P60 >> 28, "t", "overflows"},
    {"elements 2^63 by wrap", make_shape, P60 >> 28, P60 >> 29, "t", "overflows"},
    {"bytes overflow, elements fit", make_type, P60 * 4, QUANT_F32, "t", "bytes overflows"},
    {"bytes overflow, f64", make_type, P60 * 2, QUANT_F64, "t", "bytes overflows"},
    {"row of half a block, Q4_0", make_type, 16, QUANT_Q4_0, "t", "not whole blocks of 32"},
    {"row of 31, Q8_0", make_type, 31, QUANT_Q8_0, "t", "not whole blocks of 32"},
    {"row of 33, Q4_1", make_type, 33, QUANT_Q4_1, "t", "not whole blocks of 32"},
    {"row of 255, Q4_K", make_type, 255, QUANT_Q4_K, "t", "not whole blocks of 256"},
    {"row of 257, Q6_K", make_type, 257, QUANT_Q6_K, "t", "not whole blocks of 256"},
    {"row of 32, IQ4_XS", make_type, 32, QUANT_IQ4_XS, "t", "not whole blocks of 256"},
    {"retired type 4", make_type, 256, 4, "t", "tensor type 4 (Q4_2) is retired"},
    {"retired type 5", make_type, 256, 5, "t", "tensor type 5 (Q4_3) is retired"},
    {"retired type 31", make_type, 256, 31, "t", "tensor type 31 (Q4_0_4_4) is retired"},
    {"retired type 32", make_type, 256, 32, "t", "tensor type 32 (Q4_0_4_8) is retired"},
    {"retired type 33", make_type, 256, 33, "t", "tensor type 33 (Q4_0_8_8) is retired"},
    {"retired type 36", make_type, 256, 36, "t",
     "tensor type 36 (IQ4_NL_4_4, or I2_S of BitNet) is retired"},
    {"retired type 37", make_type, 256, 37, "t", "tensor type 37 (IQ4_NL_4_8) is retired"},
    {"retired type 38", make_type, 256, 38, "t", "tensor type 38 (IQ4_NL_8_8) is retired"},
    {"unknown type 43", make_type, 256, 43, "t", "tensor type 43"},
    {"unknown type 255", make_type, 256, 255, "t", "tensor type 255"},
    {"unknown type 2^31", make_type, 256, P63 >> 32, "t", "tensor type 2147483648"},
    {"unknown type 2^32-1", make_type, 256, UINT32_MAX, "t", "tensor type 4294967295"},
    {"offset 1", make_offset, 1, 0, "t", "multiple of the alignment 32"},
    {"offset 16", make_offset, 16, 0, "t", "multiple of the alignment 32"},
    {"offset 2^64-1", make_offset, U64, 0, "t", "multiple of the alignment 32"},
    {"duplicate tensor", make_duplicate_tensor, 0, 0, "t", "two tensors have this name"},

    {"no data at all", make_no_data, 0, 0, "t", "end beyond the file"},
    {"data one byte short", make_data, 31, 0, "t", "end beyond the file"},
    {"data at the end of the file", make_data, 64, 64, "t", "end beyond the file"},
    {"offset past the end", make_data, 64, 96, "t", "end beyond the file"},
    {"offset 2^63", make_data, 64, P63, "t", "end beyond the file"},
    {"offset 2^64-32 wraps", make_data, 64, U64 - 31, "t", "end beyond the file"},
    {"offset + start wraps to data", make_data, 64, U64 - 63, "t", "end beyond the file"},
    {"size INT64_MAX", make_extent, I64, 0, "t", "end beyond the file"},
    {"size INT64_MAX - 3, padding", make_extent, I64 - 3, 0, "t", "end beyond the file"},
    {"size + offset wraps", make_extent, I64, P63 + 32, "t", "end beyond the file"},
    {"two sizes past 2^64", make_two_huge, I64, P63, "t", "end beyond the file"},
    {"two sizes with padding past 2^64", make_two_huge, I64 - 30, P63, "t", "end beyond the file"},
    {"same data twice", make_overlap, 0, 0, "u", "overlaps that of t"},
    {"overlap by 8 bytes", make_overlap, 32, 0, "u", "overlaps that of t"},
    {"overlap by 8 bytes, other order", make_overlap, 32, 1, "u", "overlaps that of t"},

    {"one of three parts alone", make_lone_part, 3, 0, "split.count", "one of 3 parts"},
    {"split.count as string", make_split_kind, GGUF_STRING, 0, "split.count", "must be an integer"},
    {"split.count as f32", make_split_kind, GGUF_F32, 0, "split.count", "must be an integer"},
    {"split.tensors.count 1", make_split_tensors, 1, 0, "split.tensors.count", "tensors, not 1"},
    {"split.tensors.count -1", make_split_tensors, UINT32_MAX, 0, "split.tensors.count",
     "tensors, not -1"},
};

/* ---- The tests ---- */

/* An exactly sized copy, so that AddressSanitizer detects reads past the end. */
static struct gguf_file *open_copy(const void *bytes, size_t size, void **copy,
                                   struct base_error *err)
{
    *copy = malloc(size ? size : 1);
    assert_non_null(*copy);
    memcpy(*copy, bytes, size);
    return gguf_open_memory(*copy, size, "broken.gguf", err);
}

static bool check_one(const struct broken *b)
{
    struct forge f;
    struct base_error err = BASE_ERROR_INIT;
    void *copy;
    forge_begin(&f);
    base_buffer_add(&f.bytes, "", 0);
    b->make(&f, b->a, b->b);
    struct gguf_file *file = open_copy(f.bytes.size ? f.bytes.data : "", f.bytes.size, &copy, &err);
    bool good = !file && err.code == BASE_MODEL && strcmp(err.item, b->item) == 0 &&
                (!b->text || (strstr(err.text, b->text) && err.offset == f.mark)) &&
                strcmp(err.file, "broken.gguf") == 0;
    if (!good) {
        print_error("%s: %s code %d item '%s' offset %lld (wanted %lld) text '%s'\n", b->name,
                    file ? "opened;" : "refused;", err.code, err.item, (long long)err.offset,
                    (long long)f.mark, err.text);
    }
    gguf_close(file);
    file = gguf_open_memory(copy, f.bytes.size, "broken.gguf", NULL); /* no error object: fine */
    good = good && !file;
    gguf_close(file);
    free(copy);
    forge_free(&f);
    return good;
}

static void each_kind_of_damage_has_its_error(void **state)
{
    (void)state;
    int bad = 0;
    for (size_t i = 0; i < sizeof table / sizeof *table; i++) bad += !check_one(&table[i]);
    assert_int_equal(bad, 0);
}

/* A file truncated anywhere before the end of the last tensor's data is an error. */
static void a_file_cut_anywhere_is_refused(void **state)
{
    (void)state;
    struct forge f;
    void *copy;
    forge_begin(&f);
    forge_everything(&f, 3);
    struct gguf_file *file = open_copy(f.bytes.data, f.bytes.size, &copy, NULL);
    assert_non_null(file);
    const struct gguf_tensor *last = gguf_tensor_find(file, "b");
    assert_non_null(last);
    uint64_t end = last->offset + last->size;
    assert_true(end < f.bytes.size);
    gguf_close(file);
    free(copy);
    for (size_t size = 0; size <= f.bytes.size; size++) {
        struct base_error err = BASE_ERROR_INIT;
        file = open_copy(f.bytes.data, size, &copy, &err);
        assert_int_equal(file != NULL, size >= end);
        assert_int_equal(err.code, size >= end ? BASE_OK : BASE_MODEL);
        gguf_close(file);
        free(copy);
    }
    forge_free(&f);
}

/* With any single byte changed, the file is an error, or can be opened and read. */
static void a_file_with_a_changed_byte_is_refused_or_read(void **state)
{
    (void)state;
    static const unsigned char masks[] = {0x01, 0x02, 0x04, 0x80, 0xff};
    struct forge f;
    uint64_t sum = 0;
    unsigned refused = 0;
    forge_begin(&f);
    forge_everything(&f, 3);
    for (size_t i = 0; i < f.bytes.size * sizeof masks; i++) {
        struct base_error err = BASE_ERROR_INIT;
        void *copy;
        char *at = &f.bytes.data[i / sizeof masks];
        *at = (char)(*at ^ masks[i % sizeof masks]);
        struct gguf_file *file = open_copy(f.bytes.data, f.bytes.size, &copy, &err);
        assert_int_equal(file != NULL, err.code == BASE_OK);
        if (file) sum += gguf_touch(file);
        refused += !file;
        gguf_close(file);
        free(copy);
        *at = (char)(*at ^ masks[i % sizeof masks]);
    }
    assert_true(sum > 0 && refused > 1000);
    forge_free(&f);
}

/* Every id of a tensor type: known ones have their exact size; rows off by one are an error, and so
 * are too few rows where several are interleaved. */
static void every_type_id_has_its_size_or_is_refused(void **state)
{
    (void)state;
    enum { ROWS = 16 }; /* a multiple of every interleave */
    unsigned known = 0;
    for (uint32_t id = 0; id < QUANT_ID_COUNT + 10; id++) {
        const struct quant_type *type = quant_type_by_id(id);
        const uint64_t block = type ? type->block_len : 256;
        const uint64_t together = type && type->interleave ? type->interleave : 1;
        for (uint64_t ne0 = block - (block > 1); ne0 <= block + 2; ne0++) {
            const bool fewer = ne0 == block + 2; /* a row less, of whole blocks */
            const uint64_t len = fewer ? block : ne0, rows = fewer ? ROWS - 1 : ROWS;
            struct forge f;
            void *copy;
            forge_begin(&f);
            forge_head(&f, 3, 1, 0);
            forge_tensor(&f, "t", 2, len, rows, id, 0);
            forge_pad(&f, 32);
            forge_zeros(&f, 8192);
            struct gguf_file *file = open_copy(f.bytes.data, f.bytes.size, &copy, NULL);
            assert_int_equal(file != NULL, type && len % block == 0 && rows % together == 0);
            if (file) {
                const struct gguf_tensor *t = gguf_tensor_at(file, 0);
                assert_ptr_equal(t->type, type);
                const uint64_t row = len / type->block_len * type->block_bytes + type->header_bytes;
                assert_int_equal(t->size, row * rows);
            }
            gguf_close(file);
            free(copy);
            forge_free(&f);
        }
        known += type != NULL;
    }
    assert_int_equal(known, 84);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_kind_of_damage_has_its_error),
        cmocka_unit_test(a_file_cut_anywhere_is_refused),
        cmocka_unit_test(a_file_with_a_changed_byte_is_refused_or_read),
        cmocka_unit_test(every_type_id_has_its_size_or_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* gguf/part.c: parses one file: header, metadata, tensor directory. A count is checked against the
 * number of bytes left before anything is allocated for it, and arrays grow as entries are found.
 * Called by gguf/file.c. */
#include "gguf/part.h"

#include "base/interrupt.h"
#include "base/size.h"
#include "gguf/bytes.h"
#include "gguf/cursor.h"
#include <inttypes.h>
#include <stdlib.h>

enum {
    VERSION_OLDEST = 2,
    VERSION_NEWEST = 3,
    HEADER_SIZE = 4 + 4 + 8 + 8,             /* magic, version, tensor count, metadata count */
    ENTRY_MIN_SIZE = 8 + 1 + 4 + 1,          /* key length, key, kind, smallest value */
    TENSOR_MIN_SIZE = 8 + 1 + 4 + 8 + 4 + 8, /* name length, name, rank, dimension, type, offset */
    ARRAY_MAX_ITEMS = 1 << 30,
    ARRAY_MAX_DEPTH = 8,
    ARRAY_MAX_STRINGS = 1 << 26 /* each needs 8 bytes of memory for its start */
};

static const struct {
    const char *name;
    uint32_t size;
} kinds[GGUF_KIND_COUNT] = {
    [GGUF_U8] = {"u8", 1},       [GGUF_I8] = {"i8", 1},     [GGUF_U16] = {"u16", 2},
    [GGUF_I16] = {"i16", 2},     [GGUF_U32] = {"u32", 4},   [GGUF_I32] = {"i32", 4},
    [GGUF_F32] = {"f32", 4},     [GGUF_BOOL] = {"bool", 1}, [GGUF_STRING] = {"string", 0},
    [GGUF_ARRAY] = {"array", 0}, [GGUF_U64] = {"u64", 8},   [GGUF_I64] = {"i64", 8},
    [GGUF_F64] = {"f64", 8},
};

const char *gguf_kind_name(enum gguf_kind kind)
{
    return (uint32_t)kind < GGUF_KIND_COUNT ? kinds[kind].name : "unknown";
}

uint32_t gguf_kind_size(uint32_t kind)
{
    return kind < GGUF_KIND_COUNT ? kinds[kind].size : 0;
}

bool gguf_kind_is_integer(uint32_t kind)
{
    return gguf_kind_size(kind) && kind != GGUF_F32 && kind != GGUF_F64 && kind != GGUF_BOOL;
}

bool gguf_alignment_valid(uint64_t alignment)
{
    return alignment >= GGUF_MIN_ALIGNMENT && alignment <= GGUF_MAX_ALIGNMENT &&
           (alignment & (alignment - 1)) == 0;
}

/* Makes room for one more record at *array; doubles, so that memory grows with the entries
 * found. */
static bool grow(void **array, uint64_t count, size_t record_size, struct gguf_cursor *c)
{
    if (count & (count - 1)) return true; /* the array is full only at 0 and at powers of two */
    void *bigger = base_resize(*array, count ? count * 2 : 1, record_size);
    if (!bigger) {
        c->failed = true;
        return base_fail(c->err, BASE_NO_MEMORY, "no memory for the file's directory");
    }
    *array = bigger;
    return true;
}

/* ---- Header ---- */

/* Formats of other files that users pass by mistake; the error names the format. */
static const struct {
    const char *magic;
    const char *what;
} other_formats[] = {
    {"<!DO", "this is a web page, not a model: the download went wrong"},
    {"<!do", "this is a web page, not a model: the download went wrong"},
    {"<htm", "this is a web page, not a model: the download went wrong"},
    {"version https://git-lfs",
     "this is a Git LFS pointer, not the model: fetch it with `git lfs pull`"},
    {"PK\3\4", "this is a zip archive (PyTorch?), not a GGUF file"},
    {"\x1f\x8b\b", "this is gzip-compressed: unpack it first"},
    {"tjgg", "this is the old GGJT format from before GGUF: convert the model again"},
    {"fmgg", "this is the old GGMF format from before GGUF: convert the model again"},
    {"lmgg", "this is the old GGML format from before GGUF: convert the model again"},
    {"algg", "this is a LoRA adapter in the format from before GGUF, not a model"},
    {"FUGG", "this GGUF file is big-endian; only little-endian files are supported"},
};

bool gguf_is_magic(const char bytes[4])
{
    return memcmp(bytes, GGUF_MAGIC, 4) == 0 || memcmp(bytes, GGUF_MAGIC_POWERINFER, 4) == 0;
}

static bool check_magic(struct gguf_part *part, struct gguf_cursor *c)
{
    if (c->size == 0) return gguf_cursor_fail(c, 0, "the file is empty");
    const char *magic = (const char *)c->bytes;
    for (size_t i = 0; i < sizeof other_formats / sizeof *other_formats; i++) {
        size_t size = strlen(other_formats[i].magic);
        if (c->size >= size && memcmp(magic, other_formats[i].magic, size) == 0)
            return gguf_cursor_fail(c, 0, "%s", other_formats[i].what);
    }
    uint64_t compared = c->size < 4 ? c->size : 4;
    part->powerinfer = memcmp(magic, GGUF_MAGIC_POWERINFER, compared) == 0;
    if (!part->powerinfer && memcmp(magic, GGUF_MAGIC, compared) != 0)
        return gguf_cursor_fail(c, 0, "not a GGUF file: it does not begin with \"GGUF\"");
    if (c->size < HEADER_SIZE)
        return gguf_cursor_fail(c, c->size, "too short for a GGUF header: the file is truncated");
    c->at = 4;
    return true;
}

static bool parse_header(struct gguf_part *part, struct gguf_cursor *c)
{
    if (!check_magic(part, c)) return false;
    uint32_t version = gguf_cursor_u32(c, "the version");
    uint32_t swapped = __builtin_bswap32(version);
    if (swapped >= 1 && swapped <= 255) {
        return gguf_cursor_fail(c, 4,
                                "this GGUF file is big-endian (version %" PRIu32
                                "); only little-endian files are supported",
                                swapped);
    }
    if (version < VERSION_OLDEST || version > VERSION_NEWEST) {
        return gguf_cursor_fail(
            c, 4, "GGUF version %" PRIu32 " is not supported (only 2 and 3 are): %s", version,
            version > VERSION_NEWEST ? "made by a newer or broken program"
                                     : "convert the model again");
    }
    part->version = version;
    return true;
}

/* ---- Metadata ---- */

static bool check_bools(struct gguf_cursor *c, const unsigned char *items, uint64_t count)
{
    for (uint64_t i = 0; i < count; i++) {
        if (i % (1 << 20) == 0 && !base_goes_on(c->err)) return false;
        if (items[i] > 1) {
            return gguf_cursor_fail(c, (uint64_t)(items + i - c->bytes),
                                    "a bool must be 0 or 1, not %u", items[i]);
        }
    }
    return true;
}

/* Records where each string begins, so that gguf_array_str takes constant time. */
static bool parse_strings(struct gguf_entry *entry, struct gguf_cursor *c)
{
    if (entry->kv.count == 0) return true;
    entry->start = malloc(entry->kv.count * sizeof *entry->start);
    if (!entry->start) {
        c->failed = true;
        return base_fail(c->err, BASE_NO_MEMORY, "no memory for an index of %" PRIu64 " strings",
                         entry->kv.count);
    }
    uint64_t begin = c->at;
    for (uint64_t i = 0; i < entry->kv.count; i++) {
        entry->start[i] = c->at - begin;
        gguf_cursor_str(c, "a string of the array");
        if (c->failed) return false;
    }
    return true;
}

/* The minimal size of an item in bytes: a string has a length, an array an item type and a
 * count. */
static uint64_t item_min_size(uint32_t kind)
{
    return kind == GGUF_STRING ? 8 : kind == GGUF_ARRAY ? 12 : gguf_kind_size(kind);
}

/* Skips an array within an array. No key that is read has one, so only its end is needed. */
static bool skip_array(struct gguf_cursor *c, int depth)
{
    const uint64_t offset = c->at;
    const uint32_t item = gguf_cursor_u32(c, "the inner array's item type");
    if (c->failed) return false;
    if (item >= GGUF_KIND_COUNT || depth == ARRAY_MAX_DEPTH)
        return gguf_cursor_fail(c, offset, "unknown array item type %" PRIu32 " or arrays too deep",
                                item);
    const uint64_t count =
        gguf_cursor_count(c, item_min_size(item), "the inner array's item count");
    if (gguf_kind_size(item)) gguf_cursor_take(c, count * gguf_kind_size(item), "the inner array");
    for (uint64_t i = 0; !gguf_kind_size(item) && i < count && !c->failed; i++) {
        if (item == GGUF_STRING)
            gguf_cursor_str(c, "a string of the inner array");
        else if (!skip_array(c, depth + 1))
            return false;
    }
    return !c->failed;
}

static bool parse_array(struct gguf_entry *entry, struct gguf_cursor *c)
{
    uint64_t offset = c->at;
    uint32_t item = gguf_cursor_u32(c, "the array's item type");
    if (c->failed) return false;
    if (item >= GGUF_KIND_COUNT)
        return gguf_cursor_fail(c, offset, "unknown array item type %" PRIu32, item);
    bool strings = item == GGUF_STRING;
    offset = c->at;
    entry->kv.item = (enum gguf_kind)item;
    entry->kv.count = gguf_cursor_count(c, item_min_size(item), "the array's item count");
    if (c->failed) return false;
    if (entry->kv.count > (strings ? ARRAY_MAX_STRINGS : ARRAY_MAX_ITEMS)) {
        return gguf_cursor_fail(c, offset, "an array of %" PRIu64 " items is too long",
                                entry->kv.count);
    }
    offset = c->at;
    entry->kv.data = c->bytes + offset;
    if (item == GGUF_ARRAY) {
        for (uint64_t i = 0; i < entry->kv.count; i++)
            if (!skip_array(c, 1)) return false;
    } else if (strings) {
        if (!parse_strings(entry, c)) return false;
    } else {
        gguf_cursor_take(c, entry->kv.count * gguf_kind_size(item), "the array");
    }
    entry->kv.size = c->at - offset;
    return item != GGUF_BOOL || check_bools(c, entry->kv.data, entry->kv.count);
}

static bool parse_entry(struct gguf_entry *entry, struct gguf_cursor *c)
{
    c->item = (struct gguf_str){0};
    entry->kv.offset = c->at;
    entry->kv.key = c->item = gguf_cursor_str(c, "a metadata key");
    uint64_t offset = c->at;
    uint32_t kind = gguf_cursor_u32(c, "the value's type");
    if (c->failed) return false;
    if (entry->kv.key.size == 0) return gguf_cursor_fail(c, entry->kv.offset, "empty metadata key");
    if (entry->kv.key.size > GGUF_MAX_KEY) {
        return gguf_cursor_fail(c, entry->kv.offset,
                                "a metadata key of %" PRIu64 " bytes is longer than %d",
                                entry->kv.key.size, GGUF_MAX_KEY);
    }
    if (kind >= GGUF_KIND_COUNT)
        return gguf_cursor_fail(c, offset, "unknown metadata value type %" PRIu32, kind);
    entry->kv.kind = (enum gguf_kind)kind;
    entry->kv.count = 1;
    if (kind == GGUF_ARRAY) return parse_array(entry, c);
    entry->kv.item = entry->kv.kind;
    if (kind == GGUF_STRING) {
        struct gguf_str value = gguf_cursor_str(c, "the string");
        entry->kv.data = value.data;
        entry->kv.size = value.size;
    } else {
        entry->kv.size = gguf_kind_size(kind);
        entry->kv.data = gguf_cursor_take(c, entry->kv.size, "the value");
    }
    if (c->failed) return false;
    return kind != GGUF_BOOL || check_bools(c, entry->kv.data, 1);
}

/* The alignment must have exactly the specified type, because it decides where data begins. */
static bool read_alignment(struct gguf_part *part, struct gguf_cursor *c)
{
    static const struct gguf_str key = {.data = "general.alignment", .size = 17};
    const struct gguf_kv *kv = gguf_index_find(&part->keys, key);
    part->alignment = GGUF_DEFAULT_ALIGNMENT;
    if (!kv) return true;
    c->item = kv->key;
    if (kv->kind != GGUF_U32)
        return gguf_cursor_fail(c, kv->offset, "must be u32, not %s", gguf_kind_name(kv->kind));
    part->alignment = gguf_load_u32(kv->data);
    if (gguf_alignment_valid(part->alignment)) return true;
    return gguf_cursor_fail(c, kv->offset,
                            "alignment %" PRIu64 " is not a power of two from %d to %d",
                            part->alignment, GGUF_MIN_ALIGNMENT, GGUF_MAX_ALIGNMENT);
}

static bool parse_metadata(struct gguf_part *part, uint64_t count, struct gguf_cursor *c)
{
    while (part->entry_count < count) {
        void *array = part->entry;
        if (!grow(&array, part->entry_count, sizeof *part->entry, c)) return false;
        part->entry = array;
        struct gguf_entry *entry = &part->entry[part->entry_count++];
        *entry = (struct gguf_entry){0};
        if (!parse_entry(entry, c)) return false;
    }
    if (!gguf_index_init(&part->keys, part->entry, count, sizeof *part->entry, c->err))
        return false;
    const struct gguf_kv *twice = gguf_index_duplicate(&part->keys);
    if (twice) {
        c->item = twice->key;
        return gguf_cursor_fail(c, twice->offset, "the metadata key occurs twice in the file");
    }
    return read_alignment(part, c);
}

/* ---- Tensor directory ---- */

static bool parse_dims(struct gguf_tensor *t, uint64_t *elements, struct gguf_cursor *c)
{
    uint64_t offset = c->at;
    t->n_dims = gguf_cursor_u32(c, "the number of dimensions");
    if (c->failed) return false;
    if (t->n_dims < 1 || t->n_dims > GGUF_MAX_DIMS) {
        return gguf_cursor_fail(c, offset, "%" PRIu32 " dimensions; a tensor has 1 to %d",
                                t->n_dims, GGUF_MAX_DIMS);
    }
    *elements = 1;
    for (uint32_t i = 0; i < GGUF_MAX_DIMS; i++) t->ne[i] = 1;
    for (uint32_t i = 0; i < t->n_dims; i++) {
        offset = c->at;
        t->ne[i] = gguf_cursor_u64(c, "a dimension");
        if (c->failed) return false;
        if (t->ne[i] == 0) return gguf_cursor_fail(c, offset, "dimension %" PRIu32 " is zero", i);
        if (!base_mul(*elements, t->ne[i], elements) || *elements > INT64_MAX) {
            return gguf_cursor_fail(c, offset,
                                    "the number of elements overflows at dimension "
                                    "%" PRIu32 " (%" PRIu64 ")",
                                    i, t->ne[i]);
        }
    }
    return true;
}

/* Sets type and size. `elements` is the product of ne. */
static bool parse_type(struct gguf_tensor *t, uint64_t elements, struct gguf_cursor *c)
{
    uint64_t offset = c->at, row_bytes;
    uint32_t id = gguf_cursor_u32(c, "the tensor type");
    if (c->failed) return false;
    t->type = quant_type_by_id(id);
    if (!t->type && quant_retired_name(id))
        return gguf_cursor_fail(c, offset,
                                "tensor type %" PRIu32 " (%s) is retired: convert the model again",
                                id, quant_retired_name(id));
    if (!t->type) return gguf_cursor_fail(c, offset, "unknown tensor type %" PRIu32, id);
    if (t->ne[0] % t->type->block_len) {
        return gguf_cursor_fail(c, offset,
                                "rows of %" PRIu64 " elements are not whole blocks of %" PRIu32
                                " as %s needs",
                                t->ne[0], t->type->block_len, t->type->name);
    }
    if (t->type->interleave && t->ne[1] % t->type->interleave)
        return gguf_cursor_fail(c, offset,
                                "%" PRIu64 " rows are not whole groups of %" PRIu32 " as %s needs",
                                t->ne[1], t->type->interleave, t->type->name);
    if (!quant_row_bytes(t->type, t->ne[0], &row_bytes) ||
        !base_mul(row_bytes, elements / t->ne[0], &t->size)) {
        return gguf_cursor_fail(c, offset, "the tensor's size in bytes overflows");
    }
    return true;
}

/* One record of the directory. t->offset is still relative to the data section. */
static bool parse_tensor(struct gguf_tensor *t, uint64_t alignment, struct gguf_cursor *c)
{
    uint64_t offset = c->at, elements = 0;
    c->item = (struct gguf_str){0};
    t->name = c->item = gguf_cursor_str(c, "a tensor's name");
    if (c->failed) return false;
    if (t->name.size == 0) return gguf_cursor_fail(c, offset, "empty tensor name");
    if (t->name.size > GGUF_MAX_NAME) {
        return gguf_cursor_fail(c, offset, "a tensor name of %" PRIu64 " bytes is longer than %d",
                                t->name.size, GGUF_MAX_NAME);
    }
    if (!parse_dims(t, &elements, c) || !parse_type(t, elements, c)) return false;
    offset = c->at;
    t->offset = gguf_cursor_u64(c, "the tensor's offset");
    if (c->failed) return false;
    if (t->offset % alignment) {
        return gguf_cursor_fail(
            c, offset, "data offset %" PRIu64 " is not a multiple of the alignment %" PRIu64,
            t->offset, alignment);
    }
    return true;
}

/* Makes the offset relative to the file, and checks that the file contains the data. */
static bool place_tensor(struct gguf_part *part, struct gguf_tensor *t, struct gguf_cursor *c)
{
    uint64_t begin, end;
    c->item = t->name;
    if (!base_add(part->data_start, t->offset, &begin) || !base_add(begin, t->size, &end) ||
        (end > part->size && !part->may_lack_data) || end > INT64_MAX) {
        return gguf_cursor_fail(c, part->size,
                                "its %" PRIu64 " bytes of data at %" PRIu64 " + %" PRIu64
                                " end beyond the file's %" PRIu64 " bytes: damaged or truncated",
                                t->size, part->data_start, t->offset, part->size);
    }
    if (end > part->data_end) part->data_end = end;
    t->offset = begin;
    t->data = part->bytes + begin;
    return true;
}

static int compare_offsets(const void *a, const void *b)
{
    const struct gguf_tensor *x = *(const struct gguf_tensor *const *)a;
    const struct gguf_tensor *y = *(const struct gguf_tensor *const *)b;
    if (x->offset != y->offset) return x->offset < y->offset ? -1 : 1;
    return (x > y) - (x < y);
}

/* Tensors must not overlap. */
static bool check_overlap(struct gguf_part *part, struct gguf_cursor *c)
{
    if (part->tensor_count < 2) return true;
    const struct gguf_tensor **sorted = calloc(part->tensor_count, sizeof *sorted);
    if (!sorted) return base_fail(c->err, BASE_NO_MEMORY, "no memory to check the tensors");
    for (uint64_t i = 0; i < part->tensor_count; i++) sorted[i] = &part->tensor[i];
    qsort(sorted, part->tensor_count, sizeof *sorted, compare_offsets);
    for (uint64_t i = 1; i < part->tensor_count && !c->failed; i++) {
        const struct gguf_tensor *before = sorted[i - 1];
        if (before->offset + before->size <= sorted[i]->offset) continue;
        char other[GGUF_ITEM_SIZE];
        c->item = sorted[i]->name;
        gguf_cursor_fail(c, sorted[i]->offset, "its data overlaps that of %s",
                         gguf_item(before->name, other));
    }
    free(sorted);
    return !c->failed;
}

static bool parse_directory(struct gguf_part *part, uint64_t count, int number,
                            struct gguf_cursor *c)
{
    while (part->tensor_count < count) {
        void *array = part->tensor;
        if (!grow(&array, part->tensor_count, sizeof *part->tensor, c)) return false;
        part->tensor = array;
        struct gguf_tensor *tensor = &part->tensor[part->tensor_count++];
        *tensor = (struct gguf_tensor){.part = number};
        if (!parse_tensor(tensor, part->alignment, c)) return false;
    }
    c->item = (struct gguf_str){0};
    part->head_end = c->at;
    if (!base_align_up(c->at, part->alignment, &part->data_start))
        return gguf_cursor_fail(c, c->at, "the start of the data section overflows");
    for (uint64_t i = 0; i < count; i++)
        if (!place_tensor(part, &part->tensor[i], c)) return false;
    return check_overlap(part, c);
}

/* ---- The complete part ---- */

bool gguf_part_parse(struct gguf_part *part, const void *bytes, uint64_t size, int number,
                     struct base_error *err)
{
    struct gguf_cursor c = {.bytes = bytes, .size = size, .err = err};
    part->bytes = bytes;
    part->size = size;
    if (!parse_header(part, &c)) return false;
    uint64_t tensors = gguf_cursor_count(&c, TENSOR_MIN_SIZE, "the number of tensors");
    uint64_t entries = gguf_cursor_count(&c, ENTRY_MIN_SIZE, "the number of metadata entries");
    return !c.failed && parse_metadata(part, entries, &c) &&
           parse_directory(part, tensors, number, &c);
}

void gguf_part_free(struct gguf_part *part)
{
    for (uint64_t i = 0; i < part->entry_count; i++) free(part->entry[i].start);
    free(part->entry);
    free(part->tensor);
    gguf_index_free(&part->keys);
    *part = (struct gguf_part){0};
}

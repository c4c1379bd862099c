/* gguf/writer.c: writing GGUF version 3. The writer contains the declared metadata and tensors and
 * the output (base/output.h); a file that gguf_writer_end has not finished is removed. What
 * gguf/part.c could not read is an error. */
#include "gguf/gguf.h"

#include "base/buffer.h"
#include "base/checksum.h"
#include "base/interrupt.h"
#include "base/os.h"
#include "base/size.h"
#include "gguf/cursor.h"
#include "gguf/part.h"
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { VERSION = 3 };

/* Bytes per system call. If the file system supports it, Linux caches the data of one call in pages
 * of the call's size; with calls of one huge page, a mapping of the file has huge pages
 * (gguf/file.c). */
enum { OUTPUT_ROOM = 1 << 21 };

enum {
    COPY_STEP = 64 << 20, /* bytes between two checks for Ctrl-C */
    COPY_UNIT = 4096,     /* file systems share ranges that begin and end at multiples of this */
    SPLIT_KEYS = 4,
    ID_SIZE = 16 /* hexadecimal digits of split.id */
};

/* Both structs begin with the name, for gguf/index.h; it is set when the list is complete. */
struct out_entry {
    struct gguf_str name; /* points to key */
    struct base_buffer key;
    struct base_buffer value; /* the value's type and the value, encoded as in the file */
};

struct out_tensor {
    struct gguf_str name; /* points to bytes */
    char bytes[GGUF_MAX_NAME];
    const struct quant_type *type;
    uint32_t n_dims;
    uint64_t ne[GGUF_MAX_DIMS];
    uint64_t size;
    uint32_t part;
};

struct gguf_writer {
    struct base_error error; /* the first error, which gguf_writer_begin returns */
    struct out_entry *entry;
    uint64_t entry_count;
    struct out_tensor *tensor;
    uint64_t tensor_count;
    uint64_t alignment;
    const char *magic;

    uint32_t part_count; /* 0: not split */
    uint32_t part;       /* the part being written, from 0 */
    char *path;          /* path of the file; for a split model the prefix of all paths */
    uint64_t id;         /* checksum of all parts as they were written, with an id of zeros */
    uint64_t *id_at;     /* [part_count]: offset of split.id in the part */
    const struct gguf_file *source; /* the file whose part source_part is open for copying */
    int source_part, source_fd;

    struct base_output file;
    uint64_t written; /* bytes of the file that were written, without those in `output` */
    char *output;     /* [OUTPUT_ROOM] buffered bytes, so that a row needs no system call */
    size_t output_size;
    uint64_t current;      /* the tensor whose data is written next */
    uint64_t current_done; /* bytes of it that were written */
};

struct gguf_writer *gguf_writer_new(struct base_error *err)
{
    struct gguf_writer *w = calloc(1, sizeof *w);
    if (!w) return base_null(base_fail(err, BASE_NO_MEMORY, "no memory to write a model"));
    w->error = BASE_ERROR_INIT;
    w->alignment = GGUF_DEFAULT_ALIGNMENT;
    w->magic = GGUF_MAGIC;
    w->source_fd = -1;
    base_output_init(&w->file);
    return w;
}

struct base_output *gguf_writer_output(struct gguf_writer *w)
{
    return &w->file;
}

static void free_entry(struct out_entry *entry)
{
    base_buffer_free(&entry->key);
    base_buffer_free(&entry->value);
}

void gguf_writer_free(struct gguf_writer *w)
{
    if (!w) return;
    base_output_close(&w->file, false, NULL);
    if (w->source_fd >= 0) close(w->source_fd);
    free(w->path);
    free(w->output);
    free(w->id_at);
    for (uint64_t i = 0; i < w->entry_count; i++) free_entry(&w->entry[i]);
    free(w->entry);
    free(w->tensor);
    free(w);
}

/* ---- Numbers ---- */

static void add_u32(struct base_buffer *b, uint32_t value)
{
    base_buffer_add(b, &value, sizeof value);
}

static void add_u64(struct base_buffer *b, uint64_t value)
{
    base_buffer_add(b, &value, sizeof value);
}

static void add_str(struct base_buffer *b, const char *bytes, uint64_t size)
{
    add_u64(b, size);
    base_buffer_add(b, bytes, size);
}

/* ---- Metadata ---- */

static bool fail_memory(struct gguf_writer *w)
{
    return base_fail(&w->error, BASE_NO_MEMORY, "no memory to write a model");
}

/* Makes room for one more record by doubling the array. */
static bool grow(struct gguf_writer *w, void **array, uint64_t count, size_t record_size)
{
    if (count & (count - 1)) return true; /* full only at 0 and at powers of two */
    void *bigger = base_resize(*array, count ? count * 2 : 1, record_size);
    if (!bigger) return fail_memory(w);
    *array = bigger;
    return true;
}

/* Adds an entry for the key and writes its type; NULL and w->error on failure. */
static struct base_buffer *open_value(struct gguf_writer *w, struct gguf_str key,
                                      enum gguf_kind kind)
{
    if (w->error.code != BASE_OK) return NULL;
    char item[GGUF_ITEM_SIZE];
    if (key.size == 0 || key.size > GGUF_MAX_KEY)
        return base_null(base_fail_at(&w->error, BASE_FAILED, gguf_item(key, item), -1,
                                      "a metadata key must have 1 to %d bytes", GGUF_MAX_KEY));
    void *array = w->entry;
    if (!grow(w, &array, w->entry_count, sizeof *w->entry)) return NULL;
    w->entry = array;
    struct out_entry *entry = &w->entry[w->entry_count++];
    *entry = (struct out_entry){.key = BASE_BUFFER_INIT, .value = BASE_BUFFER_INIT};
    base_buffer_add(&entry->key, key.data, key.size);
    if (entry->key.failed) {
        fail_memory(w);
        return NULL;
    }
    add_u32(&entry->value, kind);
    return &entry->value;
}

static struct base_buffer *open_named(struct gguf_writer *w, const char *key, enum gguf_kind kind)
{
    return open_value(w, (struct gguf_str){.data = key, .size = strlen(key)}, kind);
}

/* Ends a value: if its buffer could not grow, the writer has an error. */
static void close_value(struct gguf_writer *w, const struct base_buffer *value)
{
    if (value->failed) fail_memory(w);
}

void gguf_writer_u32(struct gguf_writer *w, const char *key, uint32_t value)
{
    struct base_buffer *b = open_named(w, key, GGUF_U32);
    if (!b) return;
    add_u32(b, value);
    close_value(w, b);
}

void gguf_writer_str(struct gguf_writer *w, const char *key, const char *bytes, uint64_t size)
{
    struct base_buffer *b = open_named(w, key, GGUF_STRING);
    if (!b) return;
    add_str(b, bytes, size);
    close_value(w, b);
}

void gguf_writer_str_array(struct gguf_writer *w, const char *key, const struct gguf_str *items,
                           uint64_t count)
{
    struct base_buffer *b = open_named(w, key, GGUF_ARRAY);
    if (!b) return;
    add_u32(b, GGUF_STRING);
    add_u64(b, count);
    for (uint64_t i = 0; i < count; i++) add_str(b, items[i].data, items[i].size);
    close_value(w, b);
}

void gguf_writer_copy_kv(struct gguf_writer *w, const struct gguf_kv *kv)
{
    struct base_buffer *b = open_value(w, kv->key, kv->kind);
    if (!b) return;
    if (kv->kind == GGUF_STRING) add_u64(b, kv->size);
    if (kv->kind == GGUF_ARRAY) {
        add_u32(b, kv->item);
        add_u64(b, kv->count);
    }
    base_buffer_add(b, kv->data, kv->size);
    close_value(w, b);
}

void gguf_writer_copy_magic(struct gguf_writer *w, const struct gguf_file *file)
{
    w->magic = gguf_is_powerinfer(file) ? GGUF_MAGIC_POWERINFER : GGUF_MAGIC;
}

void gguf_writer_copy_metadata(struct gguf_writer *w, const struct gguf_file *file)
{
    gguf_writer_copy_magic(w, file);
    for (uint64_t i = 0; i < gguf_kv_count(file); i++)
        if (!gguf_str_begins(gguf_kv_at(file, i)->key, "split."))
            gguf_writer_copy_kv(w, gguf_kv_at(file, i));
}

/* ---- Tensors ---- */

void gguf_writer_part(struct gguf_writer *w)
{
    if (w->part_count < GGUF_MAX_PARTS)
        w->part_count++;
    else
        base_fail(&w->error, BASE_FAILED, "more than %d parts", GGUF_MAX_PARTS);
}

int gguf_writer_part_count(const struct gguf_writer *w)
{
    return (int)w->part_count;
}

static bool measure_tensor(struct out_tensor *t)
{
    uint64_t elements = 1;
    for (uint32_t i = 0; i < t->n_dims; i++) {
        if (t->ne[i] == 0 || !base_mul(elements, t->ne[i], &elements) || elements > INT64_MAX)
            return false;
    }
    return quant_row_bytes(t->type, t->ne[0], &t->size) &&
           base_mul(t->size, elements / t->ne[0], &t->size);
}

void gguf_writer_tensor(struct gguf_writer *w, struct gguf_str name, const struct quant_type *type,
                        uint32_t n_dims, const uint64_t *ne)
{
    char item[GGUF_ITEM_SIZE];
    struct out_tensor t = {
        .type = type, .n_dims = n_dims, .part = w->part_count ? w->part_count - 1 : 0};
    if (w->error.code != BASE_OK) return;
    if (name.size == 0 || name.size > GGUF_MAX_NAME || n_dims < 1 || n_dims > GGUF_MAX_DIMS) {
        base_fail_at(&w->error, BASE_FAILED, gguf_item(name, item), -1,
                     "a tensor needs a name of 1 to %d bytes and 1 to %d dimensions", GGUF_MAX_NAME,
                     GGUF_MAX_DIMS);
        return;
    }
    memcpy(t.bytes, name.data, name.size);
    t.name.size = name.size;
    memcpy(t.ne, ne, n_dims * sizeof *ne);
    if (!measure_tensor(&t)) {
        base_fail_at(&w->error, BASE_FAILED, gguf_item(name, item), -1,
                     "the shape does not fit the type %s, has a zero or is too large", type->name);
        return;
    }
    void *array = w->tensor;
    if (!grow(w, &array, w->tensor_count, sizeof *w->tensor)) return;
    w->tensor = array;
    w->tensor[w->tensor_count++] = t;
}

static bool check_names(struct gguf_writer *w)
{
    struct gguf_index index;
    char item[GGUF_ITEM_SIZE];
    for (uint64_t i = 0; i < w->tensor_count; i++) w->tensor[i].name.data = w->tensor[i].bytes;
    if (!gguf_index_init(&index, w->tensor, w->tensor_count, sizeof *w->tensor, &w->error))
        return false;
    const struct out_tensor *twice = gguf_index_duplicate(&index);
    gguf_index_free(&index);
    return !twice || base_fail_at(&w->error, BASE_FAILED, gguf_item(twice->name, item), -1,
                                  "two tensors have this name");
}

/* ---- The head of the file ---- */

/* Replaces the value of the first of several entries with the same key by that of the last one, and
 * removes the others. */
static bool replace_values(struct gguf_writer *w)
{
    struct gguf_index index;
    uint64_t kept = 0;
    for (uint64_t i = 0; i < w->entry_count; i++)
        w->entry[i].name = (struct gguf_str){w->entry[i].key.data, w->entry[i].key.size};
    if (!gguf_index_init(&index, w->entry, w->entry_count, sizeof *w->entry, &w->error))
        return false;
    struct out_entry *first = NULL;
    for (uint64_t i = 0; i < index.count; i++) { /* equal keys are in the order of writing */
        struct out_entry *entry = &w->entry[(const struct out_entry *)index.name[i] - w->entry];
        if (first && gguf_str_compare(entry->name, first->name) == 0) {
            const struct base_buffer replaced = first->value;
            first->value = entry->value;
            entry->value = replaced;
            entry->name.size = 0;
        } else {
            first = entry;
        }
    }
    gguf_index_free(&index);
    for (uint64_t i = 0; i < w->entry_count; i++) {
        if (w->entry[i].name.size > 0)
            w->entry[kept++] = w->entry[i];
        else
            free_entry(&w->entry[i]);
    }
    w->entry_count = kept;
    return true;
}

static const struct gguf_str alignment_key = {.data = "general.alignment", .size = 17};

static bool is_alignment(const struct out_entry *entry)
{
    return gguf_str_compare(entry->name, alignment_key) == 0;
}

/* Applies general.alignment, if declared, to the file being written. */
static bool find_alignment(struct gguf_writer *w)
{
    const struct out_entry *entry = NULL;
    for (uint64_t i = 0; i < w->entry_count && !entry; i++)
        if (is_alignment(&w->entry[i])) entry = &w->entry[i];
    w->alignment = GGUF_DEFAULT_ALIGNMENT;
    if (!entry) return true;
    uint32_t field[2] = {0, 0}; /* type, value */
    if (entry->value.size == sizeof field) memcpy(field, entry->value.data, sizeof field);
    w->alignment = field[1];
    if (field[0] == GGUF_U32 && gguf_alignment_valid(w->alignment)) return true;
    return base_fail_at(&w->error, BASE_FAILED, alignment_key.data, -1,
                        "must be a u32, a power of two from %d to %d", GGUF_MIN_ALIGNMENT,
                        GGUF_MAX_ALIGNMENT);
}

static void add_entry(struct base_buffer *head, const struct out_entry *entry)
{
    add_str(head, entry->key.data, entry->key.size);
    base_buffer_add(head, entry->value.data, entry->value.size);
    head->failed |= entry->value.failed;
}

static void add_u16_key(struct base_buffer *head, const char *key, uint32_t value)
{
    const uint16_t bytes = (uint16_t)value;
    add_str(head, key, strlen(key));
    add_u32(head, GGUF_U16);
    base_buffer_add(head, &bytes, sizeof bytes);
}

/* Adds the keys in the order, and with the types, that other programs expect; then split.id, whose
 * value set_ids writes: parts with different ids are not of one model. */
static void add_split_keys(const struct gguf_writer *w, struct base_buffer *head)
{
    static const char tensors[] = "split.tensors.count", id[] = "split.id";
    add_u16_key(head, "split.no", w->part);
    add_str(head, tensors, sizeof tensors - 1);
    add_u32(head, GGUF_I32);
    add_u32(head, (uint32_t)w->tensor_count);
    add_u16_key(head, "split.count", w->part_count);
    add_str(head, id, sizeof id - 1);
    add_u32(head, GGUF_STRING);
    add_u64(head, ID_SIZE);
    if (w->id_at) w->id_at[w->part] = head->size;
    for (int i = 0; i < ID_SIZE; i++) base_buffer_add(head, "0", 1);
}

/* Adds bytes of a part to the checksum of all parts. */
static void add_to_id(struct gguf_writer *w, const void *bytes, uint64_t size)
{
    if (w->part_count) w->id = base_checksum(bytes, size, w->id);
}

/* Writes split.id to all parts. */
static bool set_ids(struct gguf_writer *w)
{
    char id[ID_SIZE + 1];
    snprintf(id, sizeof id, "%016" PRIx64, w->id);
    for (uint32_t i = 0; i < w->part_count; i++)
        if (!base_output_patch(&w->file, i, w->id_at[i], id, ID_SIZE, &w->error)) return false;
    return true;
}

static bool check_split(struct gguf_writer *w)
{
    for (uint64_t i = 0; w->part_count && i < w->entry_count; i++) {
        char item[GGUF_ITEM_SIZE];
        if (gguf_str_begins(w->entry[i].name, "split."))
            return base_fail_at(&w->error, BASE_FAILED, gguf_item(w->entry[i].name, item), -1,
                                "must not be declared: the writer adds it to each part");
    }
    return !w->part_count || w->tensor_count <= INT32_MAX ||
           base_fail(&w->error, BASE_FAILED, "too many tensors for a split model");
}

/* Appends the metadata of the part being written. */
static void add_metadata(const struct gguf_writer *w, struct base_buffer *head)
{
    uint64_t count = w->part_count ? SPLIT_KEYS : 0;
    for (uint64_t i = 0; i < w->entry_count; i++)
        count += w->part == 0 || is_alignment(&w->entry[i]);
    add_u64(head, count);
    for (uint64_t i = 0; i < w->entry_count; i++)
        if (w->part == 0 || is_alignment(&w->entry[i])) add_entry(head, &w->entry[i]);
    if (w->part_count) add_split_keys(w, head);
}

/* Builds the head of the part being written, which has `count` tensors from number `first` on, and
 * computes the size of their data with padding. */
static bool build_head(struct gguf_writer *w, uint64_t first, uint64_t count,
                       struct base_buffer *head, uint64_t *data_size)
{
    uint64_t offset = 0, padded;
    base_buffer_add(head, w->magic, 4);
    add_u32(head, VERSION);
    add_u64(head, count);
    add_metadata(w, head);
    for (uint64_t i = first; i < first + count; i++) {
        const struct out_tensor *t = &w->tensor[i];
        add_str(head, t->name.data, t->name.size);
        add_u32(head, t->n_dims);
        for (uint32_t d = 0; d < t->n_dims; d++) add_u64(head, t->ne[d]);
        add_u32(head, t->type->id);
        add_u64(head, offset);
        if (!base_align_up(t->size, w->alignment, &padded) || !base_add(offset, padded, &offset))
            return base_fail(&w->error, BASE_FAILED, "the tensors together are too large");
    }
    *data_size = offset;
    return head->failed ? fail_memory(w) : true;
}

/* ---- Output ---- */

static bool flush(struct gguf_writer *w)
{
    size_t size = w->output_size;
    w->output_size = 0;
    w->written += size;
    return base_output_write(&w->file, w->output, size, &w->error);
}

/* Appends bytes to the output buffer, and writes the buffer each time that it is full. */
static bool put(struct gguf_writer *w, const void *bytes, uint64_t size)
{
    const char *from = bytes;
    while (size) {
        uint64_t room = OUTPUT_ROOM - w->output_size;
        uint64_t n = size < room ? size : room;
        memcpy(w->output + w->output_size, from, n);
        w->output_size += n;
        from += n;
        size -= n;
        if (w->output_size == OUTPUT_ROOM && !flush(w)) return false;
    }
    return true;
}

/* Writes zeros up to the alignment, after `size` bytes that began at a multiple of it. */
static bool put_padding(struct gguf_writer *w, uint64_t size)
{
    static const char zeros[4096];
    uint64_t left = (w->alignment - size % w->alignment) % w->alignment;
    while (left) {
        uint64_t n = left < sizeof zeros ? left : sizeof zeros;
        if (!put(w, zeros, n)) return false;
        left -= n;
    }
    return true;
}

static bool open_output(struct gguf_writer *w)
{
    if (!w->part_count) return base_output_open(&w->file, w->path, &w->error);
    char *path = gguf_part_path((struct gguf_str){w->path, strlen(w->path)}, (int)w->part,
                                (int)w->part_count, &w->error);
    bool ok = path && (w->part == 0 ? base_output_open(&w->file, path, &w->error)
                                    : base_output_next(&w->file, path, &w->error));
    if (ok && !w->file.unfinished)
        ok = base_fail(&w->error, BASE_FAILED, "%s: a part must be a regular file", path);
    free(path);
    return ok;
}

/* Opens part w->part, whose first tensor is the current one, and writes everything before the
 * data. */
static bool open_part(struct gguf_writer *w)
{
    BASE_LOCAL_BUFFER head = BASE_BUFFER_INIT;
    uint64_t count = 0, data_size;
    while (w->current + count < w->tensor_count && w->tensor[w->current + count].part == w->part)
        count++;
    const bool built = build_head(w, w->current, count, &head, &data_size);
    if (built) add_to_id(w, head.data, head.size);
    return built && open_output(w) && put(w, head.data, head.size) &&
           ((count == 0 && !w->part_count) || put_padding(w, head.size));
}

/* Advances to the part of the current tensor; after the last tensor, to the last part. */
static bool reach_part(struct gguf_writer *w)
{
    const uint32_t last = w->part_count ? w->part_count - 1 : 0;
    const uint32_t part = w->current < w->tensor_count ? w->tensor[w->current].part : last;
    while (w->part < part) {
        if (!flush(w)) return false;
        w->part++;
        w->written = 0;
        if (!open_part(w)) return false;
    }
    return true;
}

/* Copies the writer's error to the caller's; always returns false. */
static bool copy_error(const struct gguf_writer *w, struct base_error *err)
{
    if (err && err->code == BASE_OK) *err = w->error;
    return false;
}

static bool finish_declarations(struct gguf_writer *w)
{
    return w->error.code == BASE_OK && check_names(w) && replace_values(w) && find_alignment(w) &&
           check_split(w);
}

struct gguf_file *gguf_writer_preview(struct gguf_writer *w, struct base_error *err)
{
    BASE_LOCAL_BUFFER head = BASE_BUFFER_INIT;
    struct gguf_file *file = NULL;
    uint64_t start, size;
    if (!finish_declarations(w) || !build_head(w, 0, w->tensor_count, &head, &size))
        copy_error(w, err);
    else if (!base_align_up(head.size, w->alignment, &start) || !base_add(size, start, &size))
        base_fail(err, BASE_FAILED, "the tensors together are too large");
    else
        file = gguf_open_head(head.data, head.size, size, err);
    return file;
}

bool gguf_writer_begin(struct gguf_writer *w, const char *path, struct base_error *err)
{
    if (w->error.code != BASE_OK) return copy_error(w, err);
    w->path = strdup(path);
    w->output = malloc(OUTPUT_ROOM);
    w->id_at = calloc(w->part_count + 1, sizeof *w->id_at);
    if (!w->path || !w->output || !w->id_at) fail_memory(w);
    const bool done = finish_declarations(w) && open_part(w) && reach_part(w);
    return done || copy_error(w, err);
}

/* Records that `size` bytes of the current tensor were written; at its end, advances to the next.
 */
static bool count_data(struct gguf_writer *w, uint64_t size)
{
    const uint64_t whole = w->tensor[w->current].size;
    w->current_done += size;
    if (w->current_done < whole) return true;
    w->current++;
    w->current_done = 0;
    return put_padding(w, whole) && reach_part(w);
}

bool gguf_writer_data(struct gguf_writer *w, const void *bytes, uint64_t size,
                      struct base_error *err)
{
    char item[GGUF_ITEM_SIZE];
    if (w->error.code != BASE_OK) return copy_error(w, err);
    if (w->current == w->tensor_count) {
        base_fail(&w->error, BASE_FAILED, "more tensor data than was declared");
        return copy_error(w, err);
    }
    const struct out_tensor *t = &w->tensor[w->current];
    if (size > t->size - w->current_done) {
        base_fail_at(&w->error, BASE_FAILED, gguf_item(t->name, item), -1,
                     "more than the declared %" PRIu64 " bytes of data", t->size);
        return copy_error(w, err);
    }
    add_to_id(w, bytes, size);
    if (!put(w, bytes, size) || !count_data(w, size)) return copy_error(w, err);
    return true;
}

/* ---- Copying ---- */

/* Opens the file that was mapped for that part of the model; -1 if it cannot be opened or was
 * replaced. */
static int open_source(struct gguf_writer *w, const struct gguf_file *file, int part)
{
    struct stat st;
    if (w->source == file && w->source_part == part) return w->source_fd;
    if (w->source_fd >= 0) close(w->source_fd);
    const struct gguf_part_facts facts = gguf_part_facts(file, part);
    char *name = gguf_part_name(file, part, NULL);
    w->source = file;
    w->source_part = part;
    w->source_fd = name ? open(name, O_RDONLY | O_CLOEXEC | O_NONBLOCK) : -1;
    free(name);
    if (w->source_fd >= 0 && (fstat(w->source_fd, &st) != 0 ||
                              (uint64_t)st.st_dev != facts.device || st.st_ino != facts.inode)) {
        close(w->source_fd);
        w->source_fd = -1;
    }
    return w->source_fd;
}

/* Copies whole units in a way that file systems may share them. Returns the number
 * of bytes copied, 0 if the system does not support it. */
static uint64_t copy_units(struct gguf_writer *w, int fd, uint64_t from, uint64_t size)
{
    off_t at = (off_t)from;
    uint64_t left = size / COPY_UNIT * COPY_UNIT;
    while (left > 0 && !base_interrupted()) {
        const ssize_t n =
            base_os_copy_shared(fd, &at, w->file.fd, left < COPY_STEP ? left : (size_t)COPY_STEP);
        if (n <= 0) break;
        left -= (uint64_t)n;
        w->written += (uint64_t)n;
    }
    return (uint64_t)at - from;
}

/* Copies so if source and target have the same offset in a unit: only then can a
 * file system share bytes. Otherwise larger writes are faster. */
static bool copy_shared(struct gguf_writer *w, const struct gguf_file *file,
                        const struct gguf_tensor *t, uint64_t *done)
{
    const uint64_t to = w->written + w->output_size;
    const uint64_t lead = (COPY_UNIT - t->offset % COPY_UNIT) % COPY_UNIT;
    if (to % COPY_UNIT != t->offset % COPY_UNIT || t->size < lead + COPY_UNIT) return true;
    const int fd = open_source(w, file, t->part);
    if (fd < 0) return true;
    if (!put(w, t->data, lead) || !flush(w)) return false;
    *done = lead + copy_units(w, fd, t->offset + lead, t->size - lead);
    return true;
}

bool gguf_writer_copy_data(struct gguf_writer *w, const struct gguf_file *file,
                           const struct gguf_tensor *t, struct base_error *err)
{
    uint64_t done = 0;
    if (w->error.code != BASE_OK) return copy_error(w, err);
    if (w->current == w->tensor_count || w->current_done > 0 ||
        w->tensor[w->current].size != t->size) {
        base_fail(&w->error, BASE_FAILED, "other tensor data than was declared");
        return copy_error(w, err);
    }
    for (uint64_t at = 0; w->part_count && at < t->size && base_goes_on(&w->error);
         at += OUTPUT_ROOM)
        add_to_id(w, (const char *)t->data + at,
                  t->size - at < OUTPUT_ROOM ? t->size - at : OUTPUT_ROOM);
    if (!copy_shared(w, file, t, &done)) return copy_error(w, err);
    while (done < t->size) {
        const uint64_t left = t->size - done, step = left < OUTPUT_ROOM ? left : OUTPUT_ROOM;
        if (!base_goes_on(&w->error) || !put(w, (const char *)t->data + done, step))
            return copy_error(w, err);
        done += step;
    }
    return count_data(w, t->size) || copy_error(w, err);
}

bool gguf_writer_end(struct gguf_writer *w, struct base_error *err)
{
    char item[GGUF_ITEM_SIZE];
    if (w->error.code == BASE_OK && w->current < w->tensor_count) {
        const struct out_tensor *t = &w->tensor[w->current];
        base_fail_at(&w->error, BASE_FAILED, gguf_item(t->name, item), -1,
                     "only %" PRIu64 " of its %" PRIu64 " bytes were written", w->current_done,
                     t->size);
    }
    const bool done = w->error.code == BASE_OK && flush(w) && set_ids(w);
    return base_output_close(&w->file, done, &w->error) || copy_error(w, err);
}

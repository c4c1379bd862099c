/* gguf/file.c: maps a model of one or several files, and looks up its tensors and metadata. Accepts
 * regular files only: a pipe cannot be mapped, and a directory is a user's mistake.
 *
 * If another program truncates the file after it was opened, reading the lost pages raises SIGBUS
 * (cli/signals.c then ends the program); if it overwrites the file, tensor data changes, but no
 * length, count or offset: those are copied when they are checked. Replacing the file by rename is
 * safe. */
#include "gguf/gguf.h"

#include "base/os.h"
#include "base/size.h"
#include "gguf/cursor.h"
#include "gguf/part.h"
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

struct gguf_file {
    char *path;  /* of the first part */
    bool mapped; /* the parts' bytes must be unmapped */
    bool header_only;
    struct gguf_part *part;
    int part_count; /* parts opened so far: while opening, fewer than the model has */
    uint64_t size;
    struct gguf_tensor *tensor; /* of all parts */
    uint64_t tensor_count, tensor_room;
    struct gguf_index tensors;
    struct gguf_given *given; /* the values of gguf_override, the last one first */
};

/* A value that gguf_override sets. */
struct gguf_given {
    struct gguf_kv kv; /* key and value point into `bytes` */
    bool used;         /* a look-up has found it, or the file has the key */
    struct gguf_given *next;
    char bytes[];
};

/* ---- Mapping ---- */

static bool fail_system(struct base_error *err, const char *doing)
{
    enum base_code code = errno == ENOMEM ? BASE_NO_MEMORY : BASE_MODEL;
    return base_fail(err, code, "cannot %s: %s", doing, strerror(errno));
}

static bool check_regular(const struct stat *st, struct base_error *err)
{
    if (S_ISREG(st->st_mode)) return true;
    const char *what = S_ISDIR(st->st_mode)    ? "a directory"
                       : S_ISFIFO(st->st_mode) ? "a pipe"
                       : S_ISSOCK(st->st_mode) ? "a socket"
                                               : "a device";
    return base_fail(err, BASE_MODEL, "this is %s; a model must be a regular file", what);
}

/* Maps the open file. An empty file is not an error here: it maps to no bytes. */
static bool map_descriptor(int fd, struct gguf_part_facts *to, struct base_error *err)
{
    struct stat st;
    if (fstat(fd, &st) != 0) return fail_system(err, "examine");
    if (!check_regular(&st, err)) return false;
    const int64_t changed = base_os_changed_ns(&st), written = base_os_written_ns(&st);
    *to = (struct gguf_part_facts){.size = (uint64_t)st.st_size,
                                   .device = st.st_dev,
                                   .inode = st.st_ino,
                                   .changed_ns = changed > written ? changed : written,
                                   .written_ns = written};
    if (to->size == 0) return true;
    if (to->size > SIZE_MAX)
        return base_fail(err, BASE_NO_MEMORY, "too large for the address space");
    void *map = mmap(NULL, (size_t)to->size, PROT_READ, MAP_SHARED, fd, 0);
    if (map == MAP_FAILED) return fail_system(err, "map");
    /* If the file system supports it, the kernel then reads pages that are not cached yet as huge
     * pages: one page fault per 2 MB, in this process and in every later one that maps the file. */
    base_os_huge_pages(map, (size_t)to->size);
    to->bytes = map;
    return true;
}

static bool map_file(const char *path, struct gguf_part_facts *to, struct base_error *err)
{
    /* O_NONBLOCK: opening a pipe without a writer must not hang. */
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0) return fail_system(err, "open");
    bool done = map_descriptor(fd, to, err);
    close(fd);
    return done;
}

/* ---- Split models ---- */

/* The length of the suffix -00001-of-0000N.gguf. */
enum { SPLIT_DIGITS = 5, SPLIT_TAIL = 1 + SPLIT_DIGITS + 4 + SPLIT_DIGITS + 5 };

/* The value of five digits; 0 if there are none. */
static int read_digits(const char *text)
{
    int value = 0;
    for (int i = 0; i < SPLIT_DIGITS; i++) {
        if (text[i] < '0' || text[i] > '9') return 0;
        value = value * 10 + (text[i] - '0');
    }
    return value;
}

/* The number of parts according to the path's name; 1 if it is not the name of a part. */
static int split_count(const char *path)
{
    size_t length = strlen(path);
    if (length <= SPLIT_TAIL) return 1;
    const char *tail = path + length - SPLIT_TAIL;
    int number = read_digits(tail + 1);
    int count = read_digits(tail + 1 + SPLIT_DIGITS + 4);
    bool shaped = tail[0] == '-' && memcmp(tail + 1 + SPLIT_DIGITS, "-of-", 4) == 0 &&
                  strcmp(path + length - 5, ".gguf") == 0;
    return shaped && number >= 1 && number <= count ? count : 1;
}

char *gguf_part_path(struct gguf_str prefix, int part, int count, struct base_error *err)
{
    char *name;
    if (asprintf(&name, "%.*s-%05d-of-%05d.gguf", (int)prefix.size, prefix.data, part + 1, count) >=
        0)
        return name;
    return base_null(base_fail(err, BASE_NO_MEMORY, "no memory for the file's name"));
}

/* The name of part `number` (from 0), given any part's name. The caller frees it. */
static char *split_path(const char *path, int number, int count, struct base_error *err)
{
    char *name = NULL;
    if (count > 1)
        return gguf_part_path((struct gguf_str){path, strlen(path) - SPLIT_TAIL}, number, count,
                              err);
    name = strdup(path);
    if (!name) base_fail(err, BASE_NO_MEMORY, "no memory for the file's name");
    return name;
}

/* Reads an integer key of one part; sets *out to `absent` if the part does not have the key. */
static bool part_int(const struct gguf_part *part, const char *key, int64_t absent, int64_t *out,
                     struct base_error *err)
{
    const struct gguf_kv *kv =
        gguf_index_find(&part->keys, (struct gguf_str){.data = key, .size = strlen(key)});
    *out = absent;
    if (!kv) return true;
    if (!gguf_kind_is_integer(kv->kind)) {
        return base_fail_at(err, BASE_MODEL, key, (int64_t)kv->offset, "must be an integer, not %s",
                            gguf_kind_name(kv->kind));
    }
    *out = gguf_array_int(kv, 0);
    return true;
}

/* Checks that a part's keys agree with its name. */
static bool check_part(const struct gguf_part *part, int number, int count, struct base_error *err)
{
    int64_t key_count, key_number;
    if (!part_int(part, "split.count", 0, &key_count, err)) return false;
    if (!part_int(part, "split.no", -1, &key_number, err)) return false;
    if (count == 1 && key_count <= 1) return true;
    if (count == 1) {
        return base_fail_at(err, BASE_MODEL, "split.count", -1,
                            "this is one of %" PRId64 " parts of a split model; their names must "
                            "end in -00001-of-%05" PRId64 ".gguf and so on",
                            key_count, key_count);
    }
    if (key_count != count) {
        return base_fail_at(err, BASE_MODEL, "split.count", -1,
                            "%d parts according to the file's name, %" PRId64 " in the file", count,
                            key_count);
    }
    if (key_number != number) {
        return base_fail_at(err, BASE_MODEL, "split.no", -1,
                            "part %d (from 0) according to the file's name, %" PRId64
                            " in the file",
                            number, key_number);
    }
    return true;
}

/* Checks that a part has the split.id of the first, or that neither has one: `infer split` and
 * other commands write it, and a mixture of old and new parts has the names and counts of a model.
 */
static bool check_id(const struct gguf_part *first, const struct gguf_part *part, int number,
                     struct base_error *err)
{
    static const char key[] = "split.id";
    const struct gguf_str name = {.data = key, .size = sizeof key - 1};
    const struct gguf_kv *a = gguf_index_find(&first->keys, name);
    const struct gguf_kv *b = gguf_index_find(&part->keys, name);
    if (a && b ? gguf_kv_equal(a, b) : a == b) return true;
    return base_fail_at(err, BASE_MODEL, key, b ? (int64_t)b->offset : -1,
                        "part %d is not of the same split as the first part: a split was not "
                        "completed, or files were mixed; split the model again",
                        number + 1);
}

/* True if a file with a part's name has no split keys, or split.count is 1. */
static bool is_whole(const struct gguf_part *part)
{
    static const char *const keys[] = {"split.no", "split.tensors.count"};
    int64_t count;
    if (!part_int(part, "split.count", 0, &count, NULL) || count > 1) return false;
    for (size_t i = 0; count == 0 && i < sizeof keys / sizeof *keys; i++)
        if (gguf_index_find(&part->keys,
                            (struct gguf_str){.data = keys[i], .size = strlen(keys[i])}))
            return false;
    return true;
}

/* ---- Joining ---- */

/* Moves the last part's tensors to the end of the model's list. */
static bool move_tensors(struct gguf_file *file, struct gguf_part *part, struct base_error *err)
{
    if (part->tensor_count == 0) return true;
    uint64_t count = file->tensor_count + part->tensor_count;
    if (count > file->tensor_room) { /* doubling keeps the time linear in the number of parts */
        const uint64_t room = count > 2 * file->tensor_room ? count : 2 * file->tensor_room;
        struct gguf_tensor *joined = base_resize(file->tensor, room, sizeof *joined);
        if (!joined) return base_fail(err, BASE_NO_MEMORY, "no memory for the list of tensors");
        file->tensor = joined;
        file->tensor_room = room;
    }
    memcpy(file->tensor + file->tensor_count, part->tensor,
           part->tensor_count * sizeof *part->tensor);
    file->tensor_count = count;
    free(part->tensor);
    part->tensor = NULL;
    part->tensor_count = 0;
    return true;
}

/* Maps zeros past the end of a truncated part, and parses it again at its new address. */
static bool extend_part(struct gguf_part *part, int number, struct base_error *err)
{
    const uint64_t size = part->size, end = part->data_end;
    if (end <= size) return true;
    char *room = mmap(NULL, end, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (room == MAP_FAILED) return fail_system(err, "reserve addresses for the data");
    void *bytes = (void *)(uintptr_t)part->bytes;
    if (!base_os_map_move(bytes, size, room)) {
        munmap(room, end);
        return fail_system(err, "move the mapping");
    }
    gguf_part_free(part);
    part->map_size = end;
    part->may_lack_data = true;
    return gguf_part_parse(part, room, size, number, err) &&
           (part->data_end <= end ||
            base_fail(err, BASE_MODEL, "the file changed while it was opened"));
}

static bool add_part(struct gguf_file *file, const struct gguf_part_facts *facts, int count,
                     struct base_error *err)
{
    int number = file->part_count++;
    struct gguf_part *part = &file->part[number];
    file->size += facts->size;
    part->device = facts->device;
    part->inode = facts->inode;
    part->changed_ns = facts->changed_ns;
    part->written_ns = facts->written_ns;
    part->map_size = facts->size;
    part->may_lack_data = file->header_only;
    return gguf_part_parse(part, facts->bytes, facts->size, number, err) &&
           (!file->header_only || extend_part(part, number, err)) &&
           check_part(part, number, count, err) && check_id(&file->part[0], part, number, err) &&
           move_tensors(file, part, err);
}

/* Checks that need all parts. */
static bool finish(struct gguf_file *file, struct base_error *err)
{
    int64_t count;
    if (!part_int(&file->part[0], "split.tensors.count", (int64_t)file->tensor_count, &count,
                  err)) {
        return false;
    }
    if (count < 0 || (uint64_t)count != file->tensor_count) {
        return base_fail_at(err, BASE_MODEL, "split.tensors.count", -1,
                            "the parts have %" PRIu64 " tensors, not %" PRId64, file->tensor_count,
                            count);
    }
    if (!gguf_index_init(&file->tensors, file->tensor, file->tensor_count, sizeof *file->tensor,
                         err)) {
        return false;
    }
    const struct gguf_tensor *twice = gguf_index_duplicate(&file->tensors);
    if (!twice) return true;
    char item[GGUF_ITEM_SIZE];
    return base_fail_at(err, BASE_MODEL, gguf_item(twice->name, item), (int64_t)twice->offset,
                        "two tensors have this name");
}

static struct gguf_file *new_file(const char *path, int parts, struct base_error *err)
{
    struct gguf_file *file = calloc(1, sizeof *file);
    if (file) {
        file->path = strdup(path);
        file->part = calloc((size_t)parts, sizeof *file->part);
    }
    if (file && file->path && file->part) return file;
    gguf_close(file);
    return base_null(base_fail(err, BASE_NO_MEMORY, "no memory to open the file"));
}

static bool open_part(struct gguf_file *file, const char *path, int count, struct base_error *err)
{
    struct gguf_part_facts facts;
    if (count > 1 && access(path, F_OK) != 0) {
        return base_fail(err, BASE_MODEL, "part %d of %d of this split model is missing: %s",
                         file->part_count + 1, count, strerror(errno));
    }
    return map_file(path, &facts, err) && add_part(file, &facts, count, err);
}

/* Sets *count to 1 if the file is a complete model. Other errors in it are reported later. */
static bool detect_whole(const char *path, int *count, struct base_error *err)
{
    struct gguf_part_facts facts = {0};
    struct gguf_part part = {0};
    struct base_error wrong = BASE_ERROR_INIT;
    if (map_file(path, &facts, &wrong) &&
        gguf_part_parse(&part, facts.bytes, facts.size, 0, &wrong) && is_whole(&part))
        *count = 1;
    gguf_part_free(&part);
    if (facts.bytes) munmap((void *)(uintptr_t)facts.bytes, facts.size);
    return wrong.code != BASE_NO_MEMORY || base_fail(err, BASE_NO_MEMORY, "%s", wrong.text);
}

static struct gguf_file *open_file(const char *path, bool header_only, struct base_error *err)
{
    int count = split_count(path);
    const bool detected = count == 1 || detect_whole(path, &count, err);
    char *name = detected ? split_path(path, 0, count, err) : NULL;
    struct gguf_file *file = name ? new_file(name, count, err) : NULL;
    bool done = file != NULL;
    if (file) {
        file->mapped = true;
        file->header_only = header_only;
    }
    for (int i = 0; done && i < count; i++) {
        free(name);
        name = split_path(path, i, count, err);
        done = name && open_part(file, name, count, err);
    }
    if (done) {
        free(name);
        name = NULL;
        done = finish(file, err);
    }
    if (!done) {
        base_error_set_file(err, name ? name : path);
        gguf_close(file);
        file = NULL;
    }
    free(name);
    return file;
}

struct gguf_file *gguf_open(const char *path, struct base_error *err)
{
    return open_file(path, false, err);
}

struct gguf_file *gguf_open_header(const char *path, struct base_error *err)
{
    return open_file(path, true, err);
}

struct gguf_file *gguf_open_memory(const void *bytes, uint64_t size, const char *name,
                                   struct base_error *err)
{
    struct gguf_file *file = new_file(name, 1, err);
    const struct gguf_part_facts facts = {.bytes = bytes, .size = size};
    if (file && add_part(file, &facts, 1, err) && finish(file, err)) return file;
    base_error_set_file(err, name);
    gguf_close(file);
    return NULL;
}

struct gguf_file *gguf_open_head(const void *head, uint64_t head_size, uint64_t size,
                                 struct base_error *err)
{
    if (size < head_size) size = head_size;
    void *map = mmap(NULL, size, PROT_READ | PROT_WRITE,
                     MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (map == MAP_FAILED) {
        fail_system(err, "reserve addresses for the data");
        return NULL;
    }
    memcpy(map, head, head_size);
    const struct gguf_part_facts facts = {.bytes = map, .size = size};
    struct gguf_file *file = new_file("", 1, err);
    if (!file) munmap(map, size);
    if (file) file->mapped = true;
    if (file && add_part(file, &facts, 1, err) && finish(file, err)) return file;
    gguf_close(file);
    return NULL;
}

void gguf_close(struct gguf_file *file)
{
    if (!file) return;
    for (int i = 0; i < file->part_count; i++) {
        struct gguf_part *part = &file->part[i];
        if (file->mapped && part->map_size) munmap((void *)(uintptr_t)part->bytes, part->map_size);
        gguf_part_free(part);
    }
    for (struct gguf_given *g = file->given, *next; g; g = next) {
        next = g->next;
        free(g);
    }
    gguf_index_free(&file->tensors);
    free(file->tensor);
    free(file->part);
    free(file->path);
    free(file);
}

/* ---- Look-up ---- */

bool gguf_is_powerinfer(const struct gguf_file *file)
{
    return file->part[0].powerinfer;
}

uint32_t gguf_version(const struct gguf_file *file)
{
    return file->part[0].version;
}

const char *gguf_path(const struct gguf_file *file)
{
    return file->path;
}

uint64_t gguf_size(const struct gguf_file *file)
{
    return file->size;
}

int gguf_part_count(const struct gguf_file *file)
{
    return file->part_count;
}

uint64_t gguf_alignment(const struct gguf_file *file)
{
    return file->part[0].alignment;
}

struct gguf_part_facts gguf_part_facts(const struct gguf_file *file, int part)
{
    const struct gguf_part *p = &file->part[part];
    return (struct gguf_part_facts){.bytes = p->bytes,
                                    .size = p->size,
                                    .device = p->device,
                                    .inode = p->inode,
                                    .changed_ns = p->changed_ns,
                                    .written_ns = p->written_ns};
}

struct gguf_part_places gguf_part_places(const struct gguf_file *file, int part)
{
    const struct gguf_part *p = &file->part[part];
    return (struct gguf_part_places){.head_end = p->head_end,
                                     .data_start = p->data_start,
                                     .data_end = p->data_end,
                                     .alignment = p->alignment};
}

char *gguf_part_name(const struct gguf_file *file, int part, struct base_error *err)
{
    return split_path(file->path, part, file->part_count, err);
}

bool gguf_check_unchanged(const struct gguf_file *file, struct base_error *err)
{
    for (int i = 0; file->mapped && i < file->part_count; i++) {
        const struct gguf_part *part = &file->part[i];
        struct stat st;
        char *name = gguf_part_name(file, i, err);
        if (!name) return false;
        const bool changed =
            stat(name, &st) == 0 && (uint64_t)st.st_dev == part->device &&
            st.st_ino == part->inode &&
            ((uint64_t)st.st_size != part->size || base_os_written_ns(&st) != part->written_ns);
        if (changed) base_fail(err, BASE_MODEL, "the file changed while it was read");
        if (changed) base_error_set_file(err, name);
        free(name);
        if (changed) return false;
    }
    return true;
}

/* Keys whose values differ between parts. */
static bool is_of_part(struct gguf_str key)
{
    return gguf_str_begins(key, "split.") || gguf_str_is(key, "general.alignment");
}

bool gguf_check_parts(const struct gguf_file *file, struct base_error *err)
{
    for (int i = 1; i < file->part_count; i++) {
        for (uint64_t k = 0; k < file->part[i].entry_count; k++) {
            const struct gguf_kv *kv = &file->part[i].entry[k].kv;
            const struct gguf_kv *first = gguf_index_find(&file->part[0].keys, kv->key);
            if (is_of_part(kv->key)) continue;
            if (first && gguf_kv_equal(first, kv)) continue;
            char item[GGUF_ITEM_SIZE];
            base_fail_at(
                err, BASE_MODEL, gguf_item(kv->key, item), (int64_t)kv->offset,
                first ? "part %d of %d has a different value from the first: the parts are not "
                        "of one model"
                      : "part %d of %d has this key and the first does not: the parts are "
                        "not of one model",
                i + 1, file->part_count);
            char *name = gguf_part_name(file, i, NULL);
            base_error_set_file(err, name ? name : file->path);
            free(name);
            return false;
        }
    }
    return true;
}

uint64_t gguf_kv_count(const struct gguf_file *file)
{
    return file->part[0].entry_count;
}

const struct gguf_kv *gguf_kv_at(const struct gguf_file *file, uint64_t index)
{
    return index < file->part[0].entry_count ? &file->part[0].entry[index].kv : NULL;
}

const struct gguf_kv *gguf_kv_find(const struct gguf_file *file, const char *key)
{
    return gguf_kv_find_str(file, (struct gguf_str){.data = key, .size = strlen(key)});
}

const struct gguf_kv *gguf_kv_find_str(const struct gguf_file *file, struct gguf_str key)
{
    for (struct gguf_given *g = file->given; g; g = g->next)
        if (gguf_str_compare(g->kv.key, key) == 0) {
            g->used = true;
            return &g->kv;
        }
    return gguf_index_find(&file->part[0].keys, key);
}

bool gguf_override(struct gguf_file *file, struct gguf_str key, enum gguf_kind kind,
                   const void *bytes, uint64_t size, struct base_error *err)
{
    uint64_t room;
    struct gguf_given *g =
        base_add(key.size, size, &room) && base_add(room, sizeof *g, &room) ? malloc(room) : NULL;
    if (!g) return base_fail(err, BASE_NO_MEMORY, "no memory for a value of the metadata");
    g->kv = (struct gguf_kv){.key = {.data = g->bytes, .size = key.size},
                             .kind = kind,
                             .item = kind,
                             .count = 1,
                             .data = g->bytes + key.size,
                             .size = size,
                             .offset = UINT64_MAX,
                             .given = true};
    memcpy(g->bytes, key.data, key.size);
    if (size) memcpy(g->bytes + key.size, bytes, size);
    g->used = gguf_index_find(&file->part[0].keys, key) != NULL;
    g->next = file->given;
    file->given = g;
    return true;
}

const struct gguf_kv *gguf_override_at(const struct gguf_file *file, uint64_t index, bool *used)
{
    const struct gguf_given *g = file->given;
    while (g && index-- > 0) g = g->next;
    *used = g && g->used;
    return g ? &g->kv : NULL;
}

struct gguf_str gguf_array_str(const struct gguf_file *file, const struct gguf_kv *kv,
                               uint64_t index)
{
    struct gguf_str none = {.data = "", .size = 0};
    const struct gguf_entry *first = file->part[0].entry;
    const struct gguf_entry *entry = (const struct gguf_entry *)kv;
    if (entry < first || entry >= first + file->part[0].entry_count) return none;
    if (!entry->start || index >= kv->count) return none;
    /* Uses the recorded starts: another process may have changed the length in the map. */
    const uint64_t at = entry->start[index];
    const uint64_t end = index + 1 < kv->count ? entry->start[index + 1] : kv->size;
    return (struct gguf_str){.data = (const char *)kv->data + at + 8, .size = end - at - 8};
}

uint64_t gguf_tensor_count(const struct gguf_file *file)
{
    return file->tensor_count;
}

const struct gguf_tensor *gguf_tensor_at(const struct gguf_file *file, uint64_t index)
{
    return index < file->tensor_count ? &file->tensor[index] : NULL;
}

const struct gguf_tensor *gguf_tensor_find(const struct gguf_file *file, const char *name)
{
    return gguf_tensor_find_str(file, (struct gguf_str){.data = name, .size = strlen(name)});
}

const struct gguf_tensor *gguf_tensor_find_str(const struct gguf_file *file, struct gguf_str name)
{
    return gguf_index_find(&file->tensors, name);
}

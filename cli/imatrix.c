/* cli/imatrix.c: reads and writes files of importance matrices. See cli/imatrix.h. */
#include "cli/imatrix.h"
#include "base/size.h"
#include "cli/system.h"
#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char sums_end[] = ".in_sum2", counts_end[] = ".counts";

static int by_name(const void *a, const void *b)
{
    return gguf_str_compare(((const struct cli_imatrix_entry *)a)->name,
                            ((const struct cli_imatrix_entry *)b)->name);
}

const struct cli_imatrix_entry *cli_imatrix_find(const struct cli_imatrix *m, struct gguf_str name)
{
    const struct cli_imatrix_entry key = {.name = name};
    return m->n_entries ? bsearch(&key, m->entry, m->n_entries, sizeof key, by_name) : NULL;
}

/* values[i] = in[i] / count, or 1 if the count is 0; `in` has any alignment. */
static bool set_means(float *values, const void *in, uint64_t n, float count)
{
    bool sound = isfinite(count) && count >= 0.0f;
    memcpy(values, in, n * sizeof *values);
    for (uint64_t i = 0; i < n; i++) {
        values[i] = count > 0.0f ? values[i] / count : 1.0f;
        sound &= isfinite(values[i]) && values[i] >= 0.0f;
    }
    return sound;
}

static bool fail_value(struct gguf_str name, struct base_error *err)
{
    return base_fail(err, BASE_USAGE, "importance matrix: %.*s: values that are not mean squares",
                     (int)name.size, name.data);
}

static bool allocate(struct cli_imatrix *m, uint64_t entries, uint64_t values,
                     struct base_error *err)
{
    m->entry = calloc(entries + 1, sizeof *m->entry);
    m->means = calloc(values + 1, sizeof *m->means);
    return (m->entry && m->means) ||
           base_fail(err, BASE_NO_MEMORY, "not enough memory for an importance matrix");
}

/* ---- The GGUF form ---- */

static uint64_t elements_of(const struct gguf_tensor *t)
{
    return t->ne[0] * t->ne[1] * t->ne[2] * t->ne[3]; /* the reader checked the product */
}

static bool read_pair(struct cli_imatrix *m, const struct gguf_tensor *sums, float **next,
                      struct base_error *err)
{
    char name[256];
    const int size = (int)(sums->name.size - strlen(sums_end));
    snprintf(name, sizeof name, "%.*s%s", size, sums->name.data, counts_end);
    const struct gguf_tensor *counts = gguf_tensor_find(m->file, name);
    const uint64_t n = elements_of(sums), n_counts = counts ? elements_of(counts) : 0;
    if (n_counts == 0 || n % n_counts != 0 || counts->type->id != QUANT_F32 ||
        sums->type->id != QUANT_F32)
        return base_fail(err, BASE_USAGE, "importance matrix: %.*s: sums and counts do not fit",
                         size, sums->name.data);
    struct cli_imatrix_entry *e = &m->entry[m->n_entries++];
    *e = (struct cli_imatrix_entry){{sums->name.data, (uint64_t)size}, *next, n};
    for (uint64_t i = 0; i < n_counts; i++) {
        float count;
        memcpy(&count, (const char *)counts->data + i * sizeof count, sizeof count);
        const char *from = (const char *)sums->data + i * (n / n_counts) * sizeof(float);
        if (!set_means(*next, from, n / n_counts, count)) return fail_value(e->name, err);
        *next += n / n_counts;
    }
    return true;
}

static bool read_gguf(struct cli_imatrix *m, struct base_error *err)
{
    uint64_t n = 0, values = 0;
    for (uint64_t i = 0; i < gguf_tensor_count(m->file); i++) {
        const struct gguf_tensor *t = gguf_tensor_at(m->file, i);
        if (!gguf_str_ends(t->name, sums_end)) continue;
        n++;
        values += elements_of(t);
    }
    if (n == 0) return base_fail(err, BASE_USAGE, "not an importance matrix");
    if (!allocate(m, n, values, err)) return false;
    float *next = m->means;
    for (uint64_t i = 0; i < gguf_tensor_count(m->file); i++) {
        const struct gguf_tensor *t = gguf_tensor_at(m->file, i);
        if (gguf_str_ends(t->name, sums_end) && !read_pair(m, t, &next, err)) return false;
    }
    const struct gguf_kv *sets = gguf_kv_find(m->file, "imatrix.datasets");
    if (sets && sets->kind == GGUF_ARRAY && sets->item == GGUF_STRING && sets->count > 0) {
        const struct gguf_str set = gguf_array_str(m->file, sets, 0);
        base_buffer_add(&m->data_set, set.data, set.size);
    }
    return gguf_get_u32(m->file, "imatrix.chunk_count", &m->n_chunks, err);
}

/* ---- The legacy form ----
 *
 * i32 number of entries; for each: i32 length and name, i32 calls, i32 number of values and the
 * values (mean squares times calls); then, optionally, i32 chunks, i32 length and the text's
 * name. */

struct imatrix_reader {
    const char *at;
    uint64_t left;
};

static bool take(struct imatrix_reader *r, uint64_t n, const char **out)
{
    if (r->left < n) return false;
    *out = r->at;
    r->at += n;
    r->left -= n;
    return true;
}

static bool take_i32(struct imatrix_reader *r, int32_t *out)
{
    const char *bytes;
    if (!take(r, sizeof *out, &bytes)) return false;
    memcpy(out, bytes, sizeof *out);
    return *out >= 0;
}

static bool take_entry(struct imatrix_reader *r, struct cli_imatrix_entry *e, int32_t *calls,
                       const char **values)
{
    int32_t size, count;
    if (!take_i32(r, &size) || !take(r, (uint64_t)size, &e->name.data) || !take_i32(r, calls) ||
        !take_i32(r, &count) || !take(r, (uint64_t)count * sizeof(float), values))
        return false;
    e->name.size = (uint64_t)size;
    e->count = (uint64_t)count;
    return true;
}

static bool read_older(struct cli_imatrix *m, struct base_error *err)
{
    struct imatrix_reader r = {m->bytes.data, m->bytes.size};
    int32_t n, calls, chunks = 0, size;
    const char *values, *name;
    /* An entry has at least 12 bytes, so the size of the file bounds the memory for entries. */
    if (!take_i32(&r, &n) || n == 0 || r.left / 12 < (uint64_t)n)
        return base_fail(err, BASE_USAGE, "not an importance matrix");
    if (!allocate(m, (uint64_t)n, m->bytes.size / sizeof(float), err)) return false;
    float *next = m->means;
    for (int32_t i = 0; i < n; i++) {
        struct cli_imatrix_entry *e = &m->entry[i];
        if (!take_entry(&r, e, &calls, &values))
            return base_fail(err, BASE_USAGE, "importance matrix: damaged: ends too early");
        if (!set_means(next, values, e->count, calls > 0 ? (float)calls : 1.0f))
            return fail_value(e->name, err);
        e->mean = next;
        next += e->count;
    }
    m->n_entries = (uint64_t)n;
    if (take_i32(&r, &chunks)) m->n_chunks = (uint32_t)chunks;
    if (take_i32(&r, &size) && take(&r, (uint64_t)size, &name))
        base_buffer_add(&m->data_set, name, (size_t)size);
    return true;
}

/* ---- Reading ---- */

static bool is_gguf(const char *path)
{
    char magic[4] = {0};
    const int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    const bool has = fd >= 0 && pread(fd, magic, sizeof magic, 0) == (ssize_t)sizeof magic;
    if (fd >= 0) close(fd);
    return has && memcmp(magic, "GGUF", 4) == 0;
}

bool cli_imatrix_read(struct cli_imatrix *m, const char *path, struct base_error *err)
{
    *m = (struct cli_imatrix){0};
    bool ok;
    if (is_gguf(path))
        ok = (m->file = gguf_open(path, err)) && read_gguf(m, err);
    else
        ok = cli_file_read(path, &m->bytes, err) && read_older(m, err);
    if (ok && m->data_set.failed)
        ok = base_fail(err, BASE_NO_MEMORY, "not enough memory for an importance matrix");
    if (ok) qsort(m->entry, m->n_entries, sizeof *m->entry, by_name);
    if (!ok && err->code == BASE_MODEL) err->code = BASE_USAGE; /* the file is not a model */
    if (!ok) base_error_set_file(err, path);
    return ok;
}

void cli_imatrix_free(struct cli_imatrix *m)
{
    free(m->entry);
    free(m->means);
    gguf_close(m->file);
    base_buffer_free(&m->bytes);
    base_buffer_free(&m->data_set);
    *m = (struct cli_imatrix){0};
}

void cli_imatrix_names_add(struct cli_imatrix_names *names, struct gguf_str name)
{
    enum { SHOWN = 3 };
    if (names->count++ > SHOWN) return;
    const char *comma = names->used ? ", " : "";
    const size_t room = sizeof names->text - names->used;
    const int n = names->count > SHOWN
                      ? snprintf(names->text + names->used, room, ", ...")
                      : snprintf(names->text + names->used, room, "%s%.*s", comma,
                                 (int)(name.size < 64 ? name.size : 64), name.data);
    if (n > 0 && (size_t)n < room) names->used += (size_t)n;
}

/* ---- Writing ---- */

int cli_imatrix_by_name(const void *a, const void *b)
{
    return gguf_str_compare(((const struct cli_imatrix_sums *)a)->name,
                            ((const struct cli_imatrix_sums *)b)->name);
}

static void announce(struct gguf_writer *w, struct gguf_str name, const char *end, uint64_t ne0,
                     uint64_t ne1)
{
    char full[256]; /* a tensor's name has at most 64 bytes */
    const uint64_t ne[2] = {ne0, ne1};
    const int size = snprintf(full, sizeof full, "%.*s%s", (int)name.size, name.data, end);
    gguf_writer_tensor(w, (struct gguf_str){full, (uint64_t)size}, quant_type_by_id(QUANT_F32), 2,
                       ne);
}

void cli_imatrix_announce(struct gguf_writer *w, const struct cli_imatrix_sums *items, uint64_t n,
                          const struct gguf_str *data_sets, uint64_t n_data_sets, uint32_t n_chunks,
                          uint32_t chunk)
{
    gguf_writer_str(w, "general.type", "imatrix", strlen("imatrix"));
    gguf_writer_str_array(w, "imatrix.datasets", data_sets, n_data_sets);
    gguf_writer_u32(w, "imatrix.chunk_count", n_chunks);
    gguf_writer_u32(w, "imatrix.chunk_size", chunk);
    for (uint64_t i = 0; i < n; i++) {
        announce(w, items[i].name, sums_end, items[i].len, items[i].n_counts);
        announce(w, items[i].name, counts_end, 1, items[i].n_counts);
    }
}

static bool write_item(struct gguf_writer *w, const struct cli_imatrix_sums *s, float *room,
                       struct base_error *err)
{
    const uint64_t n = s->len * s->n_counts;
    bool finite = true;
    for (uint64_t i = 0; i < n; i++) {
        room[i] = (float)s->sum[i];
        finite &= isfinite(room[i]) != 0;
    }
    if (!finite)
        return base_fail(err, BASE_FAILED, "%.*s: its inputs are not finite", (int)s->name.size,
                         s->name.data);
    if (!gguf_writer_data(w, room, n * sizeof *room, err)) return false;
    for (uint64_t i = 0; i < s->n_counts; i++) room[i] = (float)s->count[i];
    return gguf_writer_data(w, room, s->n_counts * sizeof *room, err);
}

bool cli_imatrix_write(struct gguf_writer *w, const struct cli_imatrix_sums *items, uint64_t n,
                       struct base_error *err)
{
    uint64_t most = 1;
    for (uint64_t i = 0; i < n; i++)
        if (items[i].len * items[i].n_counts > most) most = items[i].len * items[i].n_counts;
    float *room = calloc(most, sizeof *room);
    bool ok = room || base_fail(err, BASE_NO_MEMORY, "not enough memory for an importance matrix");
    for (uint64_t i = 0; ok && i < n; i++) ok = write_item(w, &items[i], room, err);
    free(room);
    return ok;
}

/* cli/out/saved_logits.c: files of logits. See cli/out/saved_logits.h. */
#include "cli/out/saved_logits.h"
#include "base/interrupt.h"
#include "base/size.h"
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

struct header { /* f32 */
    char magic[8];
    uint32_t n_vocab, chunk;
    uint64_t n_ids;
};
static const char magic[8] = {'I', 'N', 'F', 'E', 'R', 'L', 'G', '1'};

struct header16 { /* u16 */
    char magic[8];
    uint32_t chunk, n_vocab, n_chunks;
};
static const char magic16[8] = {'_', 'l', 'o', 'g', 'i', 't', 's', '_'};

_Static_assert(sizeof(struct header) == 24, "the header has no padding");
_Static_assert(sizeof(struct header16) == 20, "the header has no padding");

enum { ROW_HEAD = 4 }; /* u16: scale and minimum, in units of a code */

/* Returns the size of a row in codes. */
static uint64_t row_codes(uint32_t n_vocab)
{
    return ROW_HEAD + (n_vocab + (uint64_t)1) / 2 * 2;
}

/* ---- Writing ---- */

static bool write_header16(struct cli_saved_writer *w, uint32_t chunk, uint64_t n_ids,
                           struct base_error *err)
{
    struct header16 h = {.chunk = chunk, .n_vocab = w->n_vocab};
    if (n_ids / chunk > INT32_MAX)
        return base_fail(err, BASE_USAGE, "too many chunks for logits of this form");
    h.n_chunks = (uint32_t)(n_ids / chunk);
    memcpy(h.magic, magic16, sizeof magic16);
    return base_output_write(&w->file, &h, sizeof h, err);
}

bool cli_saved_begin(struct cli_saved_writer *w, bool is_log, uint32_t n_vocab, uint32_t chunk,
                     const int32_t *ids, uint64_t n_ids, struct base_error *err)
{
    struct header h = {.n_vocab = n_vocab, .chunk = chunk, .n_ids = n_ids};
    memcpy(h.magic, magic, sizeof magic);
    w->n_vocab = n_vocab;
    w->is_log = is_log;
    return (is_log ? write_header16(w, chunk, n_ids, err)
                   : base_output_write(&w->file, &h, sizeof h, err)) &&
           base_output_write(&w->file, ids, n_ids * sizeof *ids, err);
}

/* Encodes a row of logits. */
static void encode_row(const float *logits, uint32_t n, uint16_t *out)
{
    float highest = logits[0], lowest = logits[0];
    double sum = 0;
    for (uint32_t i = 1; i < n; i++) {
        if (logits[i] > highest) highest = logits[i];
        if (logits[i] < lowest) lowest = logits[i];
    }
    if (lowest < highest - 16) lowest = highest - 16;
    for (uint32_t i = 0; i < n; i++) sum += exp((double)logits[i] - (double)highest);
    const float scale = (highest - lowest) / 65535.0f;
    const float least = (float)((double)lowest - (double)highest - log(sum));
    memset(out, 0, row_codes(n) * sizeof *out);
    memcpy(out, &scale, sizeof scale);
    memcpy(out + 2, &least, sizeof least);
    for (uint32_t i = 0; scale > 0 && i < n; i++) {
        const float code = logits[i] > lowest ? (logits[i] - lowest) / scale : 0;
        out[ROW_HEAD + i] = code < 65535 ? (uint16_t)lrintf(code) : 65535;
    }
}

static bool write_rows16(struct cli_saved_writer *w, const float *logits, uint64_t rows,
                         struct base_error *err)
{
    const uint64_t codes = row_codes(w->n_vocab);
    if (rows > w->room) {
        free(w->rows);
        w->room = rows;
        w->rows = malloc(rows * codes * sizeof *w->rows);
    }
    if (!w->rows) {
        w->room = 0;
        return base_fail(err, BASE_NO_MEMORY, "not enough memory to save logits");
    }
    for (uint64_t r = 0; r < rows; r++)
        encode_row(logits + r * w->n_vocab, w->n_vocab, w->rows + r * codes);
    return base_output_write(&w->file, w->rows, rows * codes * sizeof *w->rows, err);
}

bool cli_saved_write_rows(struct cli_saved_writer *w, const float *logits, uint64_t rows,
                          struct base_error *err)
{
    return w->is_log ? write_rows16(w, logits, rows, err)
                     : base_output_write(&w->file, logits, rows * w->n_vocab * sizeof *logits, err);
}

void cli_saved_end(struct cli_saved_writer *w)
{
    free(w->rows);
    w->rows = NULL;
}

/* ---- Reading ---- */

static uint64_t row_bytes(const struct cli_saved_reader *r)
{
    return r->is_log ? row_codes(r->n_vocab) * sizeof *r->codes
                     : r->n_vocab * (uint64_t)sizeof *r->rows;
}

/* Computes the size that the file must have after its header; false on overflow. */
static bool expected_size(const struct cli_saved_reader *r, uint32_t chunk, uint64_t n_ids,
                          uint64_t *size)
{
    uint64_t rows, logits, ids;
    if (chunk < 4 || n_ids < chunk || n_ids % chunk != 0) return false;
    rows = n_ids / chunk * (chunk - 1 - chunk / 2);
    return base_mul(n_ids, sizeof(int32_t), &ids) && base_mul(rows, row_bytes(r), &logits) &&
           base_add(ids, logits, size);
}

/* Reads the header of either form; the file position is then after it. */
static bool read_header(struct cli_saved_reader *r, uint32_t *n_vocab, uint32_t *chunk,
                        uint64_t *n_ids, struct base_error *err)
{
    struct header h;
    struct header16 h16;
    if (fread(&h16, sizeof h16, 1, r->file) == 1 &&
        memcmp(h16.magic, magic16, sizeof magic16) == 0) {
        r->is_log = true;
        *n_vocab = h16.n_vocab;
        *chunk = h16.chunk;
        *n_ids = h16.n_chunks * (uint64_t)h16.chunk;
        return true;
    }
    rewind(r->file);
    if (fread(&h, sizeof h, 1, r->file) != 1 || memcmp(h.magic, magic, sizeof magic) != 0)
        return base_fail(err, BASE_USAGE,
                         "not logits saved by infer perplexity --save-logits or llama-perplexity");
    *n_vocab = h.n_vocab;
    *chunk = h.chunk;
    *n_ids = h.n_ids;
    return true;
}

static bool read_ids(struct cli_saved_reader *r, struct text_ids *ids, uint32_t *chunk,
                     struct base_error *err)
{
    struct stat st;
    uint64_t size, n_ids;
    uint32_t n_vocab;
    if (!read_header(r, &n_vocab, chunk, &n_ids, err)) return false;
    if (n_vocab != r->n_vocab)
        return base_fail(err, BASE_USAGE,
                         "saved from a model with %u tokens, this one has %u: not comparable",
                         n_vocab, r->n_vocab);
    const uint64_t head = r->is_log ? sizeof(struct header16) : sizeof(struct header);
    if (fstat(fileno(r->file), &st) != 0 || !expected_size(r, *chunk, n_ids, &size) ||
        !base_add(size, head, &size) || size != (uint64_t)st.st_size)
        return base_fail(err, BASE_USAGE, "damaged: its size does not fit its header");
    for (uint64_t i = 0; i < n_ids; i++) {
        int32_t id;
        if (!base_goes_on(err)) return false;
        if (fread(&id, sizeof id, 1, r->file) != 1 || id < 0 || (uint32_t)id >= n_vocab)
            return base_fail(err, BASE_USAGE, "damaged: id %llu is not one of the vocabulary",
                             (unsigned long long)i);
        if (!text_ids_add(ids, id, err)) return false;
    }
    return true;
}

bool cli_saved_open(struct cli_saved_reader *r, const char *path, uint32_t n_vocab,
                    struct text_ids *ids, uint32_t *chunk, struct base_error *err)
{
    r->path = path;
    r->n_vocab = n_vocab;
    r->file = fopen(path, "rbe");
    bool ok =
        r->file ? read_ids(r, ids, chunk, err)
                : base_goes_on(err) && base_fail(err, errno == ENOMEM ? BASE_NO_MEMORY : BASE_USAGE,
                                                 "cannot read: %s", strerror(errno));
    if (!ok) base_error_set_file(err, path);
    return ok;
}

static bool make_room(struct cli_saved_reader *r, uint64_t rows, struct base_error *err)
{
    if (rows > r->room) {
        free(r->rows);
        free(r->codes);
        r->room = rows;
        r->rows = malloc(rows * r->n_vocab * sizeof *r->rows);
        r->codes = r->is_log ? malloc(rows * row_bytes(r)) : NULL;
    }
    if (r->rows && (r->codes || !r->is_log)) return true;
    r->room = 0;
    return base_fail(err, BASE_NO_MEMORY, "not enough memory for saved logits");
}

static void decode_row(const uint16_t *codes, uint32_t n, float *out)
{
    float scale, least;
    memcpy(&scale, codes, sizeof scale);
    memcpy(&least, codes + 2, sizeof least);
    for (uint32_t i = 0; i < n; i++) out[i] = least + scale * (float)codes[ROW_HEAD + i];
}

bool cli_saved_read_rows(struct cli_saved_reader *r, uint64_t rows, const float **out,
                         struct base_error *err)
{
    if (!make_room(r, rows, err)) return false;
    *out = r->rows;
    if (fread(r->is_log ? (void *)r->codes : (void *)r->rows, row_bytes(r), rows, r->file) != rows)
        return base_fail_file(err, BASE_FAILED, r->path,
                              "cannot read the saved logits to their end");
    for (uint64_t i = 0; r->is_log && i < rows; i++)
        decode_row(r->codes + i * row_codes(r->n_vocab), r->n_vocab, r->rows + i * r->n_vocab);
    return true;
}

void cli_saved_close(struct cli_saved_reader *r)
{
    if (r->file) fclose(r->file);
    free(r->rows);
    free(r->codes);
    *r = (struct cli_saved_reader){0};
}

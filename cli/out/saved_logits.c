/* cli/out/saved_logits.c: logits in a file. See cli/out/saved_logits.h. */
#include "cli/out/saved_logits.h"
#include "base/interrupt.h"
#include "base/size.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

struct header {
    char magic[8];
    uint32_t n_vocab, chunk;
    uint64_t n_ids;
};
static const char magic[8] = {'I', 'N', 'F', 'E', 'R', 'L', 'G', '1'};

_Static_assert(sizeof(struct header) == 24, "the header has no padding");

bool cli_saved_begin(struct cli_saved_writer *w, uint32_t n_vocab, uint32_t chunk,
                     const int32_t *ids, uint64_t n_ids, struct base_error *err)
{
    struct header h = {.n_vocab = n_vocab, .chunk = chunk, .n_ids = n_ids};
    memcpy(h.magic, magic, sizeof magic);
    w->n_vocab = n_vocab;
    return base_output_write(&w->file, &h, sizeof h, err) &&
           base_output_write(&w->file, ids, n_ids * sizeof *ids, err);
}

bool cli_saved_write_rows(struct cli_saved_writer *w, const float *logits, uint64_t rows,
                          struct base_error *err)
{
    return base_output_write(&w->file, logits, rows * w->n_vocab * sizeof *logits, err);
}

/* The size that the file must have; false when it overflows. */
static bool expected_size(const struct header *h, uint64_t *size)
{
    uint64_t rows, logits, ids;
    if (h->chunk < 4 || h->n_ids < h->chunk || h->n_ids % h->chunk != 0) return false;
    rows = h->n_ids / h->chunk * (h->chunk - 1 - h->chunk / 2);
    return base_mul(h->n_ids, sizeof(int32_t), &ids) &&
           base_mul(rows, h->n_vocab * (uint64_t)sizeof(float), &logits) &&
           base_add(ids, logits, size) && base_add(*size, sizeof *h, size);
}

static bool read_header(struct cli_saved_reader *r, struct text_ids *ids, uint32_t *chunk,
                        struct base_error *err)
{
    struct header h;
    struct stat st;
    uint64_t size;
    if (fread(&h, sizeof h, 1, r->file) != 1 || memcmp(h.magic, magic, sizeof magic) != 0)
        return base_fail(err, BASE_USAGE, "not logits saved by infer perplexity --save-logits");
    if (h.n_vocab != r->n_vocab)
        return base_fail(err, BASE_USAGE,
                         "saved from a model with %u tokens, this one has %u: not comparable",
                         h.n_vocab, r->n_vocab);
    if (fstat(fileno(r->file), &st) != 0 || !expected_size(&h, &size) ||
        size != (uint64_t)st.st_size)
        return base_fail(err, BASE_USAGE, "damaged: its size does not fit its header");
    *chunk = h.chunk;
    for (uint64_t i = 0; i < h.n_ids; i++) {
        int32_t id;
        if (!base_goes_on(err)) return false;
        if (fread(&id, sizeof id, 1, r->file) != 1 || id < 0 || (uint32_t)id >= h.n_vocab)
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
        r->file ? read_header(r, ids, chunk, err)
                : base_goes_on(err) && base_fail(err, errno == ENOMEM ? BASE_NO_MEMORY : BASE_USAGE,
                                                 "cannot read: %s", strerror(errno));
    if (!ok) base_error_set_file(err, path);
    return ok;
}

bool cli_saved_read_rows(struct cli_saved_reader *r, uint64_t rows, const float **out,
                         struct base_error *err)
{
    if (rows > r->room) {
        free(r->rows);
        r->room = rows;
        r->rows = malloc(rows * r->n_vocab * sizeof *r->rows);
    }
    if (!r->rows) {
        r->room = 0;
        return base_fail(err, BASE_NO_MEMORY, "not enough memory for saved logits");
    }
    *out = r->rows;
    if (fread(r->rows, sizeof *r->rows * r->n_vocab, rows, r->file) == rows) return true;
    base_fail(err, BASE_FAILED, "cannot read the saved logits to their end");
    base_error_set_file(err, r->path);
    return false;
}

void cli_saved_close(struct cli_saved_reader *r)
{
    if (r->file) fclose(r->file);
    free(r->rows);
    *r = (struct cli_saved_reader){0};
}

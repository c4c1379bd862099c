/* cli/imatrix.h: importance matrices: of each weight matrix the mean squares of its inputs.
 *
 * Two forms of file are read, the GGUF form of llama-imatrix (general.type "imatrix", for each
 * tensor NAME.in_sum2 and NAME.counts) and the older binary one; the GGUF form is written. */
#ifndef CLI_IMATRIX_H
#define CLI_IMATRIX_H

#include "base/buffer.h"
#include "base/error.h"
#include "gguf/gguf.h"

struct cli_imatrix_entry {
    struct gguf_str name; /* of the weights' tensor */
    const float *mean; /* [count]: mean squares, one for each element of a row, matrix by matrix */
    uint64_t count;
};

struct cli_imatrix {
    struct cli_imatrix_entry *entry; /* [n_entries], by name */
    uint64_t n_entries;
    uint32_t n_chunks;           /* pieces of text that it was made of; 0: unknown */
    struct base_buffer data_set; /* the text's name */
    /* What the entries point into. */
    struct gguf_file *file;   /* the GGUF form */
    struct base_buffer bytes; /* the older form */
    float *means;
};

/* BASE_USAGE with the file's name for one that cannot be read, is damaged, or has values that are
 * no finite numbers or negative; BASE_NO_MEMORY. To be freed also after an error. */
bool cli_imatrix_read(struct cli_imatrix *m, const char *path, struct base_error *err);
void cli_imatrix_free(struct cli_imatrix *m);

/* The entry of a tensor; NULL when there is none. */
const struct cli_imatrix_entry *cli_imatrix_find(const struct cli_imatrix *m, struct gguf_str name);

/* What is written of a tensor: sums of squares of n_counts matrices (or of all matrices together,
 * with one count), and how many inputs each has seen. */
struct cli_imatrix_sums {
    struct gguf_str name;
    const double *sum; /* [n_counts][len] */
    const uint64_t *count;
    uint64_t len, n_counts;
};

/* Announces, in the order of the items, and writes a matrix; the writer's output is the caller's to
 * claim and to close. BASE_FAILED for sums that are no finite numbers. */
void cli_imatrix_announce(struct gguf_writer *w, const struct cli_imatrix_sums *items, uint64_t n,
                          const char *data_set, uint32_t n_chunks, uint32_t chunk);
bool cli_imatrix_write(struct gguf_writer *w, const struct cli_imatrix_sums *items, uint64_t n,
                       struct base_error *err);

#endif

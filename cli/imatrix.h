/* cli/imatrix.h: importance matrices: the mean squares of the inputs of each weight matrix.
 *
 * Two forms of file are read: the GGUF form of llama-imatrix (general.type "imatrix", and
 * NAME.in_sum2 and NAME.counts for each tensor) and the legacy binary one. The GGUF form is
 * written. */
#pragma once

#include "base/buffer.h"
#include "base/error.h"
#include "gguf/gguf.h"

struct cli_imatrix_entry {
    struct gguf_str name; /* name of the weights' tensor */
    const float *mean;    /* [count]: mean squares, one per element of a row, matrix by matrix */
    uint64_t count;
};

struct cli_imatrix {
    struct cli_imatrix_entry *entry; /* [n_entries], by name */
    uint64_t n_entries;
    uint32_t n_chunks;           /* number of chunks of the text that was evaluated; 0: unknown */
    struct base_buffer data_set; /* name of that text */
    /* The memory that the entries point to: */
    struct gguf_file *file;   /* the GGUF form */
    struct base_buffer bytes; /* the legacy form */
    float *means;
};

/* Reads a file. Fails with BASE_USAGE and the file's name if it cannot be read, is damaged, or has
 * values that are negative or not finite. The caller frees *m, after a failure too. */
bool cli_imatrix_read(struct cli_imatrix *m, const char *path, struct base_error *err);
void cli_imatrix_free(struct cli_imatrix *m);

/* Returns the entry of a tensor; NULL if there is none. */
const struct cli_imatrix_entry *cli_imatrix_find(const struct cli_imatrix *m, struct gguf_str name);

/* The names of tensors for a message: the first ones, and their number. */
struct cli_imatrix_names {
    uint64_t count;
    size_t used;
    char text[256];
};
void cli_imatrix_names_add(struct cli_imatrix_names *names, struct gguf_str name);

/* The sums of a tensor, for writing: sums of squares for n_counts matrices (or for all matrices
 * together, with one count), and the number of inputs of each. */
struct cli_imatrix_sums {
    struct gguf_str name;
    const double *sum; /* [n_counts][len] */
    const uint64_t *count;
    uint64_t len, n_counts;
};

int cli_imatrix_by_name(const void *a, const void *b); /* for qsort and bsearch */

/* announce declares a matrix's keys and tensors in the order of the items; write writes them. The
 * caller claims and closes the writer's output. BASE_FAILED for sums that are not finite. */
void cli_imatrix_announce(struct gguf_writer *w, const struct cli_imatrix_sums *items, uint64_t n,
                          const struct gguf_str *data_sets, uint64_t n_data_sets, uint32_t n_chunks,
                          uint32_t chunk);
bool cli_imatrix_write(struct gguf_writer *w, const struct cli_imatrix_sums *items, uint64_t n,
                       struct base_error *err);

/* cli/batch/batch_output.h: the output of answers, one line each: standard output, or a file, which
 * may have answers of an earlier run (--resume).
 *
 * Output continues at the end of the file: an incomplete last line is removed, and answers in the
 * file are not written again. The member "line" of an object is the number of the line that it
 * answers; plain lines answer the lines of the part in order; so do the records of a table (csv),
 * after its header.
 *
 * FILE.input records what the answers of FILE belong to:
 *
 *     model SHA256       of pieces of the model's file (cli_model_hash_pieces)
 *     7 HASH             a line of the input that was answered: its number, and a hash of its text
 *     ...                appended before each answer; the latest of a number counts
 *
 * A plain file without it is not known to be one of answers, and is refused. */
#pragma once

#include "base/buffer.h"
#include "base/error.h"
#include "base/output.h"
#include <stdint.h>

struct cli_batch_line {
    uint64_t number, hash; /* of the input */
    uint64_t order;        /* in the file */
};

struct cli_batch_lines {
    struct cli_batch_line *item; /* [count], by number, then by order */
    size_t count, room;
};

struct cli_batch_output {
    const char *path;             /* of --resume; NULL: see the next member */
    struct base_output *file;     /* of -o; NULL: standard output */
    int fd, input_fd;             /* of FILE and FILE.input */
    struct cli_batch_lines done;  /* the answered lines, of a file of objects; without hashes */
    struct cli_batch_lines input; /* the records of FILE.input */
    bool has_input;               /* there was a FILE.input */
    bool csv, has_header;         /* lines are records of a table; it has its header */
    uint64_t n_plain;             /* number of answers in a file of plain lines */
    uint64_t n_held;              /* number of answers in the file */
    uint64_t n_failed;            /* number of those with an "error" */
};

/* Opens and reads the file and its FILE.input, or creates them, and locks the file against other
 * processes. `model` is the hash of the model's file. Fails with BASE_USAGE if the file is locked,
 * has other content or answers of another model; it is then unchanged. */
bool cli_batch_output_open(struct cli_batch_output *o, const char *path, bool plain, bool csv,
                           const char *model, struct base_error *err);
/* Sets *has: whether the line with this number, the n-th (from 0 on) of the part, has an answer.
 * Fails with BASE_USAGE if it has one and another hash than the line that was answered. */
bool cli_batch_output_has(const struct cli_batch_output *o, uint64_t number, uint64_t n,
                          uint64_t hash, bool *has, struct base_error *err);
/* Writes a complete line, the answer of the line `number`, with one write, and clears the buffer.
 */
bool cli_batch_output_write(struct cli_batch_output *o, uint64_t number, uint64_t hash,
                            struct base_buffer *line, struct base_error *err);
/* Writes the header of a table, unless the file has one, and clears the buffer. */
bool cli_batch_output_begin(struct cli_batch_output *o, struct base_buffer *header,
                            struct base_error *err);
void cli_batch_output_close(struct cli_batch_output *o); /* may be all zeros */

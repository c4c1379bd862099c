/* cli/batch/batch_output.h: the output of answers, one line each: standard output, or a file, which
 * may have answers of an earlier run (--resume).
 *
 * Output continues at the end of the file: an incomplete last line is removed, and answers in the
 * file are not written again. The member "line" of an object is the number of the line that it
 * answers; plain lines answer the lines of the part in order. */
#ifndef CLI_BATCH_BATCH_OUTPUT_H
#define CLI_BATCH_BATCH_OUTPUT_H

#include "base/buffer.h"
#include "base/error.h"
#include <stdint.h>

struct cli_batch_output {
    const char *path;    /* NULL: standard output */
    int fd;              /* of the file */
    unsigned char *done; /* [n_done / 8]: for objects, one bit per line of the input */
    uint64_t n_done;     /* number of bits */
    uint64_t n_plain;    /* number of lines in a file of plain lines */
    uint64_t n_held;     /* number of lines in the file */
    uint64_t n_failed;   /* number of those with an "error" */
};

/* Opens and reads the file, or creates it, and locks it against other processes. Fails with
 * BASE_USAGE if it is locked or has other content; it is then unchanged. */
bool cli_batch_output_open(struct cli_batch_output *o, const char *path, bool plain,
                           struct base_error *err);
/* Returns whether the line with this number, the n-th (from 0 on) of the part, has an answer. */
bool cli_batch_output_has(const struct cli_batch_output *o, uint64_t number, uint64_t n);
/* Writes a complete line with one write, and clears the buffer. */
bool cli_batch_output_write(struct cli_batch_output *o, struct base_buffer *line,
                            struct base_error *err);
void cli_batch_output_close(struct cli_batch_output *o); /* may be all zeros */

#endif

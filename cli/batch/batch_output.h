/* cli/batch/batch_output.h: where answers go, a line each: standard output, or a file that holds
 * those of an earlier run (--resume).
 *
 * The file is taken up where it ends: a last line without its end is cut off, and lines that it
 * holds are not written again. Objects say by their member "line" which they answer; of plain lines
 * the first one answers the first line of the part, and so on. */
#ifndef CLI_BATCH_BATCH_OUTPUT_H
#define CLI_BATCH_BATCH_OUTPUT_H

#include "base/buffer.h"
#include "base/error.h"
#include <stdint.h>

struct cli_batch_output {
    const char *path;    /* NULL: standard output */
    int fd;              /* of the file */
    unsigned char *done; /* [n_done / 8]: a bit for each line of the input; objects */
    uint64_t n_done;     /* bits */
    uint64_t n_plain;    /* lines that a file of plain lines held */
    uint64_t n_held;     /* lines that the file held */
};

/* Opens and reads the file, if there is one, or makes it; it is locked against other processes.
 * BASE_USAGE for a file that is locked, and for one that holds something else; such a file is left
 * as it was. */
bool cli_batch_output_open(struct cli_batch_output *o, const char *path, bool plain,
                           struct base_error *err);
/* Whether the line with this number, the n-th (from 0) of the part, has its answer. */
bool cli_batch_output_has(const struct cli_batch_output *o, uint64_t number, uint64_t n);
/* Writes a whole line at once, and clears the buffer. */
bool cli_batch_output_write(struct cli_batch_output *o, struct base_buffer *line,
                            struct base_error *err);
void cli_batch_output_close(struct cli_batch_output *o); /* a zeroed one is fine */

#endif

/* cli/batch/batch_input.h: lines of a descriptor as they come.
 *
 * Owns: where a line ends, how long it may be. Refuses: what is in it. Memory is that of the
 * longest line, at most CLI_BATCH_LINE_MAX. */
#ifndef CLI_BATCH_BATCH_INPUT_H
#define CLI_BATCH_BATCH_INPUT_H

#include "base/buffer.h"
#include "base/error.h"
#include <stdint.h>

enum { CLI_BATCH_LINE_MAX = 64 << 20 };

struct cli_batch_input {
    int fd; /* 0: standard input; not owned */
    struct base_buffer bytes;
    size_t at, looked_at; /* in them: where the next line begins, up to where none ended */
    uint64_t number;      /* of the latest line, from 1 */
    bool ended, too_long; /* too_long: the latest line was; it is left out */
};

/* Opens the file; NULL or "-" is standard input, and NULL a terminal an error that names `command`.
 * *in is zero. */
bool cli_batch_input_open(struct cli_batch_input *in, const char *path, const char *command,
                          struct base_error *err);

enum cli_batch_read { CLI_BATCH_LINE, CLI_BATCH_LATER, CLI_BATCH_END, CLI_BATCH_FAILED };

/* The next line without its end (LF), valid until the next call. CLI_BATCH_LATER: not all of it is
 * there yet, which only comes without `wait`. A last line needs no end. UTF-8's byte-order mark is
 * left out, UTF-16 is BASE_USAGE. */
enum cli_batch_read cli_batch_input_next(struct cli_batch_input *in, bool wait, const char **line,
                                         size_t *size, struct base_error *err);
void cli_batch_input_free(struct cli_batch_input *in); /* not the descriptor */

#endif

/* cli/batch/batch_input.h: reads the lines of a descriptor as they arrive.
 *
 * It finds line ends and limits the length of lines; it does not interpret them. It needs the
 * memory of the longest line, at most CLI_BATCH_LINE_MAX. */
#pragma once

#include "base/buffer.h"
#include "base/error.h"
#include <stdint.h>

enum { CLI_BATCH_LINE_MAX = 64 << 20 };

struct cli_batch_input {
    int fd; /* 0: standard input; the caller closes it */
    struct base_buffer bytes;
    size_t at, looked_at; /* start of the next line; end of the bytes searched for a line end */
    uint64_t number;      /* number of the latest line, from 1 on */
    bool ended, too_long; /* too_long: the latest line exceeds the limit and is skipped */
    bool csv; /* lines are records of a table: a line end within quotes is part of one */
    enum cli_batch_quotes { CLI_QUOTES_NONE, CLI_QUOTES_OPEN, CLI_QUOTES_CLOSED } quotes;
    bool unfinished; /* the latest line, which is the last one, has no line end */
};

/* Opens the file; NULL or "-" is standard input. NULL is an error that names `command` if standard
 * input is a terminal. *in must be all zeros. */
bool cli_batch_input_open(struct cli_batch_input *in, const char *path, const char *command,
                          struct base_error *err);

enum cli_batch_read { CLI_BATCH_LINE, CLI_BATCH_LATER, CLI_BATCH_END, CLI_BATCH_FAILED };

/* Reads the next line without its end (LF); it is valid until the next call. Returns
 * CLI_BATCH_LATER, only without `wait`, if the line is not complete yet. The last line needs no
 * line end. Skips a UTF-8 byte-order mark; UTF-16 is BASE_USAGE. */
enum cli_batch_read cli_batch_input_next(struct cli_batch_input *in, bool wait, const char **line,
                                         size_t *size, struct base_error *err);

/* A command that answers lines in groups. `take` keeps a line; `answer` answers what was kept. */
struct cli_batch_groups {
    bool (*take)(void *user, const char *line, size_t size, struct base_error *err);
    bool (*answer)(void *user, struct base_error *err);
    const size_t *n_items, *n_bytes; /* what is kept */
    size_t items_max, bytes_max;     /* a group is complete at this number, or above these bytes */
    void *user;
};

/* Reads all lines. A group is answered when it is complete, and when the input has no further line
 * yet, so that a writer who waits for answers gets them. */
bool cli_batch_input_answer(struct cli_batch_input *in, const struct cli_batch_groups *g,
                            struct base_error *err);

/* Returns the number of lines of the whole input if it is a file, which is read for this; 0 if it
 * is a pipe. `blank`: blank lines count too. */
uint64_t cli_batch_input_count(const struct cli_batch_input *in, bool blank);
/* Returns whether a line is empty or has only white space. */
bool cli_batch_is_blank(const char *line, size_t size);
void cli_batch_input_free(struct cli_batch_input *in); /* does not close the descriptor */

/* cli/progress.h: the line on standard error that shows how far long work is.
 *
 *     evaluating: 34816 of 81920 tokens, 1203/s, 0:39 left  |██████▊         |
 *
 * Only on a terminal. It appears after a second, follows the terminal's width, and is erased before
 * any other output (cli/system.h erases it) and at the end of the work. There is one line, so there
 * is one state, and no argument for it: a timer's signal handler on the calling thread shows it. */
#pragma once

#include <stddef.h>
#include <stdint.h>

enum { CLI_PROGRESS_LINE = 512, CLI_PROGRESS_NOTE = 64 };

/* Begins a line: "reading", "tokens". The texts must outlive the work. The unit "bytes" is shown as
 * MB, "%" (of 1000) as a share without rate. total 0: unknown. Ends the line before it, if there is
 * one. */
void cli_progress_begin(const char *what, const char *unit, uint64_t total);
/* Sets the number of units that are done; add may be called by any thread. */
void cli_progress_set(uint64_t done);
void cli_progress_add(uint64_t n);
/* Counts n units as done that took no time, so that they do not count in the rate. */
void cli_progress_skip(uint64_t n);
/* Sets a text to show after the numbers: "2 failed". */
void cli_progress_note(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* Adds count(object) - origin to the units that are done, each time the line is shown. `count` must
 * be async-signal-safe, and the object must exist until the end. */
typedef uint64_t cli_progress_count(const void *object);
void cli_progress_watch(cli_progress_count *count, const void *object, uint64_t origin);
/* Erases the line and ends it; any number of times. */
void cli_progress_end(void);

/* Erases the line until cli_progress_show, for other output between the two. */
void cli_progress_hide(void);
void cli_progress_show(void);

/* What is shown. */
struct cli_progress_view {
    const char *what, *unit, *note; /* note "": none */
    uint64_t done, total;
    uint64_t first;   /* units that were done at the beginning */
    uint64_t ms;      /* milliseconds since the beginning */
    uint64_t ms_done; /* those when `done` was reached */
};

/* Writes the line for a terminal of `width` columns, without a line end and at most width - 1
 * columns wide; leaves out what does not fit: the bar, then the note, rate, remaining time, unit.
 * Returns the number of bytes; *columns: the columns. Async-signal-safe. */
size_t cli_progress_format(const struct cli_progress_view *view, size_t width,
                           char out[CLI_PROGRESS_LINE], size_t *columns);

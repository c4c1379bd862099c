/* base/error.h: the one error object of the program.
 *
 * Every function that can fail takes `struct base_error *err` as its last parameter and returns
 * false (or NULL) on failure, true (or a pointer) on success: one convention everywhere. The first
 * error sticks: later calls do not overwrite it, so cleanup paths need no special care. Only cli/
 * prints and exits. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The codes are the exit statuses that docs/scripting.md promises. */
enum base_code {
    BASE_OK = 0,
    BASE_FAILED = 1,       /* failed while running */
    BASE_USAGE = 2,        /* bad option, grammar, schema or template */
    BASE_MODEL = 3,        /* model file missing, damaged or unsupported */
    BASE_NO_MEMORY = 4,    /* not enough memory */
    BASE_TOO_LONG = 5,     /* the input does not fit the context */
    BASE_CUT = 6,          /* output cut by a limit while a constraint was open */
    BASE_INTERRUPTED = 130 /* Ctrl-C */
};

struct base_error {
    enum base_code code; /* BASE_OK until an error is recorded */
    int64_t offset;      /* byte offset in `file`, or -1 */
    char file[256];      /* the file concerned, or "" (long names keep their end) */
    char item[128];      /* the tensor, metadata key or option concerned, or "" */
    char text[384];      /* what is wrong and what would help; one line, no final newline */
};

/* A fresh object: BASE_OK, no file, offset -1. */
#define BASE_ERROR_INIT ((struct base_error){.code = BASE_OK, .offset = -1})

/* Records an error unless one is recorded already; `err` may be NULL (nothing is recorded).
 * Always returns false, so that `return base_fail(...)` ends a bool function. Names come from files
 * and have any bytes: who prints an error shows it in the form of cli/terminal.h. */
bool base_fail(struct base_error *err, enum base_code code, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* As base_fail, with the tensor, key or option concerned (NULL: none) and an offset (-1: none). */
bool base_fail_at(struct base_error *err, enum base_code code, const char *item, int64_t offset,
                  const char *format, ...) __attribute__((format(printf, 5, 6)));

/* As base_fail, with the file concerned, unless the recorded error names one already. */
bool base_fail_file(struct base_error *err, enum base_code code, const char *file,
                    const char *format, ...) __attribute__((format(printf, 4, 5)));
/* Returns NULL: `return base_null(base_fail(...))` ends a function that returns a pointer. */
static inline void *base_null(bool is_false)
{
    (void)is_false;
    return NULL;
}
/* All always return false; these macros show that to the compiler, so that it does not warn about
 * values that are unset on failure. */
static inline bool base_false(bool is_false)
{
    (void)is_false;
    return false;
}
#define base_fail(...)      base_false(base_fail(__VA_ARGS__))
#define base_fail_at(...)   base_false(base_fail_at(__VA_ARGS__))
#define base_fail_file(...) base_false(base_fail_file(__VA_ARGS__))

/* Adds the file's name to a recorded error that has none yet. */
void base_error_set_file(struct base_error *err, const char *file);

/* Writes "FILE: ITEM: text (at byte N)" without newline into out, always terminated; parts that are
 * not set are left out. Returns out. base_error_format_here omits the file, for lists that already
 * name it. */
char *base_error_format(const struct base_error *err, char *out, uint64_t out_size);
char *base_error_format_here(const struct base_error *err, char *out, uint64_t out_size);

/* base/error.c: recording and formatting errors. See base/error.h. */
#include "base/error.h"
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* Keeps what fits; `keep_end` keeps the end, because the end of a path distinguishes files. An
 * empty name is visible as quotes. */
static void copy_name(char *out, size_t out_size, const char *name, bool keep_end)
{
    const char *text = *name ? name : "''";
    const size_t n = strlen(text);
    if (n < out_size) {
        memcpy(out, text, n + 1);
    } else if (keep_end) {
        memcpy(out, "...", 3);
        memcpy(out + 3, text + n - (out_size - 4), out_size - 3);
    } else {
        memcpy(out, text, out_size - 1);
        out[out_size - 1] = '\0';
    }
}

static void record(struct base_error *err, enum base_code code, const char *item, int64_t offset,
                   const char *format, va_list args)
{
    if (!err || err->code != BASE_OK) return;
    err->code = code;
    err->offset = offset;
    if (item) copy_name(err->item, sizeof err->item, item, false);
    vsnprintf(err->text, sizeof err->text, format, args);
}

#undef base_fail
#undef base_fail_at
#undef base_fail_file

bool base_fail(struct base_error *err, enum base_code code, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    record(err, code, NULL, -1, format, args);
    va_end(args);
    return false;
}

bool base_fail_at(struct base_error *err, enum base_code code, const char *item, int64_t offset,
                  const char *format, ...)
{
    va_list args;
    va_start(args, format);
    record(err, code, item, offset, format, args);
    va_end(args);
    return false;
}

bool base_fail_file(struct base_error *err, enum base_code code, const char *file,
                    const char *format, ...)
{
    va_list args;
    va_start(args, format);
    record(err, code, NULL, -1, format, args);
    va_end(args);
    base_error_set_file(err, file);
    return false;
}

void base_error_set_file(struct base_error *err, const char *file)
{
    if (!err || err->code == BASE_OK || err->file[0]) return;
    copy_name(err->file, sizeof err->file, file, true);
}

char *base_error_format_here(const struct base_error *err, char *out, uint64_t out_size)
{
    char place[40] = "";
    if (err->offset >= 0) snprintf(place, sizeof place, " (at byte %lld)", (long long)err->offset);
    snprintf(out, out_size, "%s%s%s%s", err->item, err->item[0] ? ": " : "", err->text, place);
    return out;
}

char *base_error_format(const struct base_error *err, char *out, uint64_t out_size)
{
    char here[sizeof err->item + sizeof err->text + 48];
    snprintf(out, out_size, "%s%s%s", err->file, err->file[0] ? ": " : "",
             base_error_format_here(err, here, sizeof here));
    return out;
}

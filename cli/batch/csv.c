/* cli/batch/csv.c: records of a table. See cli/batch/csv.h. */
#include "cli/batch/csv.h"
#include "cli/system.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static size_t without_cr(const char *record, size_t size)
{
    return size > 0 && record[size - 1] == '\r' ? size - 1 : size;
}

/* Appends the value of the field at *at, without quotes, and moves *at to the next field. Returns
 * false after the last one. */
static bool take_field(const struct cli_csv *csv, const char *record, size_t size, size_t *at,
                       struct base_buffer *out)
{
    size_t i = *at;
    bool quoted = i < size && record[i] == '"';
    for (i += quoted; i < size && (quoted || record[i] != csv->separator); i++) {
        if (quoted && record[i] == '"') {
            quoted = i + 1 < size && record[i + 1] == '"';
            if (!quoted) continue; /* what follows a closing quote belongs to the field */
            i++;
        }
        base_buffer_add(out, record + i, 1);
    }
    *at = i + 1;
    return i < size;
}

/* Sets field[n], n at most the number of columns, to the values of a record; *n counts all. */
static bool take_fields(const struct cli_csv *csv, const char *record, size_t size,
                        struct base_buffer *field, size_t room, size_t *n, struct base_error *err)
{
    BASE_LOCAL_BUFFER rest = BASE_BUFFER_INIT;
    size_t at = 0;
    bool more = true, ok = true;
    for (*n = 0; more; ++*n) {
        struct base_buffer *out = *n < room ? &field[*n] : &rest;
        more = take_field(csv, record, size, &at, out);
        ok = ok && cli_buffer_check(out, err);
    }
    return ok;
}

static void free_fields(struct base_buffer *field, size_t n)
{
    for (size_t i = 0; field && i < n; i++) base_buffer_free(&field[i]);
    free(field);
}

static char separator_of(const char *header, size_t size)
{
    if (memchr(header, ',', size)) return ',';
    return memchr(header, '\t', size) ? '\t' : memchr(header, ';', size) ? ';' : ',';
}

/* Returns the column with this name, or n_columns. */
static size_t find_column(const struct cli_csv *csv, const char *name, size_t size)
{
    size_t i = 0;
    while (i < csv->n_columns &&
           (csv->name[i].size != size || (size && memcmp(csv->name[i].data, name, size) != 0)))
        i++;
    return i;
}

/* Finds the next {} or {NAME} from *at on: *at is its start, *end the byte after it, *column what
 * it stands for. */
static bool find_hole(const struct cli_csv *csv, const struct base_buffer *each, size_t *at,
                      size_t *end, size_t *column)
{
    for (; *at < each->size; ++*at) {
        const char *from = each->data + *at;
        const char *close = *from == '{' ? memchr(from, '}', each->size - *at) : NULL;
        if (!close) continue;
        const size_t size = (size_t)(close - from - 1);
        *column = size ? find_column(csv, from + 1, size) : csv->column;
        *end = *at + size + 2;
        if (size == 0 || *column < csv->n_columns) return true;
    }
    return false;
}

static bool fail_column(const struct cli_csv *csv, const char *what, struct base_error *err)
{
    BASE_LOCAL_BUFFER names = BASE_BUFFER_INIT;
    for (size_t i = 0; i < csv->n_columns; i++) {
        if (i) base_buffer_add_text(&names, ", ");
        base_buffer_add(&names, csv->name[i].size ? csv->name[i].data : "", csv->name[i].size);
    }
    if (cli_buffer_check(&names, err))
        base_fail_at(err, BASE_USAGE, "--column", -1, "%s: the columns are %.*s", what,
                     (int)(names.size < 400 ? names.size : 400), names.data);
    return false;
}

/* Notes names in braces that are no columns. Other text in braces is text, such as JSON. */
static void note_unknown(const struct cli_csv *csv, const struct base_buffer *each)
{
    static const char letters[] =
        "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-";
    const char *end = each->data + each->size;
    for (const char *at = each->data; (at = memchr(at, '{', (size_t)(end - at)));) {
        size_t n = 0;
        for (at++; at + n < end && strchr(letters, at[n]) && at[n]; n++) {
        }
        if (n > 0 && at + n < end && at[n] == '}' && find_column(csv, at, n) == csv->n_columns)
            cli_note("--each: {%.*s} is no column of the table and stays as it is", (int)n, at);
    }
}

static bool choose_column(struct cli_csv *csv, const char *column, const struct base_buffer *each,
                          struct base_error *err)
{
    size_t at = 0, end, hole;
    bool has_hole = false, needs_column = false;
    csv->column = csv->n_columns;
    if (column) {
        csv->column = find_column(csv, column, strlen(column));
        const size_t digits = strspn(column, "0123456789");
        if (csv->column == csv->n_columns && digits && digits < 7 && !column[digits] &&
            (size_t)atoi(column) - 1 < csv->n_columns)
            csv->column = (size_t)atoi(column) - 1;
        if (csv->column == csv->n_columns) return fail_column(csv, "there is no such column", err);
    } else if (csv->n_columns == 1) {
        csv->column = 0;
    }
    for (; find_hole(csv, each, &at, &end, &hole); at = end) {
        has_hole = true;
        needs_column |= hole == csv->n_columns;
    }
    if (needs_column) return fail_column(csv, "say which column {} is", err);
    if (has_hole) note_unknown(csv, each);
    return has_hole ||
           base_fail_at(err, BASE_USAGE, "--each", -1, "has no {} and no {NAME} of a column");
}

bool cli_csv_open(struct cli_csv *csv, const char *header, size_t size, const char *column,
                  const struct base_buffer *each, struct base_error *err)
{
    size_t n;
    size = without_cr(header, size);
    csv->separator = separator_of(header, size);
    if (!take_fields(csv, header, size, NULL, 0, &n, err)) return false;
    csv->name = calloc(n, sizeof *csv->name);
    if (!csv->name) return base_fail(err, BASE_NO_MEMORY, "not enough memory for a table");
    csv->n_columns = n;
    return take_fields(csv, header, size, csv->name, n, &n, err) &&
           choose_column(csv, column, each, err);
}

void cli_csv_close(struct cli_csv *csv)
{
    free_fields(csv->name, csv->n_columns);
    *csv = (struct cli_csv){0};
}

static void fill(const struct cli_csv *csv, const struct base_buffer *each,
                 const struct base_buffer *field, struct base_buffer *out)
{
    size_t from = 0, at = 0, end, column;
    for (; find_hole(csv, each, &at, &end, &column); from = at = end) {
        base_buffer_add(out, each->data + from, at - from);
        base_buffer_add(out, field[column].size ? field[column].data : "", field[column].size);
    }
    base_buffer_add(out, each->data + from, each->size - from);
}

bool cli_csv_fill(const struct cli_csv *csv, const struct base_buffer *each, const char *record,
                  size_t size, struct base_buffer *out, struct base_error *err)
{
    struct base_buffer *field = calloc(csv->n_columns, sizeof *field);
    size_t n;
    if (!field) return base_fail(err, BASE_NO_MEMORY, "not enough memory for a record");
    bool ok = take_fields(csv, record, without_cr(record, size), field, csv->n_columns, &n, err);
    if (ok && n != csv->n_columns)
        ok = base_fail(err, BASE_USAGE, "the record has %zu fields and the header %zu", n,
                       csv->n_columns);
    if (ok) fill(csv, each, field, out);
    free_fields(field, csv->n_columns);
    return ok && cli_buffer_check(out, err);
}

void cli_csv_add_header(const struct cli_csv *csv, const char *header, size_t size,
                        struct base_buffer *out)
{
    char name[32] = "answer";
    for (unsigned n = 2; find_column(csv, name, strlen(name)) < csv->n_columns; n++)
        snprintf(name, sizeof name, "answer_%u", n);
    cli_csv_add(csv, header, size, name, strlen(name), out);
}

void cli_csv_add(const struct cli_csv *csv, const char *record, size_t size, const char *field,
                 size_t field_size, struct base_buffer *out)
{
    const size_t end = without_cr(record, size);
    bool quotes = false;
    for (size_t i = 0; i < field_size; i++)
        quotes |=
            field[i] == csv->separator || field[i] == '"' || field[i] == '\n' || field[i] == '\r';
    base_buffer_add(out, record, end);
    base_buffer_add(out, &csv->separator, 1);
    if (quotes) base_buffer_add_text(out, "\"");
    for (size_t i = 0; i < field_size; i++)
        base_buffer_add(out, field[i] == '"' ? "\"\"" : field + i, field[i] == '"' ? 2 : 1);
    if (quotes) base_buffer_add_text(out, "\"");
    base_buffer_add_text(out, end < size ? "\r\n" : "\n");
}

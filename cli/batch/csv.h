/* cli/batch/csv.h: lines of `infer batch --csv`: records of a table (RFC 4180), whose answers
 * become a last column.
 *
 * The first record is the header. The separator is a comma; a semicolon or a tab if the header has
 * no comma but one of these. A record is written as it was read, with its line end (LF or CR LF).
 */
#pragma once

#include "base/buffer.h"
#include "base/error.h"

struct cli_csv {
    char separator;
    struct base_buffer *name; /* [n_columns], of the header */
    size_t n_columns;
    size_t column; /* the column that {} stands for */
};

/* Reads the header. `column` is the name of a column or its number from 1 on; NULL: the only one.
 * `each` has {} for this column and {NAME} for others. Fails with BASE_USAGE if a column does not
 * exist, or if {} could be several. *csv must be all zeros. */
bool cli_csv_open(struct cli_csv *csv, const char *header, size_t size, const char *column,
                  const struct base_buffer *each, struct base_error *err);
void cli_csv_close(struct cli_csv *csv); /* may be all zeros */

/* Appends the prompt of a record: `each` with the values of its columns. Fails with BASE_USAGE if
 * the record has another number of fields than the header. */
bool cli_csv_fill(const struct cli_csv *csv, const struct base_buffer *each, const char *record,
                  size_t size, struct base_buffer *out, struct base_error *err);

/* Appends the header with a name for the answers that no column has: answer, answer_2 ... */
void cli_csv_add_header(const struct cli_csv *csv, const char *header, size_t size,
                        struct base_buffer *out);
/* Appends the record with one more field and a line end. */
void cli_csv_add(const struct cli_csv *csv, const char *record, size_t size, const char *field,
                 size_t field_size, struct base_buffer *out);

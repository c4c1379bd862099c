/* cli/out/model_table.c: the table of models. See cli/out/model_table.h. */
#include "cli/out/model_table.h"
#include "base/utf8.h"
#include "cli/hub_name.h"
#include "cli/terminal.h"
#include <stdio.h>
#include <string.h>
#include <utf8proc.h>

enum column { NAME, ARCHITECTURE, TYPE, SIZE, WEIGHTS, CONTEXT, DATE, COLUMNS };
enum { MARK = 2, GAP = 2, CELL = 32 };

static const struct {
    const char *title;
    bool is_number;
    int rank; /* a column of a higher rank is left out first */
} columns[COLUMNS] = {
    [NAME] = {"NAME", false, 0},      [ARCHITECTURE] = {"ARCHITECTURE", false, 1},
    [TYPE] = {"TYPE", false, 0},      [SIZE] = {"SIZE", true, 0},
    [WEIGHTS] = {"WEIGHTS", true, 2}, [CONTEXT] = {"CONTEXT", true, 3},
    [DATE] = {"DATE", false, 0},
};

/* Returns the number of columns of a terminal that a text takes. */
static int width_of(const char *text)
{
    int width = 0;
    for (size_t n = strlen(text), i = 0; i < n;) {
        int32_t code;
        i += base_utf8_decode(text + i, n - i, &code);
        width += code < 0 ? 1 : utf8proc_charwidth(code);
    }
    return width;
}

static void print_size(char out[CELL], double bytes)
{
    if (bytes < 1e9)
        snprintf(out, CELL, "%.1f MB", bytes / 1e6);
    else
        snprintf(out, CELL, "%.2f GB", bytes / 1e9);
}

/* Appends a cell's text; of a model that cannot run only name, size and date are known. */
static void add_cell(const struct cli_model_row *r, enum column c, struct base_buffer *out)
{
    char text[CELL] = "";
    struct tm day;
    const bool runs = !r->error.code;
    switch (c) {
    case NAME: {
        const char *slash = strrchr(r->path.data, '/');
        const char *file = slash ? slash + 1 : r->path.data;
        cli_show(out, file, cli_model_name_size(file), false);
        return;
    }
    case ARCHITECTURE:
        if (runs) cli_show(out, r->arch.data, r->arch.size, false);
        return;
    case TYPE:
        base_buffer_add_text(out, !runs ? "" : r->type ? r->type : "none");
        return;
    case SIZE:
        print_size(text, (double)r->bytes);
        break;
    case WEIGHTS:
        if (runs && r->n_params < 1000000000)
            snprintf(text, sizeof text, "%.0f M", (double)r->n_params / 1e6);
        else if (runs)
            snprintf(text, sizeof text, "%.1f B", (double)r->n_params / 1e9);
        break;
    case CONTEXT:
        if (runs) snprintf(text, sizeof text, "%u", r->n_ctx);
        break;
    case DATE:
        if (localtime_r(&r->time, &day)) strftime(text, sizeof text, "%Y-%m-%d", &day);
        break;
    case COLUMNS:
        break;
    }
    base_buffer_add_text(out, text);
}

static void add_padded(struct base_buffer *out, const char *text, enum column c, int width,
                       bool is_last)
{
    const int pad = width - width_of(text);
    if (columns[c].is_number) base_buffer_add_format(out, "%*s", pad, "");
    base_buffer_add_text(out, text);
    if (!columns[c].is_number && !is_last) base_buffer_add_format(out, "%*s", pad, "");
    if (!is_last) base_buffer_add_format(out, "%*s", GAP, "");
}

/* Chooses the columns that fit a line; returns the highest rank that is shown. */
static int choose_rank(const int width[COLUMNS], int room)
{
    int rank = COLUMNS;
    for (int need; rank > 0; rank--) {
        need = MARK - GAP;
        for (int c = 0; c < COLUMNS; c++)
            if (columns[c].rank <= rank) need += width[c] + GAP;
        if (room == 0 || need <= room) break;
    }
    return rank;
}

void cli_model_table_add(const struct cli_model_row *row, size_t count, const char *folder,
                         int width, struct base_buffer *out)
{
    BASE_LOCAL_BUFFER cell = BASE_BUFFER_INIT;
    int widths[COLUMNS];
    double bytes = 0;
    char size[CELL];
    for (int c = 0; c < COLUMNS; c++) {
        widths[c] = (int)strlen(columns[c].title);
        for (size_t i = 0; i < count; i++) {
            base_buffer_clear(&cell);
            add_cell(&row[i], (enum column)c, &cell);
            const int n = cell.size ? width_of(cell.data) : 0;
            if (n > widths[c]) widths[c] = n;
        }
    }
    const int rank = choose_rank(widths, width);
    for (size_t i = 0; i <= count; i++) { /* 0: the header */
        const struct cli_model_row *r = i ? &row[i - 1] : NULL;
        base_buffer_add_text(out, r && r->is_chosen ? "* " : "  ");
        for (int c = 0; c < COLUMNS; c++) {
            if (columns[c].rank > rank) continue;
            base_buffer_clear(&cell);
            if (r)
                add_cell(r, (enum column)c, &cell);
            else
                base_buffer_add_text(&cell, columns[c].title);
            add_padded(out, cell.size ? cell.data : "", (enum column)c, widths[c], c == DATE);
            out->failed |= cell.failed;
        }
        base_buffer_add_text(out, "\n");
        if (r) bytes += (double)r->bytes;
        if (r && r->error.code) {
            char why[600];
            base_error_format_here(&r->error, why, sizeof why);
            base_buffer_add_text(out, "    unusable: ");
            cli_show(out, why, strlen(why), false);
            base_buffer_add_text(out, "\n");
        }
    }
    print_size(size, bytes);
    base_buffer_add_format(out, "%zu %s, %s in ", count, count == 1 ? "model" : "models", size);
    cli_show(out, folder, strlen(folder), false);
    base_buffer_add_text(out, "\n");
}

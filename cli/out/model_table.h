/* cli/out/model_table.h: model files as a table for people: `infer models`. */
#pragma once

#include "base/buffer.h"
#include "base/error.h"
#include <time.h>

struct cli_model_row {
    struct base_buffer path;
    struct base_buffer name, arch; /* of the metadata */
    const char *type;              /* type by metadata, or that of most bytes; NULL: no tensors */
    uint64_t bytes, n_params;
    uint32_t n_ctx;
    time_t time; /* of the last change */
    bool is_chosen;
    struct base_error error; /* why the model cannot run */
};

/* Appends a header, a line for each model with a name that -m takes, and a line with their number,
 * size and folder. Texts of files have the form of cli/terminal.h. Columns are left out until a
 * line fits `width` (0: any). */
void cli_model_table_add(const struct cli_model_row *row, size_t count, const char *folder,
                         int width, struct base_buffer *out);

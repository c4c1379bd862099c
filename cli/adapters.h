/* cli/adapters.h: the files of --lora and --control-vector. */
#pragma once

#include "cli/options.h"
#include "models/adapter.h"

struct cli_adapter {
    char *path; /* owned */
    struct gguf_file *file;
    float scale;
    uint32_t first, last; /* layers of a control vector */
    bool is_vector;
};

struct cli_adapters {
    struct cli_adapter *item; /* adapters in the order of the command line, then control vectors */
    size_t count;
};

/* Opens the files for the model, which must have no session yet. The caller calls _close after it
 * has closed the model, also after a failure. */
bool cli_adapters_open(struct cli_adapters *a, const struct cli_values *values, struct model *model,
                       struct base_error *err);
/* Adds what was opened to another model of the same file. */
bool cli_adapters_apply(const struct cli_adapters *a, struct model *model, struct base_error *err);
void cli_adapters_close(struct cli_adapters *a);

/* Writes the scale of each of the model's adapters for the list of one text: NAME[:SCALE], where
 * NAME is the path or the file's name of an adapter of the command line. The others are 0. Fails
 * with BASE_USAGE for another name. */
bool cli_adapters_choose(const struct cli_adapters *a, const struct base_texts *list,
                         float scale[MODEL_ADAPTERS_MAX], struct base_error *err);

/* -v: prints what the adapters are. */
void cli_adapters_note(const struct cli_adapters *a, const struct model *model);

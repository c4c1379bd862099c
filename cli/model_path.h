/* cli/model_path.h: finds a model's file: by -m, by a name in the user's folder of models, or the
 * default. */
#pragma once

#include "cli/options.h"
#include "gguf/gguf.h"

/* Appends the user's folder of models to *path. Returns false if neither HOME nor XDG_DATA_HOME is
 * set. */
bool cli_model_folder(struct base_buffer *path);

/* Appends the path of -m, of $INFER_MODEL, or of the default model: without the usual one it is the
 * only one of the user's folder. A text that is not a file and has no slash is the name of a model
 * in that folder, or an unambiguous prefix of it; with a slash it may be the name or address by
 * which the model was pulled. Fails with BASE_MODEL and advice if there is none. */
bool cli_model_path(const struct cli_values *values, struct base_buffer *path,
                    struct base_error *err);
/* Appends the path of a model that is an argument; NULL: the default model. */
bool cli_model_path_of(const char *given, struct base_buffer *path, struct base_error *err);
/* Opens that file; an error names it. The caller closes it. */
struct gguf_file *cli_model_open_path(const char *given, struct base_error *err);

/* Appends the only file that matches the name to *path, which already has the folder. Fails with
 * BASE_MODEL if none or several match; the message lists these. */
bool cli_model_find(const char *name, struct base_buffer *path, struct base_error *err);

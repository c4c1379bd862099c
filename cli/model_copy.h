/* cli/model_copy.h: copies the data of a model to another file, for commands that change no weight:
 * split, merge, edit. */
#pragma once

#include "base/buffer.h"
#include "gguf/gguf.h"

/* Copies the data of the tensors of part `part` (-1: of all parts) of `in`, in the order in which
 * they were declared to the writer. Shows the progress on a terminal. Fails with BASE_INTERRUPTED,
 * or BASE_MODEL if the file changed during the copy. */
bool cli_model_copy(struct gguf_writer *w, const struct gguf_file *in, int part,
                    struct base_error *err);

/* Appends the prefix of the names of a split model's parts: the name without ".gguf", as in
 * llama-quantize. Fails with BASE_USAGE for a folder or an empty name. */
bool cli_split_prefix(struct base_buffer *out, const char *name, struct base_error *err);

/* cli/out/gguf_text.h: formats metadata of model files as text or JSON. Texts of the file are
 * escaped, so that a terminal does not interpret them. */
#ifndef CLI_GGUF_TEXT_H
#define CLI_GGUF_TEXT_H

#include "base/buffer.h"
#include "gguf/gguf.h"

enum { CLI_SHOWN_BYTES = 160 /* of a string in text form */ };

/* Appends a string of a file: in text form truncated to `limit` bytes and, if `quoted`, in quotes;
 * in JSON complete. */
void cli_gguf_add_string(struct base_buffer *out, bool json, struct gguf_str s, size_t limit,
                         bool quoted);
/* Appends item `i` of an array, or a scalar (i is 0). */
void cli_gguf_add_item(struct base_buffer *out, bool json, const struct gguf_file *file,
                       const struct gguf_kv *kv, uint64_t i);
/* Appends a value; only the first items of an array. */
void cli_gguf_add_value(struct base_buffer *out, bool json, const struct gguf_file *file,
                        const struct gguf_kv *kv);

#endif

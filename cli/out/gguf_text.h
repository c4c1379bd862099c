/* cli/out/gguf_text.h: metadata of model files as text or JSON. Texts of the file are escaped: a
 * terminal must not interpret them. */
#ifndef CLI_GGUF_TEXT_H
#define CLI_GGUF_TEXT_H

#include "base/buffer.h"
#include "gguf/gguf.h"

enum { CLI_SHOWN_BYTES = 160 /* of a string, in text */ };

/* A string of a file: cut after `limit` bytes and, if `quoted`, in quotes (text), or whole (JSON).
 */
void cli_gguf_add_string(struct base_buffer *out, bool json, struct gguf_str s, size_t limit,
                         bool quoted);
/* Item `i` of an array, or a scalar (i 0). */
void cli_gguf_add_item(struct base_buffer *out, bool json, const struct gguf_file *file,
                       const struct gguf_kv *kv, uint64_t i);
/* A value; of an array the first items. */
void cli_gguf_add_value(struct base_buffer *out, bool json, const struct gguf_file *file,
                        const struct gguf_kv *kv);

#endif

/* cli/out/gguf_text.h: formats metadata of model files as text or JSON. Texts of the file are
 * escaped, so that a terminal does not interpret them. */
#pragma once

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
/* Appends a value with its kind, and of an array the number of items; in JSON an object. */
void cli_gguf_add_typed(struct base_buffer *out, bool json, const struct gguf_file *file,
                        const struct gguf_kv *kv);
/* Appends numbers, the last one first: "[2, 3]" of a shape {3, 2}. */
void cli_gguf_add_shape(struct base_buffer *out, const uint64_t *ne, uint32_t n, const char *comma);

/* What the tensors of a file are together. */
struct cli_gguf_sums {
    uint64_t count[QUANT_ID_COUNT], bytes_of[QUANT_ID_COUNT]; /* of each type */
    uint64_t bytes, elements;
};
struct cli_gguf_sums cli_gguf_sum(const struct gguf_file *file);

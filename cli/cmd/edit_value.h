/* cli/cmd/edit_value.h: parses KEY=TYPE:VALUE, or KEY=VALUE for a key that the file has, into a
 * metadata value. */
#pragma once

#include "base/buffer.h"
#include "gguf/gguf.h"

struct cli_edit_value {
    struct gguf_kv kv; /* key: a slice of the text; data: bytes.data */
    struct base_buffer bytes;
};

/* Parses --set's text, which must outlive *out. `old` is the key's old value, whose kind is kept,
 * or NULL. Fails with BASE_USAGE. The caller calls cli_edit_value_free, after a failure too. */
bool cli_edit_value_parse(struct cli_edit_value *out, const char *text, const struct gguf_kv *old,
                          struct base_error *err);
void cli_edit_value_free(struct cli_edit_value *v);

/* Returns the length of the key in KEY=TYPE:VALUE; 0 if the text does not have this form. */
size_t cli_edit_key_size(const char *text);

/* cli/cmd/edit_value.h: KEY=TYPE:VALUE as a value of a model's metadata. */
#ifndef CLI_EDIT_VALUE_H
#define CLI_EDIT_VALUE_H

#include "base/buffer.h"
#include "gguf/gguf.h"

struct cli_edit_value {
    struct gguf_kv kv; /* key: part of the text; data: bytes.data, set by cli_edit_value_parse */
    struct base_buffer bytes;
};

/* Parses --set's text, which must outlive *out. `old`: the value that the key has and keeps its
 * kind of, or NULL. BASE_USAGE names what is wrong. After any result cli_edit_value_free. */
bool cli_edit_value_parse(struct cli_edit_value *out, const char *text, const struct gguf_kv *old,
                          struct base_error *err);
void cli_edit_value_free(struct cli_edit_value *v);

/* The length of the key in KEY=TYPE:VALUE; 0: it is none. */
size_t cli_edit_key_size(const char *text);

#endif

/* cli/input.h: the input of a command: the text of -p, -f or standard input, or lists of ids. */
#pragma once

#include "cli/options.h"
#include "text/tokenizer/tokenizer.h"

/* Appends the bytes of the prompt: piped text, then -p or -f, on a line of its own. Fails with
 * BASE_USAGE if there is neither and standard input is a terminal. */
bool cli_input_read(const struct cli_values *values, struct base_buffer *out,
                    struct base_error *err);

/* Appends the text with \n \t \r \\ \" \' and \xHH converted to bytes; other backslashes are
 * kept. */
void cli_input_unescape(const char *text, size_t size, struct base_buffer *out);
/* Appends a text of the command line, converted as above if -e is given. */
void cli_input_add(const struct chat_request *request, const char *text, struct base_buffer *out);

/* Calls text_encode_framed with --lossy. The error for a byte without a token contains advice. */
bool cli_encode(const struct chat_request *request, const struct text_tokenizer *t,
                const struct base_buffer *text, const char *own, unsigned flags,
                struct text_ids *ids, struct base_error *err);
/* Appends the ids of a text with --no-bos, --no-special, --lossy and --suffix. */
bool cli_input_encode(const struct chat_request *request, const struct text_tokenizer *t,
                      const struct base_buffer *text, struct text_ids *ids, struct base_error *err);

/* Appends --each, with its escapes converted to bytes if -e is given. Fails with BASE_USAGE if it
 * has no {}, except with --csv. */
bool cli_each_read(const struct cli_values *values, struct base_buffer *each,
                   struct base_error *err);
/* Appends the prompt of a plain line: `each` with the line in place of each {}. A CR before the
 * line end belongs to the line end. */
void cli_each_fill(const struct base_buffer *each, const char *line, size_t size,
                   struct base_buffer *out);

/* Reads the ids that a command evaluates in chunks: those of --ids FILE, otherwise of the text. */
bool cli_chunks_read(const struct cli_values *values, const struct text_tokenizer *t,
                     uint32_t n_vocab, struct text_ids *ids, struct base_error *err);
/* Computes the chunks of ids: *chunk tokens each (at most as many as there are), at most --chunks
 * of them. Fails with BASE_USAGE for fewer than 4 tokens. */
bool cli_chunks_cut(const struct cli_values *values, const struct text_ids *ids, uint32_t *chunk,
                    uint64_t *n_chunks, struct base_error *err);
/* Replaces the first id of each chunk by the beginning-of-text token, if the model has one and
 * --no-bos is absent. */
void cli_chunks_begin(const struct cli_values *values, const struct text_tokenizer *t,
                      struct text_ids *ids, uint32_t chunk, uint64_t n_chunks);

/* --show-prompt: prints the text as the model reads it, and its ids on a line of their own; with
 * --json one object. */
bool cli_prompt_show(const struct cli_values *values, const struct text_tokenizer *t,
                     const struct base_buffer *text, const struct text_ids *ids,
                     struct base_error *err);

/* Parses ids separated by spaces, commas or line ends. Fails with BASE_USAGE for any other text or
 * an id that is not below n_vocab. */
bool cli_ids_parse(const char *text, size_t size, uint32_t n_vocab, struct text_ids *ids,
                   struct base_error *err);

/* cli/chat/chat_once.h: `run --chat`: answers one question of a conversation.
 *
 * Owns: the conversation given by options, its prompt, its answer in parts. Refuses: the model, the
 * loop and the results, which all completions share (cli/cmd/cmd_run.c). */
#ifndef CLI_CHAT_CHAT_ONCE_H
#define CLI_CHAT_CHAT_ONCE_H

#include "cli/chat/chat_reply.h"

struct cli_chat_once {
    const struct cli_values *values;
    json_t *messages, *tools;
    struct cli_chat_template template;
    struct cli_chat_prompt prompt;
    struct cli_chat_reply reply;
};

/* Reads --messages, --system and --tools, and decides whether there is a question to read; called
 * before the model is opened. */
bool cli_chat_once_read(struct cli_chat_once *c, const struct cli_values *values,
                        struct base_error *err);
/* Whether -p, -f or standard input may contain a question; not with --messages alone. */
bool cli_chat_once_asks(const struct cli_values *values);
/* Adds the question and renders the prompt; needs the model's file and tokenizer. */
bool cli_chat_once_encode(struct cli_chat_once *c, const struct cli_model *model,
                          const struct base_buffer *question, struct base_error *err);
/* Begins the answer, which is shown on standard output unless `quiet`. */
bool cli_chat_once_begin(struct cli_chat_once *c, const struct cli_model *model, bool quiet,
                         struct base_error *err);
/* `,"message":{...}` for --json. */
bool cli_chat_once_add_json(const struct cli_chat_once *c, struct base_buffer *out,
                            struct base_error *err);
void cli_chat_once_close(struct cli_chat_once *c); /* a zeroed one is fine */

#endif

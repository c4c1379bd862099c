/* cli/chat/chat_once.h: `run` through the chat template: answers one question of a conversation.
 *
 * Contains the conversation of the options, its prompt, and its answer in parts; all completions
 * share the model, the loop and the results (cli/cmd/cmd_run.c). */
#pragma once

#include "chat/chat_reply.h"
#include "cli/load.h"

struct cli_chat_once {
    const struct cli_values *values;
    json_t *messages, *tools;
    struct chat_template template;
    struct chat_prompt prompt;
    struct chat_reply reply;
    struct base_buffer shown; /* what is shown of the latest piece */
};

/* Reads --messages, --system and --tools, and decides whether there is a question to read. Call it
 * before the model is opened. */
bool cli_chat_once_read(struct cli_chat_once *c, const struct cli_values *values,
                        struct base_error *err);
/* Returns whether -p, -f or standard input may contain a question; false with only --messages. */
bool cli_chat_once_may_have_question(const struct cli_values *values);
/* Adds the question and renders the prompt; the model must have its file and tokenizer. */
bool cli_chat_once_encode(struct cli_chat_once *c, const struct cli_model *model,
                          const struct base_buffer *question, struct base_error *err);
bool cli_chat_once_begin(struct cli_chat_once *c, struct base_error *err);
/* Takes a piece of the answer and reduces its text to what is shown. */
bool cli_chat_once_take(struct cli_chat_once *c, struct generate_piece *piece,
                        struct base_error *err);
/* Returns the last piece, without an id: what is shown after the answer's last token. */
bool cli_chat_once_end(struct cli_chat_once *c, struct generate_piece *piece,
                       struct base_error *err);
/* Appends `,"message":{...}` for --json. */
bool cli_chat_once_add_json(const struct cli_chat_once *c, struct base_buffer *out,
                            struct base_error *err);
void cli_chat_once_close(struct cli_chat_once *c); /* may be all zeros */

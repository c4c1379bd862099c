/* cli/chat/chat_reply.h: an answer while it is generated: shown according to --reasoning, and as a
 * message afterwards.
 *
 * Owns: answer, reasoning and tool calls of one reply (text/chat/reply.h separates them) and which
 * of them are shown. Refuses: where they are shown (a sink). The generator must decode with control
 * tokens shown: many marks are such tokens. */
#ifndef CLI_CHAT_CHAT_REPLY_H
#define CLI_CHAT_CHAT_REPLY_H

#include "cli/chat/chat_template.h"
#include "generate/generate.h"
#include "text/chat/reply.h"

enum cli_reasoning { CLI_REASONING_HIDE, CLI_REASONING_SHOW, CLI_REASONING_ONLY };
enum cli_reasoning cli_reasoning_mode(const struct cli_values *values,
                                      enum cli_reasoning by_default);

/* Shows bytes of the reply; `dim` for reasoning and tool calls. */
typedef bool cli_chat_show_fn(void *user, const char *bytes, size_t size, bool dim,
                              struct base_error *err);

struct cli_chat_reply {
    const struct text_tokenizer *tokenizer;
    struct text_reply *parts;
    struct base_buffer content, reasoning;
    json_t *calls;
    enum cli_reasoning mode;
    cli_chat_show_fn *show; /* NULL: nothing is shown */
    void *user;
};

/* A reply to the prompt. Closes the one before; a zeroed one is fine. */
bool cli_chat_reply_open(struct cli_chat_reply *r, const struct cli_chat_template *t,
                         const struct cli_model *model, const struct cli_chat_prompt *prompt,
                         struct base_error *err);
void cli_chat_reply_close(struct cli_chat_reply *r);
/* Before the first piece: reads the beginning of the answer in the prompt, which is a part of the
 * message and not shown, and gives `prompt` what the request must know of it: that beginning, and
 * `marks` filled with the marks of thoughts if one may come. */
bool cli_chat_reply_begin(struct cli_chat_reply *r, const struct cli_chat_prompt *rendered,
                          struct generate_thought_marks *marks, struct generate_prompt *prompt,
                          struct base_error *err);

bool cli_chat_reply_take(struct cli_chat_reply *r, const struct generate_piece *piece,
                         struct base_error *err);
bool cli_chat_reply_end(struct cli_chat_reply *r, struct base_error *err);

/* The reply as a message for the conversation, a new reference: content, and reasoning_content and
 * tool_calls where there are some. */
json_t *cli_chat_reply_message(const struct cli_chat_reply *r, struct base_error *err);

#endif

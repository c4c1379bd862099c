/* chat/chat_reply.h: splits an answer while it is generated, shows its parts according to
 * the request, and makes a message of it.
 *
 * Contains answer, reasoning and tool calls of one reply (text/chat/reply.h separates them), and
 * the choice of the parts to show; output is a sink of the caller. The generator must decode with
 * control tokens shown, because many marks are such tokens. */
#pragma once

#include "chat/chat_template.h"
#include "generate/generate.h"
#include "text/chat/reply.h"

/* "answer", "reasoning", "call", "mark" */
extern const char *const chat_part_name[];

enum chat_reasoning { CHAT_REASONING_HIDE, CHAT_REASONING_SHOW, CHAT_REASONING_ONLY };
enum chat_reasoning chat_reasoning_mode(const struct chat_settings *chat,
                                        enum chat_reasoning by_default);

/* Writes bytes of the reply; `dim` for reasoning and tool calls. */
typedef bool chat_show_fn(void *user, const char *bytes, size_t size, bool dim,
                          struct base_error *err);

struct chat_reply {
    const struct text_tokenizer *tokenizer;
    struct text_reply *parts;
    size_t n_begun; /* bytes of the answer's beginning in the prompt */
    struct base_buffer content, reasoning;
    enum text_reply_kind latest; /* part to which the latest piece belongs */
    json_t *calls;
    enum chat_reasoning mode;
    chat_show_fn *show; /* NULL: no output */
    void *user;
};

/* Opens a reply to the prompt and closes the previous one; *r may be all zeros. */
bool chat_reply_open(struct chat_reply *r, const struct chat_template *t,
                     const struct chat_prompt *prompt, struct base_error *err);
void chat_reply_close(struct chat_reply *r);
/* Call this before the first piece. Reads the beginning of the answer in the prompt, which belongs
 * to the message and is not shown. Sets the fields of `prompt` that the request needs: that
 * beginning, and `marks`, with the marks of reasoning, if reasoning may come. */
bool chat_reply_begin(struct chat_reply *r, const struct chat_prompt *rendered,
                      struct generate_thought_marks *marks, struct generate_prompt *prompt,
                      struct base_error *err);

bool chat_reply_take(struct chat_reply *r, const struct generate_piece *piece,
                     struct base_error *err);
bool chat_reply_end(struct chat_reply *r, struct base_error *err);

/* Returns whether the ended reply has nothing of what its user reads: the answer and calls; of
 * CHAT_REASONING_ONLY the reasoning. */
bool chat_reply_is_blank(const struct chat_reply *r);
bool chat_reply_has_reasoning(const struct chat_reply *r);

/* Returns the reply as a message for the conversation, a new reference: content, and
 * reasoning_content and tool_calls if there are any. */
json_t *chat_reply_message(const struct chat_reply *r, struct base_error *err);

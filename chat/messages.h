/* chat/messages.h: conversations as JSON: checking, changing, writing.
 *
 * A conversation is a list of messages as in OpenAI's interface: role, content (a text or a list of
 * parts), reasoning_content, tool_calls, tool_call_id, name. The template decides which roles are
 * valid. Errors in a list are BASE_USAGE with the message's number. */
#pragma once

#include "base/buffer.h"
#include "base/output.h"
#include "chat/chat_request.h"

/* Check that a JSON value is a list of messages, and a list of tools, each an object. */
bool chat_messages_check(const json_t *list, struct base_error *err);
bool chat_tools_check(const json_t *list, struct base_error *err);

/* Appends a message whose content is a text. A byte that is not UTF-8 is skipped with r->lossy, and
 * otherwise BASE_USAGE with its position. */
bool chat_messages_add(json_t *list, const char *role, const char *text, size_t size,
                       const struct chat_request *r, struct base_error *err);
/* Makes `text` the system message, which is the first one; NULL removes it. */
bool chat_messages_set_system(json_t *list, const char *text, const struct chat_caller *caller,
                              struct base_error *err);
/* Makes a new conversation, a new reference: a copy of `given` (the member `messages` of a request;
 * NULL: empty), preceded by the request's system message if it has none, followed by `question` as
 * a user's message (NULL: none). Returns NULL with BASE_USAGE for a value that is not a list of
 * messages, an empty question or a list without messages. */
json_t *chat_messages_of_line(const json_t *given, const struct chat_request *r,
                              const struct base_buffer *question, struct base_error *err);
/* Returns the number of system messages at the beginning of the list: 0 or 1. */
size_t chat_messages_n_system(const json_t *list);
/* Returns the role of message i; "" past the end. */
const char *chat_messages_role(const json_t *list, size_t i);
/* Returns the index of the last turn's user message; the size of the list if there is none. */
size_t chat_messages_last_turn(const json_t *list);
void chat_messages_cut(json_t *list, size_t size); /* keeps the first `size` messages */

/* Removes an assistant's message at the end of the list, if there is one, and appends its text, the
 * beginning of an answer, to `begun`. Fails with BASE_USAGE if it has calls or reasoning. */
bool chat_messages_take_begun(json_t *list, struct base_buffer *begun, struct base_error *err);

/* Writes the list, one message per line. */
bool chat_messages_write(const json_t *list, struct base_output *file, struct base_error *err);

/* Makes a new string with `by` in place of each byte that is not UTF-8; NULL with
 * BASE_NO_MEMORY. */
json_t *chat_text_mended(const char *text, size_t size, const char *by, struct base_error *err);

/* cli/chat/messages.h: conversations as JSON: reading, checking, changing, writing.
 *
 * Contains the form of --messages, --tools and the files that `infer chat` saves: a list of
 * messages as in OpenAI's interface: role, content (a text or a list of parts), reasoning_content,
 * tool_calls, tool_call_id, name. The template decides which roles are valid. Errors in a file are
 * BASE_USAGE with its line and column, or the message's number. */
#ifndef CLI_CHAT_MESSAGES_H
#define CLI_CHAT_MESSAGES_H

#include "base/buffer.h"
#include "base/output.h"
#include "cli/options.h"
#include <jansson.h>

/* Reads a JSON value from a file ("-": standard input); the caller owns *out. */
bool cli_json_read(const char *path, json_t **out, struct base_error *err);
/* Parses a JSON value from a text; `what` names the text in messages. Returns NULL on failure. */
json_t *cli_json_parse(const char *text, size_t size, const char *what, struct base_error *err);
/* Returns a member of an object; NULL if there is none, or it is null. */
const json_t *cli_json_member(const json_t *object, const char *name);

/* Reads a list of messages from a file, or from the text of a list, and checks it; a new
 * reference. */
bool cli_messages_read(const char *given, json_t **out, struct base_error *err);
/* Makes the initial conversation, a new reference: the messages of a file and a system message,
 * each of which may be NULL. Fails with BASE_USAGE for two system messages. */
bool cli_messages_open(const char *path, const char *system, json_t **out, struct base_error *err);
/* Reads the list of --tools, from the file or from the text of a list (texts_only: always), and
 * checks that each is an object; *out is NULL without the option. */
bool cli_tools_read(const struct cli_values *values, json_t **out, struct base_error *err);

/* Appends a message whose content is a text. A byte that is not UTF-8 is skipped (`lossy`), or is
 * BASE_USAGE with its position. */
bool cli_messages_add(json_t *list, const char *role, const char *text, size_t size, bool lossy,
                      struct base_error *err);
/* Makes `text` the system message, which is the first one; NULL removes it. */
bool cli_messages_set_system(json_t *list, const char *text, struct base_error *err);
/* Makes a new conversation, a new reference: a copy of `given` (the member `messages` of a line;
 * NULL: empty), preceded by `system` if it has no system message (NULL: none), followed by
 * `question` as a user's message (NULL: none). Returns NULL with BASE_USAGE for a value that is not
 * a list of messages, an empty question or a list without messages. */
json_t *cli_messages_of_line(const json_t *given, const char *system,
                             const struct base_buffer *question, bool lossy,
                             struct base_error *err);
/* Returns the number of system messages at the beginning of the list: 0 or 1. */
size_t cli_messages_n_system(const json_t *list);
/* Returns the role of message i; "" past the end. */
const char *cli_messages_role(const json_t *list, size_t i);
/* Returns the index of the last turn's user message; the size of the list if there is none. */
size_t cli_messages_last_turn(const json_t *list);
void cli_messages_cut(json_t *list, size_t size); /* keeps the first `size` messages */

/* Removes an assistant's message at the end of the list, if there is one, and appends its text, the
 * beginning of an answer, to `begun`. Fails with BASE_USAGE if it has calls or reasoning. */
bool cli_messages_take_begun(json_t *list, struct base_buffer *begun, struct base_error *err);

/* Writes the list, one message per line. */
bool cli_messages_write(const json_t *list, struct base_output *file, struct base_error *err);

/* Appends the value of a member as text[0..size), from which the object was read, has it. */
void cli_json_add_own(struct base_buffer *out, const json_t *object, const char *text, size_t size,
                      const char *name);
/* Makes a new string. Returns NULL with BASE_NO_MEMORY, or BASE_USAGE with the position of a byte
 * that is not UTF-8. */
json_t *cli_json_text(const char *text, size_t size, struct base_error *err);
/* Makes a new string with `by` in place of each byte that is not UTF-8; NULL: BASE_NO_MEMORY. */
json_t *cli_json_text_mended(const char *text, size_t size, const char *by, struct base_error *err);

#endif

/* cli/chat/chat_files.h: what a conversation on the command line reads from files: --messages,
 * --tools, --template. A request of another source has these as texts or JSON.
 *
 * "-" is standard input. Errors in a file are BASE_USAGE with its name, and line and column or the
 * message's number. */
#pragma once

#include "chat/chat_template.h"
#include "cli/load.h"

/* Reads a list of messages from a file, or from the text of a list, and checks it; a new
 * reference. */
bool cli_messages_read(const char *given, json_t **out, struct base_error *err);
/* Makes the initial conversation, a new reference: the messages of a file and a system message,
 * each of which may be NULL. Fails with BASE_USAGE for two system messages. */
bool cli_messages_open(const char *path, const struct chat_settings *chat, json_t **out,
                       struct base_error *err);
/* Reads the request's list of tools, a new reference, and checks that each is an object; *out is
 * NULL without one. `names_files`: --tools may be the name of a file. */
bool cli_tools_read(const struct chat_settings *chat, bool names_files, json_t **out,
                    struct base_error *err);
/* Calls chat_template_open. `names_files`: --template may be the name of a file, not a text. */
bool cli_template_open(struct chat_template *t, const struct chat_settings *chat, bool names_files,
                       const struct cli_model *model, json_t *tools, struct base_error *err);

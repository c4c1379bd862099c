/* cli/chat/tool_choice.h: --tool-choice: the answer is a call of one of the tools.
 *
 * It finds the form in which a model's template writes a call by a trial conversation, and makes a
 * constraint from it and the tools' schemas; text/chat/reply.h reads calls. */
#ifndef CLI_CHAT_TOOL_CHOICE_H
#define CLI_CHAT_TOOL_CHOICE_H

#include "cli/chat/chat_template.h"
#include "cli/generation.h"

/* Sets the constraint of the request's tool_choice in `g`; none for NULL and "auto". Fails with
 * BASE_USAGE for an unknown tool, a schema that cannot be enforced, and a template that does not
 * write the arguments of calls as JSON. */
bool cli_tool_choice_open(const struct chat_request *request, const struct cli_chat_template *t,
                          const struct cli_model *model, struct cli_generation *g,
                          struct base_error *err);

#endif

/* cli/chat/tool_choice.h: --tool-choice: the answer is a call of one of the tools.
 *
 * Owns: the form in which a model's template writes a call, found by a trial conversation, and the
 * constraint that is made of it and of the tools' schemas. Refuses: reading calls
 * (text/chat/reply.h), calling tools. */
#ifndef CLI_CHAT_TOOL_CHOICE_H
#define CLI_CHAT_TOOL_CHOICE_H

#include "cli/chat/chat_template.h"
#include "cli/generation.h"

/* Gives `g` the constraint of values->tool_choice; nothing for NULL and "auto". BASE_USAGE for a
 * tool that does not exist, a schema that cannot be enforced, and a template whose form of calls
 * has no arguments as JSON. */
bool cli_tool_choice_open(const struct cli_values *values, const struct cli_chat_template *t,
                          const struct cli_model *model, struct cli_generation *g,
                          struct base_error *err);

#endif

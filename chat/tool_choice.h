/* chat/tool_choice.h: the answer is a call of one of the tools.
 *
 * It finds the form in which a model's template writes a call by a trial conversation, and makes a
 * constraint from it and the tools' schemas; text/chat/reply.h reads calls. */
#pragma once

#include "chat/chat_template.h"

/* Sets *out to the constraint of the request's tool_choice, which the caller frees, and appends its
 * control tokens to `marks` (struct generate_options); *out does not change for NULL and "auto".
 * Fails with BASE_USAGE for an unknown tool, a schema that cannot be enforced, and a template that
 * does not write the arguments of calls as JSON. */
bool chat_tool_choice_compile(const struct chat_request *request, const struct chat_template *t,
                              struct constraint **out, struct base_buffer *marks,
                              struct base_error *err);

/* Passes on the rules of a schema that generation does not enforce, if there are any; `source`
 * names the schema. */
void chat_schema_note(const struct chat_caller *caller, const struct constrain_notes *notes,
                      const char *source);

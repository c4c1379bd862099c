/* text/chat/chat_formats.h: chat templates by name, for files that have none.
 *
 * Owns: short Jinja texts of the usual formats, written from their public descriptions. Each takes
 * messages of the roles system, user and assistant with text as content, bos_token, eos_token and
 * add_generation_prompt; another role is an error that names it (chatml writes any role). Formats
 * without a system message put its text before the first user message. Refuses: guessing a name
 * from a model, tools, reasoning. */
#ifndef TEXT_CHAT_CHAT_FORMATS_H
#define TEXT_CHAT_CHAT_FORMATS_H

#include <stddef.h>

/* The text of the template of this name, for jinja_template_parse; NULL when there is none. */
const char *text_chat_format(const char *name);

/* The names in order, for help and messages; NULL at the end of the list. */
const char *text_chat_format_name(size_t i);

#endif

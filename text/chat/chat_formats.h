/* text/chat/chat_formats.h: chat templates by name, for files without a template.
 *
 * Contains short Jinja texts of the usual formats, written from their public descriptions. Each
 * renders messages of the roles system, user and assistant with text as content, bos_token,
 * eos_token and add_generation_prompt. Another role is an error that names it, except in chatml,
 * which writes any role. Formats without a system message write its text before the first user
 * message. There are no tools and no reasoning, and no name is derived from a model. */
#pragma once

#include <stddef.h>

/* Returns the text of the template of this name, for jinja_template_parse; NULL if there is
 * none. */
const char *text_chat_format(const char *name);

/* Returns name i for help and messages; NULL past the end. */
const char *text_chat_format_name(size_t i);

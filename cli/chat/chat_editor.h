/* cli/chat/chat_editor.h: lines that are edited at a terminal. A build without libedit (EDIT=no)
 * has chat_editor_none.c instead of chat_editor.c and chat_history.c. */
#pragma once

#include "cli/chat/chat_line.h"
#include <stdbool.h>
#include <wchar.h>

struct cli_editor; /* opaque */

/* Makes an editor for standard input, a terminal; `keep`: as in cli_lines_open. *out is NULL if the
 * build has no editor: then lines are read as they are typed. Returns false without memory. */
bool cli_editor_open(bool keep, struct cli_editor **out);
void cli_editor_close(struct cli_editor *e); /* accepts NULL */

/* Appends a line without its end. libedit's mark of control sequences in `prompt` is the byte 1. */
enum cli_line_result cli_editor_line(struct cli_editor *e, const wchar_t *prompt,
                                     struct base_buffer *out);

/* As cli_lines_hide_typing; accepts NULL. */
void cli_editor_hide_typing(struct cli_editor *e, bool hide);

/* cli/chat/chat_editor_none.c: a build without libedit. See cli/chat/chat_editor.h. */
#include "cli/chat/chat_editor.h"

bool cli_editor_open(bool keep, struct cli_editor **out)
{
    (void)keep;
    *out = NULL;
    return true;
}

void cli_editor_close(struct cli_editor *e)
{
    (void)e;
}

enum cli_line_result cli_editor_line(struct cli_editor *e, const wchar_t *prompt,
                                     struct base_buffer *out)
{
    (void)e, (void)prompt, (void)out;
    return CLI_LINE_END;
}

void cli_editor_hide_typing(struct cli_editor *e, bool hide)
{
    (void)e, (void)hide;
}

/* cli/chat/chat_history.h: history of typed lines for the line editor, stored in a file.
 *
 * The file is ${XDG_STATE_HOME:-~/.local/state}/infer/history, readable only by its owner, one line
 * each; commands ("/save ...") and texts of several lines are kept only in memory. A failure of the
 * file never prevents typing: nothing here is an error. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

struct cli_history; /* opaque */

/* Opens the history; with `keep` false no file is read or written. Returns NULL without memory. */
struct cli_history *cli_history_open(bool keep);
void cli_history_close(struct cli_history *h); /* accepts NULL */

/* Returns libedit's HistoryW. */
void *cli_history_list(const struct cli_history *h);

void cli_history_add(struct cli_history *h, const char *text, size_t size); /* UTF-8 */

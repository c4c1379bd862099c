/* cli/sandbox.h: what the process may still ask of the kernel once its inputs and outputs are open.
 *
 * Two steps, because threads inherit what stood before them, and only that:
 *
 *     cli_sandbox_limit    before threads start (Landlock): from here on files are written, made,
 *                          renamed and removed in one folder only, no program is
 *                          started and no TCP port used
 *     cli_sandbox_close    in all threads (seccomp): no file is opened, no program started, no
 *                          process made, nothing of the network, of other processes or of the
 *                          terminal but reading, writing and its modes
 *
 * What is refused fails with EPERM, EACCES or ENOSYS: no signal. A kernel or a build that lacks one
 * of the two goes without it; cli_sandbox_facts says which there are. Owns: the lists of what is
 * allowed. Refuses: when to call it, options. */
#ifndef CLI_SANDBOX_H
#define CLI_SANDBOX_H

#include <stdbool.h>

enum {
    CLI_SANDBOX_RENAME = 1, /* an open output still gets its name, or is removed */
    CLI_SANDBOX_FILES = 3   /* files may be opened, too: for who types their names */
};

/* `file`: what is written, in its folder; NULL and "-": nothing. */
void cli_sandbox_limit(const char *file);

/* `allowed`: 0, or one of the above. */
void cli_sandbox_close(unsigned allowed);

struct cli_sandbox_facts {
    int landlock; /* its version; 0: none */
    bool seccomp;
};
struct cli_sandbox_facts cli_sandbox_facts(void);

#endif

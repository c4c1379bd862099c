/* cli/sandbox.h: restricts the system calls of the process once its inputs and outputs are open.
 *
 * There are two steps, because threads inherit only restrictions that precede them:
 *
 *     cli_sandbox_limit    before threads start (Landlock): from here on files are written, made,
 *                          renamed and removed in one folder only, no program is
 *                          started and no TCP port used
 *     cli_sandbox_close    in all threads (seccomp): no file is opened, no program started, no
 *                          process made; no access to the network or other processes; of the
 *                          terminal only reading, writing and its modes
 *
 * Forbidden calls fail with EPERM, EACCES or ENOSYS, without a signal. If the kernel or the build
 * has only one of the two, only this one is used; cli_sandbox_facts reports which exist. */
#pragma once

#include <stdbool.h>

enum {
    CLI_SANDBOX_RENAME = 1, /* an open output may be renamed or removed */
    CLI_SANDBOX_FILES = 3,  /* files may also be opened, for commands that name files */
    CLI_SANDBOX_GPU = 4     /* a GPU's driver may use its devices, which are open */
};

/* Allows writing only to the folder of the output `file`; NULL and "-": none. */
void cli_sandbox_limit(const char *file);

/* Allows writing only below one folder, and TCP, for a command that uses the network. */
void cli_sandbox_limit_to(const char *folder);

/* For a command whose user names files while it runs: no program, no TCP port, no access to the
 * memory of other processes; files are not restricted. */
void cli_sandbox_limit_programs(void);

/* Also closes all descriptors that the process inherited, except for the standard streams.
 * `allowed`: 0, or the values above. */
void cli_sandbox_close(unsigned allowed);

enum { CLI_SANDBOX_SCOPED = 6 /* version of Landlock from which signals have a scope */ };

struct cli_sandbox_facts {
    int landlock; /* its version; 0: none */
    bool seccomp;
};
struct cli_sandbox_facts cli_sandbox_facts(void);

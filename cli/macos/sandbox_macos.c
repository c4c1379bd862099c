/* cli/macos/sandbox_macos.c: macOS has no sandbox that a program without a bundle may still enter
 * by a public call (docs/security.md). See cli/sandbox.h. */
#include "cli/sandbox.h"

void cli_sandbox_limit(const char *file)
{
    (void)file;
}

void cli_sandbox_limit_to(const char *folder)
{
    (void)folder;
}

void cli_sandbox_limit_programs(void) {}

void cli_sandbox_close(unsigned allowed)
{
    (void)allowed;
}

struct cli_sandbox_facts cli_sandbox_facts(void)
{
    return (struct cli_sandbox_facts){0};
}

/* cli/sandbox_none.h: the functions of cli/sandbox.h where there is no sandbox, for the one file of
 * a system that defines them. */
#pragma once

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

/* cli/out/profile_report.h: a profile as a table on stderr. See cli/out/profile_report.c. */
#pragma once

#include "engine/profile.h"

/* Prints one line per kind of node, the longest time first, for `n_tokens` tokens. */
void cli_profile_print(const char *title, const struct engine_profile *p, uint32_t n_tokens);

/* cli/macos/sandbox_macos.c: macOS has no sandbox that a program without a bundle may still enter
 * by a public call (docs/security.md). See cli/sandbox.h. */
#include "cli/sandbox_none.h"

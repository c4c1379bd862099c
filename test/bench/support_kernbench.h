/* test/bench/support_kernbench.h: the speed of every kernel of the table: test_checkkern --bench.
 */
#pragma once

#include <stdint.h>

/* Prints a table to stdout; memory-sized buffers have `mib` MiB. Returns an exit status. */
int kernbench_run(uint64_t mib);

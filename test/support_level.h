/* test/support_level.h: iterates over the levels of base/cpu.h that this machine supports. A
 * program reports each other level of the machine's family once ("skipped: avx512 (this machine
 * lacks it)"), so that its output shows what was not tested. */
#pragma once

#include "base/cpu.h"

/* Whether the machine runs the level; reports it otherwise. */
bool support_level_runs(enum cpu_level level);

/* How many families of base/cpu.h this run tests: all, or the one that INFER_TEST_FAMILY names. */
int support_families(void);
/* One of these: consecutive turns have different ones. */
const struct cpu_family *support_family_at(int turn);

/* Whether case i is part of this run. Short runs for a family (INFER_TEST_FAMILY) share the cases:
 * each is part of the run for one family. */
bool support_family_takes(size_t i);

/* Advances *level, which may be CPU_LEVEL_COUNT, to the first level >= *level that the machine
 * runs; false if there is none:
 *     for (int level = CPU_SCALAR; support_level_next(&level); level++) */
bool support_level_next(int *level);

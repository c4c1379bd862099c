/* test/support_level.h: the levels of base/cpu.h that this machine runs, for programs that go over
 * them. A level that it lacks is named once a program ("skipped: avx512 (this machine lacks it)"),
 * so that what a run did not prove is in its report. */
#ifndef TEST_SUPPORT_LEVEL_H
#define TEST_SUPPORT_LEVEL_H

#include "base/cpu.h"

/* Whether the machine runs it; otherwise names it. */
bool support_level_runs(enum cpu_level level);

/* Moves *level, which may be CPU_LEVEL_COUNT, to the next level from it on that the machine runs;
 * false when there is none:
 *     for (int level = CPU_SCALAR; support_level_next(&level); level++) */
bool support_level_next(int *level);

#endif

/* cli/hwinfo.h: facts about this machine from the operating system, for `infer doctor`.
 *
 * It reads /proc and /sys for what the engine itself does not need. Any fact may be missing, and is
 * then printed as not known: a text is "", a number 0 (or -1 if 0 is a valid value). */
#pragma once

#include "base/memory.h"
#include <stdbool.h>

enum { CLI_FEATURE_MAX = 16 };

struct cli_machine {
    char cpu[128];                        /* "AMD EPYC 9R14" */
    const char *feature[CLI_FEATURE_MAX]; /* features that kernels use, as the system names them */
    int n_features;                       /* their number */
    bool features_known;                  /* the system names features */
    int online, allowed, cores;           /* processors; in the affinity mask; cores among these */
    int quota;   /* processors by control groups; 0: no limit; -1: unknown */
    int threads; /* default number of threads */
    struct base_memory memory;
    char huge_pages[16]; /* "always", "madvise", "never" */
    char governor[32];   /* of processor 0 */
    double load;         /* runnable tasks, mean of a minute; -1: unknown */
};

void cli_machine_read(struct cli_machine *m);
bool cli_machine_has(const struct cli_machine *m, const char *feature);

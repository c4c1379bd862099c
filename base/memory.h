/* base/memory.h: how much memory this process may use. Every default that depends on memory uses
 * base_memory_room, so that a container decides by its limit and not by its host. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct base_memory {
    bool known, limits_known; /* of the machine; control groups. Otherwise the numbers are 0 */
    uint64_t total, free;     /* of the machine in bytes; free: available without swapping */
    uint64_t limit;           /* the lowest limit of the control groups; UINT64_MAX: none */
    uint64_t left;            /* the least of limit - use of each group, page cache not counted */
};

/* `root`: the path of a root directory, "" for the real one, of which the numbers are those of
 * base_memory_keep if its files cannot be read. */
void base_memory_read(const char *root, struct base_memory *m);

/* Keeps the numbers of now, for a process that can open no file later. No other thread may read
 * them meanwhile. */
void base_memory_keep(void);

/* Sets *bytes to what can be used without swapping: the smaller of the machine's free memory and of
 * what the control groups leave. False: unknown. */
bool base_memory_room(const struct base_memory *m, uint64_t *bytes);

/* Half of that for this process, as the size of something without an option; `standard` if it
 * is unknown or larger. */
uint64_t base_memory_half(uint64_t standard);

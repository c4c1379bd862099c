/* test/emulator.h: runs device code (quant/gpu/dialect.h) on this processor.
 *
 * A thread of a block is a fiber: it runs until it synchronizes or exchanges a value, and then
 * waits until all lanes of its warp, or all threads of its block, are there. In between, lanes and
 * warps run one by one, in an order that the seed permutes, and shared memory begins with other
 * bytes in each block: code that lacks a synchronization or reads what no thread wrote gives other
 * bits. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct emulator_grid {
    uint32_t x, y;    /* blocks */
    uint32_t threads; /* of a block, a multiple of 32, at most 1024 */
    size_t shared;    /* bytes of a block's shared memory */
};

/* The kernel of a name, or NULL; the program must have been linked with -rdynamic. */
void (*emulator_kernel(const char *name))(const void *arguments);

/* Runs a kernel. False: lanes of a warp, or warps of a block, waited for different things, or a
 * thread ended while others waited for it. One thread of the host may call it at a time. */
bool emulator_run(void (*kernel)(const void *arguments), const void *arguments,
                  const struct emulator_grid *grid, uint64_t seed);

/* test/emulator.c: see test/emulator.h. */
#include "test/emulator.h"
#include "quant/gpu/dialect.h"
#include "test/support_random.h"
#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>
#include <ucontext.h>

enum { STACK = 128 << 10, MAX_THREADS = 1024 };

enum waits_for { THE_WARP, A_SHUFFLE, THE_BLOCK, NOTHING /* it has ended */ };

static struct {
    ucontext_t scheduler, fiber[MAX_THREADS];
    enum waits_for state[MAX_THREADS];
    uint32_t value[MAX_THREADS]; /* of a shuffle */
    char *stacks;                /* [threads][STACK] */
    void *shared;
    void (*kernel)(const void *arguments);
    const void *arguments;
    struct emulator_grid grid;
    uint32_t thread, block, block_y; /* that run now */
    uint64_t rng;
} emulator;

/* ---- The functions of the dialect ---- */

int gpu_thread(void)
{
    return (int)emulator.thread;
}

int gpu_block(void)
{
    return (int)emulator.block;
}

int gpu_block_y(void)
{
    return (int)emulator.block_y;
}

void *gpu_shared(void)
{
    return emulator.shared;
}

static void wait_for(enum waits_for what)
{
    const uint32_t thread = emulator.thread;
    emulator.state[thread] = what;
    swapcontext(&emulator.fiber[thread], &emulator.scheduler);
}

void gpu_sync(void)
{
    wait_for(THE_BLOCK);
}

void gpu_sync_warp(void)
{
    wait_for(THE_WARP);
}

uint32_t gpu_shuffle_xor(uint32_t x, int mask)
{
    emulator.value[emulator.thread] = x;
    wait_for(A_SHUFFLE);
    const uint32_t other = emulator.value[emulator.thread ^ (uint32_t)mask];
    wait_for(A_SHUFFLE); /* until all have read */
    return other;
}

/* ---- The scheduler ---- */

void (*emulator_kernel(const char *name))(const void *)
{
    void *symbol = dlsym(RTLD_DEFAULT, name);
    void (*kernel)(const void *);
    memcpy(&kernel, &symbol, sizeof kernel);
    return kernel;
}

static void enter(void)
{
    emulator.kernel(emulator.arguments);
    wait_for(NOTHING);
}

static void permute(uint32_t n, uint32_t *order)
{
    for (uint32_t i = 0; i < n; i++) {
        const uint32_t j = support_random_below(&emulator.rng, i + 1);
        order[i] = order[j];
        order[j] = i;
    }
}

/* Runs the lanes of a warp until they wait for the block or have ended. */
static bool run_warp(uint32_t warp)
{
    const enum waits_for *state = emulator.state + warp * GPU_WARP;
    do {
        uint32_t order[GPU_WARP];
        permute(GPU_WARP, order);
        for (int i = 0; i < GPU_WARP; i++) {
            emulator.thread = warp * GPU_WARP + order[i];
            swapcontext(&emulator.scheduler, &emulator.fiber[emulator.thread]);
        }
        for (int i = 1; i < GPU_WARP; i++)
            if (state[i] != state[0]) return false;
    } while (state[0] == THE_WARP || state[0] == A_SHUFFLE);
    return true;
}

static bool run_block(void)
{
    const uint32_t n_warps = emulator.grid.threads / GPU_WARP;
    for (size_t i = 0; i < emulator.grid.shared; i++)
        ((uint8_t *)emulator.shared)[i] = (uint8_t)support_random(&emulator.rng);
    for (uint32_t t = 0; t < emulator.grid.threads; t++) {
        ucontext_t *fiber = &emulator.fiber[t];
        getcontext(fiber);
        fiber->uc_stack.ss_sp = emulator.stacks + (size_t)t * STACK;
        fiber->uc_stack.ss_size = STACK;
        makecontext(fiber, enter, 0);
    }
    do {
        uint32_t order[MAX_THREADS / GPU_WARP];
        permute(n_warps, order);
        for (uint32_t i = 0; i < n_warps; i++)
            if (!run_warp(order[i])) return false;
        for (uint32_t i = 1; i < n_warps; i++)
            if (emulator.state[i * GPU_WARP] != emulator.state[0]) return false;
    } while (emulator.state[0] == THE_BLOCK);
    return true;
}

bool emulator_run(void (*kernel)(const void *), const void *arguments,
                  const struct emulator_grid *grid, uint64_t seed)
{
    bool ok = grid->threads % GPU_WARP == 0 && grid->threads <= MAX_THREADS;
    emulator.kernel = kernel;
    emulator.arguments = arguments;
    emulator.grid = *grid;
    emulator.rng = seed;
    emulator.stacks = malloc((size_t)grid->threads * STACK);
    emulator.shared = malloc(grid->shared + 1);
    ok = ok && emulator.stacks && emulator.shared;
    for (emulator.block_y = 0; ok && emulator.block_y < grid->y; emulator.block_y++)
        for (emulator.block = 0; ok && emulator.block < grid->x; emulator.block++) ok = run_block();
    free(emulator.stacks);
    free(emulator.shared);
    return ok;
}

/* test/emulator.c: see test/emulator.h. */
#include "test/emulator.h"
#include "quant/gpu/dialect.h"
#include "test/support_random.h"
#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>
#include <ucontext.h>

enum { STACK = 128 << 10, MAX_THREADS = 1024, MAX_COPIES = 64 /* of a thread, not waited for */ };

enum waits_for { THE_WARP, A_SHUFFLE, THE_BLOCK, NOTHING /* it has ended */ };

#if defined(__x86_64__)
typedef void *context; /* the stack's end; it has the registers that calls preserve */

void emulator_switch(context *from, context to);
__asm__(".text\n"
        "emulator_switch:\n"
        "pushq %rbp\npushq %rbx\npushq %r12\npushq %r13\npushq %r14\npushq %r15\n"
        "movq %rsp, (%rdi)\n"
        "movq %rsi, %rsp\n"
        "popq %r15\npopq %r14\npopq %r13\npopq %r12\npopq %rbx\npopq %rbp\n"
        "ret\n");

static void context_new(context *of, char *stack, void (*enter)(void))
{
    void **at = (void **)(void *)(stack + STACK) - 2; /* as after a call */
    memcpy(at, &enter, sizeof enter);
    memset(at - 6, 0, 6 * sizeof *at);
    *of = at - 6;
}
#else
typedef ucontext_t context; /* whose switch is slower: it also sets the mask of signals */

#define emulator_switch(from, to) swapcontext(from, &(to))

static void context_new(context *of, char *stack, void (*enter)(void))
{
    getcontext(of);
    of->uc_stack.ss_sp = stack;
    of->uc_stack.ss_size = STACK;
    makecontext(of, enter, 0);
}
#endif

static struct {
    context scheduler, fiber[MAX_THREADS];
    char *stack[MAX_THREADS]; /* of the first n_fibers */
    uint32_t n_fibers;        /* which wait for a block, or within one */
    enum waits_for state[MAX_THREADS];
    uint32_t value[MAX_THREADS];                   /* of a shuffle */
    const uint8_t *row[MAX_THREADS];               /* of matrices that are loaded */
    uint32_t a[MAX_THREADS][4], b[MAX_THREADS][2]; /* of matrices that are multiplied */
    struct copies {
        int n, n_groups; /* groups that have ended */
        struct {
            void *to;
            const void *from;
            int group;
        } copy[MAX_COPIES];
    } copies[MAX_THREADS];
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

int gpu_thread_again(void)
{
    return gpu_thread();
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
    emulator_switch(&emulator.fiber[thread], emulator.scheduler);
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

void gpu_load_matrices(const void *row, uint32_t out[4])
{
    const uint32_t first = emulator.thread / GPU_WARP * GPU_WARP, lane = emulator.thread % GPU_WARP;
    if ((uintptr_t)row % 16) abort();
    emulator.row[emulator.thread] = row;
    wait_for(A_SHUFFLE);
    for (uint32_t i = 0; i < 4; i++)
        memcpy(&out[i], emulator.row[first + 8 * i + lane / 4] + 4 * (lane % 4), 4);
    wait_for(A_SHUFFLE);
}

static int dot4_of_signs(uint32_t a, uint32_t b, int sum)
{
    return gpu_dot4(b, a, sum);
}

/* n: words of an element of sum, in two rows and columns of four lanes each. */
static void multiply(uint32_t n, const uint32_t *a, const uint32_t *b, int sum[4],
                     int (*dot4)(uint32_t a, uint32_t b, int sum))
{
    const uint32_t thread = emulator.thread, first = thread / GPU_WARP * GPU_WARP;
    memcpy(emulator.a[thread], a, 2 * n * sizeof *a);
    memcpy(emulator.b[thread], b, n * sizeof *b);
    wait_for(A_SHUFFLE);
    for (uint32_t i = 0; i < 4; i++) {
        const uint32_t row = (thread - first) / 4 * 4, column = (2 * (thread % 4) + i % 2) * 4;
        for (uint32_t t = 0; t < 4; t++)
            for (uint32_t w = 0; w < n; w++)
                sum[i] = dot4(emulator.a[first + row + t][2 * w + i / 2],
                              emulator.b[first + column + t][w], sum[i]);
    }
    wait_for(A_SHUFFLE);
}

void gpu_multiply_16(const uint32_t a[2], uint32_t b, int sum[4])
{
    multiply(1, a, &b, sum, gpu_dot4_signed);
}

void gpu_multiply_32(const uint32_t a[4], const uint32_t b[2], int sum[4])
{
    multiply(2, a, b, sum, gpu_dot4_signed);
}

void gpu_multiply_32_unsigned(const uint32_t a[4], const uint32_t b[2], int sum[4])
{
    multiply(2, a, b, sum, dot4_of_signs);
}

int gpu_dot4(uint32_t a, uint32_t b, int sum)
{
    for (int i = 0; i < 32; i += 8) sum += (uint8_t)(a >> i) * (int8_t)(b >> i);
    return sum;
}

int gpu_dot4_signed(uint32_t a, uint32_t b, int sum)
{
    for (int i = 0; i < 32; i += 8) sum += (int8_t)(a >> i) * (int8_t)(b >> i);
    return sum;
}

uint32_t gpu_funnel(uint32_t low, uint32_t high, int bits)
{
    return (uint32_t)(((uint64_t)high << 32 | low) >> (bits & 31));
}

uint32_t gpu_choose(uint32_t low, uint32_t high, uint32_t which)
{
    const uint64_t both = (uint64_t)high << 32 | low;
    uint32_t out = 0;
    for (int i = 0; i < 4; i++) out |= (uint32_t)(both >> (which >> 4 * i & 7) * 8 & 255) << 8 * i;
    return out;
}

/* Copies are made when they are waited for: code that does not wait reads other bytes. */
void gpu_copy16(void *shared, const void *from)
{
    struct copies *c = &emulator.copies[emulator.thread];
    if (c->n == MAX_COPIES || (uintptr_t)shared % 16 || (uintptr_t)from % 16) abort();
    c->copy[c->n].to = shared;
    c->copy[c->n].from = from;
    c->copy[c->n++].group = c->n_groups;
}

void gpu_prefetch(const void *at)
{
    (void)*(const volatile char *)at;
}

void gpu_copies_end(void)
{
    emulator.copies[emulator.thread].n_groups++;
}

void gpu_copies_wait(int n)
{
    struct copies *c = &emulator.copies[emulator.thread];
    int left = 0;
    for (int i = 0; i < c->n; i++) {
        if (c->copy[i].group < c->n_groups - n)
            memcpy(c->copy[i].to, c->copy[i].from, 16);
        else
            c->copy[left++] = c->copy[i];
    }
    c->n = left;
}

/* ---- The scheduler ---- */

void (*emulator_kernel(const char *name))(const void *)
{
    void *symbol = dlsym(RTLD_DEFAULT, name);
    void (*kernel)(const void *);
    memcpy(&kernel, &symbol, sizeof kernel);
    return kernel;
}

/* A fiber runs its thread of all blocks. */
static void enter(void)
{
    for (;;) {
        emulator.kernel(emulator.arguments);
        wait_for(NOTHING);
    }
}

static bool make_fibers(void)
{
    for (uint32_t i = emulator.n_fibers; i < emulator.grid.threads; i++) {
        if (!emulator.stack[i] && !(emulator.stack[i] = malloc(STACK))) return false;
        context_new(&emulator.fiber[i], emulator.stack[i], enter);
        emulator.n_fibers = i + 1;
    }
    return true;
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
            emulator_switch(&emulator.scheduler, emulator.fiber[emulator.thread]);
        }
        for (int i = 1; i < GPU_WARP; i++)
            if (state[i] != state[0]) return false;
    } while (state[0] == THE_WARP || state[0] == A_SHUFFLE);
    return true;
}

static bool run_block(void)
{
    const uint32_t n_warps = emulator.grid.threads / GPU_WARP;
    for (uint32_t i = 0; i < emulator.grid.threads; i++)
        emulator.copies[i].n = emulator.copies[i].n_groups = 0;
    memset(emulator.shared, (int)support_random_below(&emulator.rng, 256), emulator.grid.shared);
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
    emulator.shared = malloc(grid->shared + 1);
    ok = ok && emulator.shared && make_fibers();
    for (emulator.block_y = 0; ok && emulator.block_y < grid->y; emulator.block_y++)
        for (emulator.block = 0; ok && emulator.block < grid->x; emulator.block++) ok = run_block();
    free(emulator.shared);
    if (!ok) emulator.n_fibers = 0; /* they may be within a kernel */
    return ok;
}

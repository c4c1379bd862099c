/* quant/gpu/dialect.h: the language of the code for GPUs (device code): C, and the functions below.
 *
 * Device code is compiled twice. clang compiles it for NVIDIA's GPUs, to PTX, the text that their
 * drivers assemble. The compiler of all other files compiles it, too, and tests run that form on
 * test/emulator.c. As all C, it has the bits of the C source: no contraction, round to nearest,
 * subnormal numbers; scripts/lint checks the PTX for that.
 *
 * A kernel is a function that the host starts on a grid of blocks; a block has threads, and 32
 * consecutive threads are the lanes of a warp. All threads of all blocks call the kernel.
 *
 *     grid     block 0            block 1            ..
 *     block    warp 0 | warp 1 |  warp 0 | warp 1 |
 *     warp     lanes 0 .. 31
 *
 * Lanes exchange values by gpu_shuffle_xor, threads of a block by the block's shared memory,
 * between whose writing and reading they must synchronize. A function that synchronizes or
 * exchanges must be called by all lanes of the warp (gpu_sync: all threads of the block). Blocks
 * run in any order, and exchange nothing. */
#pragma once

#include <stddef.h>
#include <stdint.h>

enum { GPU_WARP = 32 };

/* i = 0 .. n - 1, fully unrolled. */
#define GPU_EACH(i, n) GPU_UNROLL for (int i = 0; i < (n); i++)

#if defined(__NVPTX__)

#define GPU_UNROLL _Pragma("unroll")
#define GPU_LOOP   _Pragma("nounroll")
#define gpu_now(x) __asm__ volatile("" : "+f"(x))

static inline int gpu_thread(void)
{
    return __nvvm_read_ptx_sreg_tid_x();
}

static inline int gpu_thread_again(void)
{
    int thread;
    __asm__ volatile("mov.u32 %0, %%tid.x;" : "=r"(thread));
    return thread;
}

static inline int gpu_block(void)
{
    return __nvvm_read_ptx_sreg_ctaid_x();
}

static inline int gpu_block_y(void)
{
    return __nvvm_read_ptx_sreg_ctaid_y();
}

static inline void gpu_sync(void)
{
    __nvvm_bar_sync(0);
}

static inline void gpu_sync_warp(void)
{
    __nvvm_bar_warp_sync(~0u);
}

static inline uint32_t gpu_shuffle_xor(uint32_t x, int mask)
{
    return (uint32_t)__nvvm_shfl_sync_bfly_i32(~0u, (int)x, mask, GPU_WARP - 1);
}

static inline int gpu_dot4(uint32_t a, uint32_t b, int sum)
{
    __asm__("dp4a.u32.s32 %0, %1, %2, %0;" : "+r"(sum) : "r"(a), "r"(b));
    return sum;
}

static inline int gpu_dot4_signed(uint32_t a, uint32_t b, int sum)
{
    __asm__("dp4a.s32.s32 %0, %1, %2, %0;" : "+r"(sum) : "r"(a), "r"(b));
    return sum;
}

static inline uint32_t gpu_funnel(uint32_t low, uint32_t high, int bits)
{
    uint32_t out;
    __asm__("shf.r.wrap.b32 %0, %1, %2, %3;" : "=r"(out) : "r"(low), "r"(high), "r"(bits));
    return out;
}

static inline uint32_t gpu_choose(uint32_t low, uint32_t high, uint32_t which)
{
    uint32_t out;
    __asm__("prmt.b32 %0, %1, %2, %3;" : "=r"(out) : "r"(low), "r"(high), "r"(which));
    return out;
}

static inline uint32_t gpu_shared_address(const void *shared)
{
    return (uint32_t)(uintptr_t)(__attribute__((address_space(3))) const char *)shared;
}

static inline void gpu_copy16(void *shared, const void *from)
{
    __asm__ volatile("cp.async.cg.shared.global [%0], [%1], 16;"
                     :
                     : "r"(gpu_shared_address(shared)), "l"(from)
                     : "memory");
}

static inline void gpu_copies_end(void)
{
    __asm__ volatile("cp.async.commit_group;" : : : "memory");
}

#define gpu_copies_wait(n) __asm__ volatile("cp.async.wait_group %0;" : : "n"(n) : "memory")

static inline void gpu_prefetch(const void *at)
{
    __asm__ volatile("prefetch.global.L2 [%0];" : : "l"(at));
}

static inline void gpu_load_matrices(const void *row, uint32_t out[4])
{
    __asm__ volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
                     : "=r"(out[0]), "=r"(out[1]), "=r"(out[2]), "=r"(out[3])
                     : "r"(gpu_shared_address(row))
                     : "memory");
}

static inline void gpu_multiply_16(const uint32_t a[2], uint32_t b, int sum[4])
{
    __asm__("mma.sync.aligned.m16n8k16.row.col.s32.s8.s8.s32 {%0, %1, %2, %3}, {%4, %5}, {%6}, "
            "{%0, %1, %2, %3};"
            : "+r"(sum[0]), "+r"(sum[1]), "+r"(sum[2]), "+r"(sum[3])
            : "r"(a[0]), "r"(a[1]), "r"(b));
}

static inline void gpu_multiply_32(const uint32_t a[4], const uint32_t b[2], int sum[4])
{
    __asm__("mma.sync.aligned.m16n8k32.row.col.s32.s8.s8.s32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, "
            "{%8, %9}, {%0, %1, %2, %3};"
            : "+r"(sum[0]), "+r"(sum[1]), "+r"(sum[2]), "+r"(sum[3])
            : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
}

static inline void gpu_multiply_32_unsigned(const uint32_t a[4], const uint32_t b[2], int sum[4])
{
    __asm__("mma.sync.aligned.m16n8k32.row.col.s32.s8.u8.s32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, "
            "{%8, %9}, {%0, %1, %2, %3};"
            : "+r"(sum[0]), "+r"(sum[1]), "+r"(sum[2]), "+r"(sum[3])
            : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
}

extern __attribute__((address_space(3), aligned(16))) char gpu_shared_memory[];
static inline void *gpu_shared(void)
{
    return (void *)gpu_shared_memory;
}

/* The build makes functions of these names kernels: quant_gpu_.., engine_gpu_.. */
#define GPU_KERNEL(name, args)                                                                     \
    void name(const struct args p);                                                                \
    void name(const struct args p)

#else /* test/emulator.c defines these functions */

#define GPU_UNROLL /* before a loop whose arrays must become registers */
#define GPU_LOOP   /* before a loop that must remain one: its body is long */
/* A float is computed here, not where it is used: what it is computed of needs no registers after
 * this. */
#define gpu_now(x) (void)(x)

int gpu_thread(void); /* of this thread in its block */
/* Returns gpu_thread(), but the compiler does not know that: it computes what depends on it again,
 * where else it would keep too many numbers in registers, throughout a long loop. */
int gpu_thread_again(void);
int gpu_block(void);   /* of this block in its grid, first coordinate */
int gpu_block_y(void); /* second coordinate */
void gpu_sync(void);
void gpu_sync_warp(void);
/* Returns the x of the lane whose number differs from this one's in the bits of mask. */
uint32_t gpu_shuffle_xor(uint32_t x, int mask);
void *gpu_shared(void); /* the block's memory, of the size that the host states; not zeroed */

/* sum + the products of the four bytes of a, unsigned or signed, and of b, signed. */
int gpu_dot4(uint32_t a, uint32_t b, int sum);
int gpu_dot4_signed(uint32_t a, uint32_t b, int sum);
/* Bits `bits` .. `bits` + 31 of high:low, bits < 32. */
uint32_t gpu_funnel(uint32_t low, uint32_t high, int bits);
/* Byte i is that byte of high:low whose number is in bits 4i .. 4i + 2 of `which`, i < 4; bit
 * 4i + 3 must be 0. */
uint32_t gpu_choose(uint32_t low, uint32_t high, uint32_t which);
/* Starts a copy of 16 bytes to shared memory; both addresses are multiples of 16. The copies that a
 * thread has started since the last gpu_copies_end are a group. gpu_copies_wait waits for this
 * thread's groups but the last n, a constant; others see their bytes after a synchronization. */
void gpu_copy16(void *shared, const void *from);
void gpu_copies_end(void);
void gpu_copies_wait(int n);

/* Starts loading the 32 bytes around `at` into the GPU's cache. */
void gpu_prefetch(const void *at);

/* Loads four matrices of 8 rows of 16 bytes in shared memory; `row`, a multiple of 16, is row l % 8
 * of matrix l / 8 for lane l. out[i]: bytes 4t to 4t + 3 of row l / 4 of matrix i, t = l % 4. */
void gpu_load_matrices(const void *row, uint32_t out[4]);
/* Adds the products of signed bytes a[16][K] b[K][8] to sum[16][8], K = 16 or 32. Lane l = 4g + t
 * has a[0], a[1]: elements 4t to 4t + 3 of rows g, g + 8; a[2], a[3]: 16 + 4t to 16 + 4t + 3 of
 * them; b[0], b[1]: the same elements of column g; sum[2i + j]: row g + 8i, column 2t + j. */
void gpu_multiply_16(const uint32_t a[2], uint32_t b, int sum[4]);
void gpu_multiply_32(const uint32_t a[4], const uint32_t b[2], int sum[4]);
/* gpu_multiply_32 with unsigned bytes b. */
void gpu_multiply_32_unsigned(const uint32_t a[4], const uint32_t b[2], int sum[4]);

/* Defines the kernel `name`, whose arguments are a struct args p, and their size. */
#define GPU_KERNEL(name, args)                                                                     \
    extern const size_t name##_arguments;                                                          \
    const size_t name##_arguments = sizeof(struct args);                                           \
    void name(const void *arguments);                                                              \
    static void name##_body(const struct args p);                                                  \
    void name(const void *arguments)                                                               \
    {                                                                                              \
        name##_body(*(const struct args *)arguments);                                              \
    }                                                                                              \
    static void name##_body(const struct args p)

#endif

static inline int gpu_lane(void)
{
    return gpu_thread() % GPU_WARP;
}

static inline int gpu_warp(void)
{
    return gpu_thread() / GPU_WARP;
}

/* quant/level.c: which instruction-set level this machine has, and the kernel table for a level.
 *
 * The table is filled once, with scalar, and climbs level by level; after that it is only read. */
#include "quant/types.h"
#include <strings.h>
#include <unistd.h>

#if defined(__x86_64__)
#include <cpuid.h>

/* The register states that the operating system saves: bit 1 SSE, 2 AVX, 5 to 7 AVX-512. A CPU may
 * have instructions whose registers are lost at every task switch; XGETBV tells. */
static uint32_t saved_states(void)
{
    uint32_t low, high;
    __asm__("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
    return low;
}

static bool has(uint32_t reg, uint32_t bits)
{
    return (reg & bits) == bits;
}

/* Which levels the processor and the system can do. */
static void find_levels(bool can[QUANT_LEVEL_COUNT])
{
    uint32_t a, b, c, d, leaf7_b, leaf7_c, leaf7_1a = 0;

    if (!__get_cpuid(1, &a, &b, &c, &d)) return;
    if (!has(c, bit_FMA | bit_OSXSAVE | bit_AVX | bit_F16C)) return;
    uint32_t saved = saved_states();
    if (!has(saved, 0x6)) return;
    if (!__get_cpuid_count(7, 0, &a, &leaf7_b, &leaf7_c, &d)) return;
    if (a >= 1 && __get_cpuid_count(7, 1, &a, &b, &c, &d)) leaf7_1a = a;

    const uint32_t avx512 = bit_AVX512F | bit_AVX512BW | bit_AVX512DQ | bit_AVX512VL;
    can[QUANT_AVX2] = has(leaf7_b, bit_AVX2);
    can[QUANT_AVXVNNI] = can[QUANT_AVX2] && has(leaf7_1a, bit_AVXVNNI);
    can[QUANT_AVX512] =
        can[QUANT_AVX2] && has(saved, 0xe6) && has(leaf7_b, avx512) && has(leaf7_c, bit_AVX512VNNI);
    can[QUANT_AVX512BF16] =
        can[QUANT_AVX512] && has(leaf7_c, bit_AVX512VBMI) && has(leaf7_1a, bit_AVX512BF16);
}
#else
static void find_levels(bool can[QUANT_LEVEL_COUNT])
{
    (void)can;
}
#endif

enum quant_level quant_level_at_most(enum quant_level cap)
{
    bool can[QUANT_LEVEL_COUNT] = {0};
    find_levels(can);
    can[QUANT_SCALAR] = true;
    while (!can[cap]) cap--;
    return cap;
}

enum quant_level quant_level_best(void)
{
    return quant_level_at_most(QUANT_LEVEL_COUNT - 1);
}

static const char *const names[QUANT_LEVEL_COUNT] = {
    [QUANT_SCALAR] = "scalar",         [QUANT_AVX2] = "avx2",
    [QUANT_AVXVNNI] = "avxvnni",       [QUANT_AVX512] = "avx512",
    [QUANT_AVX512BF16] = "avx512bf16",
};

const char *quant_level_name(enum quant_level level)
{
    return names[level];
}

bool quant_level_by_name(const char *name, enum quant_level *level)
{
    for (int i = 0; i < QUANT_LEVEL_COUNT; i++) {
        if (strcasecmp(names[i], name) != 0) continue;
        *level = (enum quant_level)i;
        return true;
    }
    return false;
}

/* Whether AVX-512 is as wide inside (Zen 5; Intel's servers since Ice Lake) or done in halves (Zen
 * 4). No flag says so; wide cores came with a first-level data cache of more than 32 KB. */
static bool is_wide(enum quant_level best)
{
#ifdef _SC_LEVEL1_DCACHE_SIZE
    return best >= QUANT_AVX512 && sysconf(_SC_LEVEL1_DCACHE_SIZE) > 32 << 10;
#else
    return false;
#endif
}

/* As measured on Zen 3, which has no AVX-512, on Zen 4, and on Zen 5, whose first-level cache has
 * room for what is asked for (docs/performance.md). */
static struct quant_asking asking_of(enum quant_level best)
{
    if (best < QUANT_AVX512) return (struct quant_asking){.ahead = 384, .near = true};
    if (!is_wide(best)) return (struct quant_asking){.ahead = 1024};
    return (struct quant_asking){.ahead = 1024, .near = true, .together = true};
}

static void climb_type(const struct quant_type *type, const struct quant_kernel *from,
                       struct quant_kernel *to)
{
    if (from->decode) to->decode = from->decode;
    if (from->unpack) {
        to->unpack = from->unpack;
        to->panel = from->panel ? from->panel : &type->panel;
    }
    if (from->gemv) {
        to->gemv = from->gemv;
        to->streams = from->streams > 0 ? from->streams : 1;
    }
}

void quant_kernels_init(struct quant_kernels *kernels, enum quant_level level)
{
    *kernels = (struct quant_kernels){.level = quant_level_at_most(level)};
    kernels->wide = is_wide(kernels->level);
    kernels->asking = asking_of(quant_level_best());
    for (int l = QUANT_SCALAR; l <= (int)kernels->level; l++) {
        if (l == QUANT_AVXVNNI && l != (int)kernels->level) continue; /* not on the way */
        const struct quant_act_kernel *act = &quant_act_kernel[l];
        if (act->q8_32) kernels->act_q8_32 = act->q8_32;
        if (act->q8_256) kernels->act_q8_256 = act->q8_256;
        if (act->bf16) kernels->act_bf16 = act->bf16;
        for (uint32_t id = 0; id < QUANT_ID_COUNT; id++) {
            const struct quant_type *type = quant_type_by_id(id);
            if (type) climb_type(type, &type->kernel[l], &kernels->type[id]);
        }
    }
}

void quant_gemv(const struct quant_kernel *kernel, struct quant_asking asking, int64_t k,
                const void *w, size_t row_bytes, int64_t n_rows, const struct quant_act *a,
                float *out)
{
    const int64_t n = n_rows / kernel->streams, apart = asking.together ? 1 : n;
    const struct quant_rows rows = {w, row_bytes, n, apart, asking};
    if (n > 0) kernel->gemv(k, &rows, a, out);
    const int64_t done = n * kernel->streams;
    if (done == n_rows) return;
    const void *left = (const char *)w + (size_t)done * row_bytes;
    const struct quant_rows alone = {left, row_bytes, n_rows - done, 0, asking};
    kernel->gemv(k, &alone, a, out + done);
}

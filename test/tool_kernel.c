/* test/tool_kernel.c: calls one kernel, for programs that trace its instructions (scripts/arm-mca).
 *
 *     tool_kernel WHAT TYPE BLOCKS     WHAT: gemv, tile, scores or floats (TYPE: any)
 *
 * gemv multiplies the rows of a step, tile 16 rows by a column panel, scores six queries by BLOCKS
 * groups of keys of 64 elements; floats computes the same scores in floats, for comparison. Prints
 * the addresses of main and of the kernel. */
#include "engine/cpu/isa/attn.h"
#include "engine/cpu/isa/tile.h"
#include "test/support.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#ifdef __aarch64__
#include <arm_neon.h>
#endif

enum { MOST_BLOCKS = 64, MOST_BYTES = 1 << 20 };

static char *memory(void)
{
    char *m = aligned_alloc(64, MOST_BYTES);
    if (!m) exit(1);
    memset(m, 0, MOST_BYTES);
    return m;
}

static void call(const struct quant_kernel *kernel, const struct quant_type *type, bool is_gemv,
                 int64_t n)
{
    const struct engine_tile *tile = engine_tile_table(cpu_level_best());
    const int64_t k = n * type->act->block_len;
    const struct quant_act_parts parts = quant_act_parts(type->act, k);
    const struct quant_act a = quant_act_at(&parts, memory());
    const struct quant_rows rows = {.w = memory(),
                                    .row_bytes = (size_t)quant_row_size(type, k),
                                    .n = 1,
                                    .order = QUANT_ROWS_ADJACENT};
    static struct engine_tile_sums sums;
    static float result[ENGINE_TILE_MAX_COLS][QUANT_PANEL_ROWS];
    float *out[ENGINE_TILE_MAX_COLS];
    for (int c = 0; c < ENGINE_TILE_MAX_COLS; c++) out[c] = result[c];
    const struct engine_tile_to to = {.sums = &sums,
                                      .first = true,
                                      .last = true,
                                      .n_rows = QUANT_PANEL_ROWS,
                                      .n_cols = tile->cols,
                                      .out = out};
    if (is_gemv)
        kernel->gemv(k, &rows, &a, result[0]);
    else if (type->act->layout == QUANT_LAYOUT_32)
        tile->panel32(kernel->panel, n, memory(), memory(), &to);
    else
        tile->panel256(kernel->panel, n, memory(), memory(), &to);
}

static void *kernel_of(const struct quant_kernel *kernel, const struct quant_type *type,
                       bool is_gemv)
{
    const struct engine_tile *tile = engine_tile_table(cpu_level_best());
    if (is_gemv) return (void *)kernel->gemv;
    return type->act->layout == QUANT_LAYOUT_32 ? (void *)tile->panel32 : (void *)tile->panel256;
}

/* Scores of six queries and n groups of 16 keys, by multiply-adds of floats: keys in the order that
 * needs no sums of lanes, and registers for all scores of a group. */
static void float_scores(int64_t n, const float *keys, const float (*query)[64],
                         const float *offset, float (*t)[ENGINE_ATTN_KEYS])
{
#ifdef __aarch64__
    for (int64_t g = 0; g < n; g++, keys += 64 * 16, offset += 16) {
        float32x4_t sum[ENGINE_ATTN_ROWS][4];
        EACH (r, ENGINE_ATTN_ROWS)
            EACH (j, 4) sum[r][j] = vdupq_n_f32(0.0f);
        for (int64_t i = 0; i < 64; i += 4) {
            float32x4_t q[ENGINE_ATTN_ROWS];
            EACH (r, ENGINE_ATTN_ROWS) q[r] = vld1q_f32(query[r] + i);
            EACH (j, 4) {
                const float *key = keys + 16 * i + 4 * j;
                EACH (r, ENGINE_ATTN_ROWS) {
                    sum[r][j] = vfmaq_laneq_f32(sum[r][j], vld1q_f32(key), q[r], 0);
                    sum[r][j] = vfmaq_laneq_f32(sum[r][j], vld1q_f32(key + 16), q[r], 1);
                    sum[r][j] = vfmaq_laneq_f32(sum[r][j], vld1q_f32(key + 32), q[r], 2);
                    sum[r][j] = vfmaq_laneq_f32(sum[r][j], vld1q_f32(key + 48), q[r], 3);
                }
            }
        }
        EACH (r, ENGINE_ATTN_ROWS)
            EACH (j, 4)
                vst1q_f32(t[r] + 16 * g % ENGINE_ATTN_KEYS + 4 * j,
                          vfmaq_n_f32(vld1q_f32(offset + 4 * j), sum[r][j], 0.125f));
    }
#else
    (void)n, (void)keys, (void)query, (void)offset, (void)t;
#endif
}

static void call_scores(int64_t n)
{
    static struct engine_attn_tile tile = {.n_rows = ENGINE_ATTN_ROWS};
    static float offset[ENGINE_ATTN_KEYS];
    static int16_t query[64];
    for (int r = 0; r < ENGINE_ATTN_ROWS; r++) tile.query[r] = query;
    engine_attn_table(cpu_level_best())->scores(64, 0, n, memory(), offset, &tile);
}

static void call_float_scores(int64_t n)
{
    static float query[ENGINE_ATTN_ROWS][64], t[ENGINE_ATTN_ROWS][ENGINE_ATTN_KEYS];
    float_scores(n, (const float *)(void *)memory(), query, (const float *)(void *)memory(), t);
}

int main(int argc, char **argv)
{
    static struct quant_kernels kernels;
    const int64_t n = argc == 4 ? atoi(argv[3]) : 0;
    const struct quant_type *type = argc == 4 ? quant_type_by_name(argv[2]) : NULL;
    if (!type || !type->act || n < 1 || n > MOST_BLOCKS) return 1;
    const bool scores = strcmp(argv[1], "scores") == 0, floats = strcmp(argv[1], "floats") == 0;
    const bool is_gemv = strcmp(argv[1], "gemv") == 0;
    quant_kernels_init(&kernels, cpu_level_best());
    const struct quant_kernel *kernel = &kernels.type[type->id];
    printf("%p %p\n", (void *)main,
           scores   ? (void *)engine_attn_table(cpu_level_best())->scores
           : floats ? (void *)float_scores
                    : kernel_of(kernel, type, is_gemv));
    fflush(stdout);
    if (scores)
        call_scores(n);
    else if (floats)
        call_float_scores(n);
    else
        call(kernel, type, is_gemv, n);
    return 0;
}

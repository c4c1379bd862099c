/* test/test_gpu_attention.c: attention on a GPU over two chunks of keys, with all that changes
 * scores and results, has the bytes of the processor. */
#include "engine/kv.h"
#include "test/support.h"
#include "test/support_graph.h"
#include <stdio.h>
#include <string.h>

enum { SLOTS = 304, TOKENS = 6, RADIUS = 20, MOST_ROUNDS = 11 };

struct variant {
    const char *name;
    int64_t d, dv;
    float softcap, max_alibi, scale; /* scale 0: 2 */
    bool sinks, relative, float_keys, float_values;
    bool ones;             /* of queries, keys and values: the largest codes */
    bool tables;           /* rows that follow each other have several tables */
    int rounds;            /* of all tokens; 0: one */
    int64_t n_heads, n_kv; /* 0: 4 and 2 */
};

/* A row for each block, for few tokens, or a tile: of some of 54 rows, in parts or with all chunks
 * in a block. */
static const struct variant variants[] = {
    {"plain", .d = 24, .dv = 40},
    {"softcap", .d = 24, .dv = 24, .softcap = 3.0f},
    {"ALiBi", .d = 24, .dv = 24, .max_alibi = 6.0f},
    {"relative", .d = 24, .dv = 24, .relative = true},
    {"sinks", .d = 24, .dv = 24, .sinks = true},
    {"all", .d = 24, .dv = 24, .softcap = 2.0f, .max_alibi = 4.0f, .sinks = true, .relative = true},
    {"many rows", .d = 24, .dv = 24, .sinks = true, .rounds = MOST_ROUNDS},
    {"wide heads", .d = 600, .dv = 520, .sinks = true},
    {"floats", .d = 24, .dv = 40, .float_keys = true, .float_values = true},
    {"rows of floats", .d = 21, .dv = 24, .float_keys = true, .float_values = true,
     .rounds = MOST_ROUNDS},
    {"keys of floats", .d = 24, .dv = 24, .float_keys = true},
    {"values of floats", .d = 24, .dv = 24, .float_values = true},
    {"all, floats", .d = 21, .dv = 24, .softcap = 2.0f, .max_alibi = 4.0f, .sinks = true,
     .relative = true, .float_keys = true, .float_values = true},
    {"wide heads of floats", .d = 600, .dv = 520, .sinks = true, .float_keys = true,
     .float_values = true},
    {"tiles", .d = 128, .dv = 73, .sinks = true, .rounds = 3, .n_heads = 6, .n_kv = 2},
    {"tiles, half a step", .d = 80, .dv = 256, .tables = true, .rounds = 3, .n_heads = 2,
     .n_kv = 2},
    {"all, tiles", .d = 48, .dv = 40, .softcap = 2.0f, .max_alibi = 4.0f, .sinks = true,
     .relative = true, .tables = true, .rounds = 3, .n_heads = 6, .n_kv = 2},
    {"tiles, all chunks", .d = 16, .dv = 24, .sinks = true, .tables = true, .rounds = 3,
     .n_heads = 65, .n_kv = 65},
    {"tiles, huge scores", .d = 16, .dv = 24, .scale = 1e7f, .rounds = 3},
    {"tiles, largest scores", .d = 64, .dv = 16, .ones = true, .rounds = 3},
    {"tiles, largest values", .d = 16, .dv = 16, .scale = 0x1p-60f, .ones = true, .rounds = 3},
    {"many rows, values of floats", .d = 32, .dv = 24, .float_values = true, .rounds = 3},
    {"many rows, keys of floats", .d = 32, .dv = 24, .float_keys = true, .rounds = 3},
    {"many rows, wide heads", .d = 272, .dv = 24, .softcap = 3.0f, .rounds = 3},
    {"many rows, wide values", .d = 32, .dv = 264, .rounds = 3}};

static struct engine_tensor *source(struct support_rig *rig, const struct variant *v,
                                    const int64_t *ne)
{
    struct engine_tensor *x = support_source(rig, QUANT_F32, ne, SUPPORT_SWAPPED);
    return v->ones ? engine_clamp(rig->g, engine_cont(rig->g, x), 1.0f, 1.0f) : x;
}

/* A cache with a key or value in each slot, in another order. */
static struct engine_tensor *cache(struct support_rig *rig, const struct variant *v,
                                   enum engine_kv_q16 what)
{
    const bool values = what == ENGINE_KV_Q16_VALUES,
               floats = values ? v->float_values : v->float_keys;
    const int64_t d = values ? v->dv : v->d, n_kv = v->n_kv ? v->n_kv : 2;
    int32_t slots[SLOTS];
    for (int i = 0; i < SLOTS; i++) slots[i] = (i * 37 + 5) % SLOTS;
    const int64_t ne[] = {floats ? d : engine_kv_coded_elements(NULL, what, d),
                          floats ? SLOTS : SLOTS / ENGINE_KV_Q16_GROUP, n_kv};
    struct engine_tensor *empty =
        engine_input(rig->g, floats ? QUANT_F32 : QUANT_I8, 3, ne, "cache");
    struct engine_tensor *x = source(rig, v, (int64_t[]){d, SLOTS, n_kv, 1});
    struct engine_tensor *at = support_ids(rig, SLOTS, 1, slots);
    struct engine_tensor *full = floats ? engine_set_rows(rig->g, empty, x, at)
                                        : engine_set_kv_q16(rig->g, what, empty, x, at, QUANT_F16);
    return engine_permute(rig->g, full, 0, 2, 1, 3);
}

/* Ranges of one key, in the middle of a group, over both chunks, within the second one, of no key,
 * and of a table that is not there, with later tokens some keys later, so that tiles have edges of
 * ranges in all sub-blocks; the second table has its slots in another order, and one is missing. */
static struct engine_tensor *build(struct support_rig *rig, const void *arg)
{
    static const int32_t range[TOKENS][4] = {{0, 0, 1, 0},      {0, 0, 5, 7},     {1, 1, 4, 300},
                                             {0, 2, SLOTS, 30}, {0, 270, 290, 0}, {0, 9, 9, 0}};
    const struct variant *v = arg;
    int32_t tables[2 * SLOTS], ranges[MOST_ROUNDS * TOKENS][4];
    const int n_tokens = TOKENS * (v->rounds ? v->rounds : 1);
    const int64_t n_heads = v->n_heads ? v->n_heads : 4;
    for (int i = 0; i < n_tokens; i++) {
        memcpy(ranges[i], range[i % TOKENS], sizeof *ranges);
        ranges[i][2] += i / TOKENS * 29;
        if (v->tables) ranges[i][0] = i % 5 == 4 ? 2 : 1 - i / 3 % 2;
    }
    for (int i = 0; i < 2 * SLOTS; i++) tables[i] = i < SLOTS ? i : (i * 5) % SLOTS;
    for (int i = 0; v->tables && i < 256; i++) tables[SLOTS + i] = i ^ 1; /* pairs, but swapped */
    tables[SLOTS + (v->tables ? 40 : 2)] = v->tables ? -1 : SLOTS;
    if (v->tables) tables[150] = 20;
    const struct engine_attention params = {.scale = v->scale == 0.0f ? 2.0f : v->scale,
                                            .softcap = v->softcap,
                                            .dv = (int)v->dv,
                                            .max_alibi = v->max_alibi};
    struct engine_tensor *q = source(rig, v, (int64_t[]){v->d, n_heads, n_tokens, 1});
    struct engine_tensor *k = cache(rig, v, ENGINE_KV_Q16_KEYS);
    return engine_attention(
        rig->g, q, k, cache(rig, v, ENGINE_KV_Q16_VALUES), support_ids(rig, 4, n_tokens, *ranges),
        support_ids(rig, SLOTS, 2, tables),
        v->sinks ? support_source(rig, QUANT_F32, (int64_t[]){n_heads, 1, 1, 1}, SUPPORT_PLAIN)
                 : NULL,
        v->relative ? support_source(rig, QUANT_F32, (int64_t[]){n_heads, 2 * RADIUS + 1, 1, 1},
                                     SUPPORT_PLAIN)
                    : NULL,
        &params);
}

static void attention_gives_the_bytes_of_the_processor(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof variants / sizeof *variants; i++)
        support_check_gpu(variants[i].name, build, &variants[i]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(attention_gives_the_bytes_of_the_processor)};
    return cmocka_run_group_tests(tests, NULL, support_engines_free);
}

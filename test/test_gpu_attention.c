/* test/test_gpu_attention.c: attention on a GPU over two chunks of keys, with all that changes
 * scores and results, has the bytes of the processor. */
#include "engine/kv.h"
#include "test/support.h"
#include "test/support_graph.h"
#include <stdio.h>

enum { HEADS = 4, KV = 2, SLOTS = 304, TOKENS = 6, RADIUS = 20, MOST_ROUNDS = 11 };

struct variant {
    const char *name;
    int64_t d, dv;
    float softcap, max_alibi;
    bool sinks, relative, float_keys, float_values;
    int rounds; /* of all tokens: with many, a block has all chunks of a row */
};

static const struct variant variants[] = {
    {"plain", 24, 40, 0.0f, 0.0f, false, false, false, false, 1},
    {"softcap", 24, 24, 3.0f, 0.0f, false, false, false, false, 1},
    {"ALiBi", 24, 24, 0.0f, 6.0f, false, false, false, false, 1},
    {"relative", 24, 24, 0.0f, 0.0f, false, true, false, false, 1},
    {"sinks", 24, 24, 0.0f, 0.0f, true, false, false, false, 1},
    {"all", 24, 24, 2.0f, 4.0f, true, true, false, false, 1},
    {"wide heads", 600, 520, 0.0f, 0.0f, true, false, false, false, 1},
    {"floats", 24, 40, 0.0f, 0.0f, false, false, true, true, 1},
    {"rows of floats", 21, 24, 0.0f, 0.0f, false, false, true, true, MOST_ROUNDS},
    {"keys of floats", 24, 24, 0.0f, 0.0f, false, false, true, false, 1},
    {"values of floats", 24, 24, 0.0f, 0.0f, false, false, false, true, 1},
    {"all, floats", 21, 24, 2.0f, 4.0f, true, true, true, true, 1},
    {"wide heads of floats", 600, 520, 0.0f, 0.0f, true, false, true, true, 1},
    {"tiles", 128, 72, 0.0f, 0.0f, false, false, false, false, 3},
    {"all, tiles", 48, 40, 2.0f, 4.0f, true, true, false, false, MOST_ROUNDS}};

/* A cache with a key or value in each slot, in another order. */
static struct engine_tensor *cache(struct support_rig *rig, enum engine_kv_q16 what, int64_t d,
                                   bool floats)
{
    int32_t slots[SLOTS];
    for (int i = 0; i < SLOTS; i++) slots[i] = (i * 37 + 5) % SLOTS;
    const int64_t ne[] = {floats ? d : engine_kv_coded_elements(NULL, what, d),
                          floats ? SLOTS : SLOTS / ENGINE_KV_Q16_GROUP, KV};
    struct engine_tensor *empty =
        engine_input(rig->g, floats ? QUANT_F32 : QUANT_I8, 3, ne, "cache");
    struct engine_tensor *x =
        support_source(rig, QUANT_F32, (int64_t[]){d, SLOTS, KV, 1}, SUPPORT_SWAPPED);
    struct engine_tensor *at = support_ids(rig, SLOTS, 1, slots);
    struct engine_tensor *full = floats ? engine_set_rows(rig->g, empty, x, at)
                                        : engine_set_kv_q16(rig->g, what, empty, x, at, QUANT_F16);
    return engine_permute(rig->g, full, 0, 2, 1, 3);
}

/* Ranges of one key, in the middle of a group, over both chunks, within the second one, of no key,
 * and of a table that is not there; the second table has a missing slot. */
static struct engine_tensor *build(struct support_rig *rig, const void *arg)
{
    static const int32_t range[TOKENS * 4] = {0, 0, 1,     0,  0, 5,   7,   1, 1, 4, 300, 0,
                                              0, 2, SLOTS, 30, 0, 270, 290, 0, 0, 9, 9,   0};
    const struct variant *v = arg;
    int32_t tables[2 * SLOTS], ranges[MOST_ROUNDS * TOKENS * 4];
    const int n_tokens = TOKENS * v->rounds;
    for (int i = 0; i < 4 * n_tokens; i++) ranges[i] = range[i % (TOKENS * 4)];
    for (int i = 0; i < 2 * SLOTS; i++) tables[i] = i < SLOTS ? i : (i * 5) % SLOTS;
    const struct engine_attention params = {
        .scale = 2.0f, .softcap = v->softcap, .dv = (int)v->dv, .max_alibi = v->max_alibi};
    struct engine_tensor *q =
        support_source(rig, QUANT_F32, (int64_t[]){v->d, HEADS, n_tokens, 1}, SUPPORT_SWAPPED);
    struct engine_tensor *k = cache(rig, ENGINE_KV_Q16_KEYS, v->d, v->float_keys);
    return engine_attention(
        rig->g, q, k, cache(rig, ENGINE_KV_Q16_VALUES, v->dv, v->float_values),
        support_ids(rig, 4, n_tokens, ranges), support_ids(rig, SLOTS, 2, tables),
        v->sinks ? support_source(rig, QUANT_F32, (int64_t[]){HEADS, 1, 1, 1}, SUPPORT_PLAIN)
                 : NULL,
        v->relative ? support_source(rig, QUANT_F32, (int64_t[]){HEADS, 2 * RADIUS + 1, 1, 1},
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

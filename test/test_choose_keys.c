/* test/test_choose_keys.c: the choice of keys by an indexer (engine_choose_keys), compared with a
 * naive one; small integers make scores exact and many of them equal. */
#include "test/support.h"

#include "engine/kv.h"
#include "test/support_graph.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { D = 32, TOKENS = 11, POSITIONS = 640, SLOTS = 704, TABLES = 2 };

struct shape {
    const char *name;
    int n_heads, n_used, block, n_local;
    bool weights, coded;
    bool mixed; /* slots in another order than positions, some not in the cache */
};

static const struct shape shapes[] = {
    {"f32", 5, 40, 1, 0, true, false, false},
    {"f32, mixed slots", 7, 300, 1, 0, true, false, true},
    {"one key", 2, 1, 1, 0, true, false, true},
    {"coded", 1, 40, 1, 0, true, true, false},
    {"coded, mixed slots", 1, 300, 1, 0, true, true, true},
    {"lists of blocks", 8, 5, 24, 1, false, false, false},
    {"coded lists of blocks", 3, 6, 32, 2, false, true, true},
    {"more than there are", 3, 70, 16, 2, false, true, false},
};

/* Token t sees these positions of table t % TABLES; the last token's table does not exist. */
static void range_of(int t, int32_t range[4])
{
    const int32_t first[TOKENS] = {0, 0, 3, 100, 0, 250, 500, 9, 0, 256, 0};
    const int32_t end[TOKENS] = {0, 1, 42, 640, 255, 600, 539, 513, 640, 512, 640};
    range[0] = t == TOKENS - 1 ? TABLES : t % TABLES;
    range[1] = first[t];
    range[2] = end[t];
    range[3] = 0;
}

static int32_t slot_of(const struct shape *s, int table, int position)
{
    if (!s->mixed) return position + 32 * table;
    return position % 97 == 50 ? -1 : (position ^ 5) + 32 * table;
}

/* A source of -1 and 1 (keys of which the int16 codes are exact), or of small integers. */
static struct engine_tensor *integers(struct support_rig *rig, int64_t n0, int64_t n1, int64_t n2,
                                      bool signs)
{
    struct engine_tensor *t =
        support_source(rig, QUANT_F32, (int64_t[]){n0, n1, n2, 1}, SUPPORT_PLAIN);
    float *x = (float *)(void *)t->data;
    for (int64_t i = 0; i < n0 * n1 * n2; i++)
        x[i] = signs ? x[i] < 0 ? -1.0f : 1.0f : rintf(2 * x[i]);
    return t;
}

static struct engine_tensor *build(struct support_rig *rig, const void *arg)
{
    const struct shape *s = arg;
    int32_t range[4 * TOKENS], slots[TABLES * POSITIONS], each[SLOTS];
    for (int t = 0; t < TOKENS; t++) range_of(t, range + 4 * t);
    for (int i = 0; i < TABLES * POSITIONS; i++)
        slots[i] = slot_of(s, i / POSITIONS, i % POSITIONS);
    for (int i = 0; i < SLOTS; i++) each[i] = i;
    rig->in[0] = integers(rig, D, s->n_heads, TOKENS, s->coded);
    rig->in[1] = integers(rig, D, SLOTS, 1, s->coded);
    rig->in[2] = integers(rig, s->n_heads, TOKENS, 1, s->coded);
    struct engine_tensor *k = rig->in[1];
    if (s->coded) {
        const int64_t ne[] = {engine_kv_coded_elements(NULL, ENGINE_KV_Q16_KEYS, D),
                              SLOTS / ENGINE_KV_Q16_GROUP, 1};
        struct engine_tensor *cache = engine_input(rig->g, QUANT_I8, 3, ne, "cache");
        k = engine_set_kv_q16(rig->g, ENGINE_KV_Q16_KEYS, cache, k,
                              support_ids(rig, SLOTS, 1, each), QUANT_F16);
    } else {
        k = engine_reshape(rig->g, k, 3, (int64_t[]){D, SLOTS, 1});
    }
    const struct engine_choose_keys how = {
        .n_used = s->n_used, .block = s->block, .n_local = s->n_local, .stride = SLOTS};
    return engine_choose_keys(rig->g, rig->in[0], engine_permute(rig->g, k, 0, 2, 1, 3),
                              support_ids(rig, 4, TOKENS, range),
                              support_ids(rig, POSITIONS, TABLES, slots),
                              s->weights ? rig->in[2] : NULL, &how);
}

static double score_of(const struct support_rig *rig, const struct shape *s, int t, int list,
                       int32_t slot)
{
    double score = 0;
    if (slot < 0) return INFINITY;
    for (int h = s->weights ? 0 : list; h < (s->weights ? s->n_heads : list + 1); h++) {
        double dot = 0;
        for (int i = 0; i < D; i++)
            dot += support_at(rig->in[0], i, h, t, 0) * support_at(rig->in[1], i, slot, 0, 0);
        score += s->weights ? fmax(dot, 0) * support_at(rig->in[2], h, t, 0, 0) : dot;
    }
    return score;
}

/* Sets row[] to the row of token t and list `list`; n of it are slots. */
static void want_row(const struct support_rig *rig, const struct shape *s, int t, int list,
                     int32_t *row, int n)
{
    const int n_lists = s->weights ? 1 : s->n_heads;
    int32_t range[4];
    double score[POSITIONS];
    bool chosen[POSITIONS] = {false};
    int n_blocks = 0, found = 0;
    range_of(t, range);
    const int first = range[1] / s->block;
    for (int j = range[1]; j < range[2]; j++) {
        const double x = score_of(rig, s, t, list, slot_of(s, t % TABLES, j));
        const int b = j / s->block - first;
        if (b >= n_blocks) score[n_blocks++] = x;
        score[b] = fmax(score[b], x);
    }
    for (int b = n_blocks < s->n_local ? 0 : n_blocks - s->n_local; b < n_blocks; b++)
        score[b] = INFINITY;
    for (int k = 0; k < s->n_used && k < n_blocks; k++) {
        int best = -1;
        for (int b = 0; b < n_blocks; b++)
            if (!chosen[b] && (best < 0 || score[b] > score[best])) best = b;
        chosen[best] = true;
    }
    const bool exists = range[0] < TABLES;
    row[0] = exists ? t * n_lists + list : -1;
    row[1] = row[3] = 0;
    for (int j = range[1]; exists && j < range[2]; j++) {
        const int32_t slot = slot_of(s, t % TABLES, j);
        if (chosen[j / s->block - first]) row[4 + found++] = slot < 0 ? -1 : slot + list * SLOTS;
    }
    row[2] = found;
    while (found < n) row[4 + found++] = -1;
}

static double want(const struct support_rig *rig, const struct engine_tensor *result,
                   const void *arg, const int64_t *i)
{
    static int32_t row[4 + POSITIONS];
    /* Elements come in order: a row is computed at its first one. */
    if (i[0] == 0) want_row(rig, arg, (int)i[2], (int)i[1], row, (int)result->ne[0] - 4);
    return row[i[0]];
}

static void the_largest_scores_choose_keys_the_earlier_of_equal_ones(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++)
        support_check_op(shapes[i].name, build, want, &shapes[i], 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_largest_scores_choose_keys_the_earlier_of_equal_ones),
    };
    return cmocka_run_group_tests(tests, NULL, support_engines_free);
}

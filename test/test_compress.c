/* test/test_compress.c: keys of blocks of positions (engine_compress_keys), doubly stochastic
 * matrices (engine_sinkhorn), near keys (engine_choose_far_keys), rows of I32 and rotation back,
 * compared with naive forms in double. */
#include "test/support.h"

#include "test/support_graph.h"
#include <math.h>
#include <string.h>

enum { RATIO = 8, D = 80, POSITIONS = 64, SLOTS = 70, TOKENS = 6, NEAR = 5 };

static int32_t slot_of(int position)
{
    return position == 50 ? -1 : position ^ 3;
}

static struct engine_tensor *tables(struct support_rig *rig)
{
    int32_t slots[POSITIONS];
    for (int j = 0; j < POSITIONS; j++) slots[j] = slot_of(j);
    return support_ids(rig, POSITIONS, 1, slots);
}

static struct engine_tensor *source(struct support_rig *rig, int64_t n0, int64_t n1, int64_t n2)
{
    return support_source(rig, QUANT_F32, (int64_t[]){n0, n1, n2, 1}, SUPPORT_PLAIN);
}

/* ---- compress_keys ---- */

/* The first position of the block that a token ends; -1: none. The last two: a position that has
 * no slot, and a range that is no block. */
static const int first_of[TOKENS] = {-1, 0, 8, 56, 48, 30};

static struct engine_tensor *build_keys(struct support_rig *rig, const void *arg)
{
    const bool overlaps = *(const bool *)arg;
    const int width = overlaps ? 2 * D : D;
    int32_t range[4 * TOKENS] = {0};
    for (int t = 0; t < TOKENS; t++) {
        range[4 * t + 1] = first_of[t] < 0 ? 0 : first_of[t];
        range[4 * t + 2] = first_of[t] < 0 ? 0 : first_of[t] + RATIO - (t == TOKENS - 1);
    }
    rig->in[0] = source(rig, 2 * width + 3, 1, SLOTS);
    rig->in[1] = source(rig, width, RATIO, 1);
    const struct engine_compress_keys how = {RATIO, D, 1, width + 2, overlaps};
    return engine_compress_keys(rig->g, rig->in[0], support_ids(rig, 4, TOKENS, range), tables(rig),
                                rig->in[1], &how);
}

static double want_key(const struct support_rig *rig, const struct engine_tensor *result,
                       const void *arg, const int64_t *i)
{
    (void)result;
    const bool overlaps = *(const bool *)arg;
    const int width = overlaps ? 2 * D : D, first = first_of[i[1]];
    double sum = 0, all = 0;
    if (first < 0 || i[1] == TOKENS - 1) return 0;
    for (int j = overlaps && first ? first - RATIO : first; j < first + RATIO; j++) {
        const int64_t c = i[0] + (overlaps && j >= first ? D : 0);
        if (slot_of(j) < 0) return NAN;
        const double e = exp(support_at(rig->in[0], width + 2 + c, 0, slot_of(j), 0) +
                             support_at(rig->in[1], c, j % RATIO, 0, 0));
        all += e;
        sum += e * support_at(rig->in[0], 1 + c, 0, slot_of(j), 0);
    }
    return sum / all;
}

static struct engine_tensor *build_means(struct support_rig *rig, const void *arg)
{
    int32_t range[4 * TOKENS] = {0};
    (void)arg;
    for (int t = 0; t < TOKENS; t++) range[4 * t + 2] = t ? RATIO : 0;
    rig->in[0] = source(rig, D + 1, 1, SLOTS);
    const struct engine_compress_keys how = {RATIO, D, 1, -1, false};
    return engine_compress_keys(rig->g, rig->in[0], support_ids(rig, 4, TOKENS, range), tables(rig),
                                NULL, &how);
}

static double want_mean(const struct support_rig *rig, const struct engine_tensor *result,
                        const void *arg, const int64_t *i)
{
    double sum = 0;
    (void)result, (void)arg;
    for (int j = 0; j < RATIO && i[1]; j++)
        sum += support_at(rig->in[0], 1 + i[0], 0, slot_of(j), 0) / RATIO;
    return sum;
}

static void without_scores_the_key_of_a_block_is_a_mean(void **state)
{
    (void)state;
    support_check_op("means", build_means, want_mean, NULL, 1e-13);
}

static void the_key_of_a_block_is_a_softmax_of_its_positions(void **state)
{
    (void)state;
    support_check_op("own positions", build_keys, want_key, &(bool){false}, 1e-13);
    support_check_op("overlapping", build_keys, want_key, &(bool){true}, 1e-13);
}

/* ---- sinkhorn ---- */

enum { S = 5, MATRICES = 9, ITERATIONS = 4 };

static struct engine_tensor *build_sinkhorn(struct support_rig *rig, const void *arg)
{
    (void)arg;
    rig->in[0] = source(rig, S, S, MATRICES);
    return engine_sinkhorn(rig->g, rig->in[0], ITERATIONS, 0.01f);
}

static void divide(double x[S][S], bool rows)
{
    for (int a = 0; a < S; a++) {
        double sum = 0.01;
        for (int b = 0; b < S; b++) sum += rows ? x[a][b] : x[b][a];
        for (int b = 0; b < S; b++) *(rows ? &x[a][b] : &x[b][a]) /= sum;
    }
}

static double want_sinkhorn(const struct support_rig *rig, const struct engine_tensor *result,
                            const void *arg, const int64_t *i)
{
    (void)result, (void)arg;
    double x[S][S];
    for (int r = 0; r < S; r++) {
        double sum = 0;
        for (int c = 0; c < S; c++) sum += x[r][c] = exp(support_at(rig->in[0], c, r, i[2], 0));
        for (int c = 0; c < S; c++) x[r][c] = x[r][c] / sum + 0.01;
    }
    divide(x, false);
    for (int k = 1; k < ITERATIONS; k++) {
        divide(x, true);
        divide(x, false);
    }
    return x[i[1]][i[0]];
}

static void rows_and_columns_are_divided_by_their_sums(void **state)
{
    (void)state;
    support_check_op("sinkhorn", build_sinkhorn, want_sinkhorn, NULL, 1e-13);
}

/* ---- Near keys: token t sees blocks 0 .. 2 t - 1, and positions 10 t .. 10 t + t ---- */

static struct engine_tensor *build_near(struct support_rig *rig, const void *arg)
{
    (void)arg;
    int32_t far[4 * TOKENS] = {0}, near[4 * TOKENS] = {0};
    for (int t = 0; t < TOKENS; t++) {
        far[4 * t + 2] = 2 * t;
        near[4 * t + 1] = 10 * t;
        near[4 * t + 2] = 11 * t + 1;
    }
    const struct engine_choose_keys how = {.n_used = 100, .block = 1, .n_near = NEAR};
    return engine_choose_far_keys(rig->g, NULL, NULL, support_ids(rig, 4, TOKENS, far), tables(rig),
                                  NULL, support_ids(rig, 4, TOKENS, near), tables(rig), &how);
}

static double want_near(const struct support_rig *rig, const struct engine_tensor *result,
                        const void *arg, const int64_t *i)
{
    (void)rig, (void)result, (void)arg;
    const int t = (int)i[2], far = 2 * t, near = t + 1 < NEAR ? t + 1 : NEAR;
    const int j = (int)i[0] - ENGINE_RANGE;
    if (j < 0) return (const double[]){t, 0, far + near, 0}[i[0]];
    return j < far ? slot_of(j) : j < far + near ? slot_of(10 * t + j - far) : -1;
}

static void near_keys_follow_all_far_ones(void **state)
{
    (void)state;
    support_check_op("near keys", build_near, want_near, NULL, 0);
}

/* ---- Positions of chosen blocks: token t sees blocks 0 .. t - 1 of EACH positions, and t mod EACH
 * positions after them; block b scores -(b - 2)^2 ---- */

enum { EACH = 4, USED = 2 };

static struct engine_tensor *build_each(struct support_rig *rig, const void *arg)
{
    int32_t far[4 * TOKENS] = {0}, near[4 * TOKENS] = {0}, blocks[TOKENS];
    (void)arg;
    for (int t = 0; t < TOKENS; t++) {
        far[4 * t + 2] = t;
        near[4 * t + 2] = EACH * t + t % EACH;
        blocks[t] = t;
    }
    rig->in[0] = source(rig, D, 1, TOKENS);
    rig->in[1] = source(rig, D, 1, TOKENS);
    rig->in[2] = source(rig, 1, TOKENS, 1);
    for (int i = 0; i < TOKENS; i++)
        for (int c = 0; c < D; c++) {
            ((float *)(void *)rig->in[0]->data)[i * D + c] = c == 0;
            ((float *)(void *)rig->in[1]->data)[i * D + c] = (float)(20 - (i - 2) * (i - 2));
        }
    for (int t = 0; t < TOKENS; t++) ((float *)(void *)rig->in[2]->data)[t] = 1.0f;
    const struct engine_choose_keys how = {
        .n_used = USED, .block = 1, .n_near = EACH - 1, .n_each = EACH};
    return engine_choose_far_keys(rig->g, rig->in[0], rig->in[1], support_ids(rig, 4, TOKENS, far),
                                  support_ids(rig, TOKENS, 1, blocks), rig->in[2],
                                  support_ids(rig, 4, TOKENS, near), tables(rig), &how);
}

static double want_each(const struct support_rig *rig, const struct engine_tensor *result,
                        const void *arg, const int64_t *i)
{
    (void)rig, (void)result, (void)arg;
    const int t = (int)i[2], first = t < 3 ? 0 : 1, n = t < USED ? t : USED;
    const int j = (int)i[0] - ENGINE_RANGE, far = n * EACH, near = t % EACH;
    if (j < 0) return (const double[]){t, 0, far + near, 0}[i[0]];
    return j < far ? slot_of(first * EACH + j) : j < far + near ? slot_of(EACH * t + j - far) : -1;
}

static void chosen_blocks_are_listed_by_their_positions(void **state)
{
    (void)state;
    support_check_op("positions of blocks", build_each, want_each, NULL, 0);
}

/* ---- Rows of I32; rotation back ---- */

static const int32_t numbers[3][2] = {{7, 1 << 30}, {-5, 16777217}, {9, 3}}, ids[4] = {1, 3, 0, -1};

static struct engine_tensor *build_numbers(struct support_rig *rig, const void *arg)
{
    (void)arg;
    return engine_get_rows(rig->g, support_ids(rig, 2, 3, numbers[0]), support_ids(rig, 4, 1, ids));
}

static double want_number(const struct support_rig *rig, const struct engine_tensor *result,
                          const void *arg, const int64_t *i)
{
    (void)rig, (void)result, (void)arg;
    const int32_t id = ids[i[1]];
    return id < 0 || id > 2 ? -1 : numbers[id][i[0]];
}

static void rows_of_i32_remain_numbers(void **state)
{
    (void)state;
    support_check_op("rows of I32", build_numbers, want_number, NULL, 0);
}

static struct engine_tensor *build_rotation(struct support_rig *rig, const void *arg)
{
    (void)arg;
    static const int32_t at[TOKENS] = {0, 1, 5, 90, 1000, 7};
    struct engine_rope rope = {.kind = ENGINE_ROPE_NORMAL,
                               .n_rot = 16,
                               .freq_base = 1e4f,
                               .freq_scale = 0.5f,
                               .n_ctx_orig = 32,
                               .ext_factor = 1,
                               .attn_factor = 1.0f / (1.0f + 0.1f * 0.69314718f),
                               .beta_fast = 32,
                               .beta_slow = 1};
    struct engine_tensor *positions = support_ids(rig, TOKENS, 1, at);
    rig->in[0] = source(rig, 16, 3, TOKENS);
    struct engine_tensor *x = engine_rope(rig->g, rig->in[0], positions, NULL, &rope);
    rope.inverse = 1;
    return engine_rope(rig->g, x, positions, NULL, &rope);
}

static double want_same(const struct support_rig *rig, const struct engine_tensor *result,
                        const void *arg, const int64_t *i)
{
    (void)result, (void)arg;
    return support_at(rig->in[0], i[0], i[1], i[2], 0);
}

static void a_rotation_back_undoes_a_rotation(void **state)
{
    (void)state;
    support_check_op("rotation", build_rotation, want_same, NULL, 1e-13);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_key_of_a_block_is_a_softmax_of_its_positions),
        cmocka_unit_test(rows_and_columns_are_divided_by_their_sums),
        cmocka_unit_test(near_keys_follow_all_far_ones),
        cmocka_unit_test(without_scores_the_key_of_a_block_is_a_mean),
        cmocka_unit_test(chosen_blocks_are_listed_by_their_positions),
        cmocka_unit_test(rows_of_i32_remain_numbers),
        cmocka_unit_test(a_rotation_back_undoes_a_rotation),
    };
    return cmocka_run_group_tests(tests, NULL, support_engines_free);
}

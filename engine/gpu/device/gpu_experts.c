/* engine/gpu/device/gpu_experts.c: device code: choosing experts, their weights, and the sum of
 * their outputs. The arithmetic is that of engine/cpu/op/op_experts.c. */
#include "engine/gpu/device/gpu_element.h"

/* ---- Choosing: a warp for each token ---- */

/* A number that is larger for a larger score, equal for equal ones, and 0 for NaN. */
static uint32_t rank_of(float score)
{
    const uint32_t bits = v_bits(score == 0.0f ? 0.0f : score);
    if (isnan(score)) return 0;
    return bits >> 31 ? ~bits : bits | 0x80000000u;
}

/* The sum of the two largest of n scores; of one score: itself. */
static float group_score(const float *s, int64_t n)
{
    float best = -INFINITY, second = -INFINITY;
    for (int64_t i = 0; i < n; i++) {
        second = s[i] > best ? best : s[i] > second ? s[i] : second;
        best = s[i] > best ? s[i] : best;
    }
    return n > 1 ? best + second : best;
}

/* Whether fewer than `left` groups are worse than group g: have a smaller score, or the same one
 * and a larger number; NaN is no score. */
static bool is_among_worst(const float *scores, int64_t n_groups, int64_t g, int64_t left)
{
    int64_t worse = 0;
    if (isnan(scores[g])) return false;
    for (int64_t h = 0; h < n_groups; h++)
        worse += scores[h] < scores[g] || (scores[h] == scores[g] && h > g);
    return worse < left;
}

/* Sets the scores of all but the best groups to -inf. */
static void mask_groups(float *s, int64_t n, const struct engine_choose_experts *how)
{
    float *scores = s + n;
    const int64_t size = n / how->n_groups;
    for (int64_t g = gpu_lane(); g < how->n_groups; g += GPU_WARP)
        scores[g] = group_score(s + g * size, size);
    gpu_sync_warp(); /* the scores of groups are written, those of experts read */
    for (int64_t g = gpu_lane(); g < how->n_groups; g += GPU_WARP) {
        if (!is_among_worst(scores, how->n_groups, g, how->n_groups - how->n_groups_used)) continue;
        for (int64_t i = g * size; i < (g + 1) * size; i++) s[i] = -INFINITY;
    }
    gpu_sync_warp(); /* groups are masked */
}

/* An expert: larger for one that is chosen earlier. */
static uint64_t key_of(float score, int64_t expert)
{
    return (uint64_t)rank_of(score) << 32 | (uint32_t)~expert;
}

/* The largest key that is less than `below`. */
static uint64_t next_key(const float *s, int64_t n, uint64_t below)
{
    uint64_t best = 0;
    for (int64_t i = gpu_lane(); i < n; i += GPU_WARP) {
        const uint64_t key = key_of(s[i], i);
        if (key < below && key > best) best = key;
    }
    for (int mask = GPU_WARP / 2; mask; mask /= 2) {
        const uint64_t other = (uint64_t)gpu_shuffle_xor((uint32_t)(best >> 32), mask) << 32 |
                               gpu_shuffle_xor((uint32_t)best, mask);
        best = other > best ? other : best;
    }
    return best;
}

GPU_KERNEL(engine_gpu_choose_experts, engine_gpu_choose_experts)
{
    float *s = gpu_shared();
    const int64_t n = p.probs.ne[0];
    struct engine_gpu_index at = {{0, gpu_block(), 0, 0}};
    for (at.i[0] = gpu_lane(); at.i[0] < n; at.i[0] += GPU_WARP) {
        const float prob = gpu_float(&p.probs, &at);
        s[at.i[0]] = p.bias.data ? prob + gpu_float(&p.bias, &at) : prob;
    }
    gpu_sync_warp(); /* all scores are written */
    if (p.how.n_groups > 1) mask_groups(s, n, &p.how);
    uint64_t key = UINT64_MAX;
    for (at.i[0] = 0; at.i[0] < p.how.n_used; at.i[0]++) {
        key = next_key(s, n, key);
        if (gpu_lane() == 0)
            *(int32_t *)(void *)gpu_at(&p.ids, &at) = (int32_t) ~(uint32_t)key / p.how.divisor;
    }
}

/* ---- Weights: sixteen lanes for each token ---- */

GPU_KERNEL(engine_gpu_expert_weights, engine_gpu_expert_weights)
{
    const int64_t row = gpu_half_of_grid();
    const bool is_in = row < p.out.ne[1];
    const int64_t used = is_in ? p.out.ne[0] : 0;
    struct engine_gpu_index at = {{0, is_in ? row : 0, 0, 0}};
    float *w = (float *)(void *)gpu_at(&p.out, &at), m = -INFINITY, sum = 0.0f;
    for (int64_t u = gpu_lane() % 16; u < used; u += 16) {
        at.i[0] = u;
        const int32_t id = *(const int32_t *)(const void *)gpu_at(&p.ids, &at);
        at.i[0] = id;
        w[u] = id >= 0 && id < p.probs.ne[0] ? gpu_float(&p.probs, &at) : v_of_bits(0x7fc00000);
        m = w[u] > m ? w[u] : m;
    }
    if (p.how.softmax) {
        const float factor = 1.0f / gpu_exp_row(w, used, gpu_max_tree(m));
        for (int64_t u = gpu_lane() % 16; u < used; u += 16) w[u] *= factor;
    }
    for (int64_t u = gpu_lane() % 16; u < used; u += 16) sum += w[u];
    sum = gpu_sum_tree(sum);
    for (int64_t u = gpu_lane() % 16; u < used; u += 16) {
        if (p.how.normalize) w[u] /= sum < 0x1p-14f ? 0x1p-14f : sum;
        if (p.how.scale != 1.0f) w[u] *= p.how.scale;
    }
}

/* ---- Sums: a thread for each element ---- */

GPU_KERNEL(engine_gpu_expert_sum, engine_gpu_expert_sum)
{
    const int64_t n = gpu_thread_of_grid();
    if (n >= p.out.ne[0] * engine_gpu_rows(&p.out)) return;
    const struct engine_gpu_index at = gpu_index(&p.out, n);
    float sum = 0.0f;
    for (int64_t u = 0; u < p.y.ne[1]; u++) {
        const struct engine_gpu_index y = {{at.i[0], u, at.i[1], 0}}, w = {{u, at.i[1], 0, 0}};
        const float term = gpu_float(&p.y, &y) * gpu_float(&p.weights, &w);
        sum = u ? sum + term : term;
    }
    *(float *)(void *)gpu_at(&p.out, &at) = sum;
}

/* engine/gpu/device/gpu_compress.c: device code: keys of blocks of positions, and doubly stochastic
 * matrices, each by sixteen lanes. The arithmetic is that of engine/cpu/op/op_compress.c. */
#include "engine/gpu/device/gpu_element.h"

/* ---- compress_keys ---- */

/* The positions of a block's key. */
struct gpu_key_block {
    const int32_t *slots; /* of the first position on */
    int64_t n, n_before;  /* positions; those before the block */
    int64_t first;        /* position */
};

static struct gpu_key_block block_of(const struct engine_gpu_compress_keys *p, int64_t token)
{
    const int32_t *v = (const int32_t *)(const void *)(p->ranges.data + token * p->ranges.nb[1]);
    struct gpu_key_block b = {.first = v[1]};
    if (v[1] < 0 || v[2] > p->tables.ne[0] || v[2] - v[1] != p->how.ratio || v[0] < 0 ||
        v[0] >= p->tables.ne[1])
        return b;
    if (p->how.overlaps && b.first >= p->how.ratio) {
        b.first -= p->how.ratio;
        b.n_before = p->how.ratio;
    }
    b.n = v[2] - b.first;
    b.slots = (const int32_t *)(const void *)(p->tables.data + v[0] * p->tables.nb[1]) + b.first;
    return b;
}

/* Sets the score and the value of position j for channel c; false: its slot is out of range. */
static bool read_position(const struct engine_gpu_compress_keys *p, const struct gpu_key_block *b,
                          int64_t c, int64_t j, float *score, float *value)
{
    const struct engine_compress_keys *how = &p->how;
    const int64_t at = how->overlaps && j >= b->n_before ? c + how->size : c;
    const struct engine_gpu_index ape = {{at, (b->first + j) % how->ratio, 0, 0}};
    const int32_t slot = b->slots[j];
    *score = *value = 0.0f;
    if (slot < 0 || slot >= p->rows.ne[2]) return false;
    const float *row = (const float *)(const void *)(p->rows.data + slot * p->rows.nb[2]);
    if (p->ape.data) *score = row[how->score_at + at] + gpu_float(&p->ape, &ape);
    *value = row[how->value_at + at];
    return true;
}

GPU_KERNEL(engine_gpu_compress_keys, engine_gpu_compress_keys)
{
    const int64_t n = gpu_half_of_grid(), size = p.out.ne[0];
    const bool is_in = n < size * p.out.ne[1];
    struct gpu_key_block b = block_of(&p, is_in ? n / size : 0);
    float m = -INFINITY, missing = 0.0f, sum = 0.0f, dot = 0.0f, score, value;
    if (!is_in) b.n = 0;
    for (int64_t j = gpu_lane() % 16; j < b.n; j += 16) {
        if (!read_position(&p, &b, n % size, j, &score, &value)) missing = 1.0f;
        m = score > m ? score : m;
    }
    m = gpu_max_tree(m);
    missing = gpu_max_tree(missing);
    for (int64_t j = gpu_lane() % 16; j < b.n; j += 16) {
        (void)read_position(&p, &b, n % size, j, &score, &value);
        const float e = v_exp(score - m);
        sum += e;
        dot = fmaf(e, value, dot);
    }
    sum = gpu_sum_tree(sum);
    dot = gpu_sum_tree(dot);
    if (!is_in || gpu_lane() % 16 != 0) return;
    const struct engine_gpu_index at = {{n % size, n / size, 0, 0}};
    *(float *)(void *)gpu_at(&p.out, &at) = missing != 0.0f ? v_of_bits(0x7fc00000)
                                            : b.n           ? dot / sum
                                                            : 0.0f;
}

/* ---- sinkhorn ---- */

/* Divides n lines of n numbers, each by a lane, by their sums plus eps; lines are `line` apart,
 * their numbers `step`. */
static void divide(float *x, int64_t n, int64_t line, int64_t step, float eps)
{
    for (int64_t l = gpu_lane() % 16; l < n; l += 16) {
        float *at = x + l * line, sum = 0.0f;
        for (int64_t i = 0; i < n; i++) sum += at[i * step];
        sum += eps;
        for (int64_t i = 0; i < n; i++) at[i * step] /= sum;
    }
    gpu_sync_warp(); /* lines are written */
}

GPU_KERNEL(engine_gpu_sinkhorn, engine_gpu_sinkhorn)
{
    const int64_t matrix = gpu_half_of_grid(), size = p.out.ne[0];
    const int64_t n = matrix < p.out.ne[2] * p.out.ne[3] ? size : 0, first = n * n * matrix;
    const float *x = (const float *)(const void *)p.a.data + first, eps = p.how.eps;
    float *out = (float *)(void *)p.out.data + first;
    for (int64_t r = 0; r < size; r++) {
        float m = -INFINITY;
        for (int64_t c = gpu_lane() % 16; c < n; c += 16) {
            out[r * n + c] = x[r * n + c];
            m = x[r * n + c] > m ? x[r * n + c] : m;
        }
        const float sum = gpu_exp_row(out + r * n, n, gpu_max_tree(m));
        for (int64_t c = gpu_lane() % 16; c < n; c += 16)
            out[r * n + c] = out[r * n + c] / sum + eps;
    }
    /* A lane has the same columns of all rows, which it divides first. */
    divide(out, n, 1, n, eps);
    for (int k = 1; k < p.how.iterations; k++) {
        divide(out, n, n, 1, eps);
        divide(out, n, 1, n, eps);
    }
}

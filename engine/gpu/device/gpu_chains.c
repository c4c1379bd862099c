/* engine/gpu/device/gpu_chains.c: device code: chains of ops on rows: a bias, a norm, a rotation,
 * and the storing in a cache. A warp has a row of a chain, which is in shared memory between the
 * ops. */
#include "engine/gpu/device/gpu_row.h"

/* Copies the row to shared memory, with the bias. */
QUANT_INLINE void load(const struct engine_gpu_chain *c, int64_t row, float *now)
{
    const int64_t head = row % c->n_heads, token = row / c->n_heads;
    const float *x =
        (const float *)(const void *)(c->x + head * c->head_bytes + token * c->token_bytes);
    for (int64_t i = gpu_lane(); i < c->d; i += GPU_WARP) {
        now[i] = x[i];
        if (!c->sum) continue;
        now[i] += c->bias[head * c->d + i];
        c->sum[row * c->d + i] = now[i];
    }
    gpu_sync_warp(); /* the row is there */
}

/* Sums exchange values after all lanes have read the row, so it may then be replaced. */
QUANT_INLINE void norm(const struct engine_gpu_chain *c, int64_t row, float *now)
{
    const char *x = (const char *)now;
    const bool is_norm = c->kind == ENGINE_GPU_NORM;
    const float mean = is_norm ? gpu_sum_of(x, sizeof *now, c->d, 0.0f, false) / (float)c->d : 0.0f;
    const float factor =
        gpu_norm_factor(c->kind, c->eps, c->d, gpu_sum_of(x, sizeof *now, c->d, mean, true));
    for (int64_t i = gpu_lane(); i < c->d; i += GPU_WARP) {
        float y = gpu_normed(c->kind, now[i], mean, factor);
        if (c->weight) y *= c->weight[i];
        if (c->norm_bias) y += c->norm_bias[i];
        now[i] = c->normed[row * c->d + i] = y;
    }
    gpu_sync_warp(); /* the norm is there */
}

/* A lane stores the elements that it rotates, so it waits for no other. */
QUANT_INLINE void rotate(const struct engine_gpu_chain *c, int64_t row, const float *now,
                         float *next)
{
    const int64_t n = c->n_rot / 2;
    const float *angle =
        (const float *)(const void *)(c->table + row / c->n_heads * c->table_bytes);
    for (int64_t i = gpu_lane(); i < c->d; i += GPU_WARP) {
        const int64_t pair = c->normal ? i / 2 : i < n ? i : i - n;
        const int64_t a = c->normal ? 2 * pair : pair, b = a + (c->normal ? 1 : n);
        float y = now[i];
        if (i < c->n_rot) y = gpu_rotated(now[a], now[b], angle[pair], angle[n + pair], i == a);
        next[i] = c->rotated[row * c->d + i] = y;
    }
}

QUANT_INLINE void compute(const struct engine_gpu_chain *c, int64_t row)
{
    float *now = gpu_shared(), *next = now + ENGINE_GPU_CHAIN_SIZE;
    const int64_t head = row % c->n_heads, token = row / c->n_heads;
    load(c, row, now);
    if (c->normed) norm(c, row, now);
    if (c->rotated) {
        rotate(c, row, now, next);
        now = next;
    }
    if (c->cache)
        gpu_store_row((const char *)now, sizeof *now, c->d, c->cache + head * c->cache_bytes,
                      c->group_bytes, c->n_slots, c->slots[token], c->values, c->bfloat);
}

GPU_KERNEL(engine_gpu_chains, engine_gpu_chains)
{
    if (gpu_loads_ahead(&p.ahead, GPU_WARP)) return;
    const int64_t row = gpu_block(), second = p.chain[0].n_rows, third = second + p.chain[1].n_rows;
    if (row < second)
        compute(&p.chain[0], row);
    else if (row < third)
        compute(&p.chain[1], row - second);
    else
        compute(&p.chain[2], row - third);
}

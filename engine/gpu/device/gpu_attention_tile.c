/* engine/gpu/device/gpu_attention_tile.c: device code: attention of many query rows over a cache of
 * int16 groups, by the GPU's matrix units, with the bits of gpu_attention.c.
 *
 * A block has 32 query rows of a KV head: its query heads of consecutive tokens. Rows whose keys
 * are those of one table are a run; the block computes one run after the other, chunk by chunk:
 *
 *     scores        warp s: keys 32 s .. 32 s + 31 of the chunk, read from memory once for all rows
 *     weights       the same lanes; their codes, c and sums of lanes to shared memory
 *     factors       warp w: rows 4 w .. 4 w + 3: sums of weights, and their merge
 *     values        warp w: elements 8 w .. 8 w + 7, 8 w + 64 .. and so on: sub-blocks in
 *                   ascending order, then the merge
 *
 * A code is 256 high + low. Of a query or a weight both bytes are signed, of a key or a value the
 * low one is unsigned, so that both are bytes of the cache. Sums of integers:
 *
 *     65536 (high high) + 256 (high low + low high) + low low
 *
 * The sum is below 2^31, so its parts may be added modulo 2^32.
 *
 * A row outside of the run, or beside the last one, has no key there. Sums of values of chunks that
 * are merged are in the result until the end. */
#include "engine/gpu/device/gpu_attention.h"

enum {
    ROWS = ENGINE_GPU_ATTENTION_ROWS,
    SUB = ENGINE_ATTN_SUB,
    SUBS = ENGINE_ATTN_SUBS,
    KEYS = ENGINE_ATTN_KEYS,
    WARPS = ENGINE_GPU_ATTENTION_THREADS / GPU_WARP,
    HIGH_BYTES = 0x7531, /* of two words: of four codes */
    LOW_BYTES = 0x6420
};

struct query_tile {
    const struct engine_gpu_attention *p;
    struct engine_gpu_attention_tile_memory *s;
};

/* The chunk that is computed: its first position, and the sub-blocks with keys of the run. */
struct chunk {
    int position, first_sub, end_sub;
};

QUANT_INLINE struct chunk chunk_at(const struct query_tile *t, int position)
{
    const int lo = t->s->run.lo - position, hi = t->s->run.hi - position;
    return (struct chunk){position, lo < 0 ? 0 : lo / SUB, hi < KEYS ? (hi + SUB - 1) / SUB : SUBS};
}

/* This thread's place: lane 4 row + pair of its warp. */
struct place {
    int warp, lane, row, pair;
};

QUANT_INLINE struct place place(void)
{
    const unsigned thread = (unsigned)gpu_thread_again(), lane = thread % GPU_WARP;
    return (struct place){(int)(thread / GPU_WARP), (int)lane, (int)(lane / 4), (int)(lane % 4)};
}

/* ---- Query rows ---- */

QUANT_INLINE struct query row_of(const struct query_tile *t, int i)
{
    const struct engine_gpu_attention_tile_memory *s = t->s;
    const int64_t per_kv = t->p->q.ne[1] / t->p->k.ne[1];
    const int64_t row =
        s->tile.first_row + i < s->tile.n_rows ? s->tile.first_row + i : s->tile.n_rows - 1;
    return query_of(t->p, false, s->tile.kv * per_kv + (uint32_t)row % (uint32_t)per_kv,
                    (uint32_t)row / (uint32_t)per_kv);
}

QUANT_INLINE float *results_of(const struct query_tile *t)
{
    return (float *)(void *)t->p->out.data;
}

/* Writes what row i has in shared memory; by a warp. */
QUANT_INLINE void prepare_row(const struct query_tile *t, int i)
{
    struct engine_gpu_attention_tile_memory *s = t->s;
    const struct query q = row_of(t, i);
    const bool has_keys = s->tile.first_row + i < s->tile.n_rows && q.end > 0;
    uint32_t largest = 0;
    float factor;
    for (int e = gpu_lane(); e < s->tile.d; e += GPU_WARP)
        largest = attn_magnitude_bits(q.x[e]) > largest ? attn_magnitude_bits(q.x[e]) : largest;
    const float scale = gpu_scale_of_warp(largest, ENGINE_ATTN_QUERY, &factor);
    for (int e = gpu_lane(); e < s->tile.d_steps; e += GPU_WARP) {
        const int code = e < s->tile.d ? attn_code(q.x[e], factor) : 0;
        s->query[i * s->tile.pitch + e] = (int8_t)((code + 128) >> 8);
        s->query[(ROWS + i) * s->tile.pitch + e] = (int8_t)code;
    }
    if (gpu_lane() != 0) return;
    s->table[i] = (const char *)q.table - t->p->tables.data;
    s->first[i] = has_keys ? (int32_t)q.first : 0;
    s->end[i] = has_keys ? (int32_t)q.end : 0;
    s->query_scale[i] = scale * t->p->scale;
    s->any[i] = false;
    s->to[i] = t->p->sums ? stored_sums(&q, 0) - t->p->sums : result_at(&q) - results_of(t);
}

/* Where the sums of row i and a chunk are. */
QUANT_INLINE float *stored(const struct query_tile *t, const struct chunk *c, int i)
{
    return t->p->sums + t->s->to[i] + (int64_t)(c->position / KEYS) * (t->s->tile.dv + 2);
}

/* Writes the run that begins with the first row with keys from row i on; hi 0: none. All threads
 * call it. */
QUANT_INLINE void begin_run(struct engine_gpu_attention_tile_memory *s, int i)
{
    int lo = INT32_MAX, hi = 0;
    while (i < ROWS && s->end[i] == 0) i++;
    const int first = i, row = gpu_thread_again();
    for (; i < ROWS; i++) {
        if (s->end[i] == 0) continue;
        if (s->table[i] != s->table[first]) break;
        lo = s->first[i] < lo ? s->first[i] : lo;
        hi = s->end[i] > hi ? s->end[i] : hi;
    }
    gpu_sync(); /* the run before is read */
    if (row < ROWS) {
        s->lo[row] = row >= first && row < i ? s->first[row] : 0;
        s->hi[row] = row >= first && row < i ? s->end[row] : 0;
    }
    if (row == 0) {
        s->run.lo = lo;
        s->run.hi = hi;
        s->run.end = i;
        s->run.table = first < ROWS ? s->table[first] : 0;
    }
    gpu_sync(); /* the run is written */
}

/* The keys of row i from `position` on: lo <= key < hi; hi <= 0: none. */
QUANT_INLINE void range_of(const struct engine_gpu_attention_tile_memory *s, int i, int position,
                           int *lo, int *hi)
{
    *lo = s->lo[i] - position;
    *hi = s->hi[i] - position;
}

/* ---- Products ---- */

/* Adds the products of codes, whose bytes are a and b, to their three sums. */
QUANT_INLINE void multiply_codes(uint32_t a[2][4], uint32_t b[2][2], int sum[3][4])
{
    gpu_multiply_32(a[0], b[0], sum[0]);
    gpu_multiply_32_unsigned(a[0], b[1], sum[1]);
    gpu_multiply_32(a[1], b[0], sum[1]);
    gpu_multiply_32_unsigned(a[1], b[1], sum[2]);
}

QUANT_INLINE float sum_of_codes(int sum[3][4], int e)
{
    return (float)(int32_t)(((uint32_t)sum[0][e] << 16) + ((uint32_t)sum[1][e] << 8) +
                            (uint32_t)sum[2][e]);
}

/* Elements 2i and 2i + 1 of the key at `at`. */
QUANT_INLINE uint32_t key_word(const char *at, int i)
{
#ifdef ENGINE_ATTN_PLANES
    return (uint16_t)attn_load(at + attn_key_at(0, 2 * i), ATTN_KEY_LOW) |
           (uint32_t)attn_load(at + attn_key_at(0, 2 * i + 1), ATTN_KEY_LOW) << 16;
#else
    return *(const uint32_t *)(const void *)(at + i * (ENGINE_ATTN_GROUP * ATTN_UNIT_BYTES));
#endif
}

/* An element of two values. */
QUANT_INLINE uint32_t value_word(const char *first, const char *second, int dv, bool adjacent)
{
    if (adjacent) return *(const uint32_t *)(const void *)first;
    return (uint16_t)attn_load(first, attn_value_low(dv)) |
           (uint32_t)attn_load(second, attn_value_low(dv)) << 16;
}

/* ---- Scores ---- */

/* Writes what this lane's key, j of the chunk, has in shared memory. */
QUANT_INLINE void prepare_key(const struct query_tile *t, const struct chunk *c)
{
    const int j = gpu_thread_again();
    struct engine_gpu_attention_tile_memory *s = t->s;
    const int position = c->position + j;
    int32_t slot = position >= s->run.lo && position < s->run.hi
                       ? *(const int32_t *)(const void *)(t->p->tables.data + s->run.table +
                                                          4 * (int64_t)position)
                       : -1;
    const bool is_missing = slot < 0 || slot >= t->p->n_slots;
    const int32_t other = (int32_t)gpu_shuffle_xor((uint32_t)slot, 1);
    /* Any slot does, so one that is adjacent. */
    if (is_missing) slot = other < 0 || other >= t->p->n_slots ? j % 2 : other ^ 1;
    const bool is_next = (int32_t)gpu_shuffle_xor((uint32_t)slot, 1) == (slot ^ 1);
    uint32_t adjacent = is_next && slot % 2 == j % 2 && ENGINE_ATTN_UNIT == 2;
    for (int mask = GPU_WARP / 2; mask; mask /= 2) adjacent &= gpu_shuffle_xor(adjacent, mask);
    const int r = slot % ENGINE_ATTN_GROUP;
    const int64_t group = slot / ENGINE_ATTN_GROUP;
    const char *key = t->p->k.data + s->tile.k_at + group * t->p->k.nb[2],
               *value = t->p->v.data + s->tile.v_at + group * t->p->v.nb[2];
    const float scale = engine_attn_scales(value)[r];
    s->key_at[j] = attn_bytes(key) + attn_key_at(r, 0) - t->p->k.data;
    s->value_at[j] = attn_bytes(value) + attn_value_at(s->tile.dv, r, 0) - t->p->v.data;
    s->key_scale[j] = engine_attn_scales(key)[r];
    s->offset[j] = is_missing ? v_of_bits(0x7fc00000) : attn_offset(scale);
    s->inverse[j] = attn_inverse(scale);
    if (j % GPU_WARP == 0) s->adjacent[j / GPU_WARP] = adjacent;
}

/* Of 16 rows, from 16 m on: products with four times 8 keys, this lane's as gpu_multiply_32 has
 * them. */
struct scores {
    float v[4][4];
};

/* The row, of 16, and the key of the sub-block of element e of v[n]. */
QUANT_INLINE int row_at(struct place here, int e)
{
    return e / 2 * 8 + here.row;
}

QUANT_INLINE int key_at(struct place here, int n, int e)
{
    return 8 * n + here.pair * 2 + e % 2;
}

/* Adds the sums of elements first .. first + 63 of this warp's keys. */
QUANT_INLINE void score_elements(const struct query_tile *t, int m, int first, struct scores *to)
{
    const struct engine_gpu_attention_tile_memory *s = t->s;
    enum { STEPS = ENGINE_ATTN_DIMS / 32 };
    const struct place here = place();
    const int8_t *row = s->query + (16 * m + here.lane % 16) * s->tile.pitch;
    uint32_t b[4][STEPS][2][2], a[STEPS][2][4]; /* [key][step][high, low bytes] */
    GPU_EACH (n, 4) {
        const char *key = t->p->k.data + s->key_at[here.warp * SUB + 8 * n + here.row];
        GPU_EACH (half, 2 * STEPS) {
            /* Past the last element the query has zeros, and the key any codes. */
            const int from = first + 16 * half < s->tile.d ? first / 2 + 8 * half : 0;
            uint32_t two[2];
            GPU_EACH (w, 2) two[w] = key_word(key, from + here.pair * 2 + w);
            b[n][half / 2][0][half % 2] = gpu_choose(two[0], two[1], HIGH_BYTES);
            b[n][half / 2][1][half % 2] = gpu_choose(two[0], two[1], LOW_BYTES);
        }
    }
    GPU_EACH (i, 2 * STEPS)
        gpu_load_matrices(row + i % 2 * ROWS * s->tile.pitch + first + i / 2 * 32 +
                              here.lane / 16 * 16,
                          a[i / 2][i % 2]);
    GPU_EACH (n, 4) {
        int sum[3][4] = {0};
        GPU_EACH (k, STEPS) multiply_codes(a[k], b[n][k], sum);
        GPU_EACH (e, 4) to->v[n][e] += sum_of_codes(sum, e);
    }
}

/* Changes scores to exponents of two, by shared memory: a lane has a key of each row. */
QUANT_INLINE void change_scores(const struct query_tile *t, const struct chunk *c, int m,
                                struct scores *x)
{
    const struct place here = place();
    float(*score)[SUB] =
        (float(*)[SUB])(void *)(t->s->query + 2 * ROWS * t->s->tile.pitch) + 16 * here.warp;
    gpu_sync_warp(); /* exponents of the rows before are read */
    GPU_EACH (i, 16) score[row_at(here, i % 4)][key_at(here, i / 4, i % 4)] = x->v[i / 4][i % 4];
    gpu_sync_warp(); /* scores are written */
    GPU_LOOP
    for (int i = 0; i < 16; i++) {
        const struct query q = row_of(t, 16 * m + i);
        score[i][here.lane] =
            exponent_of(&q, score[i][here.lane], c->position + here.warp * SUB + here.lane);
    }
    gpu_sync_warp(); /* exponents are written */
    GPU_EACH (i, 16) x->v[i / 4][i % 4] = score[row_at(here, i % 4)][key_at(here, i / 4, i % 4)];
}

/* ---- Weights ---- */

/* Four codes of weights as bytes, in pairs. */
QUANT_INLINE void write_codes(int8_t *high, int8_t *low, const int16_t code[4])
{
    uint32_t pair[2];
    GPU_EACH (i, 2)
        pair[i] = (uint32_t)(uint16_t)code[2 * i] | (uint32_t)(uint16_t)code[2 * i + 1] << 16;
    *(uint32_t *)(void *)low = gpu_choose(pair[0], pair[1], LOW_BYTES);
    GPU_EACH (i, 2) pair[i] += 0x00800080; /* codes are 0 to 2^14 */
    *(uint32_t *)(void *)high = gpu_choose(pair[0], pair[1], HIGH_BYTES);
}

/* Computes the codes of the weights of row `row`, c, and their sums, of this lane's keys of t. */
QUANT_INLINE void weigh_row(const struct query_tile *t, const struct chunk *chunk,
                            struct place here, int row, const float x[4][2])
{
    struct engine_gpu_attention_tile_memory *s = t->s;
    const int warp = here.warp;
    int lo, hi;
    range_of(s, row, chunk->position + warp * SUB, &lo, &hi);
    float largest = -ENGINE_ATTN_LIMIT;
    GPU_EACH (i, 8) {
        const int j = key_at(here, i / 2, i % 2);
        if (j >= lo && j < hi && x[i / 2][i % 2] > largest) largest = x[i / 2][i % 2];
    }
    for (int mask = 2; mask; mask /= 2) {
        const float other = v_of_bits(gpu_shuffle_xor(v_bits(largest), mask));
        largest = other > largest ? other : largest;
    }
    const float c = ceilf(largest), from = c > ENGINE_ATTN_LIMIT ? v_of_bits(0x7fc00000) : c;
    int16_t code[8];
    float sum[2][2] = {0};
    GPU_EACH (i, 8) {
        const int n = i / 2, j = key_at(here, n, i % 2);
        const bool is_in = j >= lo && j < hi;
        const float w = is_in ? attn_weight(x[n][i % 2], from) : 0.0f;
        code[i] = attn_weight_code(w);
        if (is_in) sum[n % 2][i % 2] = fmaf(w, s->inverse[warp * SUB + j], sum[n % 2][i % 2]);
    }
    GPU_EACH (i, 2)
        write_codes(&s->weight[warp][0][row][8 * here.pair + 4 * i],
                    &s->weight[warp][1][row][8 * here.pair + 4 * i], code + 4 * i);
    GPU_EACH (i, 4) s->lane[warp][row][key_at(here, i / 2, i % 2)] = sum[i / 2][i % 2];
    if (here.pair == 0) s->c[row][warp] = c;
}

/* The weights of 16 rows, from 16 m on, and this warp's keys. */
QUANT_INLINE void weigh_rows(const struct query_tile *t, const struct chunk *c, int m)
{
    const struct engine_gpu_attention_tile_memory *s = t->s;
    struct scores x = {0};
    GPU_LOOP
    for (int first = 0; first < s->tile.d; first += ENGINE_ATTN_DIMS)
        score_elements(t, m, first, &x);
    const struct place here = place();
    const bool direct = t->p->direct;
    const int key = here.warp * SUB;
    GPU_EACH (i, 16) {
        const int n = i / 4, e = i % 4, j = key + key_at(here, n, e);
        x.v[n][e] = fmaf(x.v[n][e] * s->key_scale[j], s->query_scale[16 * m + row_at(here, e)],
                         direct ? s->offset[j] : 0.0f);
    }
    if (!direct) {
        change_scores(t, c, m, &x);
        GPU_EACH (i, 16) x.v[i / 4][i % 4] += s->offset[key + key_at(here, i / 4, i % 4)];
    }
    GPU_EACH (i, 2) {
        float of_row[4][2];
        GPU_EACH (k, 8) of_row[k / 2][k % 2] = x.v[k / 2][i * 2 + k % 2];
        weigh_row(t, c, here, 16 * m + row_at(here, i * 2), of_row);
    }
}

/* ---- Factors ---- */

/* Adds the weights of the chunk to those of row i, whose sum is l; by one lane. */
QUANT_INLINE void add_weights(const struct query_tile *t, const struct chunk *c, int i, float l)
{
    struct engine_gpu_attention_tile_memory *s = t->s;
    const struct weight_sums next = {true, s->largest[i] - ENGINE_ATTN_WEIGHT_BITS, l};
    struct weight_sums sum = {s->any[i], s->m[i], s->l[i]};
    /* The result has no number before the first chunk, and is not read. */
    struct merge_factors f = {0.0f, 1.0f};
    int lo, hi;
    range_of(s, i, c->position, &lo, &hi);
    s->adds[i] = lo < KEYS && hi > 0;
    if (!s->adds[i]) return;
    if (t->p->sums) {
        float *to = stored(t, c, i);
        to[0] = next.m;
        to[1] = next.l;
        return;
    }
    if (sum.any)
        f = merge_weights(false, &sum, &next);
    else
        sum = next;
    s->m[i] = sum.m;
    s->l[i] = sum.l;
    s->before[i] = f.before;
    s->now[i] = f.now;
}

/* The scales of sub-blocks and the factors of the rows 4 w .. 4 w + 3 of warp w. */
QUANT_INLINE void find_factors(const struct query_tile *t, const struct chunk *chunk)
{
    struct engine_gpu_attention_tile_memory *s = t->s;
    const struct place here = place();
    const int row = 4 * here.warp + here.lane / SUBS, sub = here.lane % SUBS;
    const bool is_in = sub >= chunk->first_sub && sub < chunk->end_sub;
    const float c = is_in ? s->c[row][sub] : -ENGINE_ATTN_LIMIT;
    float largest = c;
    for (int mask = SUBS / 2; mask; mask /= 2) {
        const float other = v_of_bits(gpu_shuffle_xor(v_bits(largest), mask));
        largest = other > largest ? other : largest;
    }
    if (here.warp == 0 && here.lane == 0) {
        bool all = true;
        for (int i = chunk->first_sub; i < chunk->end_sub; i++) all = all && s->adjacent[i];
        s->all_adjacent = all;
    }
    s->scale[row][sub] = attn_exp2(c - largest);
    if (sub == 0) s->largest[row] = largest;
    gpu_sync_warp(); /* scales are written */
    for (int i = 0; i < 2; i++) {
        const int of = 4 * here.warp + 2 * i + here.lane / 16;
        float total = 0.0f;
        for (int k = chunk->first_sub; k < chunk->end_sub; k++)
            total = fmaf(s->lane[k][of][here.lane % 16], s->scale[of][k], total);
        total = gpu_sum_tree(total);
        if (here.lane % 16 == 0) add_weights(t, chunk, of, total);
    }
}

/* ---- Values ---- */

enum { AT_ONCE = 4 /* sub-blocks whose values are loaded */ };

/* Element e of the values of four pairs of keys, the first of which is `key`, of each sub-block. */
QUANT_INLINE void load_values(const struct query_tile *t, const struct chunk *c, int first, int key,
                              int e, bool adjacent, uint32_t word[AT_ONCE][4])
{
    const char *v = t->p->v.data + (int64_t)e * ATTN_UNIT_BYTES;
    const int64_t *at = t->s->value_at + first * SUB + key;
    const int dv = t->s->tile.dv;
    GPU_EACH (i, AT_ONCE) {
        GPU_EACH (k, 4) word[i][k] = 0;
        if (first + i < c->first_sub || first + i >= c->end_sub) continue;
        GPU_EACH (k, 4) {
            const int64_t *pair = at + i * SUB + k / 2 * 4 + k % 2 * 8;
            word[i][k] = value_word(v + pair[0], v + pair[1], dv, adjacent);
        }
    }
}

/* Adds the products of the sub-blocks first .. first + AT_ONCE - 1 to elements 8 n .. 8 n + 7 of
 * all rows. The order of keys is that of the codes of weights: bytes 8 t + 2 n + b are those of key
 * 8 n + 2 t + b. */
QUANT_INLINE void add_products(const struct query_tile *t, const struct chunk *c, int n, int first,
                               float o[2][4])
{
    const struct engine_gpu_attention_tile_memory *s = t->s;
    const struct place here = place();
    const int key = here.pair % 2 * 16 + here.pair / 2 * 2, e = 8 * n + here.row;
    uint32_t word[AT_ONCE][4];
    if (s->all_adjacent)
        load_values(t, c, first, key, e, true, word);
    else
        load_values(t, c, first, key, e, false, word);
    GPU_EACH (i, AT_ONCE) {
        const int sub = first + i;
        if (sub < c->first_sub || sub >= c->end_sub) continue;
        uint32_t b[2][2];
        GPU_EACH (k, 2) {
            b[0][k] = gpu_choose(word[i][2 * k], word[i][2 * k + 1], HIGH_BYTES);
            b[1][k] = gpu_choose(word[i][2 * k], word[i][2 * k + 1], LOW_BYTES);
        }
        GPU_EACH (m, 2) {
            uint32_t a[2][4];
            int sum[3][4] = {0};
            GPU_EACH (k, 2)
                gpu_load_matrices(&s->weight[sub][k][16 * m + here.lane % 16][here.lane / 16 * 16],
                                  a[k]);
            multiply_codes(a, b, sum);
            GPU_EACH (k, 4)
                o[m][k] =
                    fmaf(sum_of_codes(sum, k), s->scale[16 * m + row_at(here, k)][sub], o[m][k]);
        }
    }
}

/* Merges the chunk's sums of elements 8 n .. 8 n + 7 of all rows, or stores them. */
QUANT_INLINE void merge_values(const struct query_tile *t, const struct chunk *c, int n,
                               const float o[2][4])
{
    const struct engine_gpu_attention_tile_memory *s = t->s;
    const struct place here = place();
    GPU_EACH (i, 4) {
        const int row = i / 2 * 16 + row_at(here, i % 2 * 2), e = 8 * n + here.pair * 2;
        if (!s->adds[row]) continue;
        const struct merge_factors f = {s->before[row], s->now[row]};
        float *to = (t->p->sums ? stored(t, c, row) + 2 : results_of(t) + s->to[row]) + e;
        const float *next = &o[i / 2][i % 2 * 2];
        for (int k = 0; k < 2 && e + k < s->tile.dv; k++)
            to[k] = t->p->sums || !s->any[row] ? next[k] : merged(to[k], next[k], f);
    }
}

QUANT_INLINE void sum_values(const struct query_tile *t, const struct chunk *c)
{
    GPU_LOOP
    for (int n = place().warp; 8 * n < t->s->tile.dv; n += WARPS) {
        float o[2][4] = {0};
        GPU_LOOP
        for (int i = 0; i < SUBS; i += AT_ONCE) add_products(t, c, n, i, o);
        merge_values(t, c, n, o);
    }
}

/* ---- Chunks ---- */

QUANT_INLINE void compute_chunk(const struct query_tile *t, int position)
{
    struct engine_gpu_attention_tile_memory *s = t->s;
    struct chunk c = chunk_at(t, position);
    const int warp = place().warp;
    if (warp >= c.first_sub && warp < c.end_sub) {
        prepare_key(t, &c);
        gpu_sync_warp(); /* keys are prepared */
        GPU_LOOP
        for (int m = 0; m < ROWS / 16; m++) weigh_rows(t, &c, m);
    }
    gpu_sync(); /* weights of all sub-blocks are written */
    c = chunk_at(t, position);
    find_factors(t, &c);
    gpu_sync(); /* factors of all rows are written */
    sum_values(t, &c);
    gpu_sync(); /* weights and factors are read */
    const int row = gpu_thread_again();
    if (row < ROWS && s->adds[row]) s->any[row] = true;
}

/* Replaces the sums in the result by results. */
QUANT_INLINE void write_results(const struct query_tile *t)
{
    struct engine_gpu_attention_tile_memory *s = t->s;
    for (int i = gpu_warp(); i < ROWS && s->tile.first_row + i < s->tile.n_rows; i += WARPS) {
        const struct query q = row_of(t, i);
        struct weight_sums sum = {s->any[i], s->m[i], s->l[i]};
        const struct final_factors f = finish_weights(&q, &sum);
        float *to = result_at(&q);
        for (int e = gpu_lane(); e < s->tile.dv; e += GPU_WARP)
            to[e] = finished(&q, &sum, sum.any ? to[e] : 0.0f, f);
    }
}

GPU_KERNEL(engine_gpu_attention_tile, engine_gpu_attention)
{
    const struct query_tile t = {&p, gpu_shared()};
    if (gpu_thread() == 0) {
        const int64_t kv = gpu_block(), n_rows = p.q.ne[1] / p.k.ne[1] * p.q.ne[2];
        const int d = (int)p.q.ne[0];
        /* The last rows have the most keys, so they are the first. */
        const int64_t tile = engine_gpu_attention_tiles(n_rows) - 1 - gpu_block_y() / p.n_parts;
        t.s->tile.k_at = kv * p.k.nb[1];
        t.s->tile.v_at = kv * p.v.nb[1];
        t.s->tile.kv = kv;
        t.s->tile.first_row = tile * ROWS;
        t.s->tile.n_rows = n_rows;
        t.s->tile.d = d;
        t.s->tile.d_steps = (d + ENGINE_ATTN_DIMS - 1) / ENGINE_ATTN_DIMS * ENGINE_ATTN_DIMS;
        t.s->tile.dv = (int)(p.out.ne[0] / p.q.ne[1]);
        t.s->tile.pitch = (int)engine_gpu_attention_pitch(d);
        t.s->run.end = 0;
    }
    gpu_sync(); /* the tile is written */
    for (int i = gpu_warp(); i < ROWS; i += WARPS) prepare_row(&t, i);
    gpu_sync(); /* rows are prepared */
    while (t.s->run.end < ROWS) {
        begin_run(t.s, t.s->run.end);
        for (int c = t.s->run.lo / KEYS + gpu_block_y() % p.n_parts;
             c < (t.s->run.hi + KEYS - 1) / KEYS; c += p.n_parts)
            compute_chunk(&t, c * KEYS);
    }
    if (p.sums) return;
    gpu_sync(); /* sums of all rows are written */
    write_results(&t);
}

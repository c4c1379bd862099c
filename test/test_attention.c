/* test/test_attention.c: attention against a naive reference in double precision over a table of
 * shapes, and the same bits for every level, number of threads and split of the batch. */
#include "test/support_product.h"

#include "engine/cpu/isa/attn_terms.h"
#include "engine/kv.h"
#include "test/support_level.h"
#include "test/support_row.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { LISTS = 3, RELATIVE_MAX = 1024 };

struct shape {
    const char *name;
    int n_tokens, n_heads, n_kv, d, dv, room;
    enum quant_id k_type, v_type;
    int past;   /* number of keys before the first token */
    int window; /* 0: none; otherwise a token attends to the last `window` keys */
    bool ahead; /* every token attends to every key */
    bool lists; /* tokens belong to different sequences */
    bool sinks;
    float softcap;
    double bar;   /* largest NMSE */
    float sharp;  /* scales queries, if not 0 */
    float alibi;  /* exponent of ALiBi's largest slope; 0: none */
    int relative; /* radius of biases by relative position; 0: none */
};

static const struct shape shapes[] = {
    {"plain", 5, 4, 4, 64, 64, 32, QUANT_F16, QUANT_F16, .bar = 1e-7},
    {"f32 cache", 33, 6, 2, 40, 24, 64, QUANT_F32, QUANT_F32, .bar = 1e-12},
    {"f32 keys", 20, 4, 2, 40, 24, 300, QUANT_F32, QUANT_F16, .past = 250, .bar = 1e-7},
    {"f32 values", 20, 4, 2, 40, 24, 300, QUANT_F16, QUANT_F32, .past = 250, .bar = 1e-7},
    {"f32 keys, capped", 9, 5, 1, 40, 24, 300, QUANT_F32, QUANT_F16, .past = 250, .sinks = true,
     .softcap = 5.0f, .bar = 1e-7},
    {"grouped", 70, 9, 3, 64, 64, 200, QUANT_F16, QUANT_F16, .past = 100, .bar = 1e-7},
    {"one kv head", 3, 71, 1, 64, 64, 40, QUANT_F16, QUANT_F16, .past = 30, .bar = 1e-7},
    {"255 keys", 1, 4, 2, 80, 80, 255, QUANT_F16, QUANT_F16, .past = 254, .bar = 1e-7},
    {"256 keys", 1, 4, 2, 80, 80, 256, QUANT_F16, QUANT_F16, .past = 255, .bar = 1e-7},
    {"257 keys", 1, 4, 2, 80, 80, 257, QUANT_F16, QUANT_F16, .past = 256, .bar = 1e-7},
    {"one row", 1, 2, 2, 72, 40, 600, QUANT_F16, QUANT_F16, .past = 555, .bar = 1e-7},
    {"four rows", 1, 8, 2, 40, 72, 600, QUANT_F16, QUANT_F16, .past = 555, .bar = 1e-7},
    {"rows apart", 2, 2, 1, 64, 64, 600, QUANT_F16, QUANT_F16, .past = 511, .window = 9,
     .bar = 1e-7},
    {"across chunks", 9, 3, 1, 32, 32, 600, QUANT_F16, QUANT_F16, .past = 507, .bar = 1e-7},
    {"deep", 1, 6, 2, 128, 128, 4100, QUANT_F16, QUANT_F16, .past = 4096, .bar = 1e-7},
    {"deep batch", 40, 2, 2, 16, 16, 1200, QUANT_F16, QUANT_F16, .past = 1100, .bar = 1e-7},
    {"window", 40, 4, 2, 32, 32, 800, QUANT_F16, QUANT_F16, .past = 700, .window = 100,
     .bar = 1e-7},
    {"window at a border", 8, 4, 4, 32, 32, 600, QUANT_F16, QUANT_F16, .past = 508, .window = 1,
     .bar = 1e-7},
    {"encoder", 300, 2, 2, 32, 32, 300, QUANT_F16, QUANT_F16, .ahead = true, .bar = 1e-7},
    {"sequences", 50, 4, 2, 32, 32, 400, QUANT_F16, QUANT_F16, .past = 300, .lists = true,
     .bar = 1e-7},
    {"common chunk", 24, 4, 2, 32, 32, 900, QUANT_F16, QUANT_F16, .past = 700, .lists = true,
     .bar = 1e-7},
    {"common chunks, f32", 9, 4, 2, 40, 24, 1800, QUANT_F32, QUANT_F32, .past = 1500, .lists = true,
     .bar = 1e-12},
    {"common chunk, window", 12, 4, 2, 32, 32, 900, QUANT_F16, QUANT_F16, .past = 340,
     .window = 345, .lists = true, .bar = 1e-7},
    {"sinks", 20, 4, 2, 64, 64, 300, QUANT_F16, QUANT_F16, .past = 250, .sinks = true, .bar = 1e-7},
    {"softcap", 20, 4, 2, 64, 64, 300, QUANT_F16, QUANT_F16, .past = 250, .softcap = 5.0f,
     .bar = 1e-7},
    {"odd sizes", 7, 3, 3, 37, 19, 60, QUANT_F16, QUANT_F16, .past = 50, .bar = 1e-7},
    {"sharp", 9, 4, 2, 64, 64, 600, QUANT_F16, QUANT_F16, .past = 500, .bar = 1e-4, .sharp = 40},
    {"large head", 3, 2, 1, 576, 512, 300, QUANT_F16, QUANT_F16, .past = 290, .bar = 1e-7},
    {"bf16 cache", 20, 4, 2, 72, 72, 300, QUANT_BF16, QUANT_BF16, .past = 250, .bar = 1e-7},
    {"q8_0 cache", 20, 4, 2, 64, 64, 300, QUANT_Q8_0, QUANT_Q8_0, .past = 250, .bar = 1e-7},
    {"q4_0 keys", 20, 4, 2, 64, 64, 600, QUANT_Q4_0, QUANT_F16, .past = 550, .bar = 1e-7},
    {"q4_1 values", 3, 4, 2, 64, 64, 600, QUANT_F16, QUANT_Q4_1, .past = 550, .bar = 1e-7},
    {"alibi", 9, 8, 2, 32, 32, 300, QUANT_F16, QUANT_F16, .past = 260, .bar = 1e-7, .alibi = 8},
    {"alibi, six heads", 9, 6, 6, 32, 32, 300, QUANT_F32, QUANT_F32, .past = 260, .bar = 1e-12,
     .alibi = 8},
    {"alibi, five heads, softcap", 5, 5, 1, 40, 24, 60, QUANT_F16, QUANT_F16, .past = 50,
     .softcap = 5.0f, .bar = 1e-7, .alibi = 4},
    {"alibi, later keys", 40, 8, 2, 32, 32, 300, QUANT_F16, QUANT_F16, .past = 230, .ahead = true,
     .bar = 1e-7, .alibi = 8},
    {"relative, later keys", 40, 6, 2, 32, 32, 300, QUANT_F16, QUANT_F16, .past = 230,
     .ahead = true, .bar = 1e-7, .relative = 25},
    {"relative, f32 cache, sinks", 20, 5, 5, 40, 24, 300, QUANT_F32, QUANT_F32, .past = 250,
     .window = 70, .sinks = true, .bar = 1e-12, .relative = 40},
};

/* All data of a shape; the reference reads decoded caches. */
struct data {
    const struct shape *s;
    int n_cells;
    float *q, *k, *v, sinks[128], relative[RELATIVE_MAX];
    char *k_cache, *v_cache;
    int32_t *span, *cells;
    double *want;
};

/* Rows of d random floats, stored as `type` and decoded again into *plain. */
static char *random_cache(enum quant_id id, int64_t rows, int64_t d, float **plain, uint64_t *seed)
{
    const struct quant_type *type = quant_type_by_id(id);
    uint64_t row_bytes;
    assert_true(quant_row_bytes(type, (uint64_t)d, &row_bytes));
    char *cache = malloc((size_t)rows * row_bytes);
    *plain = malloc((size_t)(rows * d) * sizeof(float));
    for (int64_t r = 0; r < rows; r++) {
        float *row = *plain + r * d;
        for (int64_t i = 0; i < d; i++) row[i] = product_random(seed);
        support_row_fill(type, d, row, cache + (uint64_t)r * row_bytes);
        type->scalar.decode(0, d, cache + (uint64_t)r * row_bytes, row);
    }
    return cache;
}

static int list_of(const struct shape *s, int token)
{
    return s->lists ? token % LISTS : LISTS - 1;
}

static void fill_lists(struct data *d)
{
    const struct shape *s = d->s;
    /* Sequences share their first slots; their other slots differ and are scattered: 16 consecutive
     * positions are in about eight groups of the cache. */
    for (int l = 0; l < LISTS; l++)
        for (int j = 0; j < s->room; j++)
            d->cells[l * s->room + j] =
                j < s->room / 3 ? j : d->n_cells - 1 - (7 * j + l) % s->room;
    for (int t = 0; t < s->n_tokens; t++) {
        int end = s->ahead ? s->past + s->n_tokens : s->past + t + 1;
        int first = s->window && end > s->window ? end - s->window : 0;
        int32_t span[4] = {list_of(s, t), first, end, end - 1 - (s->past + t)};
        memcpy(d->span + 4 * t, span, sizeof(span));
    }
}

/* ALiBi's slopes as its paper defines them: for a power of two of heads a geometric sequence from
 * 2^(-max / heads) with that ratio; otherwise those of the power of two below, then every other one
 * of the power of two above. */
static double slope_of(double max, int n_heads, int h)
{
    int below = 1;
    while (2 * below <= n_heads) below *= 2;
    if (below == n_heads) return pow(2, -max / n_heads * (h + 1));
    return h < below ? slope_of(max, below, h) : slope_of(max, 2 * below, 2 * (h - below));
}

static void reference_row(struct data *d, int t, int h)
{
    const struct shape *s = d->s;
    const int32_t *span = d->span + 4 * t, *cells = d->cells + span[0] * s->room;
    int kv = h / (s->n_heads / s->n_kv);
    double *score = calloc((size_t)s->room, sizeof(*score)), m = s->sinks ? d->sinks[h] : -INFINITY;
    double *out = d->want + ((size_t)t * (size_t)s->n_heads + (size_t)h) * (size_t)s->dv, sum = 0;
    for (int j = span[1]; j < span[2]; j++) {
        const float *q = d->q + (t * s->n_heads + h) * s->d,
                    *k = d->k + (int64_t)(cells[j] * s->n_kv + kv) * s->d;
        for (int i = 0; i < s->d; i++) score[j] += (double)q[i] * k[i];
        score[j] *= (float)(1 / sqrt(s->d));
        const int distance = j - (span[2] - 1 - span[3]);
        if (s->alibi != 0) score[j] -= slope_of(s->alibi, s->n_heads, h) * abs(distance);
        if (s->relative) {
            const int at = distance > s->relative    ? s->relative
                           : distance < -s->relative ? -s->relative
                                                     : distance;
            score[j] += d->relative[(s->relative + at) * s->n_heads + h];
        }
        if (s->softcap != 0) score[j] = s->softcap * tanh(score[j] / s->softcap);
        m = fmax(m, score[j]);
    }
    for (int j = span[1]; j < span[2]; j++) sum += exp(score[j] - m);
    if (s->sinks) sum += exp(d->sinks[h] - m);
    for (int j = span[1]; j < span[2]; j++)
        for (int i = 0; i < s->dv; i++)
            out[i] +=
                exp(score[j] - m) / sum * d->v[(int64_t)(cells[j] * s->n_kv + kv) * s->dv + i];
    free(score);
}

static struct data *data_new(const struct shape *s)
{
    struct data *d = calloc(1, sizeof(*d));
    uint64_t seed = 42;
    d->s = s;
    d->n_cells =
        (2 * s->room + ENGINE_KV_Q16_ALIGN - 1) / ENGINE_KV_Q16_ALIGN * ENGINE_KV_Q16_ALIGN;
    size_t n_q = (size_t)s->n_tokens * (size_t)s->n_heads;
    d->q = malloc(n_q * (size_t)s->d * sizeof(float));
    for (size_t i = 0; i < n_q * (size_t)s->d; i++)
        d->q[i] = 4 * (s->sharp != 0 ? s->sharp : 1) * product_random(&seed);
    d->k_cache = random_cache(s->k_type, (int64_t)d->n_cells * s->n_kv, s->d, &d->k, &seed);
    d->v_cache = random_cache(s->v_type, (int64_t)d->n_cells * s->n_kv, s->dv, &d->v, &seed);
    d->span = calloc((size_t)s->n_tokens, 4 * sizeof(int32_t));
    d->cells = calloc((size_t)LISTS * (size_t)s->room, sizeof(int32_t));
    for (int h = 0; h < s->n_heads; h++) d->sinks[h] = 2 * product_random(&seed);
    for (int i = 0; i < RELATIVE_MAX; i++) d->relative[i] = 2 * product_random(&seed);
    fill_lists(d);
    d->want = calloc(n_q * (size_t)s->dv, sizeof(double));
    for (int t = 0; t < s->n_tokens; t++)
        for (int h = 0; h < s->n_heads; h++) reference_row(d, t, h);
    return d;
}

static void data_free(struct data *d)
{
    free(d->q);
    free(d->k);
    free(d->v);
    free(d->k_cache);
    free(d->v_cache);
    free(d->span);
    free(d->cells);
    free(d->want);
    free(d);
}

/* Stores rows [n_cells][heads][size] in an int16-quantized cache [heads][groups][bytes]; the caller
 * frees it. */
static char *codes_new(struct engine *e, enum engine_kv_q16 what, enum quant_id as, int n_cells,
                       int heads, int size, float *rows, struct engine_tensor *cache)
{
    struct base_error err = BASE_ERROR_INIT;
    const int64_t groups = n_cells / ENGINE_KV_Q16_GROUP;
    int64_t ne[] = {engine_kv_coded_elements(NULL, what, size), groups, heads};
    char *data = aligned_alloc(64, (size_t)(ne[0] * ne[1] * ne[2]));
    memset(data, 0, (size_t)(ne[0] * ne[1] * ne[2]));
    int32_t *ids = malloc((size_t)n_cells * sizeof *ids);
    for (int i = 0; i < n_cells; i++) ids[i] = i;
    *cache = product_leaf(QUANT_I8, 3, ne, data);
    struct engine_tensor x = product_leaf(QUANT_F32, 3, (int64_t[]){size, heads, n_cells}, rows);
    struct engine_tensor cells = product_leaf(QUANT_I32, 1, (int64_t[]){n_cells}, ids);
    struct engine_graph *g = engine_graph_new(e, 16, &err);
    engine_output(g,
                  engine_set_kv_q16(g, what, cache, engine_permute(g, &x, 0, 2, 1, 3), &cells, as));
    assert_true(engine_graph_plan(g, true, &err) && engine_graph_run(g, &err));
    engine_graph_free(g);
    free(ids);
    return data;
}

static bool can_be_coded(enum quant_id type)
{
    return type == QUANT_F16 || type == QUANT_BF16;
}

/* Attention of tokens [first, first + n) into out; `coded`: over int16-quantized caches if the
 * types allow it. */
static void attend_over(struct data *d, struct engine *e, bool coded, int first, int n, float *out)
{
    const struct shape *s = d->s;
    struct base_error err = BASE_ERROR_INIT;
    char text[512];
    struct engine_tensor q = product_leaf(QUANT_F32, 3, (int64_t[]){s->d, s->n_heads, n},
                                          d->q + (int64_t)first * s->n_heads * s->d);
    struct engine_tensor k =
        product_leaf(s->k_type, 3, (int64_t[]){s->d, s->n_kv, d->n_cells}, d->k_cache);
    struct engine_tensor v =
        product_leaf(s->v_type, 3, (int64_t[]){s->dv, s->n_kv, d->n_cells}, d->v_cache);
    struct engine_tensor k_codes, v_codes;
    char *k_data = NULL, *v_data = NULL;
    if (coded && can_be_coded(s->k_type))
        k_data =
            codes_new(e, ENGINE_KV_Q16_KEYS, s->k_type, d->n_cells, s->n_kv, s->d, d->k, &k_codes);
    if (coded && can_be_coded(s->v_type))
        v_data = codes_new(e, ENGINE_KV_Q16_VALUES, s->v_type, d->n_cells, s->n_kv, s->dv, d->v,
                           &v_codes);
    struct engine_tensor span = product_leaf(QUANT_I32, 2, (int64_t[]){4, n}, d->span + 4 * first);
    struct engine_tensor cells = product_leaf(QUANT_I32, 2, (int64_t[]){s->room, LISTS}, d->cells);
    struct engine_tensor sinks = product_leaf(QUANT_F32, 1, (int64_t[]){s->n_heads}, d->sinks);
    struct engine_tensor relative =
        product_leaf(QUANT_F32, 2, (int64_t[]){s->n_heads, 2 * s->relative + 1}, d->relative);
    struct engine_attention how = {.scale = (float)(1 / sqrt(s->d)),
                                   .softcap = s->softcap,
                                   .dv = s->dv,
                                   .max_alibi = s->alibi};
    struct engine_graph *g = engine_graph_new(e, 16, &err);
    struct engine_tensor *keys = k_data ? engine_permute(g, &k_codes, 0, 2, 1, 3) : &k;
    struct engine_tensor *values = v_data ? engine_permute(g, &v_codes, 0, 2, 1, 3) : &v;
    struct engine_tensor *result =
        engine_attention(g, &q, keys, values, &span, &cells, s->sinks ? &sinks : NULL,
                         s->relative ? &relative : NULL, &how);
    engine_output(g, result);
    if (!engine_graph_plan(g, true, &err) || !engine_graph_run(g, &err))
        fail_msg("%s: %s", s->name, base_error_format(&err, text, sizeof(text)));
    memcpy(out, result->data, (size_t)(n * s->n_heads * s->dv) * sizeof(float));
    engine_graph_free(g);
    free(k_data);
    free(v_data);
}

static void attend(struct data *d, struct engine *e, int first, int n, float *out)
{
    attend_over(d, e, false, first, n, out);
}

static double nmse(const float *got, const double *want, size_t n)
{
    double error = 0, power = 0;
    for (size_t i = 0; i < n; i++) {
        error += (got[i] - want[i]) * (got[i] - want[i]);
        power += want[i] * want[i];
    }
    return error / power;
}

static bool has_types(const struct shape *s)
{
    return quant_type_by_id(s->k_type)->act != NULL && quant_type_by_id(s->v_type)->act != NULL;
}

static void attention_is_near_the_reference(void **state)
{
    (void)state;
    struct engine *e = product_engine(cpu_level_best(), 2);
    for (size_t i = 0; i < sizeof(shapes) / sizeof(shapes[0]); i++) {
        const struct shape *s = &shapes[i];
        if (!has_types(s) || !support_family_takes(i)) continue;
        struct data *d = data_new(s);
        size_t n = (size_t)s->n_tokens * (size_t)s->n_heads * (size_t)s->dv;
        float *got = malloc(n * sizeof(float));
        attend(d, e, 0, s->n_tokens, got);
        double error = nmse(got, d->want, n);
        if (!(error <= s->bar)) fail_msg("%s: NMSE %g above %g", s->name, error, s->bar);
        free(got);
        data_free(d);
    }
    engine_free(e);
}

static void check_same(const struct shape *s, const float *got, const float *want, size_t n,
                       const char *what, int number)
{
    if (memcmp(got, want, n * sizeof(float)) != 0)
        fail_msg("%s: other bits with %s %d", s->name, what, number);
}

static void any_level_threads_and_split_give_the_same_bits(void **state)
{
    (void)state;
    static const int threads[] = {2, 3, 7}, parts[] = {1, 7, 32};
    for (size_t i = 0; i < sizeof(shapes) / sizeof(shapes[0]); i++) {
        const struct shape *s = &shapes[i];
        if (!has_types(s) || !support_family_takes(i)) continue;
        struct data *d = data_new(s);
        size_t n = (size_t)s->n_tokens * (size_t)s->n_heads * (size_t)s->dv;
        float *want = malloc(n * sizeof(float)), *got = malloc(n * sizeof(float));
        struct engine *scalar = product_engine(CPU_SCALAR, 1);
        attend(d, scalar, 0, s->n_tokens, want);
        engine_free(scalar);
        for (int level = CPU_AVX2; support_level_next(&level); level++) {
            struct engine *e = product_engine(level, 1);
            attend(d, e, 0, s->n_tokens, got);
            check_same(s, got, want, n, "level", level);
            engine_free(e);
        }
        for (int j = 0; j < 3; j++) {
            struct engine *e = product_engine(cpu_level_best(), threads[j]);
            attend(d, e, 0, s->n_tokens, got);
            check_same(s, got, want, n, "threads", threads[j]);
            for (int t = 0; t < s->n_tokens; t += parts[j]) {
                int m = s->n_tokens - t < parts[j] ? s->n_tokens - t : parts[j];
                attend(d, e, t, m, got + (size_t)(t * s->n_heads * s->dv));
            }
            check_same(s, got, want, n, "parts of", parts[j]);
            engine_free(e);
        }
        free(want);
        free(got);
        data_free(d);
    }
}

/* An int16-quantized cache has the same bits as a cache of the type to which its rows were
 * rounded. */
static void int16_caches_equal_caches_of_their_type(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(shapes) / sizeof(shapes[0]); i++) {
        const struct shape *s = &shapes[i];
        if (!has_types(s) || (!can_be_coded(s->k_type) && !can_be_coded(s->v_type)) ||
            !support_family_takes(i))
            continue;
        struct data *d = data_new(s);
        size_t n = (size_t)s->n_tokens * (size_t)s->n_heads * (size_t)s->dv;
        float *want = malloc(n * sizeof(float)), *got = malloc(n * sizeof(float));
        for (int level = CPU_SCALAR; support_level_next(&level); level++) {
            struct engine *e = product_engine(level, 1 + level);
            if (level == 0) attend(d, e, 0, s->n_tokens, want);
            attend_over(d, e, true, 0, s->n_tokens, got);
            check_same(s, got, want, n, "codes at level", level);
            engine_free(e);
        }
        free(want);
        free(got);
        data_free(d);
    }
}

/* Rows whose largest elements are at the boundaries of scales: the same codes at every level, and
 * codes of values at most ENGINE_ATTN_VALUE_MAX. */
static void scales_at_their_borders_are_the_same_at_every_level(void **state)
{
    (void)state;
    static const uint32_t largest[] = {0x3f7fefff, 0x3f7ff000, 0x3f7ff001, 0x3f7fffff,
                                       0x3f800000, 0x7f7fffff, 0x7f800000, 0x21800000,
                                       0x217fffff, 0x0d800000, 0x0d7fffff, 0};
    enum { ROWS = ENGINE_ATTN_GROUP, BYTES = 4 * ROWS + 2 * ROWS * ROWS };
    float x[ROWS][ROWS] = {{0}};
    for (int i = 0; i < ROWS * ROWS; i++) {
        memcpy(&x[i / ROWS][i % ROWS], &largest[i / ROWS % 12], 4);
        x[i / ROWS][i % ROWS] *= i % 3 == 0 ? 1.0f : i % 3 == 1 ? -0.7f : 0.1f;
    }
    for (int level = CPU_SCALAR; support_level_next(&level); level++) {
        const struct engine_attn *attn = engine_attn_table(level);
        _Alignas(64) char want[2][BYTES], got[2][BYTES];
        engine_attn_scalar.keys(ROWS, x[0], ROWS, want[0]);
        engine_attn_scalar.values(ROWS, x[0], ROWS, want[1]);
        attn->keys(ROWS, x[0], ROWS, got[0]);
        attn->values(ROWS, x[0], ROWS, got[1]);
        assert_memory_equal(got, want, sizeof want);
        for (int r = 0; r < ROWS; r++) {
            int16_t codes[ROWS];
            const float scale = attn->row(ROWS, x[r], ENGINE_ATTN_VALUE, codes);
            assert_memory_equal(&scale, engine_attn_scales(got[1]) + r, 4);
            for (int i = 0; i < ROWS; i++) {
                assert_true(abs(codes[i]) <= ENGINE_ATTN_VALUE_MAX);
                assert_int_equal(codes[i], attn_load(attn_bytes(got[1]) + attn_value_at(ROWS, r, i),
                                                     attn_value_low(ROWS)));
            }
        }
    }
}

/* Keys and values that are infinite, NaN, tiny, huge, or all zero: the same bits at every level. */
static void check_wild(enum quant_id type, const uint16_t *wild)
{
    const struct shape s = {"wild", 9, 4, 2, 64, 64, 300, type, type, .past = 280};
    enum { N = 9 * 4 * 64, WILD = 7 };
    struct data *d = data_new(&s);
    static float want[N], got[N];
    for (int i = 0; i < WILD; i++) {
        uint16_t *k = (uint16_t *)(void *)d->k_cache, *v = (uint16_t *)(void *)d->v_cache;
        size_t row = (size_t)(40 * i + 7) * 2 * 64 + (i < 3 ? 0 : 64); /* one head remains finite */
        memcpy(k + row + 5, &wild[i], 2);
        memcpy(v + row + 9, &wild[i], 2);
        memset(v + row + 128, 0, 64 * 2);
    }
    for (int level = CPU_SCALAR; support_level_next(&level); level++) {
        struct engine *e = product_engine(level, 1);
        attend(d, e, 0, s.n_tokens, level == 0 ? want : got);
        int numbers = 0;
        for (int i = 0; level != CPU_SCALAR && i < N; i++) {
            if (isnan(want[i]) != isnan(got[i]) ||
                (!isnan(want[i]) && memcmp(&want[i], &got[i], 4) != 0))
                fail_msg("level %d: %g for %g at %d", level, (double)got[i], (double)want[i], i);
            numbers += !isnan(want[i]);
        }
        if (level != CPU_SCALAR) assert_true(numbers > 0 && numbers < N);
        engine_free(e);
    }
    data_free(d);
}

static void values_that_are_not_finite_give_the_same_bits(void **state)
{
    (void)state;
    check_wild(QUANT_F16, (uint16_t[]){0x7c00, 0xfc00, 0x7e01, 0x0001, 0x8000, 0x7bff, 0xfbff});
    /* 2^23 and 2^80 */
    check_wild(QUANT_BF16, (uint16_t[]){0x7f80, 0xff80, 0x7fc1, 0x0001, 0x8000, 0x4b00, 0x0100});
    check_wild(QUANT_BF16, (uint16_t[]){0x7f80, 0xff80, 0x7fc1, 0x6780, 0x0001, 0x1000, 0x4a00});
}

/* Keys with scores far below the range have no weight, and the result is NaN if all keys are such;
 * scores far above the range result in NaN. */
static void scores_out_of_range_have_no_weight_or_are_nan(void **state)
{
    (void)state;
    static const struct shape s = {"far", 3, 1, 1, 16, 16, 8, QUANT_BF16, QUANT_BF16, .past = 0};
    static const uint16_t keys[] = {0xc980 /* -2^20 */, 0x3e80 /* 1/4 */, 0x4980 /* 2^20 */};
    struct data *d = data_new(&s);
    const int32_t *cells = d->cells + (LISTS - 1) * s.room;
    float got[3 * 16];
    for (int i = 0; i < 3 * 16; i++) d->q[i] = 1.0f; /* a score is 4 times the key's element */
    for (int i = 0; i < 3 * 16; i++)
        memcpy(d->k_cache + 2 * (cells[i / 16] * 16 + i % 16), &keys[i / 16], 2);
    for (int level = CPU_SCALAR; support_level_next(&level); level++) {
        struct engine *e = product_engine(level, 1);
        attend(d, e, 0, 3, got);
        for (int i = 0; i < 16; i++) {
            assert_true(isnan(got[i]) && isnan(got[32 + i]));
            assert_true(fabsf(got[16 + i] - d->v[cells[1] * 16 + i]) < 1e-3f);
        }
        engine_free(e);
    }
    data_free(d);
}

/* Without keys the result is zeros; tables and slots that do not exist result in NaN; ranges that
 * exceed their table are clamped; other sequences are unaffected. */
static void an_empty_range_gives_zeros_and_a_missing_slot_gives_nan(void **state)
{
    (void)state;
    static const struct shape s = {"odd spans", 6,  2,         1,         32,
                                   32,          40, QUANT_F16, QUANT_F16, .past = 20};
    struct data *d = data_new(&s);
    float want[6 * 64], got[6 * 64];
    for (int threads = 1; threads < 4; threads++) {
        struct engine *e = product_engine(cpu_level_best(), threads);
        fill_lists(d);
        d->span[4 * 3 + 2] = s.room;
        attend(d, e, 0, 6, want);
        memcpy(d->span + 4 * 1, (int32_t[]){0, 10, 10, 0}, 16);
        memcpy(d->span + 4 * 2, (int32_t[]){LISTS, 0, 10, 0}, 16);
        memcpy(d->span + 4 * 3, (int32_t[]){LISTS - 1, -5, 1000, 0}, 16);
        memcpy(d->span + 4 * 4, (int32_t[]){0, 0, 25, 0}, 16);
        d->cells[7] = d->n_cells;
        attend(d, e, 0, 6, got);
        d->cells[7] = 7;
        for (int i = 0; i < 64; i++) {
            assert_true(got[64 + i] == 0.0f);
            assert_true(isnan(got[2 * 64 + i]));
            assert_true(isnan(got[4 * 64 + i]));
        }
        assert_memory_equal(got, want, 64 * sizeof(float));
        assert_memory_equal(got + 3 * 64, want + 3 * 64, 64 * sizeof(float));
        assert_memory_equal(got + 5 * 64, want + 5 * 64, 64 * sizeof(float));
        engine_free(e);
    }
    data_free(d);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(attention_is_near_the_reference),
        cmocka_unit_test(any_level_threads_and_split_give_the_same_bits),
        cmocka_unit_test(int16_caches_equal_caches_of_their_type),
        cmocka_unit_test(values_that_are_not_finite_give_the_same_bits),
        cmocka_unit_test(scores_out_of_range_have_no_weight_or_are_nan),
        cmocka_unit_test(scales_at_their_borders_are_the_same_at_every_level),
        cmocka_unit_test(an_empty_range_gives_zeros_and_a_missing_slot_gives_nan),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* engine/cpu/isa/attn_scalar.c: the specification of integer attention. See engine/cpu/isa/attn.h.
 */
#include "engine/cpu/isa/attn_terms.h"

enum { GROUP = ENGINE_ATTN_GROUP, SUB = ENGINE_ATTN_SUB };

float engine_attn_scale(uint32_t largest_bits, enum engine_attn_kind kind, float *factor)
{
    return attn_scale(largest_bits, kind, factor);
}

float engine_attn_exp2(float x)
{
    return attn_exp2(x);
}

static float factor_of(int64_t n, const float *x, enum engine_attn_kind kind, float *scale)
{
    uint32_t largest = 0;
    float factor;
    for (int64_t i = 0; i < n; i++)
        if (attn_magnitude_bits(x[i]) > largest) largest = attn_magnitude_bits(x[i]);
    *scale = attn_scale(largest, kind, &factor);
    return factor;
}

static float row(int64_t d, const float *x, enum engine_attn_kind kind, int16_t *codes)
{
    float scale, factor = factor_of(d, x, kind, &scale);
    for (int64_t i = 0; i < d; i++) codes[i] = attn_code(x[i], factor);
    if (d % 2) codes[d] = 0;
    return scale;
}

void engine_attn_key_put(int64_t d, const int16_t *codes, float scale, char *group, int64_t i)
{
    char *to = attn_bytes(group) + attn_key_at(i, 0);
    engine_attn_scales(group)[i] = scale;
    for (int64_t e = 0; e < d; e += ENGINE_ATTN_UNIT)
        for (int64_t u = 0; u < ENGINE_ATTN_UNIT; u++)
            attn_store(to + attn_key_at(0, e + u), ATTN_KEY_LOW, e + u < d ? codes[e + u] : 0);
}

void engine_attn_value_put(int64_t dv, const int16_t *codes, float scale, char *group, int64_t i)
{
    char *to = attn_bytes(group) + attn_value_at(dv, i, 0);
    engine_attn_scales(group)[i] = scale;
    for (int64_t e = 0; e < dv; e++)
        attn_store(to + e * ATTN_UNIT_BYTES, attn_value_low(dv), codes[e]);
}

/* A unit, and with planes that of the low bytes. */
static void copy_unit(char *to, const char *from)
{
    memcpy(to, from, ATTN_UNIT_BYTES);
    if (ATTN_KEY_LOW) memcpy(to + ATTN_KEY_LOW, from + ATTN_KEY_LOW, ATTN_UNIT_BYTES);
}

void engine_attn_key_copy(int64_t d, const char *source, int64_t from, char *group, int64_t i)
{
    const char *s = attn_bytes(source) + attn_key_at(from, 0);
    char *to = attn_bytes(group) + attn_key_at(i, 0);
    engine_attn_scales(group)[i] = engine_attn_scales(source)[from];
    for (int64_t e = 0; e < d; e += ENGINE_ATTN_UNIT)
        copy_unit(to + attn_key_at(0, e), s + attn_key_at(0, e));
}

void engine_attn_value_copy(int64_t dv, const char *source, int64_t from, char *group, int64_t i)
{
    const int64_t low = attn_value_low(dv);
    const char *s = attn_bytes(source) + attn_value_at(dv, from, 0);
    char *to = attn_bytes(group) + attn_value_at(dv, i, 0);
    engine_attn_scales(group)[i] = engine_attn_scales(source)[from];
    for (int64_t e = 0; e < dv; e++)
        attn_store(to + e * ATTN_UNIT_BYTES, low, attn_load(s + e * ATTN_UNIT_BYTES, low));
}

void engine_attn_keys_gather(int64_t d, const char *cache, int64_t stride, const int32_t *slot,
                             int64_t n, char *group, int64_t at)
{
    for (int64_t i = 0; i < n; i++)
        engine_attn_key_copy(d, cache + slot[i] / GROUP * stride, slot[i] % GROUP, group, at + i);
}

void engine_attn_values_gather(int64_t dv, const char *cache, int64_t stride, const int32_t *slot,
                               int64_t n, char *group, int64_t at)
{
    for (int64_t i = 0; i < n; i++)
        engine_attn_value_copy(dv, cache + slot[i] / GROUP * stride, slot[i] % GROUP, group,
                               at + i);
}

static void keys(int64_t d, const float *x, int64_t pad, char *group)
{
    for (int64_t r = 0; r < GROUP; r++) {
        float factor = factor_of(d, x + r * pad, ENGINE_ATTN_KEY, &engine_attn_scales(group)[r]);
        for (int64_t i = 0; i < engine_attn_key_codes(d) / GROUP; i++)
            attn_store(attn_bytes(group) + attn_key_at(r, i), ATTN_KEY_LOW,
                       i < d ? attn_code(x[r * pad + i], factor) : 0);
    }
}

static void values(int64_t dv, const float *x, int64_t pad, char *group)
{
    for (int64_t r = 0; r < GROUP; r++) {
        float factor = factor_of(dv, x + r * pad, ENGINE_ATTN_VALUE, &engine_attn_scales(group)[r]);
        for (int64_t i = 0; i < dv; i++)
            attn_store(attn_bytes(group) + attn_value_at(dv, r, i), attn_value_low(dv),
                       attn_code(x[r * pad + i], factor));
    }
}

static void offsets(int64_t dv, int64_t n_groups, const char *values_, float *offset,
                    float *inverse)
{
    for (int64_t j = 0; j < n_groups * GROUP; j++) {
        const char *group = values_ + j / GROUP * engine_attn_value_bytes(dv);
        const float scale = engine_attn_scales(group)[j % GROUP];
        offset[j] = attn_offset(scale);
        inverse[j] = attn_inverse(scale);
    }
}

static void scores(int64_t d, int64_t first, int64_t end, const char *keys_, const float *offset,
                   struct engine_attn_tile *tile)
{
    for (int64_t r = 0; r < tile->n_rows; r++)
        for (int64_t j = first * GROUP; j < end * GROUP; j++) {
            const char *group = keys_ + j / GROUP * engine_attn_key_bytes(d);
            const float acc = attn_score(d, group, j % GROUP, tile->query[r]);
            tile->t[r][j] =
                fmaf(acc * engine_attn_scales(group)[j % GROUP], tile->query_scale[r], offset[j]);
        }
}

/* Computes c of sub-blocks [first, end); returns the largest. */
static float max_exponents(const struct engine_attn_tile *tile, int64_t r, int64_t first,
                           int64_t end, float *c)
{
    float max_c = -ENGINE_ATTN_LIMIT;
    for (int64_t s = first; s < end; s++) {
        float max_t = -ENGINE_ATTN_LIMIT;
        for (int64_t j = s * SUB; j < (s + 1) * SUB; j++)
            if (j >= tile->lo[r] && j < tile->hi[r] && tile->t[r][j] > max_t) max_t = tile->t[r][j];
        c[s] = ceilf(max_t);
        max_c = c[s] > max_c ? c[s] : max_c;
    }
    return max_c;
}

static float sum_tree(float *lane)
{
    for (int h = 8; h > 0; h /= 2)
        for (int i = 0; i < h; i++) lane[i] += lane[i + h];
    return lane[0];
}

static void weights(int64_t first, int64_t end, const float *inverse, struct engine_attn_tile *tile)
{
    for (int64_t r = 0; r < tile->n_rows; r++) {
        float c[ENGINE_ATTN_SUBS], total[16] = {0};
        const float max_c = max_exponents(tile, r, first, end, c);
        for (int64_t s = first; s < end; s++) {
            float lane[16] = {0};
            tile->scale[r][s] = attn_exp2(c[s] - max_c);
            if (c[s] > ENGINE_ATTN_LIMIT) c[s] = NAN;
            for (int64_t j = s * SUB; j < (s + 1) * SUB; j++) {
                const bool in_range = j >= tile->lo[r] && j < tile->hi[r];
                const float w = in_range ? attn_weight(tile->t[r][j], c[s]) : 0.0f;
                tile->codes[r][j] = attn_weight_code(w);
                if (in_range) lane[j % 16] = fmaf(w, inverse[j], lane[j % 16]);
            }
            for (int i = 0; i < 16; i++) total[i] = fmaf(lane[i], tile->scale[r][s], total[i]);
        }
        tile->base[r] = max_c - ENGINE_ATTN_WEIGHT_BITS;
        tile->sum[r] = sum_tree(total);
    }
}

static void sums(int64_t dv, int64_t first, int64_t end, const char *values_,
                 const struct engine_attn_tile *tile, float *const *o)
{
    const int64_t bytes = engine_attn_value_bytes(dv);
    for (int64_t r = 0; r < tile->n_rows; r++)
        for (int64_t i = 0; i < dv; i++) {
            for (int64_t s = first; s < end; s++) {
                int32_t sum = 0;
                for (int64_t j = s * SUB; j < (s + 1) * SUB; j++) {
                    const char *v = attn_bytes(values_ + j / GROUP * bytes);
                    sum += attn_load(v + attn_value_at(dv, j % GROUP, i), attn_value_low(dv)) *
                           tile->codes[r][j];
                }
                o[r][i] = fmaf((float)sum, tile->scale[r][s], o[r][i]);
            }
        }
}

const struct engine_attn engine_attn_scalar = {
    .row = row,
    .keys = keys,
    .values = values,
    .offsets = offsets,
    .scores = scores,
    .weights = weights,
    .sums = sums,
    .gather_keys = engine_attn_keys_gather,
    .gather_values = engine_attn_values_gather,
};

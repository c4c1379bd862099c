/* test/test_ops_move.c: views, copies, conversions, rows by index, joining, sorting and rotary
 * positions against a naive reference, for sources in every memory layout. */
#include "test/support.h"
#include "test/support_graph.h"
#include "test/support_row.h"
#include <math.h>
#include <stdio.h>
#include <string.h>

struct arg {
    const int64_t *ne;
    enum quant_id type, to;
    enum support_form form;
    int what;
};

static double in_at(const struct support_rig *rig, int k, const int64_t *i)
{
    return support_at(rig->in[k], i[0], i[1], i[2], i[3]);
}

static const int64_t shapes[][ENGINE_DIMS] = {{1, 1, 1, 1}, {1, 7, 3, 1},    {37, 1, 1, 1},
                                              {6, 5, 4, 3}, {64, 131, 2, 1}, {9001, 1, 1, 1}};
enum { SHAPES = sizeof shapes / sizeof shapes[0] };

/* ---- Views ---- */

enum { VIEW_RESHAPE, VIEW_SPLIT_ROWS, VIEW_PERMUTE, VIEW_SLICE, VIEW_COUNT };

static struct engine_tensor *build_view(struct support_rig *rig, const void *user)
{
    const struct arg *arg = user;
    static const int64_t ne[] = {12, 10, 3, 2};
    struct engine_tensor *a = support_source(rig, QUANT_F32, ne, arg->form);
    rig->in[0] = a;
    switch (arg->what) {
    case VIEW_RESHAPE: /* reshapes a contiguous tensor to any shape */
        return engine_reshape(rig->g, engine_cont(rig->g, a), 3, (int64_t[]){8, 45, 2});
    case VIEW_SPLIT_ROWS: /* rows may have any stride if dimensions 1 and 2 are kept */
        return engine_reshape(rig->g, engine_view(rig->g, a, 2, a->ne, a->nb, 0), 3,
                              (int64_t[]){4, 3, 10});
    case VIEW_PERMUTE:
        return engine_permute(rig->g, a, 2, 0, 3, 1);
    default: {
        int64_t part[] = {12, 4, 2, 2};
        return engine_view(rig->g, a, 4, part, a->nb, 3 * a->nb[1] + a->nb[2]);
    }
    }
}

static double want_view(const struct support_rig *rig, const struct engine_tensor *result,
                        const void *user, const int64_t *i)
{
    const struct engine_tensor *a = rig->in[0];
    switch (((const struct arg *)user)->what) {
    case VIEW_RESHAPE: {
        int64_t n = i[0] + result->ne[0] * (i[1] + result->ne[1] * (i[2] + result->ne[2] * i[3]));
        return support_at(a, n % 12, n / 12 % 10, n / 120 % 3, n / 360);
    }
    case VIEW_SPLIT_ROWS:
        return support_at(a, i[0] + 4 * i[1], i[2], 0, 0);
    case VIEW_PERMUTE:
        return support_at(a, i[2], i[0], i[3], i[1]);
    default:
        return support_at(a, i[0], i[1] + 3, i[2] + 1, i[3]);
    }
}

static void views_have_the_elements_of_their_source(void **state)
{
    (void)state;
    for (int what = 0; what < VIEW_COUNT; what++)
        for (int form = 0; form < SUPPORT_FORM_COUNT; form++) {
            struct arg arg = {.form = (enum support_form)form, .what = what};
            char label[64];
            snprintf(label, sizeof label, "view %d, form %d", what, form);
            support_check_op(label, build_view, want_view, &arg, 0.0);
        }
}

/* ---- Copy and cast ---- */

static struct engine_tensor *build_cast(struct support_rig *rig, const void *user)
{
    const struct arg *arg = user;
    rig->in[0] = support_source(rig, arg->type, arg->ne, arg->form);
    if (arg->what == 0) return engine_cast(rig->g, rig->in[0], arg->to);
    rig->in[1] = support_source(rig, arg->to, arg->ne, SUPPORT_COLS);
    return engine_copy(rig->g, rig->in[0], rig->in[1]);
}

/* The source's row, rounded to the destination's type. */
static double want_cast(const struct support_rig *rig, const struct engine_tensor *result,
                        const void *user, const int64_t *i)
{
    (void)user;
    const struct quant_type *type = result->type;
    int64_t block = type->block_len, first = i[0] / block * block;
    float x[256];
    char row[1024];
    for (int64_t k = 0; k < block; k++)
        x[k] = (float)support_at(rig->in[0], first + k, i[1], i[2], i[3]);
    if (result->type == rig->in[0]->type) return x[i[0] - first];
    support_row_encode(type, block, x, NULL, row);
    type->scalar.decode(0, block, row, x);
    return x[i[0] - first];
}

static void casts_give_what_encoding_gives(void **state)
{
    (void)state;
    static const enum quant_id types[] = {QUANT_F32, QUANT_F16, QUANT_BF16};
    static const int64_t blocks[] = {96, 70, 3, 1};
    for (int n = 0; n < SHAPES * 9 * 2; n++) {
        struct arg arg = {.ne = shapes[n / 18], .what = n % 2};
        arg.type = types[n / 2 % 3];
        arg.to = types[n / 6 % 3];
        arg.form = (enum support_form)(n % 7 % SUPPORT_FORM_COUNT);
        char label[64];
        snprintf(label, sizeof label, "cast %d to %d, shape %d, %d", arg.type, arg.to, n / 18,
                 arg.what);
        support_check_op(label, build_cast, want_cast, &arg, 0.0);
    }
    static const enum quant_id pairs[][2] = {{QUANT_F32, QUANT_Q8_0},
                                             {QUANT_Q8_0, QUANT_F32},
                                             {QUANT_Q8_0, QUANT_Q8_0},
                                             {QUANT_F16, QUANT_Q4_0},
                                             {QUANT_Q4_0, QUANT_BF16}};
    for (int n = 0; n < 10; n++) {
        struct arg arg = {.ne = blocks, .what = n % 2, .type = pairs[n / 2][0]};
        arg.to = pairs[n / 2][1];
        arg.form = n % 3 ? SUPPORT_COLS : SUPPORT_SWAPPED;
        support_check_op("cast of blocks", build_cast, want_cast, &arg, 0.0);
    }
}

/* ---- Rows by index ---- */

static const int32_t some_ids[] = {3, 0, 6, -1, 3, 7, 2, 1, 5, 4, 1000000, 6};
enum { ID_COUNT = 12, TABLE_ROWS = 7 };

static struct engine_tensor *build_get_rows(struct support_rig *rig, const void *user)
{
    const struct arg *arg = user;
    bool many = arg->what == 1;
    int64_t ne[] = {arg->ne[0], TABLE_ROWS, many ? 3 : 1, 1};
    rig->in[0] = support_source(rig, arg->type, ne, arg->form);
    rig->in[1] = support_ids(rig, many ? 4 : ID_COUNT, many ? 3 : 1, some_ids);
    return engine_get_rows(rig->g, rig->in[0], rig->in[1]);
}

static double want_get_rows(const struct support_rig *rig, const struct engine_tensor *result,
                            const void *user, const int64_t *i)
{
    (void)result;
    (void)user;
    int64_t id = (int64_t)support_at(rig->in[1], i[1], i[2], 0, 0);
    return id < 0 || id >= TABLE_ROWS ? NAN : support_at(rig->in[0], i[0], id, i[2], 0);
}

static struct engine_tensor *build_set_rows(struct support_rig *rig, const void *user)
{
    const struct arg *arg = user;
    int64_t table[] = {arg->ne[0], TABLE_ROWS, 1, 1}, rows[] = {arg->ne[0], ID_COUNT, 1, 1};
    rig->in[0] = support_source(rig, QUANT_F32, rows, arg->form);
    rig->in[1] = support_source(rig, arg->type, table, SUPPORT_COLS);
    rig->in[2] = support_ids(rig, ID_COUNT, 1, some_ids);
    return engine_set_rows(rig->g, rig->in[1], rig->in[0], rig->in[2]);
}

/* Every row of the table is set by some id, and the last one wins. */
static double want_set_rows(const struct support_rig *rig, const struct engine_tensor *result,
                            const void *user, const int64_t *i)
{
    (void)user;
    int64_t from = -1;
    for (int64_t t = 0; t < ID_COUNT; t++)
        if (some_ids[t] == i[1]) from = t;
    assert_true(from >= 0);
    const struct quant_type *type = result->type;
    int64_t block = type->block_len, first = i[0] / block * block;
    float x[256];
    char row[1024];
    for (int64_t k = 0; k < block; k++) x[k] = (float)support_at(rig->in[0], first + k, from, 0, 0);
    support_row_encode(type, block, x, NULL, row);
    type->scalar.decode(0, block, row, x);
    return x[i[0] - first];
}

static void rows_are_read_and_written_by_index(void **state)
{
    (void)state;
    static const enum quant_id types[] = {QUANT_F32, QUANT_F16, QUANT_BF16, QUANT_Q8_0, QUANT_Q4_1};
    static const int64_t lengths[][ENGINE_DIMS] = {{32, 1, 1, 1}, {96, 1, 1, 1}, {4128, 1, 1, 1}};
    for (int n = 0; n < 15; n++) {
        struct arg arg = {.ne = lengths[n / 5], .type = types[n % 5], .what = n % 2};
        arg.form = n % 3 == 1 ? SUPPORT_COLS : SUPPORT_PLAIN;
        support_check_op("get_rows", build_get_rows, want_get_rows, &arg, 0.0);
        support_check_op("set_rows", build_set_rows, want_set_rows, &arg, 0.0);
    }
    struct arg odd = {.ne = (const int64_t[]){37, 1, 1, 1}, .form = SUPPORT_TRANSPOSED};
    support_check_op("get_rows, odd", build_get_rows, want_get_rows, &odd, 0.0);
    support_check_op("set_rows, odd", build_set_rows, want_set_rows, &odd, 0.0);
}

/* ---- Concat, repeat ---- */

enum { JOIN_REPEAT = ENGINE_DIMS, JOIN_COUNT };

static struct engine_tensor *build_join(struct support_rig *rig, const void *user)
{
    const struct arg *arg = user;
    int64_t ne[ENGINE_DIMS];
    for (int d = 0; d < ENGINE_DIMS; d++)
        ne[d] = arg->ne[d] * (arg->what == JOIN_REPEAT ? d + 1 : 1);
    rig->in[0] = support_source(rig, arg->type, arg->ne, arg->form);
    if (arg->what < ENGINE_DIMS) ne[arg->what] += 2;
    rig->in[1] = support_source(rig, QUANT_F32, ne, SUPPORT_COLS);
    if (arg->what == JOIN_REPEAT) return engine_repeat(rig->g, rig->in[0], rig->in[1]);
    return engine_concat(rig->g, rig->in[0], rig->in[1], arg->what);
}

static double want_join(const struct support_rig *rig, const struct engine_tensor *result,
                        const void *user, const int64_t *i)
{
    (void)result;
    int what = ((const struct arg *)user)->what;
    const int64_t *ne = rig->in[0]->ne;
    if (what == JOIN_REPEAT) return in_at(rig, 0, i);
    bool inside = i[0] < ne[0] && i[1] < ne[1] && i[2] < ne[2] && i[3] < ne[3];
    if (inside) return in_at(rig, 0, i);
    int64_t at[] = {i[0], i[1], i[2], i[3]};
    at[what] -= ne[what];
    return in_at(rig, 1, at);
}

static void joined_tensors_have_the_elements_of_their_parts(void **state)
{
    (void)state;
    for (int s = 0; s < SHAPES; s++)
        for (int what = 0; what < JOIN_COUNT; what++) {
            struct arg arg = {.ne = shapes[s], .what = what};
            arg.type = what % 2 ? QUANT_F16 : QUANT_F32;
            arg.form = (enum support_form)((s + what) % SUPPORT_FORM_COUNT);
            char label[64];
            snprintf(label, sizeof label, "join %d, shape %d", what, s);
            support_check_op(label, build_join, want_join, &arg, 0.0);
        }
}

/* ---- rope ---- */

enum { ROPE_TOKENS = 40 };
enum { ROPE_FACTORS = 1, ROPE_YARN = 2 };
enum { ROPE_KINDS = 6, ROPE_VARIANTS = ROPE_KINDS * 4 }; /* last two: one row of positions */

static bool rope_is_text(const struct arg *arg)
{
    return arg->what % ROPE_KINDS >= 4;
}

static struct engine_rope rope_of(const struct arg *arg)
{
    const int kind = arg->what % ROPE_KINDS;
    struct engine_rope rope = {.kind = (enum engine_rope_kind)(kind - (kind >= 4 ? 2 : 0)),
                               .n_rot = 48};
    rope.freq_base = 10000.0f;
    rope.freq_scale = 1.0f;
    rope.attn_factor = 1.0f;
    rope.beta_fast = 32.0f;
    rope.beta_slow = 1.0f;
    rope.section[0] = 8;
    rope.section[1] = 10;
    rope.section[2] = 6;
    if (arg->what / ROPE_KINDS & ROPE_YARN) {
        rope.ext_factor = 1.0f;
        rope.freq_scale = 0.25f;
        rope.n_ctx_orig = 1024;
    }
    return rope;
}

static struct engine_tensor *build_rope(struct support_rig *rig, const void *user)
{
    const struct arg *arg = user;
    struct engine_rope rope = rope_of(arg);
    int32_t positions[4 * ROPE_TOKENS];
    int64_t ne[] = {64, 9, ROPE_TOKENS, 1}, pairs[] = {24, 1, 1, 1};
    for (int k = 0; k < 4 * ROPE_TOKENS; k++) positions[k] = k * 37 % 3001;
    rig->in[0] = support_source(rig, QUANT_F32, ne, arg->form);
    const bool four = rope.kind >= ENGINE_ROPE_MULTI && !rope_is_text(arg);
    rig->in[1] = support_ids(rig, ROPE_TOKENS, four ? 4 : 1, positions);
    if (arg->what / ROPE_KINDS & ROPE_FACTORS) {
        rig->in[2] = support_source(rig, QUANT_F32, pairs, SUPPORT_PLAIN);
        float *factor = (float *)(void *)rig->in[2]->data;
        for (int k = 0; k < 24; k++) factor[k] = 1.0f + fabsf(factor[k]);
    }
    struct engine_tensor *once = engine_rope(rig->g, rig->in[0], rig->in[1], rig->in[2], &rope);
    return engine_name(once, "rotated");
}

/* Consecutive sections of 8, 10 and 6 pairs, or interleaved, where pairs 20 and 23 are left
 * over. */
static double want_position(const struct support_rig *rig, const struct engine_rope *rope, int pair,
                            int64_t token, bool text)
{
    static const int interleaved[] = {0, 1, 2, 0, 1, 2, 0, 1, 2, 0, 1, 2,
                                      0, 1, 2, 0, 1, 2, 0, 1, 3, 0, 1, 3};
    int row = rope->kind == ENGINE_ROPE_INTERLEAVED ? interleaved[pair]
              : rope->kind != ENGINE_ROPE_MULTI     ? 0
              : pair < 8                            ? 0
              : pair < 18                           ? 1
                                                    : 2;
    if (text) return row == 3 ? 0.0 : support_at(rig->in[1], token, 0, 0, 0);
    return support_at(rig->in[1], token, row, 0, 0);
}

static double want_angle(const struct support_rig *rig, const struct engine_rope *rope, int pair,
                         int64_t token, bool text)
{
    double angle = want_position(rig, rope, pair, token, text) / pow(rope->freq_base, pair / 24.0);
    if (rig->in[2]) angle /= support_at(rig->in[2], pair, 0, 0, 0);
    if (rope->ext_factor == 0.0f) return angle * rope->freq_scale;
    /* Pairs that rotate more than 32 times in the original context keep their angle; pairs that
     * rotate less than once are scaled; a linear ramp in between. */
    double low = floor(48 * log(1024 / (32 * 2 * M_PI)) / (2 * log(10000.0)));
    double high = ceil(48 * log(1024 / (1 * 2 * M_PI)) / (2 * log(10000.0)));
    double keep = 1.0 - fmin(1.0, fmax(0.0, (pair - low) / (high - low)));
    return angle * (keep + (1.0 - keep) * rope->freq_scale);
}

static double want_rope(const struct support_rig *rig, const struct engine_tensor *result,
                        const void *user, const int64_t *i)
{
    (void)result;
    struct engine_rope rope = rope_of(user);
    bool normal = rope.kind == ENGINE_ROPE_NORMAL;
    if (i[0] >= 48) return in_at(rig, 0, i);
    int64_t pair = normal ? i[0] / 2 : i[0] % 24;
    bool second = normal ? i[0] % 2 : i[0] >= 24;
    double a = support_at(rig->in[0], normal ? 2 * pair : pair, i[1], i[2], 0);
    double b = support_at(rig->in[0], normal ? 2 * pair + 1 : pair + 24, i[1], i[2], 0);
    double angle = want_angle(rig, &rope, (int)pair, i[2], rope_is_text(user));
    double magnitude = rope.ext_factor != 0.0f ? 1.0 + 0.1 * log(4.0) : 1.0;
    return magnitude * (second ? b * cos(angle) + a * sin(angle) : a * cos(angle) - b * sin(angle));
}

static void rotations_are_near_the_reference(void **state)
{
    (void)state;
    for (int what = 0; what < ROPE_VARIANTS; what++)
        for (int form = 0; form < SUPPORT_FORM_COUNT; form++) {
            struct arg arg = {.what = what, .form = (enum support_form)form};
            char label[64];
            snprintf(label, sizeof label, "rope %d, form %d", what, form);
            support_check_op(label, build_rope, want_rope, &arg, 1e-13);
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(views_have_the_elements_of_their_source),
        cmocka_unit_test(casts_give_what_encoding_gives),
        cmocka_unit_test(rows_are_read_and_written_by_index),
        cmocka_unit_test(joined_tensors_have_the_elements_of_their_parts),
        cmocka_unit_test(rotations_are_near_the_reference),
    };
    return cmocka_run_group_tests(tests, NULL, support_engines_free);
}

/* test/test_op_table.c: a case for each row of engine/ops.h: the result is finite, has the same
 * bits with several threads and levels and on a GPU, and the graph runs the row. A new row without
 * a case here does not compile. The expected values are tested in test_ops*.c, test_matmul.c,
 * test_gate.c and test_attention.c. */
#include "engine/graph_internal.h"
#include "engine/graph_recurrent.h"
#include "engine/kv.h"
#include "engine/ops.h"
#include "quant/columns.h"
#include "test/support.h"
#include "test/support_graph.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

static struct engine_tensor *f32(struct support_rig *rig, int64_t ne0, int64_t ne1, int64_t ne2,
                                 int64_t ne3)
{
    return support_source(rig, QUANT_F32, (int64_t[]){ne0, ne1, ne2, ne3}, SUPPORT_PLAIN);
}

static struct engine_tensor *weight(struct support_rig *rig, int64_t rows, int64_t n)
{
    return support_source(rig, QUANT_Q8_0, (int64_t[]){96, rows, n, 1}, SUPPORT_PLAIN);
}

/* Large enough to be divided among workers. */
static struct engine_tensor *rows(struct support_rig *rig)
{
    return f32(rig, 96, 100, 1, 1);
}

static struct engine_tensor *ids(struct support_rig *rig, int64_t n0, int64_t n1)
{
    static const int32_t values[12] = {1, 0, 2, 3, 5, 4, 7, 6, 9, 8, 11, 10};
    return support_ids(rig, n0, n1, values);
}

/* ---- Views and moves ---- */

static struct engine_tensor *case_view(struct support_rig *rig)
{
    return engine_cont(rig->g, engine_cols(rig->g, rows(rig), 3, 40));
}

static struct engine_tensor *case_reshape(struct support_rig *rig)
{
    return engine_scale(rig->g, engine_reshape(rig->g, rows(rig), 2, (int64_t[]){300, 32}), 2, 0);
}

static struct engine_tensor *case_permute(struct support_rig *rig)
{
    return engine_cont(rig->g, engine_permute(rig->g, rows(rig), 1, 0, 2, 3));
}

static struct engine_tensor *case_copy(struct support_rig *rig)
{
    struct engine_tensor *to = engine_scale(rig->g, rows(rig), 2, 0);
    return engine_scale(rig->g, engine_copy(rig->g, rows(rig), to), 1, 0);
}

static struct engine_tensor *case_cast(struct support_rig *rig)
{
    return engine_cast(rig->g, engine_cast(rig->g, rows(rig), QUANT_F16), QUANT_F32);
}

static struct engine_tensor *case_get_rows(struct support_rig *rig)
{
    return engine_get_rows(rig->g, weight(rig, 12, 1), ids(rig, 12, 1));
}

static struct engine_tensor *case_set_rows(struct support_rig *rig)
{
    struct engine_tensor *table = engine_scale(rig->g, f32(rig, 96, 12, 1, 1), 2, 0);
    return engine_scale(
        rig->g, engine_set_rows(rig->g, table, f32(rig, 96, 12, 1, 1), ids(rig, 12, 1)), 1, 0);
}

static struct engine_tensor *case_concat(struct support_rig *rig)
{
    return engine_concat(rig->g, rows(rig), rows(rig), 1);
}

static struct engine_tensor *case_repeat(struct support_rig *rig)
{
    return engine_repeat(rig->g, f32(rig, 48, 1, 1, 1), rows(rig));
}

/* ---- Arithmetic ---- */

#define TWO_OPERANDS(name)                                                                         \
    static struct engine_tensor *case_##name(struct support_rig *rig)                              \
    {                                                                                              \
        return engine_##name(rig->g, rows(rig), rows(rig));                                        \
    }
TWO_OPERANDS(add)
TWO_OPERANDS(sub)
TWO_OPERANDS(mul)
TWO_OPERANDS(div)

static struct engine_tensor *case_scale(struct support_rig *rig)
{
    return engine_scale(rig->g, rows(rig), 1.5f, 0.25f);
}

static struct engine_tensor *case_clamp(struct support_rig *rig)
{
    return engine_clamp(rig->g, rows(rig), -1.0f, 0.5f);
}

static struct engine_tensor *case_softcap(struct support_rig *rig)
{
    return engine_softcap(rig->g, rows(rig), 1.5f);
}

static struct engine_tensor *case_unary(struct support_rig *rig)
{
    return engine_unary(rig->g, rows(rig), ENGINE_GELU);
}

static struct engine_tensor *case_glu(struct support_rig *rig)
{
    return engine_glu(rig->g, rows(rig), rows(rig), ENGINE_SILU);
}

/* ---- Rows ---- */

static struct engine_tensor *case_norm(struct support_rig *rig)
{
    return engine_norm(rig->g, rows(rig), 1e-5f);
}

static struct engine_tensor *case_rms_norm(struct support_rig *rig)
{
    return engine_mul(rig->g, engine_rms_norm(rig->g, rows(rig), 1e-5f), f32(rig, 96, 1, 1, 1));
}

static struct engine_tensor *case_l2_norm(struct support_rig *rig)
{
    return engine_l2_norm(rig->g, rows(rig), 1e-5f);
}

/* Rows that a GPU adds part by part, the last one incomplete. */
static struct engine_tensor *case_long_norm(struct support_rig *rig)
{
    return engine_norm(rig->g, f32(rig, 8300, 2, 1, 1), 1e-5f);
}

static struct engine_tensor *case_long_rms_norm(struct support_rig *rig)
{
    return engine_mul(rig->g, engine_rms_norm(rig->g, f32(rig, 4096, 3, 1, 1), 1e-5f),
                      f32(rig, 4096, 1, 1, 1));
}

static struct engine_tensor *case_sum_rows(struct support_rig *rig)
{
    return engine_sum_rows(rig->g, rows(rig));
}

static struct engine_tensor *case_soft_max(struct support_rig *rig)
{
    return engine_soft_max(rig->g, rows(rig), rows(rig), NULL, 0.5f, 4.0f);
}

static struct engine_tensor *case_rope(struct support_rig *rig)
{
    const struct engine_rope rope = {.kind = ENGINE_ROPE_NEOX,
                                     .n_rot = 64,
                                     .freq_base = 1e4f,
                                     .freq_scale = 1.0f,
                                     .attn_factor = 1.0f};
    return engine_rope(rig->g, f32(rig, 96, 9, 12, 1), ids(rig, 12, 1), NULL, &rope);
}

static struct engine_tensor *case_rope_table(struct support_rig *rig)
{
    return case_rope(rig);
}

/* ---- Experts ---- */

static struct engine_tensor *case_choose_experts(struct support_rig *rig)
{
    return engine_choose_experts(rig->g, rows(rig), f32(rig, 96, 1, 1, 1), 7, 8, 3);
}

static struct engine_tensor *case_expert_weights(struct support_rig *rig)
{
    struct engine_tensor *probs = engine_unary(rig->g, rows(rig), ENGINE_SIGMOID);
    struct engine_tensor *chosen = engine_choose_experts(rig->g, probs, NULL, 19, 1, 1);
    return engine_expert_weights(rig->g, probs, chosen, true, true, 2.5f);
}

static struct engine_tensor *case_expert_sum(struct support_rig *rig)
{
    return engine_expert_sum(rig->g, f32(rig, 96, 4, 100, 1), f32(rig, 4, 100, 1, 1));
}

static struct engine_tensor *case_glu_clamp(struct support_rig *rig)
{
    return engine_glu_clamp(rig->g, rows(rig), rows(rig), ENGINE_GELU_QUICK, 1.5f, 1.0f);
}

/* ---- Products and attention ---- */

static struct engine_tensor *case_mul_mat(struct support_rig *rig)
{
    return engine_mul_mat(rig->g, weight(rig, 50, 1), rows(rig));
}

static struct engine_tensor *case_add_low_rank(struct support_rig *rig)
{
    return engine_add_low_rank(rig->g, rows(rig), f32(rig, 5, 100, 1, 1), f32(rig, 64, 5, 2, 1),
                               f32(rig, 100, 1, 1, 1), 0.5f, NULL);
}

static struct engine_tensor *case_mul_mat_id(struct support_rig *rig)
{
    return engine_mul_mat_id(rig->g, weight(rig, 50, 12), f32(rig, 96, 1, 6, 1), ids(rig, 2, 6));
}

static struct engine_tensor *case_mul_mat_glu(struct support_rig *rig)
{
    struct engine_tensor *both[] = {weight(rig, 48, 1), weight(rig, 48, 1)};
    struct engine_tensor *all = engine_mul_mat_cat(rig->g, both, 2, rows(rig));
    return engine_glu(rig->g, engine_cols(rig->g, all, 0, 48), engine_cols(rig->g, all, 48, 48),
                      ENGINE_SILU);
}

static struct engine_tensor *case_mul_mat_id_glu(struct support_rig *rig)
{
    struct engine_tensor *x = f32(rig, 96, 1, 6, 1), *which = ids(rig, 2, 6);
    return engine_glu(rig->g, engine_mul_mat_id(rig->g, weight(rig, 50, 12), x, which),
                      engine_mul_mat_id(rig->g, weight(rig, 50, 12), x, which), ENGINE_SILU);
}

static struct engine_tensor *case_mul_mat_active(struct support_rig *rig)
{
    struct engine_tensor *gate = engine_unary(rig->g, f32(rig, 50, 100, 1, 1), ENGINE_RELU);
    return engine_mul_mat_active(rig->g, weight(rig, 50, 1), rows(rig), gate);
}

static struct engine_tensor *case_mul_mat_id_active(struct support_rig *rig)
{
    struct engine_tensor *gate = engine_unary(rig->g, f32(rig, 50, 2, 6, 1), ENGINE_RELU);
    return engine_mul_mat_id_active(rig->g, weight(rig, 50, 12), f32(rig, 96, 1, 6, 1),
                                    ids(rig, 2, 6), gate);
}

static struct engine_tensor *case_mul_mat_columns(struct support_rig *rig)
{
    struct engine_tensor *w = weight(rig, 64, 1);
    struct engine_tensor *x = engine_unary(rig->g, f32(rig, 96, 2, 1, 1), ENGINE_RELU_SQR);
    uint64_t bytes;
    assert_true(quant_columns_size(w->type, 96, 64, &bytes));
    struct engine_tensor *columns =
        support_source(rig, QUANT_I8, (int64_t[]){(int64_t)bytes, 1, 1, 1}, SUPPORT_PLAIN);
    assert_true(quant_columns_make(w->type, 96, 64, w->data, w->nb[1], 0, 64, columns->data));
    return engine_mul_mat_columns(rig->g, w, columns, x);
}

static struct engine_tensor *case_mul_mat_id_columns(struct support_rig *rig)
{
    struct engine_tensor *w = weight(rig, 64, 12);
    struct engine_tensor *x = engine_unary(rig->g, f32(rig, 96, 2, 6, 1), ENGINE_RELU_SQR);
    uint64_t bytes;
    assert_true(quant_columns_size(w->type, 96, 64, &bytes));
    struct engine_tensor *columns =
        support_source(rig, QUANT_I8, (int64_t[]){(int64_t)bytes, 12, 1, 1}, SUPPORT_PLAIN);
    for (int64_t e = 0; e < 12; e++)
        assert_true(quant_columns_make(w->type, 96, 64, w->data + e * w->nb[2], w->nb[1], 0, 64,
                                       columns->data + e * columns->nb[1]));
    return engine_mul_mat_id_columns(rig->g, w, columns, x, ids(rig, 2, 6));
}

static struct engine_tensor *case_mul_mat_transposed(struct support_rig *rig)
{
    struct engine_tensor *x = engine_unary(rig->g, f32(rig, 50, 70, 1, 1), ENGINE_RELU);
    return engine_mul_mat_transposed(rig->g, weight(rig, 50, 1), x);
}

enum { HEADS = 3, SLOTS = 64, HEAD = 32 };

/* Three tokens that attend to 1, 2 and 60 of 64 keys. */
static struct engine_tensor *attention(struct support_rig *rig, struct engine_tensor *k,
                                       struct engine_tensor *v)
{
    static const int32_t range[12] = {0, 0, 1, 0, 0, 5, 7, 0, 0, 4, 64, 0};
    int32_t slots[SLOTS];
    for (int i = 0; i < SLOTS; i++) slots[i] = i;
    const struct engine_attention params = {.scale = 0.2f, .dv = HEAD};
    return engine_attention(rig->g, f32(rig, HEAD, HEADS, 3, 1), k, v,
                            support_ids(rig, 4, 3, range), support_ids(rig, SLOTS, 1, slots), NULL,
                            NULL, &params);
}

static struct engine_tensor *case_attention(struct support_rig *rig)
{
    const int64_t ne[] = {HEAD, HEADS, SLOTS, 1};
    return attention(rig, support_source(rig, QUANT_F16, ne, SUPPORT_PLAIN),
                     support_source(rig, QUANT_F16, ne, SUPPORT_PLAIN));
}

/* An int16-quantized cache, an input, filled with 64 keys (or values). */
static struct engine_tensor *codes(struct support_rig *rig, enum engine_kv_q16 what,
                                   struct engine_tensor *slots)
{
    const int64_t ne[] = {engine_kv_coded_elements(NULL, what, HEAD), SLOTS / ENGINE_KV_Q16_GROUP,
                          HEADS};
    struct engine_tensor *cache = engine_input(rig->g, QUANT_I8, 3, ne, "cache");
    struct engine_tensor *all =
        engine_set_kv_q16(rig->g, what, cache, f32(rig, HEAD, SLOTS, HEADS, 1), slots, QUANT_F16);
    return engine_permute(rig->g, all, 0, 2, 1, 3);
}

static struct engine_tensor *case_set_kv_q16(struct support_rig *rig)
{
    int32_t slots[SLOTS];
    for (int i = 0; i < SLOTS; i++) slots[i] = i ^ 5;
    struct engine_tensor *at = support_ids(rig, SLOTS, 1, slots);
    struct engine_tensor *k = codes(rig, ENGINE_KV_Q16_KEYS, at);
    return attention(rig, k, codes(rig, ENGINE_KV_Q16_VALUES, at));
}

/* Of 64 keys, tokens can see 1, 2 and 60; the largest scores of 5 heads choose 8. */
static struct engine_tensor *case_choose_keys(struct support_rig *rig)
{
    static const int32_t range[12] = {0, 0, 1, 0, 0, 5, 7, 0, 0, 4, 64, 0};
    int32_t slots[SLOTS];
    for (int i = 0; i < SLOTS; i++) slots[i] = i;
    struct engine_tensor *tables = support_ids(rig, SLOTS, 1, slots);
    const struct engine_choose_keys how = {.n_used = 8, .block = 1};
    struct engine_tensor *chosen =
        engine_choose_keys(rig->g, f32(rig, HEAD, 5, 3, 1), f32(rig, HEAD, 1, SLOTS, 1),
                           support_ids(rig, 4, 3, range), tables, f32(rig, 5, 3, 1, 1), &how);
    const struct engine_attention params = {.scale = 0.2f, .dv = HEAD};
    const int64_t rows[] = {12, 3};
    chosen = engine_reshape(rig->g, chosen, 2, rows);
    struct engine_tensor *k = f32(rig, HEAD, 1, SLOTS, 1), *v = f32(rig, HEAD, 1, SLOTS, 1);
    return engine_attention(rig->g, f32(rig, HEAD, HEADS, 3, 1), k, v,
                            engine_cols(rig->g, chosen, 0, 4), engine_cols(rig->g, chosen, 4, 8),
                            NULL, NULL, &params);
}

/* Blocks of 4 of 64 positions, of which the tokens end none, the first and the last. */
static struct engine_tensor *case_compress_keys(struct support_rig *rig)
{
    static const int32_t range[12] = {0, 0, 0, 0, 0, 0, 4, 0, 0, 60, 64, 0};
    int32_t slots[SLOTS];
    for (int i = 0; i < SLOTS; i++) slots[i] = i ^ 5;
    const struct engine_compress_keys how = {4, HEAD, 0, 2 * HEAD, true};
    return engine_compress_keys(rig->g, f32(rig, 4 * HEAD, 1, SLOTS, 1),
                                support_ids(rig, 4, 3, range), support_ids(rig, SLOTS, 1, slots),
                                f32(rig, 2 * HEAD, 4, 1, 1), &how);
}

static struct engine_tensor *case_sinkhorn(struct support_rig *rig)
{
    return engine_sinkhorn(rig->g, f32(rig, 4, 4, 33, 1), 5, 1e-3f);
}

/* ---- Ops with a state: spans of 4 and 6 tokens, 3 heads ---- */

enum { D = 16, TOKENS = 10, TABLE_SLOTS = 4 };

static struct engine_tensor *tokens(struct support_rig *rig)
{
    return f32(rig, D, HEADS, TOKENS, 1);
}

static struct engine_tensor *table(struct support_rig *rig)
{
    return f32(rig, D, D, HEADS, TABLE_SLOTS);
}

static struct engine_tensor *spans(struct support_rig *rig)
{
    return support_ids(rig, 4, 2, (const int32_t[]){0, 4, 0, 2, 4, 6, 1, 3});
}

static struct engine_tensor *case_ssm_conv(struct support_rig *rig)
{
    return engine_ssm_conv(rig->g, f32(rig, 33, 3, 1, TABLE_SLOTS), f32(rig, 33, TOKENS, 1, 1),
                           f32(rig, 33, 4, 1, 1), spans(rig), 1);
}

static struct engine_tensor *case_ssm_scan(struct support_rig *rig)
{
    /* An odd number of rows: a warp of a GPU has the last row of a span and the first of the next.
     */
    return engine_ssm_scan(rig->g, f32(rig, D, D - 1, HEADS, TABLE_SLOTS),
                           f32(rig, D - 1, HEADS, TOKENS, 1), f32(rig, HEADS, TOKENS, 1, 1),
                           f32(rig, 1, HEADS, 1, 1), f32(rig, D, 1, TOKENS, 1),
                           f32(rig, D, 1, TOKENS, 1), spans(rig));
}

static struct engine_tensor *case_wkv6(struct support_rig *rig)
{
    return engine_wkv6(rig->g, tokens(rig), tokens(rig), tokens(rig), f32(rig, D, HEADS, 1, 1),
                       tokens(rig), table(rig), spans(rig));
}

static struct engine_tensor *case_wkv7(struct support_rig *rig)
{
    return engine_wkv7(rig->g, tokens(rig), tokens(rig), tokens(rig), tokens(rig), tokens(rig),
                       tokens(rig), table(rig), spans(rig));
}

static struct engine_tensor *case_gated_delta(struct support_rig *rig)
{
    return engine_gated_delta(rig->g, tokens(rig), tokens(rig), tokens(rig),
                              f32(rig, 1, HEADS, TOKENS, 1), f32(rig, 1, HEADS, TOKENS, 1),
                              table(rig), spans(rig));
}

/* ---- All of them ---- */

struct op_case {
    const struct engine_op *op;
    struct engine_tensor *(*build)(struct support_rig *rig);
};

#define ROW(name) {&engine_op_##name, case_##name},
static const struct op_case cases[] = {ENGINE_OPS(ROW) /* and: */
                                       {&engine_op_norm, case_long_norm},
                                       {&engine_op_rms_norm, case_long_rms_norm}};

static bool graph_has(const struct engine_graph *g, const struct engine_op *op)
{
    for (int i = 0; i < g->n_tensors; i++)
        if (g->tensors[i].op == op) return true;
    return false;
}

/* The bytes of the result, *size of them; the caller frees them. place: NULL, or a GPU. */
static char *run_case(const struct op_case *c, struct engine *e, const struct engine_place *place,
                      size_t *size)
{
    struct support_rig rig;
    struct base_error err = BASE_ERROR_INIT;
    support_rig_init(&rig, e, 3);
    if (place) engine_graph_set_place(rig.g, place);
    struct engine_tensor *out = c->build(&rig);
    engine_output(rig.g, out);
    if (place) support_rig_move(&rig, place);
    if (!engine_graph_plan(rig.g, true, &err) || !engine_graph_run(rig.g, &err))
        fail_msg("%s: %s", c->op->name, err.text);
    if (!graph_has(rig.g, c->op)) fail_msg("%s: the case does not run it", c->op->name);
    *size = (size_t)engine_tensor_bytes(out);
    const char *data = engine_output_data(out);
    const float *x = (const float *)(const void *)data;
    for (size_t i = 0; out->type->id == QUANT_F32 && i < *size / sizeof *x; i++)
        if (!isfinite(x[i])) fail_msg("%s: element %zu is %g", c->op->name, i, (double)x[i]);
    char *bytes = malloc(*size);
    assert_non_null(bytes);
    memcpy(bytes, data, *size);
    support_rig_free(&rig);
    return bytes;
}

static void each_op_gives_the_same_bits_on_all_engines(void **unused)
{
    (void)unused;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        size_t size, same;
        char *first = run_case(&cases[i], support_engines()[0], NULL, &size);
        for (int e = 1; e < SUPPORT_ENGINES; e++) {
            char *other = run_case(&cases[i], support_engines()[e], NULL, &same);
            if (same != size || memcmp(first, other, size) != 0)
                fail_msg("%s: engine %d gives other bits", cases[i].op->name, e);
            free(other);
        }
        free(first);
    }
}

/* Cases that a GPU cannot compute, or that read and write leaves here. */
static const char *const not_on_a_gpu[] = {
    "soft_max",           "mul_mat_glu", "mul_mat_id_glu", "mul_mat_columns", "mul_mat_id_columns",
    "mul_mat_transposed", "attention",   "cast",           "get_rows",
};

static bool is_on_a_gpu(const struct engine_op *op)
{
    for (size_t i = 0; i < sizeof not_on_a_gpu / sizeof *not_on_a_gpu; i++)
        if (strcmp(op->name, not_on_a_gpu[i]) == 0) return false;
    return true;
}

static void each_op_of_a_gpu_gives_the_same_bits(void **unused)
{
    (void)unused;
    const struct engine_place *place;
    struct engine *engine = support_gpu(&place);
    if (!engine) skip();
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        size_t size, same;
        if (!is_on_a_gpu(cases[i].op)) continue;
        char *first = run_case(&cases[i], support_engines()[0], NULL, &size);
        char *other = run_case(&cases[i], engine, place, &same);
        if (same != size || memcmp(first, other, size) != 0)
            fail_msg("%s: a GPU gives other bits", cases[i].op->name);
        free(other);
        free(first);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_op_gives_the_same_bits_on_all_engines),
        cmocka_unit_test(each_op_of_a_gpu_gives_the_same_bits),
    };
    return cmocka_run_group_tests(tests, NULL, support_engines_free);
}

/* test/test_make_model.c: properties of the models with random weights that other tests use. */
#include "test/support.h"
#include "test/support_model.h"
#include "test/support_session.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static struct gguf_file *write_and_open(const struct support_model *m)
{
    char path[] = "/tmp/test_make_model_XXXXXX";
    struct base_error err = BASE_ERROR_INIT;
    int fd = mkstemp(path);
    assert_true(fd >= 0);
    close(fd);
    bool done = support_model_write(m, path, &err);
    struct gguf_file *file = done ? gguf_open(path, &err) : NULL;
    unlink(path); /* the mapping remains */
    if (!file) fail_msg("%s: %s", err.item, err.text);
    return file;
}

static bool same_weights(const struct gguf_file *a, const struct gguf_file *b)
{
    bool same = gguf_tensor_count(a) == gguf_tensor_count(b);
    for (uint64_t i = 0; same && i < gguf_tensor_count(a); i++) {
        const struct gguf_tensor *x = gguf_tensor_at(a, i), *y = gguf_tensor_at(b, i);
        same = x->size == y->size && memcmp(x->data, y->data, x->size) == 0;
    }
    return same;
}

static void the_seed_decides_the_weights(void **state)
{
    (void)state;
    size_t i = 0;
    for (; support_arch(i); i++) {
        struct support_model m = support_model_default(support_arch(i));
        struct gguf_file *a = write_and_open(&m), *b = write_and_open(&m);
        m.seed++;
        struct gguf_file *c = write_and_open(&m);
        assert_true(same_weights(a, b));
        assert_false(same_weights(a, c));
        gguf_close(a);
        gguf_close(b);
        gguf_close(c);
    }
    assert_true(i >= 4);
}

/* The weights of a matrix times sqrt(row length) have mean 0 and deviation 1. */
static void weights_have_the_stated_deviation(void **state)
{
    (void)state;
    struct support_model m = support_model_default("llama");
    struct gguf_file *file = write_and_open(&m);
    const struct gguf_tensor *t = gguf_tensor_find(file, "blk.1.ffn_down.weight");
    assert_non_null(t);
    assert_int_equal(t->ne[0], 128);
    assert_int_equal(t->ne[1], 64);
    const float *w = t->data;
    double sum = 0, squares = 0, n = 128 * 64;
    for (int i = 0; i < 128 * 64; i++) {
        double x = w[i] * sqrt(128.0);
        assert_true(fabs(x) < 3.5);
        sum += x;
        squares += x * x;
    }
    assert_true(fabs(sum / n) < 0.05);
    assert_true(fabs(squares / n - 1) < 0.05);
    const float *norm = gguf_tensor_find(file, "output_norm.weight")->data;
    for (int i = 0; i < 64; i++) assert_true(fabsf(norm[i] - 1) < 0.4f);
    gguf_close(file);
}

static void options_decide_the_tensors(void **state)
{
    (void)state;
    struct support_model m = support_model_default("llama");
    m.fused_qkv = m.biases = m.tied = true;
    struct gguf_file *file = write_and_open(&m);
    assert_null(gguf_tensor_find(file, "output.weight"));
    assert_null(gguf_tensor_find(file, "blk.0.attn_q.weight"));
    assert_int_equal(gguf_tensor_find(file, "blk.0.attn_qkv.weight")->ne[1], 64 + 2 * 32);
    assert_int_equal(gguf_tensor_find(file, "blk.1.attn_qkv.bias")->ne[0], 128);
    gguf_close(file);

    m = support_model_default("llama");
    m.n_expert = 4;
    m.n_expert_used = 2;
    m.type = quant_type_by_id(QUANT_Q8_0);
    m.distinct_rows = 8;
    file = write_and_open(&m);
    const struct gguf_tensor *t = gguf_tensor_find(file, "blk.0.ffn_down_exps.weight");
    assert_int_equal(t->ne[2], 4);
    assert_int_equal(t->type->id, QUANT_Q8_0);
    assert_null(gguf_tensor_find(file, "blk.0.ffn_down.weight"));
    gguf_close(file);
}

static void vocabularies_are_complete(void **state)
{
    (void)state;
    struct support_model m = support_model_default("gemma3");
    m.n_vocab = 330;
    for (m.tokens = SUPPORT_TOKENS_BPE; m.tokens <= SUPPORT_TOKENS_SPM; m.tokens++) {
        uint32_t eos = 0;
        struct gguf_file *file = write_and_open(&m);
        const struct gguf_kv *tokens = gguf_kv_find(file, "tokenizer.ggml.tokens");
        assert_int_equal(tokens->count, 330);
        assert_true(gguf_get_u32(file, "tokenizer.ggml.eos_token_id", &eos, NULL));
        struct gguf_str end = gguf_array_str(file, tokens, eos);
        assert_memory_equal(end.data, m.tokens == SUPPORT_TOKENS_BPE ? "<|im_end|>" : "</s>",
                            end.size);
        assert_int_equal(gguf_kv_find(file, "tokenizer.ggml.token_type")->count, 330);
        gguf_close(file);
    }
}

static void impossible_models_are_refused(void **state)
{
    (void)state;
    struct support_model bad[4];
    for (int i = 0; i < 4; i++) bad[i] = support_model_default("llama");
    bad[0].n_vocab = 265; /* no room for the byte vocabulary */
    bad[1].n_head_kv = 3;
    bad[2].type = quant_type_by_id(QUANT_I8); /* has no encoder */
    bad[3].type = NULL;
    for (int i = 0; i < 4; i++) {
        struct base_error err = BASE_ERROR_INIT;
        assert_false(support_model_write(&bad[i], "/tmp/test_make_model_none", &err));
        assert_int_equal(err.code, BASE_USAGE);
        assert_int_not_equal(access("/tmp/test_make_model_none", F_OK), 0);
    }
}

/* A row's fixture with one key replaced; the error names the key and what is wrong. */
static void numbers_that_contradict_each_other_are_refused_by_key(void **state)
{
    static const struct {
        const char *fixture, *old, *new, *item, *text;
    } cases[] = {
        {"qwen4exp", "hyper_connection.count=4", "hyper_connection.count=1",
         "qwen4exp.hyper_connection.count", "1 is not between 2 and 64"},
        {"qwen4exp", "hyper_connection.low_rank=8", "x=1", "qwen4exp.hyper_connection.low_rank",
         "missing"},
        {"qwen4exp", "attention.indexer.top_k=12", "attention.indexer.top_k=3",
         "qwen4exp.attention.indexer.top_k", "3 is not between 4"},
        {"qwen4exp", "ple.layers=2,", "ple.layers=2,3", "qwen4exp.ple.layers", "not one of 4"},
        {"qwen4exp", "ple.layers=2,", "ple.layers=4,", "qwen4exp.ple.layers", "not one of 4"},
        {"qwen4exp", "ple.ngram_size=3", "ple.ngram_size=4", "qwen4exp.ple.layer_multipliers",
         "an array of 4 integers"},
        {"qwen4exp", "ple.head_vocab_sizes=97,101,89,83u", "ple.head_vocab_sizes=97,0,89,83u",
         "qwen4exp.ple.head_vocab_sizes", "item 1 is out of range"},
        {"glm5-next", "attention.indexer.types=0,1,0,0,1,0", "attention.indexer.types=0,0,1,0,1,0",
         "glm5-next.attention.indexer.types", "no layer up to 1 has an indexer"},
        {"glm5-next", "attention.indexer.kpool=4", "attention.indexer.kpool=16",
         "glm5-next.attention.indexer.top_k", "no whole block"},
        {"glm5-next-plain", "kpool_select_tail=true", "kpool_select_tail=false",
         "glm5-next.attention.indexer.kpool_select_tail", "attend to nothing"},
        {"graniteswitch", "adapters.count=4", "adapters.count=5",
         "graniteswitch.adapters.token_ids_activate", "an array of 5 integers"},
        {"hrm_text", "hrm.l_cycles=2", "hrm.l_cycles=3", "hrm_text.block_count",
         "18, not 3 layers 2 times 4"},
        {"kimi-linear", "kda.head_dim=24", "kda.head_dim=24 attention.head_count=0,0,0,0,0",
         "kimi-linear.attention.head_count", "no layer has heads"},
        {"deepseek32", "attention.value_length_mla=24", "x=1",
         "deepseek32.attention.key_length_mla", "attention.value_length_mla"},
        {"hy_v4", "attention.q_lora_rank=40", "x=1", "hy_v4.attention.q_lora_rank",
         "latent queries"},
        {"kimi-k3", "kda.gate_lower_bound=-5.0", "kda.gate_lower_bound=0.5",
         "kimi-k3.kda.gate_lower_bound", "not 0 or less"},
        {"bailingmoe3", "kda.gate_lower_bound=-5.0", "x=1", "bailingmoe3.kda.gate_lower_bound",
         "missing"},
        {"bailingmoe3", "kda.gate_lower_bound=-5.0",
         "kda.gate_lower_bound=-5.0 kda.safe_gate=false", "bailingmoe3.kda.safe_gate", "false"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct base_error err = BASE_ERROR_INIT;
        struct support_model m = support_model_default(cases[i].fixture);
        char keys[2048];
        const char *at = strstr(m.keys, cases[i].old);
        assert_non_null(at);
        snprintf(keys, sizeof keys, "%.*s%s%s", (int)(at - m.keys), m.keys, cases[i].new,
                 at + strlen(cases[i].old));
        m.keys = keys;
        if (support_model_write(&m, "/tmp/test_make_model_none", &err))
            fail_msg("%s with %s", cases[i].fixture, cases[i].new);
        if (strcmp(err.item, cases[i].item) != 0 || !strstr(err.text, cases[i].text))
            fail_msg("%s with %s: %s: %s", cases[i].fixture, cases[i].new, err.item, err.text);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_seed_decides_the_weights),
        cmocka_unit_test(weights_have_the_stated_deviation),
        cmocka_unit_test(options_decide_the_tensors),
        cmocka_unit_test(vocabularies_are_complete),
        cmocka_unit_test(impossible_models_are_refused),
        cmocka_unit_test(numbers_that_contradict_each_other_are_refused_by_key),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

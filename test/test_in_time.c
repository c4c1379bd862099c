/* test/test_in_time.c: a constrained text is completed within its limit of tokens, with a
 * vocabulary that has a token for every byte, and with one that has few tokens. */
#include "test/support.h"

#include "generate/constraint_driver.h"
#include "test/support_gguf.h"
#include "test/support_vocab.h"
#include <string.h>

enum { N = 8, B = 3, C = 4, MOST = 256 };

/* b and c, and no other bytes: a text may need more tokens than its shortest form has bytes. */
static void build_few(struct gguf_writer *w)
{
    static const char *const texts[N] = {"<unk>", "<s>", "</s>", "b", "c", "cc", "x", "y"};
    static const int32_t kinds[N] = {2, 3, 3, 1, 1, 1, 1, 1};
    support_put_text(w, "tokenizer.ggml.model", "llama");
    support_put_tokens(w, texts, kinds, N);
    gguf_writer_bool(w, "tokenizer.ggml.add_space_prefix", false);
}

/* Generates under the expression with the token that has the largest logit among the allowed ones.
 * Returns the number of tokens; *complete: the text is. */
static int generate(const char *regex, const float logits[N], uint64_t limit, int32_t id[MOST],
                    bool *complete)
{
    struct base_error err = BASE_ERROR_INIT;
    struct support_vocab v = support_vocab_make(build_few);
    struct constraint *c = constraint_from_regex(regex, strlen(regex), &err);
    struct sample_options o = sample_options_default();
    o.temp = 0;
    struct sampler *sampler = sample_new(&o, N, MOST, &err);
    assert_true(v.tokenizer && c && sampler);
    struct generate_driver *d = generate_driver_new(c, v.tokenizer, NULL, N, NULL, true, &err);
    if (!d || !generate_driver_begin(d, true, &err)) fail_msg("%s", err.text);
    int n = 0;
    for (uint64_t left = limit; left > 0 && !generate_driver_is_over(d); left--) {
        assert_true(n < MOST);
        if (!generate_driver_choose(d, sampler, logits, left, -1, &id[n++], &err))
            fail_msg("%s", err.text);
    }
    *complete = generate_driver_is_complete(d);
    generate_driver_free(d);
    sample_free(sampler);
    constraint_free(c);
    support_vocab_free(&v);
    return n;
}

static const float prefers_b[N] = {-9, -9, -9, 2, 1, -9, 0, 0};

/* The shortest form of the second branch has letters that no token has: what it needs is known only
 * up to a bound of four tokens for each byte and some. It is begun only if that many are left. */
static void a_branch_begins_only_if_its_shortest_completion_fits(void **state)
{
    static const char regex[] = "c{15}|(a|bbb){20}";
    int32_t id[MOST];
    bool complete;
    (void)state;
    /* 20 times bbb are 60 tokens; the shortest form has 20 bytes. */
    for (uint64_t limit = 15; limit <= 60; limit += 5) {
        const int n = generate(regex, prefers_b, limit, id, &complete);
        assert_true(complete);
        assert_true(n <= 15);
        for (int i = 0; i < n; i++) assert_int_not_equal(id[i], B);
    }
    assert_int_equal(generate(regex, prefers_b, 4 * 22 + 100, id, &complete), 60);
    assert_true(complete);
}

static void the_preferred_token_is_chosen_as_long_as_the_rest_fits(void **state)
{
    int32_t id[MOST];
    bool complete;
    (void)state;
    /* b* and an end of 3 tokens: the last b is the one after which exactly these fit. */
    for (uint64_t limit = 3; limit < 40; limit++) {
        assert_int_equal(generate("b*xyx", prefers_b, limit, id, &complete), limit);
        assert_true(complete);
        for (uint64_t i = 0; i < limit - 3; i++) assert_int_equal(id[i], B);
    }
    generate("b*xyx", prefers_b, 2, id, &complete);
    assert_false(complete);
}

static void of_the_tokens_that_fit_the_preferred_one_is_chosen(void **state)
{
    int32_t id[MOST];
    bool complete;
    (void)state;
    /* b comes before c and c before x; 30 tokens b do not fit. After the first c the rest is
     * determined: four tokens of two. */
    assert_int_equal(generate("b{30}|c{9}|x{3}", prefers_b, 10, id, &complete), 5);
    assert_true(complete);
    assert_int_equal(id[0], C);
    assert_int_equal(generate("b{30}|c{9}|x{3}", prefers_b, 4, id, &complete), 3);
    assert_int_equal(generate("b{30}|c{9}|x{3}", prefers_b, 30, id, &complete), 30);
}

static void a_completion_has_the_fewest_tokens(void **state)
{
    int32_t id[MOST];
    bool complete;
    (void)state;
    /* 16 letters c are 8 tokens of two; with 9 tokens one b fits before them. */
    for (int limit = 8; limit < 11; limit++) {
        generate("b*c{16}", prefers_b, (uint64_t)limit, id, &complete);
        assert_true(complete);
        for (int i = 0; i < limit - 8; i++) assert_int_equal(id[i], B);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_branch_begins_only_if_its_shortest_completion_fits),
        cmocka_unit_test(the_preferred_token_is_chosen_as_long_as_the_rest_fits),
        cmocka_unit_test(of_the_tokens_that_fit_the_preferred_one_is_chosen),
        cmocka_unit_test(a_completion_has_the_fewest_tokens),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

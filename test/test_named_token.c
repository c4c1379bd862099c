/* test/test_named_token.c: tokens that a grammar names: states, masks and ends of all texts of a
 * few tokens, compared with the same grammars with a letter for each name; and texts that a model
 * generates. */
#include "sample/constrain/constrain_stack.h"
#include "test/support.h"
#include "test/support_constraint.h"
#include "test/support_generate.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { N_TOKEN = 6, MARK = 4, END = 5, MOST_NAMES = 4, MOST_TOKENS = 4 };
static const char *const token_text[N_TOKEN] = {"a", "b", "ab", "ba", "", ""};

static void bytes_of_token(void *context, int32_t id, struct base_buffer *out)
{
    (void)context;
    base_buffer_add_text(out, token_text[id]);
}

/* A grammar with names of tokens, and the same with a distinct letter for each name. */
struct named {
    struct constraint *c, *plain;
    int32_t id[64];
    const char *name[MOST_NAMES]; /* of the letters */
    size_t n_name;
    struct constrain_names names;
};

static void read_named(struct named *g, const char *source, const uint64_t *any)
{
    struct base_error err = BASE_ERROR_INIT;
    struct base_buffer plain = BASE_BUFFER_INIT;
    *g = (struct named){.names = {g->id, any, {0, 1}}};
    for (const char *s = source; *s; s++) {
        if (*s != '<' && *s != '!') {
            base_buffer_add(&plain, s, 1);
            continue;
        }
        assert_true(g->n_name < MOST_NAMES);
        base_buffer_add_format(&plain, "\"\\uE00%zu\"", g->n_name);
        g->name[g->n_name++] = s;
        s = strchr(s, '>');
    }
    g->c = constraint_from_grammar(source, strlen(source), &err);
    g->plain = constraint_from_grammar(plain.data, plain.size, &err);
    if (!g->c || !g->plain) fail_msg("%s: %s", source, err.text);
    for (uint32_t i = 0; i < constraint_token_count(g->c); i++) {
        const struct constrain_token *t = constraint_token(g->c, i);
        if (t) g->id[i] = t->text[1] == '[' ? atoi(t->text + 2) : MARK;
    }
    base_buffer_free(&plain);
}

/* Whether the tokens are accepted in any reading, each by its bytes or as the letter of a name. */
static bool naive_accepts(const struct named *g, const int32_t *ids, size_t n, const char *before)
{
    char text[64];
    if (n == 0) return support_accepts(g->plain, before, strlen(before)) == 1;
    snprintf(text, sizeof text, "%s%s", before, token_text[*ids]);
    if (token_text[*ids][0] && naive_accepts(g, ids + 1, n - 1, text)) return true;
    for (size_t i = 0; i < g->n_name; i++) {
        const bool negated = g->name[i][0] == '!';
        const char *name = g->name[i] + negated;
        const int32_t id = name[1] == '[' ? atoi(name + 2) : MARK;
        if ((id == *ids) == negated || *ids == END) continue;
        snprintf(text, sizeof text, "%s\xee\x80%c", before, (char)(0x80 + i));
        if (naive_accepts(g, ids + 1, n - 1, text)) return true;
    }
    return false;
}

/* Checks a completion, token by token if it consists of tokens. */
static void check_end(struct constrain_finisher *f, struct constrain_state *s, const char *source)
{
    struct base_error err = BASE_ERROR_INIT;
    struct base_buffer end = BASE_BUFFER_INIT;
    struct constrain_trial trial;
    bool found, accepted = true;
    uint64_t rest, units = 0;
    assert_true(constrain_finisher_after(f, s, CONSTRAIN_NOTHING, &rest, &err));
    assert_true(constrain_finisher_text(f, s, CONSTRAIN_NOTHING, 100, &end, &found, &err));
    if (!found) fail_msg("%s: no end", source);
    assert_true(constrain_trial_begin(s, &trial));
    for (size_t i = 0; i < end.size && accepted; i++, units++) {
        int32_t id = -1;
        const bool named = (uint8_t)end.data[i] == CONSTRAIN_TOKEN_BYTE;
        if (named) memcpy(&id, end.data + i + 1, sizeof id);
        assert_true(constrain_state_take(s, (struct constrain_next){id, end.data + i, !named},
                                         &accepted, &err));
        if (named) i += sizeof id;
    }
    if (!accepted || !constrain_state_may_end(s) || units != rest)
        fail_msg("%s: an end of %d units, not %d", source, (int)units, (int)rest);
    constrain_trial_end(s, &trial);
    base_buffer_free(&end);
}

/* All texts of a few tokens: the state, the mask and the end of each. */
static void check_texts(const struct named *g, const struct constrain_token_trie *v,
                        const char *source)
{
    struct base_error err = BASE_ERROR_INIT;
    struct constrain_masker *m = constrain_masker_new(g->c, v, 1 << 16, &err);
    struct constrain_finisher *f = constrain_finisher_new(g->c, NULL, &err);
    int accepted = 0;
    for (uint32_t k = 0; k < N_TOKEN * N_TOKEN * N_TOKEN * N_TOKEN; k++) {
        int32_t ids[MOST_TOKENS];
        size_t n = 0;
        bool reads = true;
        struct constrain_state *s = constrain_state_new(g->c, &err);
        constrain_state_name(s, &g->names);
        for (uint32_t left = k; n < MOST_TOKENS && reads; left /= N_TOKEN) {
            const int32_t id = ids[n++] = (int32_t)(left % N_TOKEN);
            const char *text = token_text[id];
            const uint64_t *mask = constrain_masker_mask(m, s, &err);
            const bool allowed = mask[0] >> id & 1;
            check_end(f, s, source);
            assert_true(constrain_state_take(s, (struct constrain_next){id, text, strlen(text)},
                                             &reads, &err));
            if (allowed != reads) fail_msg("%s: mask of token %d", source, (int)id);
            const bool is = reads && constrain_state_may_end(s);
            if (is != naive_accepts(g, ids, n, "")) fail_msg("%s: %zu tokens", source, n);
            accepted += is;
        }
        constrain_state_free(s);
    }
    assert_true(accepted > 0);
    constrain_finisher_free(f);
    constrain_masker_free(m);
}

/* A name reads only its token, as a whole, besides readings by bytes; a negated name reads any
 * token except that one and those that end a text. */
static void named_tokens_act_as_additional_letters(void **state)
{
    static const char *const sources[] = {
        "root ::= \"a\" <X> \"b\"",
        "root ::= (<[0]> | \"ab\")* \"b\"",
        "root ::= !<X>{2} \"a\"?",
        "root ::= s\ns ::= \"a\" s \"b\" | <[2]> !<[1]> | !<[3]> \"ba\"",
        "root ::= [ab]* <X> !<X>* <X>",
        "root ::= (<[2]> | [ab] [ab])+ <[1]>",
        "root ::= x* <[0]>\nx ::= !<[0]> y | \"b\"\ny ::= <X>? \"a\"",
        "root ::= <X> | <X> root \"b\"",
    };
    const uint64_t any = (1 << N_TOKEN) - 1 - (1 << END);
    struct base_error err = BASE_ERROR_INIT;
    (void)state;
    struct constrain_token_trie *v = constrain_token_trie_new(N_TOKEN, bytes_of_token, NULL, &err);
    for (size_t i = 0; i < sizeof sources / sizeof sources[0]; i++) {
        struct named g;
        read_named(&g, sources[i], &any);
        check_texts(&g, v, sources[i]);
        constraint_free(g.c);
        constraint_free(g.plain);
    }
    constrain_token_trie_free(v);
}

/* Deeply nested texts, whose old frames are dropped, with tokens that are read in both ways. */
static void deep_texts_of_named_tokens_are_read(void **state)
{
    enum { DEPTH = 40000 };
    const uint64_t any = 0;
    struct base_error err = BASE_ERROR_INIT;
    struct named g;
    bool accepted = true;
    (void)state;
    read_named(&g, "root ::= (<[0]> | \"a\") root (\"b\" | <[1]>) | <X>", &any);
    struct constrain_state *s = constrain_state_new(g.c, &err);
    constrain_state_name(s, &g.names);
    for (int i = 0; i <= 2 * DEPTH && accepted; i++) {
        const int32_t id = i < DEPTH ? 0 : i == DEPTH ? MARK : 1;
        const char *text = token_text[id];
        assert_false(constrain_state_may_end(s));
        if (!constrain_state_take(s, (struct constrain_next){id, text, strlen(text)}, &accepted,
                                  &err))
            fail_msg("%s", err.text);
    }
    assert_true(accepted && constrain_state_may_end(s) && !constrain_state_may_continue(s));
    constrain_state_free(s);
    constraint_free(g.c);
    constraint_free(g.plain);
}

/* -- generation by a model -- */

struct chosen {
    int32_t id[16];
    size_t n;
};

static bool keep_id(void *user, const struct generate_piece *piece, struct base_error *err)
{
    struct chosen *c = user;
    (void)err;
    if (piece->id >= 0) c->id[c->n++] = piece->id;
    return true;
}

static struct generate_options options(uint64_t max_tokens, const struct constraint *c)
{
    struct generate_options o = {.sample = sample_options_default(),
                                 .max_tokens = max_tokens,
                                 .constraint = c,
                                 .max_thought = -1};
    o.sample.temp = 2.0f;
    return o;
}

/* If a grammar names tokens only these are chosen, also to finish within the limit. */
static void named_tokens_can_be_generated(void **state)
{
    static const char grammar[] = "root ::= <|im_start|> [a-c]{2} !<[4]> <|im_start|> | [0-9]{90}";
    enum { ALL = 5 }; /* tokens of each text */
    struct base_error err = BASE_ERROR_INIT;
    struct support_generate s = {0};
    (void)state;
    support_generate_open(&s, "llama", 1, 64);
    struct constraint *c = constraint_from_grammar(grammar, strlen(grammar), &err);
    struct text_ids mark = TEXT_IDS_INIT, ids = TEXT_IDS_INIT;
    assert_true(text_encode(s.tokenizer, "x", 1, 0, &ids, &err));
    assert_true(text_encode(s.tokenizer, "<|im_start|>", 12, TEXT_PARSE_SPECIAL, &mark, &err));
    for (uint64_t limit = ALL; limit < 8; limit++) {
        const struct generate_options o = options(limit, c);
        struct generate_request *r = support_request(&s, &o, 0);
        for (uint64_t seed = 0; seed < 100; seed++) {
            const struct generate_prompt p = {
                .ids = ids.id, .n = ids.count, .continues = true, .seed = seed};
            struct chosen text = {0};
            struct generate_outcome outcome;
            assert_true(generate_request_begin(r, &p, &err));
            assert_true(generate_run(r, NULL, keep_id, &text, &outcome, &err));
            assert_true(outcome.complete);
            assert_int_equal(text.n, ALL);
            assert_int_equal(text.id[0], mark.id[0]);
            assert_int_equal(text.id[4], mark.id[0]);
            assert_int_not_equal(text.id[3], 4);
        }
        generate_request_free(r);
    }
    constraint_free(c);
    text_ids_free(&mark);
    text_ids_free(&ids);
    support_generate_close(&s);
}

/* Names of tokens that the model lacks or that end a text, and stop strings together with names. */
static void wrong_names_of_tokens_are_errors(void **state)
{
    static const char *const stop[] = {"x"};
    static const struct {
        const char *grammar, *error;
    } wrong[] = {{"root ::= (\"a\"\n  <think>)", "line 2, column 3: <think> is no token"},
                 {"root ::= !<[300]>", "line 1, column 10: <[300]> is no token"},
                 {"root ::= <|im_end|>", "line 1, column 10: <|im_end|> ends a text"},
                 {"root ::= <|im_start|>", "excludes stop texts"}};
    struct support_generate s = {0};
    (void)state;
    support_generate_open(&s, "llama", 1, 64);
    for (size_t i = 0; i < 4; i++) {
        struct base_error err = BASE_ERROR_INIT;
        struct constraint *c =
            constraint_from_grammar(wrong[i].grammar, strlen(wrong[i].grammar), &err);
        struct generate_options o = options(10, c);
        o.stop = stop;
        o.n_stop = i == 3;
        assert_non_null(c);
        assert_null(generate_request_new(&o, &s.parts, 0, &err));
        assert_int_equal(err.code, BASE_USAGE);
        if (!strstr(err.text, wrong[i].error)) fail_msg("%s", err.text);
        constraint_free(c);
    }
    support_generate_close(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(named_tokens_act_as_additional_letters),
        cmocka_unit_test(deep_texts_of_named_tokens_are_read),
        cmocka_unit_test(named_tokens_can_be_generated),
        cmocka_unit_test(wrong_names_of_tokens_are_errors),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* test/test_named_token.c: tokens that a grammar names: states, masks and ends of all texts of a
 * few tokens, against the same grammars with a letter for each name. */
#include "sample/constrain/constraint.h"
#include "test/support.h"
#include "test/support_constraint.h"
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

/* A grammar with names of tokens, and the same with a letter of its own for each name. */
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

/* Whether the tokens are accepted in some reading: each by its bytes or as the letter of a name. */
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

/* A completion, token by token where it says so. */
static void check_end(struct constrain_finisher *f, struct constrain_state *s, const char *source)
{
    struct base_error err = BASE_ERROR_INIT;
    struct base_buffer end = BASE_BUFFER_INIT;
    struct constrain_state *copy = constrain_state_clone(s, &err);
    bool found, accepted = true;
    uint64_t rest, units = 0;
    assert_true(constrain_finisher_after(f, s, -1, "", 0, &rest, &err));
    assert_true(constrain_finisher_text(f, s, -1, "", 0, 100, &end, &found, &err));
    if (!found) fail_msg("%s: no end", source);
    for (size_t i = 0; i < end.size && accepted; i++, units++) {
        int32_t id = -1;
        const bool named = (uint8_t)end.data[i] == CONSTRAIN_TOKEN_BYTE;
        if (named) memcpy(&id, end.data + i + 1, sizeof id);
        assert_true(constrain_state_take(copy, id, end.data + i, !named, &accepted, &err));
        if (named) i += sizeof id;
    }
    if (!accepted || !constrain_state_may_end(copy) || units != rest)
        fail_msg("%s: an end of %d units, not %d", source, (int)units, (int)rest);
    constrain_state_free(copy);
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
            assert_true(constrain_state_take(s, id, text, strlen(text), &reads, &err));
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

/* A name reads its token alone, whole, beside readings by bytes; a negated one any but it and those
 * that end a text. */
static void named_tokens_equal_letters_of_their_own(void **state)
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

/* Deep texts, whose old frames are dropped, with tokens that are read in both ways. */
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
        if (!constrain_state_take(s, id, text, strlen(text), &accepted, &err))
            fail_msg("%s", err.text);
    }
    assert_true(accepted && constrain_state_may_end(s) && !constrain_state_may_continue(s));
    constrain_state_free(s);
    constraint_free(g.c);
    constraint_free(g.plain);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(named_tokens_equal_letters_of_their_own),
        cmocka_unit_test(deep_texts_of_named_tokens_are_read),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

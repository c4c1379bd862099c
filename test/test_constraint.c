/* test/test_constraint.c: grammars, expressions, choices and masks: limits, expressions
 * against PCRE2, grammars against a backtracking matcher, masks against reading every token. */
#include "sample/constrain/constrain_stack.h"
#include "sample/sample.h"
#include "test/support.h"
#include "test/support_constraint.h"
#include "test/support_files.h"
#include "test/support_tokens.h"
#include <pcre2.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* -- large sources and texts: an answer, no crash, no hang -- */

static char *repeat(const char *part, size_t count, size_t *size)
{
    size_t n = strlen(part);
    char *out = malloc(n * count + 1);
    assert_non_null(out);
    for (size_t i = 0; i < count; i++) memcpy(out + i * n, part, n);
    out[n * count] = '\0';
    *size = n * count;
    return out;
}

static void expect_error(enum support_kind kind, const struct base_buffer *source,
                         const char *error)
{
    struct base_error err = BASE_ERROR_INIT;
    struct constraint *c = support_compile(kind, source->data, source->size, &err);
    assert_null(c);
    assert_int_equal(err.code, BASE_USAGE);
    if (!strstr(err.text, error)) fail_msg("'%s' lacks '%s'", err.text, error);
}

static void deep_sources_are_errors(void **state)
{
    (void)state;
    static const struct {
        enum support_kind kind;
        const char *head, *open, *middle, *close, *tail, *error;
    } cases[] = {
        {GRAMMAR, "root ::= ", "(", "\"a\"", ")", "",
         "column 210: groups are nested more than 200"},
        {GRAMMAR, "root ::= \"a\"", "*", "", "", "", "too many repetitions"},
        {REGEX, "", "(", "a", ")", "", "nested more than 200"},
        {REGEX, "", "(?:", "a", ")*", "", "nested more than 200"},
        {SCHEMA, "", "{\"not\":", "{}", "}", "", "nested more than 200"},
        {SCHEMA, "{\"pattern\":\"", "(", "a", ")", "\"}", "nested more than 200"},
        {SCHEMA, "{\"const\":", "[", "", "]", "}", "nested more than 200"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct base_buffer b = BASE_BUFFER_INIT;
        size_t size;
        char *open = repeat(cases[i].open, 60000, &size),
             *close = repeat(cases[i].close, 60000, &size);
        base_buffer_add_format(&b, "%s%s%s%s%s", cases[i].head, open, cases[i].middle, close,
                               cases[i].tail);
        expect_error(cases[i].kind, &b, cases[i].error);
        base_buffer_free(&b);
        free(open), free(close);
    }
}

static void long_chains_of_rules_accept_their_texts(void **state)
{
    (void)state;
    static const char *const ends[] = {"r5000 ::= \"x\"\n", "r5000 ::= \"x\" root?\n"};
    for (int i = 0; i < 2; i++) {
        struct base_error err = BASE_ERROR_INIT;
        struct base_buffer b = BASE_BUFFER_INIT;
        base_buffer_add_text(&b, "root ::= r0\n");
        for (int k = 0; k < 5000; k++) base_buffer_add_format(&b, "r%d ::= r%d\n", k, k + 1);
        base_buffer_add_text(&b, ends[i]);
        struct constraint *c = constraint_from_grammar(b.data, b.size, &err);
        assert_non_null(c);
        assert_int_equal(support_accepts(c, "x", 1), 1);
        assert_int_equal(support_accepts(c, "xxx", 3), i);
        constraint_free(c);
        base_buffer_free(&b);
    }
}

static void deep_texts_are_accepted_or_refused(void **state)
{
    (void)state;
    static const struct {
        enum support_kind kind;
        const char *source, *open, *close;
    } cases[] = {{GRAMMAR, "root ::= (\"(\" root \")\")?", "(", ")"},
                 {GRAMMAR, "root ::= \"(\" root \")\" root | \"\"", "(", ")"},
                 {SCHEMA, "{\"items\":{\"$ref\":\"#\"}}", "[", "]"}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct base_error err = BASE_ERROR_INIT;
        size_t n;
        char *open = repeat(cases[i].open, 60000, &n), *close = repeat(cases[i].close, 60000, &n);
        char *text = malloc(2 * n + 1);
        struct constraint *c =
            support_compile(cases[i].kind, cases[i].source, strlen(cases[i].source), &err);
        assert_non_null(c);
        snprintf(text, 2 * n + 1, "%s%s", open, close);
        assert_int_equal(support_accepts(c, text, 2 * n), 1);
        assert_int_equal(support_accepts(c, text, 2 * n - 1), 0);
        constraint_free(c);
        free(open), free(close), free(text);
        /* Deeper than the limit is an error, not a crash. */
        open = repeat(cases[i].open, CONSTRAIN_MAX_FRAMES + 10, &n);
        c = support_compile(cases[i].kind, cases[i].source, strlen(cases[i].source), &err);
        assert_int_equal(support_accepts(c, open, n), -1);
        constraint_free(c);
        free(open);
    }
}

/* Texts with many simultaneous readings reach a limit or have an answer. */
static void ambiguous_grammars_are_answered_or_reach_a_limit(void **state)
{
    (void)state;
    static const char chained[] = "root ::= \"a\"? root2\nroot2 ::= \"a\"? root3 | "
                                  "\"a\" root\nroot3 ::= \"a\" root2 | \"\"";
    static const char *const grammars[] = {
        "root ::= \"a\" root \"a\" | \"a\"", "root ::= (s)* \ns ::= \"a\" s? | \"a\" s \"a\"",
        "root ::= \"x\" | \"a\" root root | \"a\" root", chained};
    size_t size;
    char *text = repeat("a", 3000, &size);
    for (size_t i = 0; i < sizeof grammars / sizeof grammars[0]; i++) {
        struct base_error err = BASE_ERROR_INIT;
        struct constraint *c = constraint_from_grammar(grammars[i], strlen(grammars[i]), &err);
        if (!c) fail_msg("%s: %s", grammars[i], err.text);
        support_accepts(c, text, size);
        constraint_free(c);
    }
    free(text);
}

/* Texts with NUL, and with bytes that are not UTF-8. */
static void bytes_that_are_no_text_are_accepted_or_refused(void **state)
{
    (void)state;
    static const struct {
        enum support_kind kind;
        const char *source;
        size_t size;
        const char *error; /* NULL: the source accepts a, NUL, b */
    } cases[] = {
        {GRAMMAR, "root ::= \"a\0b\"", 14, NULL},
        {GRAMMAR, "root ::= \"a\"\0", 13, "line 1, column 13: "},
        {GRAMMAR, "root ::= \"\xff\"", 12, "line 1, column 11: invalid UTF-8"},
        {GRAMMAR, "\xef\xbb\xbfroot ::= \"a\"", 15, "line 1, column 1: expected a rule name"},
        {REGEX, "a\0b", 3, NULL},
        {REGEX, "a\xc0\x80", 3, "line 1, column 2: invalid UTF-8"},
        {SCHEMA, "{\"const\":\"\xed\xa0\x80\"}", 15, "line 1, column 11: invalid UTF-8"},
        {SCHEMA, "{}\0", 3, "line 1, column 3: something follows"}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct base_error err = BASE_ERROR_INIT;
        struct constraint *c = support_compile(cases[i].kind, cases[i].source, cases[i].size, &err);
        if (cases[i].error && (c || !strstr(err.text, cases[i].error)))
            fail_msg("case %zu: '%s' lacks '%s'", i, err.text, cases[i].error);
        if (!cases[i].error) assert_int_equal(support_accepts(c, "a\0b", 3), 1);
        if (!cases[i].error) assert_int_equal(support_accepts(c, "a", 1), 0);
        constraint_free(c);
    }
}

/* Many words compile to one automaton; many other values, or too many choices at once, are an
 * error. */
static void large_lists_become_one_automaton_or_are_refused(void **state)
{
    (void)state;
    struct base_error err = BASE_ERROR_INIT;
    struct base_buffer words = BASE_BUFFER_INIT, numbers = BASE_BUFFER_INIT, all = BASE_BUFFER_INIT;
    base_buffer_add_text(&words, "{\"enum\":[\"\"");
    base_buffer_add_text(&numbers, "{\"enum\":[0");
    base_buffer_add_text(&all, "{\"allOf\":[true");
    for (int i = 1; i < 3000; i++) base_buffer_add_format(&words, ",\"v%d\"", i);
    for (int i = 1; i < 3000; i++) base_buffer_add_format(&numbers, ",%d", i);
    for (int i = 1; i < 30; i++)
        base_buffer_add_format(
            &all, ",{\"anyOf\":[{\"required\":[\"a%d\"]},{\"required\":[\"b%d\"]}]}", i, i);
    base_buffer_add_text(&words, "]}");
    base_buffer_add_text(&numbers, "]}");
    base_buffer_add_text(&all, "]}");
    struct constraint *c = support_compile(SCHEMA, words.data, words.size, &err);
    assert_non_null(c);
    assert_int_equal(support_accepts(c, "\"v2999\"", 7), 1);
    assert_int_equal(support_accepts(c, "\"v3000\"", 7), 0);
    constraint_free(c);
    expect_error(SCHEMA, &numbers, "line 1, column ");
    expect_error(SCHEMA, &all, "leads to more than 2000 combinations");
    base_buffer_free(&words), base_buffer_free(&numbers), base_buffer_free(&all);
}

/* -- choices -- */

static void choices_accept_exactly_their_texts(void **state)
{
    (void)state;
    static const char *const words[] = {"yes", "no", "yesterday", "\xff"};
    struct base_error err = BASE_ERROR_INIT;
    struct constraint *c = constraint_from_choices(words, 4, &err);
    assert_non_null(c);
    for (int i = 0; i < 4; i++) assert_int_equal(support_accepts(c, words[i], strlen(words[i])), 1);
    assert_int_equal(support_accepts(c, "yest", 4), 0);
    assert_int_equal(support_accepts(c, "", 0), 0);
    constraint_free(c);
    assert_null(constraint_from_choices(words, 0, &err));
    assert_int_equal(err.code, BASE_USAGE);
}

/* -- random expressions against PCRE2 -- */

static uint32_t pick(struct sample_random *r, uint32_t n)
{
    return sample_random_u32(r) % n;
}

static void random_regex(struct sample_random *r, struct base_buffer *b, int depth)
{
    static const char *const atoms[] = {"a",   "b",   "c", ".",        "[ab]",   "[^a]",
                                        "\\d", "\\w", "1", "\xc3\xa9", "[a-c1]", "\\x61"};
    static const char *const repeats[] = {"*", "+", "?", "*?", "{2}", "{1,2}", "{1,}", "+?"};
    for (uint32_t i = 0, n = pick(r, 4); i < n; i++) {
        if (i && pick(r, 4) == 0) base_buffer_add_text(b, "|");
        if (depth && pick(r, 3) == 0) {
            base_buffer_add_text(b, pick(r, 2) ? "(" : "(?:");
            random_regex(r, b, depth - 1);
            base_buffer_add_text(b, ")");
        } else if (pick(r, 12) == 0) {
            base_buffer_add_text(b, pick(r, 2) ? "^" : "$");
            continue;
        } else {
            base_buffer_add_text(b, atoms[pick(r, 12)]);
        }
        if (pick(r, 3) == 0) base_buffer_add_text(b, repeats[pick(r, 8)]);
    }
}

static void regular_expressions_equal_pcre2(void **state)
{
    (void)state;
    static const char *const letters[] = {"a", "b", "c", "1", "\xc3\xa9"};
    struct sample_random r;
    int compiled = 0, matched = 0;
    sample_random_seed(&r, 7);
    for (int round = 0; round < (support_quick() ? 200 : 1500); round++) {
        struct base_buffer re = BASE_BUFFER_INIT, whole = BASE_BUFFER_INIT;
        struct base_error err = BASE_ERROR_INIT;
        int code;
        PCRE2_SIZE at;
        if (pick(&r, 3) == 0) { /* look-ahead at the beginning */
            base_buffer_add_text(&re, pick(&r, 2) ? "(?=" : "^(?!");
            random_regex(&r, &re, 2);
            base_buffer_add_text(&re, pick(&r, 2) ? ")(?:" : ")(?!b.)(?:");
            random_regex(&r, &re, 3);
            base_buffer_add_text(&re, ")");
        } else {
            random_regex(&r, &re, 3);
        }
        base_buffer_add(&re, "", 0);
        base_buffer_add_format(&whole, "\\A(?:%s)\\z", re.size ? re.data : "");
        pcre2_code *p = pcre2_compile((PCRE2_SPTR)whole.data, whole.size,
                                      PCRE2_UTF | PCRE2_DOLLAR_ENDONLY, &code, &at, NULL);
        assert_non_null(p);
        pcre2_match_data *match = pcre2_match_data_create_from_pattern(p, NULL);
        struct constraint *c = constraint_from_regex(re.data, re.size, &err);
        if (!c) assert_non_null(strstr(err.text, "matches nothing"));
        compiled += c != NULL;
        for (int k = 0; k < 30; k++) {
            char text[64] = "";
            for (uint32_t i = pick(&r, 7); i > 0; i--) strcat(text, letters[pick(&r, 5)]);
            int expected = pcre2_match(p, (PCRE2_SPTR)text, strlen(text), 0, 0, match, NULL) > 0;
            int got = c ? support_accepts(c, text, strlen(text)) : 0;
            if (got != expected)
                fail_msg("/%s/ on '%s': %d, PCRE2 says %d", re.data, text, got, expected);
            matched += got;
        }
        constraint_free(c);
        pcre2_match_data_free(match);
        pcre2_code_free(p);
        base_buffer_free(&re);
        base_buffer_free(&whole);
    }
    assert_true(compiled > 100 && matched > 500);
}

/* -- random grammars against backtracking -- */

enum { RULES = 3, ALTERNATIVES = 3, SYMBOLS = 3 };
struct tiny { /* symbols: 'a', 'b', or a rule's number; each with a repetition or 0 */
    int n_alternative[RULES], n_symbol[RULES][ALTERNATIVES];
    char symbol[RULES][ALTERNATIVES][SYMBOLS], repeat[RULES][ALTERNATIVES][SYMBOLS];
};

static void random_grammar(struct sample_random *r, struct tiny *g)
{
    for (int i = 0; i < RULES; i++) {
        g->n_alternative[i] = 1 + (int)pick(r, ALTERNATIVES);
        for (int a = 0; a < g->n_alternative[i]; a++) {
            g->n_symbol[i][a] = (int)pick(r, SYMBOLS + 1);
            for (int s = 0; s < g->n_symbol[i][a]; s++) {
                uint32_t v = pick(r, 7);
                g->symbol[i][a][s] = v < 4 ? "abab"[v] : (char)(v - 4);
                g->repeat[i][a][s] = "\0\0\0*+?"[pick(r, 6)];
            }
        }
    }
}

static void print_grammar(const struct tiny *g, struct base_buffer *b)
{
    static const char *const names[] = {"root", "s", "t"};
    for (int i = 0; i < RULES; i++) {
        base_buffer_add_format(b, "%s ::= ", names[i]);
        for (int a = 0; a < g->n_alternative[i]; a++) {
            base_buffer_add_text(b, a ? " | \"\" " : "\"\" ");
            for (int s = 0; s < g->n_symbol[i][a]; s++) {
                char c = g->symbol[i][a][s], repeat[2] = {g->repeat[i][a][s], 0};
                if (c >= 'a')
                    base_buffer_add_format(b, "\"%c\"%s ", c, repeat);
                else
                    base_buffer_add_format(b, "%s%s ", names[(int)c], repeat);
            }
        }
        base_buffer_add_text(b, "\n");
    }
}

/* Bit e of the result: text[from..e) derives from the rule. A recursion of a rule at the same
 * position adds nothing; repetition until nothing changes computes the least fixed point. */
struct table {
    const struct tiny *g;
    const char *text;
    int size;
    uint32_t ends[RULES][16];
};

static uint32_t symbol_ends(const struct table *t, char symbol, int from)
{
    if (symbol < 'a') return t->ends[(int)symbol][from];
    return from < t->size && t->text[from] == symbol ? 2u << from : 0;
}

static uint32_t after(const struct table *t, uint32_t starts, char symbol, char repeat)
{
    uint32_t ends = repeat == '*' || repeat == '?' ? starts : 0, from = starts;
    for (int round = 0; round < 20; round++) {
        uint32_t next = 0;
        for (int i = 0; i <= t->size; i++)
            if (from >> i & 1) next |= symbol_ends(t, symbol, i);
        if (!(next & ~ends)) break;
        ends |= next;
        from = next;
        if (repeat != '*' && repeat != '+') break;
    }
    return ends;
}

static bool derives(const struct tiny *g, const char *text)
{
    struct table t = {.g = g, .text = text, .size = (int)strlen(text)};
    bool changed = true;
    while (changed) {
        changed = false;
        for (int i = 0; i < RULES; i++)
            for (int from = 0; from <= t.size; from++) {
                uint32_t all = t.ends[i][from];
                for (int a = 0; a < g->n_alternative[i]; a++) {
                    uint32_t at = 1u << from;
                    for (int s = 0; s < g->n_symbol[i][a]; s++)
                        at = after(&t, at, g->symbol[i][a][s], g->repeat[i][a][s]);
                    all |= at;
                }
                changed |= all != t.ends[i][from];
                t.ends[i][from] = all;
            }
    }
    return t.ends[0][0] >> t.size & 1;
}

static void grammars_equal_a_naive_recognizer(void **state)
{
    (void)state;
    struct sample_random r;
    int compiled = 0, matched = 0, checked = 0, limited = 0;
    sample_random_seed(&r, 11);
    for (int round = 0; round < (support_quick() ? 200 : 3000); round++) {
        struct base_error err = BASE_ERROR_INIT;
        struct base_buffer b = BASE_BUFFER_INIT;
        struct tiny g;
        random_grammar(&r, &g);
        print_grammar(&g, &b);
        struct constraint *c = constraint_from_grammar(b.data, b.size, &err);
        if (!c && !strstr(err.text, "left-recursive") && !strstr(err.text, "never end"))
            fail_msg("%s: %s", b.data, err.text);
        compiled += c != NULL;
        for (int k = 0; c && k < 40; k++) {
            char text[9] = "";
            for (uint32_t i = 0, n = pick(&r, 8); i < n; i++) text[i] = "ab"[pick(&r, 2)];
            int got = support_accepts(c, text, strlen(text));
            checked++;
            if (got < 0) { /* so ambiguous that a limit was reached: an error, not an answer */
                limited++;
                continue;
            }
            if (got != derives(&g, text)) fail_msg("%s on '%s': %d", b.data, text, got);
            matched += got;
        }
        constraint_free(c);
        base_buffer_free(&b);
    }
    print_message("%d grammars, %d texts, %d at a limit\n", compiled, checked, limited);
    assert_true(compiled > 50 && matched > 500 && limited * 100 < checked);
}

/* -- masks -- */

/* Frees `c`. */
static void check_masks(struct constraint *c, const char *source, struct support_tokens *words,
                        struct constrain_token_trie *v, struct sample_random *r,
                        struct base_error *err)
{
    struct constrain_masker *m = constrain_masker_new(c, v, 1 << 16, err); /* small: entries move */
    struct constrain_state *s = constrain_state_new(c, err);
    for (int step = 0; step < (support_quick() ? 15 : 120); step++) {
        uint64_t mask[64];
        const uint64_t *made = constrain_masker_mask(m, s, err);
        uint32_t chosen = 0, seen = 0;
        assert_non_null(made);
        memcpy(mask, made, (words->count + 63) / 64 * 8);
        for (uint32_t id = 0; id < words->count; id++) {
            size_t used, size = words->at[id + 1] - words->at[id];
            struct constrain_trial trial;
            assert_true(constrain_trial_begin(s, &trial));
            assert_true(
                constrain_state_feed(s, words->text.data + words->at[id], size, &used, err));
            constrain_trial_end(s, &trial);
            if ((used == size) != (mask[id >> 6] >> (id & 63) & 1))
                fail_msg("%s: token '%.*s' at step %d", source, (int)size,
                         words->text.data + words->at[id], step);
            if (used == size && pick(r, ++seen) == 0) chosen = id;
        }
        if (!seen || step % 30 == 29) { /* begin again */
            constrain_state_free(s);
            s = constrain_state_new(c, err);
            continue;
        }
        size_t used, size = words->at[chosen + 1] - words->at[chosen];
        assert_true(
            constrain_state_feed(s, words->text.data + words->at[chosen], size, &used, err));
    }
    constrain_state_free(s);
    constrain_masker_free(m);
    constraint_free(c);
}

/* JSON values between texts, which tokens may span. */
static struct constraint *compile_parts(struct base_error *err)
{
    static const char schemas[] =
        "{\"anyOf\":[{\"$id\":\"urn:a\",\"$defs\":{\"n\":{\"type\":\"integer\",\"maximum\":40}},"
        "\"type\":\"array\",\"items\":{\"$ref\":\"#/$defs/n\"}},"
        "{\"$id\":\"urn:b\",\"$defs\":{\"n\":{\"maxLength\":9,\"type\":\"string\"}},"
        "\"$ref\":\"#/$defs/n\"}]}";
    static const struct constrain_around around[] = {{"an [", "] an\"}"}, {"anve", ""}};
    const struct constrain_schema_options o = {.generate = true};
    struct constraint *c = constraint_from_schemas(schemas, sizeof schemas - 1, around, 2, &o, err);
    if (!c) fail_msg("%s", err->text);
    return c;
}

static void white_space_around_values_is_accepted(void **state)
{
    (void)state;
    struct base_error err = BASE_ERROR_INIT;
    struct constraint *c = compile_parts(&err);
    assert_int_equal(support_accepts(c, "an [[1, 40]] an\"}", 17), 1);
    assert_int_equal(support_accepts(c, "an [[1, 41]] an\"}", 17), 0);
    assert_int_equal(support_accepts(c, "an [[]] an\"}", 12), 1);
    assert_int_equal(support_accepts(c, "an [[]] an\"", 11), 0);
    assert_int_equal(support_accepts(c, "an [\"a\"] an\"}", 14), 0);
    assert_int_equal(support_accepts(c, "anve\"abc\"", 9), 1);
    assert_int_equal(support_accepts(c, "anve7", 5), 0);
    struct constrain_state *s = constrain_state_new(c, &err);
    struct constrain_finisher *f = constrain_finisher_new(c, NULL, &err);
    struct base_buffer end = BASE_BUFFER_INIT;
    bool found;
    assert_true(constrain_finisher_text(f, s, (struct constrain_next){-1, "an ", 3}, 100, &end,
                                        &found, &err));
    assert_true(found);
    assert_int_equal(end.size, strlen("[[]] an\"}"));
    assert_memory_equal(end.data, "[[]] an\"}", end.size);
    base_buffer_free(&end);
    constrain_finisher_free(f);
    constrain_state_free(s);
    constraint_free(c);
}

static void masks_allow_the_tokens_that_can_be_read(void **state)
{
    (void)state;
    static const struct {
        enum support_kind kind;
        const char *source;
    } cases[] = {
        {SCHEMA, "{\"properties\":{\"in\":{\"type\":\"integer\",\"maximum\":40},\"an\":{"
                 "\"maxLength\":5}}}"},
        {SCHEMA,
         "{\"properties\":{\"in\":{\"enum\":[\"an\",\"ve\"]},\"re\":{}},\"required\":[\"re\"],"
         "\"additionalProperties\":false,\"type\":\"object\"}"},
        {SCHEMA,
         "{\"type\":\"array\",\"items\":{\"anyOf\":[{\"pattern\":\"^a\",\"type\":\"string\"},"
         "{\"type\":\"number\"},{\"type\":\"object\",\"maxProperties\":2}]}}"},
        {GRAMMAR, "root ::= \"[\" (root (\",\" root)*)? \"]\" | [a-z]+ | \"\\\"\" [^\"]* \"\\\"\""},
        {REGEX, "([a-z]+ )*\\d{2,5}"},
        {GRAMMAR,
         "root ::= (expr \"=\" ws term \"\\n\")+\nexpr ::= term ([-+*/] term)*\nterm ::= ident | "
         "[0-9]+ ws | \"(\" ws expr \")\" ws\nident ::= [a-z] [a-z0-9_]* ws\nws ::= [ ]*"},
        {REGEX, ".*"},
        {REGEX, "[^x]{0,9}"},
        {REGEX, "(\\w\\w)*"},
        {SCHEMA, "{\"type\":\"string\",\"minLength\":3,\"maxLength\":30}"},
        {SCHEMA, "{\"items\":{\"type\":\"string\",\"minLength\":2,\"maxLength\":5}}"},
        {SCHEMA, "{\"minLength\":7,\"type\":\"string\"}"},
        {SCHEMA, "{\"uniqueItems\":true,\"items\":{\"enum\":[1,12,\"a\",\"an\",null]}}"},
        {SCHEMA, "{\"type\":\"array\",\"items\":{\"type\":\"string\",\"pattern\":\"^(..)*$\"}}"},
        {SCHEMA, "{\"type\":\"object\",\"maxProperties\":2,\"required\":[\"re\"]}"},
        {SCHEMA, "{\"type\":\"object\",\"propertyNames\":{\"maxLength\":4},\"patternProperties\":{"
                 "\"^a\":{\"type\":\"number\"},\"n$\":false}}"},
        {GRAMMAR, "root ::= \"a\" root \"a\" | \"e\" root \"e\" | [b-df-hj-np-tv-z ] root [b-z ] | "
                  "\"i\" root \"ou\" | [0-9] root? | \"o\" root root | \"u\" root? \" \" | \".\""},
        {GRAMMAR, "root ::= (s \"\\n\")+\ns ::= [^\\n\"]* | \"(\" s \")\" s"},
    };
    struct sample_random r;
    struct support_tokens words;
    struct base_error err = BASE_ERROR_INIT;
    support_tokens_make(&words, 2500, 3);
    struct constrain_token_trie *v =
        constrain_token_trie_new(words.count, support_tokens_bytes, &words, &err);
    sample_random_seed(&r, 5);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct constraint *c =
            support_compile(cases[i].kind, cases[i].source, strlen(cases[i].source), &err);
        if (!c) fail_msg("%s: %s", cases[i].source, err.text);
        check_masks(c, cases[i].source, &words, v, &r, &err);
    }
    check_masks(compile_parts(&err), "schemas in texts", &words, v, &r, &err);
    constrain_token_trie_free(v);
    support_tokens_free(&words);
}

/* -- ends and their tokens -- */

static uint64_t rest_of(enum support_kind kind, const char *source, const bool *usable)
{
    struct base_error err = BASE_ERROR_INIT;
    struct base_buffer text = BASE_BUFFER_INIT;
    struct constraint *c = support_compile(kind, source, strlen(source), &err);
    if (!c) fail_msg("%s: %s", source, err.text);
    struct constrain_state *s = constrain_state_new(c, &err);
    struct constrain_finisher *f = constrain_finisher_new(c, usable, &err);
    uint64_t rest;
    bool found;
    assert_true(constrain_finisher_after(f, s, CONSTRAIN_NOTHING, &rest, &err));
    assert_true(constrain_finisher_text(f, s, CONSTRAIN_NOTHING, 100, &text, &found, &err));
    assert_int_equal(found, rest != UINT64_MAX);
    if (found) assert_int_equal(text.size, rest);
    for (size_t i = 0; usable && i < text.size; i++) assert_true(usable[(uint8_t)text.data[i]]);
    base_buffer_free(&text);
    constrain_finisher_free(f);
    constrain_state_free(s);
    constraint_free(c);
    return rest;
}

static void completions_use_only_bytes_that_tokens_can_write(void **state)
{
    (void)state;
    static const struct {
        enum support_kind kind;
        const char *source;
        uint64_t all, ascii;
    } cases[] = {
        {REGEX, "\\u{e9}|xyz", 2, 3},
        {REGEX, "\\u{e9}+", 2, UINT64_MAX},
        {GRAMMAR, "root ::= a a\na ::= \"\\u20ac\" | \"long\"", 6, 8},
        {SCHEMA, "{\"type\":\"string\",\"pattern\":\"^(\\u00e9|abc)$\"}", 4, 5},
        {SCHEMA,
         "{\"type\":\"object\",\"minProperties\":1,\"additionalProperties\":false,"
         "\"patternProperties\":{\"^(\\u00e9|abc)$\":{\"type\":\"null\"}}}",
         11, 12},
    };
    bool ascii[256] = {false};
    for (int b = 0; b < 128; b++) ascii[b] = true;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        assert_int_equal(rest_of(cases[i].kind, cases[i].source, NULL), cases[i].all);
        assert_int_equal(rest_of(cases[i].kind, cases[i].source, ascii), cases[i].ascii);
    }
}

/* The text that a retokenizer keeps from the last call does not change its result. */
static void a_retokenizer_that_is_used_again_gives_the_same_tokens(void **state)
{
    (void)state;
    struct base_error err = BASE_ERROR_INIT;
    struct support_tokens words;
    struct sample_random r;
    char text[64];
    int32_t ids[2][sizeof text];
    size_t size = 0, n[2];
    support_tokens_make(&words, 2500, 3);
    struct constrain_token_trie *v =
        constrain_token_trie_new(words.count, support_tokens_bytes, &words, &err);
    struct constrain_retokenizer *used = constrain_retokenizer_new(v, &err);
    sample_random_seed(&r, 11);
    for (int i = 0; i < 2000; i++) {
        const size_t keep = size ? pick(&r, (uint32_t)size) : 0, lead = pick(&r, 12);
        memmove(text + lead, text + size - keep, keep);
        for (size_t k = 0; k < lead; k++) text[k] = "etaonr \"{,"[pick(&r, 10)];
        size = lead + keep > 50 ? 0 : lead + keep;
        struct constrain_retokenizer *fresh = constrain_retokenizer_new(v, &err);
        assert_true(constrain_retokenize(used, text, size, ids[0], &n[0], &err));
        assert_true(constrain_retokenize(fresh, text, size, ids[1], &n[1], &err));
        assert_int_equal(n[0], n[1]);
        if (n[0]) assert_memory_equal(ids[0], ids[1], n[0] * sizeof ids[0][0]);
        size_t at = 0;
        for (size_t k = 0; k < n[0]; at += words.at[ids[0][k] + 1] - words.at[ids[0][k]], k++)
            assert_memory_equal(text + at, words.text.data + words.at[ids[0][k]],
                                words.at[ids[0][k] + 1] - words.at[ids[0][k]]);
        assert_int_equal(at, size);
        constrain_retokenizer_free(fresh);
    }
    constrain_retokenizer_free(used);
    constrain_token_trie_free(v);
    support_tokens_free(&words);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(deep_sources_are_errors),
        cmocka_unit_test(long_chains_of_rules_accept_their_texts),
        cmocka_unit_test(deep_texts_are_accepted_or_refused),
        cmocka_unit_test(ambiguous_grammars_are_answered_or_reach_a_limit),
        cmocka_unit_test(bytes_that_are_no_text_are_accepted_or_refused),
        cmocka_unit_test(large_lists_become_one_automaton_or_are_refused),
        cmocka_unit_test(choices_accept_exactly_their_texts),
        cmocka_unit_test(regular_expressions_equal_pcre2),
        cmocka_unit_test(grammars_equal_a_naive_recognizer),
        cmocka_unit_test(white_space_around_values_is_accepted),
        cmocka_unit_test(masks_allow_the_tokens_that_can_be_read),
        cmocka_unit_test(completions_use_only_bytes_that_tokens_can_write),
        cmocka_unit_test(a_retokenizer_that_is_used_again_gives_the_same_tokens),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

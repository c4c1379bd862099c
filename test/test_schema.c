/* test/test_schema.c: JSON schemas: the official suite (draft 2020-12, required part) if the
 * reference data exists, errors by name, and that texts that can be generated are accepted and
 * never reach a dead end. */
#include "sample/constrain/constraint.h"
#include "sample/sample.h"
#include "test/support.h"
#include "test/support_files.h"
#include "test/support_tokens.h"
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* -- a reader of raw JSON: only the boundaries of values -- */

static const char *skip_space(const char *s)
{
    return s + strspn(s, " \t\r\n");
}

static const char *skip_string(const char *s)
{
    for (s++; *s != '"'; s++)
        if (*s == '\\') s++;
    return s + 1;
}

static const char *skip_value(const char *s)
{
    int depth = 0;
    s = skip_space(s);
    do {
        if (*s == '"') {
            s = skip_string(s);
        } else if (*s == '{' || *s == '[') {
            depth++, s++;
        } else if (*s == '}' || *s == ']') {
            depth--, s++;
        } else if (strchr(" \t\r\n,:", *s)) {
            s++;
        } else {
            s += strcspn(s, " \t\r\n,:{}[]\"");
        }
    } while (depth > 0);
    return s;
}

/* The value of a member of the object at s, or NULL. */
static const char *member(const char *s, const char *name)
{
    size_t n = strlen(name);
    for (s = skip_space(s) + 1; *(s = skip_space(s)) == '"';) {
        bool hit = strncmp(s + 1, name, n) == 0 && s[1 + n] == '"';
        s = skip_space(skip_string(s)) + 1;
        if (hit) return skip_space(s);
        s = skip_space(skip_value(s));
        if (*s == ',') s++;
    }
    return NULL;
}

/* The first element of the array at s, or the one after the value at s; NULL at the end. */
static const char *element(const char *s, bool first)
{
    s = skip_space(first ? s + 1 : skip_value(s));
    if (*s == ']') return NULL;
    return skip_space(first ? s : s + 1);
}

/* Copies without white space outside strings; the caller frees. */
static char *compact(const char *s, size_t *size)
{
    const char *end = skip_value(s);
    char *out = malloc((size_t)(end - s) + 1);
    *size = 0;
    while (s < end) {
        const char *next = *s == '"' ? skip_string(s) : s + 1;
        if (!strchr(" \t\r\n", *s)) {
            memcpy(out + *size, s, (size_t)(next - s));
            *size += (size_t)(next - s);
        }
        s = next;
    }
    return out;
}

/* -- checking one text -- */

static struct constraint *compile(const char *schema, size_t size, bool generate,
                                  struct base_error *err)
{
    struct constrain_schema_options options = {.generate = generate, .any_order = true};
    return constraint_from_schema(schema, size, &options, err);
}

static bool accepts(const struct constraint *c, const char *text, size_t size)
{
    struct base_error err = BASE_ERROR_INIT;
    struct constrain_state *s = constrain_state_new(c, &err);
    size_t used;
    assert_non_null(s);
    assert_true(constrain_state_feed(s, text, size, &used, &err));
    bool whole = used == size && constrain_state_may_end(s);
    constrain_state_free(s);
    return whole;
}

/* -- the official suite -- */

struct tally {
    int cases, right, wrong, refused, remote;
    struct {
        char keyword[40];
        int cases;
    } refusal[40];
};

static void count_refusal(struct tally *t, const struct base_error *err, int cases)
{
    char keyword[40] = "?";
    sscanf(err->text, "%*[^']'%39[^']", keyword);
    /* A refusal must name a keyword. */
    assert_string_not_equal(keyword, "?");
    int i = 0;
    while (t->refusal[i].cases && strcmp(t->refusal[i].keyword, keyword) != 0) i++;
    assert_in_range(i, 0, 38);
    strcpy(t->refusal[i].keyword, keyword);
    t->refusal[i].cases += cases;
}

static void run_group(struct tally *t, const char *file, const char *group)
{
    struct base_error err = BASE_ERROR_INIT;
    const char *schema = member(group, "schema"), *test;
    size_t schema_size = (size_t)(skip_value(schema) - schema);
    struct base_error no_value = BASE_ERROR_INIT;
    struct constraint *c = compile(schema, schema_size, false, &err);
    struct constraint *g = compile(schema, schema_size, true, &no_value);
    int cases = 0;
    for (test = element(member(group, "tests"), true); test; test = element(test, false)) {
        const char *data = member(test, "data");
        bool valid = *member(test, "valid") == 't';
        size_t size;
        char *text = compact(data, &size);
        cases++;
        /* Texts that can be generated must be accepted. */
        if (g && !valid && accepts(g, text, size)) t->wrong++;
        if (c && accepts(c, text, size) == valid) {
            t->right++;
        } else if (c) {
            t->wrong++;
            printf("wrong: %s: %.*s: %.*s should be %d\n", file, (int)schema_size, schema,
                   (int)size, text, valid);
        }
        free(text);
    }
    t->cases += cases;
    if (!c) {
        const char *ref = member(schema, "$ref");
        bool remote = *schema == '{' && ref && strncmp(ref, "\"https://json-schema.org", 24) == 0;
        if (getenv("SHOW_REFUSED")) printf("refused: %s: %s\n", file, err.text);
        t->refused += cases;
        if (remote)
            t->remote += cases;
        else
            count_refusal(t, &err, cases);
    }
    constraint_free(c);
    constraint_free(g);
}

static void the_official_suite_is_followed_or_refused(void **state)
{
    (void)state;
    char folder[4096], path[8192];
    struct tally t = {0};
    struct dirent *entry;
    DIR *dir = support_shared_path("json-schema", folder, sizeof folder) ? opendir(folder) : NULL;
    if (!dir) support_skip("the JSON-Schema test suite is not in the reference data");
    while ((entry = readdir(dir))) {
        if (!strstr(entry->d_name, ".json")) continue;
        snprintf(path, sizeof path, "%s/%s", folder, entry->d_name);
        size_t size;
        char *text = support_read_file(path, &size);
        assert_non_null(text);
        for (const char *g = element(skip_space(text), true); g; g = element(g, false))
            run_group(&t, entry->d_name, g);
        free(text);
    }
    closedir(dir);
    int local = t.cases - t.remote;
    printf("json-schema: %d cases outside remote references, %d right (%.1f %%), %d wrong\n", local,
           t.right, 100.0 * t.right / local, t.wrong);
    for (int i = 0; t.refusal[i].cases; i++)
        printf("json-schema: refused by '%s': %d cases\n", t.refusal[i].keyword,
               t.refusal[i].cases);
    assert_int_equal(t.wrong, 0);
    assert_true(t.right * 100 >= 85 * local);
}

/* -- generating: random walks through the masks -- */

static const char *const walked[] = {
    "{\"type\":\"object\",\"properties\":{\"a\":{\"type\":\"integer\",\"minimum\":-3,\"maximum\":"
    "250},"
    "\"b\":{\"type\":\"number\",\"exclusiveMinimum\":0.5,\"maximum\":0.75}},\"required\":[\"a\","
    "\"b\"],"
    "\"additionalProperties\":false}",
    "{\"type\":\"integer\",\"multipleOf\":7,\"minimum\":100,\"maximum\":106}",
    "{\"enum\":[\"one\",\"two\",3,4.5,{\"k\":[null]},[true]]}",
    "{\"type\":\"array\",\"minItems\":2,\"maxItems\":4,\"items\":{\"type\":\"boolean\"},"
    "\"contains\":{\"const\":true},\"minContains\":2,\"maxContains\":2}",
    "{\"type\":\"object\",\"minProperties\":2,\"maxProperties\":3,\"additionalProperties\":"
    "{\"type\":\"null\"},\"required\":[\"an\",\"be\"],\"propertyNames\":{\"maxLength\":3}}",
    "{\"oneOf\":[{\"type\":\"object\",\"properties\":{\"t\":{\"const\":\"x\"},\"v\":{\"type\":"
    "\"null\"}},\"required\":[\"t\",\"v\"],\"additionalProperties\":false},{\"type\":\"object\","
    "\"properties\":{\"t\":{\"const\":\"y\"},\"w\":{\"type\":\"null\"}},\"required\":[\"t\"],"
    "\"additionalProperties\":false}]}",
    "{\"type\":\"string\",\"pattern\":\"^[a-f]{2}-\\\\d+$\",\"maxLength\":8}",
    "{\"type\":\"string\",\"pattern\":\"^\\\"\\\\\\\\[\\\\n\\\\t]$\"}",
    "{\"type\":\"object\",\"properties\":{\"next\":{\"anyOf\":[{\"$ref\":\"#\"},{\"type\":\"null\"}"
    "]}},"
    "\"required\":[\"next\"],\"additionalProperties\":false}",
    "{\"type\":\"object\",\"dependentRequired\":{\"a\":[\"b\"]},\"properties\":{\"a\":{\"const\":1}"
    ","
    "\"b\":{\"const\":2}},\"additionalProperties\":false}",
    "{\"if\":{\"properties\":{\"k\":{\"const\":1}},\"required\":[\"k\"]},\"then\":{\"required\":["
    "\"m\"]},"
    "\"type\":\"object\",\"properties\":{\"k\":{\"enum\":[1,2]},\"m\":{\"type\":\"null\"}},"
    "\"additionalProperties\":false}",
    "{\"type\":\"object\",\"patternProperties\":{\"^x\":{\"const\":1}},\"additionalProperties\":"
    "false,"
    "\"minProperties\":1}",
    "{\"type\":\"array\",\"minItems\":5,\"contains\":{\"type\":\"integer\"},\"minContains\":2,"
    "\"maxContains\":3,\"items\":{\"type\":[\"integer\",\"null\"]}}",
    "{\"type\":\"array\",\"maxItems\":9,\"items\":{\"enum\":[1,12,-3.50,1e20,0.1,null,"
    "12345678901234567]}}",
    /* the enumeration has no item that satisfies "contains" */
    "{\"enum\":[{\"a\":\"a\"},[1,\"a\"],2.5],\"contains\":{\"type\":\"boolean\"}}",
    "{\"type\":\"array\",\"uniqueItems\":true,\"minItems\":2,\"items\":{\"enum\":[\"a\",\"bb\",3,"
    "null]}}",
    "{\"properties\":{\"s\":{\"type\":\"string\",\"minLength\":30,\"maxLength\":65536}},"
    "\"required\":[\"s\"]}",
    "{\"properties\":{\"an\":{\"const\":1},\"be\":{\"const\":2},\"in\":{\"const\":3}},"
    "\"additionalProperties\":{\"type\":\"null\"},\"required\":[\"be\",\"ze\"],\"minProperties\":4,"
    "\"propertyNames\":{\"maxLength\":4}}",
    "{\"properties\":{\"an\":{\"enum\":[null,1]},\"be\":{\"enum\":[null,1]},\"x1\":{\"enum\":[null,"
    "2]}},"
    "\"not\":{\"patternProperties\":{\"^a|e\":{\"type\":\"null\"}}},\"type\":\"object\","
    "\"additionalProperties\":false}",
};

/* A random allowed token; closing tokens are preferred half of the time. */
static int64_t pick_token(const uint64_t *mask, const struct support_tokens *words,
                          struct sample_random *r)
{
    int64_t chosen = -1;
    uint32_t seen = 0;
    bool closing = sample_random_u32(r) % 2;
    for (uint32_t pass = 0; pass < 2 && chosen < 0; pass++)
        for (uint32_t id = 0; id < words->count; id++) {
            bool closes = words->at[id + 1] - words->at[id] == 1 &&
                          strchr("\"}]", words->text.data[words->at[id]]);
            if (!(mask[id >> 6] >> (id & 63) & 1) || (pass == 0 && closing && !closes)) continue;
            if (sample_random_u32(r) % ++seen == 0) chosen = id;
        }
    return chosen;
}

/* From any state of a text the shortest ending is found, has the predicted length, and is
 * accepted. */
static void expect_ending(struct constrain_finisher *f, struct constrain_state *s,
                          const struct constraint *c, const struct base_buffer *text)
{
    struct base_error err = BASE_ERROR_INIT;
    struct base_buffer whole = BASE_BUFFER_INIT;
    uint64_t rest;
    bool found;
    base_buffer_add(&whole, text->data, text->size);
    assert_true(constrain_finisher_after(f, s, CONSTRAIN_NOTHING, &rest, &err));
    assert_true(constrain_finisher_text(f, s, CONSTRAIN_NOTHING, 4000, &whole, &found, &err));
    if (!found) fail_msg("no ending after %s", text->size ? text->data : "");
    if (whole.size - text->size != rest)
        fail_msg("%llu bytes are not the ending of %s", (unsigned long long)rest, whole.data);
    if (!accepts(c, whole.data, whole.size)) fail_msg("ends as %s", whole.data);
    base_buffer_free(&whole);
}

static void generated_texts_are_accepted(void **state)
{
    (void)state;
    struct base_error err = BASE_ERROR_INIT;
    struct support_tokens words;
    struct sample_random r;
    uint32_t ended = 0, walks = support_quick() ? 5 : 30;
    sample_random_seed(&r, 3);
    support_tokens_make(&words, 800, 3);
    struct constrain_token_trie *v =
        constrain_token_trie_new(words.count, support_tokens_bytes, &words, &err);
    for (size_t i = 0; i < sizeof walked / sizeof walked[0]; i++) {
        const struct constrain_schema_options o = {.generate = true};
        struct constraint *g = constraint_from_schema(walked[i], strlen(walked[i]), &o, &err);
        struct constraint *c = compile(walked[i], strlen(walked[i]), false, &err);
        if (!g || !c) fail_msg("%s: %s", walked[i], err.text);
        struct constrain_masker *m = constrain_masker_new(g, v, 1 << 20, &err);
        struct constrain_finisher *f = constrain_finisher_new(g, NULL, &err);
        assert_non_null(f);
        for (uint32_t walk = 0; walk < walks; walk++) {
            struct constrain_state *s = constrain_state_new(g, &err);
            struct base_buffer text = BASE_BUFFER_INIT;
            for (int step = 0; step < 400; step++) {
                if (step % 3 == 0) expect_ending(f, s, c, &text);
                const uint64_t *mask = constrain_masker_mask(m, s, &err);
                int64_t id = pick_token(mask, &words, &r);
                size_t used, size;
                if (constrain_state_may_end(s)) {
                    ended++;
                    if (!accepts(c, text.data, text.size))
                        fail_msg("%s: generated %s", walked[i], text.data);
                    if (id < 0 || sample_random_u32(&r) % 2) break;
                }
                if (id < 0) fail_msg("%s: a dead end after %s", walked[i], text.data);
                size = words.at[id + 1] - words.at[id];
                assert_true(
                    constrain_state_feed(s, words.text.data + words.at[id], size, &used, &err));
                assert_int_equal(used, size);
                base_buffer_add(&text, words.text.data + words.at[id], size);
            }
            base_buffer_free(&text);
            constrain_state_free(s);
        }
        constrain_finisher_free(f);
        constrain_masker_free(m);
        constraint_free(g);
        constraint_free(c);
    }
    constrain_token_trie_free(v);
    support_tokens_free(&words);
    assert_true(ended > walks * (sizeof walked / sizeof walked[0]) * 3 / 4);
}

/* -- numbers of const and enum -- */

static bool generates(const char *schema, const char *text)
{
    struct base_error err = BASE_ERROR_INIT;
    struct constraint *c = compile(schema, strlen(schema), true, &err);
    if (!c) fail_msg("%s: %s", schema, err.text);
    bool whole = accepts(c, text, strlen(text));
    constraint_free(c);
    return whole;
}

static void numbers_are_generated_as_the_schema_has_them(void **state)
{
    (void)state;
    static const struct {
        const char *schema, *text, *never; /* `never`: the same value in another form */
    } cases[] = {{"{\"enum\":[1,2,3]}", "2", "2.000000000"},
                 {"{\"const\":2}", "2", "2.0"},
                 {"{\"const\":-0.50}", "-0.50", "-0.5"},
                 {"{\"enum\":[\"a\",1]}", "1", "1.0"},
                 {"{\"enum\":[12,1]}", "12", "1.0"},
                 {"{\"const\":3.141592653589793}", "3.141592653589793", "3.1415926535897930"},
                 {"{\"const\":1e-10}", "1e-10", "0.0000000001"},
                 {"{\"const\":1e20}", "1e20", "100000000000000000000"},
                 {"{\"const\":12345678901234567}", "12345678901234567", "1.2345678901234567e16"},
                 {"{\"enum\":[1234567890123456789,2]}", "1234567890123456789", "2.0"},
                 {"{\"enum\":[1.0,2],\"type\":\"integer\"}", "1.0", "1"},
                 {"{\"enum\":[1.0,2],\"minimum\":1,\"maximum\":1}", "1.0", "2"},
                 {"{\"minimum\":7,\"maximum\":7,\"type\":\"number\"}", "7", "7.0"},
                 {"{\"const\":{\"a\":[1e2]}}", "{\"a\":[1e2]}", "{\"a\":[100]}"},
                 {"{\"enum\":[4,9],\"multipleOf\":3}", "9", "4"}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        if (!generates(cases[i].schema, cases[i].text))
            fail_msg("%s does not generate %s", cases[i].schema, cases[i].text);
        if (generates(cases[i].schema, cases[i].never))
            fail_msg("%s generates %s", cases[i].schema, cases[i].never);
    }
}

/* A schema that accepts numbers of which none can be generated is an error; if no number is valid
 * at all, another alternative remains. */
static void numbers_that_cannot_be_generated_are_refused(void **state)
{
    (void)state;
    static const char *const refused[] = {
        "{\"minimum\":1e17,\"type\":\"number\"}", "{\"maximum\":-1e17,\"type\":\"integer\"}",
        "{\"exclusiveMinimum\":0,\"maximum\":1e-10,\"type\":\"number\"}",
        "{\"multipleOf\":1e17,\"minimum\":1,\"type\":\"number\"}",
        ("{\"properties\":{\"a\":{\"anyOf\":[{\"type\":\"null\"},"
         "{\"type\":\"number\",\"minimum\":1e300}]}}}")};
    for (size_t i = 0; i < sizeof refused / sizeof refused[0]; i++) {
        struct base_error err = BASE_ERROR_INIT;
        struct constraint *c = compile(refused[i], strlen(refused[i]), true, &err);
        if (c) fail_msg("%s is not refused", refused[i]);
        assert_int_equal(err.code, BASE_USAGE);
        if (!strstr(err.text, "no number that can be generated")) fail_msg("%s", err.text);
        struct base_error none = BASE_ERROR_INIT;
        assert_non_null(c = compile(refused[i], strlen(refused[i]), false, &none));
        constraint_free(c);
    }
    assert_true(generates("{\"anyOf\":[{\"type\":\"null\"},{\"type\":\"integer\","
                          "\"exclusiveMinimum\":5,\"exclusiveMaximum\":6}]}",
                          "null"));
}

static void large_lengths_are_counted_exactly(void **state)
{
    (void)state;
    static const struct {
        const char *schema;
        size_t min, max; /* number of code points; max 0: any number */
    } cases[] = {{"{\"maxLength\":65536}", 0, 65536},
                 {"{\"minLength\":65535,\"maxLength\":65535}", 65535, 65535},
                 {"{\"minLength\":10000,\"not\":{\"minLength\":10003}}", 10000, 10002},
                 {"{\"minLength\":20000}", 20000, 0},
                 {"{\"maxLength\":10000,\"pattern\":\"^[^y]*$\"}", 0, 10000},
                 {"{\"maxLength\":65000,\"pattern\":\"^[\u00e9x\\n]+$\"}", 1, 65000}};
    static char text[4 * 65536];
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
        for (int generate = 0; generate < 2; generate++) {
            struct base_error err = BASE_ERROR_INIT;
            struct constraint *c =
                compile(cases[i].schema, strlen(cases[i].schema), generate, &err);
            if (!c) fail_msg("%s: %s", cases[i].schema, err.text);
            const size_t at[] = {
                0, 1, cases[i].min - 1, cases[i].min, cases[i].max, cases[i].max + 1};
            for (size_t k = 0; k < sizeof at / sizeof at[0]; k++) {
                size_t size = 0;
                if (at[k] > 65537) continue;
                text[size++] = '"';
                for (size_t n = 0; n < at[k]; n++) {
                    const char *one = n % 7 == 3 ? "\xc3\xa9" : n % 7 == 5 ? "\\n" : "x";
                    memcpy(text + size, one, strlen(one));
                    size += strlen(one);
                }
                text[size++] = '"';
                const bool fits =
                    at[k] >= cases[i].min && (cases[i].max == 0 || at[k] <= cases[i].max);
                if (accepts(c, text, size) != fits)
                    fail_msg("%s with %zu code points", cases[i].schema, at[k]);
            }
            constraint_free(c);
        }
}

static void many_texts_and_repetitions_are_enforced_exactly(void **state)
{
    (void)state;
    enum { TEXTS = 20000 };
    struct base_buffer schema = BASE_BUFFER_INIT, text = BASE_BUFFER_INIT;
    struct base_error err = BASE_ERROR_INIT;
    base_buffer_add_text(&schema, "{\"enum\":[null");
    for (int i = 0; i < TEXTS; i++)
        base_buffer_add_format(&schema, ",\"%x text %d\"", i * 2654435761u, i);
    base_buffer_add_text(&schema, "]}");
    struct constraint *c = compile(schema.data, schema.size, true, &err);
    if (!c) fail_msg("%s", err.text);
    for (int i = 0; i < TEXTS; i += 97) {
        base_buffer_clear(&text);
        base_buffer_add_format(&text, "\"%x text %d\"", i * 2654435761u, i);
        assert_true(accepts(c, text.data, text.size));
        base_buffer_clear(&text);
        base_buffer_add_format(&text, "\"%x text %d\"", i * 2654435761u, i + 1);
        assert_false(accepts(c, text.data, text.size));
    }
    constraint_free(c);
    static const char *const expressions[] = {"[a-z]{0,65535}!", ".{0,65535}!"};
    for (int e = 0; e < 2; e++) {
        c = constraint_from_regex(expressions[e], strlen(expressions[e]), &err);
        if (!c) fail_msg("%s", err.text);
        base_buffer_clear(&text);
        for (int i = 0; i < 65536; i++) base_buffer_add_text(&text, "q");
        base_buffer_add_text(&text, "!");
        assert_true(accepts(c, text.data + 1, text.size - 1));
        assert_false(accepts(c, text.data, text.size));
        constraint_free(c);
    }
    base_buffer_free(&schema);
    base_buffer_free(&text);
}

/* An object with 500 required properties: each occurs once, in any order. */
static void many_properties_are_enforced_exactly(void **state)
{
    (void)state;
    enum { NAMES = 500 };
    struct base_buffer schema = BASE_BUFFER_INIT, text = BASE_BUFFER_INIT;
    struct base_error err = BASE_ERROR_INIT;
    base_buffer_add_text(&schema, "{\"additionalProperties\":false,\"properties\":{");
    for (int i = 0; i < NAMES; i++)
        base_buffer_add_format(&schema, "%s\"name%d\":{\"const\":%d}", i ? "," : "", i, i);
    base_buffer_add_text(&schema, "},\"required\":[");
    for (int i = 0; i < NAMES; i++)
        base_buffer_add_format(&schema, "%s\"name%d\"", i ? "," : "", i);
    base_buffer_add_text(&schema, "]}");
    struct constraint *c = compile(schema.data, schema.size, true, &err);
    if (!c) fail_msg("%s", err.text);
    for (int fault = 0; fault < 4; fault++) { /* none; one is missing, twice, has another's value */
        base_buffer_clear(&text);
        for (int i = 0; i < NAMES - (fault == 1); i++) {
            const int name = fault == 2 && i == 300 ? 7 : i * 7 % NAMES;
            base_buffer_add_format(&text, "%s\"name%d\":%d", i ? "," : "{", name,
                                   fault == 3 && i == 450 ? 1 : name);
        }
        base_buffer_add_text(&text, "}");
        assert_int_equal(accepts(c, text.data, text.size), fault == 0);
    }
    constraint_free(c);
    base_buffer_free(&schema);
    base_buffer_free(&text);
}

/* -- options -- */

static void keywords_that_are_not_enforced_restrict_nothing(void **state)
{
    (void)state;
    static const char schema[] = "{\"type\":\"array\",\"uniqueItems\":true}";
    static const char *const lenient[] = {"uniqueItems"};
    struct constrain_schema_options options = {.lenient = lenient, .n_lenient = 1};
    struct base_error err = BASE_ERROR_INIT;
    struct constraint *c = constraint_from_schema(schema, sizeof schema - 1, &options, &err);
    assert_non_null(c);
    assert_true(accepts(c, "[1,1]", 5));
    assert_false(accepts(c, "{}", 2));
    constraint_free(c);
    c = constraint_json_object(true, &err);
    assert_non_null(c);
    assert_true(accepts(c, "{\"a\": [1, 2]}", 13));
    static const char *const spaced[] = {"{ \"a\":1}",  "{\"a\" :1}", "{\"a\":  1}",
                                         "{\"a\":\n1}", "{\"a\":1 }", "{\"a\":[1,\n2]}",
                                         "{\"a\":[ ]}", "{\n\"a\":1}"};
    for (size_t i = 0; i < sizeof spaced / sizeof spaced[0]; i++)
        assert_false(accepts(c, spaced[i], strlen(spaced[i])));
    constraint_free(c);
    assert_null(compile("false", 5, true, &err));
    assert_int_equal(err.code, BASE_USAGE);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_official_suite_is_followed_or_refused),
        cmocka_unit_test(generated_texts_are_accepted),
        cmocka_unit_test(numbers_are_generated_as_the_schema_has_them),
        cmocka_unit_test(numbers_that_cannot_be_generated_are_refused),
        cmocka_unit_test(large_lengths_are_counted_exactly),
        cmocka_unit_test(many_properties_are_enforced_exactly),
        cmocka_unit_test(many_texts_and_repetitions_are_enforced_exactly),
        cmocka_unit_test(keywords_that_are_not_enforced_restrict_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

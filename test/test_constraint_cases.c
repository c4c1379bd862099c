/* test/test_constraint_cases.c: grammars, expressions and schemas: texts that each accepts or
 * rejects, and named errors. */
#include "test/support.h"
#include "test/support_constraint.h"
#include <string.h>

#define DECIMAL "{\"pattern\":\"^(?!^[-+.]*$)[+-]?0*\\\\d*\\\\.?\\\\d*$\"}"

static const struct {
    enum support_kind kind;
    const char *source, *text;
    int accepted;
} text_cases[] = {
    {GRAMMAR, "root ::= ([x]*)*", "xxx", 1}, /* a nullable loop */
    {GRAMMAR, "root ::= ([x]*)*", "xy", 0},
    {GRAMMAR, "root ::= ((\"\")*)*", "", 1},
    {GRAMMAR, "root ::= (ws)* \"a\"\nws ::= \" \" ws | \"\"", "  a", 1},
    {GRAMMAR, "root ::= a | b # either\na ::=\n  \"x\"\n  | \"y\"\nb ::= \"z\"", "y", 1},
    {GRAMMAR, "root ::= [^\\n\\x41\\u00e9\\U0001F600]", "A", 0},
    {GRAMMAR, "root ::= [^\\n\\x41\\u00e9\\U0001F600]", "\xc3\xa9", 0},
    {GRAMMAR, "root ::= [^\\n\\x41\\u00e9\\U0001F600]", "\xf0\x9f\x98\x80", 0},
    {GRAMMAR, "root ::= [^\\n\\x41\\u00e9\\U0001F600]", "\xf0\x9f\x98\x81", 1},
    {GRAMMAR, "root ::= .", "\xe2\x82\xac", 1},
    {GRAMMAR, "root ::= .", "\xe2\x82", 0},
    {GRAMMAR, "root ::= .", "\xed\xa0\x80", 0}, /* half of a surrogate pair */
    {GRAMMAR, "root ::= .*", "\xc0\x80", 0},    /* an overlong form */
    {GRAMMAR, "root ::= \"a\"{2} \"b\"{1,} \"c\"{0,2}", "aabbcc", 1},
    {GRAMMAR, "root ::= \"a\"{2} \"b\"{1,} \"c\"{0,2}", "aabbccc", 0},
    {GRAMMAR, "root ::= [a-]+", "a-a", 1},
    {GRAMMAR, "root ::= s\ns ::= \"(\" s \")\" s | \"\"", "(()())()", 1},
    {GRAMMAR, "root ::= s\ns ::= \"(\" s \")\" s | \"\"", "(()", 0},
    {GRAMMAR, "root ::= \"\\\"\\\\\\t\"", "\"\\\t", 1},
    {GRAMMAR, "root ::= [\\d_\\s]+ \\w [^\\W]", "1_ 2ab", 1},
    {GRAMMAR, "root ::= [\\d_\\s]+ \\w [^\\W]", "1_ 2-b", 0},
    {GRAMMAR, "root ::= \\S{2} [\\D-]", "a\xc3\xa9-", 1},
    {GRAMMAR, "root ::= \\S{2} [\\D-]", "a\xc2\xa0-", 0},
    {REGEX, "(a|b)*?c{2,3}", "abacc", 1},
    {REGEX, "(?!ab)[a-c]{2}", "ac", 1},
    {REGEX, "(?!ab)[a-c]{2}", "ab", 0},
    {REGEX, "^(?=.*x)(?!.*y$)[xyz]*$", "yxz", 1},
    {REGEX, "^(?=.*x)(?!.*y$)[xyz]*$", "yzz", 0},
    {REGEX, "^(?=.*x)(?!.*y$)[xyz]*$", "xzy", 0},
    {REGEX, "(?=a|b)(a|b|c)d", "cd", 0},
    {REGEX, "(?=)a", "a", 1},
    {SCHEMA, DECIMAL, "\"-0012.50\"", 1}, /* pydantic's Decimal */
    {SCHEMA, DECIMAL, "\".5\"", 1},
    {SCHEMA, DECIMAL, "\"-.\"", 0},
    {SCHEMA, DECIMAL, "\"\"", 0},
    {SCHEMA, DECIMAL, "\"1.2.3\"", 0},
    {SCHEMA, "{\"pattern\":\"^(?!bad)\"}", "\"not bad\"", 1},
    {SCHEMA, "{\"pattern\":\"^(?!bad)\"}", "\"bad, not\"", 0},
    {REGEX, "^a$", "a", 1},
    {REGEX, "a^b|c", "ab", 0},
    {REGEX, "a^b|c", "c", 1},
    {REGEX, "(a$|ab)", "ab", 1},
    {REGEX, "[\\w\\-.]+@(?:[a-z]+\\.)+[a-z]{2,}", "some.one-x@mail.example.org", 1},
    {REGEX, "\\u{1F600}\\x41\\u00e9",
     "\xf0\x9f\x98\x80"
     "A\xc3\xa9",
     1},
    {REGEX, "\\ud83d\\ude00", "\xf0\x9f\x98\x80", 1},
    {REGEX, ".", "\n", 0},
    {REGEX, "\\p{L}+", "a\xc3\xa9\xe6\x97\xa5", 1},
    {REGEX, "\\P{Nd}", "7", 0},
    {REGEX, "[^]", "\n", 1},
    {REGEX, "(?<year>\\d{4})", "2024", 1},
    {REGEX, "(?P<year>\\d{4})-", "2024-", 1},
    {REGEX, "a\\@\\ \\_\\~[\\#\\&]", "a@ _~&", 1},
    {SCHEMA, "{\"type\":\"object\"}", " { \"a\" : [ 1 , 2 ] } ", 1},
    {SCHEMA, "{\"type\":\"object\"}", "[]", 0},
    {SCHEMA, "{\"properties\":{\"a\":{}}}", "{\"a\":1,\"a\":1}", 0}, /* a duplicate name */
    {SCHEMA, "{\"maxContains\":1,\"contains\":{}}", "\"not an array\"", 1},
    {SCHEMA, "{\"type\":\"integer\"}", "15e-1", 0},
    {SCHEMA, "{\"type\":\"integer\"}", "1.50e1", 1},
    {SCHEMA, "{\"maximum\":9007199254740992}", "9007199254740993", 0}, /* exact */
    {SCHEMA, "{\"minimum\":-9223372036854775808}", "-9223372036854775809", 0},
    {SCHEMA, "{\"multipleOf\":0.01}", "4.35", 1},
    {SCHEMA, "{\"multipleOf\":0.01}", "4.355", 0},
    {SCHEMA, "{\"const\":\"\\u20ac\"}", "\"\\u20aC\"", 1},
    {SCHEMA, "{\"maxLength\":1}", "\"\\ud83d\\ude00\"", 1},
    {SCHEMA, "true", "\"\\ud83d\"", 0},
    {SCHEMA, "true", "01", 0},
    {SCHEMA, "{\"properties\":{\"n\":{\"$ref\":\"#\"}},\"additionalProperties\":false}",
     "{\"n\":{\"n\":{\"n\":{}}}}", 1},
    {SCHEMA, "{\"format\":\"date\"}", "\"not a date\"", 1},
    {GRAMMAR, "root ::= | \"x\"", "", 1}, /* empty alternatives */
    {GRAMMAR, "root ::= (\"x\" | ) | ", "x", 1},
    {GRAMMAR, "root ::= a+ b\na ::= \"x\" | \"xx\"\nb ::= \"x\"?", "xxxxx", 1}, /* ambiguous */
    {REGEX, "((a*)*)*b", "aaab", 1}, /* exponential for backtracking matchers */
    {REGEX, "(a|aa)+$", "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaab", 0},
    {REGEX, "(x+x+)+y", "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx", 0},
    {REGEX, "(.*){100}", "x", 1},
    {REGEX, "a||b", "", 1},
    {SCHEMA, "{\"minimum\":1e400}", "1e401", 1}, /* beyond every machine's numbers */
    {SCHEMA, "{\"maximum\":1e-400}", "1e-401", 1},
    {SCHEMA, "{\"minimum\":9223372036854775807,\"type\":\"integer\"}", "9223372036854775806", 0},
    {SCHEMA, "{\"maximum\":18446744073709551616}", "18446744073709551617", 0},
    {SCHEMA, "{\"exclusiveMaximum\":1e400}", "1e400", 0},
    {SCHEMA, "{\"minLength\":2}", "\"\xf0\x9f\x98\x80\"", 0}, /* one code point */
    {SCHEMA, "{\"properties\":{\"a\":{\"$ref\":\"#\"}},\"type\":\"object\"}", "{\"a\":{\"a\":1}}",
     0},
};

static void named_texts_are_accepted_or_refused(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof text_cases / sizeof text_cases[0]; i++) {
        struct base_error err = BASE_ERROR_INIT;
        struct constraint *c = support_compile(text_cases[i].kind, text_cases[i].source,
                                               strlen(text_cases[i].source), &err);
        if (!c) fail_msg("%s: %s", text_cases[i].source, err.text);
        if (support_accepts(c, text_cases[i].text, strlen(text_cases[i].text)) !=
            text_cases[i].accepted)
            fail_msg("%s: '%s' should be %d", text_cases[i].source, text_cases[i].text,
                     text_cases[i].accepted);
        constraint_free(c);
    }
}

static const struct {
    enum support_kind kind;
    const char *source, *error; /* the start or a part of the error text */
} wrong[] = {
    {GRAMMAR, "root ::= foo", "line 1, column 10: rule 'foo' is not defined"},
    {GRAMMAR, "x ::= \"a\"", "no rule 'root'"},
    {GRAMMAR, "", "line 1, column 1: there is no rule 'root'"},
    {GRAMMAR, "root ::= root \"a\" | \"b\"", "line 1, column 1: rule 'root' is left-recursive"},
    {GRAMMAR, "root ::= \"x\" a\na ::= b a\nb ::= \"y\"?", "line 2, column 1: rule 'a' is left"},
    {GRAMMAR, "root ::= \"x\" root", "rule 'root' can never end"},
    {GRAMMAR, "root ::= \"a\"{99999999999999999999}", "line 1, column 20: repeats more"},
    {GRAMMAR, "root ::= \"a\"{3,2}", "line 1, column 13: {m,n} with m above n"},
    {GRAMMAR, "root ::= ((\"a\"{9999}){9999}){9999}", "expands to more than"},
    {GRAMMAR, "root ::= ((\"\"{9999}){9999}){9999}", "expands to more than"},
    {GRAMMAR, "root ::= [ab]* \"a\" [ab]{40}", "too ambiguous"},
    {GRAMMAR, "root ::= *", "line 1, column 10: nothing to repeat"},
    {GRAMMAR, "root ::= \"a", "line 1, column 12: this string is not closed"},
    {GRAMMAR, "root ::= [a", "line 1, column 10: this character class is not closed"},
    {GRAMMAR, "root ::= []", "empty"},
    {GRAMMAR, "root ::= [z-a]", "line 1, column 11: this range runs backwards"},
    {GRAMMAR, "root ::= (\"a\"", "line 1, column 10: this '(' is not closed"},
    {GRAMMAR, "root ::= \"a\")", "')' without '('"},
    {GRAMMAR, "root ::= \"a\"\nroot ::= \"b\"", "line 2, column 1: this rule is defined already"},
    {GRAMMAR, "root ::= \"\\xZ1\"", "expected a hexadecimal digit"},
    {GRAMMAR, "root ::= \"\\U00110000\"", "not a Unicode character"},
    {GRAMMAR, "root ::= \"\\q\"", "unknown escape"},
    {GRAMMAR, "root ::= <think", "line 1, column 10: the name of this token is not closed"},
    {GRAMMAR, "root ::= <[12>", "line 1, column 14: expected the number of a token"},
    {GRAMMAR, "root ::= ! <a>", "line 1, column 11: expected the name of a token"},
    {GRAMMAR, "root ::= <a> root", "rule 'root' can never end"},
    {GRAMMAR, "root = \"a\"", "line 1, column 6: expected '::='"},
    {GRAMMAR, "root ::= \"a\"{0,1000001}", "line 1, column 22: repeats more than 1000000"},
    {GRAMMAR, "root ::= a\na ::= b\nb ::= a", "line 2, column 1: rule 'a' is left-rec"},
    {GRAMMAR, "root ::= x a\nx ::= \"\"\na ::= b \"1\" | \"2\"\nb ::= \"3\" | x b",
     "line 4, column 1: rule 'b' is left-rec"},
    {REGEX, "a{0,1000001}", "line 1, column 11: repeats too often"},
    {REGEX, "((a{1,100}){1,100}){1,100}", "too ambiguous to be compiled"},
    {REGEX, "((.{0,100}){0,100}){0,100}", "expands to more than 2097152 states"},
    {REGEX, "(a|b)*a(a|b){60}", "too ambiguous to be compiled"},
    {REGEX, "a(?=x)", "column 2: look-ahead is supported at the beginning"},
    {REGEX, "(?!x)a|b", "look-ahead beside '|'"},
    {SCHEMA, "{\"pattern\":\"(?!x)a\"}", "look-ahead needs '^'"},
    {REGEX, "(?!)a", "matches nothing"},
    {REGEX, "(?!x)*a", "an anchor cannot be repeated"},
    {GRAMMAR, "root ::= [\\d-z]", "a class cannot begin or end a range"},
    {REGEX, "((?!x)a)", "column 2: look-ahead is supported at the beginning"},
    {REGEX, "(?<=x)*", "column 2: look-behind is not supported"},
    {REGEX, "(a)\\1", "column 5: back-references"},
    {REGEX, "\\bx", "word boundaries"},
    {REGEX, "*a", "column 1: nothing to repeat"},
    {REGEX, "^*", "an anchor cannot be repeated"},
    {REGEX, "(a", "not closed"},
    {REGEX, "a)", "')' without '('"},
    {REGEX, "[z-a]", "runs backwards"},
    {REGEX, "a{2,1}", "m above n"},
    {REGEX, "\\p{Nope}", "unknown property"},
    {REGEX, "a$b", "matches nothing"},
    {REGEX, "\\e", "column 2: unknown escape"},
    {REGEX, "(?P=n)", "column 2: flags and atomic groups"},
    {SCHEMA, "{", "line 1, column 2: expected a name in quotes"},
    {SCHEMA, "{\n \"uniqueItems\": true}", "line 2, column 17: 'uniqueItems' is not supported"},
    {SCHEMA, "{\"unevaluatedItems\":false}", "'unevaluatedItems' is not supported"},
    {SCHEMA, "{\"nonsense\":1}", "'nonsense' is not supported"},
    {SCHEMA, "{\"$ref\":\"#\"}", "'$ref' leads back to itself"},
    {SCHEMA,
     "{\"$ref\":\"#/$defs/a\",\"$defs\":{\"a\":{\"$ref\":\"#/$defs/b\"},"
     "\"b\":{\"allOf\":[{\"$ref\":\"#/$defs/a\"}]}}}",
     "'$ref' leads back to itself"},
    {SCHEMA, "{\"$ref\":\"https://example.com/x\"}", "'$ref' leads nowhere"},
    {SCHEMA, "{\"pattern\":\"(?<=x)*\"}", "'pattern': line 1, column 13: look-behind"},
    {SCHEMA, "{\"pattern\":\"*\"}", "'pattern': line 1, column 12: nothing to repeat"},
    {SCHEMA, "{\"maxLength\":99999999999999999999}", "'maxLength'"},
    {SCHEMA, "{\"minItems\":-1}", "'minItems' must be a whole number"},
    {SCHEMA, "{\"multipleOf\":0}", "'multipleOf' must be positive"},
    {SCHEMA, "{\"a\":1,\"a\":2}", "occurs twice"},
    {SCHEMA, "{\"maxItems\":1e20}", "line 1, column 13: 'maxItems' is more than 10000"},
    {SCHEMA, "{\"minLength\":18446744073709551615}", "'minLength' is more than 1073741824"},
    {SCHEMA, "{\"minLength\":1e-1}", "'minLength' must be a whole number"},
    {SCHEMA, "{\"properties\":{\"a\":{\"$ref\":\"#/properties/a\"}}}", "leads back to itself"},
    {SCHEMA, "{\"type\":\"strnig\"}", "is not the name of a type"},
};

static void wrong_sources_are_errors_with_line_and_column(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        struct base_error err = BASE_ERROR_INIT;
        struct constraint *c =
            support_compile(wrong[i].kind, wrong[i].source, strlen(wrong[i].source), &err);
        if (c) fail_msg("%s should be an error", wrong[i].source);
        assert_int_equal(err.code, BASE_USAGE);
        if (!strstr(err.text, wrong[i].error))
            fail_msg("%s: '%s' lacks '%s'", wrong[i].source, err.text, wrong[i].error);
        assert_non_null(strstr(err.text, "line "));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(named_texts_are_accepted_or_refused),
        cmocka_unit_test(wrong_sources_are_errors_with_line_and_column),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* test/test_schema_forms.c: what single schemas mean: forms of older drafts and APIs, names and
 * their order, formats, and keywords that generation cannot follow. */
#include "sample/constrain/constraint.h"
#include "test/support.h"
#include "test/support_constraint.h"

#include <stdio.h>
#include <string.h>

struct judged {
    const char *schema;
    const char *accepted[6], *refused[6];
};

static void judge(const struct judged *j, const struct constrain_schema_options *options)
{
    struct base_error err = BASE_ERROR_INIT;
    struct constraint *c = constraint_from_schema(j->schema, strlen(j->schema), options, &err);
    if (!c) fail_msg("%s: %s", j->schema, err.text);
    for (int i = 0; i < 6 && j->accepted[i]; i++)
        if (support_accepts(c, j->accepted[i], strlen(j->accepted[i])) != 1)
            fail_msg("%s refuses %s", j->schema, j->accepted[i]);
    for (int i = 0; i < 6 && j->refused[i]; i++)
        if (support_accepts(c, j->refused[i], strlen(j->refused[i])) != 0)
            fail_msg("%s accepts %s", j->schema, j->refused[i]);
    constraint_free(c);
}

/* Cases written with single quotes. */
static void judge_quoted(const struct judged *cases, size_t n_cases,
                         const struct constrain_schema_options *options)
{
    for (size_t i = 0; i < n_cases; i++) {
        struct judged j = cases[i];
        char text[16][512];
        int n = 0;
        const char **parts[13] = {&j.schema};
        for (int k = 0; k < 6; k++) parts[1 + k] = &j.accepted[k], parts[7 + k] = &j.refused[k];
        for (int k = 0; k < 13; k++) { /* quotes */
            if (!*parts[k]) continue;
            snprintf(text[n], sizeof text[n], "%s", *parts[k]);
            for (char *s = text[n]; *s; s++) *s = *s == '\'' ? '"' : *s;
            *parts[k] = text[n++];
        }
        judge(&j, options);
    }
}

static void judge_sets(const struct judged *cases, size_t n_cases)
{
    judge_quoted(cases, n_cases, &(struct constrain_schema_options){.generate = false});
    judge_quoted(
        cases, n_cases,
        &(struct constrain_schema_options){.generate = true, .open = true, .any_order = true});
}

/* -- forms of older drafts and APIs -- */

static void id_of_draft_4_names_a_schema_or_a_place_in_it(void **state)
{
    (void)state;
    static const struct judged cases[] = {
        {"{'$schema':'http://json-schema.org/draft-04/schema#','id':'http://x/root.json',"
         "'definitions':{'a':{'id':'a.json','enum':[1]},'b':{'id':'#b','enum':[2]},"
         "'c':{'id':'c.json','definitions':{'b':{'enum':[3]}},'anyOf':[{'$ref':'#/definitions/"
         "b'}]}},"
         "'anyOf':[{'$ref':'a.json'},{'$ref':'#b'},{'$ref':'c.json'},"
         "{'id':'ignored.json','$ref':'http://x/a.json'}]}",
         {"1", "2", "3"},
         {"4"}},
        {"{'id':'http://x/y','definitions':{'a':{'enum':[1]}},'$ref':'#/definitions/a'}",
         {"1"},
         {"2"}},
        {"{'id':'http://x/y','items':{'$ref':'http://x/y#/definitions/a'},'definitions':{'a':{"
         "'enum':[1]}}}",
         {"[1]"},
         {"[2]"}},
        {"{'$id':'http://x/y','$defs':{'a':{'$id':'#a','enum':[1]}},'items':{'$ref':'#a'}}",
         {"[1]"},
         {"[2]"}},
        {"{'properties':{'id':{'const':1}}}", {"{'id':1}"}, {"{'id':2}"}},
    };
    judge_sets(cases, sizeof cases / sizeof cases[0]);
}

static void older_drafts_and_wrappers_are_read(void **state)
{
    (void)state;
    static const struct judged cases[] = {
        /* draft 4: an exclusive bound is a boolean in addition to the bound */
        {"{'type':'number','minimum':5,'exclusiveMinimum':true}", {"5.1", "6"}, {"5", "4"}},
        {"{'type':'number','maximum':5,'exclusiveMaximum':true}", {"4.9"}, {"5", "5.0"}},
        {"{'type':'number','minimum':5,'exclusiveMinimum':false}", {"5"}, {"4"}},
        {"{'type':'number','exclusiveMinimum':true}", {"-9"}, {"null"}},
        {"{'$schema':'http://json-schema.org/draft-04/schema#','minimum':1}", {"1", "null"}, {"0"}},
        /* draft 7: lists of items */
        {"{'items':[{'type':'null'},{'type':'boolean'}]}",
         {"[]", "[null]", "[null,true,7]"},
         {"[1]", "[null,null]"}},
        {"{'items':[{'type':'null'}],'additionalItems':false}",
         {"[]", "[null]", "{}"},
         {"[null,1]", "[1]"}},
        {"{'items':[{'type':'null'}],'additionalItems':{'const':1}}", {"[null,1,1]"}, {"[null,2]"}},
        {"{'items':{'const':1},'additionalItems':false}", {"[1,1]"}, {"[2]"}},
        {"{'additionalItems':false}", {"[1]"}, {NULL}},
        {"{'$ref':'#/definitions/a','definitions':{'a':{'items':[{},{'$ref':'#/"
         "additionalItems'}]}},"
         "'additionalItems':{'const':3}}",
         {"[1,3]"},
         {"[1,2]"}},
        /* until draft 7: dependencies of both kinds */
        {"{'dependencies':{'a':['b','c']}}",
         {"{'b':1}", "{'a':1,'b':1,'c':1}", "3"},
         {"{'a':1}", "{'a':1,'b':2}"}},
        {"{'dependencies':{'a':{'properties':{'b':{'const':1}}}}}",
         {"{'b':2}", "{'a':1,'b':1}"},
         {"{'a':1,'b':2}"}},
        {"{'dependencies':{'a':false}}", {"{}", "{'b':1}"}, {"{'a':1}"}},
        /* OpenAPI 3.0 */
        {"{'type':'string','nullable':true}", {"'a'", "null"}, {"1"}},
        {"{'type':['string','boolean'],'nullable':true}", {"null", "true"}, {"1"}},
        {"{'type':'string','nullable':false}", {"'a'"}, {"null"}},
        {"{'type':'string','nullable':true,'enum':['a']}", {"'a'"}, {"null", "'b'"}},
        {"{'nullable':true,'enum':[1]}", {"1"}, {"null"}},
        /* enumerated items may be required to be unique */
        {"{'type':'array','uniqueItems':true,'items':{'enum':['a','b',1,1.0,null]}}",
         {"[]", "['a',1,null,'b']"},
         {"['a','a']", "[1,1.0]", "['c']", "['b',null,'b']"}},
        {"{'uniqueItems':true,'items':{'$ref':'#/$defs/a'},'minItems':2,'$defs':{'a':{'type':"
         "'string','enum':['a','b',2]}}}",
         {"['a','b']", "3"},
         {"['a']", "['a',2]", "['a','b','a']"}},
        {"{'uniqueItems':true,'maxItems':2,'items':{'enum':['a','b','c']}}",
         {"['c','a']"},
         {"['a','b','c']", "['a','a']"}},
        {"{'uniqueItems':true,'items':{'type':'boolean'}}",
         {"[]", "[true]", "[false,true]", "{}"},
         {"[true,true]", "[1]", "[true,false,true]"}},
        {"{'uniqueItems':true,'items':{'type':['integer','null'],'minimum':-1,'maximum':60}}",
         {"[-1,0,60]", "[null,5]", "[1,10,2]"},
         {"[0,-0.0]", "[7,7.0]", "[null,null]", "[61]", "[1.5]"}},
        {"{'uniqueItems':true,'items':{'type':'integer','minimum':1,'maximum':3,'multipleOf':2}}",
         {"[2]", "[]"},
         {"[2,2]", "[1]", "[4]"}},
        {"{'uniqueItems':true,'items':{'const':5}}", {"[5]", "[]"}, {"[5,5]", "[5,5.0]"}},
        /* API wrappers of a schema */
        {"{'name':'x','strict':true,'schema':{'type':'integer'}}", {"1"}, {"'1'"}},
        {"{'type':'json_schema','json_schema':{'name':'x','schema':{'$ref':'#/$defs/a',"
         "'$defs':{'a':{'const':1}}}}}",
         {"1"},
         {"2"}},
    };
    judge_sets(cases, sizeof cases / sizeof cases[0]);
}

/* Lengths are counters, so a large one is not slower than a small one. */
/* -- names -- */

/* Only named properties are generated, because a model that may invent names does so up to the
 * limit. */
static void generated_objects_have_only_named_properties(void **state)
{
    (void)state;
    static const char named[] = "{\"type\":\"object\",\"properties\":{\"a\":{},\"b\":true}}";
    static const struct judged closed[] = {
        {named, {"{}", "{\"a\": 1, \"b\": 2}"}, {"{\"c\":1}", "{\"a\":1,\"aa\":1}"}},
        {"{\"allOf\":[{\"properties\":{\"a\":{}}},{\"properties\":{\"b\":{}},\"required\":[\"c\"]}]"
         "}",
         {"{\"a\":1,\"b\":1,\"c\":1}", "{\"c\":1}"},
         {"{\"c\":1,\"d\":1}"}},
        {"{\"anyOf\":[{\"properties\":{\"a\":{}},\"required\":[\"a\"]},{\"properties\":{\"b\":{}}}]"
         "}",
         {"{\"a\":1}", "{\"b\":1}", "{}"},
         {"{\"c\":1}"}},
        {"{\"properties\":{\"a\":{}},\"patternProperties\":{\"^x\":{}}}",
         {"{\"a\":1,\"x1\":1}"},
         {"{\"y\":1}"}},
        /* no property is named, or others are explicitly allowed or required */
        {"{\"type\":\"object\"}", {"{\"c\":1}"}, {"1"}},
        {"{\"required\":[\"a\"]}", {"{\"a\":1,\"c\":1}"}, {"{}"}},
        {"{\"properties\":{\"a\":{}},\"additionalProperties\":true}", {"{\"c\":1}"}, {NULL}},
        {"{\"properties\":{\"a\":{}},\"additionalProperties\":{\"const\":1}}",
         {"{\"c\":1}"},
         {"{\"c\":2}"}},
        {"{\"properties\":{\"a\":{}},\"minProperties\":2}", {"{\"a\":1,\"c\":1}"}, {"{\"a\":1}"}},
        {"{\"not\":{\"required\":[\"a\"]}}", {"{\"c\":1}"}, {"{\"a\":1}"}},
    };
    for (size_t i = 0; i < sizeof closed / sizeof closed[0]; i++)
        judge(&closed[i], &(struct constrain_schema_options){.generate = true});
    const struct judged open = {named, {"{\"c\":1}", "{\"a\":1,\"c\":[]}"}, {"1"}};
    judge(&open, &(struct constrain_schema_options){.generate = true, .open = true});
    judge(&open, &(struct constrain_schema_options){.generate = false});
}

/* -- the order of names -- */

static void names_come_in_the_order_of_the_schema(void **state)
{
    (void)state;
    static const struct judged cases[] = {
        {"{'properties':{'b':{},'a':{},'c':{}},'required':['c']}",
         {"{'b':1,'a':1,'c':1}", "{'a':1,'c':1}", "{'c':1}"},
         {"{'a':1,'b':1,'c':1}", "{'c':1,'a':1}", "{'b':1}"}},
        {"{'required':['z','b','a'],'properties':{'b':{}}}",
         {"{'b':1,'z':1,'a':1}"},
         {"{'z':1,'b':1,'a':1}", "{'b':1,'a':1,'z':1}"}},
        {"{'properties':{'b':{}},'additionalProperties':{'type':'integer'},"
         "'patternProperties':{'^x':{}}}",
         {"{'b':1,'x1':null,'q':2}", "{'b':1,'q':2,'x1':1}", "{'q':2}"},
         {"{'q':2,'b':1}"}},
        {"{'$defs':{'B':{'properties':{'y':{},'x':{}}},'A':{'properties':{'q':{},'y':{}}}},"
         "'allOf':[{'$ref':'#/$defs/A'},{'$ref':'#/$defs/B'}],'properties':{'k':{}}}",
         {"{'q':1,'y':1,'x':1,'k':1}"},
         {"{'k':1,'q':1}", "{'x':1,'y':1}", "{'y':1,'q':1}"}},
        {"{'anyOf':[{'properties':{'t':{'const':1},'b':{},'a':{}},'required':['t']},"
         "{'properties':{'a':{},'b':{},'t':{'const':2}},'required':['t']}]}",
         {"{'t':1,'b':0,'a':0}", "{'a':0,'b':0,'t':2}"},
         {"{'t':2,'a':0}", "{'a':0,'b':0,'t':1}"}},
        {"{'oneOf':[{'properties':{'t':{'const':1},'b':{},'a':{}},'required':['t'],"
         "'additionalProperties':false},{'properties':{'a':{},'b':{},'t':{'const':2}},"
         "'required':['t'],'additionalProperties':false}]}",
         {"{'t':1,'b':0,'a':0}", "{'a':0,'b':0,'t':2}"},
         {"{'t':2,'a':0}", "{'t':1,'a':0,'b':0}", "{'a':0,'b':0,'t':1}"}},
        {"{'allOf':[{'properties':{'p':{'properties':{'b':{}}}}},"
         "{'properties':{'p':{'properties':{'a':{}}}}}]}",
         {"{'p':{'b':1,'a':1}}"},
         {"{'p':{'a':1,'b':1}}"}},
        {"{'properties':{'k':{}},'if':{'properties':{'k':{'const':1}},'required':['k']},"
         "'then':{'properties':{'z':{},'m':{}},'required':['m']}}",
         {"{'k':1,'z':0,'m':0}", "{'k':2}"},
         {"{'k':1,'m':0,'z':0}", "{'m':0,'k':1}"}},
        {"{'properties':{'a':{},'b':{}},'dependentSchemas':{'a':{'properties':{'d':{},'c':{}},"
         "'required':['c']}}}",
         {"{'a':1,'b':1,'d':1,'c':1}", "{'b':1}"},
         {"{'a':1,'c':1,'b':1}", "{'a':1,'c':1,'d':1}"}},
        {"{'const':{'b':1,'a':{'d':1,'c':2}}}",
         {"{'b':1,'a':{'d':1,'c':2}}"},
         {"{'a':{'d':1,'c':2},'b':1}", "{'b':1,'a':{'c':2,'d':1}}"}},
        /* only names that leave enough others may be left out */
        {"{'properties':{'a':{},'b':{},'c':{}},'additionalProperties':false,'minProperties':2}",
         {"{'a':1,'c':1}", "{'b':1,'c':1}"},
         {"{'c':1", "{'c':1,'b':1}"}},
        {"{'properties':{'a':{},'b':{}},'not':{'patternProperties':{'^a':{'type':'null'}}}}",
         {"{'a':1,'b':1}", "{'a':1}"},
         {"{'b':1}", "{'b':1,'a':1}", "{'a':null}"}},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
        judge_quoted(&cases[i], 1, &(struct constrain_schema_options){.generate = true});
    const struct judged any = {cases[0].schema, {"{'c':1,'a':1,'b':1}"}, {"{'b':1}"}};
    judge_quoted(&any, 1, &(struct constrain_schema_options){.generate = true, .any_order = true});
    judge_quoted(&any, 1, &(struct constrain_schema_options){.generate = false});
}

/* -- formats, and what cannot be enforced -- */

static void known_formats_are_generated_only(void **state)
{
    (void)state;
    static const struct judged cases[] = {
        {"{'type':'string','format':'date'}",
         {"'2024-02-29'", "'1999-12-31'", "'2000-02-29'"},
         {"'2023-02-29'", "'2024-04-31'", "'1900-02-29'", "'24-01-01'", "'2024-1-01'",
          "'0000-01-01'"}},
        {"{'format':'date-time'}",
         {"'2024-02-29T23:59:59Z'", "'2024-01-01T00:00:00.5+02:00'", "7"},
         {"'2024-02-29 23:59:59Z'", "'2024-02-29T24:00:00Z'", "'2024-02-29T10:00:00'",
          "'2024-02-30T10:00:00Z'"}},
        {"{'type':'string','format':'time'}",
         {"'08:30:06Z'", "'08:30:06.25-23:59'"},
         {"'08:30:06'", "'8:30:06Z'", "'08:60:06Z'"}},
        {"{'type':'string','format':'duration'}",
         {"'P4DT12H30M5S'", "'PT36H'", "'P1Y2M'", "'P2W'"},
         {"'P'", "'PT'", "'P1D2H'", "'P2WT3H'", "'1D'"}},
        {"{'type':'string','format':'uuid'}",
         {"'2eb8aa08-AA98-11ea-b4aa-73b441d16380'"},
         {"'2eb8aa08aa9811eab4aa73b441d16380'", "'2eb8aa08-aa98-11ea-b4aa-73b441d1638'"}},
        {"{'type':'string','format':'ipv4'}",
         {"'127.0.0.1'", "'255.255.255.255'"},
         {"'256.0.0.1'", "'127.0.1'", "'087.10.0.1'"}},
        {"{'type':'string','format':'ipv6'}",
         {"'::1'", "'2001:db8::8a2e:370:7334'", "'::ffff:192.0.2.1'", "'1:2:3:4:5:6:7:8'", "'1::'"},
         {"'12345::'", "'1::2::3'", "'1:2:3:4:5:6:7'", "':1'", "'1:2:3:4:5:6:7:8:9'"}},
        {"{'type':'string','format':'email'}",
         {"'joe.bloggs+x@mail.example.com'"},
         {"'joe'", "'joe@'", "'.joe@example.com'", "'joe@-a.com'", "'a..b@example.com'"}},
        {"{'type':'string','format':'hostname'}",
         {"'www.example.com'", "'a'", "'xn--4gbwdl.xn--wgbh1c'"},
         {"'-a'", "'a-.b'", "'a_b'", "'a..b'"}},
        {"{'type':'string','format':'uri'}",
         {"'https://u@example.com:80/a%20b?q=1#f'", "'urn:isbn:1'", "'ftp://a'", "'mailto:a@b'"},
         {"'//example.com'", "'a b:c'", "'http://a b'", "'http://a/%2'", "'abc'"}},
        {"{'type':'string','format':'uri','minLength':1,'maxLength':2083}", /* pydantic's HttpUrl */
         {"'https://example.com/'"},
         {"'x'"}},
        {"{'type':'string','format':'json-pointer'}", {"''", "'/a~0b/~1'"}, {"'a'", "'/~2'"}},
        /* in the values that a schema lists, other conditions, unions, other formats */
        {"{'enum':['urn:x','y z'],'format':'uri'}", {"'y z'"}, {"'z'"}},
        {"{'type':'string','format':'date','pattern':'^20'}", {"'2024-01-01'"}, {"'1999-01-01'"}},
        {"{'anyOf':[{'type':'string','format':'uuid'},{'type':'string','format':'date'}]}",
         {"'2024-01-01'"},
         {"'x'"}},
        {"{'type':'string','format':'colour'}", {"'red'"}, {"1"}},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        judge_quoted(&cases[i], 1, &(struct constrain_schema_options){.generate = true});
        if (i < 12) { /* only an annotation for texts that are given */
            const struct judged all = {cases[i].schema, {cases[i].refused[0]}, {NULL}};
            judge_quoted(&all, 1, &(struct constrain_schema_options){.generate = false});
        }
    }
}

static void what_is_not_generated_as_the_schema_says_is_noted(void **state)
{
    (void)state;
    struct constrain_notes notes = {0};
    const struct constrain_schema_options generate = {.generate = true, .notes = &notes};
    static const struct judged unique = {
        "{'type':'array','uniqueItems':true}", {"['a','a']"}, {"1"}};
    judge_quoted(&unique, 1, &generate);
    assert_int_equal(notes.count, 1);
    assert_non_null(strstr(notes.text, "line 1, column 31: 'uniqueItems' is not enforced"));
    /* a pattern that is not understood excludes the strings, also where it is negated */
    static const struct judged cases[] = {
        {"{'anyOf':[{'type':'integer'},{'type':'string','pattern':'a(?=b)'}]}",
         {"1"},
         {"'ab'", "'x'"}},
        {"{'not':{'type':'string','pattern':'a(?=b)'}}", {"1", "null"}, {"'ab'", "'x'"}},
        {"{'oneOf':[{'type':['string','null'],'pattern':'a(?=b)'},{'type':'integer'}]}",
         {"1", "null"},
         {"'ab'", "'x'"}},
        {"{'properties':{'a':{'type':'string','pattern':'a(?=b)'},'b':{}}}",
         {"{'b':1}"},
         {"{'a':'ab'}"}},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        notes.count = 0;
        judge_quoted(&cases[i], 1, &generate);
        assert_int_equal(notes.count, 1);
        assert_non_null(strstr(notes.text, "'pattern': line 1, column "));
        assert_non_null(strstr(notes.text, ": strings under it are not generated"));
    }
    static const char *const none[] = {
        "{\"type\":\"string\",\"pattern\":\"a(?=b)\"}",
        "{\"required\":[\"a\"],\"type\":\"object\",\"properties\":{\"a\":"
        "{\"type\":\"string\",\"pattern\":\"a(?=b)\"}}}"};
    for (int i = 0; i < 2; i++) {
        struct base_error err = BASE_ERROR_INIT;
        assert_null(constraint_from_schema(none[i], strlen(none[i]), &generate, &err));
        assert_non_null(strstr(err.text, "no value can be generated: 'pattern': line 1, column "));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(id_of_draft_4_names_a_schema_or_a_place_in_it),
        cmocka_unit_test(older_drafts_and_wrappers_are_read),
        cmocka_unit_test(generated_objects_have_only_named_properties),
        cmocka_unit_test(names_come_in_the_order_of_the_schema),
        cmocka_unit_test(known_formats_are_generated_only),
        cmocka_unit_test(what_is_not_generated_as_the_schema_says_is_noted),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

# infer run under grammars, schemas, expressions and choices: with tiny models of random weights, one
# for each kind of vocabulary, which would not generate such texts without a constraint.
. test/cli/lib.sh
make_model=$(dirname "$INFER")/test/tool_make_model
[ -x "$make_model" ] || { echo 'skip t_constrain.sh: tool_make_model is not built'; finish; exit; }
"$make_model" "$work/bpe.gguf" tokens=bpe >/dev/null
"$make_model" "$work/spm.gguf" tokens=spm vocab=320 >/dev/null
schema='{"type":"object","properties":{"name":{"type":"string","maxLength":20},"age":{"type":"integer",
"minimum":0,"maximum":150},"tags":{"type":"array","items":{"enum":["red","green"]},"minItems":1}},
"required":["name","age","tags"],"additionalProperties":false}'

# accepted OPTION VALUE: `check` accepts the output.
accepted() {
    cp "$work/out" "$work/text"
    "$INFER" check "$@" -f "$work/text" </dev/null 2>"$work/why" ||
        bad "infer $last: '$(head -c 300 "$work/text")': $(head -c 200 "$work/why")"
}

for kind in bpe spm; do
    INFER_MODEL=$work/$kind.gguf
    export INFER_MODEL

    begin "${kind}_texts_are_accepted"
    for seed in 1 2 3; do
        infer -p x -n 150 -s $seed --temp 2 --json-schema "$schema"
        status 0
        accepted --json-schema "$schema"
        infer -p x -n 60 -s $seed --temp 2 --json-object
        status 0
        accepted --json-object
        infer -p x -n 60 -s $seed --temp 2 --grammar 'root ::= "(" root ")" root | [a-z]?'
        status 0
        accepted --grammar 'root ::= "(" root ")" root | [a-z]?'
        infer -p x -n 60 -s $seed --temp 2 --regex '(é|日本|\p{Lu}){3}[^a]{2,5}'
        status 0
        accepted --regex '(é|日本|\p{Lu}){3}[^a]{2,5}'
    done

    begin "${kind}_names_that_count_do_not_repeat" # JSON readers count a duplicate name once
    named='{"type":"object","properties":{"a":{"type":"null"},"b":{"type":"null"}},"minProperties":3,
        "additionalProperties":{"type":"null"},"propertyNames":{"pattern":"^[a-c]$"}}'
    for seed in 1 2 3 4 5 6; do
        infer -p x -n 100 -s $seed --temp 3 --json-schema "$named"
        status 0
        accepted --json-schema "$named"
        for name in a b c; do
            [ "$(grep -o "\"$name\"" "$work/out" | wc -l)" -eq 1 ] || bad "$(cat "$work/out")"
        done
    done
    usage "'minProperties' demands more names than the schema has and one" \
        -p x --json-schema '{"type":"object","minProperties":2}'
    infer -p x -n 60 --json-schema '{"type":"object","minProperties":1}'
    status 0

    begin "${kind}_names_come_in_the_order_of_the_schema"
    ordered='{"properties":{"z":{"type":"null"},"m":{"type":"null"},"a":{"type":"null"}},"type":"object",
        "required":["a","m","z"]}'
    others=0
    for seed in 1 2 3 4 5 6; do
        infer -p x -s $seed --temp 3 --json-schema "$ordered"
        status 0
        [ "$(tr -d ' ' <"$work/out")" = '{"z":null,"m":null,"a":null}' ] || bad "$(cat "$work/out")"
        infer -p x -s $seed --temp 3 --json-schema "$ordered" --schema-any-order
        accepted --json-schema "$ordered"
        [ "$(tr -d ' ' <"$work/out")" = '{"z":null,"m":null,"a":null}' ] || others=1
    done
    [ $others -eq 1 ] || bad '--schema-any-order changes nothing'

    begin "${kind}_json_is_compact_or_in_lines"
    for seed in 1 2 3; do
        infer -p x -n 60 -s $seed --temp 2 --json-schema '{"items":{"items":{"enum":[1,{"a":null}]},"type":"array"},
            "type":"array"}'
        grep -q '[^,:] ' "$work/out" && bad "white space: $(cat "$work/out")"
        [ "$(wc -l <"$work/out")" -eq 0 ] || bad "lines: $(cat "$work/out")"
    done
    infer -p x --json-schema '{"const":{"a":[1,{"b":"x, {\"y\": [1 ]}\\"}],"c":{},"d":[],"e":-0.50}}' --json-indent 2
    status 0
    printf '%s\n' '{' '  "a": [' '    1,' '    {' '      "b": "x, {\"y\": [1 ]}\\"' '    }' '  ],' '  "c": {},' \
        '  "d": [],' '  "e": -0.50' '}' >"$work/lines"
    printf '%s' "$(cat "$work/lines")" | cmp -s - "$work/out" || bad "$(cat "$work/out")"
    infer -p x --json-schema '{"const":[[1]]}' --json-indent 0 --json
    out_like '"text":"\[\\n\[\\n1\\n\]\\n\]"'
    usage 'needs --json-schema or --json-object' -p x --json-indent 2

    begin "${kind}_formats_are_kept"
    for seed in 1 2 3; do
        infer -p x -s $seed --temp 2 --json-schema '{"type":"string","format":"date"}'
        out_like '^"[0-9]{4}-(0[1-9]|1[0-2])-[0-3][0-9]"$'
    done
    infer -p x -n 60 --json-schema '{"type":"string","format":"date","maxLength":3}' --schema-lenient format
    status 0

    begin "${kind}_what_cannot_be_enforced_is_a_remark"
    infer -p x -n 60 --json-schema '{"type":"array","items":{"type":"integer"},"uniqueItems":true}'
    status 0
    err_like '^infer: --json-schema: line 1, column [0-9]+: .uniqueItems. is not enforced: '
    [ "$(wc -l <"$work/err")" -eq 1 ] || bad "$(cat "$work/err")"
    infer -p x -n 60 --json-schema '{"type":["integer","string"],"pattern":"a(?=b)"}'
    status 0
    out_like '^-?[0-9]'
    err_like '^infer: --json-schema: .pattern.: line 1, column [0-9]+: look-ahead .*: strings under it are not generated$'
    usage 'no value can be generated: .pattern.: ' -p x --json-schema '{"type":"string","pattern":"a(?=b)"}'
    infer -p x -n 60 --json-schema '{"type":"array","uniqueItems":true}' --schema-lenient uniqueItems
    err ''

    begin "${kind}_numbers_of_the_schema_are_written_as_it_has_them"
    for number in 3 -0.50 3.141592653589793 1e-10 1e20 12345678901234567; do
        infer -p x -n 60 --json-schema "{\"const\":$number}"
        status 0
        [ "$(cat "$work/out")" = "$number" ] || bad "$(cat "$work/out") for $number"
    done
    usage "'minimum' leaves no number that can be generated" \
        -m /nothing -p x --json-schema '{"type":"number","minimum":1e17}'

    begin "${kind}_choices_end_by_themselves" # no token can follow, so no end-of-text token is needed
    infer -p x --choices 'yes,no,perhaps' --ignore-eos --json
    status 0
    out_like '"text":"(yes|no|perhaps)","stop":"constraint"'
    infer -p x --choices ' yes, no'
    out_like '^ (yes|no)$'

    begin "${kind}_the_first_token_too" # a tokenizer may drop the space of the very first one
    start=$([ $kind = spm ] || echo x) # the byte-level vocabulary has no BOS token
    infer -p "$start" --choices ' yes, no'
    status 0
    out_like '^ (yes|no)$'
    infer -p "$start" --choices 'yes,no'
    status 0
    out_like '^(yes|no)$'

    begin "${kind}_a_limit_ends_the_text_in_time"
    for n in 60 80 100 140; do
        infer -p x -n $n -s 5 --temp 3 --json-schema "$schema"
        status 0
        accepted --json-schema "$schema"
    done
    infer -p x -n 60 -c 70 -s 5 --temp 3 --json-schema "$schema"
    status 0
    accepted --json-schema "$schema"

    begin "${kind}_a_limit_that_cannot_be_met_is_status_6"
    infer -p x -n 3 --json-schema "$schema"
    status 6
    err_line '^infer: --predict ended the text after 3 tokens, before the constraint was satisfied$'
    [ -s "$work/out" ] || bad 'the part that there is was not written'
    infer -p x -n 3 --json-schema "$schema" --json
    status 6
    out_like '"tokens":3,.*"stop":"limit"'
    infer -p x -n 0 --regex a
    status 6
    infer -p x -n 0 --regex 'a?'
    status 0
    infer -p x -n 4 --regex 'a+' # every prefix is complete
    status 0

    begin "${kind}_a_stop_text_ends_it_too"
    infer -p x -n 50 --regex 'a{5}' --stop aaa
    status 6
    out ''
    err_line 'a --stop text ended the text'
    infer -p x -n 50 --regex 'b?a{5}' --stop zzz
    status 0
    infer -p x -n 50 --grammar 'root ::= "b" | "bcc"' --stop cc --ignore-eos
    status 0
    out 'b'

    begin "${kind}_empty_texts"
    infer -p x --regex ''
    status 0
    out ''
    infer -p x --regex '' --json
    out_like '"tokens":0,"text":"","stop":"constraint"'

    begin "${kind}_the_same_bytes_each_time"
    infer -p x -n 40 -s 9 --json-object -t 1
    cp "$work/out" "$work/once"
    infer -p x -n 40 -s 9 --json-object -t 2
    cmp -s "$work/out" "$work/once" || bad 'two runs differ'
done

begin a_real_model_satisfies_its_constraint
if [ -n "$MODEL" ]; then
    infer -m "$MODEL" -p 'The capital of France is' --temp 0 --choices ' London, Paris, Rome'
    status 0
    out ' Paris'
    infer -m "$MODEL" -p 'A red apple as JSON: ' -n 40 --temp 0 --json-schema "$schema"
    status 0
    accepted --json-schema "$schema"
else
    skip 'no model'
fi

finish

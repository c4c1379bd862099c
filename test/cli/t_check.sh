# test/cli/t_check.sh: `infer check`: texts against grammars, schemas and expressions.
. test/cli/lib.sh

begin an_accepted_text_prints_nothing
infer check --json-schema '{"type":"object","required":["n"]}' -p '{"n":1}'
status 0
out ''
err ''

begin a_refused_text_has_its_position
infer check --regex 'a[a-z]+' -p 'a1'
status 1
out ''
err_line 'not accepted: unexpected text at line 1, column 2 \(byte 1\)'

begin a_text_that_ends_too_early_is_named
infer check --json-object -p '{"a":1'
status 1
err_line 'not accepted: the text ends too early at line 1, column 7'

begin texts_come_from_standard_input_and_files
printf 'root ::= "yes" | "no"\n' >"$work/answer.gbnf"
printf 'no' >"$work/text"
input=$work/text
infer check --grammar "$work/answer.gbnf"
status 0
infer check --choices 'yes,maybe'
status 1

begin a_bad_grammar_is_a_usage_error
infer check --grammar 'root ::= "a" b' -p x
status 2
err_line '--grammar: line 1, column 14: .*b.* is not defined'

begin a_named_token_is_no_text
infer check --grammar 'root ::= "a" !<|im_start|>' -p a
status 2
err_line 'line 1, column 14: the token <.im_start.> cannot be checked in a text'

begin a_wrong_constraint_is_named_by_its_file_or_option
printf '{"type":"obj"}' >"$work/wrong.json"
infer check --json-schema "$work/wrong.json" -p x
status 2
err_line 'wrong.json: line 1, column 9: '
infer check --json-schema "$work/missing.json" -p x
status 2
err_line "--json-schema: '.*missing.json' is no file that can be read, and as text: line 1"
infer check --regex '(' -p x
status 2
err_line '--regex: line 1, column 2'

begin what_cannot_be_enforced_is_refused
infer check --json-schema '{"uniqueItems":true,"items":{"type":"string"}}' -p '[]'
status 2
err_line "'uniqueItems' is not supported but for items of at most 64 plain values \(enum, const, type\) \(--schema-lenient"
infer check --json-schema '{"uniqueItems":true}' --schema-lenient uniqueItems -p '[]'
status 0

begin check_accepts_any_order_white_space_and_format
infer check --json-schema '{"properties":{"a":{"format":"date"},"b":{}},"required":["b"]}' -p '{ "b" :
	1, "a":"x" }'
status 0
out ''
err ''

begin flags_are_refused_by_name
usage 'column 3: flags and atomic groups, \(\?\.\.\.\), are not supported' check --regex 'x(?i)a' -p xa

begin an_empty_choice_is_refused
usage '--choices: choice 1 is empty: give texts' check --choices '' -p ''
usage '--choices: choice 2 is empty: there is a comma too many' check --choices 'a,,b' -p a
usage '--choices: choice 3 is empty: there is a comma too many' check --choices 'a,b,' -p a
usage '--choices: choice 1 is empty' -m "$work/none" -p x --choices ',a'

begin strings_of_the_largest_allowed_length_are_accepted
awk 'BEGIN { printf "\""; for (i = 0; i < 65536; i++) printf "\303\251"; printf "\"" }' >"$work/long"
infer check --json-schema '{"minLength":65536,"maxLength":65536}' -f "$work/long"
status 0
infer check --json-schema '{"maxLength":65535}' -f "$work/long"
status 1
usage 'maxLength. is more than 1073741824' check --json-schema '{"maxLength":1073741825}' -p x

begin contradictions_are_usage_errors
infer check --regex a --choices b -p a
status 2
infer check -p a
status 2
err_line 'nothing to check against'
infer check --regex a --schema-lenient not -p a
status 2

finish

# infer score with a small model: probabilities of given continuations.
. test/cli/lib.sh
[ -n "$MODEL" ] || { echo 'skip t_score.sh: no model'; finish; exit; }
INFER_MODEL=$MODEL
export INFER_MODEL
lines=$work/lines
score() { # with $lines as its standard input
    input=$lines
    infer score "$@"
    input=''
}
france='The capital of France is'

begin one_prompt_has_a_table
infer score -p "$france" --continuation ' Paris.' --continuation ' London, of course'
status 0
err ''
out_like '^ +logprob +per token +tokens +bytes  continuation$'
out_like '^ +-[0-9.]{8} +-[0-9.]{8} +2 +7  " Paris\."$'
out_like '^ +-[0-9.]+ +-[0-9.]+ +[0-9] +18  " London, of course"$'
[ "$(wc -l <"$work/out")" -eq 3 ] || bad 'not three lines'
printf '%s' "$france" >"$work/prompt"
cp "$work/out" "$work/first"
infer score -f "$work/prompt" --continuation ' Paris.' --continuation ' London, of course'
cmp -s "$work/out" "$work/first" || bad 'another table from a file'
infer score -e -p 'a\x20b' --continuation '\x20c' --json
cp "$work/out" "$work/first"
infer score -p 'a b' --continuation ' c' --json
cmp -s "$work/out" "$work/first" || bad 'another object from escapes'

begin probabilities_are_those_of_run
infer -p "$france" -n 2 --temp 0 --json --logprobs 0
want=$(tr ',{}' '\n\n\n' <"$work/out" | sed -n 's/^"logprob":\(.*\)$/\1/p' | tr '\n' ' ')
infer score -p "$france" --continuation ' Paris.' --json
status 0
[ "$want" = "$(sed 's/.*"logprobs":\[\([^]]*\)\].*/\1/; s/,/ /g' "$work/out") " ] ||
    bad "run says '$want', score $(cat "$work/out")"
out_like '^\{"prompt_tokens":5,"continuations":\[\{"logprob":-[0-9.]+,"tokens":2,"bytes":7,"logprobs":\[-[0-9.]+,-[0-9.]+\],"ids":\[7042,30\]\}\]\}$'

begin a_line_in_a_line_out
cat >"$lines" <<'END'
{"id":"a","prompt":"The capital of France is","continuations":[" Paris."," London."]}

{"id":{"n": 2e0},"prompt":"The capital of Italy is","continuations":[" Rome."]}
{"messages":[{"role":"user","content":"Is water wet?"}],"continuations":["Yes","No"]}
END
score
status 0
err ''
[ "$(wc -l <"$work/out")" -eq 3 ] || bad "not three lines: $(cat "$work/out")"
out_like '^\{"line":1,"id":"a","prompt_tokens":5,"continuations":\[\{"logprob":'
out_like '^\{"line":3,"id":\{"n": 2e0\},"prompt_tokens":5,'
out_like '^\{"line":4,"prompt_tokens":[0-9]+,'
cp "$work/out" "$work/first"
for way in '-np 1' '-np 3 -b 5' '-t 1 -np 200' '--no-sandbox'; do
    # shellcheck disable=SC2086
    score $way
    cmp -s "$work/out" "$work/first" || bad "other bytes with $way"
done
infer score -f "$lines"
cmp -s "$work/out" "$work/first" || bad 'other bytes from a file'
sed -n 3p "$lines" >"$work/one" # alone
infer score -f "$work/one"
[ "$(sed -n 's/.*"prompt_tokens"//p' "$work/out")" = "$(sed -n '2s/.*"prompt_tokens"//p' "$work/first")" ] ||
    bad 'a line alone has another answer'
infer score -p "$france" --continuation ' Paris.' --continuation ' London.' --json
[ "$(sed 's/.*"prompt_tokens"//' "$work/out")" = "$(sed -n '1s/.*"prompt_tokens"//p' "$work/first")" ] ||
    bad 'the same prompt on the command line has another answer'

begin consecutive_lines_share_their_beginning
{
    i=0
    while [ $i -lt 9 ]; do
        echo '{"prompt":"Examples: one two three four five six seven eight nine ten eleven. Number '$i'","continuations":[" is small"," is large"]}'
        i=$((i + 1))
    done
} >"$lines"
score -v
status 0
err_like '^infer: 9 lines; [0-9]+ tokens evaluated of [0-9]+ that they have$'
sed -n 's/^infer: 9 lines; \([0-9]*\) tokens evaluated of \([0-9]*\) .*/\1 \2/p' "$work/err" >"$work/counts"
read -r done of <"$work/counts"
[ $((done * 4)) -lt "$of" ] || bad "$done of $of tokens were evaluated"

begin whole_texts_are_scored_after_their_common_beginning
cat >"$lines" <<'END'
{"texts":["The capital of France is Paris.","The capital of France is London."]}
{"prompt":"The capital of France is","continuations":[" Paris."," London."]}
{"texts":["The capital"]}
{"prompt":"The","continuations":[" capital"]}
{"texts":["The cat","The cat sat","The"]}
END
score
status 0
for i in 1 3; do
    texts=$(sed -n "${i}s/.*\"prompt_tokens\"//p" "$work/out" | sed 's/"bytes":[0-9]*,//g')
    parts=$(sed -n "$((i + 1))s/.*\"prompt_tokens\"//p" "$work/out" | sed 's/"bytes":[0-9]*,//g')
    [ -n "$texts" ] && [ "$texts" = "$parts" ] || bad "line $i: $texts, in parts $parts"
done
# No text may be without a token that is scored; before the first one is that which separates texts.
out_like '^\{"line":5,"prompt_tokens":1,"continuations":\[\{"logprob":-[0-9.]+,"tokens":2,.*"tokens":3,.*"tokens":1,'

begin a_wrong_line_does_not_stop_the_others
cat >"$lines" <<'END'
nothing
[1]
{"continuations":["a"]}
{"prompt":7,"continuations":["a"]}
{"prompt":"x"}
{"prompt":"x","continuations":[]}
{"prompt":"x","continuations":["a",7]}
{"id":5,"prompt":"x","continuations":["a",""]}
{"prompt":"","continuations":["a"]}
{"prompt":"x","continuations":["a"],"temp":0}
{"texts":["a",""]}
{"prompt":"x","texts":["a"]}
{"messages":[{"role":"user"}],"continuations":["a"]}
{"prompt":"x","continuations":["a"]}
END
score
status 1
err_line '12 of 14 lines failed: their answers have an "error"'
[ "$(grep -c '"status":2,"error":' "$work/out")" -eq 12 ] || bad "$(cat "$work/out")"
out_like '^\{"line":1,"status":2,"error":"JSON: '
out_like '^\{"line":2,"status":2,"error":"the line is not a JSON object"\}$'
out_like '^\{"line":3,"status":2,"error":"the line has neither a prompt nor messages"\}$'
out_like '^\{"line":4,"status":2,"error":"prompt: is no text"\}$'
out_like '^\{"line":5,"status":2,"error":"continuations: is not a list of texts"\}$'
out_like '^\{"line":8,"id":5,"status":2,"error":"continuation 2 is empty"\}$'
out_like '^\{"line":9,"prompt_tokens":1,'
out_like '^\{"line":10,"status":2,"error":"temp: is not a member of a line'
out_like '^\{"line":11,"status":2,"error":"text 2 is empty"\}$'
out_like '^\{"line":12,"status":2,"error":"texts: are whole: without prompt, messages and continuations"\}$'
out_like '^\{"line":14,"prompt_tokens":1,"continuations":'
awk 'BEGIN { printf "{\"prompt\":\""; for (i = 0; i < 40; i++) printf "a b "; print "\",\"continuations\":[\"c\"]}" }' >"$lines"
score -c 30
status 1
out_like '^\{"line":1,"status":5,"error":"the prompt and continuation 1 have [0-9]+ tokens and the context holds 30'

begin plain_lines_are_scored
printf 'France\nItaly\r\n\n' >"$lines"
score --each 'The capital of {} is' --continuation ' Paris.' --continuation ' Rome.'
status 0
[ "$(wc -l <"$work/out")" -eq 3 ] || bad "not three lines: $(cat "$work/out")"
cp "$work/out" "$work/first"
infer score -p 'The capital of Italy is' --continuation ' Paris.' --continuation ' Rome.' --json
[ "{$(sed -n '2s/^{"line":2,//p' "$work/first")" = "$(cat "$work/out")" ] || bad "$(cat "$work/first")"
infer score -f "$lines" -e --each 'The\x20capital of {} is' --continuation '\x20Paris.' --continuation ' Rome.'
cmp -s "$work/out" "$work/first" || bad 'other bytes from a file with escapes'
usage '--each: has no .. for' score --each x --continuation y
usage '--each: needs --continuation' score --each '{}'

begin joined_texts_have_the_tokens_of_one_text
infer score -p 'The capital of France is' --continuation ' Paris.' --json
cp "$work/out" "$work/want"
infer score -p 'The capital of France is ' --continuation 'Paris.' --json --joined
status 0
sed 's/"bytes":6/"bytes":7/' "$work/out" >"$work/joined" # those of its own text
cmp -s "$work/joined" "$work/want" || bad "$(cat "$work/out")"
infer score -p 'The ca' --continuation 'pital of' --json --joined
ids=$(sed 's/.*"ids":\[\([0-9,]*\)\].*/\1/' "$work/out" | tr ',' ' ')
[ "$("$INFER" tokenize 'The capital of' </dev/null)" = "$("$INFER" tokenize 'The ca' </dev/null | cut -d ' ' -f 1) 3575 $ids" ] ||
    bad "ids $ids: $(cat "$work/out")"
infer score -p '' --continuation Paris --json --joined
status 0
infer score -p 'Par' --continuation 'is' --joined
status 2
err_line 'continuation 1 adds no token'
usage '--joined: contradicts --chat' score -p x --continuation y --joined --chat

begin wrong_options_are_usage_errors
usage '-p: needs --continuation|--prompt: needs --continuation' score -p x
usage 'no/such: cannot read' score -f "$work/no/such"
usage '--continuation: is empty' score -p x --continuation ''
infer score </dev/null
status 0
out ''

begin messages_are_scored_through_the_template
infer score --chat -p 'Is water wet?' --continuation Yes --continuation No --json
status 0
printf '%s\n' '{"messages":[{"role":"user","content":"Is water wet?"}],"continuations":["Yes","No"]}' >"$lines"
cp "$work/out" "$work/first"
score
[ "$(sed 's/^{"line":1,/{/' "$work/out")" = "$(cat "$work/first")" ] || bad 'messages in a line are another prompt'

finish

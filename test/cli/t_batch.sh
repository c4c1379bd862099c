# infer batch with a small model: a line of output for each line of input; each answer equals that of
# `infer run`.
. test/cli/lib.sh
[ -n "$MODEL" ] || { echo 'skip t_batch.sh: no model'; finish; exit; }
INFER_MODEL=$MODEL
export INFER_MODEL
# Where answers are only compared with each other; with a chat template.
any=$(any_model) n_call=24 # tokens of a call
if [ "$any" != "$MODEL" ]; then
    printf '%s' "{% for m in messages %}{{ '<|im_start|>' + m.role + '\n' + m.content + '<|im_end|>\n' }}{% endfor %}" \
        "{% if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}{% endif %}" >"$work/chat.jinja"
    "$INFER" edit "$any" --template "$work/chat.jinja" -o "$work/any_chat.gguf"
    any=$work/any_chat.gguf n_call=120
fi
lines=$work/lines
short=${quick:+5} # tokens of a text under sanitizers, where each takes a tenth of a second
n_reply=${quick:+8} n_reply=${n_reply:-40} # tokens of an answer
batch() { # with $lines as its standard input
    input=$lines
    infer batch "$@"
    input=''
}

# member NAME: that member of each line of the output, as JSON, one per line; "-" if it is missing.
member() {
    python3 -c 'import json, sys
for line in open(sys.argv[2], encoding="utf-8"):
    value = json.loads(line)
    print(json.dumps(value[sys.argv[1]]) if sys.argv[1] in value else "-")' "$1" "$work/out"
}
has_python() { python3 -c 1 2>/dev/null; }

begin an_id_comes_back_byte_for_byte
cat >"$lines" <<'END'
{"id":12345678901234567890,"prompt":"a"}
{"prompt":"a", "id" : 0.1 }
{"id":1e2,"prompt":"\"id\":7","x":{"id":8}}
{"x":["id",{"id":9}],"id": {"a" : [-0, 1.50, "\u0041\"}"]}	,"prompt":"a"}
{"\u0069d":0.10,"prompt":"a"}
END
batch --predict 0
printf '%s\n' 12345678901234567890 0.1 1e2 '{"a" : [-0, 1.50, "\u0041\"}"]}' 0.10 >"$work/ids"
sed 's/^{"line":[0-9]*,"id":\(.*\),"\(text\|status\)".*/\1/' "$work/out" >"$work/got"
cmp -s "$work/got" "$work/ids" || bad "other ids: $(cat "$work/got")"

begin a_note_about_the_schema_is_printed_once
printf '%s\n' '{"prompt":"a"}' '{"prompt":"a","seed":1,"json_indent":1}' >"$lines"
batch -n 20 --temp 0 --json-schema '{"type":"array","items":{"type":"integer","maximum":900},"uniqueItems":true,"minItems":1}'
status 0
err_line '^infer: --json-schema: line 1, column [0-9]+: .uniqueItems. is not enforced: '
out_like '^\{"line":2,"text":"\[\\n 1?'

begin numbers_of_options_may_have_any_form
printf '%s\n' '{"prompt":"a","predict":1,"temp":0e0,"top_p":9.0E-1}' '{"prompt":"a","seed":18446744073709551615}' \
    '{"prompt":1e2}' '{"messages":[12345678901234567890]}' '1e2' >"$lines"
batch
out_like '^\{"line":1,"text":"[^"]+","stop":"limit"'
out_like '"line":2,.*seed: is not a whole number from -1'
out_like '"line":3,.*prompt: is no text'
out_like '"line":4,.*message 1: it is not an object'
out_like '"line":5,.*the line is not a JSON object'

begin a_line_in_a_line_out
cat >"$lines" <<'END'
{"id":"a","prompt":"The capital of France is","predict":2,"temp":0}

{"id":[1,{"b":null}],"prompt":"The capital of France is","n_predict":8,"temperature":0,"stop":["\n"]}
{"messages":[{"role":"user","content":"What is 2+2?"}],"temp":0,"seed":7}
END
batch
status 0
err ''
printf '%s\n' '{"line":1,"id":"a","text":" Paris.","stop":"limit","stop_text":null,"prompt_tokens":5,"tokens":2,"chat":false,"seed":0}' \
    '{"line":3,"id":[1,{"b":null}],"text":" Paris.","stop":"stop","stop_text":"\n","prompt_tokens":5,"tokens":3,"chat":false,"seed":0}' \
    '{"line":4,"text":"The answer to this classic math problem is 4.","message":{"role":"assistant","content":"The answer to this classic math problem is 4."},"stop":"eos","stop_text":null,"prompt_tokens":37,"tokens":12,"chat":true,"seed":7}' \
    >"$work/want_lines"
cmp -s "$work/out" "$work/want_lines" || bad "not as expected: $(cat "$work/out")"
cp "$work/out" "$work/first"
for more in '-np 1' '-np 5 -b 7' '-np 2' '-t 1'; do # whatever runs concurrently
    case $quick,$more in ?*,-np\ 2 | ?*,-t*) continue ;; esac
    # shellcheck disable=SC2086
    batch $more
    cmp -s "$work/out" "$work/first" || bad "$more: $(cat "$work/out")"
done
head -n 1 "$work/first" >"$work/want_lines"
printf '%s' "$(head -n 1 "$lines")" >"$work/open" # the last line has no line end
infer batch -f "$work/open"
cmp -s "$work/out" "$work/want_lines" || bad "-f: $(cat "$work/out")"
input=$work/open
infer batch
cmp -s "$work/out" "$work/want_lines" || bad "no line end: $(cat "$work/out")"
input=''

begin drafts_change_no_byte # when a single text is generated
n_draft=${quick:+16}
cat >"$lines" <<END
{"prompt":"one two three four one two three four one two","predict":${n_draft:-40},"temp":0,"ignore_eos":true}
{"prompt":"one two three","choices":["one two three four one","five"]}
END
batch --draft off
status 0
cp "$work/out" "$work/plain"
for more in '-np 1 --draft ngram' '-np 2 --draft ngram' ''; do
    # shellcheck disable=SC2086
    batch $more -v
    status 0
    cmp -s "$work/out" "$work/plain" || bad "$more: $(cat "$work/out")"
    [ -z "$more" ] || err_like '^infer: guesses: [1-9][0-9]* of [1-9][0-9]* were right'
done
printf '{"prompt":"x","draft":"ngram"}\n' >"$lines"
batch
status 1
out_like '"error":"draft: is an option of all lines: give it on the command line"'
batch --draft "$MODEL"
status 2
err_like 'auto.*ngram.*off'

begin an_empty_input_has_an_empty_output
: >"$lines"
batch
status 0
out ''
err ''
printf '\n  \n' >"$lines"
batch
status 0
out ''

begin a_line_comes_before_the_command_and_the_command_before_a_variable
cat >"$lines" <<'END'
{"prompt":"The capital of France is"}
{"prompt":"The capital of France is","predict":null,"choices":null}
{"prompt":"The capital of France is","regex":"[0-9]","predict":1}
{"prompt":"The capital of France is","choices":["cat"]}
{"prompt":"The capital of France is","json_object":false,"predict":1}
{"prompt":"The capital of France is","regex":"The [0-9]","stop":[]}
{"prompt":"The capital of France is","chat":true,"no_special":false,"predict":1}
END
INFER_PREDICT=9 INFER_STOP=x INFER_GRAMMAR='root ::= "z"' batch --choices yes --stop The --temp 0 -n 3
status 0
sed 's/^{"line":\([0-9]\),"text":"\([^"]*\)".*"tokens":\([0-9]*\),"chat":\([a-z]*\).*/\1 \2 \3 \4/' "$work/out" >"$work/got"
same "$work/got" '1 yes 2 false\n2 yes 2 false\n3 1 1 false\n4 cat 2 false\n5 yes 1 false\n6 The 2 3 false\n7 yes 1 true\n'
printf '{"prompt":"x","schema_open":true}\n{"prompt":"x","choices":["a"],"predict":1}\n' >"$lines"
batch --json-schema '{"enum":[1]}' --json-indent 1 --temp 0 # what an option needs may be the command's
status 0
out_like '"line":1,"text":"1"'
out_like '"line":2,"text":"a"' # an option of the command that lacks what it needs has no effect

begin the_options_of_one_text_are_members_of_a_line
members='temp top_k top_p min_p typical top_n_sigma xtc_probability xtc_threshold repeat_penalty repeat_last_n
    frequency_penalty presence_penalty dry_multiplier dry_base dry_allowed_length dry_penalty_last_n dynatemp_range
    dynatemp_exp mirostat mirostat_ent mirostat_lr adaptive_target predict n_predict temperature typical_p
    top_nsigma seed json_indent reasoning_budget logprobs'
: >"$lines"
for name in $members; do printf '{"prompt":"x","%s":"?"}\n{"prompt":"x","%s":1,"predict":0}\n' "$name" "$name"; done | sed 's/"predict":1,"predict":0/"predict":0/' >>"$lines"
batch
[ "$(grep -c '"error":".*is not a\( whole\)\? number' "$work/out")" -eq "$(echo $members | wc -w)" ] || bad "$(cat "$work/out")"
[ "$(grep -c '"text":""\|"error":"--json-indent: needs' "$work/out")" -eq "$(echo $members | wc -w)" ] || bad "$(cat "$work/out")"
for name in ignore_eos chat raw lossy no_bos no_special special escape json_object schema_open schema_any_order; do
    printf '{"prompt":"x","%s":5}\n' "$name"
done >"$lines"
batch
[ "$(grep -c 'is not true or false"}$' "$work/out")" -eq 11 ] || bad "$(cat "$work/out")"
for name in suffix system tool_choice continue template reasoning grammar regex samplers stop logit_bias dry_sequence_breaker \
    schema_lenient template_var tools json_schema choices; do
    printf '{"prompt":"x","%s":5}\n' "$name"
done >"$lines"
batch
[ "$(grep -c 'is not a \(text\|list\|schema\)' "$work/out")" -eq 17 ] || bad "$(cat "$work/out")"
for name in model file each csv lines column shard n_parallel draft output resume unordered json ctx_size batch_size threads \
    cache_type_k cache cache_size isa blas override_kv rope_scaling verbose help version; do
    printf '{"prompt":"x","%s":1}\n' "$name"
done >"$lines"
batch
[ "$(grep -c ': is an option of all lines: give it on the command line"}$' "$work/out")" -eq "$(wc -l <"$lines")" ] || bad "$(cat "$work/out")"

begin a_wrong_line_does_not_stop_the_others
cat >"$lines" <<'END'
nonsense
{"prompt":"x","tmep":1}
{"id":3,"prompt":"x","threads":1}
[]
{"id":5}
{"prompt":5}
{"prompt":"x","temp":"hot"}
{"prompt":"x","predict":1.5}
{"prompt":"x","top_k":-1}
{"prompt":"x","max_tokens":3}
{"prompt":"x","regex":"["}
{"prompt":"x","regex":"a","choices":["a"]}
{"prompt":"x","raw":true,"system":"You are a cat."}
{"messages":[]}
{"messages":[{"content":"x"}]}
{"prompt":"x","choices":["a",5]}
{"prompt":"x","json_schema":7}
{"prompt":"","chat":true}
{"prompt":"x","stop":"a\u0000b"}
{"messages":"x"}
{"messages":[{"role":"user","content":"x","tool_call_id":5}]}
{"prompt":null,"messages":null}
{"prompt":"x","escape":"yes"}
{"prompt":"x","chat":true,"reasoning":"loud"}
{"prompt":"x","chat":true,"template":"/etc/passwd"}
{"prompt":"x","chat":true,"template":"{{ x"}
{"prompt":"x","chat":true,"template_var":{"none":1}}
{"prompt":"x","chat":true,"tools":"/etc/passwd"}
{"prompt":"x","chat":true,"tools":[5]}
{"prompt":"x","chat":true,"tools":{}}
{"prompt":"x","raw":true,"tools":[]}
{"prompt":"The capital of France is","predict":2,"temp":0}
END
batch
status 1
err 'infer: 31 of 32 lines failed: their answers have an "error"\n'
cat >"$work/errors" <<'END'
{"line":1,"status":2,"error":"JSON: line 1, column 8: invalid token near 'nonsense'"}
{"line":2,"status":2,"error":"tmep: is not a member of a line: prompt, messages, id or an option of one text"}
{"line":3,"id":3,"status":2,"error":"threads: is an option of all lines: give it on the command line"}
{"line":4,"status":2,"error":"the line is not a JSON object"}
{"line":5,"id":5,"status":2,"error":"the line has neither a prompt nor messages"}
{"line":6,"status":2,"error":"prompt: is no text"}
{"line":7,"status":2,"error":"--temp: is not a number"}
{"line":8,"status":2,"error":"--predict: is not a whole number"}
{"line":9,"status":2,"error":"--top-k: '-1' is not a whole number from 0 to 2147483647"}
{"line":10,"status":2,"error":"max_tokens: is not a member of a line; here it is --predict N (or -n)"}
END
head -n 10 "$work/out" >"$work/ten"
cmp -s "$work/ten" "$work/errors" || bad "$(diff "$work/ten" "$work/errors")"
out_like '"line":11,.*--regex: '
out_like '"line":12,.*--regex: contradicts --choices'
out_like '"line":13,.*--system: contradicts --raw'
out_like '"line":14,.*messages: contains no message'
out_like '"line":15,.*messages: message 1: it has no role'
out_like '"line":16,.*--choices: is not a list of texts'
out_like '"line":17,.*--json-schema: is not a schema'
out_like '"line":18,.*the question is empty'
out_like '"line":19,.*--stop: contains a NUL'
out_like '"line":20,.*"messages: it is not a list of messages"'
out_like '"line":21,.*"messages: message 1: its tool_call_id is not a text"'
out_like '"line":22,.*"the line has neither a prompt nor messages"'
out_like '"line":23,.*"--escape: is not true or false"'
out_like '"line":24,.*"--reasoning: '"'loud'"' is none of show|hide|only"'
out_like '"line":25,.*"--template: '"'/etc/passwd'"' is neither a template nor one of '
out_like '"line":26,.*"--template: line 1: '
out_like '"line":27,.*"--template-var: the chat template has no variable none"'
out_like '"line":28,.*"--tools: line 1, column '
out_like '"line":29,.*"--tools: it is not a list of tools, each an object"'
out_like '"line":30,.*"--tools: is not a list of tools"'
out_like '"line":31,.*"--tools: contradicts --raw; give one of them"'
out_like '"line":32,"text":" Paris."'

begin a_line_cannot_name_a_file # input lines must not read files
printf 'root ::= "yes"' >"$work/grammar"
printf '{"prompt":"x","grammar":"%s","predict":2}\n{"prompt":"x","json_schema":"%s"}\n' "$work/grammar" "$work/grammar" >"$lines"
for closed in '' --no-sandbox; do
    # shellcheck disable=SC2086
    batch $closed
    status 1
    [ "$(grep -c '"error":"--' "$work/out")" -eq 2 ] || bad "a file was read: $(cat "$work/out")"
done
printf '{"prompt":"x","temp":0}\n{"prompt":"x","temp":1}\n' >"$lines" # options may name a file
batch --grammar "$work/grammar"
status 0
[ "$(grep -c '"text":"yes"' "$work/out")" -eq 2 ] || bad "$(cat "$work/out")"

mkfifo "$work/pipe" # a source is read once
printf 'root ::= "a"' >"$work/pipe" &
batch --grammar "$work/pipe"
status 0
[ "$(grep -c '"text":"a"' "$work/out")" -eq 2 ] || bad "$(cat "$work/out")"
printf '{"type":"nonsense"}' >"$work/schema"
usage 'schema: line 1, column ' batch --json-schema "$work/schema" -f "$lines"
usage "--grammar: '$work/none' is no file that can be read" batch --grammar "$work/none" -f "$lines"

begin escapes_belong_to_their_line
cat >"$lines" <<'END'
{"prompt":"Once\u0020","stop":"\u0020","predict":9,"temp":0}
{"prompt":"Once\\x20","stop":"\\x20","predict":9,"temp":0,"escape":true}
{"prompt":"Once\\x20","stop":"\\x20","predict":9,"temp":0}
END
batch
member prompt_tokens >"$work/tokens"
member stop_text >"$work/stops"
[ "$(sed -n 1p "$work/tokens")" = "$(sed -n 2p "$work/tokens")" ] || bad "$(cat "$work/tokens")"
[ "$(sed -n 2p "$work/tokens")" != "$(sed -n 3p "$work/tokens")" ] || bad "$(cat "$work/tokens")"
printf '%s\n' '" "' '" "' '"\\x20"' | cmp -s - "$work/stops" || bad "$(cat "$work/out")"
cp "$work/out" "$work/first"
batch -e # those of the command line
cmp -s "$work/out" "$work/first" || bad '-e changed the lines'
printf '{"prompt":"Once","predict":9,"temp":0}\n' >"$lines"
batch -e --stop '\x20'
out_like '"stop_text":" "'
batch -e --stop '\\x20' # once, not twice
out_like '"stop":"limit"'
printf '{"prompt":"Once","predict":9,"temp":0,"stop":[]}\n' >"$lines" # none
batch --stop ' '
out_like '"stop":"limit"'

printf '{"prompt":"x","predict":0,"escape":true,"stop":"a\\\\x00b"}\n' >"$lines" # a text would end there unnoticed
batch
out_like '"error":"--stop: contains a NUL"'
usage '--stop: contains a NUL' batch -e --stop 'a\x00b' -f "$lines"
usage '--suffix: contains a NUL' run -e --suffix 'a\x00b' -p x
usage '--continuation: contains a NUL' score -e --continuation 'a\x00b' -p x

begin a_line_has_its_own_template_and_tools
cat >"$work/talk.jinja" <<'END'
{%- for m in messages %}{{ '<|im_start|>' + m.role + '\n' + (m.content or '') }}
{%- for c in m.tool_calls or [] %}{{ '<tool_call>\n{"name": "' + c.function.name + '", "arguments": ' + (c.function.arguments | tojson) + '}\n</tool_call>' }}{% endfor %}
{{- '<|im_end|>\n' }}{% endfor %}{{ '<|im_start|>assistant\n' }}{{ colour }}{{ (tools or []) | length }}
END
printf '[{"function":{"name":"f"}}]' >"$work/tools.json"
# Options of `run`, a tab, members of the line: T is the template, N a list of one tool.
cat >"$work/pairs" <<'END'
--template chatml	"template":"chatml"
--template T	"template":T
--template T --template-var colour="red"	"template":T,"template_var":["colour=\"red\""]
--template T --template-var colour=[1]	"template":T,"template_var":{"colour":[1]}
--template T --tools N --tool-choice f	"template":T,"tools":N,"tool-choice":"f"
--reasoning show	"reasoning":"show"
END
cat >"$work/more_pairs" <<'END'
--template T --template-var colour="red" --tools N	"tools":N
--template T --template-var colour="blue"	"template_var":{"colour":"blue"}
--template chatml	"template":"chatml","template_var":[]
END
each_as_run() { # PAIRS OPTIONS...: `batch` with the options gives what `run` gives for each pair
    pairs=$1
    shift
    python3 - "$work" "$pairs" "$n_reply" $n_call <<'END'
import json, sys
work, pairs, predict, call = sys.argv[1:]
text = json.dumps(open(work + "/talk.jinja").read())
with open(pairs) as pairs, open(work + "/lines", "w") as lines:
    for pair in pairs:
        members = pair.rstrip("\n").split("\t")[1].replace(":T", ":" + text).replace(":N", ':[{"function":{"name":"f"}}]')
        n = call if "tool-choice" in pair else predict
        lines.write('{"prompt":"Hi","chat":true,"predict":' + n + ',"temp":0,' + members + "}\n")
END
    batch -np 3 "$@"
    status 0
    member message >"$work/together"
    n=0
    while IFS='	' read -r options members; do
        n=$((n + 1))
        options=$(printf '%s' "$options" | sed "s|template T|template $work/talk.jinja|;s|tools N|tools $work/tools.json|")
        case $options in *tool-choice*) predict=$n_call ;; *) predict=$n_reply ;; esac
        # shellcheck disable=SC2086
        "$INFER" run --chat -p Hi -n $predict --temp 0 --json $options </dev/null >"$work/out" 2>"$work/err"
        code=$? last=$options
        status 0
        member message >"$work/alone"
        sed -n ${n}p "$work/together" | cmp -s - "$work/alone" || bad "$options: $(cat "$work/alone")"
    done <"$pairs"
    [ $n -ge 3 ] || bad "$n lines"
}
INFER_MODEL=$any
if has_python; then
    each_as_run "$work/pairs"
    each_as_run "$work/more_pairs" --chat --template "$work/talk.jinja" --template-var colour='"red"' # the rest is the command's
else
    skip 'no python3'
fi

begin a_line_whose_answer_is_cut_has_a_status
INFER_MODEL=$MODEL
printf '{"prompt":"x","regex":"[a-z]{30}","predict":2,"temp":0}\n' >"$lines"
batch
status 1
out_like '"stop":"limit".*,"status":6,"error":"--predict ended the text after 2 tokens'

begin a_prompt_that_is_too_long_has_status_5
printf '{"prompt":"%s"}\n{"prompt":"x","predict":0}\n' "$(yes word | head -n 60 | tr '\n' ' ')" >"$lines"
batch -c 32
status 1
out_like '"line":1,"status":5,"error":"the text has [0-9]+ tokens and the context holds 32'
out_like '"line":2,"text":"","stop":"limit"'

begin each_line_gives_what_run_gives
INFER_MODEL=$any
if has_python; then
    # A name, a tab, the options of `run`, a tab, the members of the line.
    cat >"$work/pairs" <<'END'
--seed 1	"seed":1
--seed 2 --temp 1.5	"seed":2,"temp":1.5
--seed 3 --top-k 5	"seed":3,"top_k":5
--seed 4 --top-p 0.5	"seed":4,"top-p":0.5
--seed 5 --min-p 0.2	"seed":5,"min_p":0.2
--temp 0 --repeat-penalty 1.3	"temp":0,"repeat_penalty":1.3
--seed 6 --stop a --stop b	"seed":6,"stop":["a","b"]
--seed 7 --stop .	"seed":7,"stop":"."
--seed 8 --ignore-eos	"seed":8,"ignore_eos":true
--seed 9 --regex [a-z]{3,12}	"seed":9,"regex":"[a-z]{3,12}"
--seed 10 --choices cat,dog,no	"seed":10,"choices":["cat","dog","no"]
--seed 11 --choices cat,dog	"seed":11,"choices":"cat,dog"
--seed 22 --regex cat,dog	"seed":22,"choices":["cat,dog"]
--seed 12 --json-object	"seed":12,"json_object":true
--seed 13 --json-schema {"enum":[1,22,333]}	"seed":13,"json_schema":{"enum":[1,22,333]}
--seed 14 --mirostat 2	"seed":14,"mirostat":2
--seed 15 --logit-bias 30-inf	"seed":15,"logit_bias":["30-inf"]
--seed 16 --chat	"seed":16,"chat":true
--seed 17 --chat --system Mew.	"seed":17,"chat":true,"system":"Mew."
--seed 18 --no-bos --special	"seed":18,"no_bos":true,"special":true
--seed 20 --logprobs 2	"seed":20,"logprobs":2
--seed 21 --logprobs 0 --choices cat,dog,no	"seed":21,"logprobs":0,"choices":["cat","dog","no"]
--temp 0 --chat --logprobs 1	"temp":0,"chat":true,"logprobs":1
--seed 19 --dry-multiplier 0.8 --xtc-probability 0.5	"seed":19,"dry_multiplier":0.8,"xtc_probability":0.5
END
    [ -z "$quick" ] || sed -i -n '1~3p' "$work/pairs"
    n_pairs=$(wc -l <"$work/pairs")
    : >"$lines"
    while IFS='	' read -r options members; do
        printf '{"prompt":"Tell me of a cat and a dog, and what they","predict":%s,%s}\n' \
            "${short:-24}" "$members" >>"$lines"
    done <"$work/pairs"
    batch -np 7
    member text >"$work/texts"
    member logprobs >>"$work/texts"
    n=0
    while IFS='	' read -r options members; do
        n=$((n + 1))
        # shellcheck disable=SC2086
        "$INFER" run -p 'Tell me of a cat and a dog, and what they' -n "${short:-24}" $options --json \
            </dev/null >"$work/out" 2>"$work/err"
        { member text && member logprobs; } >"$work/alone"
        sed -n "${n}p;$((n_pairs + n))p" "$work/texts" >"$work/together"
        cmp -s "$work/alone" "$work/together" ||
            bad "$options: $(cat "$work/together"), alone $(cat "$work/alone")"
    done <"$work/pairs"
    [ $n -ge 8 ] || bad "$n lines"
else
    skip 'no python3'
fi

begin answers_are_in_order_unless_unordered_is_given
{
    printf '{"id":"long","prompt":"Once upon a time","predict":60,"ignore_eos":true}\n'
    for i in 1 2 3 4 5 6; do printf '{"id":%s,"prompt":"One","predict":1}\n' $i; done
} >"$lines"
batch -np 2
status 0
sed 's/,"id".*//' "$work/out" >"$work/order"
printf '{"line":%s\n' 1 2 3 4 5 6 7 | cmp -s - "$work/order" || bad "$(cat "$work/order")"
sort "$work/out" >"$work/sorted"
batch -np 2 --unordered
status 0
tail -n 1 "$work/out" | grep -q '"id":"long"' || bad "the long one is not last: $(cat "$work/out")"
sort "$work/out" | cmp -s - "$work/sorted" || bad 'other answers without order'

begin answers_come_while_the_input_is_open
INFER_MODEL=$MODEL
mkfifo "$work/in" "$work/answers"
"$INFER" batch <"$work/in" >"$work/answers" 2>"$work/err" &
pid=$!
exec 8>"$work/in" 9<"$work/answers"
for i in 1 2 3; do
    printf '{"id":%s,"prompt":"The capital of France is","predict":2,"temp":0}\n' $i >&8
    read -r answer <&9
    case $answer in *"\"id\":$i,\"text\":\" Paris.\""*) ;; *) bad "answer $i: $answer" ;; esac
done
exec 8>&-
wait $pid
code=$? last='batch, a pipe that stays open'
exec 9<&-
status 0

begin plain_lines_give_plain_answers
printf 'France\r\nItaly\n' >"$lines"
batch --each 'The capital of {} is' -n 2 --temp 0
status 0
out ' Paris.\n Rome.\n'
batch -e --each 'The capital of {}\x20is' -n 8 --temp 0 # escapes apply to the text, not to the lines
head -n 1 "$work/out" >"$work/line"
same "$work/line" ' Paris.\\n\\nThe answer is:\n'
batch --each 'The capital of {} is' -n 2 --temp 0 --json
out_like '^{"line":2,"text":" Rome.","stop":"limit"'
batch --each 'Is {} a country? ' --chat --choices yes,no --temp 0
[ "$(grep -Ec '^(yes|no)$' "$work/out")" -eq 2 ] || bad "$(cat "$work/out")"
printf '\357\273\277France\nItaly' >"$lines" # a byte-order mark is not text
batch --each 'The capital of {} is' -n 2 --temp 0
out ' Paris.\n Rome.\n'
printf '\357\273\277{"prompt":"The capital of France is","predict":2,"temp":0}\n' >"$lines"
batch
out_like '"text":" Paris."'
printf '\377\376{\0"\0' >"$lines"
usage 'the input is UTF-16: convert it' batch -f "$lines"
printf 'a\n\nb\n' >"$lines" # an empty line is a text
batch --lines -n 0
out '\n\n\n'
batch --lines --each '{}' -n 0
out '\n\n\n'
batch --each '{}' --regex '[a-z]{30}' -n 1
status 1
[ "$(wc -l <"$work/out")" -eq 3 ] || bad "$(cat "$work/out")"
err_like '^infer: line 1: --predict ended the text after 1 tokens'
usage '--each: has no \{\}' batch --each 'text'
usage '--unordered: plain answers do not say which line' batch --each '{}' --unordered
usage '--logprobs: plain answers hold no probabilities' batch --each '{}' --logprobs 1

begin resume_continues_where_the_output_ended
INFER_MODEL=$any
for i in 1 2 3 4 5 6 7 8; do printf '{"id":%s,"prompt":"Number %s is","predict":3,"seed":%s}\n' $i $i $i; done >"$lines"
batch
cp "$work/out" "$work/whole"
size=$(wc -c <"$work/whole")
for cut in 0 1 $((size / 3)) $((size / 2)) $((size - 1)) "$size"; do
    head -c "$cut" "$work/whole" >"$work/part"
    batch --resume "$work/part"
    status 0
    out ''
    cmp -s "$work/part" "$work/whole" || bad "cut at $cut: $(cat "$work/part")"
done
printf 'wrong\n' >>"$lines"
for n in 1 2; do # the status is that of the whole
    batch --resume "$work/part"
    status 1
    err 'infer: 1 of 9 lines failed: their answers have an "error"\n'
done
sed -i 9d "$lines"
rm "$work/part"
batch --resume "$work/part" # creates a missing file
cmp -s "$work/part" "$work/whole" || bad 'a new file'
sed '3d;6d' "$work/whole" >"$work/part" # missing answers are generated again
batch --resume "$work/part"
sort "$work/part" | cmp -s - "$work/whole" || bad "$(cat "$work/part")"
printf 'something else\n' >"$work/other"
usage 'other: line 1 is not an answer of `infer batch`: the file was not changed' batch --resume "$work/other"
same "$work/other" 'something else\n'
printf 'something else' >"$work/other"
usage 'other: line 1 is not an answer of `infer batch`: the file was not changed' batch --resume "$work/other"
same "$work/other" 'something else'
printf 'root ::= "a"' >"$work/grammar"
cp "$INFER_MODEL" "$work/read.gguf"
ln -s read.gguf "$work/link.gguf"
for read in grammar read.gguf link.gguf; do
    usage "$read: is the input too" batch -m "$work/read.gguf" --grammar "$work/grammar" \
        --each '{}' --resume "$work/$read"
done
same "$work/grammar" 'root ::= "a"'
cmp -s "$INFER_MODEL" "$work/read.gguf" || bad 'the model was changed'
usage 'lines: is the input too' batch -f "$lines" --resume "$lines"
usage 'none/x: cannot write' batch --resume "$work/none/x"
printf 'a\nb\nc\n' >"$lines"
batch --each 'X{}' -n 2
cp "$work/out" "$work/whole"
batch --each 'X{}' -n 2 --resume "$work/plainly"
cmp -s "$work/plainly" "$work/whole" || bad "plain: $(cat "$work/plainly")"
head -c $(($(head -n 1 "$work/whole" | wc -c) + 1)) "$work/whole" >"$work/plainly"
printf '3 12' >>"$work/plainly.input" # an incomplete record
batch --each 'X{}' -n 2 --resume "$work/plainly"
status 0
cmp -s "$work/plainly" "$work/whole" || bad "plain: $(cat "$work/plainly")"

begin resume_refuses_another_input_and_another_model
printf '{"prompt":"a","predict":1}\n{"prompt":"b","predict":1}\n' >"$lines"
rm -f "$work/part" "$work/part.input"
batch --resume "$work/part"
status 0
err ''
cp "$work/part" "$work/whole"
printf '{"prompt":"c","predict":1}\n' >>"$lines" # more lines go on
batch --resume "$work/part"
status 0
cmp -s "$work/part" "$work/whole" && bad 'nothing was added'
cp "$work/part" "$work/whole"
sed -i 's/"b"/"x"/' "$lines"
usage 'part: has the answer to another line 2' batch -f "$lines" --resume "$work/part"
cmp -s "$work/part" "$work/whole" || bad 'changed by another input'
sed -i 's/"x"/"b"/' "$lines"
"$INFER" edit "$INFER_MODEL" -o "$work/other.gguf" --set general.name=str:Other >"$work/said" 2>&1
usage 'part: its answers are those of another model' batch -m "$work/other.gguf" --resume "$work/part"
cmp -s "$work/part" "$work/whole" || bad 'changed by another model'
rm "$work/part" # the records of a file that is gone do not count
batch -m "$work/other.gguf" --resume "$work/part"
status 0
cmp -s "$work/part" "$work/whole" || bad "begun again: $(cat "$work/part")"
sed 1d "$work/whole" >"$work/part" # the line of a removed answer may be another one
sed -i '1s/"a"/"z"/' "$lines"
batch -m "$work/other.gguf" --resume "$work/part"
status 0
batch -m "$work/other.gguf" --resume "$work/part"
status 0
cp "$work/whole" "$work/kept" # answers that were written to standard output
batch --resume "$work/kept"
status 0
err_like '^infer: .*kept: there is no .*kept.input, so it is not checked'
printf 'a text\nof mine' >"$work/mine"
usage 'mine: is not a file of answers' batch --lines --resume "$work/mine"
same "$work/mine" 'a text\nof mine'
[ -e "$work/mine.input" ] && bad 'a record of a text that was refused'
printf 'one line of mine' >"$work/mine"
for form in --lines --csv; do
    usage 'mine: is not a file of answers' batch $form --resume "$work/mine"
    same "$work/mine" 'one line of mine'
done
printf 'a text of mine\n' >"$work/mine.input"
usage 'mine.input: is not a record of answered lines' batch --lines --resume "$work/mine"
same "$work/mine.input" 'a text of mine\n'
usage 'standard output holds no answers' batch --resume -
[ -e "$work/-" ] || [ -e ./- ] && bad 'a file named -'

begin lines_of_the_openai_batch_form_are_read_and_written
INFER_MODEL=$MODEL
cat >"$lines" <<'END'
{"custom_id":"a","method":"POST","url":"/v1/chat/completions","body":{"model":"any","messages":[{"role":"user","content":"What is 2+2?"}],"temperature":0,"seed":7}}
{"custom_id": 2.0e0,"method":"POST","url":"/v1/completions","body":{"prompt":["The capital of Italy is"],"max_tokens":3,"temperature":0e0,"logit_bias":{"7":-1e2},"logprobs":1}}
{"custom_id":"c","url":"/v1/embeddings","body":{"input":"x"}}
{"custom_id":"d","body":{"messages":[{"role":"user","content":"x"}],"n":2}}
{"custom_id":"e","body":{"messages":[{"role":"user","content":"x"}],"frobnicate":2}}
{"custom_id":"f","body":{"messages":[{"role":"user","content":[{"type":"text","text":"A colour?"}]}],"logprobs":true,"max_completion_tokens":1,"stream":false,"response_format":{"type":"json_schema","json_schema":{"name":"c","strict":true,"schema":{"enum":["r"]}}}}}
{"custom_id":"g","body":{"prompt":"x"}}
{"prompt":"The capital of Italy is","predict":3,"temp":0}
END
batch
status 1
err 'infer: 5 of 8 lines failed: their answers have an "error"\n'
sed -n '1p;3,5p;7,8p' "$work/out" >"$work/some"
cat >"$work/want_some" <<'END'
{"line":1,"id":"batch_req_1","custom_id":"a","error":null,"response":{"status_code":200,"request_id":"req_1","body":{"id":"chatcmpl-1","object":"chat.completion","created":0,"model":"Smollm2 135M 8k Lc100K Mix1 Ep2","choices":[{"index":0,"message":{"role":"assistant","content":"The answer to this classic math problem is 4."},"logprobs":null,"finish_reason":"stop"}],"usage":{"prompt_tokens":37,"completion_tokens":12,"total_tokens":49}}}}
{"line":3,"id":"batch_req_3","custom_id":"c","response":null,"error":{"code":"2","message":"url: is not /v1/chat/completions or /v1/completions"}}
{"line":4,"id":"batch_req_4","custom_id":"d","response":null,"error":{"code":"2","message":"n: is not 1: write a line for each answer"}}
{"line":5,"id":"batch_req_5","custom_id":"e","response":null,"error":{"code":"2","message":"frobnicate: is not a member of a line: prompt, messages, id or an option of one text"}}
{"line":7,"id":"batch_req_7","custom_id":"g","response":null,"error":{"code":"2","message":"body: has no messages"}}
{"line":8,"text":" Rome.\n","stop":"limit","stop_text":null,"prompt_tokens":5,"tokens":3,"chat":false,"seed":0}
END
cmp -s "$work/some" "$work/want_some" || bad "$(diff "$work/some" "$work/want_some")"
sed -n 2p "$work/out" >"$work/some"
grep -q '"custom_id":2.0e0,.*"object":"text_completion".*"text":" Rome.*"logprobs":{"tokens":\[" Rome",.*"token_logprobs":\[-.*"top_logprobs":\[{" Rome":-.*"text_offset":\[0,5,6\]},"finish_reason":"length"' \
    "$work/some" || bad "$(cat "$work/some")"
batch --resume "$work/openai"
cmp -s "$work/out" "$work/openai" && bad 'standard output was written'
batch --resume "$work/openai"
status 1
err 'infer: 5 of 8 lines failed: their answers have an "error"\n'

begin lines_of_openai_may_have_what_clients_send
cat >"$lines" <<'END'
{"custom_id":"a","body":{"messages":[{"role":"user","content":"x"}],"reasoning_effort":"low","verbosity":"low","chat_template_kwargs":{"enable_thinking":false},"max_tokens":1,"logprobs":true,"top_logprobs":1,"seed":-5}}
{"custom_id":"b","body":{"messages":[{"role":"user","content":"x"}],"reasoning_effort":"none","max_tokens":1,"seed":-1}}
{"custom_id":"c","url":"/v1/completions","body":{"prompt":"日本","temperature":0,"max_tokens":2,"logprobs":2,"best_of":1}}
{"body":{"messages":[{"role":"user","content":"x"}]}}
{"custom_id":"e","params":{}}
{"custom_id":"f","url":"/v1/completions","body":{"prompt":["x","y"]}}
{"custom_id":"g","body":{"messages":[{"role":"user","content":"x"}],"reasoning":{"effort":"low"},"max_tokens":1,"seed":9223372036854775807}}
{"custom_id":"h","url":"/v1/completions","body":{"prompt":"x","echo":true}}
{"custom_id":"i","url":"/v1/completions","body":{"prompt":"x","max_tokens":"2"}}
END
batch
status 1
grep -q '"custom_id":"g","error":null' "$work/out" || bad "$(sed -n 7p "$work/out")"
grep -q '"custom_id":"h",.*echo: is not false' "$work/out" || bad "$(sed -n 8p "$work/out")"
grep -q '"custom_id":"i",.*max_tokens: is not a whole number' "$work/out" || bad "$(sed -n 9p "$work/out")"
err 'infer: 5 of 9 lines failed: their answers have an "error"\n'
grep -q '"custom_id":"a".*"logprobs":{"content":\[{.*"token":".*"top_logprobs":\[{.*}\]}\]}' "$work/out" || bad "$(sed -n 1p "$work/out")"
grep -q '"custom_id":"b","error":null' "$work/out" || bad "$(sed -n 2p "$work/out")"
# bytes of an incomplete character; the offset is that of the character
grep -q '"tokens":\["的","bytes:\\\\x[0-9a-f]*"\],.*"text_offset":\[0,1\]' "$work/out" || bad "$(sed -n 3p "$work/out")"
grep -q '"custom_id":null,.*the line has a body and no custom_id' "$work/out" || bad "$(sed -n 4p "$work/out")"
grep -q '"custom_id":"e",.*the line has a custom_id and no body' "$work/out" || bad "$(sed -n 5p "$work/out")"
grep -q '"custom_id":"f",.*prompt: is a list of several texts: write a line for each' "$work/out" || bad "$(sed -n 6p "$work/out")"
printf '%s\n' '{%- for m in messages -%}{{ m.content }}{%- endfor -%}{{ reasoning_effort }}' >"$work/effort.jinja"
sed -n 1,2p "$lines" >"$work/two" # a template that reads the effort gets it
sed -i 's/"reasoning_effort":"none",/"reasoning_effort":"a very high one","reasoning_budget":0,/' "$work/two"
infer batch --template "$work/effort.jinja" "$work/two"
status 0
[ "$(sed 's/.*"prompt_tokens":\([0-9]*\).*/\1/' "$work/out" | tr '\n' ' ')" = '2 4 ' ] || bad "$(cat "$work/out")"

begin a_table_gets_one_more_column
INFER_MODEL=$any
printf 'id,review,stars\r\n1,"good, very\n""good""",5\r\n2,bad,1\n\n3,x\n4,"it is ""ok""",3' >"$lines"
batch --csv --each 'Is {review} positive? {stars} stars. {no} {}' --column 2 --choices '"yes","no"'
status 1
err 'infer: --each: {no} is no column of the table and stays as it is\ninfer: line 5: the record has 2 fields and the header 3\ninfer: 1 of 4 lines failed\n'
sed 's/"""yes"""$/A/;s/"""no"""$/A/;s/"""no"""\r$/A\r/;s/"""yes"""\r$/A\r/' "$work/out" >"$work/one"
same "$work/one" 'id,review,stars,answer\r\n1,"good, very\n""good""",5,A\r\n2,bad,1,A\n3,x,\n4,"it is ""ok""",3,A\n'
cp "$work/out" "$work/whole"
for cut in 0 25 62 $([ -n "$quick" ] || echo 10 40 60 1000); do
    rm -f "$work/table" "$work/table.input"
    batch --csv --column review -n 3 --resume "$work/table"
    cp "$work/table" "$work/whole"
    head -c "$cut" "$work/whole" >"$work/table"
    batch --csv --column review -n 3 --resume "$work/table"
    cmp -s "$work/table" "$work/whole" || bad "cut at $cut: $(cat "$work/table")"
done
batch --csv --column review -n 1 --json # records are numbered like the rows of a table
sed 's/,.*//' "$work/out" >"$work/one"
same "$work/one" '{"line":2\n{"line":3\n{"line":5\n{"line":6\n'
printf 'name;town\nA, B;"x;y"\n' >"$lines" # the separator is the header's
batch --csv --column town --choices 'a;b'
status 0
out 'name;town;answer\nA, B;"x;y";"a;b"\n'
printf '"only, one"\nx\n' >"$lines"
batch --csv --choices a
out '"only, one",answer\nx,a\n'
printf 'answer,answer_2\nx,y\n\n' >"$lines" # names are different; of several columns blank lines are none
batch --csv --each '{answer}' --choices a
status 0
out 'answer,answer_2,answer_3\nx,y,a\n'
printf 'one\nx\n\ny\n' >"$lines" # a blank line is a record of one column
batch --csv --each 'A {}' --choices a
status 0
out 'one,answer\nx,a\n,a\ny,a\n'
printf 'a,b\n1,2\n' >"$lines"
usage '--column: say which column .* is: the columns are a, b' batch --csv -f "$lines"
usage '--column: there is no such column: the columns are a, b' batch --csv --column c -f "$lines"
usage '--column: there is no such column: the columns are a, b' batch --csv --column 3 -f "$lines"
usage '--each: has no .* and no .*NAME. of a column' batch --csv --each 'x {c}' -f "$lines"
usage '--column: needs --csv' batch --column a -f "$lines"
printf 'a,b\n1,2\n3,"4\n5,6\n' >"$lines"
batch --csv --each '{a}' --choices x
status 1
out 'a,b,answer\n1,2,x\n'
err_like '^infer: record 3: the quotes that open in it never close$'
err_like '^infer: 1 of 2 lines failed$'
printf 'a,b\n1,2\n' >"$lines" # what is no column stays as it is, with a remark
batch --csv --each '{a} {c} {"d": 1}' --choices x
status 0
err 'infer: --each: {c} is no column of the table and stays as it is\n'

begin resume_continues_after_a_kill
INFER_MODEL=$MODEL
for i in 1 2 3 4 5 6 7 8 9; do
    printf '{"id":%s,"prompt":"Number %s is","predict":%s,"ignore_eos":true,"seed":%s}\n' $i $i "${short:-40}" $i
done >"$lines"
batch -np 2
cp "$work/out" "$work/whole"
rm -f "$work/part"
"$INFER" batch -np 2 --resume "$work/part" <"$lines" 2>"$work/err" &
pid=$! n=0
while [ $n -lt 400 ] && ! [ -s "$work/part" ]; do
    sleep 0.05
    n=$((n + 1))
done
usage 'part: another process writes it' batch --resume "$work/part"
kill -KILL $pid
wait $pid 2>"$work/said"
batch -np 2 --resume "$work/part"
status 0
cmp -s "$work/part" "$work/whole" || bad "$(cat "$work/part")"

begin part_selects_a_share_of_the_lines
INFER_MODEL=$any
for i in 1 2 3 4 5 6 7; do printf '{"prompt":"%s","predict":1}\n' $i; done >"$lines"
batch
cp "$work/out" "$work/whole"
for i in 1 2 3; do
    batch --shard $i/3
    cp "$work/out" "$work/part.$i"
done
cat "$work"/part.[123] | sort | cmp -s - "$work/whole" || bad 'parts are not the whole'
numbers() { sed 's/[^0-9]*\([0-9]*\).*/\1/' "$work/out" | tr '\n' ' '; }
shard() { # LINES VARIABLES...
    want=$1
    shift
    env "$@" "$INFER" batch <"$lines" >"$work/out" 2>"$work/err"
    code=$? last="$*"
    status 0
    [ "$(numbers)" = "$want" ] || bad "$*: $(numbers)"
}
shard '2 5 ' OMPI_COMM_WORLD_RANK=1 OMPI_COMM_WORLD_SIZE=3
shard '2 5 ' PMI_RANK=1 PMI_SIZE=3
shard '2 5 ' PMI_RANK=1 PMI_SIZE=3 OMPI_COMM_WORLD_RANK=1 OMPI_COMM_WORLD_SIZE=3
shard '2 5 ' SLURM_ARRAY_TASK_ID=5 SLURM_ARRAY_TASK_MIN=4 SLURM_ARRAY_TASK_COUNT=3
shard '2 5 ' SLURM_ARRAY_TASK_ID=3 SLURM_ARRAY_TASK_MIN=1 SLURM_ARRAY_TASK_COUNT=3 SLURM_ARRAY_TASK_STEP=2
shard '4 ' SLURM_ARRAY_TASK_ID=1 SLURM_ARRAY_TASK_MIN=0 SLURM_ARRAY_TASK_COUNT=2 OMPI_COMM_WORLD_RANK=1 OMPI_COMM_WORLD_SIZE=2
shard '1 2 3 4 5 6 7 ' PARALLEL_SEQ=3 SLURM_PROCID=1 SLURM_NTASKS=3
shard '1 2 3 4 5 6 7 ' INFER_SHARD=1/1 OMPI_COMM_WORLD_RANK=1 OMPI_COMM_WORLD_SIZE=3
for wrong in 0/3 4/3 1/0 1 a/b 1/3x ''; do usage "--shard: '$wrong' is not I/N" batch --shard "$wrong"; done
OMPI_COMM_WORLD_RANK=3 OMPI_COMM_WORLD_SIZE=3 "$INFER" batch <"$lines" >"$work/out" 2>"$work/err"
code=$? last='a rank past the end'
status 2
err_line 'OMPI_COMM_WORLD_RANK: part 4 of 3 does not exist'

begin launchers_divide_the_lines
if mpirun --version >"$work/said" 2>&1; then
    OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 mpirun -n 3 --oversubscribe \
        sh -c '"$0" batch -t 1 -f "$1" -m "$3" >"$2.$OMPI_COMM_WORLD_RANK"' "$INFER" "$lines" "$work/rank" "$INFER_MODEL" \
        >"$work/out" 2>"$work/err"
    code=$? last='mpirun -n 3 infer batch'
    status 0
    for i in 0 1 2; do cmp -s "$work/rank.$i" "$work/part.$((i + 1))" || bad "rank $i: $(cat "$work/err")"; done
else
    skip 'no mpirun here'
fi
if parallel --version >"$work/said" 2>&1; then
    parallel --will-cite "$INFER" batch -t 1 -m "$INFER_MODEL" --shard '{}/3' -f "$lines" ::: 1 2 3 \
        >"$work/out" 2>"$work/err" </dev/null
    code=$? last='parallel infer batch --shard'
    status 0
    sort "$work/out" | cmp -s - "$work/whole" || bad "other lines: $(cat "$work/err")"
    parallel --will-cite -k --pipe -N 2 "$INFER" batch -t 1 -m "$INFER_MODEL" <"$lines" >"$work/out" 2>"$work/err"
    code=$? last='parallel --pipe infer batch'
    status 0
    [ "$(wc -l <"$work/out")" -eq 7 ] || bad "$(cat "$work/out" "$work/err")"
else
    skip 'no GNU parallel here'
fi

begin a_closed_or_full_output_is_an_error
INFER_MODEL=$MODEL
for i in 1 2 3; do printf '{"prompt":"%s","predict":1}\n' $i; done >"$lines"
{
    "$INFER" batch -np 1 <"$lines" 2>"$work/err"
    echo $? >"$work/code"
} | true
code=$(cat "$work/code") last='a closed pipe'
status 141
err ''
if full_disk; then
    "$INFER" batch <"$lines" >/dev/full 2>"$work/err"
    code=$? last='a full disk'
    status 1
    err_line 'No space left on device'
fi

begin an_interrupt_leaves_whole_lines
for i in 1 2; do printf '{"prompt":"%s","predict":1}\n' $i; done >"$lines"
printf '{"prompt":"Once","predict":4000,"ignore_eos":true}\n' >>"$lines"
if env --default-signal=INT true 2>"$work/said"; then
    : >"$work/out" # the loop below must not count old lines
    env --default-signal=INT "$INFER" batch <"$lines" >"$work/out" 2>"$work/err" &
    pid=$! n=0
    while [ $n -lt 400 ] && [ "$(wc -l <"$work/out")" -lt 2 ]; do
        sleep 0.05
        n=$((n + 1))
    done
    kill -INT $pid
    wait $pid
    code=$? last='batch, interrupted'
    status 130
    err ''
    [ "$(wc -l <"$work/out")" -eq 2 ] || bad "$(cat "$work/out")"
    [ "$(tail -c 1 "$work/out" | od -An -tx1)" = ' 0a' ] || bad 'a part of a line'
else
    skip 'env cannot restore SIGINT here'
fi

begin wrong_options_are_usage_errors
usage 'none: cannot read' batch -f "$work/none"
usage '--prompt: is an option of `infer run`' batch --prompt x
usage '--regex: contradicts --choices' batch --regex a --choices a
usage '--system: contradicts --raw' batch --system x --raw
usage '--template: ' batch --chat --template "$work/none"

finish

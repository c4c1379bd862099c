# Which texts `run` and `batch` answer through the chat template by default, and answers that are empty.
. test/cli/lib.sh
unset INFER_RAW
base=$work/base.gguf ask=$work/ask.gguf
"$make_model" "$base" arch=llama tokens=bpe 2>/dev/null ||
    { echo 'skip t_answer.sh: tool_make_model is not built'; finish; exit; }
printf '{%% for m in messages %%}[{{ m.role }}={{ m.content }}]{%% endfor %%}' >"$work/ask.jinja"
"$INFER" edit "$base" -o "$ask" --template "$work/ask.jinja" 2>"$work/said"
ends="-l 265+1000" # its end-of-text token, at once

shown() { # TEXT ARGS...: the text that the model would read
    want=$1
    shift
    infer "$@" --show-prompt
    status 0
    [ "$(head -n 1 "$work/out")" = "$want" ] || bad "infer $*: $(head -n 1 "$work/out"), not $want"
}

begin a_model_with_a_template_answers
shown '[user=Hi]' -m "$ask" -p Hi
shown '[user=Hi]' run -m "$ask" --chat -p Hi
shown '[system=S][user=Hi]' -m "$ask" -p Hi --system S
shown Hi -m "$ask" -p Hi --raw
shown Hi -m "$ask" -p Hi --chat=off
shown Hi -m "$ask" -p Hi --no-special
shown Hi -m "$ask" -p Hi --special
input=$work/in
printf 'lines' >"$input"
shown '[user=lines' -m "$ask" -p Hi # joined by a line end
shown '[user=lines]' -m "$ask"
input=
infer -m "$ask" -p Hi --echo -n 1
grep -q '^Hi' "$work/out" || bad 'no echo of the plain text'

begin a_model_without_a_template_completes
shown Hi -m "$base" -p Hi
usage 'base.gguf: the model has no chat template: give --template' -m "$base" -p Hi --chat
usage 'base.gguf: the model has no chat template: give --template' -m "$base" -p Hi --system S
shown '[user=Hi]' -m "$base" -p Hi --template "$work/ask.jinja"

begin variables_select_as_options_do
for variable in INFER_RAW=1 INFER_CHAT=0; do
    export "${variable?}"
    shown Hi -m "$ask" -p Hi
    shown '[user=Hi]' -m "$ask" -p Hi --chat
    shown '[system=S][user=Hi]' -m "$ask" -p Hi --system S
    unset "${variable%=*}"
done
INFER_SYSTEM=S INFER_ECHO=1
export INFER_SYSTEM INFER_ECHO
shown '[system=S][user=Hi]' -m "$ask" -p Hi
shown Hi -m "$ask" -p Hi --raw
shown Hi -m "$base" -p Hi
unset INFER_SYSTEM INFER_ECHO
usage '--raw: contradicts --chat|--chat: contradicts --raw' -m "$ask" -p Hi --raw --chat
usage '--system: contradicts --raw' -m "$ask" -p Hi --raw --system S
usage '--system: contradicts --echo' -m "$ask" -p Hi --echo --system S

begin a_switch_that_is_off_implies_nothing
shown '[user=Hi]' -m "$ask" -p Hi --special=off --echo=off
usage '--system: contradicts --chat off' -m "$ask" -p Hi --chat=off --system S
usage '--echo: contradicts --raw off' -m "$ask" -p Hi --raw=off --echo
printf '{"prompt":"Hi","predict":1,"special":false,"template_var":{}}\n{"prompt":"Hi","chat":false,"system":"S"}\n' >"$work/in"
input=$work/in
infer batch -m "$ask"
out_like '^\{"line":1,.*"chat":true'
out_like '^\{"line":2,"status":2,"error":"--system: contradicts --chat off"\}$'
input=

begin a_question_is_needed
usage 'the question is empty; --raw completes the text without the chat template' -m "$ask"
infer -m "$ask" --raw -p '' --override-kv tokenizer.ggml.add_bos_token=bool:true -n 1
status 0
printf '{{ x' >"$work/bad.jinja"
usage 'bad.jinja: line 1' -m "$ask" -p Hi --template "$work/bad.jinja"
usage 'the chat template has no variable none' -m "$ask" -p Hi --template-var none=1
shown '[system=S]' -m "$ask" --system S --messages "$(printf '[]' >"$work/m.json"; echo "$work/m.json")"
infer -m "$ask" --plan # no text is needed
status 0

begin the_object_says_which
infer -m "$ask" -p Hi -n 3 --json
valid run.schema.json
out_like '"chat":true'
infer -m "$ask" -p Hi -n 3 --json --raw
valid run.schema.json
out_like '"chat":false'
infer -m "$ask" -p Hi -n 3 --jsonl
valid run-event.schema.json
infer -m "$base" -p Hi -n 3 --json
out_like '"chat":false'

begin lines_of_a_batch_are_answered_through_the_template
cat >"$work/lines" <<'END'
{"prompt":"Hi"}
{"prompt":"Hi","raw":true}
{"prompt":"Hi","chat":false}
{"prompt":"Hi","special":true}
{"prompt":"Hi","system":"S"}
{"messages":[{"role":"user","content":"Hi"}]}
END
said() { sed 's/.*"prompt_tokens":\([0-9]*\),.*"chat":\([a-z]*\).*/\1\2/' "$work/out" | tr '\n' ' '; }
batch() {
    input=$work/lines
    infer batch -n 2 "$@"
    input=
    status 0
}
batch -m "$ask"
[ "$(said)" = '8true 2false 2false 2false 18true 8true ' ] || bad "$(said)"
batch -m "$ask" --raw
[ "$(said)" = '2false 2false 2false 2false 18true 8true ' ] || bad "--raw: $(said)"
sed -i '5,$d' "$work/lines"
batch -m "$base"
[ "$(said)" = '2false 2false 2false 2false ' ] || bad "no template: $(said)"
printf '{"prompt":"x","raw":true,"system":"y"}\n' >"$work/lines"
input=$work/lines
infer batch -m "$ask"
status 1
out '{"line":1,"status":2,"error":"--system: contradicts --raw; give one of them"}\n'

begin answers_are_written_to_a_file
printf 'one\ntwo\n' >"$work/lines"
infer batch -m "$ask" --lines -n 2 "$work/lines"
cp "$work/out" "$work/want_file"
infer batch -m "$ask" --lines -n 2 -o "$work/answers" "$work/lines"
status 0
out ''
cmp -s "$work/answers" "$work/want_file" || bad "$(cat "$work/answers")"
printf '{"prompt":"Hi","predict":1}\nnothing\n' >"$work/lines"
infer batch -m "$ask" "$work/lines" -o "$work/answers" # a failed line is an answer
status 1
[ "$(wc -l <"$work/answers")" -eq 2 ] || bad "$(cat "$work/answers")"
usage 'lines: ' batch -m "$ask" "$work/lines" -o "$work/lines"
infer batch -m "$ask" "$work/lines" -o "$work/none/answers"
[ "$code" -ne 0 ] || bad 'no folder'
usage '-o: contradicts --resume|--resume: contradicts -o' batch -o a --resume b
ls "$work" | grep -q 'answers\.' && bad 'a temporary file is left'

begin chat_takes_a_first_message_from_the_command_line
infer chat -m "$ask" -n 4 one
status 0
cp "$work/out" "$work/first_answer"
printf 'one\n' >"$work/in"
input=$work/in
infer chat -m "$ask" -n 4
cmp -s "$work/out" "$work/first_answer" || bad "$(cat "$work/out")"
printf 'two\n' >"$work/in"
infer chat -m "$ask" -n 4 -p one --json
[ "$(wc -l <"$work/out")" -eq 2 ] || bad "$(cat "$work/out")"
input=

begin an_empty_answer_is_a_remark
infer -m "$ask" -p Hi $ends
status 0
out ''
err 'infer: the answer is empty: the model ended it at once\n'
infer -m "$ask" -p Hi $ends --raw
status 0
err 'infer: the text is empty: the model ended it at once\n'
infer -m "$ask" -p Hi -n 0
err ''
infer -m "$ask" -p Hi --regex 'a*' $ends
status 0
err ''
printf 'one\ntwo\n' >"$work/lines"
input=$work/lines
infer batch -m "$ask" --lines $ends
status 0
out '\n\n'
err 'infer: empty answers: 2 of 2; line 1: the model ended it at once\n'
infer chat -m "$ask" $ends
status 0
out '\n\n'
err 'infer: the answer is empty: the model ended it at once\ninfer: the answer is empty: the model ended it at once\n'
input=

begin a_limit_within_the_reasoning_is_a_remark
printf '<think>{{ messages[0].content }}</think><think>' >"$work/open.jinja"
open="-m $base --template $work/open.jinja -p Hi -s 3 --temp 2 --ignore-eos"
infer $open -n 3
status 0
out ''
err 'infer: the answer is empty: --predict was reached within the reasoning\n'
infer $open -n 3 --reasoning only
err ''
for mode in hide show only; do # the text of --json is what run writes
    infer $open -n 12 --reasoning-budget 4 --reasoning $mode
    status 0
    err ''
    cp "$work/out" "$work/plain"
    infer $open -n 12 --reasoning-budget 4 --reasoning $mode --json
    python3 -c 'import json, sys
text = json.load(open(sys.argv[1]))["text"]
plain = open(sys.argv[2], "rb").read().decode("utf-8", "replace")
sys.exit(text.replace("\ufffd", "") != plain.replace("\ufffd", ""))' "$work/out" "$work/plain" ||
        bad "--reasoning $mode: $(cat "$work/out"), not $(cat "$work/plain")"
    cp "$work/out" "$work/json"
    infer $open -n 12 --reasoning-budget 4 --reasoning $mode --jsonl
    python3 -c 'import json, sys
events = [json.loads(line) for line in open(sys.argv[1])]
text = "".join(e["text"] for e in events if e["event"] != "start" and e["event"] != "end")
sys.exit(text != events[-1]["text"] or text != json.load(open(sys.argv[2]))["text"])' "$work/out" "$work/json" ||
        bad "--jsonl --reasoning $mode"
done

begin suffix_fills_the_gap_before_it
fim=$work/fim.gguf
"$INFER" edit "$ask" -o "$fim" --set tokenizer.ggml.fim_pre_token_id=u32:262 --set tokenizer.ggml.fim_suf_token_id=u32:264 \
    --set tokenizer.ggml.fim_mid_token_id=u32:266 2>"$work/said"
ids() { tail -n 1 "$work/out"; }
shown ' thethe<|im_start|>in' -m "$fim" -p the --suffix in
[ "$(ids)" = '262 260 264 257 266' ] || bad "$(ids)"
infer -m "$fim" --prefix the --suffix '' --show-prompt
[ "$(ids)" = '262 260 264 266' ] || bad "$(ids)"
input=$work/in
printf the >"$input"
infer -m "$fim" --suffix 'i\x6e' -e --show-prompt
[ "$(ids)" = '262 260 264 257 266' ] || bad "$(ids)"
printf '{"prompt":"the","suffix":"in"}\n{"prompt":"the","raw":true}\n' >"$input"
infer batch -m "$fim" -n 2
status 0
[ "$(sed 's/.*"prompt_tokens":\([0-9]*\),.*"chat":\([a-z]*\).*/\1\2/' "$work/out" | tr '\n' ' ')" = '5false 1false ' ] || bad "$(cat "$work/out")"
input=
infer -m "$fim" -p the --suffix in -n 3
status 0
infer -m "$fim" -p '<|im_start|>' --suffix in --show-prompt # text of a part is never a special token
[ "$(ids | wc -w)" -gt 5 ] || bad "$(ids)"
usage '--suffix: the model has no tokens for a text with a gap' -m "$ask" -p the --suffix in
usage '--suffix: contradicts --chat|--chat: contradicts --suffix' -m "$fim" -p the --suffix in --chat

finish

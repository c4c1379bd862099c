# run --json and --jsonl: always valid by docs/run*.schema.json, and correct.
. test/cli/lib.sh

begin options_without_json_are_refused
usage '--logprobs: needs --json or --jsonl' -p x --logprobs 2
usage '--token-ids: needs --json or --jsonl' -p x --token-ids
usage '--hash: needs --json or --jsonl' -p x --hash
usage '--hash: needs --json or --jsonl' -p x --hash --json=off
usage '--json: contradicts --jsonl' -p x --json --jsonl
usage '--echo: contradicts --jsonl' -p x --echo --jsonl
usage "--logprobs: '1001' is not a whole number from -1 to 1000" -p x --json --logprobs 1001

begin errors_are_not_json # standard output is empty, the line is on standard error
infer -m "$work/none.gguf" -p x --json
status 3
out ''
err_line 'none.gguf'
infer -m "$work/none.gguf" -p x --jsonl
status 3
out ''
err_line 'none.gguf'

[ -n "$MODEL" ] || { echo 'skip the rest of t_json.sh: no model'; finish; exit; }
INFER_MODEL=$MODEL XDG_CACHE_HOME=$work/cache
export INFER_MODEL XDG_CACHE_HOME
france='The capital of France is'
begin the_schemas_refuse_wrong_objects
printf '{"model":"x"}' >"$work/out"
"$INFER" check --json-schema docs/run.schema.json <"$work/out" >/dev/null 2>&1 && bad 'accepted'
printf '{"event":"token","index":0,"id":1}' >"$work/out"
"$INFER" check --json-schema docs/run-event.schema.json <"$work/out" >/dev/null 2>&1 && bad 'accepted'
printf '{"message":{"role":"user","content":""},"prompt_tokens":1,"read_tokens":1,"tokens":1,"stop":"eos","seed":0}' >"$work/out"
"$INFER" check --json-schema docs/chat.schema.json <"$work/out" >/dev/null 2>&1 && bad 'accepted'

begin json_is_as_the_schema_says
infer -p "$france" -n 6 --temp 0 --json
status 0
err ''
valid run.schema.json
out_like '"ids":\[7042,30,198,198,'
infer -p "$france" -n 6 --temp 0 --json --logprobs 3 --token-ids
valid run.schema.json
out_like '"prompt_ids":\[504,3575,282,4649,314\],"ids":\[7042,30,198,198,'
out_like '"logprobs":\[\{"id":7042,"text":" Paris","logprob":-0\.3[0-9]+,"bytes":\[32,80,97,114,105,115\],"top":\[\{"id":7042,'
infer -p "$france" -n 6 --temp 0 --json --logprobs 0
valid run.schema.json
! grep -q '"top"' "$work/out" || bad 'alternatives without --logprobs'
infer -p "$france" -n 0 --json --logprobs 2 --token-ids
valid run.schema.json
out_like '"tokens":0,"text":"".*"ids":\[\],"logprobs":\[\]'

begin logprobs_are_those_of_the_logits # of `infer logits`: sums of exp by awk in double precision
infer logits -p "$france" -o "$work/logits"
rows=$(($(wc -c <"$work/logits") / 49152 / 4))
tail -c $((49152 * 4)) "$work/logits" | od -An -v -t f4 -w4 >"$work/last"
[ "$rows" -eq 5 ] || bad 'not five rows'
want=$(awk 'NR == FNR { if ($1 > most || NR == 1) most = $1; next }
            { sum += exp($1 - most) } END { printf "%.4f", -log(sum) }' "$work/last" "$work/last")
infer -p "$france" -n 1 --temp 0 --json --logprobs 0
got=$(sed 's/.*"logprobs":.*"logprob":\(-[0-9.]*\).*/\1/' "$work/out")
awk -v a="$want" -v b="$got" 'BEGIN { d = a - b; exit !(d < 0.0002 && d > -0.0002) }' ||
    bad "logprob $got, not $want"

begin jsonl_is_a_stream_of_the_same
infer -p "$france" -n 6 --temp 0 --jsonl --logprobs 1 --token-ids
status 0
err ''
valid run-event.schema.json
head -n 1 "$work/out" | grep -q '^{"event":"start",' || bad 'no start'
[ "$(grep -c '^{"event":"token",' "$work/out")" -eq 6 ] || bad 'not six tokens'
out_like '^\{"event":"token","index":5,'
tail -n 1 "$work/out" | grep -q '^{"event":"end",.*"stop":"limit"' || bad 'no end'
pieces=$(sed -n 's/^{"event":"t[a-z]*",.*"text":"\([^"]*\)","logprob.*/\1/p' "$work/out" | tr -d '\n')
tail -n 1 "$work/out" | grep -qF "\"text\":\"$pieces\"" || bad "pieces '$pieces' are not the text"

begin the_reason_of_the_end_is_named
infer -p "$france" -n 20 --temp 0 --jsonl --stop $(printf 'ris.')
valid run-event.schema.json
tail -n 1 "$work/out" | grep -q '"text":" Pa","stop":"stop","stop_text":"ris\."' || bad 'stop'
grep -q '"event":"token",.*ris' "$work/out" && bad 'a stop text was shown'
infer -p "$france" -n 100 -c 8 --temp 0 --jsonl
valid run-event.schema.json
tail -n 1 "$work/out" | grep -q '"stop":"context"' || bad 'context'
infer -p "$france" -n 2 --temp 0 --jsonl --stop zzz -l '<|im_end|>+1000'
valid run-event.schema.json
tail -n 1 "$work/out" | grep -q '"tokens":1,"text":"","stop":"eos"' || bad 'eos'

begin bytes_that_are_no_text_are_replaced # repeated partial characters: never invalid JSON
byte=$(printf '\303' | "$INFER" tokenize)
infer -p x -n 3 --temp 0 --json --logprobs 1 -l "$byte+1000"
valid run.schema.json
out_like '"tokens":3,"text":"(\\ufffd|�)+"'
infer -p x -n 3 --temp 0 --jsonl --logprobs 1 -l "$byte+1000"
valid run-event.schema.json
out_like '"id":'"$byte"',"text":"","logprob":[-0-9.]*,"bytes":\[195\],"top":\[\{"id":[0-9]*,"text":"[^"]*","logprob":[-0-9.]*,"bytes":\[[0-9,]*\]\}\]'
infer -p x -n 2 --temp 0 --jsonl --ignore-eos --logprobs 1000
valid run-event.schema.json

begin chat_has_a_message_member
infer --chat -p Hi -n 3 --temp 0 --json --logprobs 1
valid run.schema.json
out_like '"message":\{"role":"assistant",'
infer --chat -p Hi -n 3 --temp 0 --jsonl
valid run-event.schema.json
out_like '^\{"event":"end",.*"message":\{"role":"assistant",'

begin hash_is_remembered
want=$(sha256sum <"$MODEL" | cut -d ' ' -f 1)
infer -p x -n 1 --json
out_like '"model_sha256":null'
infer -p x -n 1 --json --hash
out_like "\"model_sha256\":\"$want\""
infer -p x -n 1 --json
out_like "\"model_sha256\":\"$want\""
infer -p x -n 1 --jsonl
head -n 1 "$work/out" | grep -q "$want" || bad 'the first line lacks the hash'
for entry in "$work/cache/infer/sha256/"*; do printf 'nonsense' >"$entry"; done
infer -p x -n 1 --json # a broken entry is ignored
status 0
out_like '"model_sha256":null'
INFER_MODEL=$work/small.gguf XDG_CACHE_HOME=/dev/null
"$make_model" "$INFER_MODEL"
want=$(sha256sum <"$INFER_MODEL" | cut -d ' ' -f 1)
infer -p x -n 1 --json --hash # a missing cache is not an error
status 0
err ''
out_like "\"model_sha256\":\"$want\""
XDG_CACHE_HOME=$work/cache
touch -d '1 hour' "$INFER_MODEL"
infer -p x -n 1 --json --hash # may still change, by its date: computed, not stored
out_like "\"model_sha256\":\"$want\""
infer -p x -n 1 --json
out_like '"model_sha256":null'
INFER_MODEL=$MODEL

begin an_interrupt_is_a_reason_of_the_end
# The shell makes background jobs ignore Ctrl-C; python restores the default.
if command -v python3 >/dev/null; then
    python3 -c 'import signal, subprocess, sys
p = subprocess.Popen([sys.argv[1], "-p", "x", "-n", "4000", "--ignore-eos", "--jsonl"],
                     stdout=subprocess.PIPE, stdin=subprocess.DEVNULL,
                     preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler))
lines = [p.stdout.readline() for _ in range(4)]
p.send_signal(signal.SIGINT)
lines += p.stdout.readlines()
open(sys.argv[2], "wb").writelines(lines[-1:])
print(p.wait())' "$INFER" "$work/out" >"$work/code"
    last='--jsonl and Ctrl-C'
    code=$(cat "$work/code")
    status 130
    valid run-event.schema.json
    out_like '^\{"event":"end",.*"stop":"interrupted"'

    # Interrupted while the prompt is read: reports the time, and that no state was saved.
    seq 1200 >"$work/long"
    python3 -c 'import signal, subprocess, sys
p = subprocess.Popen([sys.argv[1], "-f", sys.argv[3], "-n", "1", "--jsonl", "-v", "--isa", "scalar"],
                     stdout=subprocess.PIPE, stderr=subprocess.PIPE, stdin=subprocess.DEVNULL,
                     preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler))
p.stdout.readline()
p.send_signal(signal.SIGINT)
out, err = p.communicate()
open(sys.argv[2], "wb").write(out)
sys.stderr.buffer.write(err)
print(p.wait())' "$INFER" "$work/out" "$work/long" >"$work/code" 2>"$work/err"
    code=$(cat "$work/code")
    status 130
    out_like '"tokens":0,.*"stop":"interrupted".*"prompt_ms":[0-9.]*[1-9][0-9.]*,'
    tail -n 1 "$work/out" | python3 -c 'import json, sys
t = json.load(sys.stdin)["timings"]
sys.exit(t["prompt_ms"] <= t["generate_ms"])' || bad 'the time of the prompt is counted as generation'
    err_like '^infer: prompt: 0 of [0-9]+ tokens, '
else
    skip 'no python3'
fi

finish

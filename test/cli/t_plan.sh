# run --plan: the needs of a run, computed from the header alone.
. test/cli/lib.sh

begin plan_contradicts_streams
usage '--jsonl: contradicts --plan' --plan --jsonl
usage '--echo: contradicts --plan' -p x --plan --echo

[ -n "$MODEL" ] || { echo 'skip the rest of t_plan.sh: no model'; finish; exit; }
INFER_MODEL=$MODEL
export INFER_MODEL

number() { sed "s/.*\"$1\":\([0-9]*\).*/\1/" "$work/out"; }

begin plan_needs_no_text
infer --plan
status 0
err ''
out_like '^weights +96\.6 MB '
out_like '^cache +97\.3 MB  for 4096 tokens'
out_like '^total +[0-9.]+ MB'
out_like '^threads +[0-9]+ +[a-z][a-z0-9]*'
infer --plan -c 64 -t 1 --isa scalar --json -ctk f32 -ctv f32
status 0
out_like '"prompt_tokens":64,"context":64,"threads":1,"level":"scalar","bytes":\{"weights":96576768,"cache":2949120,'
[ "$(number total)" -eq $(($(number weights) + $(number cache) + $(number activations) + \
    $(number program))) ] || bad 'the total is not the sum'

begin plan_counts_the_prompt
infer --plan -p 'The capital of France is' -n 3 --json
out_like '"prompt_tokens":5,"context":4096,'
small=$(number activations)
infer --plan --json
[ "$(number activations)" -gt "$small" ] || bad 'a larger batch needs no more'
printf '%9000s' '' | tr ' ' 'a' >"$work/long"
infer --plan -f "$work/long" -c 16
status 5
out ''

begin plan_counts_the_graphs_of_guesses
infer --plan -c 64 --json
guessed=$(number activations)
infer --plan -c 64 --draft off --json
# 2 + 3 + 5 + 9 + 17 rows of logits at least
[ "$(number activations)" -le $((guessed - 36 * 49152 * 4)) ] || bad "$guessed bytes with guesses, $(number activations) without"

begin plan_reads_only_the_header # the first megabytes of a download
infer --plan -c 64 --json
whole=$(sed 's/"program".*//; s/.*"prompt_tokens"/"prompt_tokens"/' "$work/out")
head -c 3000000 "$MODEL" >"$work/begun.gguf"
infer --plan -c 64 --json -m "$work/begun.gguf"
status 0
err ''
out_like '"weights":96576768,'
[ "$(sed 's/"program".*//; s/.*"prompt_tokens"/"prompt_tokens"/' "$work/out")" = "$whole" ] ||
    bad 'another plan than for the whole file'
infer -p x -n 1 -m "$work/begun.gguf" # which is not enough to run
status 3
out ''
err_line 'damaged or truncated'
head -c 100000 "$MODEL" >"$work/begun.gguf"
infer --plan -m "$work/begun.gguf" # not even the header
status 3
out ''
err_line 'begun.gguf'

begin plan_allocates_no_memory # a cache of 460 GB, on any machine
infer --plan -c 10000000 -ctk f32 -ctv f32 -p x
status 0
out_like '^cache +460800\.0 MB'
out_like '^total .*(does not fit|: fits)$'

begin plan_is_the_memory_that_a_run_uses # its peak, within 15 % and 8 MB
if command -v python3 >/dev/null; then
    for case in "-c 64 -n 58" "-c 1024 -n 8 -b 256"; do
        # shellcheck disable=SC2086
        infer --plan $case --ignore-eos --json -p 'The capital of France is'
        plan=$(number total) cache=$(number cache)
        # shellcheck disable=SC2086
        got=$(python3 -c 'import os, subprocess, sys
p = subprocess.Popen(sys.argv[1:], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
_, status, used = os.wait4(p.pid, 0)
print(used.ru_maxrss * 1024 if status == 0 else 0)' "$INFER" $case --ignore-eos \
            -p 'The capital of France is')
        # Only the filled part of the cache is resident.
        low=$(((plan - cache) * 85 / 100 - 8000000)) high=$((plan * 115 / 100 + 8000000))
        { [ "$got" -ge "$low" ] && [ "$got" -le "$high" ]; } ||
            bad "infer $case: $got bytes at most, planned $plan"
    done
else
    skip 'no python3'
fi

finish

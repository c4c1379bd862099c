# Out of memory: whichever allocation fails, the command ends with status 4 and one line, or gives the
# same result without it. A sample of the allocations of each command, including those of libraries;
# all of them with INFER_TEST_MEMORY=all in the environment. Models with random weights.
every=${INFER_TEST_MEMORY-}
. test/cli/lib.sh

library=${INFER%/*}/test/fail_alloc.so
[ -x "$make_model" ] && [ -r "$library" ] || { echo "skip: $library is not built"; finish; exit 0; }
"$make_model" "$work/m.gguf" vocab=512 || exit 1
"$make_model" "$work/other.gguf" vocab=512 type=F16 seed=2 || exit 1
"${INFER%/*}/test/tool_make_adapter" "$work/m.gguf" "$work/lora.gguf" alpha=4 || exit 1
mkdir "$work/folder"
cp "$work/m.gguf" "$work/folder"
yes 'some words and then some more' | head -n 40 >"$work/text"
printf '%s' '[{"role":"user","content":"hi"},{"role":"assistant","content":"","tool_calls":[{"type":"function",' \
    '"function":{"name":"f","arguments":"{\"a\":1}"}}]},' \
    '{"role":"tool","content":[{"type":"text","text":"r"}]}]' >"$work/messages.json"
printf '[{"type":"function","function":{"name":"f"}}]' >"$work/tools.json"
printf '%s' '{% for m in messages %}{{ m.role }}{{ m.content }}{% for c in m.tool_calls %}' \
    '{{ c.function.arguments }}{% endfor %}{% endfor %}{{ tools|length }}{{ bos_token }}' >"$work/template.jinja"
printf '%s' '{% for m in messages %}{{ m.content }}{% for c in m.tool_calls %}<tool_call>{"name": "{{ c.function.name }}", ' \
    '"arguments": {{ c.function.arguments | tojson }}}</tool_call>{% endfor %}{% endfor %}{{ tools|length }}' >"$work/calls.jinja"
printf 'hi\n/system be brief\nagain\n/save %s\n/load %s\n/help\n' "$work/saved" "$work/saved" >"$work/lines"
printf '%s' '{"type":"object","properties":{"a":{"enum":["x","y"]},"b":{"minimum":3},"c":{"pattern":"a+b"}}}' \
    >"$work/schema.json"
printf '%s\n' '{"id":1,"prompt":"some words","predict":3}' '{"prompt":"some other","regex":"[ab]+","predict":4}' \
    >"$work/batch"
mkdir "$work/libraries" # OpenMP, which OpenBLAS may load, ends the process if it has no memory
: >"$work/libraries/libopenblas.so.0"
LD_LIBRARY_PATH=$work/libraries
export LD_LIBRARY_PATH

# failing VARIABLE=N ARGS...: the program with the library.
failing() {
    variable=$1
    shift
    last="$* ($variable)"
    env "$variable" LD_PRELOAD="$library" "$INFER" "$@" <"${input:-/dev/null}" >"$work/out" 2>"$work/err"
    code=$?
}

# Checks the result after a failure. exact: whether the output is the same in every run (yes, no), or
# each line is independent (lines).
check_result() {
    case $code in
    4)
        tail -n 1 "$work/err" | grep -q '^infer: .' || bad "infer $last: status 4 without a line"
        [ $exact = no ] || head -c "$(wc -c <"$work/out")" "$work/right" | cmp -s - "$work/out" ||
            bad "infer $last: other output before the end"
        ;;
    "${usual:-0}") [ $exact = no ] || cmp -s "$work/right" "$work/out" || bad "infer $last: another answer, status $code" ;;
    1) [ $exact = lines ] && lines_are_right || bad "infer $last: status 1: $(head -c 200 "$work/err")" ;;
    *) bad "infer $last: status $code: $(head -c 200 "$work/err")" ;;
    esac
}

# Each line is right or reports that memory ran out: as an object, or, if lines are plain text, as an
# empty line and a message on standard error.
lines_are_right() {
    paste -d '\n' "$work/right" "$work/out" | awk -v plain="$(grep -c '^infer: line [0-9]*: .*memory' "$work/err")" '
        NR % 2 { right = $0; next }
        $0 != right && !/"status":4/ { if ($0 != "" || plain-- <= 0) wrong = 1 }
        END { exit wrong || NR == 0 }'
}

# The first 16 allocations, then 24 distributed over the rest (short runs: 3 and 4); or all.
first=${quick:+3} first=${first:-16}
rest=${quick:+4} rest=${rest:-24}
sample() {
    failing "FAIL_ALLOC_COUNT=$work/count" "$@"
    [ $code -eq "${usual:-0}" ] || bad "infer $last: status $code: $(head -c 200 "$work/err")"
    mv "$work/out" "$work/right"
    count=$(cat "$work/count")
    [ "$count" -gt 2 ] || bad "infer $last: $count allocations were counted"
    step=$(((count - first) / rest))
    [ -z "$every" ] && [ $step -gt 1 ] || step=1
    at=1
    while [ $at -le "$count" ] && [ -z "$test_bad" ]; do
        failing "FAIL_ALLOC_AT=$at" "$@"
        check_result
        if [ $at -lt $first ]; then at=$((at + 1)); else at=$((at + step)); fi
    done
}

printf '%s\n' '{"prompt":"a b c","continuations":["d","e f"]}' '{"prompt":"a b d","continuations":["d"]}' \
    '{"messages":[{"role":"user","content":"hi"}],"continuations":["x"]}' '{"texts":["a b c","a b d"]}' >"$work/rows"
m="-m $work/m.gguf -t 1"
# shellcheck disable=SC2086 # $m is several words
memory() { # NAME EXACT COMMAND ARGS...
    begin "${1}_ends_in_order_without_memory"
    exact=$2 input=${given-}
    shift 2
    sample "$@"
}
# shellcheck disable=SC2086
{
    memory run yes run $m -p hello -n 4
    memory run_json no run $m -p hello -n 4 --json --logprobs 2 --token-ids --hash --stop zzz -e
    memory run_schema yes run $m -p x -n 60 --json-schema "$work/schema.json"
    memory run_grammar yes run $m -p x -n 20 --grammar 'root ::= "a" | "b" root'
    memory run_choices yes run $m -p x -n 20 --choices yes,no
    memory run_chat yes run $m --chat --template "$work/template.jinja" -n 2 \
        --messages "$work/messages.json" --tools "$work/tools.json"
    memory run_tool_choice yes run $m --chat --template "$work/calls.jinja" -n 70 -p hello \
        --tools "$work/tools.json" --tool-choice required --continue ''
    memory run_draft yes run $m -p 'hello hello hello hello' -n 8 --draft ngram
    memory run_draft_model yes run $m -p hello -n 4 --draft "$work/m.gguf"
    memory run_plan no run $m -p hello --plan
    memory run_show_prompt yes run $m -p hello --show-prompt --json
    given=$work/lines
    memory chat yes chat --commands $m --template chatml -n 2
    given=
    memory tokenize yes tokenize -m "$work/m.gguf" -p hello --json
    memory decode yes tokenize -m "$work/m.gguf" --decode -p '1 2 3'
    memory logits yes logits $m -p hello
    memory logits_file yes logits $m -p hello -o -
    memory perplexity yes perplexity $m -f "$work/text" --save-logits "$work/saved.bin"
    memory perplexity_kl yes perplexity $m --kl "$work/saved.bin"
    memory perplexity_u16 yes perplexity $m -f "$work/text" --save-logits "$work/saved16.bin" --logits-format u16
    memory perplexity_kl_u16 yes perplexity $m --kl "$work/saved16.bin" --json
    memory score yes score $m -p hello --continuation ' you' --continuation ' all'
    given=$work/rows
    memory score_lines yes score $m --chat --template chatml -np 2
    given=
    every_rest=$rest rest=$((rest / 2)) # a run measures this machine, before each row
    memory bench no bench $m -p 2 -n "$([ -n "$quick" ] && echo 0 || echo 1)" -r 1 --plot
    rest=$every_rest
    memory lora yes run $m -p hello -n 4 --lora "$work/lora.gguf:0.5"
    memory merge_lora yes merge-lora "$work/m.gguf" - Q8_0 -t 1 --lora "$work/lora.gguf"
    memory inspect no inspect "$work/m.gguf"
    memory quantize yes quantize "$work/m.gguf" - Q4_0 -t 1
    memory quantize_types yes quantize "$work/m.gguf" - Q4_0 -t 1 --tensor-type 'ffn_(up|down)=Q8_0' --tensor-type attn_q=F16
    memory quantize_dry_run yes quantize "$work/m.gguf" Q4_K_M --dry-run --tensor-type ffn_up=Q8_0 --output-type Q6_K
    memory inspect_json no inspect "$work/m.gguf" --json
    memory split yes split "$work/m.gguf" "$work/p" --max-tensors 10
    memory merge yes merge "$work/p-00002-of-00003.gguf" -
    memory merge_dry_run yes merge "$work/p-00002-of-00003.gguf" --dry-run
    memory quantize_parts yes quantize "$work/p-00001-of-00003.gguf" "$work/k" Q8_0 -t 1 --keep-split
    memory edit_names yes edit "$work/m.gguf" -o - --rename general.name=general.title --set b=int:1
    cp "$work/m.gguf" "$work/in_place.gguf"
    memory edit_in_place yes edit "$work/in_place.gguf" --set general.name=Another
    memory edit yes edit "$work/m.gguf" -o - --set a=int:1 --set "b=str[]:[\"x\",\"y\"]" --delete general.name --template "$work/template.jinja"
    usual=1
    memory diff yes diff "$work/m.gguf" "$work/other.gguf" -t 1
    usual=0
    memory verify_sum yes verify "$work/p-00001-of-00003.gguf" -t 1 --sha256 "$(sha256sum "$work/p-00001-of-00003.gguf" | cut -d ' ' -f 1)"
    memory verify yes verify "$work/m.gguf" --hash --json -t 1
    memory imatrix yes imatrix $m -f "$work/text" -o "$work/imatrix.gguf"
    memory quantize_imatrix yes quantize "$work/m.gguf" - IQ3_XS -t 1 --imatrix "$work/imatrix.gguf"
    given=$work/batch
    memory batch lines batch $m -np 2
    memory batch_lines lines batch $m -np 2 --lines --each 'is {} good?' --choices yes,no
    given=
    yes 'some words' | head -n 20 >"$work/prefix"
    memory run_cache yes run $m -f "$work/prefix" -n 4 --cache "$work/cache"
    given=$work/lines
    memory chat_cache yes chat --commands $m --template chatml -n 2 --cache "$work/cache"
    given=
    for entry in "$work/cache"/*; do touch -d '5 days ago' "$entry"; done # the same age in every run
    memory cache yes cache --cache "$work/cache"
    memory cache_json no cache --cache "$work/cache" --json
    memory models yes models "$work/folder" --json
    memory check yes check --json-schema "$work/schema.json" -p '{"a":"x"}'
    memory check_regex yes check --regex '(a|b){2,5}[^x]+' -p 'abab'
    memory run_samplers yes run $m -p 'a b a b a b' -n 4 --dry-multiplier 0.8 --temp 0.9 --min-p 0.1 --seed 3
    memory lines yes tokenize -m "$work/m.gguf" -f "$work/text" --lines
    memory man yes man
    memory completion yes completion words -- ''
    memory help yes help run
    memory version yes version --json
}
# Each run measures this machine.
begin doctor_ends_in_order_without_memory
exact=no
for at in 1 3 7 20 $([ -n "$quick" ] || echo 2 4 5 6 8 12 40); do
    failing "FAIL_ALLOC_AT=$at" doctor -m "$work/m.gguf" -t 1
    check_result
done

begin fewer_threads_where_one_cannot_start
infer logits -m "$work/m.gguf" -p hello -t 1
cp "$work/out" "$work/right"
for at in 1 2 3; do
    failing "FAIL_THREAD_AT=$at" logits -m "$work/m.gguf" -p hello -t 4 -v
    status 0
    err_like ", $at threads"
    cmp -s "$work/out" "$work/right" || bad "infer $last: other logits"
done

# A limit that may be raised is raised, also for threads; otherwise one line says so.
begin a_small_stack_is_raised_or_named
for command in "run $m -p x -n 2" "run -m $work/m.gguf -t 3 -p x -n 20 --json-schema $work/schema.json" "score $m -p a --continuation b" \
    "quantize $work/m.gguf - Q3_K"; do
    # shellcheck disable=SC2086
    infer $command
    cp "$work/out" "$work/right"
    # shellcheck disable=SC2086
    (ulimit -S -s 64; exec "$INFER" $command) </dev/null >"$work/out" 2>"$work/err"
    code=$? last="$command with a stack of 64 kB"
    status 0
    cmp -s "$work/out" "$work/right" || bad "$command: other output"
done
if [ "$(id -u)" -eq 0 ] && command -v setpriv >"$work/said" && setpriv --bounding-set -sys_resource true 2>"$work/said"; then
    (ulimit -s 64; exec setpriv --bounding-set -sys_resource --inh-caps -sys_resource "$INFER" version) </dev/null >"$work/out" 2>"$work/err"
    code=$? last='version with a hard limit of 64 kB'
    status 4
    err_line 'the stack is limited to 64 kB .ulimit -s.: 512 kB are needed'
elif [ "$(id -u)" -ne 0 ]; then
    (ulimit -s 64; exec "$INFER" version) </dev/null >"$work/out" 2>"$work/err"
    code=$? last='version with a hard limit of 64 kB'
    status 4
    err_line 'the stack is limited to 64 kB .ulimit -s.: 512 kB are needed'
fi

finish

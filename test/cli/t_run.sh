# infer run with a small model: the contents of each stream, and the reason of the end.
. test/cli/lib.sh
[ -n "$MODEL" ] || { echo 'skip t_run.sh: no model'; finish; exit; }
INFER_MODEL=$MODEL
export INFER_MODEL
france='The capital of France is'

begin stdout_is_the_completion_alone
infer -p "$france" -n 8 --temp 0
status 0
out ' Paris.\n\nThe answer is:'
err ''

begin run_is_the_default_command
infer run -p "$france" -n 8 --temp 0
status 0
out ' Paris.\n\nThe answer is:'

begin raw_ignores_the_template
# The model file has a chat template; -p is still the whole text, and the program ends by itself.
infer logits -p 'Hello' --top 1
out_like '"ids":1,'
infer -p 'Hello' -n 1 --json
out_like '"prompt_tokens":1,'

begin end_of_input_ends_with_status_0
printf '%s' "$france" >"$work/prompt"
input=$work/prompt
infer -n 8 --temp 0
status 0
out ' Paris.\n\nThe answer is:'
err ''

begin text_is_read_from_a_file
infer -f "$work/prompt" -n 2 --temp 0
out ' Paris.'
input=$work/prompt
infer -f - -n 2 --temp 0
out ' Paris.'

begin piped_input_comes_before_the_text # as a question follows its subject
printf 'The capital\n' >"$work/rest"
input=$work/rest
infer -p 'of France is' -n 2 --temp 0 --echo
out 'The capital\nof France is Paris.'
printf 'The capital' >"$work/rest"
infer -p 'of France is' -n 0 --echo # a line end between them
out 'The capital\nof France is'
infer -p '' -n 0 --echo # an empty text, and a piped text
out 'The capital'
infer -e -p '\nof' -n 0 --echo
out 'The capital\nof'

begin piped_input_comes_before_a_file
printf 'of France is' >"$work/prompt"
printf 'The capital' >"$work/rest"
printf 'The capital' | "$INFER" -f "$work/prompt" -n 0 --echo >"$work/out" 2>"$work/err"
code=$? last='a pipe and -f'
status 0
out 'The capital\nof France is'
input=$work/rest
infer check --regex 'The capital\nof France is' -f "$work/prompt" # every command that reads a text
status 0
for same in - /dev/stdin "$work/rest"; do # another name of standard input is read once
    infer -f "$same" -n 0 --echo
    out 'The capital'
done
printf '' | "$INFER" -f "$work/prompt" -n 0 --echo >"$work/out" 2>"$work/err" # an empty pipe adds nothing
out 'of France is'
usage 'none: cannot read: ' -f "$work/none"

begin newline_adds_a_line_end_to_the_text
infer -p "$france" -n 2 --temp 0 --newline
out ' Paris.\n'
infer run --chat -p 'What is 2+2?' --temp 0 --newline
out 'The answer to this classic math problem is 4.\n'
usage '--newline: contradicts --json' -p x --newline --json
printf 'a\nb\n' | xargs -n 1 "$INFER" -n 0 --newline --echo -p >"$work/out" 2>"$work/err"
code=$? last='xargs infer'
status 0
out 'a\nb\n'

begin all_bytes_of_the_text_are_kept
infer -p "$france" -n 2 --temp 0 --echo
out 'The capital of France is Paris.'
infer tokenize -p 'a\nb'
cp "$work/out" "$work/raw"
infer tokenize -e -p 'a\nb'
cmp -s "$work/out" "$work/raw" && bad '-e changes nothing'
printf 'a\nb' >"$work/ab"
cp "$work/out" "$work/escaped"
infer tokenize -f "$work/ab"
cmp -s "$work/out" "$work/escaped" || bad '-e is not a newline'

begin no_escape_codes_or_spinners
"$INFER" -p "$france" -n 8 --temp 0 >"$work/out" 2>&1 </dev/null
if grep -q "$(printf '\033\|\r')" "$work/out"; then bad 'escape codes or carriage returns'; fi

begin a_text_may_have_any_bytes # if each byte has a token: 0xff has none
printf '\200\000\001 \303' >"$work/binary"
infer -f "$work/binary" -n 2
status 0
err ''

begin bytes_without_a_token_are_named
printf 'a\377 b\377' >"$work/binary"
usage 'byte 0xFF; --lossy .*\(at byte 1\)' -f "$work/binary" -n 2
usage 'byte 0xFF; --lossy .*\(at byte 1\)' tokenize -f "$work/binary"
infer tokenize -p 'a b'
cp "$work/out" "$work/kept"
infer tokenize -f "$work/binary" --lossy
status 0
cmp "$work/out" "$work/kept" || bad 'other ids than those of the bytes that have a token'
infer -f "$work/binary" --lossy -n 2
status 0
printf '\377' >"$work/binary"
usage 'byte 0xFF; .*\(at byte 0\)' -f "$work/binary"

begin an_empty_text_is_completed # this model adds no beginning-of-text token
usage 'the text is empty' -p ''
input=/dev/null
usage 'the text is empty'

begin a_limit_of_0_generates_nothing
infer -p "$france" -n 0
status 0
out ''
err ''

begin stop_texts_are_found_across_tokens
infer -p "$france" -n 20 --temp 0 --stop 'e ans'
status 0
out ' Paris.\n\nTh'
infer -p "$france" -n 20 --temp 0 --stop 'zzz' --stop 'ris'
out ' Pa'
infer -p "$france" -n 20 --temp 0 --stop '\n\n'
out_like 'answer'
infer -p "$france" -n 20 --temp 0 -e --stop '\n\n'
out ' Paris.'
infer -p "$france" -n 2 --temp 0 --stop '.zz' # never completed: all is shown
out ' Paris.'

begin json_has_every_field
infer -p "$france" -n 8 --temp 0 --json -s 7
status 0
err ''
[ "$(wc -l <"$work/out")" -eq 1 ] || bad 'not one line'
out_like '^\{"model":"[^"]*","prompt_tokens":5,"tokens":8,"text":" Paris\.\\n\\nThe answer is:","stop":"limit","stop_text":null,"seed":7,"timings":\{"load_ms":[0-9.]+,"prompt_ms":[0-9.]+,"generate_ms":[0-9.]+,"choose_ms":[0-9.]+,"prompt_per_second":[0-9.]+,"tokens_per_second":[0-9.]+\},"cached_tokens":0,"chat":false,"model_path":".*","model_sha256":(null|"[0-9a-f]{64}"),"version":"0.1.0","ids":\[[0-9,]+\]\}$'
infer -p "$france" -n 20 --temp 0 --json --stop ris
out_like '"text":" Pa","stop":"stop","stop_text":"ris"'

begin a_text_that_does_not_fit_is_refused
infer -p "$france" -n 2 -c 4
status 5
out ''
err_line 'the text has 5 tokens and the context holds 4'

begin a_full_context_ends_the_text
infer -p "$france" -n 100 -c 8 --temp 0 --json
status 0
out_like '"tokens":4,.*"stop":"context"'

begin settings_of_generation_are_options
infer -p "$france" -n 3 -s 5 --temp 0.7 --top-k 20 --top-p 0.9 --min-p 0.01 --repeat-penalty 1.1 \
    --frequency-penalty 0.1 --presence-penalty 0.1 --repeat-last-n 32 --ignore-eos -c 64 -b 4 -t 1 \
    -ctk q8_0 -ctv q8_0 --isa avx2 --no-bos --no-special --special --pin
status 0
err ''

begin the_same_bytes_always
infer -p "$france" -n 12
cp "$work/out" "$work/first"
for variant in "" "-t 1" "-t 3" "-b 1" "-b 2" "--isa scalar" "--isa avx2" "-c 64" "--seed 0"; do
    # shellcheck disable=SC2086
    infer -p "$france" -n 12 $variant
    cmp -s "$work/out" "$work/first" || bad "other bytes with '$variant'"
done
infer -p "$france" -n 12 -s 1
cmp -s "$work/out" "$work/first" && bad 'the seed changes nothing'

begin an_end_of_text_token_ends_the_text
chat='<|im_start|>user\nSay hi<|im_end|>\n<|im_start|>assistant\n'
infer -e -p "$chat" -n 100 --temp 0 --json
status 0
out_like '"stop":"eos"'
infer -e -p "$chat" -n 100 --temp 0 --json --ignore-eos
out_like '"tokens":100,.*"stop":"limit"'

begin verbose_goes_to_stderr
infer -p "$france" -n 2 --temp 0 -v
status 0
out ' Paris.'
err_like '^infer: generated: 2 tokens'

begin threads_follow_the_affinity_mask
if command -v taskset >/dev/null 2>&1; then
    taskset -c 0 "$INFER" -p "$france" -n 1 -v >"$work/out" 2>"$work/err" </dev/null
    code=$? last='with one processor'
    status 0
    err_like ', 1 threads'
else
    skip 'no taskset here'
fi

begin a_full_disk_is_an_error
if full_disk; then
    "$INFER" -p "$france" -n 4 >/dev/full 2>"$work/err" </dev/null
    code=$? last='to a full disk'
    status 1
    err_line 'standard output: cannot write: '
else
    skip 'no /dev/full here'
fi

begin a_closed_pipe_ends_quietly
{
    "$INFER" -p "$france" -n 1000 --ignore-eos 2>"$work/err"
    echo $? >"$work/code"
} </dev/null | head -c 1 >/dev/null
[ ! -s "$work/err" ] || bad "said $(cat "$work/err")"
case $(cat "$work/code") in 0 | 141) ;; *) bad "status $(cat "$work/code")" ;; esac

begin ctrl_c_ends_the_text
# A shell starts background jobs with SIGINT ignored; env restores it if it has the option.
if env --default-signal=INT true 2>/dev/null; then
    : >"$work/out" # the loop may read the file before the job truncates it
    env --default-signal=INT "$INFER" -p "$france" -n 100000 -c 8192 --ignore-eos --temp 0 \
        >"$work/out" 2>"$work/err" </dev/null &
    pid=$!
    tries=0
    while [ ! -s "$work/out" ] && [ $tries -lt 300 ]; do
        sleep 0.1
        tries=$((tries + 1))
    done
    kill -INT $pid
    wait $pid
    code=$? last='interrupted'
    status 130
    out_like '^ Paris'
    err ''
else
    skip 'env cannot restore SIGINT here'
fi

finish

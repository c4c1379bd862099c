# Standard input: which of it is read beside -p or -f, inputs of loops, closed ones, and silent waits.
. test/cli/lib.sh
m=$work/m.gguf
"$make_model" "$m" arch=llama tokens=bpe 2>/dev/null ||
    { echo 'skip t_stdin.sh: tool_make_model is not built'; finish; exit; }
INFER_MODEL=$m
export INFER_MODEL
printf 'first\nsecond\nthird\n' >"$work/list"
printf 'given' >"$work/given"
prompt() { "$INFER" run "$@" --show-prompt 2>"$work/err" | sed '$d'; } # the text that is read
is() { [ "$1" = "$2" ] || bad "'$1', not '$2': $(cat "$work/err")"; }

begin input_of_a_pipe_or_a_file_comes_before_the_text
is "$(printf 'piped' | prompt -p text)" "$(printf 'piped\ntext')"
is "$(printf 'piped' | prompt -f "$work/given")" "$(printf 'piped\ngiven')"
is "$(prompt -p text <"$work/list")" "$(printf 'first\nsecond\nthird\ntext')"
is "$(prompt -f - <"$work/list")" "$(cat "$work/list")"
is "$(prompt -p text </dev/null)" text
is "$(prompt -f "$work/given" words)" "$(printf 'given\nwords')"
is "$(printf 'piped\n' | prompt -p text -f "$work/given")" "$(printf 'piped\ngiven\ntext')"
is "$(prompt -f - words <"$work/list")" "$(printf 'first\nsecond\nthird\nwords')"
is "$("$INFER" tokenize -f "$work/given" words)" "$(printf 'given\nwords' | "$INFER" tokenize)"
is "$(prompt -p text <&-)" text

begin the_input_of_a_shell_loop_is_not_read
for form in run 'run --raw' tokenize 'logits --top 1' 'check --choices x,given'; do
    for option in "-p x" "-f $work/given"; do
        # shellcheck disable=SC2086
        n=$(while read -r line; do
            "$INFER" $form $option >/dev/null 2>"$work/err" || exit
            echo "$line"
        done <"$work/list" | wc -l)
        is "$form $option: $n" "$form $option: 3"
    done
done
n=$(while read -r line; do
    "$INFER" chat --template chatml -n 2 "$line" 2>/dev/null >"$work/answer"
    echo "$line"
done <"$work/list" | wc -l)
is "chat: $n" 'chat: 3'
is "$( (read -r line; prompt -p text) <"$work/list")" text
is "$( (read -r line; prompt) <"$work/list")" "$(printf 'second\nthird')" # nothing else is given

begin an_input_that_cannot_be_read_is_an_error
for form in run 'run --raw' tokenize 'tokenize --lines' 'tokenize --decode' batch score logits 'chat --template chatml' 'perplexity -f -' \
    'perplexity --ids -' 'check --regex a' 'run --messages -' 'batch -f -' 'score --continuation a' 'imatrix -f - -o /dev/null'; do
    # shellcheck disable=SC2086
    for closed in '<&-' '</dev/null 0>/dev/null'; do # nohup leaves the second one
        eval "\"\$INFER\" $form $closed" >"$work/out" 2>"$work/err"
        code=$? last="$form $closed"
        status 1
        out ''
        err_line '(standard input: )?cannot read'
    done
done

begin a_folder_is_no_input
for command in batch score 'batch --lines' perplexity 'run -f' 'score --heat -f' 'imatrix -o /dev/null'; do
    # shellcheck disable=SC2086
    usage '^infer: \.: cannot read: Is a directory' $command .
done

begin a_terminal_shows_what_was_read
terminals || skip 'no pseudo-terminal'
if terminals; then
    said() { # WAY ARGS..: what a terminal's stderr has
        python3 test/cli/terminal.py "$work/terminal" sleep:0.1 -- sh -c "$1" >/dev/null 2>&1
        tr -d '\r' <"$work/terminal"
    }
    is "$(said "printf piped | '$INFER' tokenize -p x | cat")" "infer: 5 bytes of standard input come before the text
$("$INFER" tokenize -p 'piped
x' </dev/null)"
    is "$(said "printf piped | '$INFER' tokenize | cat")" "$("$INFER" tokenize -p piped </dev/null)"
    is "$(said "'$INFER' tokenize -p x </dev/null | cat")" "$("$INFER" tokenize -p x </dev/null)"
    set -- 'tokenize -p x' 'chat --template chatml -n 1'
    [ -n "$quick" ] || set -- "$@" tokenize 'batch --lines -n 1' 'score --continuation a'
    for form; do
        said "sleep 3 | '$INFER' $form >/dev/null" | grep -q 'infer: waiting for standard input; </dev/null if there is none$' ||
            bad "$form: $(cat "$work/terminal")"
    done
    said "{ sleep 1; echo x; } | '$INFER' tokenize >/dev/null" | grep waiting && bad 'a second is no wait'
    said "sleep 3 | '$INFER' tokenize 2>/dev/null" | grep waiting && bad 'no terminal'
fi

finish

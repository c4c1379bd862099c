# Failing standard streams, and errors that must be reported. Needs no model.
. test/cli/lib.sh

begin the_error_line_is_never_lost
printf 'GGUF\003\000\000\000' >"$work/truncated.gguf"
run=0
while [ $run -lt 40 ]; do
    infer -m "$work/none.gguf" -p x
    status 3
    out ''
    err_line 'none\.gguf: '
    infer -m "$work/truncated.gguf" -p x
    status 3
    out ''
    err_line 'truncated\.gguf: '
    run=$((run + 1))
done

begin the_error_line_is_never_lost_in_a_pipe
lines=$(run=0; while [ $run -lt 40 ]; do "$INFER" -m "$work/none.gguf" -p x; run=$((run + 1)); done \
    </dev/null 2>&1 >/dev/null | wc -l)
[ "$lines" -eq 40 ] || bad "$lines lines of 40"

begin a_full_disk_is_an_error
if full_disk; then
    for command in help version "help run"; do
        # shellcheck disable=SC2086
        "$INFER" $command >/dev/full 2>"$work/err" </dev/null
        code=$? last="$command to a full disk"
        status 1
        err_line 'standard output: cannot write: '
    done
else
    skip 'no /dev/full here'
fi

begin a_closed_standard_output_is_an_error
"$INFER" help >&- 2>"$work/err" </dev/null
code=$? last='help >&-'
status 1
err_line 'standard output: cannot write: '

begin a_closed_pipe_ends_quietly
# More than a pipe holds, so that the program detects the end of the reader.
{
    "$INFER" help run 2>"$work/err"
    echo $? >"$work/code"
} </dev/null | true
sleep 0.1
case $(cat "$work/code") in 0 | 141) ;; *) bad "status $(cat "$work/code")" ;; esac
[ ! -s "$work/err" ] || bad "said $(cat "$work/err")"

begin closed_streams_are_no_crash
"$INFER" -m "$work/none.gguf" -p x <&- >&- 2>&-
code=$? last='with all streams closed'
status 3

begin each_kind_of_failure_has_its_status
infer -m "$work/none.gguf" -p x
status 3
infer --no-such-option
status 2
infer -f "$work/none.txt"
status 2

begin no_escape_codes_in_errors
infer -m "$work/none.gguf" -p x
if grep -q "$(printf '\033\|\r')" "$work/err"; then bad 'escape codes or carriage returns'; fi

begin names_are_printed_without_control_characters
infer -m "$work/$(printf 'a\033[31mb\n')" -p x
status 3
if grep -q "$(printf '\033')" "$work/err"; then bad 'an escape code from a name'; fi
err_line '.'

begin escaped_names_stay_different # wherever an error names a file
for byte in ff fe; do
    name=$(printf "a\\x$byte")
    for call in "-p x -m" "inspect" "tokenize -f" "score -f" "models" "-p x --json-schema" "-p x --grammar" "verify" \
        "run --chat -p x --tools" "chat --messages" "check --regex a -f" "pull" "edit" "cache --cache"; do
        # shellcheck disable=SC2086
        infer $call "$work/$name"
        err_like "a\\\\x$byte"
    done
done

finish

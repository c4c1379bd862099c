# test/cli/lib.sh: the harness of the command-line tests; sourced by each script, POSIX sh.
#
#   begin NAME            starts a test (and ends the previous one)
#   infer ARGS...         runs the program with an empty standard input, or with $input if set
#   status N              the expected exit status
#   out TEXT, err TEXT    exactly these bytes on standard output / standard error; TEXT is a printf
#                         format, so \n must be written and % doubled
#   out_like, err_like    some line matches this extended regular expression
#   err_line REGEX        standard error is one line, it begins with "infer: " and matches
#   valid SCHEMA          each line of standard output is valid under docs/SCHEMA, by `infer check`
#                         and, if installed, by Python's jsonschema (short runs: the first of each schema)
#   skip REASON           reports the running test as skipped, with the reason, not as passed
#                         (an assertion before it can still fail the test)
#   any_model             prints $MODEL, in short runs the path of a tiny model with random weights and a
#                         token for each byte: for texts and figures that are only compared with each other
#   full_disk, terminals  true if the machine has /dev/full, if a pseudo-terminal opens
#   finish                ends the last test
#
# $INFER is the program, $MODEL a small model or empty, $work a scratch folder, $make_model the
# program beside it that writes models with random weights. All variables INFER_* of the caller are
# unset, so that they do not change results, except the processor family, which must not change any, and
# INFER_RAW=1 is set: prompts are completed as they are. A script about answers through the chat template
# unsets it.

work=$(mktemp -d) || exit 1
make_model=${INFER%/*}/test/tool_make_model
trap 'rm -rf "$work"' EXIT
quick=${INFER_TEST_QUICK-} # smaller cases; saved before the variables are unset
shared=${INFER_SHARED:-../shared} # reference data beside the project
for variable in $(env | sed -n 's/^\(INFER_[A-Z_]*\)=.*/\1/p'); do
    [ "$variable" = INFER_TEST_FAMILY ] || unset "$variable"
done
HOME=$work XDG_DATA_HOME= INFER_RAW=1
export HOME XDG_DATA_HOME INFER_RAW
# Beside another test two threads wait for each other's processor.
[ -z "$quick" ] || { INFER_THREADS=1 && export INFER_THREADS; }
# The interpreter itself, because a version manager's python3 is a script that takes longer than most
# tests, and without packages, which take most of its start.
test_python=${test_python-$(python3 -c 'import sys; print(sys.executable)' 2>/dev/null)}
if [ -n "$test_python" ]; then
    python3() { "$test_python" -S "$@"; }
fi
test_name='' test_bad='' test_skip='' input='' opinions=' '

say_result() {
    [ -n "$test_name" ] || return 0
    if [ -n "$test_bad" ]; then
        echo "FAIL $test_name:$test_bad"
    elif [ -n "$test_skip" ]; then
        echo "skip $test_name: $test_skip"
    else
        echo "ok $test_name"
    fi
}

begin() {
    say_result
    test_name=$1 test_bad='' test_skip='' input=''
}

finish() {
    say_result
    test_name=''
    echo "# end of script"
}

bad() {
    test_bad="$test_bad
    $1"
}

skip() {
    test_skip=$1
}

any_model() {
    if [ -n "$quick" ] && "$make_model" "$work/any.gguf" arch=llama tokens=bpe ctx=4096 2>/dev/null; then
        echo "$work/any.gguf"
    else
        echo "$MODEL"
    fi
}

full_disk() {
    [ -w /dev/full ]
}

terminals() {
    python3 -c 'import os, pty; os.close(pty.openpty()[0])' 2>/dev/null
}

infer() {
    if [ -n "$input" ]; then
        "$INFER" "$@" <"$input" >"$work/out" 2>"$work/err"
    else
        "$INFER" "$@" </dev/null >"$work/out" 2>"$work/err"
    fi
    code=$?
    last="$*"
}

status() {
    [ "$code" -eq "$1" ] || bad "infer $last: status $code, not $1: $(head -c 300 "$work/err")"
}

same() { # FILE FORMAT
    # shellcheck disable=SC2059
    printf "$2" >"$work/want"
    cmp -s "$1" "$work/want" || bad "infer $last: ${1##*/} is '$(head -c 300 "$1")', not '$2'"
}
out() { same "$work/out" "$1"; }
err() { same "$work/err" "$1"; }

like() { # FILE REGEX
    grep -Eq -- "$2" "$1" || bad "infer $last: ${1##*/} '$(head -c 300 "$1")' does not match $2"
}
out_like() { like "$work/out" "$1"; }
err_like() { like "$work/err" "$1"; }

err_line() {
    [ "$(wc -l <"$work/err")" -eq 1 ] || bad "infer $last: not one line: '$(head -c 300 "$work/err")'"
    like "$work/err" '^infer: '
    like "$work/err" "$1"
}

# usage REGEX ARGS...: a usage error: status 2, nothing on standard output, one line that matches.
usage() {
    regex=$1
    shift
    infer "$@"
    status 2
    out ''
    err_line "$regex"
}

valid() {
    while IFS= read -r line; do
        printf '%s' "$line" | "$INFER" check --json-schema "docs/$1" >"$work/said" 2>&1 ||
            bad "infer $last: not as docs/$1: $line: $(cat "$work/said")"
    done <"$work/out"
    [ -n "${second_opinion-}" ] ||
        if "$test_python" -c 'import jsonschema' 2>/dev/null; then second_opinion=yes; else second_opinion=no; fi
    case $second_opinion,$quick,$opinions in no,* | *,?*,*" $1 "*) return ;; esac
    opinions="$opinions$1 "
    "$test_python" -c 'import json, jsonschema, sys
schema = json.load(open(sys.argv[1]))
for line in open(sys.argv[2]):
    jsonschema.Draft202012Validator(schema).validate(json.loads(line))' "docs/$1" "$work/out" \
        >"$work/said" 2>&1 || bad "infer $last: jsonschema says $(tail -n 1 "$work/said")"
}

# The progress line of long work, on a terminal's standard error: amount, total, rate, remaining
# time; erased before results; nothing where standard error is no terminal. Each program is stopped
# when the line has appeared, or waits for a reader, so that no test depends on the machine's speed.
. test/cli/lib.sh
if ! terminals || [ -z "$MODEL" ]; then
    echo 'skip t_progress.sh: no pseudo-terminal, python3 or model here'
    finish
    exit
fi
INFER_MODEL=$MODEL TERM=xterm
export INFER_MODEL TERM
awk 'BEGIN { for (i = 0; i < 60000; i++) printf "word%d ", i % 97 }' >"$work/text"
awk 'BEGIN { for (i = 0; i < 4000; i++) printf "{\"prompt\":\"This is line %d of a long list\",\"continuations\":[\" and one\",\" or two\"]}\n\n", i }' >"$work/score"
awk 'BEGIN { for (i = 0; i < 4000; i++) printf "{\"prompt\":\"This is line %d of a long list\",\"predict\":24}\n\n", i }' >"$work/batch"

# watched LINE ARGS...: runs at a terminal until the line appears, then sends Ctrl-C; what showed the
# line last is erased (results may follow), and nothing of it goes to a standard error that is a file.
watched() {
    line=$1
    shift
    python3 test/cli/terminal.py "$work/screen" "wait:$line" 'send:\x03' -- "$INFER" "$@" 2>"$work/said"
    code=$? last="$* (at a terminal)"
    [ "$code" -eq 130 ] || bad "infer $last: status $code: $(cat "$work/said")"
    python3 - "$work/screen" "$line" <<'PYTHON' || bad "infer $last: the line remains: $(tail -c 300 "$work/screen" | cat -v)"
import sys
after = open(sys.argv[1], "rb").read().rpartition(sys.argv[2].encode())[2].split(b"\r")
sys.exit(not (len(after) > 2 and after[1].strip() == b""))
PYTHON
}

begin evaluation_shows_amount_rate_and_remaining_time
watched 'evaluating: ' perplexity -f "$work/text" -t 1
python3 - "$work/screen" <<'PYTHON' || bad "$(cat "$work/said")"
import re
import sys
text = open(sys.argv[1], encoding="utf-8").read()
# Of long figures there is no bar (its width: test_progress).
line = r"evaluating: \d+ of \d+ tokens(, [0-9.]+/(s|min), (\d+:)?\d+:\d\d left(, perplexity [0-9.]+)?)?(  \|[ █▏▎▍▌▋▊▉]+\|)?"
sys.exit(not re.search(line, text))
PYTHON
if [ -z "$quick" ]; then
    watched 'evaluating: ' imatrix -f "$work/text" -o "$work/i.gguf" -t 1
    watched 'evaluating: ' logits -f "$work/text" -c 200000 -o /dev/null -t 1
fi

begin lines_are_shown_with_their_total
watched 'of 4000 lines' batch -f "$work/batch" -t 1
[ -n "$quick" ] || watched 'of 4000 lines' score -f "$work/score" -t 1
begin files_are_shown_in_megabytes
if "$make_model" "$work/large.gguf" layers=2 embd=1024 ff=4096 vocab=8192 type=F32 2>"$work/said"; then
    cp "$work/large.gguf" "$work/tail.gguf" && truncate -s 20G "$work/tail.gguf" # hashed too
    watched 'hashing: ' verify --hash "$work/tail.gguf" -t 1
    rm "$work/tail.gguf"
    watched 'quantizing: ' quantize "$work/large.gguf" "$work/q.gguf" IQ3_S -t 1
    [ ! -e "$work/q.gguf" ] || bad 'an interrupted quantize left a file'
    # What split, merge and edit share: the copy waits for a reader that begins after the line.
    mkfifo "$work/pipe"
    (until [ -e "$work/seen" ]; do sleep 0.1; done; cat >/dev/null) <"$work/pipe" &
    TERMINAL_STDOUT=$work/pipe python3 test/cli/terminal.py "$work/screen" 'wait:writing: ' 'wait: MB' "touch:$work/seen" -- \
        "$INFER" edit "$work/large.gguf" --set general.name=str:x -o - 2>"$work/said"
    code=$? last='edit -o - (at a terminal)'
    status 0
else
    bad "$(cat "$work/said")"
fi

finish

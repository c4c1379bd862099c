# Output to a terminal: untrusted text (model names, prompts, generated text) without control
# sequences; pipes get the bytes unchanged.
. test/cli/lib.sh
if ! terminals || ! "$make_model" "$work/plain.gguf" arch=llama tokens=bpe 2>/dev/null; then
    echo 'skip t_terminal.sh: no pseudo-terminal, python3 or tool_make_model here'
    finish
    exit
fi
mkdir "$work/models"
hostile=$work/models/hostile.gguf
# ESC, OSC 52 with BEL (the clipboard), a C1 CSI, a bidi override: 38 bytes for 6, which
# keeps the alignment to 32.
python3 - "$work/plain.gguf" "$hostile" <<'PYTHON'
import struct
import sys

data = open(sys.argv[1], "rb").read()
name = "m\033]52;c;ZXZpbA==\a\033[31m\u009b2J\u202eend".encode().ljust(38, b".")
assert len(name) == 38
key = b"general.name" + struct.pack("<I", 8)
old = key + struct.pack("<Q", 6) + b"random"
assert data.count(old) == 1
open(sys.argv[2], "wb").write(data.replace(old, key + struct.pack("<Q", 38) + name))
PYTHON
INFER_MODEL=$hostile XDG_STATE_HOME= NO_COLOR=1 TERM=xterm
export INFER_MODEL XDG_STATE_HOME NO_COLOR TERM

screen() { # ARGS...: runs with all streams at a terminal; $work/screen is the output
    python3 test/cli/terminal.py "$work/screen" -- "$INFER" "$@" 2>"$work/err" >"$work/out"
    code=$? last="$* (at a terminal)"
    tr -d '\r' <"$work/screen" >"$work/out"
}
harmless() {
    python3 - "$work/out" <<'PYTHON' >"$work/said" 2>&1 || bad "infer $last: $(cat "$work/said"): $(head -c 300 "$work/out" | cat -v)"
import re
import sys

text = open(sys.argv[1], "rb").read().decode()
found = re.search("[\0-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]", text)
if found:
    sys.exit(f"the terminal gets {found.group()!r}")
PYTHON
}
shown='m\\u001b\]52;c;ZXZpbA==\\u0007\\u001b\[31m\\u009b2J\\u202eend'

begin names_of_models_are_harmless_on_a_terminal
for command in "bench -p 4 -n 0 -r 1 -t 1" "bench -p 4 -n 0 -r 1 --format json" "run -p x -n 1 -v" "run -p x -n 1 --json" \
    "run -p x -n 1 --jsonl" "inspect --metadata" "inspect --json --metadata" "logits -p x" \
    "perplexity -f docs/chat.md --chunk 8 --chunks 2 --json" "models --json $work/models"; do
    # shellcheck disable=SC2086
    screen $command
    status 0
    harmless
    out_like "$shown|m\\\\u001b\\]52"
done
screen run -p x -n 1 --json
printf '%s' "$(cat "$work/out")" | python3 -c 'import json, sys; json.load(sys.stdin)' || bad 'not JSON any more'

begin names_of_files_are_harmless_on_a_terminal
cp "$work/plain.gguf" "$work/models/$(printf 'a\033[31m\302\233\342\200\256b').gguf"
screen models "$work/models"
harmless
out_like 'a\\u001b\[31m\\u009b\\u202eb  llama '
infer models "$work/models" # a line for each file, also in a pipe
harmless
screen inspect "$work/models/$(printf 'a\033[31m\302\233\342\200\256b').gguf" --metadata
harmless
screen run -p x -m "$work/$(printf 'a\033[31m\302\233\342\200\256b').gguf"
status 3
harmless

begin what_a_model_writes_is_harmless_on_a_terminal
write="run -p x --regex $(printf 'a\033\\[31m\302\233b\342\200\256\177c')"
screen $write
status 0
harmless
out_like '^a\\u001b\[31m\\u009bb\\u202e\\u007fc$'
infer $write # bytes stay bytes in a pipe
out 'a\033[31m\302\233b\342\200\256\177c'
screen $write --json
harmless
screen tokenize --decode -p '255 27 65' # bytes that are no UTF-8
harmless
printf '%s' "{{ messages[0].content }}" >"$work/t.jinja"
screen run --chat --template "$work/t.jinja" -p x --regex "$(printf '\033\\]0;t\a')"
out_like '^\\u001b\]0;t\\u0007$'

begin prompts_are_harmless_on_a_terminal
evil=$(printf 'a\033[31m\302\233b\342\200\256c')
screen run -p "$evil" --show-prompt
harmless
out_like '^a\\u001b\[31m\\u009bb\\u202ec$'
screen run -p "$evil" --echo -n 0
harmless
infer run -p "$evil" --echo -n 0
out "$evil"
printf '%s\033[1m' '{{ messages[0].content }}' >"$work/t.jinja"
screen run --chat --template "$work/t.jinja" -p x --show-prompt
harmless
printf '%s\033[1m' '{{ raise_exception("no\033[1m") }}' >"$work/t.jinja"
screen run --chat --template "$work/t.jinja" -p x
harmless
printf '[{"role":"system","content":"s\\u001b[31m\\u202e"}]' >"$work/m.json"
printf '%s' '{{ messages[0].content }}' >"$work/t.jinja"
python3 test/cli/terminal.py "$work/screen" 'wait:> ' 'send:/system\r' 'wait:s\\u001b[31m' 'wait:> ' 'send:/exit\r' -- \
    "$INFER" chat --messages "$work/m.json" --template "$work/t.jinja" --no-history 2>"$work/err"
code=$? last='chat, /system'
status 0

begin reading_of_a_long_prompt_shows_progress
if [ -n "$MODEL" ]; then
    awk 'BEGIN { for (i = 0; i < 7800; i++) printf "word " }' >"$work/long.txt"
    long="-m $MODEL -f $work/long.txt -c 8000 -n 1 -t 1"
    # shellcheck disable=SC2086
    python3 test/cli/terminal.py "$work/screen" 'wait:reading: ' 'wait: of 7801 tokens' 'send:\x03' -- \
        "$INFER" $long 2>"$work/said"
    code=$? last='a long prompt at a terminal'
    status 130
    # shellcheck disable=SC2086
    TERMINAL_STDERR=$work/err python3 test/cli/terminal.py "$work/screen" 'sleep:1.5' 'send:\x03' -- "$INFER" $long \
        2>"$work/said"
    code=$? last='a long prompt with stderr in a file'
    status 130
    [ "$(cat "$work/err")" = '' ] || bad "stderr has $(cat "$work/err")"
    screen -m "$MODEL" -p x -n 1
    grep -q reading "$work/out" && bad 'a short prompt has it too'
else
    skip 'no model'
fi

begin help_is_laid_out_for_the_terminal # the same words at every width, none of them broken
# COLUMNS ARGS...
narrow() {
    columns=$1
    shift
    # shellcheck disable=SC2016
    python3 test/cli/terminal.py "$work/screen" "size:$columns" 'send:\r' 'wait:ready' -- \
        sh -c 'read -r line; echo ready; shift; exec "$@"' sh -- "$INFER" "$@" 2>"$work/err"
    code=$? last="$* ($columns columns)"
    status 0
    tr -d '\r' <"$work/screen" | sed '1,/^ready$/d' >"$work/out"
    awk -v most="$columns" 'length > most { exit 1 }' "$work/out" || bad "infer $last: a line is longer"
    tr -s ' \n' '\n' <"$work/out" | sed '/^$/d' >"$work/words"
    "$INFER" "$@" | tr -s ' \n' '\n' | sed '/^$/d' | cmp -s - "$work/words" || bad "infer $last: other words"
}
for columns in 50 80 132; do
    narrow $columns help
    narrow $columns help coming-from
    for command in run quantize completion bench; do narrow $columns $command --help; done
done
narrow 40 inspect "$work/plain.gguf" --tensors
narrow 80 inspect "$work/plain.gguf" --metadata
infer help coming-from
awk 'length > 80 || /^\|/ { exit 1 }' "$work/out" || bad 'not readable at 80 columns'

begin binary_output_does_not_go_to_a_terminal
screen logits -p x -o -
status 2
out_like '^infer: -o: standard output is a terminal'

finish

# --heat of score and run: tokens marked by their probability, below the text, in colours, as SVG.
. test/cli/lib.sh
[ -n "$MODEL" ] || { echo 'skip t_heat.sh: no model'; finish; exit; }
INFER_MODEL=$MODEL
export INFER_MODEL
text='The capital of France is Paris, and that of Italy is Rome.'

begin marks_have_the_probabilities_of_score
infer score --heat -p "$text"
status 0
err ''
[ "$(sed -n 1p "$work/out")" = "$text" ] || bad "$(cat "$work/out")"
out_like '^probability: · from 50 %, ░ from 20 %, ▒ from 5 %, ▓ from 1 %, █ below 1 %$'
out_like '^[0-9]+ tokens, perplexity [0-9.]+$'
sed -n 2p "$work/out" >"$work/marks"
infer score -p The --continuation "${text#The}" --json
python3 - "$work/out" "$work/marks" "$MODEL" "$INFER" <<'PYTHON' || bad "the marks are not those of $(cat "$work/out"): $(cat "$work/marks")"
import json
import math
import subprocess
import sys

scored = json.load(open(sys.argv[1]))["continuations"][0]
want = "   "
for logprob, token in zip(scored["logprobs"], scored["ids"]):
    bytes_of = subprocess.run([sys.argv[4], "tokenize", "-m", sys.argv[3], "--decode", "-p", f"{token}"],
                              capture_output=True, check=True).stdout.decode().rstrip("\n")
    p = math.exp(logprob)
    want += next(m for m, least in zip(" ·░▒▓█", (0.9, 0.5, 0.2, 0.05, 0.01, 0)) if p >= least) * len(bytes_of)
sys.exit(open(sys.argv[2], encoding="utf-8").read().rstrip("\n") != want.rstrip())
PYTHON
infer score --heat -p 'The capital of France is' --continuation ' Paris.' --continuation ' 東é😀'
out_like '^The capital of France is Paris\.  \(2 tokens, perplexity [0-9.]+\)$' # each has its own
out_like '^The capital of France is 東é😀  \(7 tokens, perplexity [0-9.]+\)$'
grep -q '^[0-9]* tokens' "$work/out" && bad 'a perplexity of all continuations'
[ "$(grep -c '^ \{24\}' "$work/out")" -ge 1 ] || bad 'the prompt has marks'
printf 'line one\nline two\n' >"$work/text"
infer score --heat -f "$work/text"
out_like '^line one$'
out_like '^line two$'

begin lines_end_before_a_token_that_does_not_fit
awk 'BEGIN { for (i = 0; i < 60; i++) printf "word%d and ", i }' >"$work/long"
infer score --heat -f "$work/long"
python3 -c 'import sys
lines = open(sys.argv[1], encoding="utf-8").read().split("\n")
assert max(map(len, lines)) <= 83 and sum("word" in line for line in lines) > 7' "$work/out" || bad "$(cat "$work/out")"

begin pictures_have_every_token
infer score --heat -p "a<b & \"c\" $text" --svg "$work/heat.svg"
status 0
infer score --heat -p "a<b & \"c\" $text" --svg -
cmp -s "$work/out" "$work/heat.svg" || bad 'standard output has another picture, or text too'
python3 - "$work/heat.svg" <<'PYTHON' >"$work/said" 2>&1 || bad "$(cat "$work/said")"
import sys
import xml.etree.ElementTree as tree
name = "{http://www.w3.org/2000/svg}"
groups = [g for g in tree.parse(sys.argv[1]).getroot().findall(f"{name}g") if not g.get("font-family")]
text = "".join(t.text or "" for g in groups for t in g.findall(f"{name}text"))
assert text == 'a<b & "c" The capital of France is Paris, and that of Italy is Rome.', text
assert all(g.find(f"{name}title").text.endswith(" %") for g in groups[1:])
PYTHON

begin generated_text_has_the_same_tokens
infer run --raw -p 'Once upon a time' -n 24 --seed 3
cp "$work/out" "$work/text"
infer run --raw -p 'Once upon a time' -n 24 --seed 3 --heat --svg "$work/heat.svg"
status 0
out_like '^24 tokens, perplexity [0-9.]+$'
python3 - "$work/heat.svg" "$work/text" <<'PYTHON' >"$work/said" 2>&1 || bad "$(cat "$work/said")"
import sys
import xml.etree.ElementTree as tree
name = "{http://www.w3.org/2000/svg}"
groups = [g for g in tree.parse(sys.argv[1]).getroot().findall(f"{name}g") if not g.get("font-family")]
text = "".join(t.text or "" for g in groups for t in g.findall(f"{name}text"))
want = open(sys.argv[2], encoding="utf-8").read()
assert text == want.replace("\n", ""), (text, want)
PYTHON
infer run --chat -p 'What is the capital of France?' -n 20 --temp 0 --heat
status 0
out_like 'Paris'
infer run --raw -p 'Once upon a time' -n 4 --heat --svg -
[ "$(head -c 4 "$work/out")" = '<svg' ] || bad 'not only the picture'

begin wrong_options_are_usage_errors
usage '--json: contradicts --heat' score --heat -p x --json
usage '--svg: needs --heat' score -p x --continuation y --svg "$work/x.svg"
usage 'has 1 tokens: there is nothing' score --heat -p a
usage '--heat: with --chat needs --continuation' score --heat --chat -p x

if terminals; then
    begin colours_on_a_terminal
    TERM=xterm COLORTERM=truecolor python3 test/cli/terminal.py "$work/screen" -- "$INFER" score --heat -p "$text" 2>"$work/err"
    grep -q "$(printf '\033\\[48;2;')" "$work/screen" || bad 'no colours of 24 bits'
    [ "$(sed 's/\x1b\[[0-9;]*m//g' "$work/screen" | tr -d '\r' | head -n 1)" = "$text" ] || bad "$(cat -v "$work/screen")"
    TERM=xterm COLORTERM='' python3 test/cli/terminal.py "$work/screen" -- "$INFER" score --heat -p "$text" 2>"$work/err"
    grep -q "$(printf '\033\\[48;5;')" "$work/screen" || bad 'no colours of the palette'
    for way in NO_COLOR=1 TERM=dumb; do
        env TERM=xterm COLORTERM=truecolor $way python3 test/cli/terminal.py "$work/screen" -- \
            "$INFER" score --heat -p "$text" 2>"$work/err"
        grep -q "$(printf '\033')" "$work/screen" && bad "colours with $way"
        grep -q '█' "$work/screen" || bad "no marks with $way"
    done
fi

finish

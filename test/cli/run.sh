#!/bin/sh
# test/cli/run.sh: runs the command-line tests and counts. INFER names the program (build/infer),
# INFER_TEST_MODEL a small model (by default the default model, if present); without one the tests that
# need a model are skipped. Arguments: scripts to run, all of them if none.
cd "$(dirname "$0")/../.." || exit 1
INFER=${INFER:-build/infer}
case $INFER in /*) ;; *) INFER=$PWD/$INFER ;; esac
[ -x "$INFER" ] || { echo "$INFER: no such program; build it first" >&2; exit 1; }
MODEL=${INFER_TEST_MODEL:-${XDG_DATA_HOME:-$HOME/.local/share}/infer/models/SmolLM2-135M-Instruct.Q4_1.gguf}
[ -r "$MODEL" ] || MODEL=
export INFER MODEL
[ $# -gt 0 ] || set -- test/cli/t_*.sh
log=$(mktemp) || exit 1
trap 'rm -f "$log"' EXIT

for script; do
    sh "$script" >"$log.one" 2>&1
    grep -v '^# end of script$' "$log.one"
    grep -q '^# end of script$' "$log.one" || echo "FAIL $script: did not reach its end"
    rm -f "$log.one"
done | tee "$log"

passed=$(grep -c '^ok ' "$log")
failed=$(grep -c '^FAIL ' "$log")
echo "$passed passed, $failed failed"
[ "$failed" -eq 0 ] && [ "$passed" -gt 0 ]

# The model's file is truncated or overwritten while it is in use: one line and status 3, or numbers
# of another model, but never a signal. Models with random weights.
. test/cli/lib.sh

[ -x "$make_model" ] && [ -d /proc/self/fd ] || { echo "skip: $make_model is not built"; finish; exit 0; }
size='embd=512 ff=2048'
[ -z "$quick" ] || size='embd=256 ff=1024' # sanitizers: evaluation still outlasts the delays
# shellcheck disable=SC2086
"$make_model" "$work/small" layers=2 $size vocab=8192 ctx=100000 type=F32 || exit 1
yes 'some words and then some more of them, again and again' | head -c 40000000 >"$work/text"
head -c 40000 "$work/text" >"$work/page"
yes 'tell me more' | head -n 1000 >"$work/lines"
# during CHANGE ARGS...: runs the program and calls CHANGE as soon as it has mapped the model.
during() {
    change=$1
    shift
    cp "$work/small" "$work/m.gguf"
    rm -f "$work"/q.gguf
    "$INFER" "$@" <"${input:-/dev/null}" >"$work/out" 2>"$work/err" &
    pid=$! n=0
    while [ $n -lt 1000 ] && ! grep -q 'm\.gguf' /proc/$pid/maps 2>"$work/said"; do n=$((n + 1)); done
    sleep "${delay:-0}"
    $change
    wait $pid
    code=$? last="$* while its model: $change"
}

cut_short() { truncate -s 4096 "$work/m.gguf"; }
overwrite() { head -c "$(wc -c <"$work/m.gguf")" /dev/zero | tr '\0' '\377' | dd of="$work/m.gguf" conv=notrunc bs=1M 2>"$work/said"; }

named() {
    status 3
    err_like '^infer: .*m\.gguf: cannot be read any further' # after a remark of chat, perhaps
    for left in "$work"/*.part; do
        [ ! -e "$left" ] || bad "infer $last: left ${left##*/}"
    done
}

m="-m $work/m.gguf -t 2"
begin a_model_that_is_cut_short_is_named
for delay in 0 $([ -n "$quick" ] || echo 0.3); do
    # shellcheck disable=SC2086
    {
        during cut_short run $m -p hello -n 100000 -c 4096 --ignore-eos
        named
        during cut_short logits $m -f "$work/page" -c 50000 -o /dev/null
        named
        during cut_short perplexity $m -f "$work/page"
        named
        during cut_short tokenize -m "$work/m.gguf" -f "$work/text"
        named
        during cut_short bench $m -p 512 -n 200 -r 20
        named
        input=$work/lines
        during cut_short chat $m --template chatml -n 100
        input=
        named
    }
    during cut_short quantize "$work/m.gguf" "$work/q.gguf" IQ3_S -t 1
    named
    [ ! -e "$work/q.gguf" ] || bad 'a part of a model was left'
done

# The output is a pipe whose reader starts after the change.
piped() {
    change=$1
    shift
    cp "$work/small" "$work/m.gguf"
    "$INFER" "$@" </dev/null >"$work/out" 2>"$work/err" &
    pid=$! n=0
    while [ $n -lt 1000 ] && ! grep -q 'm\.gguf' /proc/$pid/maps 2>"$work/said"; do n=$((n + 1)); done
    $change
    cat "$work/pipe" >/dev/null & # blocks if the program ends before it opens the pipe
    reader=$!
    wait $pid
    code=$? last="$* while its model: $change"
    kill $reader 2>"$work/said"
    wait $reader 2>"$work/said"
}

begin a_model_that_changes_while_it_is_copied_is_named
delay=0
mkfifo "$work/pipe"
touch_it() { printf x | dd of="$work/m.gguf" bs=1 seek=9000000 conv=notrunc 2>"$work/said"; }
piped cut_short edit "$work/m.gguf" --set a=int:1 -o "$work/pipe"
named
piped touch_it edit "$work/m.gguf" --set a=int:1 -o "$work/pipe"
status 3
err_line 'm\.gguf: the file changed while it was read'
piped touch_it quantize "$work/m.gguf" "$work/pipe" COPY
status 3
err_line 'm\.gguf: the file changed while it was read'
replace_it() { cp "$work/small" "$work/n.gguf" && mv "$work/n.gguf" "$work/m.gguf"; }
piped replace_it edit "$work/m.gguf" --set a=int:1 -o "$work/pipe" # reads the file that was opened
status 0
during cut_short verify "$work/m.gguf" --hash -t 1
named

# Bytes past the tensors belong to the file and are hashed, after the answer.
begin a_model_that_is_cut_short_while_it_is_hashed
cp "$work/small" "$work/whole"
if truncate -s 20G "$work/small" 2>"$work/said"; then
    delay=1
    cut_tail() { truncate -s 100000000 "$work/m.gguf"; }
    during cut_tail run -m "$work/m.gguf" -p hello -n 1 -t 2 --json --hash
    named
else
    skip 'no file of 20 GB here'
fi
mv "$work/whole" "$work/small"

# The program then reads other values: invalid weights, text that is not UTF-8.
begin a_model_that_is_overwritten_gives_no_crash
head -c 4000 "$work/text" >"$work/page"
for delay in 0.1 $([ -n "$quick" ] || echo 0); do
    # shellcheck disable=SC2086
    for what in "run $m -p hello -n 100 -c 4096 --ignore-eos" "tokenize -m $work/m.gguf -f $work/page --json" \
        "perplexity $m -f $work/page" "run $m -p x --plan" "inspect $work/m.gguf --json" "quantize $work/m.gguf $work/q.gguf Q6_K -t 1"; do
        during overwrite $what
        [ $code -le 3 ] || bad "infer $last: status $code: $(head -c 300 "$work/err")"
    done
done

finish

# Ctrl-C ends any command at once: status 130 and no line. Each input would keep the command busy for
# at least 20 seconds. Models with random weights.
. test/cli/lib.sh

[ -x "$make_model" ] || { echo "skip: $make_model is not built"; finish; exit 0; }
env --default-signal=INT true 2>"$work/said" || { echo 'skip: env cannot restore SIGINT here'; finish; exit 0; }
"$make_model" "$work/m.gguf" layers=2 embd=512 ff=2048 vocab=8192 ctx=200000 type=F32 || exit 1

delay=0.4
[ -z "$quick" ] || delay=0.25

# stopped ARGS...: runs the program and sends SIGINT after $delay seconds. It has 10 seconds to end;
# on an idle machine it takes a tenth of a second. (A shell starts background jobs with SIGINT
# ignored.)
stopped() {
    env --default-signal=INT "$INFER" "$@" <"${input:-/dev/null}" >"${output:-$work/out}" 2>"$work/err" &
    pid=$! n=0 last="$*, interrupted"
    sleep $delay
    kill -INT $pid 2>"$work/said" || bad "infer $last: ended before it was"
    while [ $n -lt 200 ] && kill -0 $pid 2>"$work/said"; do
        sleep 0.05
        n=$((n + 1))
    done
    if kill -KILL $pid 2>"$work/said"; then bad "infer $last: still there after 10 seconds"; fi
    wait $pid
    code=$?
    status 130
    err ''
}

m="-m $work/m.gguf -t $([ -n "$quick" ] && echo 1 || echo 2)"
yes 'some words and then some more of them, again and again' | head -c "$([ -n "$quick" ] && echo 20000000 || echo 100000000)" >"$work/text"
head -c 200000 "$work/text" >"$work/page"
printf '{"prompt":"x","continuations":["%s"]}\n' "$(head -c 60000 "$work/page" | tr '\n' ' ')" >"$work/scored"
yes '1 2 3 4 5 6 7 8 9 10 11' | head -c "$([ -n "$quick" ] && echo 60000000 || echo 300000000)" >"$work/ids"

printf '{"prompt":"x","predict":90000,"ignore_eos":true}\n' >"$work/rows"

begin an_interrupt_ends_evaluation
# shellcheck disable=SC2086
{
    stopped run $m -t 2 -f "$work/page" -n 1
    stopped run $m -p x -n 100000 -c 100000 --ignore-eos
    stopped perplexity $m -f "$work/page"
    stopped score $m -f "$work/scored" -np 1 -c 100000
    stopped imatrix $m -f "$work/text" -o "$work/imatrix.gguf"
    [ ! -e "$work/imatrix.gguf" ] || bad 'an interrupted imatrix left a file'
    input=$work/rows stopped batch $m -c 100000
    stopped logits $m -f "$work/page" -o /dev/null
    stopped bench $m -p 512 -n 0 -r 1000
    stopped bench $m -p 0 -n 512 -r 1000
}

begin an_interrupt_ends_tokenizing
stopped tokenize -m "$work/m.gguf" -f "$work/text" --lines
stopped tokenize -m "$work/m.gguf" -f "$work/ids" --decode

begin an_interrupt_ends_quantizing
"$make_model" "$work/large.gguf" layers="$([ -n "$quick" ] && echo 2 || echo 4)" embd=1024 ff=4096 vocab=8192 type=F32 || exit 1
output=/dev/null stopped quantize "$work/large.gguf" - IQ3_S -t 1
stopped quantize "$work/large.gguf" "$work/q.gguf" IQ3_S -t 1
for left in "$work"/q.gguf*; do
    [ ! -e "$left" ] || bad "left ${left##*/}"
done

# Bytes past the tensors belong to the file and are hashed; this hole takes no disk space.
begin an_interrupt_ends_hashing
cp "$work/m.gguf" "$work/tail.gguf"
if truncate -s 100G "$work/tail.gguf" 2>"$work/said"; then
    stopped run -m "$work/tail.gguf" -p x -n 1 --json --hash -t 1
    stopped verify "$work/tail.gguf" --hash -t 2
else
    skip 'no file of 100 GB here'
fi
rm -f "$work/tail.gguf"

# A folder of many models, each with ten million names.
begin an_interrupt_ends_reading_of_headers
mkdir "$work/folder"
printf 'GGUF\003\000\000\000\000\000\000\000\000\000\000\000\001\000\000\000\000\000\000\000' >"$work/folder/0.gguf"
printf '\001\000\000\000\000\000\000\000x\011\000\000\000\010\000\000\000' >>"$work/folder/0.gguf"
printf '\200\226\230\000\000\000\000\000' >>"$work/folder/0.gguf"
truncate -s 80000049 "$work/folder/0.gguf"
infer inspect -v "$work/folder/0.gguf"
status 0
out_like 'string\[10000000\]'
n=1
while [ $n -lt 400 ]; do
    ln "$work/folder/0.gguf" "$work/folder/$n.gguf"
    n=$((n + 1))
done
stopped models "$work/folder"

# Blocked programs: a pipe without a writer, and one without a reader.
begin an_interrupt_ends_waiting_for_pipes
mkfifo "$work/silent" "$work/full"
infer split "$work/m.gguf" "$work/p" --max-tensors 100 --no-tensor-first-split
stopped tokenize -m "$work/m.gguf" -f "$work/silent"
stopped logits -m "$work/m.gguf" -f "$work/silent"
sleep 60 <"$work/full" &
reader=$!
output=$work/full stopped tokenize -m "$work/m.gguf" -f "$work/page" --json
# shellcheck disable=SC2086
output=$work/full stopped logits $m -f "$work/page" -o -
output=$work/full stopped edit "$work/m.gguf" --set a=int:1 -o -
output=$work/full stopped merge "$work/p-00001-of-00002.gguf" -
kill $reader

# For process 1 of a container the kernel ignores the default action of a signal.
begin process_1_of_a_container_ends_by_signals
first() { # NUMBER ARGS..: runs the program as process 1 and sends it the signal
    number=$1 n=0
    shift
    env --default-signal=INT unshare --user --pid --fork --kill-child "$INFER" "$@" \
        <"${input:-/dev/null}" >"$work/out" 2>"$work/err" &
    pid=$! last="$*, process 1, signal $number"
    sleep $delay
    child=$(cat /proc/$pid/task/$pid/children 2>"$work/said")
    kill -"$number" $child 2>"$work/said" || bad "infer $last: ended before it"
    while [ $n -lt 200 ] && kill -0 $child 2>"$work/said"; do
        sleep 0.05
        n=$((n + 1))
    done
    [ $n -lt 200 ] || bad "infer $last: still there after 10 seconds"
    kill -KILL $pid 2>"$work/said"
    wait $pid
    code=$?
    status $((128 + number))
    err ''
}
if unshare --user --pid --fork true 2>"$work/said"; then
    # shellcheck disable=SC2086
    for number in 15 $([ -n "$quick" ] || echo 1 2); do
        first $number run $m -p x -n 100000 -c 100000 --ignore-eos
        input=$work/rows first $number batch $m -c 100000
        input=$work/rows first $number chat $m --template chatml -c 100000 -n 90000 --ignore-eos
        first $number perplexity $m -f "$work/page"
        first $number quantize "$work/large.gguf" "$work/q.gguf" IQ3_S -t 1
        [ ! -e "$work/q.gguf" ] || bad "$last: left q.gguf"
        first $number tokenize -m "$work/m.gguf" -f "$work/silent"
    done
else
    skip 'no namespace of processes here'
fi

finish

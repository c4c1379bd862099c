# The sandbox is on in all threads, and off with --no-sandbox. test/test_sandbox.c tests what it
# refuses. Models with random weights.
. test/cli/lib.sh

[ -x "$make_model" ] || { echo "skip: $make_model is not built"; finish; exit 0; }
grep -q '^Seccomp:' /proc/self/status 2>/dev/null && "$INFER" doctor -t 1 | grep -q '^sandbox *seccomp' ||
    { echo 'skip: no seccomp here'; finish; exit 0; }
"$make_model" "$work/m.gguf" layers=2 embd=512 ff=2048 vocab=8192 ctx=200000 type=F32 || exit 1
yes 'some words and then some more of them, again and again' | head -c 4000000 >"$work/text"
head -c 100000 "$work/text" >"$work/page"
printf '{"prompt":"x","predict":90000,"ignore_eos":true}\n' >"$work/lines"
printf '{"prompt":"x","continuations":["%s"]}\n' "$(head -c 60000 "$work/page" | tr '\n' ' ')" >"$work/rows"
before=$(sed -n 's/^Seccomp:[[:space:]]*//p' /proc/self/status)

# modes ARGS...: starts the program and prints the seccomp modes of its threads when they are 2, or
# after a timeout.
modes() {
    last="$*"
    : >"$work/out"
    "$INFER" "$@" <"${input:-/dev/null}" >"$work/out" 2>"$work/err" &
    pid=$! n=0
    while [ $n -lt 100 ]; do
        begun=no
        [ ! -s "$work/out" ] || begun=yes # by then the sandbox is entered, or never will be
        seen=$(sed -n 's/^Seccomp:[[:space:]]*//p' /proc/$pid/task/*/status 2>"$work/said" | sort -u)
        [ "$seen" != 2 ] && [ $begun = no ] || break
        sleep 0.05
        n=$((n + 1))
    done
    kill -KILL $pid 2>"$work/said"
    wait $pid 2>"$work/said"
}

closed() {
    modes "$@"
    [ "$seen" = 2 ] || bad "infer $last: seccomp mode '$seen': $(cat "$work/err")"
}

m="-m $work/m.gguf -t 2"
begin the_sandbox_is_on_in_all_threads
# shellcheck disable=SC2086
{
    closed run $m -p x -n 100000 -c 100000 --ignore-eos
    closed run $m -p x -n 100000 -c 100000 --ignore-eos --cache "$work/cache"
    input=$work/lines closed batch $m -np 1 -c 100000
    input=$work/lines closed batch $m -np 1 -c 100000 --cache "$work/cache"
    closed logits $m -f "$work/page" -o "$work/logits"
    closed perplexity $m -f "$work/page"
    input=$work/rows closed score $m -np 1 -c 100000
    closed imatrix $m -f "$work/text" -o "$work/imatrix.gguf"
    closed bench $m -p 512 -r 1000
    input=$work/page
    closed chat $m --template chatml -n 100000 -c 100000
    input=
}
closed tokenize -m "$work/m.gguf" -f "$work/text"
"$make_model" "$work/large.gguf" layers=8 embd=1024 ff=4096 vocab=8192 type=F32 || exit 1
closed quantize "$work/large.gguf" "$work/q.gguf" IQ3_S -t 2
closed verify "$work/large.gguf" --hash -t 2
closed split "$work/large.gguf" "$work/p" --max-tensors 3
rm -f "$work"/p-*

# Of what the parent had open only the standard streams are left; an input may be one of the others.
begin inherited_descriptors_are_closed
exec 7>"$work/inherited" 9<"$work/page"
# shellcheck disable=SC2086
"$INFER" run $m -f /dev/fd/9 -n 100000 -c 200000 --ignore-eos </dev/null >"$work/out" 2>"$work/err" &
pid=$! n=0 last='run -f /dev/fd/9'
exec 7>&- 9<&-
while [ $n -lt 100 ] && ! grep -q '^Seccomp:.*2' /proc/$pid/status; do
    sleep 0.05
    n=$((n + 1))
done
for fd in 7 9; do
    case $(readlink /proc/$pid/fd/$fd) in */inherited | */page) bad "descriptor $fd is open" ;; esac
done
kill -KILL $pid 2>"$work/said" || bad "ended: $(cat "$work/err")"
wait $pid 2>"$work/said"

begin no_sandbox_switches_it_off
# shellcheck disable=SC2086
modes run $m -p x -n 100000 -c 100000 --ignore-eos --no-sandbox
[ "$seen" = "$before" ] || bad "infer $last: seccomp mode '$seen', not '$before'"

# The same bytes with and without the sandbox, including all final steps of a command.
begin the_sandbox_changes_nothing
mkdir "$work/sub"
ln -s sub/real "$work/link"
head -c 3000 "$work/text" >"$work/pages"
for how in '' --no-sandbox; do
    rm -f "$work"/sub/*
    # shellcheck disable=SC2086
    {
        infer logits $m --ids '1 2 3' -o "$work/link" $how
        status 0
        cp "$work/sub/real" "$work/logits$how"
        infer perplexity $m -f "$work/pages" --chunk 300 --save-logits "$work/saved$how" -b 128 $how
        status 0
        infer quantize "$work/m.gguf" "$work/sub/q" Q8_0 $how
        status 0
        infer run $m -p x -n 4 --json --hash $how
        status 0
        out_like '"model_sha256":"[0-9a-f]{64}"'
        infer bench $m -p 8 -n 0 -r 1 --plot $how
        status 0
    }
done
cmp -s "$work/logits" "$work/logits--no-sandbox" || bad 'other logits'
cmp -s "$work/saved" "$work/saved--no-sandbox" || bad 'other saved logits'

finish

# Files that options write: complete or absent, never a file that is being read. Models with random
# weights.
. test/cli/lib.sh

[ -x "$make_model" ] || { echo "skip: $make_model is not built"; finish; exit 0; }
"$make_model" "$work/m.gguf" || exit 1
ln -s m.gguf "$work/link.gguf"
ln "$work/m.gguf" "$work/hard.gguf"
sum=$(cksum <"$work/m.gguf")
printf 'some text of a few words, and some more of them' >"$work/text"
cp "$work/text" "$work/kept"

# untouched: the model and the text are unchanged, and no other file was created.
untouched() {
    [ "$(cksum <"$work/m.gguf")" = "$sum" ] || bad "infer $last: the model was changed"
    cmp -s "$work/text" "$work/kept" || bad "infer $last: the text was changed"
    nothing_left
}

nothing_left() {
    for left in "$work"/*.part; do
        [ -e "$left" ] && bad "infer $last: left ${left##*/}"
        rm -f "$left"
    done
}

begin no_output_names_a_file_that_is_read
for name in m ./m link hard; do
    x=$work/$name.gguf name=${name#./}
    usage "$name\.gguf: is the input too" logits -m "$work/m.gguf" --ids "1 2 3" -o "$x"
    usage "$name\.gguf: is the input too" perplexity -m "$work/m.gguf" -f "$work/text" --save-logits "$x"
    usage "$name\.gguf: is the input too" quantize "$work/m.gguf" "$x" Q8_0
    printf 'hi\n/save %s\n' "$x" >"$work/lines"
    input=$work/lines
    infer chat --commands -m "$work/m.gguf" --template chatml -n 1 --temp 0
    input=''
    status 2
    err_line "$name\.gguf: is the input too" 
    untouched
done
usage 'text: is the input too' logits -m "$work/m.gguf" -f "$work/text" -o "$work/text"
usage 'text: is the input too' perplexity -m "$work/m.gguf" -f "$work/text" --save-logits "$work/text"
echo 'root ::= "a"' >"$work/a.gbnf" # whose text the command has when it writes
usage 'a\.gbnf: is the input too .the grammar' batch -m "$work/m.gguf" --grammar "$work/a.gbnf" -o "$work/a.gbnf"
usage 'a\.gbnf: is the input too .the grammar' batch -m "$work/m.gguf" --grammar "$work/a.gbnf" --resume "$work/a.gbnf"
input=$work/text
usage 'text: is standard input too' logits -m "$work/m.gguf" -o "$work/text"
input=''
"$INFER" quantize "$work/m.gguf" - Q8_0 </dev/null >>"$work/m.gguf" 2>"$work/err"
code=$? last='quantize onto itself'
status 2
err_line 'standard output: is the input too'
untouched

begin an_output_that_cannot_be_written_fails_before_the_work
mkdir "$work/folder"
"$make_model" "$work/split.gguf" layers=2 vocab=320 >/dev/null
mkdir "$work/taken-00003-of-00003.gguf"
n=$("$INFER" inspect "$work/split.gguf" --tensors --json | grep -c '^{"name":')
infer split "$work/split.gguf" "$work/s" --max-tensors $(((n + 2) / 3))
for out in "$work/none/x" "$work/folder" /proc/x; do
    for what in "imatrix -m $work/m.gguf -f $work/text --chunk 8 -v -o" "logits -m $work/m.gguf --ids 1,2,3 -o" \
        "perplexity -m $work/m.gguf -f $work/text --chunk 8 -v --save-logits" \
        "merge $work/s-00001-of-00003.gguf" "edit $work/m.gguf --set a=int:1 -o" "quantize --pure $work/m.gguf"; do
        case $what in quantize*) what="$what $out Q8_0" ;; *) what="$what $out" ;; esac
        # shellcheck disable=SC2086
        infer $what
        status 1
        out ''
        tail -n 1 "$work/err" | grep -q 'cannot write: ' || bad "infer $last: $(cat "$work/err")"
        grep -q 'chunk 1 of' "$work/err" && bad "infer $last: after the first chunk"
    done
done
infer split "$work/split.gguf" "$work/taken" --max-tensors $(((n + 2) / 3))
status 1
err_line 'taken-00003-of-00003.gguf: cannot write: Is a directory'
[ "$(ls -d "$work"/taken-*)" = "$work/taken-00003-of-00003.gguf" ] || bad 'parts are left'
mkfifo "$work/pipe" # not opened before its reader is there
cat "$work/pipe" >"$work/piped" &
infer imatrix -m "$work/m.gguf" -f "$work/text" --chunk 8 -o "$work/pipe"
status 0
wait $!
infer imatrix -m "$work/m.gguf" -f "$work/text" --chunk 8 -o "$work/i.gguf"
cmp -s "$work/piped" "$work/i.gguf" || bad 'other bytes through a pipe'

begin a_file_that_was_read_completely_may_be_replaced
printf '[{"role":"user","content":"hi"}]' >"$work/talk.json"
printf '/save %s\n' "$work/talk.json" >"$work/lines"
input=$work/lines
infer chat --commands -m "$work/m.gguf" --template chatml --messages "$work/talk.json"
status 0
grep -q '"hi"' "$work/talk.json" || bad 'the conversation is gone'

begin a_file_that_is_replaced_keeps_its_mode_and_its_links
infer logits -m "$work/m.gguf" --ids "1 2 3" -o "$work/right.bin"
status 0
printf old >"$work/target"
chmod 640 "$work/target"
ln -s target "$work/out_link"
infer logits -m "$work/m.gguf" --ids "1 2 3" -o "$work/out_link"
status 0
cmp -s "$work/right.bin" "$work/target" || bad 'the target is not the result'
[ -L "$work/out_link" ] || bad 'the link is gone'
[ "$(stat -c %a "$work/target")" = 640 ] || bad "mode $(stat -c %a "$work/target")"
long=$work/$(printf '%0255d' 7)
infer logits -m "$work/m.gguf" --ids "1 2 3" -o "$long"
status 0
cmp -s "$work/right.bin" "$long" || bad 'a name as long as names can be'
ln -s new_target "$work/dangling"
infer logits -m "$work/m.gguf" --ids "1 2 3" -o "$work/dangling"
status 0
cmp -s "$work/right.bin" "$work/new_target" || bad 'a link to nothing was not followed'
[ "$(id -u)" -eq 0 ] || {
    chmod 400 "$work/target"
    infer logits -m "$work/m.gguf" --ids "1 2 3" -o "$work/target"
    status 1
    err_line 'target: cannot write: Permission denied'
}
nothing_left

begin what_replaces_a_file_is_on_the_disk_first
library=${INFER%/*}/test/fail_alloc.so
if [ -r "$library" ]; then
    printf '1 2 3 4' >"$work/ids"
    for what in "quantize $work/m.gguf $work/sync Q8_0" "logits -m $work/m.gguf --ids 1,2,3 -o $work/sync" \
        "edit $work/m.gguf --set a=int:1 -o $work/sync" "imatrix -m $work/m.gguf --ids $work/ids --no-bos -o $work/sync"; do
        rm -f "$work/sync"
        # shellcheck disable=SC2086
        FAIL_SYNC=1 LD_PRELOAD=$library infer $what # nothing to lose: not synced
        status 0
        printf old >"$work/sync"
        # shellcheck disable=SC2086
        FAIL_SYNC=1 LD_PRELOAD=$library infer $what
        status 1
        err_line 'sync: cannot write: Input/output error'
        [ "$(cat "$work/sync")" = old ] || bad "$what: the old file is gone"
    done
    nothing_left
else
    skip 'the library is not built'
fi

begin pipes_devices_and_standard_output_are_written_in_place
mkfifo "$work/fifo"
cat "$work/fifo" >"$work/from_fifo" &
infer logits -m "$work/m.gguf" --ids "1 2 3" -o "$work/fifo"
status 0
wait $!
cmp -s "$work/right.bin" "$work/from_fifo" || bad 'through a pipe: other bytes'
[ -p "$work/fifo" ] || bad 'the pipe is gone'
for name in - /dev/stdout; do
    printf before >"$work/appended"
    "$INFER" logits -m "$work/m.gguf" --ids "1 2 3" -o $name </dev/null >>"$work/appended"
    { printf before; cat "$work/right.bin"; } | cmp -s - "$work/appended" || bad "-o $name: other bytes"
done
if [ -w /dev/full ]; then
    infer logits -m "$work/m.gguf" --ids "1 2 3" -o /dev/full
    status 1
    err_line '/dev/full: cannot write: No space left'
fi
nothing_left

# A limit of 1 KiB (2 blocks) simulates a full disk.
limited() {
    (ulimit -f 2; exec "$INFER" "$@") </dev/null >"$work/out" 2>"$work/err"
    code=$? last=$*
}

begin the_old_file_stays_when_the_new_one_cannot_be_written
for what in "logits --ids 1,2,3 -o" "perplexity -f $work/text --save-logits"; do
    printf old >"$work/result"
    # shellcheck disable=SC2086
    limited ${what%% *} -m "$work/m.gguf" ${what#* } "$work/result"
    status 1
    err_line 'result: cannot write: File too large'
    [ "$(cat "$work/result")" = old ] || bad "$what: the old file is gone"
done
printf old >"$work/result"
limited quantize "$work/m.gguf" "$work/result" Q8_0
status 1
err_line 'result: cannot write: File too large'
[ "$(cat "$work/result")" = old ] || bad "quantize: the old file is gone"
printf '[{"role":"user","content":"%2000s"}]' x >"$work/long.json"
printf '/save %s\n' "$work/result" >"$work/lines"
(ulimit -f 2; exec "$INFER" chat --commands -m "$work/m.gguf" --template chatml --messages "$work/long.json") \
    <"$work/lines" >"$work/out" 2>"$work/err"
code=$? last='chat with /save'
status 1
err_line 'result: cannot write: File too large'
[ "$(cat "$work/result")" = old ] || bad "/save: the old file is gone"
nothing_left

# A model with a long output: the signal arrives while the file is being written.
"$make_model" "$work/big.gguf" layers=4 embd=1024 ff=4096 vocab=8192 type=F32 || exit 1

begin a_signal_leaves_no_part_and_its_own_status
for signal in 15:TERM 1:HUP 24:XCPU 10:USR1 13:PIPE; do
    number=${signal%:*}
    printf old >"$work/result"
    (ulimit -c 0; exec "$INFER" quantize "$work/big.gguf" "$work/result" IQ3_S -t 1) </dev/null >"$work/out" 2>"$work/err" &
    pid=$!
    n=0
    while [ $n -lt 500 ] && ! ls "$work"/result.*.part >"$work/seen" 2>&1; do sleep 0.01; n=$((n + 1)); done
    kill -"${signal#*:}" $pid
    wait $pid 2>"$work/seen"
    code=$? last="quantize ended by $signal"
    status $((128 + number))
    [ "$(cat "$work/result")" = old ] || bad "$signal: the old file is gone"
    nothing_left
done

begin a_limit_of_the_size_is_an_error_and_no_signal
limited quantize "$work/big.gguf" "$work/result" Q6_K
status 1
err_line 'File too large'
nothing_left

begin an_output_may_be_the_pipe_of_a_shell # >(..)
if command -v bash >/dev/null; then
    bash -c '"$0" logits -m "$1" --ids "1 2 3" -o >(wc -c >"$2"; : >"$2.done") 2>&1' "$INFER" "$work/m.gguf" "$work/bytes" >"$work/err"
    code=$? last='logits -o >(..)'
    status 0
    err ''
    n=0
    until [ -e "$work/bytes.done" ] || [ $n -ge 100 ]; do sleep 0.1; n=$((n + 1)); done
    [ "$(cat "$work/bytes")" -gt 1000 ] || bad "the pipe got $(cat "$work/bytes") bytes"
else
    skip 'no bash here'
fi

finish

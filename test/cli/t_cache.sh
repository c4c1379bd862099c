# --cache: prefixes of earlier calls. With any content, failure or damage of the cache the answer has
# the bytes of a call without it. Models with random weights.
. test/cli/lib.sh
[ -x "$make_model" ] || { echo "skip: $make_model is not built"; finish; exit 0; }
"$make_model" "$work/m.gguf" vocab=512 ctx=2048 || exit 1
"$make_model" "$work/other.gguf" vocab=512 ctx=2048 seed=2 || exit 1
dir=$work/cache
long='one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen'
m="-m $work/m.gguf"

# cached N: that many tokens of the prompt came from the cache; "some": at least 32.
cached() {
    from_cache=$(sed -n 's/.*"cached_tokens":\([0-9]*\).*/\1/p' "$work/out")
    case $1 in
    some) [ "${from_cache:-0}" -ge 32 ] || bad "infer $last: $from_cache tokens from the cache" ;;
    *) [ "$from_cache" = "$1" ] || bad "infer $last: $from_cache tokens from the cache, not $1" ;;
    esac
}
entry() { # the only entry
    set -- "$dir"/*.prefix
    [ $# -eq 1 ] && [ -f "$1" ] || bad "infer $last: not one entry: $*"
    file=$1
}
# ids: those of the answer in --json, into $got.
ids() { got=$(sed -n 's/.*"ids":\(\[[^]]*\]\).*/\1/p' "$work/out"); }
# as_without ARGS..: status 0 and the answer of the same call without the cache, which is in $want.
run() {
    infer run --temp 0 -n 4 --json --cache "$dir" "$@"
    status 0
    ids
}
wanted() {
    infer run --temp 0 -n 4 --json "$@"
    status 0
    cached 0
    ids
    want=$got
}
same_answer() { [ "$got" = "$want" ] || bad "infer $last: $got, not $want"; }
tokens() { # of a text; standard input is a part of it
    "$INFER" tokenize $m -p "$1" </dev/null | wc -w
}

# shellcheck disable=SC2086 # $m is several words
{
begin a_second_call_reads_one_token
wanted $m -p "$long"
run $m -p "$long"
same_answer
cached 0
err ''
entry
n=$(tokens "$long")
run $m -p "$long"
same_answer
cached $((n - 1))
err ''
entry
[ "$(ls -ld "$dir" | cut -c 1-10)" = drwx------ ] || bad "$(ls -ld "$dir")"
[ "$(ls -l "$file" | cut -c 1-10)" = -rw------- ] || bad "$(ls -l "$file")"
infer run $m -p "$long" -n 1 -v --cache "$dir"
err_like "^infer: prompt: 1 of $n tokens \\($((n - 1)) from the cache in [0-9.]+ ms\\), "

begin a_longer_text_continues_a_stored_one
wanted $m -p "$long more"
run $m -p "$long more"
same_answer
cached "$n"
entry # for a few more tokens no new entry is written

begin a_shorter_text_uses_a_prefix_of_a_stored_one
short=${long%?????????????????????????}
wanted $m -p "$short"
run $m -p "$short"
same_answer
cached $(($(tokens "$short") - 1))
entry

begin another_text_uses_only_the_common_prefix
wanted $m -p "x$long"
run $m -p "x$long"
same_answer
cached 0

begin less_than_32_tokens_are_not_stored
rm -r "$dir"
text=z
while [ "$(tokens "$text")" -lt 31 ]; do text=z$text; done
run $m -p "$text"
[ "$(tokens "$text")" = 31 ] && [ "$(ls -A "$dir")" = '' ] || bad "$(ls -A "$dir")"
run $m -p "z$text"
entry

begin other_models_and_settings_are_other_keys
run $m -p "$long"
for other in "-m $work/other.gguf" "$m -ctk f32" "$m -ctv bf16" "$m --rope-scale 2" "$m --rope-freq-base 5000" \
    "$m --rope-scaling yarn --rope-scale 2" "$m --override-kv llama.attention.layer_norm_rms_epsilon=float:0.1"; do
    wanted $other -p "$long"
    run $other -p "$long"
    same_answer
    cached 0
done
for like in "$m -t 2" "$m -b 7" "$m -c 1000" "$m --isa scalar"; do # options that change no bits
    run $like -p "$long"
    cached $((n - 1))
done
cp "$work/m.gguf" "$work/copy.gguf"
run -m "$work/copy.gguf" -p "$long"
cached $((n - 1))

begin all_kinds_of_states_are_stored
for kind in llama:0 gemma3:1 deepseek2:2 mamba2:0 lfm2:3 qwen3next:4 llama4:0 falcon-h1:5; do # short runs: with these options
    arch=${kind%:*} i=-1
    "$make_model" "$work/kind.gguf" arch=$arch vocab=300 ctx=2048 embd=128 head_dim=32 || bad "no $arch"
    for how in '' '-ctk f32 -ctv f32' '-ctk q8_0 -ctv bf16' '-b 16' '--temp 1.5 --seed 4' \
        "--temp 1 --seed 9 --regex [a-z]{4,9}x"; do
        i=$((i + 1))
        [ -z "$quick" ] || [ $i -eq "${kind#*:}" ] || continue
        infer run -m "$work/kind.gguf" --json -p "$long" -n 12 $how
        [ $code -eq 0 ] || continue # the heads of this model do not fit the cache type
        ids
        want=$got
        rm -rf "$dir"
        for turn in first second; do
            infer run -m "$work/kind.gguf" --json -p "$long" -n 12 $how --cache "$dir"
            status 0
            ids
            same_answer
            [ $turn = first ] || [ "$how" != '' ] || cached some
        done
        # Another suffix of the same prefix: reuses as many tokens as this model can truncate to.
        infer run -m "$work/kind.gguf" --json -p "$short other words" -n 12 $how
        ids
        want=$got
        infer run -m "$work/kind.gguf" --json -p "$short other words" -n 12 $how --cache "$dir"
        status 0
        ids
        same_answer
        # A third suffix: continues from where the first two diverge.
        infer run -m "$work/kind.gguf" --json -p "$short outer words" -n 12 $how --cache "$dir"
        status 0
        [ "$how" != '' ] || cached some
    done
done

begin damaged_entries_are_not_used
wanted $m -p "$long"
rm -rf "$dir"
run $m -p "$long"
entry
cp "$file" "$work/good"
size=$(wc -c <"$file")
step=1
[ -z "$quick" ] || step=7
at=0
while [ $at -lt "$size" ]; do
    cp "$work/good" "$file"
    chmod 600 "$file"
    byte=$(od -An -tu1 -j $at -N 1 "$file" | tr -d ' ')
    # shellcheck disable=SC2059
    printf "\\$(printf %o $((byte ^ 1)))" | dd of="$file" bs=1 seek=$at conv=notrunc 2>/dev/null
    run $m -p "$long"
    same_answer
    cached 0
    err ''
    [ -z "$test_bad" ] || break
    # Each byte of the head's numbers, some of the key and of the rest.
    if [ $at -lt 56 ]; then at=$((at + step)); elif [ $at -lt 128 ]; then at=$((at + 8)); else at=$((at * 3 + 1)); fi
done
cmp -s "$work/good" "$file" || bad 'a damaged entry was not replaced'
for cut in 0 1 127 128 300 $((size - 1)); do
    head -c $cut "$work/good" >"$file"
    run $m -p "$long"
    same_answer
    cached 0
done
cat "$work/good" "$work/good" >"$file"
run $m -p "$long"
same_answer
cached 0
run $m -p "$long"
cached $((n - 1))

begin entries_that_others_can_write_to_are_not_read
entry
cp "$file" "$work/good"
chmod 620 "$file"
run $m -p "$long"
same_answer
cached 0
for kind in 'ln -s '"$work/good" mkfifo mkdir; do
    rm -rf "$file"
    $kind "$file"
    run $m -p "$long"
    same_answer
    cached 0
done
rm -rf "$dir"
run $m -p "$long"
if [ "$(id -u)" -eq 0 ]; then
    entry
    chown 1 "$file"
    run $m -p "$long"
    same_answer
    cached 0
fi
chmod 770 "$dir"
run $m -p "$long"
same_answer
cached 0
err_line '^infer: the prefix cache is not used: .*cache: others can write to it, or it is theirs$'
chmod 700 "$dir"

begin a_failing_cache_does_not_change_the_answer
rm -rf "$dir"
: >"$dir"
run $m -p "$long"
same_answer
err_line '^infer: the prefix cache is not used: .*cache: Not a directory$'
rm "$dir"
if [ "$(id -u)" -ne 0 ]; then
    mkdir -m 500 "$dir"
    run $m -p "$long"
    same_answer
    err_line 'the prefix cache is not written: cannot write: '
    chmod 000 "$dir"
    run $m -p "$long"
    same_answer
    err_line 'the prefix cache is not used: '
    chmod 700 "$dir"
fi
(
    ulimit -f 8 || exit 0 # a full disk
    run $m -p "$long"
    same_answer
    err_line '^infer: the prefix cache is not written: cannot write: File too large$'
    [ -z "$test_bad" ] || { echo "$test_bad" >"$work/said"; exit 1; }
) || bad "$(cat "$work/said")"
[ "$(ls -A "$dir")" = '' ] || bad "left: $(ls -A "$dir")"
env -u HOME -u XDG_CACHE_HOME "$INFER" run $m -p "$long" -n 1 --cache auto >"$work/out" 2>"$work/err" </dev/null
code=$?
status 0
err_line 'there is no folder for it: set HOME, or name one$'

begin a_cache_folder_in_a_missing_folder_is_a_usage_error
for command in run batch chat; do
    usage "^infer: --cache: $work/typo: No such file or directory" $command $m --cache "$work/typo/dir"
    usage "^infer: --cache: typo: No such" $command $m --cache typo/dir/
done
[ -e "$work/typo" ] && bad 'it was made'
INFER_CACHE=$work/typo/dir infer run $m -p x
status 2
err_line '^infer: INFER_CACHE: .*typo: No such file'
infer run $m -p "$long" -n 1 --cache "$work/made/"
status 0
err ''
[ -n "$(ls "$work/made")" ] || bad 'the folder itself was not made'

begin the_default_folder_is_that_of_the_user
XDG_CACHE_HOME=$work/xdg infer run $m -p "$long" -n 1 --cache auto
status 0
[ -n "$(ls "$work/xdg/infer/prefix")" ] || bad 'nothing in XDG_CACHE_HOME'
INFER_CACHE=auto infer run $m -p "$long" -n 1
[ -n "$(ls "$work/.cache/infer/prefix")" ] || bad 'nothing in ~/.cache'
unset INFER_CACHE

begin the_oldest_entry_is_removed
"$make_model" "$work/wide.gguf" vocab=512 ctx=2048 head_dim=256 layers=2 || bad 'no model'
w="-m $work/wide.gguf"
rm -rf "$dir"
for i in 1 2 3 4 5 6; do
    infer run $w -n 1 --cache "$dir" --cache-size 1 -p "$i $long"
    status 0
    touch -d "2020-01-0$i" "$(ls -t "$dir"/*.prefix | head -n 1)"
    infer run $w -n 1 --cache "$dir" --cache-size 1 -p "1 $long" # keeps this entry in use
done
[ "$(cat "$dir"/*.prefix | wc -c)" -le 1048576 ] || bad "$(ls -l "$dir")"
[ "$(ls "$dir" | wc -l)" -ge 2 ] || bad "$(ls -l "$dir")"
infer run $w -n 1 --cache "$dir" --cache-size 1 -p "1 $long" --json
cached some
infer run $w -n 1 --cache "$dir" --cache-size 1 -p "2 $long" --json
cached 0
infer run $w -n 1 --cache "$dir" --cache-size 0 -p "2 $long" -v
status 0
err_like 'tokens are more than --cache-size allows'
[ "$(ls -A "$dir")" = '' ] || bad "$(ls -l "$dir")"

begin files_above_the_limit_are_removed
for i in 1 516; do # open files are limited
    tee $(seq -f "$dir/aaaaaaaaaaaaaaaa-bbbbbbbbbbbbbbbb-%016.0f.prefix" $i $((i + 514))) <"$work/good" >/dev/null
done
infer run $w -n 1 --cache "$dir" --cache-size 100 -p "2 $long"
status 0
[ "$(ls "$dir" | wc -l)" -eq 1025 ] || bad "$(ls "$dir" | wc -l) files"

begin processes_share_the_cache_at_once
rm -rf "$dir"
for text in 1 2 3; do "$INFER" run $w -n 4 --temp 0 -p "$text $long" >"$work/alone$text" 2>/dev/null; done
for round in 1 2 3 4; do
    pids=''
    for text in 1 2 3 1; do
        "$INFER" run $w -n 4 --temp 0 --cache "$dir" --cache-size 1 -p "$text $long" >"$work/$text$round$pids" 2>"$work/said" &
        pids=${pids}x
    done
    wait
    grep -v ' is empty: ' "$work/said" && bad 'a remark'
    for text in 1 2 3; do
        for answer in "$work/$text$round"*; do cmp -s "$answer" "$work/alone$text" || bad "$answer"; done
    done
done
ls "$dir" | grep -v '\.prefix$' && bad 'incomplete files are left'

begin files_of_a_killed_process_are_removed
printf 'infer prefix 01\0' >"$dir/prefix.99999.part"
run $m -p "$long"
[ -e "$dir/prefix.99999.part" ] || bad 'a young one is gone'
touch -d 2020-01-01 "$dir/prefix.99999.part"
run $m -p "$long"
[ ! -e "$dir/prefix.99999.part" ] || bad 'an old one is there'

begin files_of_other_programs_are_kept
mine=0123456789abcdef-0123456789abcdef-0123456789abcdef.prefix # the name of an entry
touch -d 2020-01-01 "$dir/mine.part" "$dir/$mine" "$dir/prefix.0123456789abcdef.part"
infer cache --cache "$dir"
status 0
run $m -p "$long" --cache-size 1
infer cache --cache "$dir" --clear
status 0
for name in mine.part $mine prefix.0123456789abcdef.part; do
    [ -e "$dir/$name" ] || bad "$name is gone"
    rm -f "$dir/$name"
done

begin foreign_files_with_names_of_parts_are_neither_read_nor_written
for name in new prefix new.1-0.part prefix.part; do
    mkfifo "$dir/$name"
    run $m -p "$long" # would wait for a reader
    [ -p "$dir/$name" ] || bad "$name is no pipe"
    rm "$dir/$name"
    mkdir "$work/target"
    : >"$work/target/file"
    chmod 644 "$work/target/file"
    ln -s "$work/target/file" "$dir/$name"
    "$INFER" run $m -n 4 --temp 0 --cache "$dir" -p "$long" >"$dir/$name" 2>"$work/err"
    [ "$(stat -c %a "$work/target/file")" = 644 ] || bad "$name: the rights of the target of a link were changed"
    [ -s "$work/target/file" ] || bad "$name: the answer is gone"
    rm -r "$dir/$name" "$work/target"
done

begin keys_of_blocks_are_stored_from_the_first_on
blocks=$(printf 'one two three four %.0s' $(seq 9)) # more than 32 blocks of 4 tokens
for arch in deepseek4 glm5-next qwen4exp; do
    "$make_model" "$work/kind.gguf" arch=$arch tokens=bpe || bad "no $arch"
    rm -rf "$dir"
    for how in '' "--cache $dir" "--cache $dir"; do
        infer run -m "$work/kind.gguf" --json -p "$blocks" -n 6 --temp 0 --ignore-eos $how
        status 0
        ids
        [ "$how" ] || want=$got
        same_answer
    done
    cached some
done

begin each_turn_of_a_conversation_uses_the_cache
printf 'hello you\n/undo\nhow are you\nand now\n/undo\nonce more\n' >"$work/lines"
rm -rf "$dir"
input=$work/lines
for arch in llama gemma3 lfm2; do
    "$make_model" "$work/kind.gguf" arch=$arch vocab=512 ctx=2048 || bad "no $arch"
    c="-m $work/kind.gguf --template chatml --commands -n 9 --seed 3"
    infer chat $c -sys "$long"
    status 0
    cp "$work/out" "$work/want_chat"
    for turn in 1 2 3; do
        infer chat $c -sys "$long" --cache "$dir" -v
        status 0
        cmp -s "$work/out" "$work/want_chat" || bad "$arch, turn $turn: $(cat "$work/out")"
    done
    err_like '^infer: prompt: [0-9]+ tokens, [1-9][0-9]* from the cache'
done
input=''

begin lines_of_a_batch_use_the_cache
for i in 1 2 3 4 5; do printf '{"prompt":"%s %d"}\n' "$long" $i; done >"$work/rows"
rm -rf "$dir"
input=$work/rows
infer batch $m -n 5 --seed 3
cp "$work/out" "$work/want_batch"
infer batch $m -n 5 --seed 3 --cache "$dir"
status 0
cmp -s "$work/out" "$work/want_batch" || bad "$(cat "$work/out")"
entry
infer batch $m -n 5 --seed 3 --cache "$dir" -v
status 0
cmp -s "$work/out" "$work/want_batch" || bad "$(cat "$work/out")"
err_like '; [5-9] tokens read, 25 generated' # the last of each
entry
input=''
run $m -p "$long and what I ask" # an entry of another command
cached some

begin entries_are_listed_and_removed
rm -rf "$dir"
infer cache --cache "$dir"
status 0
out ''
err "infer: $dir: 0 entries, 0.0 MB\n"
infer cache --cache "$dir" --json
out '[]\n'
infer run $m -n 1 -p "$long" --cache "$dir"
infer run -m "$work/other.gguf" -n 1 -p "$long" --cache "$dir"
infer cache --cache "$dir"
status 0
out_like "^ +[0-9.]+ MB +[0-9]+ s +$n tokens  "
[ "$(wc -l <"$work/out")" -eq 2 ] || bad "$(cat "$work/out")"
err_line ': 2 entries, [0-9.]+ MB$'
infer cache --cache "$dir" --json
out_like "\"error\":null,\"tokens\":$n,\"model\":\""
infer cache --cache "$dir" 'no such model'
out ''
infer cache --cache "$dir" --older 1
out ''
infer cache --cache "$dir" --clear --older 1
err_line ': 0 entries, 0.0 MB removed$'
set -- "$dir"/*.prefix
touch -d 2020-01-01 "$1"
infer cache --cache "$dir" --clear --older 1
status 0
out ''
err_line ': 1 entry, [0-9.]+ MB removed$'
entry
head -c 300 "$file" >"$work/cut"
cat "$work/cut" >"$file"
infer cache --cache "$dir"
out_like ' unusable: the sizes do not fit the file$'
infer cache --cache "$dir" --json
out_like '"error":"the sizes do not fit the file"}'
: >"$dir/mine"
infer cache --cache "$dir" --clear
[ "$(ls "$dir")" = mine ] || bad "$(ls "$dir")"
infer cache --cache "$work/lines"
status 1
err_line 'Not a directory'
usage 'needs --cache' run $m -p x --cache-size 5
}

finish

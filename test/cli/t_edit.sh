# edit: metadata of models with random weights.
. test/cli/lib.sh

m=$work/m.gguf
"$make_model" "$m" type=F16 layers=2 embd=64 heads=4 kv_heads=2 head_dim=16 ff=128 vocab=320 >/dev/null ||
    { echo 'FAIL t_edit.sh: no model'; finish; exit; }
sum=$(cksum <"$m")

untouched() {
    [ "$(cksum <"$m")" = "$sum" ] || bad "infer $last: the model was changed"
    for left in "$work"/*.part "$work/x.gguf"; do
        [ ! -e "$left" ] || bad "infer $last: left ${left##*/}"
    done
}
# shows FILE REGEX: some line of its metadata
shows() {
    infer inspect "$1" --metadata
    status 0
    out_like "$2"
}
# data FILE: a checksum of everything except metadata: names, types, bytes
data() {
    infer quantize "$1" "$work/q.gguf" COPY >/dev/null
    "$INFER" logits -m "$1" --ids '1 2 3 4 5' -o - </dev/null | cksum
}
before=$(data "$m")

begin set_gives_a_key_the_kind_that_it_has
infer edit "$m" -o "$work/e.gguf" --set general.name=str:Another --set llama.context_length=int:99 \
    --set llama.rope.freq_base=float:20000
status 0
out ''
err ''
shows "$work/e.gguf" '^  general.name +string "Another"$'
out_like '^  llama.context_length +u32 99$'
out_like '^  llama.rope.freq_base +f32 20000$'
[ "$(cksum <"$m")" = "$sum" ] || bad 'the model was changed'
infer edit "$work/e.gguf" --set "general.name=str:$("$INFER" inspect "$m" --metadata --json | sed -n 's/^"general.name".*"value":"\(.*\)"},*$/\1/p')" \
    --set "llama.context_length=int:$("$INFER" inspect "$m" --metadata --json | sed -n 's/^"llama.context_length".*"value":\([0-9]*\).*/\1/p')"
status 0
shows "$work/e.gguf" '^  llama.rope.freq_base +f32 20000$'

begin new_keys_get_a_type
infer edit "$m" -o "$work/e.gguf" --set a=int:7 --set b=int:-7 --set c=int:5000000000 --set d=float:0.5 \
    --set e=bool:true --set f=str:a:b=c --set g=u8:255 --set h=i16:-32768 --set i=u64:18446744073709551615 \
    --set j=f64:1e300 --set k=str: --set 'l=int[]:[1,-2]' --set 'm=str[]:["a","","\u00e9"]' \
    --set 'n=float[]:[1,2.5]' --set 'o=bool[]:[true,false]' --set 'p=u64[]:[5,18446744073709551615]' --set 'p2=f64[]:[1e2,0.10]' --set 'q=int[]:[]' --set r=int:18446744073709551615
status 0
shows "$work/e.gguf" '^  a +u32 7$'
out_like '^  b +i32 -7$'
out_like '^  c +i64 5000000000$'
out_like '^  d +f32 0.5$'
out_like '^  e +bool true$'
out_like '^  f +string "a:b=c"$'
out_like '^  g +u8 255$'
out_like '^  h +i16 -32768$'
out_like '^  i +u64 18446744073709551615$'
out_like '^  j +f64 1e\+300$'
out_like '^  k +string ""$'
out_like '^  l +i32\[2\] \[1, -2\]$'
out_like '^  m +string\[3\] \["a", "", "é"\]$'
out_like '^  n +f32\[2\] \[1, 2.5\]$'
out_like '^  o +bool\[2\] \[true, false\]$'
out_like '^  p +u64\[2\] \[5, 18446744073709551615\]$'
out_like '^  p2 +f64\[2\] \[100, 0.1\]$'
out_like '^  q +i32\[0\] \[\]$'
out_like '^  r +u64 18446744073709551615$'
[ "$(data "$work/e.gguf")" = "$before" ] || bad 'other logits'

begin a_key_of_the_file_needs_no_type
infer edit "$m" -o "$work/u.gguf" --set general.name=Another --set llama.context_length=99 \
    --set llama.rope.freq_base=20000 --set 'general.description=str:a: b'
status 0
shows "$work/u.gguf" '^  general.name +string "Another"$'
out_like '^  llama.context_length +u32 99$'
out_like '^  llama.rope.freq_base +f32 20000$'
infer edit "$work/u.gguf" --set 'general.description=note: it is a test' --set general.name=int
status 0
shows "$work/u.gguf" '^  general.description +string "note: it is a test"$'
out_like '^  general.name +string "int"$'
infer edit "$work/e.gguf" --set 'm=["x"]' --set l=[7,8,9] --set e=false
status 0
shows "$work/e.gguf" '^  m +string\[1\] \["x"\]$'
out_like '^  l +i32\[3\] \[7, 8, 9\]$'
out_like '^  e +bool false$'
infer edit "$work/e.gguf" --set e=true
usage "'lots' is not a whole number" edit "$m" -o "$work/x.gguf" --set llama.context_length=lots
usage 'the file has no such key' edit "$m" -o "$work/x.gguf" --set general.nam=Another
untouched

begin edits_that_collide_are_refused
infer edit "$m" -o "$work/c.gguf" --set x.a=int:1 --set x.b=int:2
c=$work/c.gguf
printf '{{ messages }}' >"$work/t.jinja"
before_c=$(cksum <"$c")
usage "'x.c' would be the name of two" edit "$c" --rename x.a=x.c --rename x.b=x.c
usage "'x.a' is renamed twice" edit "$c" --rename x.a=x.c --rename x.a=x.d
usage "'x.c' is set too" edit "$c" --rename x.a=x.c --set x.c=int:1
usage "'x.a' is set too" edit "$c" --rename x.a=x.c --set x.a=int:1
usage "'x.a' is deleted too" edit "$c" --rename x.a=x.c --delete x.a
usage "'x.a' is deleted twice" edit "$c" --delete x.a --delete x.a
usage "'x.a' is set twice" edit "$c" --set x.a=int:1 --set x.a=int:2
usage "'tokenizer.chat_template' is set twice" edit "$c" --set tokenizer.chat_template=str:x --template "$work/t.jinja"
usage "'tokenizer.chat_template' is set too" edit "$c" --rename x.a=tokenizer.chat_template --template "$work/t.jinja"
usage "has a 'x.b' already" edit "$c" --rename x.a=x.b --rename x.b=x.a
usage "has a 'x.a' already" edit "$c" --rename x.a=x.a
usage "'z.weight' would be the name of two" edit "$c" --rename blk.0.attn_q.weight=z.weight --rename blk.0.attn_k.weight=z.weight
usage "'blk.0.attn_q.weight' is renamed twice" edit "$c" --rename blk.0.attn_q.weight=y --rename blk.0.attn_q.weight=z
[ "$(cksum <"$c")" = "$before_c" ] || bad 'the file was changed'
infer edit "$c" --delete x.b --rename x.a=x.b
status 0
shows "$c" '^  x.b +u32 1$'

begin keys_are_deleted_and_renamed
usage 'could not be opened afterwards: ' edit "$work/e.gguf" --rename token_embd.weight=other.weight -o "$work/f.gguf"
infer edit "$work/e.gguf" --delete a --delete k --rename b=bb --delete c --set c=str:now
status 0
shows "$work/e.gguf" '^  bb +i32 -7$'
grep -Eq '^  (a|b|k) ' "$work/out" && bad 'a deleted key is there'
out_like '^  c +string "now"$'
infer edit "$work/e.gguf" --delete bb --delete c
[ "$(data "$work/e.gguf")" = "$before" ] || bad 'other logits'
"$make_model" "$work/v.gguf" arch=llama beside=v.blk.0.attn_q.weight >/dev/null
infer edit "$work/v.gguf" --rename v.blk.0.attn_q.weight=v.blk.1.attn_q.weight
status 0
infer inspect "$work/v.gguf" --tensors
out_like '^  v.blk.1.attn_q.weight '

begin a_template_is_read_from_a_file
printf '{%% for m in messages %%}<{{ m.content }}>{%% endfor %%}' >"$work/t.jinja"
infer edit "$m" -o "$work/e.gguf" --template "$work/t.jinja"
status 0
infer run -m "$work/e.gguf" --chat -p hi -n 0 --show-prompt --json
out_like '<hi>'
printf '{%% for %%}' >"$work/t.jinja"
usage 't.jinja: line 1' edit "$m" -o "$work/x.gguf" --template "$work/t.jinja"
: >"$work/t.jinja"
usage 't.jinja: is empty' edit "$m" -o "$work/x.gguf" --template "$work/t.jinja"
usage 'none.jinja' edit "$m" -o "$work/x.gguf" --template "$work/none.jinja"
untouched

begin wrong_values_are_refused
for value in 'a' 'a=' '=int:1' 'a=int' 'a=long:1' 'a=int[:1' 'a=[]:1'; do
    usage '^infer: --set: ' edit "$m" -o "$work/x.gguf" --set "$value"
done
usage "'1x' is not a whole number" edit "$m" -o "$work/x.gguf" --set a=int:1x
usage "'256' does not fit u8" edit "$m" -o "$work/x.gguf" --set a=u8:256
usage "'-1' does not fit u32" edit "$m" -o "$work/x.gguf" --set llama.context_length=int:-1
usage "'1e39' does not fit f32" edit "$m" -o "$work/x.gguf" --set a=float:1e39
usage "'nan' is not a number" edit "$m" -o "$work/x.gguf" --set a=float:nan
usage "'on' is neither true nor false" edit "$m" -o "$work/x.gguf" --set a=bool:on
usage 'general.name is string in the file: another type needs --delete' edit "$m" -o "$work/x.gguf" --set general.name=int:1
usage 'tokenizer.ggml.tokens is an array of string in the file' edit "$m" -o "$work/x.gguf" --set tokenizer.ggml.tokens=str:x
usage "item 2 of '\[1,1.5\]' is no i32" edit "$m" -o "$work/x.gguf" --set 'a=int[]:[1,1.5]'
usage "item 1 of '\[256\]' is no u8" edit "$m" -o "$work/x.gguf" --set 'a=u8[]:[256]'
usage 'not an array of JSON' edit "$m" -o "$work/x.gguf" --set 'a=int[]:{}'
usage '^infer: --set: line 1, column ' edit "$m" -o "$work/x.gguf" --set 'a=int[]:[1'
usage "the file has no key 'nobody'" edit "$m" -o "$work/x.gguf" --delete nobody
usage "no key and no tensor 'nobody'" edit "$m" -o "$work/x.gguf" --rename nobody=x
usage "has a 'general.name' already" edit "$m" -o "$work/x.gguf" --rename general.architecture=general.name
usage "'a=' is not OLD=NEW" edit "$m" -o "$work/x.gguf" --rename a=
usage 'nothing to change' edit "$m"
untouched

begin what_would_make_the_file_unreadable_is_refused
usage 'general.alignment is a u32, a power of two' edit "$m" --set general.alignment=int:33
usage 'general.alignment is a u32, a power of two' edit "$m" --set general.alignment=u64:64
usage 'general.alignment is a u32, a power of two' edit "$m" --set general.alignment=str:64
usage 'split.count is written by infer split' edit "$m" --set split.count=int:2
usage 'general.alignment describes the' edit "$m" --rename general.name=general.alignment
usage 'general.architecture: the model could not be opened afterwards' edit "$m" --delete general.architecture
usage 'the model could not be opened afterwards: ' edit "$m" --set llama.block_count=int:3
usage 'tokenizer.ggml.scores|the vocabulary could not be opened afterwards' edit "$m" --set 'tokenizer.ggml.tokens=str[]:["a"]'
untouched

begin another_alignment_moves_the_data
infer edit "$m" -o "$work/e.gguf" --set general.alignment=int:4096
status 0
[ "$(data "$work/e.gguf")" = "$before" ] || bad 'other logits'
infer inspect "$work/e.gguf" --json
out_like '"alignment":4096'

begin an_edit_is_complete_or_changes_nothing
infer edit "$m" -o "$work/e.gguf" --set a=int:1
for out in "$m" "$work/./m.gguf"; do
    usage 'is the input too' edit "$m" --set a=int:1 -o "$out"
done
ln -s m.gguf "$work/link.gguf"
usage 'is the input too' edit "$m" --set a=int:1 -o "$work/link.gguf"
untouched
(ulimit -f 2; exec "$INFER" edit "$m" --set a=int:1) </dev/null >"$work/out" 2>"$work/err"
code=$? last='edit with a limit'
status 1
err_line 'cannot write: File too large'
untouched
cp "$m" "$work/n.gguf"
chmod 640 "$work/n.gguf"
rm "$work/link.gguf"
ln -s n.gguf "$work/link.gguf"
infer edit "$work/link.gguf" --set general.name=str:N
status 0
[ -L "$work/link.gguf" ] && [ "$(stat -c %a "$work/n.gguf")" = 640 ] || bad 'another mode, or no link'
shows "$work/n.gguf" '^  general.name +string "N"$'
"$INFER" edit "$m" --set a=int:1 -o - </dev/null >"$work/piped.gguf"
cmp -s "$work/piped.gguf" "$work/e.gguf" || bad 'other bytes on standard output'

begin edits_at_once_are_all_kept
cp "$m" "$work/n.gguf"
for i in 1 2 3 4 5 6; do
    "$INFER" edit "$work/n.gguf" --set "at.once.$i=int:$i" </dev/null 2>"$work/err.$i" &
done
wait
infer inspect "$work/n.gguf" --metadata
for i in 1 2 3 4 5 6; do
    out_like "^  at.once.$i +u32 $i\$"
    grep -v 'waits for another process' "$work/err.$i" && bad "edit $i says $(cat "$work/err.$i")"
done

begin a_file_with_hard_links_is_not_separated
ln "$work/n.gguf" "$work/hard.gguf"
usage 'n.gguf: has 2 names .hard links.' edit "$work/n.gguf" --set a=int:1
infer edit "$work/n.gguf" --set a=int:1 -o "$work/o.gguf"
status 0
rm "$work/hard.gguf"

begin a_split_model_is_edited_in_its_first_part
infer split "$m" "$work/p" --max-tensors 8
for f in "$work"/p-0*; do count=${f##*-of-}; done
cat "$work"/p-0*[2-9]-of-* | cksum >"$work/others"
infer edit "$work/p-00002-of-$count" --set general.name=str:Parts
status 0
shows "$work/p-00001-of-$count" '^  general.name +string "Parts"$'
cat "$work"/p-0*[2-9]-of-* | cksum | cmp -s - "$work/others" || bad 'another part was changed'
infer edit "$work/p-00001-of-$count" --set general.name=str:One -o "$work/one.gguf"
status 0
infer edit "$m" --set general.name=str:One -o "$work/two.gguf"
cmp -s "$work/one.gguf" "$work/two.gguf" || bad 'a split model gives other bytes'
name=$("$INFER" inspect "$work/p-00001-of-$count" --tensors --json | sed -n 's/^{"name":"\([^"]*\)".*"part":1}.*/\1/p' | head -n 1)
usage "$name is in part 2 of a split model: give -o" edit "$work/p-00001-of-$count" --rename "$name=x.weight"

finish

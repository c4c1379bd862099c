# diff: two model files with random weights.
. test/cli/lib.sh

m=$work/m.gguf
"$make_model" "$m" type=F32 layers=1 embd=64 heads=4 kv_heads=2 head_dim=16 ff=128 vocab=320 >/dev/null ||
    { echo 'FAIL t_diff.sh: no model'; finish; exit; }
n=$("$INFER" inspect "$m" --tensors --json | grep -c '^{"name":')
# at FILE TENSOR: the offset of its data
at() {
    "$INFER" inspect "$1" --tensors --json | sed -n "s/^{\"name\":\"$2\".*\"offset\":\([0-9]*\).*/\1/p"
}
# poke FILE OFFSET BYTES: a printf format
poke() {
    # shellcheck disable=SC2059
    printf "$3" | dd of="$1" bs=1 seek="$2" conv=notrunc 2>"$work/said"
}

begin equal_files_are_status_0
infer diff "$m" "$m"
status 0
out "$n of $n tensors have equal bytes\n"
err ''
infer split "$m" "$work/p" --max-tensors 5
infer diff "$m" "$work"/p-00001-of-*
status 0
out "$n of $n tensors have equal bytes\n"
infer diff "$m" "$m" --all
status 0
[ "$(grep -c '^= .*  equal bytes$' "$work/out")" -eq "$n" ] || bad 'not all tensors are listed'
infer diff "$m" "$m" --format json
status 0
[ "$(grep -c '"equal":true' "$work/out")" -eq $((n + 1)) ] || bad 'not all are equal in the JSON'

begin keys_that_differ_are_named
infer edit "$m" -o "$work/a.gguf" --set general.name=str:Other --set 'x=int[]:[1,2,3]' --set y=int:1
infer edit "$m" -o "$work/b.gguf" --set 'x=int[]:[1,5,4]' --set z=bool:true
infer diff "$work/a.gguf" "$work/b.gguf"
status 1
err ''
out_like '^! general.name  string "Other" -> string "random"$'
out_like '^! x  i32\[3\] \[1, 2, 3\] -> i32\[3\] \[1, 5, 4\]; 2 items differ, the first is 1: 2 -> 5$'
out_like '^- y  u32 1$'
out_like '^[+] z  bool true$'
out_like "^$n of $n tensors have equal bytes$"
infer edit "$m" -o "$work/a.gguf" --set y=int:1
infer edit "$m" -o "$work/b.gguf" --set y=float:1
infer diff "$work/a.gguf" "$work/b.gguf" --json
status 1
out_like '"key":"y","a":\{"type":"u32","value":1\},"b":\{"type":"f32","value":1\}\}'
out_like '^"equal":false\}$'

begin one_value_that_differs_is_found
cp "$m" "$work/a.gguf"
cp "$m" "$work/b.gguf"
place=$(at "$m" output_norm.weight)
poke "$work/a.gguf" $((place + 12)) '\000\000\000\100' # 2.0
poke "$work/b.gguf" $((place + 12)) '\000\000\040\100' # 2.5
infer diff "$work/a.gguf" "$work/b.gguf"
status 1
out_like '^! output_norm.weight  F32 \[64\]  relative RMS [0-9.]*, largest difference 0.5 at \[3\], 1 values differ$'
out_like "^$((n - 1)) of $n tensors have equal bytes$"
infer diff "$work/b.gguf" "$work/a.gguf" --json
out_like '"name":"output_norm.weight".*"max":0.5,"max_at":\[3\],"differing":1,"without_number":0\}'
poke "$work/b.gguf" $((place + 12)) '\000\000\300\177' # NaN
infer diff "$work/a.gguf" "$work/b.gguf"
out_like '1 values differ, 1 of them infinite or NaN$'
infer diff "$work/b.gguf" "$work/b.gguf"
status 0

begin types_shapes_and_names_are_compared
infer quantize "$m" "$work/f.gguf" F16
infer quantize "$work/f.gguf" "$work/w.gguf" F32
infer diff "$work/f.gguf" "$work/w.gguf"
status 1
out_like '^! token_embd.weight  F16 \[320, 64\] -> F32 \[320, 64\]  equal values$'
infer quantize "$m" "$work/q.gguf" Q8_0
infer diff "$m" "$work/q.gguf"
status 1
rms=$(sed -n 's/^! token_embd.weight .* relative RMS \([0-9.e-]*\),.*/\1/p' "$work/out")
awk -v x="${rms:-1}" 'BEGIN { exit !(x > 0.001 && x < 0.01) }' || bad "relative RMS $rms of Q8_0"
cp "$work/out" "$work/right"
for t in 1 3; do
    infer diff "$m" "$work/q.gguf" -t $t
    cmp -s "$work/out" "$work/right" || bad "other output with $t threads"
done
"$make_model" "$work/o.gguf" type=F32 layers=1 embd=64 heads=4 kv_heads=2 head_dim=16 ff=64 vocab=320 beside=v.x.weight >/dev/null
infer diff "$m" "$work/o.gguf"
status 1
out_like '^! blk.0.ffn_up.weight  F32 \[128, 64\] -> F32 \[64, 64\]$'
out_like '^[+] v.x.weight  F32 '
infer diff "$work/o.gguf" "$m"
out_like '^- v.x.weight  F32 '

begin what_is_no_model_is_status_3
usage 'diff: missing argument' diff "$m"
infer diff "$m" "$work/none.gguf"
status 3
err_line 'none.gguf: cannot open'
infer diff "$work/said" "$m"
status 3

finish

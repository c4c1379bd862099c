# verify: structure, values and hashes of models with random weights.
. test/cli/lib.sh

m=$work/m.gguf
"$make_model" "$m" type=F32 layers=1 embd=256 heads=4 kv_heads=2 head_dim=64 ff=256 vocab=320 tied=0 >/dev/null ||
    { echo 'FAIL t_verify.sh: no model'; finish; exit; }
at() { # FILE TENSOR: the offset of its data
    "$INFER" inspect "$1" --tensors --json | sed -n "s/^{\"name\":\"$2\".*\"offset\":\([0-9]*\).*/\1/p"
}
poke() { # FILE OFFSET BYTES: a printf format
    # shellcheck disable=SC2059
    printf "$3" | dd of="$1" bs=1 seek="$2" conv=notrunc 2>"$work/said"
}

begin a_sound_file_has_no_problems
infer verify "$m"
status 0
out_like '^1 file, [0-9]* keys, [0-9]* tensors, [0-9]* bytes: 0 problems$'
[ "$(wc -l <"$work/out")" -eq 1 ] || bad 'more than a line'
err ''
infer verify "$m" --format json
status 0
out_like '^"problems":\[\],$'
out_like '"cannot_run":null\}$'
infer edit "$m" -o "$work/v.gguf" --delete general.quantization_version
infer verify "$work/v.gguf"
status 0

begin values_that_are_not_finite_are_found_in_each_type
poison=$(yes '\377' | head -n 216 | tr -d '\n')
for type in F32 F16 BF16 Q1_0 Q2_0 Q4_0 Q4_1 Q5_0 Q5_1 Q8_0 Q2_K Q3_K Q4_K Q5_K Q6_K IQ1_S IQ1_M IQ2_XXS \
    IQ2_XS IQ2_S IQ3_XXS IQ3_S IQ4_NL IQ4_XS TQ1_0 TQ2_0 MXFP4; do # every scale of NVFP4 is finite
    infer quantize "$m" "$work/q.gguf" $type --pure
    [ $code -eq 0 ] || infer quantize "$m" "$work/q.gguf" Q8_0 --tensor-type "attn_output=$type"
    status 0
    infer verify "$work/q.gguf"
    status 0
    place=$(at "$work/q.gguf" blk.0.attn_output.weight)
    # A block of ones: its scale, wherever it is, is NaN or infinite.
    poke "$work/q.gguf" "$place" "$poison"
    infer verify "$work/q.gguf"
    status 3
    out_like '^blk.0.attn_output.weight: [0-9]* NaN, [0-9]* infinite, the first at \[0, 0\]$'
    err_line 'q.gguf: 1 problem was found'
done

begin each_problem_has_its_count_and_position
cp "$m" "$work/q.gguf"
place=$(at "$m" blk.0.ffn_up.weight)
poke "$work/q.gguf" $((place + 4 * (256 * 3 + 5))) '\000\000\300\177'
poke "$work/q.gguf" $((place + 4 * (256 * 3 + 9))) '\000\000\200\377'
poke "$work/q.gguf" $((place + 4 * 256 * 200)) '\000\000\200\177'
for t in 1 3; do
    infer verify "$work/q.gguf" -t $t
    status 3
    out_like '^blk.0.ffn_up.weight: 1 NaN, 2 infinite, the first at \[3, 5\]$'
done
infer verify "$work/q.gguf" --json
status 3
out_like '^\{"what":"values","tensor":"blk.0.ffn_up.weight","nan":1,"infinite":2,"first":\[3, 5\]\}\],$'

begin bytes_that_belong_to_nothing_are_found
cp "$m" "$work/q.gguf"
printf 'tail' >>"$work/q.gguf"
infer verify "$work/q.gguf"
status 3
out_like 'q.gguf: 4 bytes follow the last tensor$'
infer edit "$m" -o "$work/q.gguf" --set general.alignment=int:4096
place=$(at "$work/q.gguf" blk.0.attn_norm.weight) # 1 KiB, then padding
poke "$work/q.gguf" $((place + 1030)) 'x'
infer verify "$work/q.gguf"
status 3
out_like "q.gguf: 1 bytes of padding are not zero, the first at $((place + 1030))$"
infer verify "$work/q.gguf" --json
out_like '^\{"what":"padding",.*"bytes":1,"at":[0-9]*\}\],$'
head -c 100000 "$m" >"$work/q.gguf"
infer verify "$work/q.gguf"
status 3
err_line 'damaged or truncated'
infer verify "$work/none.gguf"
status 3
err_line 'none.gguf: cannot open'
usage 'verify: missing argument' verify

begin hashes_are_of_files_tensors_and_data
infer verify "$m" --hash
status 0
cp "$work/out" "$work/hashes"
file=$(sed -n "s/^file      \([0-9a-f]*\)  .*/\1/p" "$work/hashes")
if command -v sha256sum >/dev/null 2>&1; then
    [ "$file" = "$(sha256sum <"$m" | cut -d ' ' -f 1)" ] || bad "file $file"
    place=$(at "$m" output_norm.weight)
    norm=$(dd if="$m" bs=1 skip="$place" count=1024 2>"$work/said" | sha256sum | cut -d ' ' -f 1)
    grep -q "^sha256    $norm  .*m.gguf:output_norm.weight$" "$work/hashes" || bad 'hash of output_norm.weight'
fi
infer split "$m" "$work/p" --max-tensors 5
infer verify "$work"/p-00002-of-* --hash -t 1
status 0
data() { sed -n 's/^sha256    \([0-9a-f]*\)  .*\(:.*\)$/\1\2/p; s/^sha256    \([0-9a-f]*\)  .*gguf$/\1/p' "$1"; }
data "$work/out" >"$work/of_parts"
data "$work/hashes" | cmp -s - "$work/of_parts" || bad 'parts have other hashes of tensors and data'
[ "$(grep -c '^file ' "$work/out")" -gt 2 ] || bad 'a part has no hash'
infer verify "$m" --hash --json
status 0
out_like "\"files\":\[\{\"sha256\":\"$file\",\"file\":\".*m.gguf\"\}\],\"data\":\"[0-9a-f]{64}\",\"tensors\":\{$"
if command -v python3 >/dev/null 2>&1; then
    python3 -c 'import json, sys; json.load(open(sys.argv[1]))' "$work/out" 2>"$work/said" || bad "no JSON: $(cat "$work/said")"
fi

begin a_sum_of_the_file_is_compared
"$make_model" "$work/sum.gguf" vocab=320 layers=2 >/dev/null
sum=$(sha256sum "$work/sum.gguf" | cut -d ' ' -f 1)
infer verify "$work/sum.gguf" --sha256 "$sum"
status 0
infer verify "$work/sum.gguf" --sha256 "$(echo "$sum" | tr a-f A-F)"
status 0
other=$(echo x | sha256sum | cut -d ' ' -f 1)
infer verify "$work/sum.gguf" --sha256 "$other"
status 3
out_like "sum.gguf: its SHA-256 is $sum\$"
infer verify "$work/sum.gguf" --sha256 "$other" --json
status 3
out_like "\"what\":\"sha256\",\"file\":\".*sum.gguf\",\"sha256\":\"$sum\""
infer split "$work/sum.gguf" "$work/sum" --max-tensors 10
for part in "$work"/sum-0*.gguf; do
    infer verify "$part" --sha256 "$(sha256sum "$part" | cut -d ' ' -f 1)"
    status 0
done
usage 'sha256: is no sum' verify "$work/sum.gguf" --sha256 123

finish

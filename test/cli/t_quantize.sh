# quantize with models of random weights: the type of each tensor in a mix, and the messages.
. test/cli/lib.sh

m=$work/m.gguf
"$make_model" "$m" type=F16 layers=8 embd=256 heads=4 kv_heads=2 head_dim=64 ff=512 vocab=320 tied=0 >/dev/null ||
    { echo 'FAIL t_quantize.sh: no model'; finish; exit; }

# types NAME OPTIONS..: "LAYER:TYPE" of the down projections in a dry run to NAME.
types() {
    infer quantize "$m" "$@" --dry-run
    status 0
    err ''
    sed -n 's/^blk\.\([0-9]\)\.ffn_down\.weight .* -> \([A-Z0-9_]*\) .*/\1:\2/p' "$work/out" | tr '\n' ' '
}
type_of() {
    sed -n "s/^$1 .* -> \([A-Z0-9_]*\) .*/\1/p" "$work/out"
}
is() {
    [ "$1" = "$2" ] || bad "infer $last: '$1', not '$2'"
}

begin mixes_choose_types_by_layer
is "$(types Q4_K_M)" '0:Q6_K 1:Q4_K 2:Q4_K 3:Q6_K 4:Q4_K 5:Q4_K 6:Q6_K 7:Q6_K '
is "$(types Q4_K)" '0:Q6_K 1:Q4_K 2:Q4_K 3:Q6_K 4:Q4_K 5:Q4_K 6:Q6_K 7:Q6_K '
is "$(types Q4_K_S)" '0:Q5_K 1:Q4_K 2:Q4_K 3:Q4_K 4:Q4_K 5:Q4_K 6:Q4_K 7:Q4_K '
is "$(types Q3_K_L)" '0:Q5_K 1:Q5_K 2:Q5_K 3:Q5_K 4:Q5_K 5:Q5_K 6:Q5_K 7:Q5_K '
types Q2_K >/dev/null
is "$(type_of output.weight)" Q6_K
is "$(type_of token_embd.weight)" Q2_K
is "$(type_of blk.0.attn_v.weight)" Q3_K
is "$(type_of blk.0.attn_q.weight)" Q2_K
is "$(type_of blk.0.attn_output.weight)" Q3_K
is "$(type_of blk.0.attn_norm.weight)" F32

# Types as llama-quantize gives them to these files.
begin layers_are_counted_as_llama_quantize_counts_them
small='type=Q8_0 embd=256 heads=4 head_dim=8 vocab=320'
m0=$m
m=$work/moe.gguf # two down projections in each layer
# shellcheck disable=SC2086
"$make_model" "$m" arch=arctic $small layers=8 kv_heads=2 ff=256 experts=4 experts_used=2 >/dev/null
is "$(types IQ2_XS)" '0:Q2_K 1:IQ2_XS 2:IQ2_XS 3:IQ2_XS 4:IQ2_XS 5:IQ2_XS 6:IQ2_XS 7:IQ2_XS '
is "$(type_of blk.0.ffn_down_exps.weight)" IQ2_XS
is "$(types Q4_K_S)" '0:Q5_K 1:Q4_K 2:Q4_K 3:Q4_K 4:Q4_K 5:Q4_K 6:Q4_K 7:Q4_K '
is "$(type_of blk.0.ffn_down_exps.weight)" Q5_K
m=$work/loops.gguf # four layers that run three times count as twelve
# shellcheck disable=SC2086
"$make_model" "$m" arch=nanbeige $small layers=4 kv_heads=2 ff=256 >/dev/null
is "$(types Q4_K_M)" '0:Q6_K 1:Q4_K 2:Q4_K 3:Q6_K '
m=$work/large.gguf # about 70 billion weights, by architecture and layers
# shellcheck disable=SC2086
"$make_model" "$m" arch=qwen2 $small layers=80 kv_heads=1 ff=32 >/dev/null
types Q3_K_S >/dev/null
is "$(type_of blk.9.attn_v.weight)" Q5_K
types IQ3_S >/dev/null
is "$(type_of blk.9.attn_v.weight)" Q5_K
# shellcheck disable=SC2086
"$make_model" "$m" arch=qwen2 $small layers=80 kv_heads=4 ff=32 >/dev/null
types Q3_K_S >/dev/null
is "$(type_of blk.9.attn_v.weight)" Q5_K
types IQ3_S >/dev/null
is "$(type_of blk.9.attn_v.weight)" IQ3_S

m=$m0

# bare ARCHITECTURE TENSOR..: writes bare.gguf, with tensors of two matrices of [2, 32] zeros.
bare() {
    python3 -c 'import struct, sys
text = lambda s: struct.pack("<Q", len(s)) + s.encode()
names = sys.argv[2:]
head = b"GGUF" + struct.pack("<IQQ", 3, len(names), 1)
head += text("general.architecture") + struct.pack("<I", 8) + text(sys.argv[1])
for i, n in enumerate(names): head += text(n) + struct.pack("<IQQQIQ", 3, 32, 2, 2, 0, i * 512)
sys.stdout.buffer.write(head + bytes(-len(head) % 32 + 512 * len(names)))' "$@" >"$work/bare.gguf"
}

begin small_matrices_are_kept
if command -v python3 >/dev/null 2>&1; then
    m=$work/bare.gguf
    bare kimi-linear blk.0.ssm_conv1d_q.weight v.patch_embd.weight blk.0.x.weight
    types Q8_0 >/dev/null
    is "$(type_of blk.0.ssm_conv1d_q.weight)" F32
    is "$(type_of v.patch_embd.weight)" F32
    is "$(type_of blk.0.x.weight)" Q8_0
    bare qwen4exp blk.0.ple_norm_key.weight blk.0.ple_conv1d.weight blk.0.attn_compressor_ape.weight \
        blk.0.indexer_compressor_ape.weight blk.0.ple_key.weight
    types Q8_0 >/dev/null
    for vector in ple_norm_key ple_conv1d attn_compressor_ape indexer_compressor_ape; do
        is "$(type_of blk.0.$vector.weight)" F32
    done
    is "$(type_of blk.0.ple_key.weight)" Q8_0
else
    skip 'no Python'
fi

begin matrices_of_three_dimensions_need_not_be_experts # llama-quantize leaves them out in one architecture
if command -v python3 >/dev/null 2>&1; then
    for architecture in bailingmoe3 deepseek2; do
        bare $architecture blk.0.attn_k_b.weight blk.0.ffn_up_exps.weight
        types MXFP4_MOE >/dev/null
        echo "$architecture $(type_of blk.0.attn_k_b.weight) $(type_of blk.0.ffn_up_exps.weight)"
    done >"$work/stacks"
    is "$(paste -s -d , "$work/stacks")" 'bailingmoe3 Q8_0 MXFP4,deepseek2 MXFP4 MXFP4'
else
    skip 'no Python'
fi
m=$m0

begin pure_uses_one_type
is "$(types Q4_K_M --pure)" '0:Q4_K 1:Q4_K 2:Q4_K 3:Q4_K 4:Q4_K 5:Q4_K 6:Q4_K 7:Q4_K '
is "$(type_of output.weight)" Q4_K
is "$(type_of blk.0.attn_v.weight)" Q4_K

is "$(types MXFP4_MOE --pure)" '0:MXFP4 1:MXFP4 2:MXFP4 3:MXFP4 4:MXFP4 5:MXFP4 6:MXFP4 7:MXFP4 '

begin rows_that_a_block_does_not_divide_get_blocks_of_32 # of about as many bits, for each type
"$make_model" "$work/narrow.gguf" type=F16 layers=1 embd=96 heads=2 kv_heads=2 head_dim=48 ff=272 vocab=320 >/dev/null
m=$work/narrow.gguf
for type in IQ4_NL:'IQ1_S IQ1_M IQ2_XXS IQ2_XS IQ2_S IQ3_XXS IQ3_S IQ4_XS Q2_K Q3_K TQ1_0 TQ2_0 Q1_0 Q2_0 IQ2_K IQ3_K
    IQ2_KS IQ3_KS IQ4_KS IQ4_KSS' Q5_0:'Q4_K IQ4_K IQ5_KS' Q5_1:'Q5_K IQ5_K' Q8_0:'Q6_K Q8_K IQ6_K'; do
    for name in ${type#*:}; do
        types "$name" --pure >"$work/down"
        is "$(type_of blk.0.attn_q.weight)" "${type%:*}"
        is "$(cat "$work/down")" '0:F16 '
    done
done
m=$m0

begin the_file_has_the_number_of_its_type # or none
"$make_model" "$work/one.gguf" type=F16 layers=1 embd=256 heads=4 kv_heads=2 head_dim=64 ff=256 vocab=320 >/dev/null || bad 'no model'
for type in Q4_K_M:15 MXFP4:38 Q6_0:135 IQ4_K:140 IQ4_KSS:148 Q8_1: Q8_K:; do
    infer quantize "$work/one.gguf" "$work/typed.gguf" "${type%:*}"
    infer inspect "$work/typed.gguf" --metadata
    is "$(sed -n 's/^ *general.file_type .* //p' "$work/out")" "${type#*:}"
done

begin tensor_type_is_a_pattern # the first that matches, within the name, in any case
is "$(types Q8_0 --tensor-type 'blk\.[0-3]\.FFN_DOWN=Q6_K' --tensor-type ffn_down=q5_0)" \
    '0:Q6_K 1:Q6_K 2:Q6_K 3:Q6_K 4:Q5_0 5:Q5_0 6:Q5_0 7:Q5_0 '
is "$(type_of blk.0.ffn_up.weight)" Q8_0
types Q8_0 --tensor-type output=Q4_0 --output-type Q6_K >/dev/null
is "$(type_of output.weight)" Q6_K
is "$(type_of blk.0.attn_output.weight)" Q4_0
usage "tensor-type: 'ffn_down' is not PATTERN=TYPE" quantize "$m" Q8_0 --dry-run --tensor-type ffn_down
usage "tensor-type: '=Q8_0' is not PATTERN=TYPE" quantize "$m" Q8_0 --dry-run --tensor-type =Q8_0
usage "tensor-type: '\(' is not a pattern: missing closing parenthesis" quantize "$m" Q8_0 --dry-run --tensor-type '(=Q8_0'
usage "tensor-type: 'Q9_9' is not a type" quantize "$m" Q8_0 --dry-run --tensor-type x=Q9_9

begin dry_run_describes_the_file
infer quantize "$m" Q8_0 --dry-run
status 0
out_like '^blk\.0\.ffn_down\.weight +F16 +-> Q8_0 +139264$'
sizes=$(sed -n '$s/.* -> \([0-9]*\) bytes, [0-9.]* bits per weight$/\1/p' "$work/out")
infer quantize "$m" "$work/q.gguf" Q8_0 --dry-run
[ ! -e "$work/q.gguf" ] || bad 'a file was written'
infer quantize "$m" "$work/q.gguf" Q8_0
status 0
infer quantize "$work/q.gguf" COPY --dry-run
out_like "^$sizes bytes, [0-9.]* bits per weight -> $sizes bytes, "

begin the_output_is_named_and_arguments_are_in_any_order
mkdir "$work/names"
infer quantize "$m" "$work/names/right" Q8_0
infer quantize "$m" Q8_0 "$work/names/right2"
status 0
cmp -s "$work/names/right" "$work/names/right2" || bad 'IN TYPE OUT: other bytes'
for name in m m-F16 m.bf16 m_Q4_K_M 7b-Q4_k_m m-00001-of-00001; do
    cp "$m" "$work/names/$name.gguf"
    to=$(echo "$name" | sed 's/-00001.*//; s/\([-._]\)\(F16\|bf16\|Q4_K_M\|Q4_k_m\)$/\1Q8_0/; /Q8_0/!s/$/-Q8_0/')
    rm -f "$work/names/$to.gguf"
    infer quantize "$work/names/$name.gguf" q8_0
    status 0
    out "$work/names/$to.gguf\n"
    cmp -s "$work/names/right" "$work/names/$to.gguf" || bad "$name: other bytes"
done
usage 'm-Q8_0.gguf: exists: name the output' quantize "$work/names/m.gguf" Q8_0
infer quantize "$work/names/m.gguf" "$work/names/Q4_0" Q8_0 # a name like a type
status 0
out ''
cmp -s "$work/names/right" "$work/names/Q4_0" || bad 'an output called Q4_0: other bytes'
usage "'Q99' is not a type" quantize "$work/names/m.gguf" Q99
infer quantize "$m" "$work/a.gguf" Q4_K_M --dry-run # by the numbers of llama-quantize too
cp "$work/out" "$work/by_name"
infer quantize "$m" "$work/a.gguf" 15 --dry-run
status 0
cmp -s "$work/out" "$work/by_name" || bad 'type 15 is not Q4_K_M'
usage "^infer: 4: unexpected argument; a number of threads is -t 4" quantize "$m" "$work/a.gguf" Q8_0 4
usage "'4' is a number: of threads -t 4" quantize "$m" Q8_0 4
usage "'9999' is not a type" quantize "$m" 9999
usage "'Q99' is not a type" quantize "$work/names/m.gguf" "$work/names/x" Q99

begin patterns_that_match_nothing_are_errors
usage "tensor-type: 'blk.0.ffn_dwn=Q8_0' matches no tensor" quantize "$m" "$work/x.gguf" Q4_0 --tensor-type 'blk.0.ffn_dwn=Q8_0'
usage "tensor-type: 'attn_norm=Q8_0' matches no tensor that is converted" quantize "$m" "$work/x.gguf" Q4_0 --tensor-type attn_norm=Q8_0
usage "'blk.9=Q8_0' matches no" quantize "$m" Q4_0 --dry-run --tensor-type ffn_down=Q8_0 --tensor-type blk.9=Q8_0
usage 'imatrix: given twice' quantize "$m" "$work/x.gguf" Q4_0 --imatrix a --imatrix b

begin copy_converts_nothing
infer quantize "$work/q.gguf" "$work/copy.gguf" COPY
status 0
cmp -s "$work/q.gguf" "$work/copy.gguf" || bad 'a copy has other bytes'
usage 'COPY converts nothing' quantize "$m" "$work/x.gguf" COPY --pure
usage 'COPY converts nothing' quantize "$m" "$work/x.gguf" COPY --tensor-type a=Q8_0

# Rows of 192 and, in ffn_down, 256 elements.
t=$work/t.gguf
"$make_model" "$t" type=F16 layers=4 embd=192 heads=3 kv_heads=3 head_dim=64 ff=256 vocab=320 tied=0 >/dev/null

begin a_target_is_met_from_below # by the size of the file, with the same bytes by any threads
infer quantize "$t" "$work/t1.gguf" --target-size 1M -t 1
status 0
out ''
err ''
bytes=$(wc -c <"$work/t1.gguf")
[ "$bytes" -le 1000000 ] && [ "$bytes" -gt 990000 ] || bad "$bytes bytes"
infer quantize "$t" --target-size 1M -t 3
status 0
out "$work/t-1M.gguf\n"
cmp -s "$work/t1.gguf" "$work/t-1M.gguf" || bad 'other bytes with three threads'
infer inspect "$work/t1.gguf" --metadata
if grep -q file_type "$work/out"; then bad 'a number for the file type'; fi
infer logits -m "$work/t1.gguf" -p a
status 0

# Prints by how many per cent the sum of errors of the dry run in $work/out differs from that of its
# tensors' errors, times the sensitivity of NAME:SENSITIVITY:THAT_OF_ACTIVATIONS:DIVISOR ...
sum_of_errors() {
    awk -v list="$1" 'BEGIN { n = split(list, row, " ") }
        / -> / && NF == 7 {
            act = 0.00005
            if ($4 ~ /^F/) act = 0
            if ($4 ~ /_K$|^IQ[123]|_XS$|^TQ/) act = 0.0002
            for (i = 1; i <= n; i++) {
                split(row[i], x, ":")
                if ($1 ~ "^(blk.[0-9].)?" x[1] "[.]weight$") sum += (x[2] * $7 + x[3] * act) / x[4]
            }
        }
        /^sum of errors/ { printf "%d", (sum / $4 - 1) * 100 }' "$work/out"
}
ends='output:10:10:1 token_embd:0.6:0.6:1'
plain="$ends attn_q:1.8:0.7:4 attn_k:1.5:0.7:4 attn_v:7:2.6:4 attn_output:2.5:2:4 ffn_up:4.5:3.2:4 ffn_gate:2.8:2:4 ffn_down:9.5:4:4"
weighted="$ends attn_q:0.7:0.7:4 attn_k:0.7:0.7:4 attn_v:2.6:2.6:4 attn_output:2:2:4 ffn_up:3.2:3.2:4 ffn_gate:2:2:4 ffn_down:4:4:4"

begin errors_without_a_matrix_count_more # in layers
infer quantize "$t" --target-size 1M --dry-run
status 0
is "$(sum_of_errors "$plain")" 0
[ "$(sum_of_errors "$weighted")" -lt -10 ] || bad 'no difference'

begin gate_and_up_get_one_type_and_named_types_stay
infer quantize "$t" --target-bpw 5.2 --dry-run --output-type Q5_0 --tensor-type 'blk\.3\.ffn_up=Q8_0'
status 0
is "$(type_of output.weight)" Q5_0
is "$(type_of blk.3.ffn_up.weight)" Q8_0
for layer in 0 1 2; do
    is "$(type_of blk.$layer.ffn_gate.weight)" "$(type_of blk.$layer.ffn_up.weight)"
done
out_like '^blk\.0\.ffn_down\.weight +F16 +-> [A-Z0-9_]+ +[0-9]+ +[0-9]+\.[0-9]{4} +[0-9]\.[0-9]{2}e-[0-9]{2}$'
out_like '^output\.weight +F16 +-> Q5_0 +42240$'
out_like '^sum of errors [0-9.]+$'
awk '/ -> .* bits per weight$/ { weights = $1 * 8 / $3; bits = $8 * 8 / weights }
    END { exit !(bits <= 5.2 * 1.001 && bits > 5.2 * 0.99) }' "$work/out" || bad "$(tail -n 2 "$work/out")"

begin a_target_that_cannot_be_reached_names_the_smallest
usage 'target-size: the smallest possible file has 2[0-9]{6} bytes: 3M$' quantize "$t" "$work/none.gguf" --target-size 1M \
    --tensor-type 'blk\..*=F16'
usage 'target-bpw: the least possible is [0-9.]+$' quantize "$t" "$work/none.gguf" --target-bpw 1
infer quantize "$t" "$work/none.gguf" --target-bpw "$(sed 's/.* //' "$work/err")" --dry-run
status 0
[ ! -e "$work/none.gguf" ] || bad 'a file was written'
usage "a target chooses the types: no TYPE 'Q8_0'" quantize "$t" "$work/x.gguf" Q8_0 --target-size 3M
usage 'missing argument' quantize "$t"
usage 'pure: contradicts --target-bpw' quantize "$t" --target-bpw 4 --pure

begin a_file_without_tensors_is_not_larger_than_its_target
if [ -r "$shared/vocab/ggml-vocab-gpt-2.gguf" ]; then
    usage 'target-size: the smallest possible file has [0-9]{7} bytes: 2M$' quantize "$shared/vocab/ggml-vocab-gpt-2.gguf" \
        "$work/none.gguf" --target-size 1M
    infer quantize "$shared/vocab/ggml-vocab-gpt-2.gguf" "$work/vocab.gguf" --target-size 2M
    status 0
else
    skip 'no vocabulary'
fi

begin bits_without_an_effect_are_not_used # nothing is better than the type that the weights have
infer quantize "$t" "$work/q8.gguf" Q8_0
infer quantize "$work/q8.gguf" --target-bpw 16 --dry-run
status 0
[ "$(grep -c ' Q8_0    -> Q8_0  ' "$work/out")" -eq 30 ] || bad "$(cat "$work/out")"

# sums FILE TENSOR: its sums, then its counts, one number per line, as %.6g.
sums() {
    python3 - "$1" "$2" <<'PYTHON'
import struct, sys
data = open(sys.argv[1], "rb").read()
at = 24
def take(f):
    global at
    v = struct.unpack_from("<" + f, data, at)
    at += struct.calcsize("<" + f)
    return v[0]
def text():
    global at
    n = take("Q")
    at += n
    return data[at - n:at].decode()
sizes = {4: "I", 6: "f"}
n_tensors, n_keys = struct.unpack_from("<QQ", data, 8)
for _ in range(n_keys):
    text()
    kind = take("I")
    if kind == 8: text()
    elif kind == 9:
        take("I")
        for _ in range(take("Q")): text()
    else: take(sizes[kind])
found = {}
for _ in range(n_tensors):
    name = text()
    n = 1
    for _ in range(take("I")): n *= take("Q")
    take("I")
    found[name] = (n, take("Q"))
at = (at + 31) // 32 * 32
for end in ".in_sum2", ".counts":
    n, offset = found[sys.argv[2] + end]
    for v in struct.unpack_from(f"<{n}f", data, at + offset): print(f"{v:.6g}")
PYTHON
}

begin imatrix_sums_squares_of_inputs
printf '1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16' >"$work/ids"
infer imatrix -m "$m" --ids "$work/ids" --no-bos -o "$work/i.gguf" --chunk 8
status 0
out ''
err ''
infer imatrix -m "$m" --ids "$work/ids" --no-bos -o "$work/i1.gguf" --chunk 8 -t 1 -b 3
cmp -s "$work/i.gguf" "$work/i1.gguf" || bad 'other sums with one thread and other batches'
infer imatrix -m "$m" --ids "$work/ids" --no-bos -o "$work/i1.gguf" --chunk 8 --chunks 1
infer inspect "$work/i1.gguf" --metadata
out_like '^  imatrix.chunk_count +u32 1$'
infer inspect "$work/i.gguf" --metadata
out_like '^  general.type +string "imatrix"$'
out_like '^  imatrix.chunk_count +u32 2$'
out_like '^  imatrix.chunk_size +u32 8$'
infer inspect "$work/i.gguf" --tensors
out_like '^  blk.0.attn_q.weight.in_sum2 +F32 '
if grep -q 'output\.weight\.in_sum2' "$work/out" && ! grep -q 'attn_output' "$work/out"; then bad 'the output matrix too'; fi
infer imatrix -m "$m" --ids "$work/ids" --no-bos -o "$work/i2.gguf" --chunk 8 --process-output
infer inspect "$work/i2.gguf" --tensors
out_like '^  output.weight.in_sum2 +F32 '
if command -v python3 >/dev/null 2>&1; then
    sums "$work/i.gguf" blk.0.attn_q.weight >"$work/q"
    sums "$work/i.gguf" blk.0.attn_k.weight >"$work/k"
    [ "$(wc -l <"$work/q")" -eq 257 ] || bad "$(wc -l <"$work/q") values"
    [ "$(tail -n 1 "$work/q")" = 16 ] || bad "count $(tail -n 1 "$work/q")"
    cmp -s "$work/q" "$work/k" || bad 'Q and K have one input and other sums'
    # Inputs of a layer are RMS-normalized: with norms of 1 the squares would add up to 256 per token.
    awk 'NR < 257 && !($1 > 0) { exit 1 }' "$work/q" || bad 'a sum is not positive'
fi
usage 'output: needs a file' imatrix -m "$m" --ids "$work/ids"
printf '1 2' >"$work/short"
usage 'the text has 2 tokens' imatrix -m "$m" --ids "$work/short" -o "$work/x.gguf"
usage 'ids: is the input too|ids: .*input' imatrix -m "$m" --ids "$work/ids" -o "$work/ids"

begin statistics_of_a_matrix_are_those_of_its_means
infer imatrix --statistics "$work/i.gguf" --json
status 0
err ''
if command -v python3 >/dev/null 2>&1; then
    python3 - "$work/out" "$work/q" <<'PYTHON' || bad "$(head -n 3 "$work/out")"
import json, math, sys
rows = json.load(open(sys.argv[1]))
assert [r["sum"] for r in rows] == sorted((r["sum"] for r in rows), reverse=True)
means = [float(line) / 16 for line in open(sys.argv[2])][:-1]
row = next(r for r in rows if r["name"] == "blk.0.attn_q.weight")
mean = sum(means) / len(means)
want = {"count": 256, "sum": sum(means), "mean": mean, "least": min(means), "largest": max(means),
        "deviation": math.sqrt(sum((x - mean) ** 2 for x in means) / len(means)),
        "evenness": -sum(x / sum(means) * math.log(x / sum(means)) for x in means) / math.log(256)}
for key, value in want.items():
    assert abs(row[key] - value) <= 1e-4 * value, (key, row[key], value)
PYTHON
fi
infer imatrix --statistics "$work/i.gguf"
status 0
out_like '^ +sum +mean +deviation +least +largest evenness +inputs  matrix$'
[ "$(wc -l <"$work/out")" -gt 5 ] || bad "$(cat "$work/out")"
usage 'not an importance matrix' imatrix --statistics "$m"
usage 'contradicts --statistics|--statistics: contradicts' imatrix --statistics x -o y

begin imatrix_counts_experts_one_by_one
"$make_model" "$work/e.gguf" arch=qwen3moe type=F16 layers=1 experts=4 experts_used=2 >/dev/null
infer imatrix -m "$work/e.gguf" --ids "$work/ids" --no-bos -o "$work/ie.gguf" --chunk 8
status 0
if command -v python3 >/dev/null 2>&1; then
    n=$(sums "$work/ie.gguf" blk.0.ffn_down_exps.weight | tail -n 4 | awk '{ n += $1 } END { print n }')
    [ "$n" = 32 ] || bad "$n inputs of experts, not 2 for each of 16 tokens"
fi

# Old files have a tensor for each expert, at equal distances (one) or not (reversed: copied when the model is opened).
begin imatrix_has_the_sums_of_every_expert_of_an_old_file
if command -v python3 >/dev/null 2>&1; then
    sizes='arch=llama type=F16 layers=2 embd=64 heads=4 kv_heads=2 head_dim=16 ff=96 vocab=512 ctx=64 experts=4 experts_used=2'
    # shellcheck disable=SC2086
    "$make_model" "$work/stacked.gguf" $sizes >/dev/null
    infer imatrix -m "$work/stacked.gguf" --ids "$work/ids" --no-bos -o "$work/stacked.im" --chunk 8
    for form in one reversed; do
        # shellcheck disable=SC2086
        "$make_model" "$work/$form.gguf" $sizes experts_as=$form >/dev/null
        infer imatrix -m "$work/$form.gguf" --ids "$work/ids" --no-bos -o "$work/$form.im" --chunk 8
        status 0
        err ''
        for matrix in ffn_up ffn_gate ffn_down; do
            sums "$work/stacked.im" blk.1.${matrix}_exps.weight >"$work/all"
            for e in 0 1 2 3; do sums "$work/$form.im" blk.1.$matrix.$e.weight >"$work/e$e"; done
            { for e in 0 1 2 3; do sed '$d' "$work/e$e"; done; for e in 0 1 2 3; do tail -n 1 "$work/e$e"; done; } |
                cmp -s - "$work/all" || bad "$form: other sums of $matrix than with stacked experts"
        done
        infer quantize "$work/$form.gguf" "$work/x.gguf" Q4_0 --imatrix "$work/$form.im"
        status 0
    done
fi

begin imatrix_of_several_texts_is_their_sum
yes 'some words of a first text' | head -n 5 >"$work/first"
yes 'and others, of a second one' | head -n 8 >"$work/second"
if command -v python3 >/dev/null 2>&1; then
    for text in first second; do
        infer imatrix -m "$m" -f "$work/$text" -o "$work/$text.im" --chunk 32
        status 0
        sums "$work/$text.im" blk.1.ffn_down.weight >"$work/$text.sums"
    done
    infer imatrix -m "$m" -f "$work/first" -f "$work/second" -o "$work/both.im" --chunk 32
    status 0
    err ''
    sums "$work/both.im" blk.1.ffn_down.weight | paste "$work/first.sums" "$work/second.sums" - |
        awk '{ d = $1 + $2 - $3; if (d > 1e-4 * $3 || d < -1e-4 * $3) exit 1 }' || bad 'not the sum'
    infer inspect "$work/both.im" --metadata
    out_like '^  imatrix.datasets +string\[2\] '
    for chunks in 0 -1; do
        infer imatrix -m "$m" -f "$work/first" -f "$work/second" -o "$work/all.im" --chunk 32 --chunks $chunks
        cmp -s "$work/both.im" "$work/all.im" || bad "--chunks $chunks: not all"
    done
    printf 'few' >"$work/few"
    infer imatrix -m "$m" -f "$work/first" -f "$work/few" -o "$work/x.im" --chunk 32
    status 0
    err_line 'few has [0-9]+ tokens, less than a chunk: it is not read'
    infer imatrix -m "$m" -f "$work/few" -f "$work/few" -o "$work/y.im" --chunk 32
    status 2
    err_like 'no text has a chunk of 32 tokens'
    usage 'second: is the input too' imatrix -m "$m" -f "$work/first" -f "$work/second" -o "$work/second" --chunk 32
    infer imatrix --combine "$work/first.im" --combine "$work/second.im" -o "$work/sum.im"
    status 0
    err ''
    sums "$work/sum.im" blk.1.ffn_down.weight | paste "$work/first.sums" "$work/second.sums" - |
        awk '{ d = $1 + $2 - $3; if (d > 1e-4 * $3 || d < -1e-4 * $3) exit 1 }' || bad 'combined: not the sum'
    infer inspect "$work/sum.im" --metadata
    "$INFER" inspect "$work/both.im" --metadata </dev/null | cmp -s - "$work/out" || bad 'combined: other metadata'
    usage 'sum.im: is the input too' imatrix --combine "$work/sum.im" --combine "$work/first.im" -o "$work/sum.im"
    usage 'm.gguf: not an importance matrix' imatrix --combine "$m" -o "$work/x.im"
    usage 'ie.gguf: .* a matrix of another model|first.im: .* a matrix of another model' imatrix --combine "$work/ie.gguf" --combine "$work/first.im" -o "$work/x.im"
else
    skip 'no Python'
fi

begin matrices_without_an_entry_are_named
"$make_model" "$work/rare.gguf" arch=llama type=F16 layers=1 embd=64 heads=4 kv_heads=2 head_dim=16 ff=96 vocab=512 ctx=64 \
    experts=8 experts_used=1 experts_as=one >/dev/null
printf '1 1 1 1' >"$work/same.ids"
infer imatrix -m "$work/rare.gguf" --ids "$work/same.ids" --no-bos -o "$work/rare.im"
status 0
err_line 'matrices had no inputs and get no entry: blk.0.ffn_(gate|down|up).[0-7].weight, .*, \.\.\.$'
infer quantize "$work/rare.gguf" "$work/x.gguf" Q4_0 --imatrix "$work/rare.im"
status 0
err_line 'rare.im: no entry for [0-9]+ matrices, which are encoded without: blk.0.ffn_.*, \.\.\.$'

# like_reference TENSOR N_COUNTS SUM FIRST LAST COUNTS...: the sums of llama-imatrix for a tensor, within 1e-4.
like_reference() {
    sums "$work/r.out" "$1" | awk -v counts="$2" -v want="$3 $4 $5" -v all="$(shift 5; echo "$*")" '
        { value[NR] = $1 }
        END {
            n = NR - counts
            for (i = 1; i <= n; i++) sum += value[i]
            split(want, w); got[1] = sum; got[2] = value[1]; got[3] = value[n]
            for (i = 1; i <= 3; i++) if (!(got[i] > w[i] * 0.9999 && got[i] < w[i] * 1.0001)) exit 1
            for (i = 1; i <= counts; i++) { split(all, c); if (value[n + i] != c[i]) exit 1 }
        }' || bad "$1: other sums than those of llama-imatrix"
}

# Both programs compute in floats, with F32 caches; 8 chunks of 64 tokens.
begin imatrix_has_the_sums_of_llama_imatrix
if command -v python3 >/dev/null 2>&1; then
    i=0
    while [ $i -lt 15 ]; do
        printf 'the quick fox %d jumps over %d lazy dogs. ' $i $((i * 7))
        i=$((i + 1))
    done >"$work/r.txt"
    sizes='type=F32 embd=64 heads=4 kv_heads=2 head_dim=16 ff=128 vocab=320 ctx=256'
    # shellcheck disable=SC2086
    {
        "$make_model" "$work/rd.gguf" arch=llama layers=2 $sizes >/dev/null
        "$make_model" "$work/re.gguf" arch=qwen3moe layers=1 experts=4 experts_used=2 $sizes >/dev/null
    }
    infer tokenize -m "$work/rd.gguf" -f "$work/r.txt"
    cut -d ' ' -f 1-512 "$work/out" >"$work/r.ids"
    [ "$(wc -w <"$work/r.ids")" -eq 512 ] || bad "$(wc -w <"$work/r.ids") ids"
    infer imatrix -m "$work/rd.gguf" --ids "$work/r.ids" --no-bos --chunk 64 -ctk f32 -ctv f32 -o "$work/r.out"
    status 0
    like_reference blk.0.attn_q.weight 1 34864.2 470.823 480.545 512
    like_reference blk.0.attn_output.weight 1 6601.57 56.0081 63.0558 512
    like_reference blk.0.ffn_up.weight 1 32304.8 235.721 572.222 512
    like_reference blk.0.ffn_down.weight 1 25342.6 18.2764 141.647 512
    like_reference blk.1.attn_output.weight 1 11962.5 148.138 208.906 512
    like_reference blk.1.ffn_down.weight 1 27239.4 199.860 39.4123 512
    infer imatrix -m "$work/re.gguf" --ids "$work/r.ids" --no-bos --chunk 64 -ctk f32 -ctv f32 -o "$work/r.out"
    status 0
    like_reference blk.0.attn_output.weight 1 5885.38 68.4415 37.8970 512
    like_reference blk.0.ffn_gate_inp.weight 1 32537.9 245.768 574.599 512
    like_reference blk.0.ffn_up_exps.weight 4 65075.8 163.104 252.577 291 248 119 366
    like_reference blk.0.ffn_down_exps.weight 4 16952.0 20.9307 38.6916 291 248 119 366
else
    skip 'no Python'
fi

begin quantize_uses_an_importance_matrix
infer quantize "$m" "$work/plain.gguf" Q4_K_M
infer quantize "$m" "$work/by.gguf" Q4_K_M --imatrix "$work/i.gguf"
status 0
cmp -s "$work/plain.gguf" "$work/by.gguf" && bad 'the matrix made no difference'
infer inspect "$work/by.gguf" --metadata
out_like '^  quantize.imatrix.entries_count +u32 56$'
out_like '^  quantize.imatrix.chunks_count +u32 2$'
infer quantize "$m" "$work/by1.gguf" Q4_K_M --imatrix "$work/i.gguf" -t 1
cmp -s "$work/by.gguf" "$work/by1.gguf" || bad 'other bytes with one thread'
usage 'imatrix: .* a matrix of another model' quantize "$work/e.gguf" "$work/x.gguf" Q8_0 --imatrix "$work/i.gguf"
usage 'm.gguf: not an importance matrix' quantize "$m" "$work/x.gguf" Q8_0 --imatrix "$m"
usage 'ids: not an importance matrix' quantize "$m" "$work/x.gguf" Q8_0 --imatrix "$work/ids"
usage 'none: .*No such file' quantize "$m" "$work/x.gguf" Q8_0 --imatrix "$work/none"

begin a_target_is_chosen_with_an_importance_matrix
infer imatrix -m "$t" --ids "$work/ids" --no-bos -o "$work/it.gguf" --chunk 8
infer quantize "$t" "$work/t2.gguf" --target-size 1M --imatrix "$work/it.gguf"
status 0
err ''
cmp -s "$work/t1.gguf" "$work/t2.gguf" && bad 'the matrix made no difference'
infer quantize "$t" --target-size 1M --imatrix "$work/it.gguf" --dry-run
is "$(sum_of_errors "$weighted")" 0
infer inspect "$work/t2.gguf" --metadata
out_like '^  quantize.imatrix.chunks_count +u32 2$'

begin the_older_form_of_a_matrix_is_read # the same means give the same bytes
if command -v python3 >/dev/null 2>&1; then
    older() { python3 -c 'import struct, sys
name = b"blk.0.ffn_up.weight"
values = [1.0 + i % 7 for i in range(256)]
calls = int(sys.argv[1])
sys.stdout.buffer.write(struct.pack("<ii", 1, len(name)) + name + struct.pack("<ii", calls, 256) +
    b"".join(struct.pack("<f", v * calls) for v in values) + struct.pack("<ii", 9, 4) + b"text")' "$1"; }
    older 1 >"$work/one.dat"
    older 4 >"$work/four.dat"
    infer quantize "$m" "$work/one.gguf" Q4_0 --imatrix "$work/one.dat"
    status 0
    infer inspect "$work/one.gguf" --metadata
    out_like '^  quantize.imatrix.dataset +string "text"$'
    out_like '^  quantize.imatrix.chunks_count +u32 9$'
    infer quantize "$m" "$work/plain.gguf" Q4_0
    cmp -s "$work/one.gguf" "$work/plain.gguf" && bad 'the matrix made no difference'
    cp "$work/one.dat" "$work/m.dat"
    infer quantize "$m" "$work/one.gguf" Q4_0 --imatrix "$work/m.dat"
    cp "$work/four.dat" "$work/m.dat"
    infer quantize "$m" "$work/four.gguf" Q4_0 --imatrix "$work/m.dat"
    cmp -s "$work/one.gguf" "$work/four.gguf" || bad 'means depend on the number of calls'
    sed 's/blk.0/blk.9/' "$work/one.dat" >"$work/m.dat"
    usage 'imatrix: none of its tensors is in the model' quantize "$m" "$work/x.gguf" Q8_0 --imatrix "$work/m.dat"
    head -c 500 "$work/one.dat" >"$work/cut.dat"
    usage 'cut.dat: importance matrix: damaged' quantize "$m" "$work/x.gguf" Q8_0 --imatrix "$work/cut.dat"
else
    skip 'no Python'
fi

begin the_output_has_the_name_of_its_input
cp "$m" "$work/s.gguf" 2>/dev/null || "$make_model" "$work/s.gguf" vocab=300 || bad 'no model'
infer quantize "$work/s.gguf" Q8_0
status 0
[ -f "$work/s-Q8_0.gguf" ] || bad "$(ls "$work")"
usage "quantize: 'F16' and 'Q8_0' are both types" quantize "$work/s.gguf" F16 Q8_0

finish

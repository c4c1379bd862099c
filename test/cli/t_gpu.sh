# --gpu with the driver that stands in for NVIDIA's (test/fake_cuda.h): the bytes are those of the
# processor wherever layers are. Models with random weights.
. test/cli/lib.sh

fake=${INFER%/*}/test
[ -x "$make_model" ] && [ -e "$fake/libcuda.so.1" ] ||
    { echo 'skip: the model maker or the driver is not built'; finish; exit 0; }
"$INFER" doctor -t 1 | grep -Eq '^GPU code +built in' || { echo 'skip: built without code for GPUs'; finish; exit 0; }
"$make_model" "$work/m.gguf" layers=4 embd=32 ff=32 type=Q4_0 tokens=bpe tied=1 || exit 1
"$make_model" "$work/encoder.gguf" arch=bert layers=2 embd=32 ff=32 type=F32 tokens=bpe keys=pooling_type=1 || exit 1
"$make_model" "$work/ranker.gguf" arch=bert ctx=48 "with=token_types.weight=2 token_embd_norm.bias \
    post_attention_norm.bias post_ffw_norm.bias cls.weight=64 cls.bias cls.output.weight=1 cls.output.bias" || exit 1
"$make_model" "$work/moe.gguf" arch=qwen3moe tokens=bpe || exit 1
XDG_CACHE_HOME=$work/cache
export XDG_CACHE_HOME
m="-m $work/m.gguf"

# gpu ARGS...: the program with the driver; $memory: bytes of each GPU, $devices: how many there are.
gpu() {
    (
        LD_LIBRARY_PATH=$fake FAKE_CUDA_MEMORY=${memory:-67108864} FAKE_CUDA_DEVICES=${devices:-1}
        export LD_LIBRARY_PATH FAKE_CUDA_MEMORY FAKE_CUDA_DEVICES
        infer "$@"
        echo "$code" >"$work/code"
    )
    code=$(cat "$work/code")
}

# same ARGS...: with them $arguments have the output of the processor.
same() {
    infer $arguments
    status 0
    cp "$work/out" "$work/want"
    gpu $arguments "$@"
    status 0
    cmp -s "$work/out" "$work/want" || bad "$*: other bytes"
}

begin layers_on_a_gpu_give_the_same_bytes
arguments="logits $m -p abcdefgh -o -"
for n in 0 1 2 99 all auto; do same --gpu $n; done

begin verbose_says_which_layers_are_there
gpu logits $m -p abc -o "$work/logits" --gpu 2 -v
err_like '^infer: emulated GPU: 2 of 4 layers$'
gpu logits $m -p abc -o "$work/logits" --gpu all -v
err_like '^infer: emulated GPU: 4 of 4 layers$'

begin machine_code_is_kept_in_the_cache_folder
[ "$(ls "$work/cache/infer/gpu" | wc -l)" = 1 ] || bad "$(ls "$work/cache/infer/gpu")"
echo damaged >"$work/cache/infer/gpu/$(ls "$work/cache/infer/gpu")"
same --gpu all
[ "$(cat "$work/cache/infer/gpu/"* | wc -c)" -gt 20 ] || bad 'a damaged file is not replaced'

begin a_missing_gpu_is_an_error_unless_layers_go_where_they_fit
infer logits $m -p abc -o "$work/logits" --gpu all
status 2
err_line '^infer: --gpu: no driver for a GPU \(libcuda.so.1'
gpu logits $m -p abc -o "$work/logits" --gpu all --gpu-device 1
status 2
err_line '^infer: --gpu: there is no GPU 1$'
for words in '--gpu auto' '-ngl 99'; do
    infer logits $m -p abc -o "$work/logits" $words
    status 0
    err_line '^infer: no GPU, so the processor computes: no driver'
done

begin types_of_caches_that_a_gpu_lacks_are_named
"$make_model" "$work/wide.gguf" layers=2 head_dim=32 type=Q4_0 tokens=bpe || exit 1
gpu logits -m "$work/wide.gguf" -p abc -o "$work/logits" --gpu 1 -ctv q8_0
status 2
err_line '^infer: --gpu: a cache of type Q8_0 cannot be on a gpu$'
arguments="logits -m $work/wide.gguf -p abcdefgh -o - -ctk q8_0"
same --gpu auto
err_line '^infer: no layer is on the GPU: a cache of type Q8_0 cannot be on a gpu$'
for words in '-ctk f32' '-ctk f32 -ctv f32' '-ctv f32'; do
    arguments="logits $m -p abcdefgh -o - $words"
    same --gpu all
done

begin other_values_are_refused
for value in x -1 1x ''; do
    infer logits $m -p abc -o "$work/logits" --gpu "$value"
    status 2
done
infer logits $m -p abc --gpu all --blas
status 2
err_line '^infer: --gpu: --blas is for the processor alone$'

begin adapters_and_control_vectors_act_on_layers_there
make_adapter=${INFER%/*}/test/tool_make_adapter
"$make_adapter" "$work/m.gguf" "$work/a.gguf" rank=4 alpha=8 || bad 'no adapter'
"$make_adapter" "$work/m.gguf" "$work/b.gguf" rank=2 alpha=2 seed=2 type=F16 only=attn || bad 'no adapter'
"$make_adapter" "$work/moe.gguf" "$work/c.gguf" rank=4 alpha=8 type=BF16 || bad 'no adapter of experts'
python3 - "$work/v.gguf" <<'PY'
import struct, sys
def text(s): return struct.pack("<Q", len(s)) + s
head = b"GGUF" + struct.pack("<IQQ", 3, 3, 1)
head += text(b"general.architecture") + struct.pack("<I", 8) + text(b"controlvector")
for layer in (1, 2, 3): # F32 [32]
    head += text(b"direction.%d" % layer) + struct.pack("<IQIQ", 1, 32, 0, 128 * (layer - 1))
head += bytes(-len(head) % 32)
open(sys.argv[1], "wb").write(head + struct.pack("<96f", *(i % 7 - 3 for i in range(96))))
PY
infer logits $m -p abcdefgh -o -
cp "$work/out" "$work/plain"
for words in "--lora $work/a.gguf --lora $work/b.gguf:0.5" "--control-vector $work/v.gguf --control-vector-scaled $work/v.gguf:0.5:2-3" \
    "--lora $work/a.gguf --control-vector $work/v.gguf:2"; do
    arguments="logits $m -p abcdefgh -o - $words"
    for n in 2 all auto; do same --gpu $n; done
    cmp -s "$work/out" "$work/plain" && bad "$words: no effect"
done
arguments="logits -m $work/moe.gguf -p ab -o - --lora $work/c.gguf"
for words in '--gpu all' '--gpu 1' '--gpu all --cpu-moe'; do same $words; done
printf '{"prompt":"abc"}\n{"prompt":"abcd","lora":["a.gguf"]}\n{"prompt":"abc","lora":["a:0.5","b"]}\n' >"$work/lines"
input=$work/lines arguments="batch $m --lora $work/a.gguf --lora $work/b.gguf:0 -n 3 --temp 0"
same --gpu all
input=

begin every_command_gives_the_same_bytes
printf '%s\n' 'Some words.' 'Others.' 'A third' >"$work/lines"
printf '{"prompt":"ab","continuations":["cd","ef"]}\n' >"$work/choices"
seq 1 300 >"$work/text"
for arguments in "run $m -p abcdefgh -n 6 --seed 3" "run $m -p ab -n 4 --temp 0 --heat" \
    "perplexity $m -f $work/text --chunk 16 --chunks 2"; do
    same --gpu 3
done
for arguments in "batch $m --lines -n 4 --seed 1" "chat $m --template chatml -n 4 --seed 1" "score $m --heat"; do
    input=$work/lines
    same --gpu all
done
input=$work/choices arguments="score $m"
same --gpu 2
input=
arguments="embed -m $work/encoder.gguf -p words"
same --gpu all
arguments="similar -m $work/encoder.gguf -p words -f $work/lines"
same --gpu 1
arguments="rerank -m $work/ranker.gguf -p words -f $work/lines"
same --gpu all

begin experts_may_be_on_the_processor
arguments="logits -m $work/moe.gguf -p ab -o -"
for words in '--gpu all' '--gpu 1 --cpu-moe' '-ngl 99 -cmoe'; do same $words; done
gpu run -m "$work/moe.gguf" -p ab --plan --json --gpu all --cpu-moe
out_like '"bytes":[{]"weights":[0-9]{6},"cache":0,.*"gpu":[{]"name":"emulated GPU","layers":2,'

begin cold_rows_may_be_on_the_processor
"$make_model" "$work/relu.gguf" arch=arcee layers=4 embd=64 ff=1024 type=Q4_0 tokens=bpe || exit 1
seq 1 200 >"$work/text"
infer imatrix -m "$work/relu.gguf" -f "$work/text" --chunk 16 --chunks 2 -o "$work/cold" --activations
status 0
infer imatrix -m "$work/relu.gguf" -f "$work/text" --chunk 16 --chunks 2 -o "$work/matrix"
python3 - "$work" <<'PY' || bad 'the counts are not those of the inputs'
import struct, sys
# The data of the first file ends with the counts; that of the second begins after its last name.
counts = struct.unpack("<4096i", open(sys.argv[1] + "/cold", "rb").read()[-16384:])
assert max(counts) <= 32 and min(counts) == 0 and 1000 < sum(counts) < 4096 * 32 - 1000
name = b"blk.3.ffn_down.weight.in_sum2"
bytes_ = open(sys.argv[1] + "/matrix", "rb").read()
at = bytes_.index(name) + len(name)
n_dims, = struct.unpack_from("<I", bytes_, at)
offset, = struct.unpack_from("<Q", bytes_, at + 4 + 8 * n_dims + 4)
last = max(bytes_.rindex(b".counts"), bytes_.rindex(b".in_sum2"))
end = last + bytes_[last:].index(b"m2" if bytes_[last:last + 8] == b".in_sum2" else b"ts") + 2
n_dims, = struct.unpack_from("<I", bytes_, end)
data = -(-(end + 4 + 8 * n_dims + 12) // 32) * 32
sums = struct.unpack_from("<1024f", bytes_, data + offset)
assert all((s > 0) == (c > 0) for s, c in zip(sums, counts[3072:])), "zeros"
PY
arguments="logits -m $work/relu.gguf -p abcdefgh -o -"
for words in '--gpu all' '--gpu 2 --hot-share 0.3' '-ngl 99 --hot-share 0.001'; do same $words --cpu-cold "$work/cold"; done
most=101
for memory in 20000000 2800000 2400000 2000000; do
    same --gpu auto --cpu-cold "$work/cold" -v
    n=$(sed -n 's/^infer: emulated GPU: 4 of 4 layers, \([0-9]*\) % of the rows of their networks$/\1/p' "$work/err")
    [ "${n:-101}" -lt "$most" ] || bad "$n % of the rows in $memory bytes, $most in more"
    most=$n
done
[ "${most:-0}" -gt 0 ] || bad 'no row is on the GPU'
memory=
gpu run -m "$work/relu.gguf" -p abc --plan --gpu all --cpu-cold "$work/cold" --hot-share 0.5
out_like '^copies .* of cold rows \(--cpu-cold\)$'
out_like '^GPU .* 4 layers, 50 % of their rows: weights'
gpu run -m "$work/relu.gguf" -p abc -n 2 --json --gpu all --cpu-cold "$work/cold" --hot-share 0.25
valid run.schema.json
out_like '"gpu":[{]"name":"emulated GPU","layers":4,"hot_share":0.25[}]'
for file in "$work/matrix" "$work/relu.gguf" "$work/missing"; do
    gpu logits -m "$work/relu.gguf" -p abc -o "$work/logits" --gpu all --cpu-cold "$file"
    status 2
    infer logits -m "$work/relu.gguf" -p abc -o "$work/logits" --gpu off --cpu-cold "$file"
    status 2
done
gpu logits -m "$work/m.gguf" -p abc -o "$work/logits" --gpu all --cpu-cold "$work/cold"
status 2
err_line 'blk.0.ffn_[a-z]*.weight has 32 rows, but 1024 activations were counted$'
"$make_model" "$work/short.gguf" arch=arcee layers=2 embd=64 ff=1024 type=Q4_0 tokens=bpe || exit 1
gpu logits -m "$work/short.gguf" -p abc -o "$work/logits" --gpu all --cpu-cold "$work/cold"
status 2
err_line 'cold: counts of a model with other layers$'
infer logits $m -p abc -o "$work/logits" --cpu-cold "$work/cold"
status 2
infer logits -m "$work/cold" -p abc -o "$work/logits"
status 3
err_line 'cold: no language model: the file is counts of activations, which divide a model between processor and GPU$'
"$make_model" "$work/mtp.gguf" arch=qwen35-mtp || exit 1 # a layer that only drafts has no counts
infer imatrix -m "$work/mtp.gguf" -f "$work/text" --chunk 16 --chunks 1 -o "$work/mtp" --activations
arguments="logits -m $work/mtp.gguf -p abcdefgh -o -"
same --gpu all --cpu-cold "$work/mtp"
"$make_adapter" "$work/relu.gguf" "$work/d.gguf" rank=4 || bad 'no adapter'
gpu logits -m "$work/relu.gguf" -p abc -o "$work/logits" --gpu all --cpu-cold "$work/cold" --lora "$work/d.gguf"
status 2
err_line '^infer: --gpu: --cpu-cold divides matrices, so adapters cannot act$'

begin drafts_and_stored_prompts_work
arguments="run $m -p abcabcabc -n 8 --temp 0 --draft ngram"
same --gpu all
arguments="run $m -p abcdefgh -n 4 --temp 0 --draft $work/m.gguf"
for words in '--gpu 2' '--gpu all --gpu-draft off' '--gpu all --gpu-draft all' '--gpu 1 --gpu-draft 3' '-ngl 99 -ngld 99'; do
    same $words -v
    case $words in
    *off) n= ;; *3) n=3 ;; *) n=4 ;;
    esac
    [ "$(sed -n 's/^infer: emulated GPU: \([0-9]*\) of 4 layers of the draft model$/\1/p' "$work/err")" = "$n" ] || bad "$words: $(cat "$work/err")"
done
most=4 seen=
for memory in 8000000 4000000 3400000 3200000 3000000 2800000 2600000 2400000 1700000; do # what the model leaves
    same --gpu auto -v
    err_like '^infer: emulated GPU: 4 of 4 layers$'
    n=$(sed -n 's/^infer: emulated GPU: \([0-4]\) of 4 layers of the draft model$/\1/p' "$work/err")
    [ "${n:-9}" -le "$most" ] || bad "$n layers in $memory bytes, $most in more"
    most=$n seen="$seen $n"
done
memory=
case $seen in ' 4 '*[123]*' 0') ;; *) bad "$seen layers of the draft model in less and less memory" ;; esac
gpu $arguments --gpu all --gpu-draft x
status 2
err_line "^infer: --gpu-draft: 'x' is no number of layers"
arguments="run $m -p abcdefghijklmnopqrstuvwxyz0123456789abcdef -n 2 --temp 0 --cache $work/prompts"
same --gpu all # reads what the processor has stored
gpu $arguments --gpu all --json
status 0
valid run.schema.json
out_like '"cached_tokens":[1-9].*"gpu":[{]"name":"emulated GPU","layers":4[}]'

begin auto_takes_as_many_layers_as_fit
arguments="logits $m -p abcdefgh -o -"
most=4 seen=
for memory in 4000000 1700000 1600000 1500000 1400000 1300000 1200000 100000; do
    same --gpu auto -v
    n=$(sed -n 's/^infer: emulated GPU: \([0-4]\) of 4 layers$/\1/p' "$work/err")
    [ "${n:-9}" -le "$most" ] || bad "$n layers in $memory bytes, $most in more"
    most=$n seen="$seen $n"
done
case $seen in ' 4 '*[123]*' 0') ;; *) bad "$seen layers in less and less memory" ;; esac
err_like '^infer: no layer is on the GPU: its free memory has no room for a layer$'
memory=4000000
gpu $arguments -v -ngl 3
err_like '^infer: emulated GPU: 3 of 4 layers$'
memory=100000
gpu logits $m -p abc -o "$work/logits" --gpu all
status 4
err_line 'emulated GPU has no memory for'
memory=

begin several_gpus_divide_layers
devices=3
arguments="logits $m -p abcdefgh -o -"
for words in '--gpu all --gpu-device 0,1' '--gpu 3 --gpu-device 2,0' '--gpu 1 --gpu-device all' '--gpu all --gpu-device all' '-ngl 99 --gpu-device 1'; do same $words; done
gpu $arguments --gpu all --gpu-device all -v
err_like '^infer: emulated GPU, emulated GPU, emulated GPU: 4 of 4 layers$'
for file in moe relu mtp encoder; do
    case $file in encoder) arguments='embed -p words' ;; *) arguments='logits -p abcdefgh -o -' ;; esac
    arguments="$arguments -m $work/$file.gguf"
    same --gpu all --gpu-device 1,0
done
arguments="logits -m $work/relu.gguf -p abcdefgh -o -"
same --gpu all --gpu-device all --cpu-cold "$work/cold" --hot-share 0.4
arguments="logits -m $work/moe.gguf -p ab -o -"
same --gpu all --gpu-device 0,1 --cpu-moe
for arch in mamba2 gemma3n deepseek2 t5 rwkv7 qwen3next; do
    "$make_model" "$work/$arch.gguf" arch=$arch layers=4 tokens=bpe || "$make_model" "$work/$arch.gguf" arch=$arch tokens=bpe || bad "no $arch"
    arguments="run -m $work/$arch.gguf -p abcdefgh -n 3 --temp 0"
    same --gpu all --gpu-device 0,1
done
arguments="logits $m -p abcdefgh -o - --lora $work/a.gguf --control-vector $work/v.gguf"
same --gpu all --gpu-device all
input=$work/lines arguments="batch $m --lines -n 4 --seed 1"
same --gpu 3 --gpu-device 0,1
input=
arguments="run $m -p abcdefgh -n 4 --temp 0 --draft $work/m.gguf"
same --gpu all --gpu-device 0,1 -v
err_like '^infer: emulated GPU, emulated GPU: 4 of 4 layers of the draft model$'
arguments="run $m -p abcdefghijklmnopqrstuvwxyz0123456789abcdef -n 2 --temp 0 --cache $work/prompts"
same --gpu all --gpu-device 0,1 # reads what the processor has stored
gpu bench $m -p 8 -n 0 -r 1 --gpu all --gpu-device all
status 0
out_like ', emulated GPU, emulated GPU, emulated GPU, [0-9]+ thread'
for list in x '' 0, ,1 0,0 32 0,1x; do
    gpu logits $m -p abc -o "$work/logits" --gpu all --gpu-device "$list"
    status 2
    err_like "^infer: --gpu: --gpu-device '$list' is neither"
done
gpu logits $m -p abc -o "$work/logits" --gpu all --gpu-device 0,3
status 2
err_line '^infer: --gpu: there is no GPU 3$'
infer run $m -p abc --plan --gpu 3 --gpu-device all
status 0
[ "$(grep -c '^GPU ' "$work/out")" = 1 ] || bad 'a plan without GPUs is that of one'

begin several_gpus_have_room_for_more_layers
arguments="logits $m -p abcdefgh -o -"
for memory in 1550000 1450000; do
    devices=1 && same --gpu auto -v
    one=$(sed -n 's/^infer: emulated GPU: \([0-4]\) of 4 layers$/\1/p' "$work/err")
    devices=2 && same --gpu auto --gpu-device all -v
    two=$(sed -n 's/^infer: emulated GPU, emulated GPU: \([0-4]\) of 4 layers$/\1/p' "$work/err")
    [ "$one" -lt 4 ] && [ "$two" -gt "$one" ] || bad "$one layers on one GPU of $memory bytes, $two on two"
done
[ "$two" -lt 4 ] || bad "all layers in $memory bytes: the second GPU has no room for its two and the output"
gpu run $m -p abc --plan --gpu auto --gpu-device all
status 0
[ "$(grep -c '^GPU .* [12] layers: weights [0-9.]* MB, cache [0-9.]* MB' "$work/out")" = 2 ] || bad "$(cat "$work/out")"
[ "$(grep -c 'free on emulated GPU: fits$' "$work/out")" = 2 ] || bad "$(cat "$work/out")"
gpu run $m -p abc --plan --gpu auto --gpu-device all --json
out_like '"gpu":[{]"name":"emulated GPU, emulated GPU","layers":[1-4],.*"free":'$((2 * memory))',"fits":true'
gpu run $m -p abc --plan --gpu 1 --gpu-device all --json # also tries a third GPU
out_like '"gpu":[{]"name":"emulated GPU, emulated GPU",'
memory= devices=

begin graphs_are_given_up_where_memory_is_short
letters=abcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrstuvwxyz
for n in 75 71 62 53 44; do printf '%s%.'$n's\n' $n $letters; done >"$work/lines"
"$make_model" "$work/one.gguf" layers=1 embd=32 ff=32 type=Q4_0 tokens=bpe tied=1 || exit 1
arguments="batch -m $work/one.gguf --lines -np 1 -n 1"
head -n 1 "$work/lines" >"$work/line"
memory=100000 code=4
while [ $code -eq 4 ] && [ $memory -lt 1000000 ]; do # the least, in steps, for the longest line
    memory=$((memory + 10000)) input=$work/line
    gpu $arguments --gpu all
done
input=$work/lines
same --gpu all
input= memory=

begin a_plan_has_each_place
gpu run $m -p abc --plan --json
cp "$work/out" "$work/all"
gpu run $m -p abc --plan --gpu 2 --json
status 0
out_like '"layers":2,.*"free":67108864,"fits":true[}][}]$'
python3 - "$work/all" "$work/out" <<'PY' || bad 'weights and caches of both places are not those of one'
import json, sys
all, two = (json.load(open(name)) for name in sys.argv[1:])
here, there = two["bytes"], two["gpu"]["bytes"]
assert here["cache"] + there["cache"] == all["bytes"]["cache"]
assert here["cache"] == there["cache"] > 0
moved = all["bytes"]["weights"] - here["weights"]
assert 0 < moved < there["weights"] - 5000 # the output's are here too, as embeddings
PY
infer run $m -p abc --plan --gpu all --json # without a GPU
status 0
out_like '"name":null,"layers":4,.*"free":null,"fits":null[}][}]$'
gpu run $m -p abc --plan --gpu 2
out_like '^GPU +[0-9.]+ MB  2 layers: weights [0-9.]+ MB, cache [0-9.]+ MB, activations'
out_like 'of 67.1 MB that are free on emulated GPU: fits$'

begin bench_names_the_gpu
gpu bench $m -p 8 -n 0 -r 1 --gpu 2
status 0
out_like ', emulated GPU, [0-9]+ thread'
out_like '^limits with [0-9]+ threads?, 2 layers on the GPU: reading [0-9.]+ GB/s, int8 [0-9.]+ G multiply-adds/s$'
gpu bench $m -p 8 -n 0 -r 1 --gpu all --format json
out_like '"gpu_layers":4,.*"gpu":"emulated GPU",.*"bandwidth_bytes_per_second":[1-9][0-9]*,"share_of_int8":[0-9.]+,"int8_macs_per_second":[1-9]'

finish

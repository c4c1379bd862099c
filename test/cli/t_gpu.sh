# --gpu with the driver that stands in for NVIDIA's (test/fake_cuda.h): the bytes are those of the
# processor wherever layers are. Models with random weights.
. test/cli/lib.sh

fake=${INFER%/*}/test
[ -x "$make_model" ] && [ -e "$fake/libcuda.so.1" ] ||
    { echo 'skip: the model maker or the driver is not built'; finish; exit 0; }
"$INFER" doctor -t 1 | grep -Eq '^GPU code +built in' || { echo 'skip: built without code for GPUs'; finish; exit 0; }
"$make_model" "$work/m.gguf" layers=4 embd=64 ff=128 type=Q4_0 tokens=bpe || exit 1
XDG_CACHE_HOME=$work/cache
export XDG_CACHE_HOME
m="-m $work/m.gguf"

# gpu ARGS...: the program with the driver; $memory: bytes of its GPU.
gpu() {
    (
        LD_LIBRARY_PATH=$fake FAKE_CUDA_MEMORY=${memory:-67108864}
        export LD_LIBRARY_PATH FAKE_CUDA_MEMORY
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
for n in 0 1 2 4 99 all auto; do same --gpu $n; done

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

begin a_missing_op_is_named
gpu logits $m -p abc -o "$work/logits" --gpu 1 -ctk f32
status 2
err_line '^infer: --gpu: set_rows is not an op of backend gpu$'
arguments="logits $m -p abcdefgh -o - -ctk f32"
same --gpu auto
err_line '^infer: no layer is on the GPU: set_rows is not an op of backend gpu$'

begin other_values_are_refused
for value in x -1 1x ''; do
    infer logits $m -p abc -o "$work/logits" --gpu "$value"
    status 2
done
infer logits $m -p abc --gpu all --blas
status 2
err_line '^infer: --gpu: --blas is for the processor alone$'

finish

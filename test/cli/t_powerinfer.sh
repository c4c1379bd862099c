# Files of PowerInfer (magic PWRI, ffn_down transposed, predictors of zeros). Models with random weights;
# test/test_models.c compares their logits with another implementation.
. test/cli/lib.sh

[ -x "$make_model" ] || { echo "skip: $make_model is not built"; finish; exit 0; }
pwri() { printf 'PWRI' | dd of="$1" bs=1 conv=notrunc 2>"$work/said"; }
logits() {
    to=$1
    shift
    infer logits --ids '1 2 3 4 5 6 7 8 9' -o "$work/$to" "$@"
    status 0
}
same() { cmp -s "$work/$1" "$work/$2" || bad "$2 is not $1: $3"; }
for arch in llama falcon bamboo opt; do
    fixture=$arch-powerinfer
    case $arch in bamboo | opt) fixture=$arch ;; esac
    "$make_model" "$work/$arch.gguf" "arch=$fixture" || exit 1
    cp "$work/$arch.gguf" "$work/$arch-gguf.gguf"
    pwri "$work/$arch.gguf"
done

begin the_magic_changes_nothing_else
for arch in llama falcon bamboo opt; do
    logits gguf -m "$work/$arch-gguf.gguf"
    logits pwri -m "$work/$arch.gguf" -b 1 -t 2 --sparse
    same gguf pwri "$arch"
done

begin inspect_names_the_form_and_the_predictor
infer inspect "$work/llama.gguf"
status 0
out_like "PowerInfer's GGUF version 3"
out_like '^Predictor  of zeros in 2 layers, used by --sparse predict only: approximate$'
infer inspect "$work/llama.gguf" --json
out_like '"predictors":2,'

begin predicted_zeros_are_an_approximation_that_says_so
echo abc >"$work/query"
logits exact -m "$work/llama.gguf"
logits predicted -m "$work/llama.gguf" --sparse predict
! cmp -s "$work/exact" "$work/predicted" || bad 'the predictor has no effect'
logits one -m "$work/llama.gguf" --sparse predict -b 1 -t 2
same predicted one 'one by one'
logits all -m "$work/llama.gguf" --sparse predict --override-kv powerinfer.sparse_threshold=float:-1e30
same exact all 'a threshold that all scores reach'
infer run -m "$work/llama.gguf" --raw -n 2 --json --sparse predict abc
status 0
out_like '"approximate":"zeros are predicted"'
valid run.schema.json
infer run -m "$work/llama.gguf" --raw -n 2 --jsonl --sparse predict abc
out_like '"approximate":"zeros are predicted"'
valid run-event.schema.json
for way in jsonl json; do
    infer embed -m "$work/llama.gguf" -p abc --pooling last --format $way --sparse predict
    out_like ',"approximate":"zeros are predicted"}$'
done
input=$work/query
infer chat -m "$work/llama.gguf" --json --temp 0 -n 2 --chat-template chatml --sparse predict
out_like ',"approximate":"zeros are predicted"}$'
valid chat.schema.json
input=''
infer similar -m "$work/llama.gguf" -f "$work/query" abc --json --sparse predict
out_like ',"approximate":"zeros are predicted"}$'
infer run -m "$work/llama.gguf" --raw -n 2 --json --sparse abc
! grep -q approximate "$work/out" || bad 'exact results are called approximate'
seq 400 >"$work/text"
infer perplexity -m "$work/llama.gguf" -f "$work/text" --chunk 64 --save-logits "$work/saved"
status 0
infer perplexity -m "$work/llama.gguf" --kl "$work/saved" --json --sparse predict
status 0
out_like '"approximate":"zeros are predicted"'
! grep -q '"kl":0\.0*[,}]' "$work/out" || bad 'no divergence from the exact model'
echo '{"prompt": "a", "continuations": ["b"]}' >"$work/line"
infer score -m "$work/llama.gguf" -f "$work/line" --sparse predict
out_like '"approximate":'
echo abc >"$work/line"
infer batch -m "$work/llama.gguf" "$work/line" --raw -n 2 --each '{}' --json --sparse predict
out_like '"approximate":'

begin predict_needs_a_predictor
"$make_model" "$work/plain.gguf" arch=llama || exit 1
infer logits -m "$work/plain.gguf" --ids 1 --sparse predict
status 2
err_line '^infer: --sparse: predict: the model has no predictor'
infer logits -m "$work/plain.gguf" --ids 1 --sparse=guess
status 2
err_line "'guess' is none of on.off.predict"

begin a_cache_of_exact_states_is_not_used
yes word | head -c 200 >"$work/prompt"
for how in on predict on; do
    infer run -m "$work/llama.gguf" --raw -n 2 --cache "$work/cache" -f "$work/prompt" --json --sparse=$how
    status 0
    cp "$work/out" "$work/$how.$((n = n + 1))"
done
grep -q '"cached_tokens":0,' "$work/predict.2" || bad 'predict continues exact states'
! grep -q '"cached_tokens":0,' "$work/on.3" || bad 'the cache is not used at all'

begin copies_keep_the_form
for type in COPY Q8_0; do
    infer quantize "$work/bamboo.gguf" "$work/copy.gguf" "$type"
    status 0
    [ "$(head -c 4 "$work/copy.gguf")" = PWRI ] || bad "$type: another magic"
    infer logits -m "$work/copy.gguf" --ids 1
    status 0
done
infer edit "$work/bamboo.gguf" -o "$work/copy.gguf" --set general.name=str:x
[ "$(head -c 4 "$work/copy.gguf")" = PWRI ] || bad 'edit: another magic'

begin another_activation_by_the_key
logits relu -m "$work/llama.gguf"
logits silu -m "$work/llama.gguf" --override-kv llama.feed_forward.activation=str:silu
! cmp -s "$work/relu" "$work/silu" || bad 'the key has no effect'

begin bad_files_have_clear_errors
head -c 3000 "$work/llama.gguf" >"$work/cut.gguf"
infer logits -m "$work/cut.gguf" --ids 1
status 3
err_line 'cut\.gguf: .*(truncated|past the end)'
infer edit "$work/llama.gguf" -o "$work/no.gguf" --rename blk.1.fc1.weight=blk.1.fc3.weight
status 2
err_line 'architecture llama has no such tensor'
infer logits -m "$work/llama.gguf" --ids 1 --override-kv general.architecture=str:generic.gpu_index
status 3
err_line "the file is PowerInfer's division of a model between processor and GPU"
"$make_model" "$work/both.gguf" arch=llama 'with=blk.0.ffn_down_t.weight=128' beside='blk.0.ffn_down.weight'
infer logits -m "$work/both.gguf" --ids 1
status 3
err_line 'blk\.0\.ffn_down\.weight'
finish

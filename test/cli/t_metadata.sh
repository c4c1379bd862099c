# Metadata from the command line: --override-kv, --rope-*, --yarn-*; parts of a file other than the
# text model; unknown architectures. Needs tool_make_model.
. test/cli/lib.sh

ids='17 4 99 23 54 8 77 120 5 61 33 2 90 14 66 41 7 28 111 50 19 83 3 72'
plain=rope.freq_base=100.0 # few frequencies, with the limits of YaRN between them
yarn='rope.scaling.type=yarn rope.scaling.factor=4.0 rope.scaling.original_context_length=60'

# logits NAME MODEL OPTIONS...: writes the logits of $ids to $work/NAME.f32
logits() {
    name=$1 model=$2
    shift 2
    infer logits -m "$work/$model.gguf" --ids "$ids" -o "$work/$name.f32" -ctk f32 -ctv f32 "$@"
    status 0
    err ''
}
equal() { cmp -s "$work/$1.f32" "$work/$2.f32" || bad "$1 and $2 differ"; }
differ() { cmp -s "$work/$1.f32" "$work/$2.f32" && bad "$1 and $2 are equal"; }

begin an_override_replaces_a_key
if ! "$make_model" "$work/plain.gguf" arch=llama ctx=64 keys=$plain 2>"$work/said"; then
    skip 'no tool_make_model'
    finish
    exit
fi
"$make_model" "$work/base.gguf" arch=llama ctx=64 keys=rope.freq_base=20000.0
"$make_model" "$work/linear.gguf" arch=llama ctx=64 keys="$plain rope.scaling.factor=4.0"
"$make_model" "$work/yarn.gguf" arch=llama ctx=64 keys="$plain $yarn"
logits plain plain
logits base base
differ plain base
logits given plain --override-kv llama.rope.freq_base=float:2e4
equal given base
logits given plain --override-kv llama.rope.freq_base=float:3 --override-kv=llama.rope.freq_base=float:20000
equal given base
logits given plain --override-kv llama.rope.scaling.type=str:yarn \
    --override-kv llama.rope.scaling.factor=float:4 \
    --override-kv llama.rope.scaling.original_context_length=int:60
logits yarn yarn
equal given yarn
usage "override-kv: 'nobody.reads.this': the file has no such key" run -m "$work/plain.gguf" -p x --override-kv nobody.reads.this=bool:true
usage "override-kv: 'llama.contxt_length'" logits -m "$work/plain.gguf" -p x --override-kv llama.contxt_length=int:9
usage "override-kv: 'tokenizer.ggml.add_boss_token'" run -m "$work/plain.gguf" -p x --override-kv tokenizer.ggml.add_boss_token=bool:true
logits given plain --override-kv general.name=str:x
equal given plain

begin a_wrong_override_is_refused
usage "^infer: --override-kv: 'x' is not KEY=TYPE:VALUE$" run -m "$work/plain.gguf" -p x --override-kv x
usage "^infer: --override-kv: '=int:1' is not KEY=TYPE:VALUE$" run -m "$work/plain.gguf" -p x --override-kv =int:1
usage "^infer: --override-kv: 'x=1': the type is none of int, float, bool and str$" \
    run -m "$work/plain.gguf" -p x --override-kv x=1
usage "^infer: --override-kv: 'x=i32:1': the type is none of int, float, bool and str$" \
    chat -m "$work/plain.gguf" --override-kv x=i32:1
usage "^infer: --override-kv: '1x' is not a whole number of 64 bits$" \
    bench -m "$work/plain.gguf" --override-kv x=int:1x
usage "^infer: --override-kv: '9223372036854775808' is not a whole number of 64 bits$" \
    run -m "$work/plain.gguf" -p x --override-kv x=int:9223372036854775808
usage "^infer: --override-kv: 'nan' is not a number$" \
    run -m "$work/plain.gguf" -p x --override-kv x=float:nan
usage "^infer: --override-kv: '' is not a number$" run -m "$work/plain.gguf" -p x --override-kv x=float:
usage "^infer: --override-kv: 'on' is neither true nor false$" \
    perplexity -m "$work/plain.gguf" -f docs/chat.md --override-kv x=bool:on
usage 'llama.rope.freq_base: must be f32, not i64$' \
    run -m "$work/plain.gguf" -p x --override-kv llama.rope.freq_base=int:5
usage 'llama.context_length: 0 is not between 1 and ' \
    run -m "$work/plain.gguf" -p x --override-kv llama.context_length=int:0
usage '^infer: --override-kv: is empty$' run -m "$work/plain.gguf" -p x --override-kv ''

begin an_override_acts_on_the_tokenizer
infer tokenize -m "$work/plain.gguf" -p ab --override-kv tokenizer.ggml.add_bos_token=bool:false
without=$(cat "$work/out")
infer tokenize -m "$work/plain.gguf" -p ab --override-kv tokenizer.ggml.add_bos_token=bool:true
[ "$(cat "$work/out")" != "$without" ] || bad "'$without' with and without"

begin rope_options_scale_positions
logits linear linear
logits given plain --rope-scale 4
equal given linear
logits given plain --rope-freq-scale 0.25
equal given linear
logits given plain --rope-freq-base 20000
equal given base
logits given plain --rope-scaling yarn --rope-scale 4 --yarn-orig-ctx 60
equal given yarn
logits given yarn --rope-scaling none
equal given plain
logits given yarn --yarn-ext-factor 0
equal given linear
logits given yarn --yarn-ext-factor 1 --yarn-attn-factor 2 --yarn-beta-fast 32 --yarn-beta-slow 1
equal given yarn # the magnitude applies where nothing is extrapolated
for option in '--yarn-ext-factor 0.5' '--yarn-ext-factor 0 --yarn-attn-factor 2' '--yarn-beta-fast 2' \
    '--yarn-beta-slow 3' '--yarn-orig-ctx 32' '--rope-scale 2' '--rope-scaling linear'; do
    # shellcheck disable=SC2086
    logits given yarn $option
    differ given yarn
done
usage '^infer: --rope-scale: contradicts --rope-freq-scale' run -m "$work/plain.gguf" -p x \
    --rope-scale 2 --rope-freq-scale 2
usage "^infer: --rope-scaling: 'ntk' is none of none.linear.yarn$" run -m "$work/plain.gguf" -p x \
    --rope-scaling ntk

begin layers_with_a_window_are_not_scaled # as in llama.cpp, where they may have one of their own
"$make_model" "$work/window.gguf" arch=gemma2
"$make_model" "$work/other.gguf" arch=gemma2 \
    keys='rope.freq_base=20000.0 rope.freq_base_swa=500000.0 attn_logit_softcapping=5.0'
logits given window --rope-freq-base 20000
logits other other
equal given other

begin a_scaled_context_needs_no_note
long='the context of 65 tokens is longer than the 64 that the model was trained with'
for option in '--rope-scale 2' '--rope-freq-scale 0.5' '--rope-freq-base 1e6' \
    '--override-kv llama.context_length=int:65' '--override-kv llama.rope.scaling.factor=float:2'; do
    # shellcheck disable=SC2086
    infer run -p x -n 1 -c 65 -m "$work/plain.gguf" $option
    status 0
    err ''
done
infer run -p x -n 1 -c 65 -m "$work/linear.gguf"
err ''
infer run -p x -n 1 -c 65 -m "$work/linear.gguf" --rope-scaling none
status 0
err_line "^infer: $long; "

begin tensors_beside_the_text_model_are_noted
"$make_model" "$work/beside.gguf" arch=llama ctx=64 keys="$plain nextn_predict_layers=1 block_count=3" \
    beside='v.blk.0.attn_q.weight v.patch_embd.weight mm.0.weight a.conv1d.1.weight mm.a.fc.weight blk.2.attn_norm.weight mtp.fc.weight cls.weight blk.0.attn_q.input_scale'
logits beside beside
equal beside plain
infer run -p x -n 1 -v -m "$work/beside.gguf"
status 0
err_like '^infer: tensors of the file that are not used: 3 images, 2 audio, 2 drafts, 1 other heads, 1 without effect here$'
infer run -p x -n 1 -v -m "$work/plain.gguf"
grep -q 'not used' "$work/err" && bad "$(cat "$work/err")"
"$make_model" "$work/strange.gguf" arch=llama beside=blk.0.strange.weight
infer run -p x -m "$work/strange.gguf"
status 3
err_line 'blk.0.strange.weight: architecture llama has no such tensor here: the model is not supported'

begin an_unknown_architecture_is_named
infer run -p x -m "$work/plain.gguf" --override-kv general.architecture=str:gemma99
status 3
out ''
err_line "general.architecture: architecture 'gemma99' is not supported \(the nearest names that are: gemma, gemma2, gemma3\)$"
finish

# Zeros of ReLU: skipped rows and columns, the copy by columns, the activation key. Models with random
# weights; gemma3n keeps 5 % of its gate's values by definition, so that its copy is used.
. test/cli/lib.sh

[ -x "$make_model" ] || { echo "skip: $make_model is not built"; finish; exit 0; }
relu='llama.feed_forward.activation=str:relu'
shape='embd=256 heads=4 kv_heads=2 head_dim=64 ff=512 vocab=320'
nemotron='ssm.conv_kernel=4 ssm.inner_size=96 ssm.state_size=16 ssm.time_step_rank=6 ssm.group_count=3
attention.head_count_kv=0,0,2,0,0 feed_forward_length=0,64,0,64,0 expert_feed_forward_length=64
expert_shared_feed_forward_length=128 expert_weights_norm=true'
nemotron=$(echo "$nemotron" | tr '\n' ' ')
types='F16 Q8_0 Q4_0'
[ -z "$quick" ] || types='Q8_0 F16'

# logits FILE OPTIONS...: nine ids in one batch, or as the options say.
logits() {
    to=$1
    shift
    infer logits --ids '1 2 3 4 5 6 7 8 9' -o "$work/$to" "$@"
    status 0
}
same() { cmp -s "$work/$1" "$work/$2" || bad "$2 is not $1: $3"; }

begin zeros_do_not_change_bits
for type in $types; do
    # shellcheck disable=SC2086
    "$make_model" "$work/l.gguf" arch=llama type=$type $shape >/dev/null || exit 1
    "$make_model" "$work/g.gguf" arch=gemma3n type=$type embd=256 heads=4 kv_heads=2 head_dim=64 ff=512 \
        layers=12 vocab=320 >/dev/null || exit 1
    "$make_model" "$work/n.gguf" arch=nemotron_h_moe type=$type embd=256 head_dim=64 vocab=320 \
        keys="$nemotron" >/dev/null || exit 1
    for model in "$work/l.gguf --override-kv $relu" "$work/g.gguf" "$work/n.gguf"; do
        # shellcheck disable=SC2086
        for options in '-b 9' '-b 1' '-b 2 -t 1' '-b 1 --sparse' '-b 2 -t 2 --sparse' '-b 1 --sparse --isa scalar'; do
            logits got -m $model $options
            [ "$options" != '-b 9' ] || cp "$work/got" "$work/want"
            same want got "$type $model $options"
        done
    done
done

begin a_file_with_copies_gives_the_same_bits
infer quantize "$work/g.gguf" "$work/plain.gguf" Q8_0
status 0
infer quantize "$work/g.gguf" "$work/columns.gguf" Q8_0 --columns
status 0
infer inspect "$work/columns.gguf" --tensors
out_like 'blk\.0\.ffn_down\.columns +I8 '
logits plain -m "$work/plain.gguf" -b 1
logits columns -m "$work/columns.gguf" -b 1
same plain columns 'with --columns'

begin experts_by_columns_give_the_same_bits
"$make_model" "$work/x.gguf" arch=smallthinker type=F16 embd=256 heads=4 kv_heads=2 head_dim=64 vocab=320 experts=4 \
    keys='expert_feed_forward_length=128 expert_gating_func=2 rope.freq_base_swa=20000.0' \
    with=ffn_gate_exps.bias shift='ffn_gate_exps.bias=-1.5' >/dev/null || exit 1
infer quantize "$work/x.gguf" "$work/xc.gguf" Q8_0 --columns
status 0
infer inspect "$work/xc.gguf" --tensors
out_like 'blk\.0\.ffn_down_exps\.columns +I8 '
logits rows -m "$work/xc.gguf" -b 9
logits columns -m "$work/xc.gguf" -b 1 -t 2
same rows columns 'experts in the file'
logits two -m "$work/xc.gguf" -b 2
same rows two 'two tokens'
infer bench -m "$work/xc.gguf" -p 0 -n 2 -r 1 --profile
err_like 'mul_mat_id_columns Q8_0'
infer quantize "$work/x.gguf" "$work/xr.gguf" Q8_0
status 0
logits made -m "$work/xr.gguf" -b 1 --sparse
same rows made 'experts at load'
infer run -m "$work/xr.gguf" --plan --json --sparse
out_like '"copies":[1-9]'

begin a_new_type_drops_or_renews_copies
infer quantize "$work/columns.gguf" "$work/again.gguf" Q8_0
status 0
cmp -s "$work/again.gguf" "$work/plain.gguf" || bad 'the copy is still there'
infer quantize "$work/columns.gguf" "$work/again.gguf" Q4_0 --columns
status 0
logits four -m "$work/again.gguf" -b 1
logits four_rows -m "$work/again.gguf" -b 9
same four_rows four 'after another type'

begin a_copy_of_other_weights_is_refused
infer inspect "$work/columns.gguf" --json --tensors
at=$(tr '{' '\n' <"$work/out" | sed -n 's/.*"blk\.3\.ffn_down\.columns".*"offset":\([0-9]*\).*/\1/p')
dd if="$work/plain.gguf" of="$work/columns.gguf" bs=1 skip=1000000 count=100000 seek="$at" conv=notrunc 2>"$work/said"
infer logits -m "$work/columns.gguf" --ids 1
status 3
err_line 'blk\.3\.ffn_down\.columns: not the copy by columns of blk\.3\.ffn_down\.weight'

begin bench_shows_the_share_of_zeros
infer bench -m "$work/l.gguf" -p 0 -n 2 -r 1 --zeros --override-kv "$relu"
status 0
out_like '^\|.*generate'
err_like '^generate 2: zeros in the inputs of ffn_down'
err_like '^\| +1 \| +[3-6][0-9]\.[0-9] % \|$'
infer bench -m "$work/l.gguf" -p 0 -n 2 -r 1 --zeros
err_like '^\| +all \| +0\.0 % \|$'

begin plan_counts_copies
infer run -m "$work/l.gguf" --plan --json --override-kv "$relu" --sparse
status 0
bytes=$(sed -n 's/.*"copies":\([0-9]*\),.*/\1/p' "$work/out")
[ "$bytes" -ge 131072 ] || bad "copies of $bytes bytes"
infer run -m "$work/l.gguf" --plan --override-kv "$relu" --sparse
out_like '^copies +0\.[1-9] MB'
infer run -m "$work/n.gguf" --plan --json --sparse
out_like '"copies":[1-9]'
infer run -m "$work/l.gguf" --plan --json --sparse
! grep -q copies "$work/out" || bad 'copies that silu does not need'

begin columns_needs_a_matrix_that_has_the_form
infer quantize "$work/g.gguf" "$work/no.gguf" Q5_0 --columns
status 2
err_line 'columns: no ffn_down becomes Q4_0, Q8_0 or F16'

begin the_activation_is_a_word_of_the_list
infer logits -m "$work/l.gguf" --ids 1 --override-kv llama.feed_forward.activation=str:elu
status 2
err_line 'llama.feed_forward.activation: not silu, gelu, gelu_erf, gelu_quick, relu or relu_sqr'
infer edit "$work/l.gguf" -o "$work/e.gguf" --set llama.feed_forward.activation=str:relu
status 0
logits by_edit -m "$work/e.gguf"
logits by_option -m "$work/l.gguf" --override-kv "$relu"
same by_option by_edit 'infer edit'
logits silu -m "$work/l.gguf"
! cmp -s "$work/silu" "$work/by_edit" || bad 'the key has no effect'
finish

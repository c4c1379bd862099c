# quantize with models of random weights: which type a name gives to each tensor, and what is said.
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

begin mixes_give_types_by_layer
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

begin pure_is_one_type
is "$(types Q4_K_M --pure)" '0:Q4_K 1:Q4_K 2:Q4_K 3:Q4_K 4:Q4_K 5:Q4_K 6:Q4_K 7:Q4_K '
is "$(type_of output.weight)" Q4_K
is "$(type_of blk.0.attn_v.weight)" Q4_K

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

begin dry_run_says_what_the_file_would_be
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
usage 'quantize: missing argument' quantize "$m" Q8_0

begin copy_converts_nothing
infer quantize "$work/q.gguf" "$work/copy.gguf" COPY
status 0
cmp -s "$work/q.gguf" "$work/copy.gguf" || bad 'a copy has other bytes'
usage 'COPY converts nothing' quantize "$m" "$work/x.gguf" COPY --pure
usage 'COPY converts nothing' quantize "$m" "$work/x.gguf" COPY --tensor-type a=Q8_0

finish

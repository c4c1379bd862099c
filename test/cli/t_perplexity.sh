# infer perplexity with a small model: strides, saved logits in both forms.
. test/cli/lib.sh
[ -n "$MODEL" ] || { echo 'skip t_perplexity.sh: no model'; finish; exit; }
INFER_MODEL=$MODEL
export INFER_MODEL
i=0
while [ $i -lt 12 ]; do
    echo "Line $i: the quick brown fox jumps over the lazy dog, and the dog sleeps on."
    i=$((i + 1))
done >"$work/text"
# number MEMBER: that number of the JSON object.
number() { sed -n "s/.*\"$1\":\([-0-9.e]*\).*/\1/p" "$work/out"; }
# near A B T: whether two numbers are at most T apart.
near() { awk "BEGIN { d = $1 - ($2); exit !(d <= $3 && -d <= $3) }" || bad "infer $last: $1 is not $2"; }

begin chunks_are_counted
INFER_MODEL=$(any_model)
infer perplexity -f "$work/text" --chunk 64 --json
status 0
all=$(number chunks)
[ "$all" -gt 2 ] || bad "$all chunks"
infer perplexity -f "$work/text" --chunk 64 --json --chunks 2
[ "$(number chunks)" -eq 2 ] && [ "$(number positions)" -eq 62 ] || bad "$(cat "$work/out")"
infer perplexity -f "$work/text" --chunk 64 --json --chunks -1
[ "$(number chunks)" -eq "$all" ] || bad "$(cat "$work/out")"

begin a_stride_scores_the_ends_of_chunks
infer perplexity -f "$work/text" --chunk 64 --stride 32 --json
status 0
out_like ',"positions":[0-9]+,"chunk":64,"chunks":[0-9]+,"unused_ids":[0-9]+,"stride":32\}$'
infer tokenize -f "$work/text"
n=$(wc -w <"$work/out")
infer perplexity -f "$work/text" --chunk 64 --ppl-stride 32 --json
[ "$(number chunks)" -eq $(((n - 64 + 31) / 32)) ] || bad "$n tokens: $(cat "$work/out")"
[ "$(number positions)" -eq $(($(number chunks) * 32)) ] || bad "$(cat "$work/out")"
# A stride of half a chunk scores the tokens of a chunk, and the token before them.
infer perplexity -f "$work/text" --chunk 64 --stride 31 --chunks 1 --json
stride=$(number nll)
infer perplexity -f "$work/text" --chunk 64 --chunks 1 --json
[ "$(number nll)" = "$stride" ] || bad "$(number nll) and $stride"
infer perplexity -f "$work/text" --chunk 8 --stride 7 --json -v
status 0
usage '--stride: 64 is not below --chunk 64' perplexity -f "$work/text" --chunk 64 --stride 64
head -n 2 "$work/text" >"$work/short"
usage 'with --stride it needs more than --chunk 512' perplexity -f "$work/short" --stride 8
usage '--stride: contradicts --kl|--kl: contradicts --stride' perplexity --stride 8 --kl x

begin both_forms_of_saved_logits_are_read
INFER_MODEL=$MODEL
infer perplexity -f "$work/text" --chunk 64 --chunks 2 --save-logits "$work/f32" --json
two=$(number nll)
infer perplexity -f "$work/text" --chunk 64 --chunks 2 --save-logits "$work/u16" --logits-format u16
status 0
[ "$(head -c 8 "$work/u16")" = _logits_ ] || bad 'another beginning'
[ "$(wc -c <"$work/u16")" -eq $((20 + 2 * 64 * 4 + 2 * 31 * (8 + 2 * 49152))) ] || bad 'another size'
infer perplexity --kl "$work/u16" --json
status 0
err ''
near "$(number kl)" 0 0.00001
near "$(number nll)" "$two" 0
near "$(number base_perplexity)" "$(number perplexity)" 0.001
infer perplexity --kl "$work/u16"
out_like '^same top token 100\.000 % '
head -c 1000 "$work/u16" >"$work/cut"
usage 'cut: damaged: its size does not fit' perplexity --kl "$work/cut"
usage '--logits-format: needs --save-logits' perplexity -f x --logits-format u16
usage 'is none of f32' perplexity -f x --save-logits y --logits-format f16

begin another_model_is_compared
infer quantize "$MODEL" "$work/other.gguf" Q4_0
infer perplexity -m "$work/other.gguf" --kl "$work/f32" --json
status 0
kl=$(number kl)
near "$(number base_perplexity)" "$(awk "BEGIN { print exp($two) }")" 0.001
for member in kl_standard_error kl_smallest kl_largest kl_quantiles same_top same_top_standard_error \
    shift shift_rms shift_rms_standard_error shift_smallest shift_largest shift_quantiles \
    base_standard_error log_ratio log_ratio_standard_error correlation; do
    out_like "\"$member\":[-0-9{]"
done
awk "BEGIN { exit !($kl > 0.01 && $kl < 1 && $(number kl_smallest) >= 0) }" || bad "KL $kl"
infer perplexity -m "$work/other.gguf" --kl "$work/u16" --json
near "$(number kl)" "$kl" 0.001
infer perplexity -m "$work/other.gguf" --kl "$work/f32"
out_like '^perplexity [0-9.]+ \+/- [0-9.]+ \(62 positions\)$'
out_like '^KL divergence [0-9.]+ \+/- [0-9.]+, largest [0-9.]+$'
out_like '^probability shift -?[0-9.]+ % \+/- [0-9.]+ %, RMS [0-9.]+ % \+/- [0-9.]+ %$'
out_like '^base perplexity [0-9.]+ \+/- [0-9.]+, ratio [0-9.]+ \+/- [0-9.]+, difference -?[0-9.]+ \+/- [0-9.]+, correlation [0-9.]+ %$'
out_like '^median +[0-9.]+ +-?[0-9.]+ %$'

finish

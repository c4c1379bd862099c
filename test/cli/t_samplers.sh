# The sampling options: invalid ones are refused, valid ones take effect.
. test/cli/lib.sh

begin unknown_and_repeated_samplers_are_named
usage "--samplers: 'best' is not a sampler: the samplers are penalties, dry" run -p x --samplers 'top_k;best'
usage "'topk' is named twice" run -p x --samplers 'top_k,topk'
usage "'' is not a sampler" run -p x --samplers 'top_k;'

begin what_could_not_act_is_refused
usage '--samplers: does not name xtc, which --xtc-probability switches on' \
    run -p x --samplers top_k --xtc-probability 0.5
usage '--mirostat: replaces typ_p, which --typical switches on' \
    run -p x --mirostat 2 --typical 0.5
usage '--samplers: infill compares' run -p x --samplers 'infill;top_k'

begin ranges_are_checked
for bad in '--typical 1.5' '--xtc-probability -0.1' '--xtc-threshold 2' '--dry-base 0.5' \
    '--dry-allowed-length 0' '--mirostat 3' '--adaptive-decay 1' '--adaptive-target 2' \
    '--dynatemp-range -1' '--top-n-sigma -2' '--mirostat-lr nan'; do
    # shellcheck disable=SC2086
    usage "${bad% *}: '${bad#* }' is not a" run -p x $bad
done

begin biases_have_a_form
for bad in 5 5+ +1 5+x 5+inf yes; do
    usage "--logit-bias: '.*' is not ID[+]BIAS" run -p x --logit-bias "$bad"
done

[ -n "$MODEL" ] || { echo 'skip t_samplers.sh, the rest: no model'; finish; exit; }
INFER_MODEL=$MODEL
export INFER_MODEL
france='The capital of France is'

begin biases_by_id_and_by_text
infer -p "$france" -n 1 --temp 0
out ' Paris'
paris=$("$INFER" tokenize -p ' Paris' --no-bos </dev/null)
infer -p "$france" -n 1 --temp 0 --logit-bias "$paris-inf"
status 0
grep -q Paris "$work/out" && bad 'a forbidden token came'
cp "$work/out" "$work/other"
infer -p "$france" -n 1 --temp 0 --logit-bias ' Paris-inf'
cmp -s "$work/out" "$work/other" || bad 'the text does not mean the id'
infer -p "$france" -n 3 --temp 0 -l ' Paris+100'
out ' Paris Paris Paris'
usage "no single token of this model reads 'Paris and London'" run -p x -l 'Paris and London+1'
usage 'the model has no token 99999999' run -p x -l '99999999+1'

begin the_default_order_may_be_written_out
infer -p "$france" -n 24 -s 3
cp "$work/out" "$work/other"
infer -p "$france" -n 24 -s 3 \
    --samplers 'penalties;dry;top_n_sigma;top_k;typ_p;top_p;min_p;xtc;temperature'
cmp -s "$work/out" "$work/other" || bad 'the same order gives another text'

begin every_sampler_runs_and_repeats_itself
n=${quick:+4} n=${n:-12}
for options in '--dynatemp-range 0.5' '--typical 0.9 --top-k 0' '--top-n-sigma 1' \
    '--xtc-probability 1 --xtc-threshold 0.05' '--dry-multiplier 0.8' '--mirostat 1' \
    '--mirostat 2' '--adaptive-target 0.4' '--samplers top_k;infill' '--top-k 0 --top-p 1 --min-p 0'; do
    # shellcheck disable=SC2086
    infer -p "$france" -n "$n" -s 5 $options
    status 0
    cp "$work/out" "$work/other"
    # shellcheck disable=SC2086
    infer -p "$france" -n "$n" -s 5 $options
    cmp -s "$work/out" "$work/other" || bad "$options: another text the second time"
done

begin dry_ends_a_loop
loop='one two three four one two three four one two three four one two'
infer -p "$loop" -n 6 --temp 0
out ' three four one two three four'
infer -p "$loop" -n 6 --temp 0 --dry-multiplier 5
status 0
out_like '^ [a-z]+'
grep -q '^ three' "$work/out" && bad 'DRY lets it repeat'

begin dry_breakers_end_a_repetition
infer -p "$loop" -n 1 --temp 0 --dry-multiplier 5 --dry-sequence-breaker two
out ' three'
infer -p "$loop" -n 1 --temp 0 --dry-multiplier 5 --dry-sequence-breaker o --dry-sequence-breaker x
out ' three'
infer -p "$loop" -n 1 --temp 0 --dry-multiplier 5 --dry-sequence-breaker five
grep -q three "$work/out" && bad 'a breaker that does not occur breaks'
usage '--dry-sequence-breaker: must have from 1 to 128 bytes' run -p x -m "$MODEL" \
    --dry-sequence-breaker "$(printf '%0200d' 1)"
infer -p x -n 1 --temp 0 --dry-multiplier 5 --dry-sequence-breaker none
status 0
finish

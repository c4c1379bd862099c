# Diffusion models, with random weights: run writes all tokens together; other commands say so.
. test/cli/lib.sh

[ -x "$make_model" ] || { echo "skip: $make_model is not built"; finish; exit 0; }
"$make_model" "$work/m.gguf" arch=llada 'keys=!tokenizer.ggml.mask_token_id=299 !diffusion.shift_logits=false' \
    >/dev/null || exit 1
run() { infer run --raw -m "$work/m.gguf" hello -n 8 --json "$@"; }
ids() { sed -n 's/.*"ids":\(\[[^]]*\]\).*/\1/p' "$work/out"; }

begin run_writes_by_steps
run
status 0
err ''
one=$(ids)
[ "$(echo "$one" | tr , '\n' | wc -l)" = 8 ] || bad "$one"
run --diffusion-steps 8 -t 2 -b 1
[ "$(ids)" = "$one" ] || bad "other threads: $(ids), not $one"
run --diffusion-steps 1
[ "$(ids)" != "$one" ] || bad 'one step is eight'
run --diffusion-algorithm entropy
[ "$(ids)" != "$one" ] || bad 'the order has no effect'
run --diffusion-block-length 2
[ "$(ids)" != "$one" ] || bad 'blocks have no effect'
run --temp 1 --seed 3
[ "$(ids)" != "$one" ] || bad 'no token was drawn'
run -n 0
out_like '"tokens":0'
infer run --raw -m "$work/m.gguf" hello -n 8 --stop z
status 0
out ''

run --draft off
[ "$(ids)" = "$one" ] || bad "--draft off: status $code, $(ids), not $one"

begin what_needs_single_tokens_is_refused
for option in '--json-schema {}' '--json --logprobs 1' '--heat' '--draft ngram'; do
    # shellcheck disable=SC2086
    infer run --raw -m "$work/m.gguf" hello -n 4 $option
    status 2
    err_like 'a diffusion model writes its tokens together'
done
infer score -m "$work/m.gguf" -p hello --continuation x
status 3
err_like 'a diffusion model writes a text as a whole'
"$make_model" "$work/none.gguf" arch=dream >/dev/null || exit 1
infer run --raw -m "$work/none.gguf" hello
status 3
err_like 'no mask token'
infer inspect -m "$work/m.gguf"
status 0
grep -q Embeds "$work/out" && bad "$(cat "$work/out")"

finish

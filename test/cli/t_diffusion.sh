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

begin lines_of_batch_are_texts_of_run
printf '{"prompt":"%s"%s}\n' hello '' 'a b' ',"temp":1,"seed":3' no ',"predict":3' hello ',"stop":["a"],"seed":5' \
    'x' ',"json_schema":{}' >"$work/lines"
text() { sed -n 's/.*,"text":\("[^,]*"\),.*/\1/p' "$work/out"; }
one_by_one() { # one_by_one OPTION...: the texts of run
    infer run --raw -m "$work/m.gguf" hello -n 8 --json "$@" && text
    infer run --raw -m "$work/m.gguf" 'a b' -n 8 --json --temp 1 --seed 3 "$@" && text
    infer run --raw -m "$work/m.gguf" no -n 3 --json "$@" && text
    infer run --raw -m "$work/m.gguf" hello -n 8 --json --stop a --seed 5 "$@" && text
}
for options in '' '--diffusion-steps 2 --diffusion-block-length 2 -t 2' '--diffusion-algorithm random -np 3'; do
    # shellcheck disable=SC2086
    one_by_one ${options%-np 3} >"$work/texts"
    # shellcheck disable=SC2086
    infer batch --raw -m "$work/m.gguf" -f "$work/lines" -n 8 $options
    status 1
    text | cmp -s - "$work/texts" || bad "batch $options: other texts: $(text)"
    out_like '^{"line":5,"status":2,"error":"a constraint: a diffusion model writes its tokens together"}$'
done
infer batch --raw -m "$work/m.gguf" --lines -f "$work/lines" --draft ngram
status 2
err_like 'a diffusion model writes its tokens together'

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

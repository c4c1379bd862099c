# Models whose encoder reads the text before a decoder writes (T5), with random weights.
. test/cli/lib.sh

[ -x "$make_model" ] || { echo "skip: $make_model is not built"; finish; exit 0; }
"$make_model" "$work/m.gguf" arch=t5 >/dev/null || exit 1
run() { infer run -m "$work/m.gguf" -n 8 --ignore-eos --json "$@"; }
ids() { sed -n 's/.*"ids":\(\[[^]]*\]\).*/\1/p' "$work/out"; }

begin run_encodes_the_text_and_decodes_from_the_start
run hello
status 0
err ''
out_like '"prompt_tokens":6' # five bytes, and the token that begins the answer
one=$(ids)
for options in '-t 2' '-b 1' '--isa scalar' '--draft ngram'; do
    # shellcheck disable=SC2086
    run hello $options
    [ "$(ids)" = "$one" ] || bad "$options: $(ids), not $one"
done
run hellp
[ "$(ids)" != "$one" ] || bad 'the last letter has no effect'
infer logits -m "$work/m.gguf" --ids '104 101 254 7 8' -o "$work/logits"
status 0
[ "$(wc -c <"$work/logits")" = $((3 * 300 * 4)) ] || bad "$(wc -c <"$work/logits") bytes of logits"

long='a text that is long enough to be worth a place in the cache'
begin a_stored_text_continues_with_the_same_bytes
run "$long" --temp 0 --cache "$work/cache"
first=$(ids)
run "$long" --temp 0 --cache "$work/cache"
status 0
out_like '"cached_tokens":[1-9]'
[ "$(ids)" = "$first" ] || bad "$(ids), not $first"
run "$long and more" --temp 0
longer=$(ids)
run "$long and more" --temp 0 --cache "$work/cache" # the encoder reads all of it
status 0
[ "$(ids)" = "$longer" ] || bad "$(ids), not $longer"

begin lines_of_batch_are_texts_of_run
# Lines that share a beginning, the whole text, or nothing; more than a step and more than the slots.
for i in 1 2 3; do
    printf '{"prompt":"%s"%s}\n' "$long" ",\"seed\":$i" "$long $i" '' hello '' 'hello there' ',"predict":3' x ''
done >"$work/lines"
text() { sed -n 's/.*,"text":\("[^,]*"\),.*/\1/p' "$work/out"; }
infer batch -m "$work/m.gguf" -f "$work/lines" -n 8 --ignore-eos -np 1 --draft off
status 0
cp "$work/out" "$work/alone"
for i in 1 2 3; do
    run "$long" --seed $i && text
    run "$long $i" && text
    run hello && text
    run 'hello there' -n 3 && text
    run x && text
done >"$work/texts"
cp "$work/alone" "$work/out"
text | cmp -s - "$work/texts" || bad "other texts: $(text)"
for options in '-np 4 -b 8' '-t 2' '--draft ngram -np 2' "--cache $work/cache2" "--cache $work/cache2 --isa scalar"; do
    # shellcheck disable=SC2086
    infer batch -m "$work/m.gguf" -f "$work/lines" -n 8 --ignore-eos $options
    status 0
    cmp -s "$work/out" "$work/alone" || bad "$options: other bytes"
done

begin other_commands_say_what_the_model_is
infer score -m "$work/m.gguf" -p hello --continuation x
status 3
err_like 'encoder reads a text'
infer logits -m "$work/m.gguf" --ids '1 2 3'
status 2
err_like 'no text for the encoder'
run hello --override-kv t5.decoder_start_token_id=int:300
status 3
err_like 'decoder_start_token_id: 300 is no id of the vocabulary'
infer inspect -m "$work/m.gguf"
status 0
out_like '^Memory|256 tokens'

finish

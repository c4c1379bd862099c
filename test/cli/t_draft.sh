# --draft: drafting changes no byte; models that cannot draft are refused by name.
. test/cli/lib.sh
tiny=$work/tiny.gguf other=$work/other.gguf vocab=$work/vocab.gguf layer=$work/layer.gguf
make() {
    "$make_model" "$@" 2>/dev/null || { echo 'skip t_draft.sh: no model could be made'; finish; exit; }
}
make "$tiny" arch=llama tokens=bpe layers=3
make "$other" arch=llama tokens=bpe layers=1 seed=7
make "$vocab" arch=llama tokens=bpe vocab=310 # the last ones are unused
make "$layer" arch=qwen35-mtp tokens=bpe
text='one two three four one two three four one two three four one two'

# same ARGS: every way of drafting writes the bytes of plain decoding.
same() {
    infer "$@" --draft off
    cp "$work/out" "$work/plain"
    for way in auto ngram "$tiny" "$other"; do
        infer "$@" --draft "$way"
        status 0
        cmp -s "$work/out" "$work/plain" || bad "--draft $way: other bytes"
    done
}

begin drafts_change_no_byte
for seed in 1 2 3; do
    same run -m "$tiny" -p "$text" -n 60 -s $seed --temp 0.3 --ignore-eos
    same run -m "$tiny" -p "$text" -n 60 -s $seed --temp 0.3 --top-k 5 --repeat-penalty 1.1
done
same run -m "$tiny" -p "$text" -n 60 --temp 0 --stop e
same run -m "$tiny" -p "$text" --temp 0 --ignore-eos -c 96
same run -m "$tiny" -p "$text" -n 50 --regex '(one |two )+end'
printf 'hello hello hello hello\nagain\n/undo\n/regen\nagain and again\n' >"$work/lines"
for way in off auto ngram "$tiny" "$other"; do
    input=$work/lines
    infer chat --commands -m "$tiny" --template chatml -n 40 --temp 0.3 --draft "$way"
    status 0
    [ "$way" = off ] && cp "$work/out" "$work/plain"
    cmp -s "$work/out" "$work/plain" || bad "chat --draft $way: other bytes"
done
input=

begin drafts_of_the_mtp_layer_change_no_byte
set -- -m "$layer" -p "$text" -n 40 -s 1 --temp 0.3 --ignore-eos
infer run "$@" --draft off
cp "$work/out" "$work/plain"
for way in auto mtp off 'mtp -t 1 -b 7'; do
    # The second time what was read comes from the folder, with the state of the layer or without.
    for time in 1 2; do
        # shellcheck disable=SC2086
        infer run "$@" --cache "$work/cache" --draft $way -v
        status 0
        cmp -s "$work/out" "$work/plain" || bad "--draft $way, time $time: other bytes"
    done
    [ "$way" = off ] && continue
    err_like 'context .*, with an MTP layer$'
    [ "$way" = auto ] || err_like '^infer: guesses: [0-9]* of [1-9][0-9]* were right, in [1-9][0-9]* batches$'
done
printf '{"prompt":"%s"}\n' "$text" one >"$work/lines"
infer batch -f "$work/lines" -m "$layer" -n 30 --temp 0 -np 1 --draft off
cp "$work/out" "$work/plain"
infer batch -f "$work/lines" -m "$layer" -n 30 --temp 0 -np 1 --draft mtp
status 0
cmp -s "$work/out" "$work/plain" || bad 'batch --draft mtp: other bytes'

begin drafts_of_a_drafter_change_no_byte
# drafter NAME TENSORS KEYS: a drafter for $tiny.
drafter() { make "$work/$1.gguf" arch=eagle3 tokens=bpe with="$2" keys="target_hidden_size=64 $3"; }
drafter eagle3 'output.weight=40 d2t=40' target_layers=0,2,3
make "$work/dflash.gguf" arch=dflash tokens=bpe layers=2 with=token_embd.weight keys='target_layers=0,2 !tokenizer.ggml.mask_token_id=9'
for command in 'run --raw' 'run --raw --plan' 'chat --commands --template chatml'; do
    # shellcheck disable=SC2086
    set -- $command -m "$tiny" -s 1 --temp 0.3
    [ "$1" = run ] && set -- "$@" -p "$text" -n 60 --ignore-eos
    [ "$1" = run ] || { set -- "$@" -n 40 && printf 'hello hello\nagain\n/undo\n/regen\n' >"$work/lines"; }
    for way in off "$work/eagle3.gguf" "$work/eagle3.gguf -t 1 -b 7 --isa scalar" "$work/dflash.gguf"; do
        [ "$1" = chat ] && input=$work/lines
        # shellcheck disable=SC2086
        infer "$@" -v --draft $way
        status 0
        input=
        case "$command $way" in
        *--plan*)
            [ "$way" = off ] && cp "$work/out" "$work/plan"
            [ "$way" != off ] && cmp -s "$work/out" "$work/plan" && bad "--plan without $way"
            continue
            ;;
        *off) cp "$work/out" "$work/plain" ;;
        run*) err_like 'context .*, with a drafter$' && err_like '^infer: guesses: [0-9]* of [1-9][0-9]* were right' ;;
        esac
        cmp -s "$work/out" "$work/plain" || bad "$command --draft $way: other bytes"
    done
done
# What was read comes from the folder only with the same drafter.
drafter eagle3-2 'token_embd.weight output.weight=300' 'target_layers=1,2,2 norm_before_fc=true'
for way in eagle3 eagle3-2 eagle3 eagle3-2; do
    infer run --raw -m "$tiny" -p "$text $text $text" -n 20 --temp 0 --cache "$work/cache" --draft "$work/$way.gguf" -v
    status 0
    cp "$work/out" "$work/$way.out"
    grep -o '([0-9]* from the cache' "$work/err"
done >"$work/cached"
[ "$(wc -l <"$work/cached")" = 2 ] || bad "from the cache: $(cat "$work/cached")"
cmp -s "$work/eagle3.out" "$work/eagle3-2.out" || bad 'other bytes with the cache'

begin a_drafter_for_another_model_is_refused
drafter far '' target_layers=0,2,4
drafter writes output.weight=40 target_layers=0,2,3
make "$work/wide.gguf" arch=eagle3 keys='target_hidden_size=96 target_layers=0,2,3'
make "$work/narrow.gguf" arch=eagle3 tokens=bpe embd=32 with='output.weight=40 d2t=40' keys='target_hidden_size=64 target_layers=0,2,3'
make "$work/embeds.gguf" arch=eagle3 vocab=310 with=token_embd.weight keys='target_hidden_size=64 target_layers=0,2,3'
make "$work/mask.gguf" arch=dflash tokens=bpe layers=1 keys='target_layers=0,2 !tokenizer.ggml.mask_token_id=300'
make "$work/spm.gguf" arch=eagle3 tokens=spm vocab=317 keys='target_hidden_size=64 target_layers=0,2,3'
while read -r name message; do
    infer run -m "$tiny" -p x -n 1 --draft "$work/$name.gguf"
    status 2
    err_like "^infer: --draft: .*$name.gguf $message\$"
done <<'END'
far is not for this model: it reads layer 4 of 3
wide is not for this model: it is for hidden states of 96 numbers, not 64
narrow is not for this model: it lacks embeddings or an output of its 32 numbers, not 64
embeds is not for this model: it has embeddings of 310 tokens, not 300
mask is not for this model: its mask is token 300 of 300
spm has a different vocabulary from the model: token 0 differs
writes is not for this model: it has logits of 40 tokens, not 300
END
infer run -m "$work/eagle3.gguf" -p x -n 1
status 3
err_like "eagle3.gguf: no language model: the file is a drafter, which reads the hidden states of another model: give that model's file, and this one as its draft \(--draft\)\$"
printf '{"prompt":"x"}\n' >"$work/lines"
printf 'x\ny\n' >"$work/texts"
for command in 'chat --template chatml' chat "batch -f $work/lines" 'score -p x --continuation y' \
    "embed -f $work/texts" 'bench -p 1 -n 0' "perplexity -f $work/texts" 'logits -p x'; do
    # shellcheck disable=SC2086
    infer $command -m "$work/eagle3.gguf"
    status 3
    err_like 'eagle3.gguf: no language model: the file is a drafter, .* \(--draft\)$'
done
infer tokenize -m "$work/eagle3.gguf" x
status 0

begin a_drafter_that_was_trained_with_a_shorter_context_is_noted
make "$work/short.gguf" arch=eagle3 tokens=bpe with='output.weight=40 d2t=40' ctx=64 \
    keys='target_hidden_size=64 target_layers=0,2,3'
infer run --raw -m "$tiny" -p x -n 1 -c 65 --draft "$work/short.gguf"
status 0
err_like 'context of 65 tokens is longer than the 64 that the draft model .*/short.gguf was trained with'
infer run --raw -m "$tiny" -p x -n 1 -c 64 --draft "$work/short.gguf"
status 0
grep "trained with" "$work/err" && bad 'a note of the trained context'

begin vocabularies_may_differ_in_unused_tokens_at_the_end
for pair in "$tiny $vocab" "$vocab $tiny"; do
    # shellcheck disable=SC2086
    set -- $pair
    for bias in '' '-l 305+1000' '-l 295+1000'; do
        [ "$1 $bias" = "$tiny -l 305+1000" ] && continue
        # shellcheck disable=SC2086
        infer run -m "$1" -p "$text" -n 30 --temp 0 --ignore-eos --draft off $bias
        cp "$work/out" "$work/plain"
        # shellcheck disable=SC2086
        infer run -m "$1" -p "$text" -n 30 --temp 0 --ignore-eos --draft "$2" $bias
        status 0
        # Tokens without letters may be all that is chosen.
        grep -v '^infer: the text is empty' "$work/err" && bad "$pair: $(cat "$work/err")"
        cmp -s "$work/out" "$work/plain" || bad "$pair $bias: other bytes"
    done
done

begin notes_name_the_draft
make "$work/short.gguf" arch=llama tokens=bpe ctx=16
infer run -m "$tiny" -p x -n 1 -c 64 --draft "$work/short.gguf"
status 0
err_like '^infer: the context of 64 tokens is longer than the 16 that the draft model .*/short.gguf was trained with'

begin drafted_tokens_are_counted
infer run -m "$tiny" -p "$text" -n 60 --temp 0 --ignore-eos --draft "$tiny" -v
status 0
err_like '^infer: guesses: [1-9][0-9]* of [1-9][0-9]* were right, in [1-9][0-9]* batches$'

begin a_model_that_cannot_draft_is_refused
infer run -m "$tiny" -p x -n 1 --draft mtp
status 2
err_like '^infer: --draft: .*tiny.gguf has no MTP layer, or none that is supported$'
LC_ALL=C sed 's/<unused305>/<another05>/; s/\(\x05\x00\x00\x00\)\{5\}/\x04\x00\x00\x00\x04\x00\x00\x00\x04\x00\x00\x00\x04\x00\x00\x00\x04\x00\x00\x00/g' "$vocab" >"$work/used.gguf"
infer run -m "$tiny" -p x -n 1 --draft "$work/used.gguf"
status 2
err_like '^infer: --draft: .*used.gguf has a different vocabulary from the model: '
infer run -m "$tiny" -p x -n 1 --draft "$work/nothing.gguf"
status 3
err_like 'nothing.gguf: '
finish

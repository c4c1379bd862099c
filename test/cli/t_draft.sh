# --draft: drafting changes no byte; models that cannot draft are refused by name.
. test/cli/lib.sh
tiny=$work/tiny.gguf other=$work/other.gguf vocab=$work/vocab.gguf
make() {
    "$make_model" "$@" 2>/dev/null || { echo 'skip t_draft.sh: no model could be made'; finish; exit; }
}
make "$tiny" arch=llama tokens=bpe layers=3
make "$other" arch=llama tokens=bpe layers=1 seed=7
make "$vocab" arch=llama tokens=bpe vocab=310
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

begin guesses_change_no_byte
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

begin guesses_are_counted
infer run -m "$tiny" -p "$text" -n 60 --temp 0 --ignore-eos --draft "$tiny" -v
status 0
err_like '^infer: guesses: [1-9][0-9]* of [1-9][0-9]* were right, in [1-9][0-9]* batches$'

begin what_cannot_guess_is_refused
infer run -m "$tiny" -p x -n 1 --draft "$vocab"
status 2
err_like '^infer: --draft: .*vocab.gguf has a different vocabulary from the model: 310 tokens, not 300$'
infer run -m "$tiny" -p x -n 1 --draft "$work/nothing.gguf"
status 3
err_like 'nothing.gguf: '
finish
